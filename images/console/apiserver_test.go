package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/console"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/internal/testoidc"
	"vignette.dev/vignette/internal/testteam"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// site is a console for two teams on a real API server.
type site struct {
	*testteam.World
	front *testteam.Front
}

func startSite(t *testing.T) *site {
	t.Helper()
	binary := testkube.Binary()
	if binary == "" || testteam.Helm() == "" {
		t.Skip(testkube.NoBinaryHint)
	}
	front, err := testteam.NewFront()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	world, err := testteam.Start(t.Context(), binary, "../../charts", front.Origin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	o := options{platform: "vignette-system", memoryLimit: "2Gi", server: world.Kube.Host, team: console.TeamConfig{
		Origin: front.Origin, Issuer: world.Provider.Issuer, ClientID: testteam.ClientID, Scopes: []string{"profile", "email", "groups", "offline_access"}, Namespace: "default",
	}}
	for file, text := range map[*string][]byte{&o.serverCA: world.Kube.CAData, &o.issuerCA: world.Provider.Authority.PEM(), &o.secretFile: []byte(testteam.ClientSecret)} {
		*file = filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(*file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	handler, err := o.handler()
	if err != nil {
		t.Fatal(err)
	}
	if err := front.Serve(handler); err != nil {
		t.Fatal(err)
	}
	return &site{world, front}
}

// browser of one user. It notes where it was sent.
type browser struct {
	t       *testing.T
	site    *site
	client  *http.Client
	visited []string
	cookies []*http.Cookie
}

func (s *site) browser(t *testing.T) *browser {
	t.Helper()
	trusted := s.front.Authority.Pool()
	trusted.AddCert(s.Provider.Authority.Certificate)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, site: s}
	b.client = &http.Client{Jar: jar, Transport: b.noting(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}})}
	return b
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (b *browser) noting(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		b.visited = append(b.visited, r.URL.String())
		answer, err := next.RoundTrip(r)
		if err == nil && strings.HasPrefix(r.URL.String(), b.site.front.Origin) {
			b.cookies = append(b.cookies, answer.Cookies()...)
		}
		return answer, err
	})
}

// reply is an answer, read to its end.
type reply struct {
	status int
	body   string
}

// ask the console as its page does.
func (b *browser) ask(method, path, body string) reply {
	b.t.Helper()
	return b.send(b.t.Context(), method, b.site.front.Origin+path, body, "application/json")
}

func (b *browser) get(path string) reply {
	b.t.Helper()
	return b.ask(http.MethodGet, path, "")
}

func (b *browser) send(ctx context.Context, method, address, body, kind string) reply {
	b.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	if method != http.MethodGet {
		request.Header.Set("Origin", b.site.front.Origin)
	}
	answer, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply{answer.StatusCode, string(text)}
}

var hiddenRequest = regexp.MustCompile(`name="request" value="([^"]+)"`)

// logIn by the page of the login service; it ends at a page of the console.
func (b *browser) logIn(user, to string) reply {
	b.t.Helper()
	page := b.get("/console/v1/login?to=" + url.QueryEscape(to))
	request := hiddenRequest.FindStringSubmatch(page.body)
	if request == nil {
		b.t.Fatalf("the login service shows %d %s", page.status, page.body)
	}
	form := url.Values{"request": {request[1]}, "name": {user}, "password": {testteam.Password}}
	return b.send(b.t.Context(), http.MethodPost, b.site.Provider.Issuer+"/login", form.Encode(), "application/x-www-form-urlencoded")
}

// loggedIn is the browser of a user with a session.
func (s *site) loggedIn(t *testing.T, user string) *browser {
	t.Helper()
	b := s.browser(t)
	if answer := b.logIn(user, "/"); answer.status != http.StatusOK {
		t.Fatalf("log in as %s: %d %s", user, answer.status, answer.body)
	}
	return b
}

// watch objects for a time, and return what arrives.
func (b *browser) watch(path string, enough string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.site.front.Origin+path, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	var seen bytes.Buffer
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		seen.Write(lines.Bytes())
		if strings.Contains(seen.String(), enough) {
			break
		}
	}
	return seen.String()
}

