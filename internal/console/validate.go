package console

import (
	"context"
	"io"
	"net/http"

	"vignette.dev/vignette/internal/validate"
)

// maxObjectsBytes of a text to validate; the API server takes no larger object.
const maxObjectsBytes = 3 << 20

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
	done, err := c.startJudging(r.Context())
	if err != nil {
		return err
	}
	defer done()
	others, warnings := around.named(r.Context(), text)
	report := validate.TextBeside(validatedFile, text, others)
	report.Findings = append(report.Findings, warnings...)
	return WriteJSON(w, report.Summary())
}

// startJudging waits until fewer than maxJudging texts are judged. The caller calls done at its end.
func (c *Console) startJudging(ctx context.Context) (done func(), err error) {
	select {
	case c.judging <- struct{}{}:
		return func() { <-c.judging }, nil
	case <-ctx.Done():
		return nil, Errorf(http.StatusServiceUnavailable, "the browser no longer waits")
	}
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxObjectsBytes))
	if err != nil {
		return nil, Errorf(http.StatusRequestEntityTooLarge, "the text is larger than %d MiB, or did not arrive whole", maxObjectsBytes>>20)
	}
	return text, nil
}
