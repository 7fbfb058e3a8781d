package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Error is an answer with a status other than 200.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	// Login is where the browser goes to log in, if the page cannot by itself.
	Login string `json:"login,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(status int, format string, args ...any) error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// WriteError answers with an error. One that is no Error has no words for users.
func WriteError(w http.ResponseWriter, err error) {
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{Status: http.StatusInternalServerError, Message: "the console failed: its own output says more"}
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Del("Content-Length")
	w.WriteHeader(known.Status)
	_ = json.NewEncoder(w).Encode(known)
}

// WriteJSON answers with an object.
func WriteJSON(w http.ResponseWriter, answer any) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text) // the browser may be gone
	return nil
}
