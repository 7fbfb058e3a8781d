package console

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const experiments = "/k8s/apis/vignette.dev/v1alpha1/namespaces/team-nor/experiments"

func TestNothingIsSaidWithoutTheTokenOfThisStart(t *testing.T) {
	s := startLocal(t, nil)
	for _, path := range []string{"/console/v1/session", "/console/v1/library", "/console/v1/library/quickstart/experiment.yaml", experiments} {
		if answer := s.get(path); answer.status != http.StatusUnauthorized || !strings.Contains(answer.problem(), "vignette ui") {
			t.Errorf("%s: %d %s; want 401 and what to do", path, answer.status, answer.body)
		}
	}
	for _, token := range []string{"", "guess", strings.ToUpper(s.token)} {
		if answer := s.post("/console/v1/login", `{"token":"`+token+`"}`); answer.status != http.StatusUnauthorized || answer.header.Get("Set-Cookie") != "" {
			t.Errorf("token %q: %d, cookie %q; want 401 and none", token, answer.status, answer.header.Get("Set-Cookie"))
		}
	}
	if n := len(s.api.requests()); n != 0 {
		t.Errorf("the API server got %d requests", n)
	}
	s.logIn()
	if answer := s.get(experiments); answer.status != http.StatusOK {
		t.Errorf("with the token: %d %s", answer.status, answer.body)
	}
}

func TestTheCookieIsOutOfReachOfScriptsAndOtherSites(t *testing.T) {
	s := startLocal(t, nil)
	answer := s.post("/console/v1/login", `{"token":"`+s.token+`"}`)
	cookie := answer.header.Get("Set-Cookie")
	_, port, _ := strings.Cut(strings.TrimPrefix(s.origin, "http://"), ":")
	for _, want := range []string{"vignette-" + port + "=", "; Path=/", "; HttpOnly", "; SameSite=Strict"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("Set-Cookie: %s; want %s", cookie, want)
		}
	}
	if strings.Contains(cookie, s.token) {
		t.Errorf("the cookie holds the token of the address")
	}
}

func TestANameOfAnotherSiteForThisAddressIsRefused(t *testing.T) {
	s := startLocal(t, nil).logIn()
	_, port, _ := strings.Cut(strings.TrimPrefix(s.origin, "http://"), ":")
	for _, host := range []string{"evil.example", "evil.example:" + port, "127.0.0.1", "127.0.0.1.evil.example:" + port} {
		for _, path := range []string{"/", "/assets/index-abc.js", "/console/v1/session", experiments} {
			if answer := s.get(path, "Host: "+host); answer.status != http.StatusMisdirectedRequest || strings.Contains(answer.body, "alice") {
				t.Errorf("%s as %s: %d; want 421", path, host, answer.status)
			}
		}
	}
}

func TestAnotherSitesPageCanNeitherReadNorWrite(t *testing.T) {
	s := startLocal(t, nil).logIn() // the worst case: the browser sends the cookie all the same
	for name, headers := range map[string][]string{
		"a form of another site":         {"Origin: https://evil.example"},
		"a page without an origin":       {"Origin: null"},
		"a page of another port":         {"Origin: http://127.0.0.1:1", "Sec-Fetch-Site: same-site"},
		"the console's port by TLS":      {"Origin: " + strings.Replace(s.origin, "http:", "https:", 1)},
		"no origin at all":               nil,
		"another site by fetch metadata": {"Origin: " + s.origin, "Sec-Fetch-Site: cross-site"},
	} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
			if answer := s.send(method, experiments, "{}", headers...); answer.status != http.StatusForbidden || answer.problem() == "" {
				t.Errorf("%s, %s: %d; want 403 in words", method, name, answer.status)
			}
		}
		if answer := s.send(http.MethodPost, "/console/v1/login", `{"token":"`+s.token+`"}`, headers...); answer.status != http.StatusForbidden {
			t.Errorf("login, %s: %d; want 403", name, answer.status)
		}
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}, {"Origin: https://evil.example"}} {
		for _, path := range []string{experiments, "/console/v1/session"} {
			answer := s.get(path, headers...)
			if answer.status != http.StatusForbidden || answer.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("GET %s, %v: %d, %v; want 403 and no CORS", path, headers, answer.status, answer.header)
			}
		}
	}
	if n := len(s.api.requests()); n != 0 {
		t.Errorf("the API server got %d requests", n)
	}
	if answer := s.get("/ns/team-nor/experiments/quickstart", "Sec-Fetch-Site: cross-site"); answer.status != http.StatusOK {
		t.Errorf("a link of another site to a page: %d; want the page", answer.status)
	}
}

