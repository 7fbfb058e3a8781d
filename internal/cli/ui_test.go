package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
)

// uiConfig is a kubeconfig for a cluster that answers everything with an empty object.
func uiConfig(t *testing.T) string {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(api.Close)
	file := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: lab\nclusters: [{name: c, cluster: {server: '" + api.URL + "'}}]\n" +
		"contexts: [{name: lab, context: {cluster: c, namespace: team-nor}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

var printedAddress = regexp.MustCompile(`Open (http://127\.0\.0\.1:\d+\S*)`)

func TestUIServesUntilItIsEndedAndOpensThePageThatIsNamed(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var out syncbuffer.Buffer
	root := newRoot("test", "vignette", &out)
	root.SetErr(&out)
	root.SetArgs([]string{"ui", "quickstart", "--kubeconfig", uiConfig(t)})
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	address := addressOf(t, &out)
	if address.Path != "/ns/team-nor/experiments/quickstart" || !strings.HasPrefix(address.Fragment, "token=") || address.RawQuery != "" {
		t.Errorf("address %s; want the experiment's page, and the token in the fragment only", address)
	}
	answer, err := http.Get("http://" + address.Host + "/")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	_ = answer.Body.Close()
	refused, err := http.Get("http://" + address.Host + "/console/v1/session")
	if err != nil || refused.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%v, %v; want 401 without the token", refused, err)
	}
	_ = refused.Body.Close()
	end()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
}

func TestUIShowsTheNamespaceThatIsAskedFor(t *testing.T) {
	for _, c := range []struct{ arguments, want string }{
		{"ui", "/"}, // the context's namespace is no choice of this start
		{"ui -n team-prt", "/?ns=team-prt"},
		{"ui -n team-prt quickstart", "/ns/team-prt/experiments/quickstart"},
	} {
		ctx, end := context.WithCancel(t.Context())
		var out syncbuffer.Buffer
		root := newRoot("test", "vignette", &out)
		root.SetErr(&out)
		root.SetArgs(append(strings.Fields(c.arguments), "--kubeconfig", uiConfig(t)))
		done := make(chan error, 1)
		go func() { done <- root.ExecuteContext(ctx) }()
		if address := addressOf(t, &out); address.RequestURI() != c.want || !strings.HasPrefix(address.Fragment, "token=") {
			t.Errorf("%s: address %s; want %s and the token", c.arguments, address, c.want)
		}
		end()
		if err := <-done; err != nil {
			t.Errorf("%s ends with %v", c.arguments, err)
		}
	}
}

func addressOf(t *testing.T, out *syncbuffer.Buffer) *url.URL {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if found := printedAddress.FindStringSubmatch(out.String()); found != nil {
			address, err := url.Parse(found[1])
			if err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatalf("no address in %q", out.String())
	return nil
}

func TestUINamesAPortThatItCannotHave(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(taken.URL, "http://"), ":")
	for port, want := range map[string]string{port: "port " + port + " of 127.0.0.1 cannot be used", "70000": "--port 70000: want a TCP port"} {
		var out syncbuffer.Buffer
		if code := Main("test", []string{"vignette", "ui", "--port", port, "--kubeconfig", uiConfig(t)}, strings.NewReader(""), &out, &out); code != exitFailure || !strings.Contains(out.String(), want) {
			t.Errorf("exit code %d, %q; want %q", code, out.String(), want)
		}
	}
}

func TestUIRefusesAMapThatIsNone(t *testing.T) {
	root := newRoot("test", "vignette", io.Discard)
	root.SetArgs([]string{"ui", "--map", "nowhere.pmtiles", "--kubeconfig", uiConfig(t)})
	if err := root.ExecuteContext(t.Context()); err == nil || err.Error() != "--map: map nowhere.pmtiles: there is no such file" {
		t.Errorf("%v", err)
	}
}