const (
	groupPath  = "/k8s/apis/vignette.dev/v1alpha1"
	alphaPath  = groupPath + "/namespaces/" + testteam.Alpha
	bravoPath  = groupPath + "/namespaces/" + testteam.Bravo
	bravosWord = "crimson"
)

func TestATeamsConsoleOnARealAPIServer(t *testing.T) {
	s := startSite(t)
	for name, check := range map[string]func(*testing.T, *site){
		"a login shows no token":                              aLoginShowsNoToken,
		"a member works in the own namespace":                 aMemberWorks,
		"a member sees nothing of another team":               aMemberSeesNothingOfAnotherTeam,
		"a viewer is refused by the API server":               aViewerIsRefused,
		"who logs out is nobody":                              whoLogsOutIsNobody,
		"a session goes on with renewed tokens":               aSessionGoesOn,
		"a renewed token of another user ends it":             anotherUsersTokenEndsIt,
		"a session ends with a token that is not renewed":     aSessionEndsWithItsToken,
		"a login that the API server does not accept says so": anUntrustedLoginSaysSo,
	} {
		t.Run(name, func(t *testing.T) { check(t, s) })
	}
}

func aLoginShowsNoToken(t *testing.T, s *site) {
	b := s.browser(t)
	if answer := b.get("/k8s/api/v1/namespaces"); answer.status != http.StatusUnauthorized {
		t.Errorf("without a session: %d %s", answer.status, answer.body)
	}
	if answer := b.logIn("anna", "/ns/team-alpha/experiments/amber"); answer.status != http.StatusOK {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	if last := b.visited[len(b.visited)-1]; last != s.front.Origin+"/ns/team-alpha/experiments/amber" {
		t.Errorf("the login ends at %s", last)
	}
	asked, err := url.Parse(b.visited[2])
	if err != nil {
		t.Fatal(err)
	}
	for _, parameter := range []string{"state", "nonce", "code_challenge"} {
		if len(asked.Query().Get(parameter)) < 32 {
			t.Errorf("the login service is asked %s without %s", asked, parameter)
		}
	}
	for _, address := range b.visited {
		if hasToken(address) {
			t.Errorf("a token is in the address %s", address)
		}
	}
	session := false
	for _, cookie := range b.cookies {
		if !cookie.Secure || !cookie.HttpOnly || cookie.Path != "/" || cookie.Domain != "" || hasToken(cookie.Value) {
			t.Errorf("cookie %s", cookie)
		}
		if cookie.Name == "__Host-vignette" && cookie.Value != "" {
			session = cookie.SameSite == http.SameSiteStrictMode
		}
	}
	if !session {
		t.Errorf("there is no session's cookie for the same site only: %v", b.cookies)
	}
	var who console.Session
	if err := json.Unmarshal([]byte(b.get("/console/v1/session").body), &who); err != nil || who.User != testoidc.Prefix+"anna@example.org" || who.Groups[0] != testoidc.Prefix+"alpha" {
		t.Errorf("the API server knows %s in %v, error %v", who.User, who.Groups, err)
	}
}

// hasToken reports whether a text has a JSON object in base64, with which each token begins.
func hasToken(text string) bool { return strings.Contains(text, "eyJ") }

func aMemberWorks(t *testing.T, s *site) {
	b := s.loggedIn(t, "anna")
	run, err := s.Run(t.Context(), testteam.Alpha)
	if err != nil {
		t.Fatal(err)
	}
	archive := "/k8s" + runapi.ArchivePath(testteam.Alpha) + "/v1/runs"
	for path, want := range map[string]string{
		alphaPath + "/experiments":                 `"name":"amber"`,
		"/k8s/api/v1/namespaces/team-alpha/events": "amber has started",
		archive: string(run.UID),
		archive + "/" + string(run.UID) + "?live=true": "amber-hq",
		"/console/v1/capacity?namespace=team-alpha":    `"namespace":"team-alpha","running":1`,
		"/console/v1/library":                          "quickstart/experiment.yaml",
		"/k8s/apis/vignette.dev/v1alpha1/waveforms":    `"items":[]`,
	} {
		if answer := b.get(path); answer.status != http.StatusOK || !strings.Contains(answer.body, want) {
			t.Errorf("%s: %d %s; want %s", path, answer.status, answer.body, want)
		}
	}
	made := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made"},"data":{}}`
	configMaps := "/k8s/api/v1/namespaces/team-alpha/configmaps"
	if answer := b.ask(http.MethodPost, configMaps, made); answer.status != http.StatusCreated || !strings.Contains(answer.body, `"name":"made"`) {
		t.Errorf("create: %d %s", answer.status, answer.body)
	}
	if seen := b.watch(configMaps+"?watch=true", `"name":"made"`); !strings.Contains(seen, `"name":"made"`) {
		t.Errorf("the watch shows %s", seen)
	}
	stop := `{"spec":{"stop":true}}`
	if answer := b.send(t.Context(), http.MethodPatch, s.front.Origin+alphaPath+"/experiments/amber", stop, "application/merge-patch+json"); answer.status != http.StatusOK {
		t.Errorf("stop: %d %s", answer.status, answer.body)
	}
	if answer := b.ask(http.MethodPost, "/k8s/api/v1/namespaces/team-bravo/configmaps", made); answer.status != http.StatusForbidden {
		t.Errorf("create at the other team: %d %s", answer.status, answer.body)
	}
}

func aMemberSeesNothingOfAnotherTeam(t *testing.T, s *site) {
	b := s.loggedIn(t, "anna")
	run, err := s.Run(t.Context(), testteam.Bravo)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range bravosPaths() {
		for _, query := range []string{"", "?watch=true&timeoutSeconds=2"} {
			answer := b.get(path + query)
			if answer.status != http.StatusForbidden || strings.Contains(answer.body, bravosWord) {
				t.Errorf("%s: %d %s; want 403, and nothing of %s", path+query, answer.status, answer.body, bravosWord)
			}
		}
	}
	unknown := string(uuid.NewUUID())
	hidden := map[string]string{ // what exists, beside what does not
		bravoPath + "/experiments/" + bravosWord:                               bravoPath + "/experiments/nothing",
		"/k8s/api/v1/namespaces/team-bravo/pods/crimson-pod/log":               "/k8s/api/v1/namespaces/team-bravo/pods/nothing/log",
		"/console/v1/namespaces/team-bravo/runs/" + string(run.UID) + "/map":   "/console/v1/namespaces/team-bravo/runs/" + unknown + "/map",
		"/console/v1/namespaces/team-bravo/runs/" + string(run.UID) + "/links": "/console/v1/namespaces/team-bravo/runs/" + unknown + "/links",
		"/console/v1/namespaces/team-bravo/runs/" + string(run.UID) + "/clone": "/console/v1/namespaces/team-bravo/runs/" + unknown + "/clone",
		"/console/v1/namespaces/team-bravo/runs/crimson/clone":                 "/console/v1/namespaces/team-bravo/runs/nothing/clone",
		"/console/v1/namespaces/team-alpha/runs/" + string(run.UID) + "/map":   "/console/v1/namespaces/team-alpha/runs/" + unknown + "/map",
		"/console/v1/namespaces/team-alpha/runs/" + string(run.UID) + "/clone": "/console/v1/namespaces/team-alpha/runs/" + unknown + "/clone",
		archiveOf(testteam.Bravo, "/v1/runs/"+string(run.UID)):                 archiveOf(testteam.Bravo, "/v1/runs/"+unknown),
		archiveOf(testteam.Alpha, "/v1/runs/"+string(run.UID)):                 archiveOf(testteam.Alpha, "/v1/runs/"+unknown),
		archiveOf(testteam.Alpha, "/v1/runs/"+string(run.UID)+"/files"):        archiveOf(testteam.Alpha, "/v1/runs/"+unknown+"/files"),
	}
	same := strings.NewReplacer(bravosWord+"-pod", "nothing", bravosWord, "nothing", string(run.UID), unknown)
	for real, absent := range hidden {
		found, not := b.get(real), b.get(absent)
		if found.status < http.StatusBadRequest || found.status != not.status || same.Replace(found.body) != not.body {
			t.Errorf("%s: %d %s\n%s: %d %s\nwant one answer", real, found.status, found.body, absent, not.status, not.body)
		}
	}
	namedBySelf(t, b)
	socketsAreRefused(t, b, run)
}

func archiveOf(namespace, path string) string { return "/k8s" + runapi.ArchivePath(namespace) + path }

// bravosPaths are lists of what Bravo has, and of what all teams have.
func bravosPaths() []string {
	paths := []string{archiveOf(testteam.Bravo, "/v1/runs"), archiveOf("", "/v1/runs"), archiveOf(testteam.Alpha, "/v1/runs?namespace=team-bravo")}
	for _, kind := range []string{"experiments", "campaigns", "scenarios", "livechanges", "captures", "nodetemplates"} {
		paths = append(paths, groupPath+"/"+kind, bravoPath+"/"+kind)
	}
	for _, kind := range []string{"pods", "events", "configmaps", "resourcequotas", "secrets"} {
		paths = append(paths, "/k8s/api/v1/"+kind, "/k8s/api/v1/namespaces/team-bravo/"+kind)
	}
	return append(paths, "/k8s/api/v1/namespaces", "/k8s/api/v1/nodes", "/k8s/apis/events.k8s.io/v1/events", "/k8s/apis/rbac.authorization.k8s.io/v1/rolebindings")
}

// namedBySelf are answers that the console makes of what it reads as the user.
func namedBySelf(t *testing.T, b *browser) {
	t.Helper()
	text := "apiVersion: vignette.dev/v1alpha1\nkind: Experiment\nmetadata: {name: mine}\nspec:\n  duration: 1m\n  scenario: {name: crimson-scenario}\n" +
		"  networks: [{name: wan, link: {rate: 64kbit}, subnet: 198.18.1.0/24}]\n  apps: [{name: broker, mosquitto: {}}]\n  nodes: [{name: hq, networks: [wan], apps: [broker]}]\n"
	none := strings.NewReplacer("crimson", "nothing", "team-bravo", "team-none")
	for _, path := range []string{"/console/v1/validate?namespace=team-bravo", "/console/v1/forecast?namespace=team-bravo"} {
		real, absent := b.ask(http.MethodPost, path, text), b.ask(http.MethodPost, none.Replace(path), none.Replace(text))
		if real.status != absent.status || none.Replace(real.body) != absent.body {
			t.Errorf("%s: %d %s\nwant as for a namespace that does not exist: %d %s", path, real.status, real.body, absent.status, absent.body)
		}
	}
	for _, path := range []string{"/console/v1/capacity", "/console/v1/capacity?namespace=team-bravo", "/console/v1/capacity?namespace=team-alpha", "/console/v1/session", "/console/v1/library"} {
		if answer := b.get(path); strings.Contains(answer.body, bravosWord) {
			t.Errorf("%s: %d %s; want nothing of %s", path, answer.status, answer.body, bravosWord)
		}
	}
}

// socketsAreRefused that follow a log, watch, or open a shell at the other team.
func socketsAreRefused(t *testing.T, b *browser, run *v1alpha1.Experiment) {
	t.Helper()
	for path, protocol := range map[string]string{
		"/k8s/api/v1/namespaces/team-bravo/pods/crimson-pod/log?follow=true":          "",
		archiveOf(testteam.Bravo, "/v1/runs/"+string(run.UID)+"/files/a?follow=true"): "",
		bravoPath + "/experiments?watch=true":                                         "",
		"/k8s/api/v1/namespaces/team-bravo/pods/crimson-pod/exec?command=sh":          "v5.channel.k8s.io",
	} {
		origin := mustParse(t, b.site.front.Origin)
		dialer := websocket.Dialer{Jar: b.client.Jar, TLSClientConfig: &tls.Config{RootCAs: b.site.front.Authority.Pool(), MinVersion: tls.VersionTLS12}}
		if protocol != "" {
			dialer.Subprotocols = []string{protocol}
		}
		socket, answer, err := dialer.DialContext(t.Context(), "wss://"+origin.Host+path, http.Header{"Origin": {b.site.front.Origin}})
		if err == nil {
			_ = socket.Close()
		}
		if answer == nil || answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %v; want 403", path, err)
		}
	}
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func aViewerIsRefused(t *testing.T, s *site) {
	b := s.loggedIn(t, "vera")
	if answer := b.get(alphaPath + "/experiments"); answer.status != http.StatusOK || !strings.Contains(answer.body, "amber") {
		t.Errorf("%d %s", answer.status, answer.body)
	}
	patch := b.send(t.Context(), http.MethodPatch, s.front.Origin+alphaPath+"/experiments/amber", `{"spec":{"priority":3}}`, "application/merge-patch+json")
	removed := b.ask(http.MethodDelete, alphaPath+"/experiments/amber", "")
	made := b.ask(http.MethodPost, alphaPath+"/experiments", `{"apiVersion":"vignette.dev/v1alpha1","kind":"Experiment","metadata":{"name":"x"},"spec":{}}`)
	for what, answer := range map[string]reply{"patch": patch, "delete": removed, "create": made} {
		if answer.status != http.StatusForbidden || !strings.Contains(answer.body, `User \"oidc:vera@example.org\" cannot `+what+` resource`) {
			t.Errorf("%s: %d %s; want the API server's words", what, answer.status, answer.body)
		}
	}
	var kept v1alpha1.Experiment
	if err := s.Objects.Get(t.Context(), client.ObjectKey{Namespace: testteam.Alpha, Name: "amber"}, &kept); err != nil || kept.Spec.Priority != 0 {
		t.Errorf("priority %d, error %v", kept.Spec.Priority, err)
	}
}

func whoLogsOutIsNobody(t *testing.T, s *site) {
	b := s.loggedIn(t, "anna")
	cookies := b.client.Jar.Cookies(mustParse(t, s.front.Origin))
	if answer := b.ask(http.MethodPost, "/console/v1/logout", ""); answer.status != http.StatusNoContent {
		t.Errorf("%d %s", answer.status, answer.body)
	}
	b.client.Jar.SetCookies(mustParse(t, s.front.Origin), cookies) // also who has kept the cookie
	b.isNobody()
}

// isNobody checks that the session is gone.
func (b *browser) isNobody() {
	b.t.Helper()
	for _, path := range []string{"/console/v1/session", alphaPath + "/experiments", bravoPath + "/experiments", "/console/v1/capacity"} {
		if answer := b.get(path); answer.status != http.StatusUnauthorized || !strings.Contains(answer.body, `"login":"/console/v1/login"`) {
			b.t.Errorf("%s: %d %s; want 401 and where to log in", path, answer.status, answer.body)
		}
	}
}

// shortLived tokens are renewed at each request.
func shortLived(t *testing.T, s *site, lifetime time.Duration) {
	t.Helper()
	s.Provider.SetLifetime(lifetime)
	t.Cleanup(func() {
		s.Provider.SetLifetime(time.Hour)
		s.Provider.RenewAs("")
	})
}

func aSessionGoesOn(t *testing.T, s *site) {
	shortLived(t, s, 3*time.Second)
	b := s.loggedIn(t, "anna")
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(500 * time.Millisecond) {
		if answer := b.get(alphaPath + "/experiments"); answer.status != http.StatusOK {
			t.Fatalf("%d %s", answer.status, answer.body)
		}
	}
}

func anotherUsersTokenEndsIt(t *testing.T, s *site) {
	shortLived(t, s, 30*time.Second)
	b := s.loggedIn(t, "anna")
	s.Provider.RenewAs("bert")
	if answer := b.get(bravoPath + "/experiments"); answer.status != http.StatusUnauthorized || strings.Contains(answer.body, bravosWord) {
		t.Errorf("%d %s; want the end of the session", answer.status, answer.body)
	}
	s.Provider.RenewAs("")
	b.isNobody()
}

func aSessionEndsWithItsToken(t *testing.T, s *site) {
	shortLived(t, s, 2*time.Second)
	b := s.loggedIn(t, "anna")
	s.Provider.RenewAs("nobody that it knows")
	if answer := b.get(alphaPath + "/experiments"); answer.status != http.StatusOK {
		t.Errorf("before the token's end: %d %s", answer.status, answer.body)
	}
	time.Sleep(3 * time.Second)
	b.isNobody()
}

func anUntrustedLoginSaysSo(t *testing.T, s *site) {
	b := s.loggedIn(t, "anna")
	if err := s.Distrust(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Trust(context.Background()); err != nil {
			t.Error(err)
		}
	})
	answer := b.get("/console/v1/session")
	if answer.status != http.StatusBadGateway || !strings.Contains(answer.body, "must have it trust the login service") {
		t.Errorf("%d %s; want what the administrator has to do", answer.status, answer.body)
	}
}
