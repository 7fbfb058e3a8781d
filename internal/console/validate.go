package console

import (
	"io"
	"net/http"

	"vignette.dev/vignette/internal/validate"
)

// maxObjectsBytes of a text to validate; the API server takes no larger object.
const maxObjectsBytes = 3 << 20

// Judgement of a text is that of `vignette validate -o json`.
type Judgement struct {
	validate.Summary
}

// validatedFile is the file name in findings.
const validatedFile = "text"

func (c *Console) validate(w http.ResponseWriter, r *http.Request, _ *User) error {
	text, err := readBody(w, r)
	if err != nil {
		return err
	}
	select {
	case c.judging <- struct{}{}:
		defer func() { <-c.judging }()
	case <-r.Context().Done():
		return Errorf(http.StatusServiceUnavailable, "the browser no longer waits")
	}
	report := validate.Text(validatedFile, text)
	return WriteJSON(w, Judgement{report.Summary()})
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxObjectsBytes))
	if err != nil {
		return nil, Errorf(http.StatusRequestEntityTooLarge, "the text is larger than %d MiB, or did not arrive whole", maxObjectsBytes>>20)
	}
	return text, nil
}
