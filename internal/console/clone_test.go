package console

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"vignette.dev/vignette/internal/runapi/client"
)

func TestAFailedCloneHasTheStatusAndTheWordsOfWhoRefusedIt(t *testing.T) {
	c := &Console{config: Config{Log: slog.New(slog.DiscardHandler)}}
	user := &User{Server: &url.URL{Host: "api.example"}}
	for name, asked := range map[string]struct {
		err    error
		status int
		words  string
	}{
		"the API server before the archive": {&client.Error{Status: 403, Message: `{"kind":"Status","apiVersion":"v1","message":"archives is forbidden","code":403}`}, 403, "archives is forbidden"},
		"the archive":                       {fmt.Errorf("run.json: %w", &client.Error{Status: 404, Message: "no run has uid \"x\"\n"}), 404, `no run has uid "x"`},
		"the API server":                    {apierrors.NewNotFound(schema.GroupResource{Resource: "waveforms"}, "hf"), 404, `waveforms "hf" not found`},
		"a login that has ended":            {apierrors.NewUnauthorized("Unauthorized"), 502, "the API server does not accept your kubeconfig's login: renew it, and start vignette ui again"},
		"no answer":                         {&url.Error{Op: "Get", URL: "https://api.example", Err: errors.New("refused")}, 502, "the API server at api.example cannot be reached: is the cluster up?"},
		"the run itself":                    {errors.New("the archive has no run x"), 422, "the archive has no run x"},
	} {
		var got *Error
		if err := c.explainClone(user, asked.err); !errors.As(err, &got) || got.Status != asked.status || got.Message != asked.words {
			t.Errorf("%s: %+v; want %d %s", name, got, asked.status, asked.words)
		}
	}
	if (&client.Error{Status: http.StatusNotFound, Message: `{"more":1}`}).Said() != `{"more":1}` {
		t.Error("an answer that is no Status is lost")
	}
}

func TestAFailureWithoutWordsForUsersIsInTheConsolesOwnOutput(t *testing.T) {
	lines := &logLines{}
	c := &Console{config: Config{Access: mapReader{&User{}}, Log: slog.New(slog.NewTextHandler(lines, nil))}}
	for _, failure := range []error{errors.New("the disk is on fire"), Errorf(http.StatusNotFound, "no run x")} {
		answer := httptest.NewRecorder()
		c.forUsers(func(http.ResponseWriter, *http.Request, *User) error { return failure }).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/v1/library", http.NoBody))
		if strings.Contains(answer.Body.String(), "fire") {
			t.Errorf("the page gets %s", answer.Body)
		}
	}
	if got := lines.String(); !strings.Contains(got, "the disk is on fire") || !strings.Contains(got, "/console/v1/library") || strings.Contains(got, "no run x") {
		t.Errorf("the log has %q; want the failure that has no words for users", got)
	}
}