func TestAWebSocketOfAnotherSiteIsRefused(t *testing.T) {
	s := startLocal(t, echo).logIn()
	path := "/k8s/api/v1/namespaces/team-nor/pods/p/exec?command=sh"
	for _, origin := range []string{"", "null", "https://evil.example", "http://127.0.0.1:1"} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		_, answer, err := s.dial(path, []string{"v5.channel.k8s.io"}, header)
		if err == nil || answer == nil || answer.StatusCode != http.StatusForbidden {
			t.Errorf("from %q: %v; want 403", origin, err)
		}
	}
	if n := len(s.api.requests()); n != 0 {
		t.Errorf("the API server got %d requests", n)
	}
	socket, _, err := s.dial(path, []string{"v5.channel.k8s.io", tokenProtocol + "c3RvbGVu"}, http.Header{"Origin": {s.origin}, "Impersonate-User": {"admin"}})
	if err != nil {
		t.Fatalf("from the console's own page: %v", err)
	}
	defer socket.Close()
	if socket.Subprotocol() != "v5.channel.k8s.io" {
		t.Errorf("subprotocol %q", socket.Subprotocol())
	}
	if err := socket.WriteMessage(websocket.BinaryMessage, []byte("\x00ls")); err != nil {
		t.Fatal(err)
	}
	if _, back, err := socket.ReadMessage(); err != nil || string(back) != "\x00ls" {
		t.Errorf("echo %q, %v", back, err)
	}
	for _, r := range s.api.requests() {
		if strings.Contains(r.Header.Get("Sec-Websocket-Protocol"), tokenProtocol) || r.Header.Get("Impersonate-User") != "" || r.Header.Get("Authorization") != "Bearer kubeconfig" {
			t.Errorf("the API server got %v", r.Header)
		}
	}
}

// echo is an API server whose WebSockets send back what they get.
func echo(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}, CheckOrigin: func(*http.Request) bool { return true }}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer socket.Close()
	for {
		kind, text, err := socket.ReadMessage()
		if err != nil || socket.WriteMessage(kind, text) != nil {
			return
		}
	}
}

func TestABrowserCannotClaimOtherRights(t *testing.T) {
	s := startLocal(t, nil).logIn()
	for _, header := range []string{
		"Authorization: Bearer stolen", "Impersonate-User: admin", "Impersonate-Group: system:masters", "Impersonate-Uid: 1", "Impersonate-Extra-Scopes: all",
		"X-Remote-User: admin", "X-Remote-Group: system:masters", "X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "Proxy-Authorization: Basic x",
		"Cookie: other=1",
	} {
		if answer := s.get(experiments, header); answer.status != http.StatusOK {
			t.Fatalf("%s: %d %s", header, answer.status, answer.body)
		}
		requests := s.api.requests()
		got := requests[len(requests)-1]
		name, value, _ := strings.Cut(header, ": ")
		if got.Header.Get("Authorization") != "Bearer kubeconfig" || got.Header.Get(name) == value || got.Header.Get("Cookie") != "" || got.Header.Get("Origin") != "" {
			t.Errorf("%s: the API server got %v; want the kubeconfig's token and nothing of the browser's", header, got.Header)
		}
	}
}

func TestAnAnswerOfTheAPIServerCannotActInTheConsolesName(t *testing.T) {
	s := startLocal(t, func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header.Set("Set-Cookie", "vignette-1=stolen")
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Allow-Credentials", "true")
		header.Set("Clear-Site-Data", `"*"`)
		header.Set("Location", "https://evil.example")
		header.Set("Refresh", "0; url=https://evil.example")
		header.Set("Service-Worker-Allowed", "/")
		header.Set("Content-Security-Policy", "default-src *; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "sniff")
		header.Set("Warning", `299 - "deprecated"`)
		writeText(w, "text/html", "<script>fetch('/k8s/api/v1/secrets')</script>")
	}).logIn()
	answer := s.get("/k8s/apis/other.example/v1/pages/x")
	for _, name := range []string{"Set-Cookie", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Clear-Site-Data", "Location", "Refresh", "Service-Worker-Allowed"} {
		if value := answer.header.Get(name); value != "" {
			t.Errorf("%s: %s reached the browser", name, value)
		}
	}
	policies := answer.header.Values("Content-Security-Policy")
	if len(policies) != 2 || !strings.HasPrefix(policies[0], "sandbox") || strings.Contains(strings.Join(policies, " "), "allow-same-origin") {
		t.Errorf("policies %q; want a sandbox without the console's origin, besides the page's own", policies)
	}
	if options := answer.header.Values("X-Content-Type-Options"); len(options) != 1 || options[0] != "nosniff" {
		t.Errorf("X-Content-Type-Options %q", options)
	}
	if answer.header.Get("Warning") == "" {
		t.Error("the API server's warning is lost")
	}
}

