package console

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"

	"vignette.dev/vignette/internal/testport"
)

// apiServer is a stand-in that records what reaches it.
type apiServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
	// answer to all requests but reviews of the user.
	answer http.HandlerFunc
}

func startAPIServer(t testing.TB, answer http.HandlerFunc) *apiServer {
	t.Helper()
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request) { writeText(w, "application/json", `{"items":[]}`) }
	}
	a := &apiServer{answer: answer}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.seen = append(a.seen, r.Clone(r.Context()))
		a.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			writeText(w, "application/json", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview",
				"status":{"userInfo":{"username":"`+userOf(r)+`","groups":["team-nor"]}}}`)
			return
		}
		a.answer(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// userOf is the name for a token: that of the kubeconfig is alice's.
func userOf(r *http.Request) string {
	if r.Header.Get("Authorization") == "Bearer kubeconfig" {
		return "alice"
	}
	return "system:anonymous"
}

func (a *apiServer) requests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*http.Request{}, a.seen...)
}

func writeText(w http.ResponseWriter, kind, text string) {
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, text)
}

// build is a page of a few files.
var build = fstest.MapFS{
	"index.html":             {Data: []byte(`<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__"><script nonce="__CSP_NONCE__" src="/assets/index-abc.js"></script>`)},
	"assets/index-abc.js":    {Data: []byte(strings.Repeat("console.log('vignette');\n", 100))},
	"assets/index-abc.js.br": {Data: []byte("brotli")},
	"icon.svg":               {Data: []byte("<svg/>")},
	".gitkeep":               {Data: []byte("placeholder")},
}

var scenarioFiles = fstest.MapFS{
	"quickstart/experiment.yaml": {Data: []byte("# Ten nodes of version 1.5\n# and a broker. More words.\n# Most words.\napiVersion: vignette.dev/v1alpha1\nkind: Experiment\nmetadata:\n  name: quickstart\nspec: {}\n")},
	"e4/campaigns/all.yaml": {Data: []byte("# Made up.\nkind: Scenario\nmetadata: {name: moves}\n---\n# E4: all of it.\nkind: Campaign\nmetadata:\n  labels: {a: b}\n" +
		"  name: e4\nspec:\n  template:\n    spec: {}\n")},
	"e4/README.md":     {Data: []byte("# E4")},
	"secret/notes.txt": {Data: []byte("hidden words")},
}

// site is a console on a real port, with a fake API server behind it.
type site struct {
	t      testing.TB
	origin string
	token  string
	api    *apiServer
	client *http.Client
	// team and log are those of a console for many users.
	team *Team
	log  *logLines
}

func startLocal(t testing.TB, answer http.HandlerFunc) *site {
	t.Helper()
	return startLocalWith(t, answer, Config{})
}

// startLocalWith more than every console has.
func startLocalWith(t testing.TB, answer http.HandlerFunc, config Config) *site {
	t.Helper()
	api := startAPIServer(t, answer)
	user, err := NewUser(&rest.Config{Host: api.URL, BearerToken: "kubeconfig"})
	if err != nil {
		t.Fatal(err)
	}
	user.Namespace, user.Context = "team-nor", "lab"
	listener := testport.Listen(t)
	access := NewLocal(user, listener.Addr().(*net.TCPAddr).Port)
	config.Access, config.Origins = access, []string{"http://" + listener.Addr().String()}
	s := serve(t, listener, config)
	s.api, s.token = api, access.Token()
	return s
}

func serve(t testing.TB, listener net.Listener, config Config) *site {
	t.Helper()
	config.Assets, config.Library, config.PlatformNamespace, config.Version = build, scenarioFiles, "vignette-system", "test"
	handler, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := NewHTTP(handler)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, origin: config.Origins[0], client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// reply is what a browser sees of an answer.
type reply struct {
	status int
	header http.Header
	body   string
}

// problem is the message of an error.
func (r reply) problem() string {
	var answer struct{ Error string }
	_ = json.Unmarshal([]byte(r.body), &answer)
	return answer.Error
}

// send a request with headers, as name: value lines.
func (s *site) send(method, path, body string, headers ...string) reply {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.origin+path, bytes.NewBufferString(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.URL.Opaque = "" // the path as it is
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			request.Host = value
		} else {
			request.Header.Add(name, value)
		}
	}
	answer, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(text)}
}

func (s *site) get(path string, headers ...string) reply {
	s.t.Helper()
	return s.send(http.MethodGet, path, "", headers...)
}

// post as the console's own page does.
func (s *site) post(path, body string, headers ...string) reply {
	s.t.Helper()
	return s.send(http.MethodPost, path, body, append(headers, "Origin: "+s.origin, "Sec-Fetch-Site: same-origin")...)
}

// logIn as the page does with the token of the address.
func (s *site) logIn() *site {
	s.t.Helper()
	if answer := s.post("/console/v1/login", `{"token":"`+s.token+`"}`); answer.status != http.StatusNoContent {
		s.t.Fatalf("login: %d %s", answer.status, answer.body)
	}
	return s
}

// dial a WebSocket with the site's cookies.
func (s *site) dial(path string, protocols []string, headers http.Header) (*websocket.Conn, *http.Response, error) {
	address, err := url.Parse(s.origin + path)
	if err != nil {
		s.t.Fatal(err)
	}
	headers = headers.Clone()
	for _, cookie := range s.client.Jar.Cookies(address) {
		headers.Add("Cookie", cookie.String())
	}
	dialer := websocket.Dialer{Subprotocols: protocols}
	return dialer.DialContext(s.t.Context(), "ws"+strings.TrimPrefix(address.String(), "http"), headers)
}
