package runrecord

import (
	"errors"
	"net/http"
	"testing"

	runs "vignette.dev/vignette/internal/runapi/client"
)

func TestAServerThatRefusesIsNotSaidToBeSilent(t *testing.T) {
	for want, err := range map[string]error{
		"the server does not answer; trying again":                        errors.New("dial tcp 10.96.0.20:80: connect: connection refused"),
		"trying again, as the server answered 403 Forbidden: not allowed": &runs.Error{Status: http.StatusForbidden, Message: "not allowed"},
	} {
		if got := Waiting(err); got != want {
			t.Errorf("%v: %q; want %q", err, got, want)
		}
	}
}
