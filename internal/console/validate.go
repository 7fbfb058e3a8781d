package console

import (
	"io"
	"net/http"

	"vignette.dev/vignette/internal/validate"
)

// maxObjectsBytes of a text to validate; the API server takes no larger object.
const maxObjectsBytes = 3 << 20

// Judgement of a text is that of `vignette validate -o json`, and what its objects would take.
type Judgement struct {
	validate.Summary
	Preview Preview `json:"preview"`
}

// validatedFile is the file name in findings.
const validatedFile = "text"

// validate a text by the rules of `vignette validate`. Objects in it may name those of the query's namespace.
func (c *Console) validate(w http.ResponseWriter, r *http.Request, user *User) error {
	text, err := readBody(w, r)
	if err != nil {
		return err
	}
	around, err := newSurroundings(user, r.URL.Query().Get("namespace"))
	if err != nil {
		return err
	}
	select {
	case c.judging <- struct{}{}:
		defer func() { <-c.judging }()
	case <-r.Context().Done():
		return Errorf(http.StatusServiceUnavailable, "the browser no longer waits")
	}
	report := validate.TextBeside(validatedFile, text, around.named(r.Context(), text))
	return WriteJSON(w, Judgement{report.Summary(), around.preview(r.Context(), report)})
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxObjectsBytes))
	if err != nil {
		return nil, Errorf(http.StatusRequestEntityTooLarge, "the text is larger than %d MiB, or did not arrive whole", maxObjectsBytes>>20)
	}
	return text, nil
}