func TestPagesThatPodsAndServicesServeAreNotPassedOn(t *testing.T) {
	s := startLocal(t, nil).logIn()
	for _, path := range []string{
		"/api/v1/namespaces/x/pods/y/proxy", "/api/v1/namespaces/x/pods/y/proxy/", "/api/v1/namespaces/x/pods/y/proxy/index.html",
		"/api/v1/namespaces/x/services/http:y:80/proxy/", "/api/v1/nodes/n/proxy/metrics", "/api/v1/proxy/namespaces/x/pods/y/",
		"/api/v1/namespaces/x/pods/y/%70roxy/", "/apis/other.example/v1/namespaces/x/archives/default/proxy/", "/apis/results.vignette.dev/v1alpha1/namespaces/x/others/default/proxy/",
	} {
		if answer := s.get("/k8s" + path); answer.status != http.StatusForbidden || !strings.Contains(answer.problem(), "kubectl") {
			t.Errorf("%s: %d %s; want 403 and another way", path, answer.status, answer.body)
		}
	}
	for _, path := range []string{"/k8s/metrics", "/k8s/logs/", "/k8s/debug/pprof/", "/k8s/", "/k8s/openid/v1/jwks", "/k8s/apishop"} {
		if answer := s.get(path); answer.status != http.StatusNotFound {
			t.Errorf("%s: %d; want 404", path, answer.status)
		}
	}
	if n := len(s.api.requests()); n != 0 {
		t.Errorf("the API server got %d requests", n)
	}
	for _, path := range []string{"/k8s/apis/results.vignette.dev/v1alpha1/namespaces/x/archives/default/proxy/v1/runs", "/k8s/api/v1/namespaces/x/configmaps/proxy", "/k8s/version"} {
		if answer := s.get(path); answer.status != http.StatusOK {
			t.Errorf("%s: %d %s; want what the API server answers", path, answer.status, answer.body)
		}
	}
}

func TestPathsLeadNowhereElse(t *testing.T) {
	s := startLocal(t, nil).logIn()
	for _, path := range []string{
		"/assets/../../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/assets/..%5c..%5cetc/passwd", "//etc/passwd",
		"/console/v1/library/../../../etc/passwd", "/console/v1/library/%2e%2e/%2e%2e/console/embed.go", "/console/v1/library/..%2f..%2fgo.mod", "/console/v1/library//etc/passwd",
		"/console/v1/library/secret/notes.txt", "/.gitkeep", "/assets/index-abc.js.br",
		"/k8s/api/../metrics", "/k8s/api/v1/%2e%2e/%2e%2e/metrics", "/k8s/api//v1", "/k8s/api/v1/namespaces/a%2f..%2f..%2f..%2f..%2f..%2fmetrics",
	} {
		answer := s.get(path)
		if strings.Contains(answer.body, "root:") || strings.Contains(answer.body, "hidden words") || strings.Contains(answer.body, "placeholder") || answer.body == "brotli" {
			t.Errorf("%s: %d %.80s", path, answer.status, answer.body)
		}
	}
	for _, r := range s.api.requests() {
		t.Errorf("the API server was asked for %s", r.URL)
	}
}

func TestThePagePolicyAllowsOnlyTheConsole(t *testing.T) {
	s := startLocal(t, nil)
	first, second := s.get("/"), s.get("/ns/team-nor/runs/1?compare=2")
	policy := first.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "object-src 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %s; want %s", policy, want)
		}
	}
	for _, no := range []string{"unsafe-inline", "unsafe-eval", "http:", "https:", "*"} {
		if strings.Contains(policy, no) {
			t.Errorf("policy %s has %s", policy, no)
		}
	}
	_, after, _ := strings.Cut(policy, "'nonce-")
	nonce, _, _ := strings.Cut(after, "'")
	if len(nonce) < 22 || strings.Count(first.body, `"`+nonce+`"`) != 2 || strings.Contains(first.body, noncePlaceholder) {
		t.Errorf("nonce %q in\n%s", nonce, first.body)
	}
	if strings.Contains(second.body, nonce) || second.status != http.StatusOK {
		t.Errorf("a second answer (%d) has the same nonce", second.status)
	}
	for path, answer := range map[string]reply{"/": first, "/assets/index-abc.js": s.get("/assets/index-abc.js"), "/console/v1/session": s.get("/console/v1/session")} {
		if answer.header.Get("X-Content-Type-Options") != "nosniff" || answer.header.Get("Referrer-Policy") != "no-referrer" ||
			!strings.Contains(answer.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: %v", path, answer.header)
		}
	}
}

func TestABrowserThatLeavesEndsItsStream(t *testing.T) {
	ended := make(chan struct{})
	s := startLocal(t, func(w http.ResponseWriter, r *http.Request) {
		writeText(w, "text/plain", "first line\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	}).logIn()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.origin+"/k8s/api/v1/namespaces/x/pods/y/log?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	leave()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the API server still sends")
	}
}
