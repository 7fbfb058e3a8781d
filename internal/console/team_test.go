package console

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/client-go/rest"
)

// issuer is a small OpenID Connect provider, whose user is logged in already.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
	mu  sync.Mutex
	// asked are the parameters of the last request to log in.
	asked url.Values
	// lifetime of its tokens, and what they are for.
	lifetime time.Duration
	audience string
	refreshs int
	// renews is whose token a refresh token brings: bob's if empty, none for nobody.
	renews string
	// rotates is set if a refresh token is good for one use.
	rotates bool
	refresh string
}

const nobody = "nobody"

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, lifetime: time.Hour, audience: "vignette", refresh: "refresh"}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.asked = r.URL.Query()
		http.Redirect(w, r, i.asked.Get("redirect_uri")+"?"+url.Values{"code": {"code"}, "state": {i.asked.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what)
}

// token changes a code, whose verifier must fit the challenge, or a refresh token into an ID token.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	byCode := r.FormValue("code") == "code" && base64.RawURLEncoding.EncodeToString(sum[:]) == i.asked.Get("code_challenge") && i.asked.Get("code_challenge_method") == "S256"
	byRefresh := r.FormValue("refresh_token") == i.refresh
	if client, secret, ok := r.BasicAuth(); !byCode && !byRefresh || !ok || client != "vignette" || secret != "hush" {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]string{"error": "invalid_grant"})
		return
	}
	user, nonce, id := "bob", i.asked.Get("nonce"), "first"
	if byRefresh {
		i.refreshs++
		user, nonce, id = cmp.Or(i.renews, user), "", "renewed"
		if i.rotates {
			i.refresh += "-"
		}
		if user == nobody {
			answer(w, map[string]any{"access_token": "opaque", "token_type": "Bearer", "refresh_token": i.refresh})
			return
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: i.key, KeyID: "k"}}, nil)
	if err != nil {
		panic(err)
	}
	now := time.Now()
	raw, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": i.URL, "sub": user, "aud": i.audience, "iat": now.Unix(), "exp": now.Add(i.lifetime).Unix(), "nonce": nonce, "jti": id,
	}).Serialize()
	if err != nil {
		panic(err)
	}
	answer(w, map[string]any{"access_token": "opaque", "token_type": "Bearer", "expires_in": int(i.lifetime.Seconds()), "id_token": raw, "refresh_token": i.refresh})
}

// startTeam is a console by https for the users of an issuer.
func startTeam(t *testing.T, i *issuer) *site {
	t.Helper()
	api := startAPIServer(t, nil)
	server := httptest.NewUnstartedServer(nil)
	origin := "https://" + server.Listener.Addr().String()
	lines := &logLines{}
	access, err := NewTeam(TeamConfig{Issuer: i.URL, ClientID: "vignette", ClientSecret: "hush", Scopes: []string{"groups"}, Origin: origin, Server: &rest.Config{Host: api.URL, BearerToken: "never sent"}, Namespace: "team-nor", Client: http.DefaultClient, Log: slog.New(slog.NewTextHandler(lines, nil))})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := New(Config{Assets: build, Library: scenarioFiles, Access: access, Origins: []string{origin}})
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = handler
	server.StartTLS()
	t.Cleanup(server.Close)
	client := server.Client()
	if client.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &site{t: t, origin: origin, api: api, client: client, team: access, log: lines}
}

// logLines of a console, which writes them from several goroutines.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// follow a redirect to another server, as a browser does.
func (s *site) follow(address string) reply {
	s.t.Helper()
	elsewhere := &site{t: s.t, origin: address, client: s.client}
	return elsewhere.get("")
}

// logInAt the issuer, and return the answer to the code.
func (s *site) logInAt(to string) reply {
	s.t.Helper()
	begun := s.get("/console/v1/login?to=" + url.QueryEscape(to))
	if begun.status != http.StatusSeeOther {
		s.t.Fatalf("login: %d %s", begun.status, begun.body)
	}
	confirmed := s.follow(begun.header.Get("Location"))
	return s.follow(confirmed.header.Get("Location"))
}

// lastToken is what the API server got last, without its signature.
func (s *site) lastToken() string {
	requests := s.api.requests()
	if len(requests) == 0 {
		return ""
	}
	parts := strings.Split(strings.TrimPrefix(requests[len(requests)-1].Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return ""
	}
	text, _ := base64.RawURLEncoding.DecodeString(parts[1])
	return string(text)
}

func TestAUserWhoLogsInIsTheUserOfTheAPIServer(t *testing.T) {
	i := startIssuer(t)
	s := startTeam(t, i)
	refused := s.get(experiments)
	if refused.status != http.StatusUnauthorized || !strings.Contains(refused.body, `"login":"/console/v1/login"`) {
		t.Errorf("without a session: %d %s; want 401 and where to log in", refused.status, refused.body)
	}
	done := s.logInAt("/ns/team-nor/experiments/quickstart")
	if done.status != http.StatusSeeOther || done.header.Get("Location") != "/ns/team-nor/experiments/quickstart" {
		t.Fatalf("after the login: %d to %q %s", done.status, done.header.Get("Location"), done.body)
	}
	if i.asked.Get("code_challenge") == "" || i.asked.Get("scope") != "openid groups" || i.asked.Get("redirect_uri") != s.origin+callbackPath {
		t.Errorf("the issuer was asked %v", i.asked)
	}
	if answer := s.get(experiments); answer.status != http.StatusOK || !strings.Contains(s.lastToken(), `"sub":"bob"`) {
		t.Errorf("%d %s, as %s; want bob's own token", answer.status, answer.body, s.lastToken())
	}
	if answer := s.get("/console/v1/session"); !strings.Contains(answer.body, `"mode":"team"`) {
		t.Errorf("session %s", answer.body)
	}
	for _, r := range s.api.requests() {
		if strings.Contains(r.Header.Get("Authorization"), "never sent") {
			t.Error("the console's own token reached the API server")
		}
	}
}

func TestTheTeamsCookiesAreForThisHostByHTTPSOnlyAndHoldNoToken(t *testing.T) {
	s := startTeam(t, startIssuer(t))
	s.logInAt("/")
	begun := s.get("/console/v1/login").header.Get("Set-Cookie")
	for _, want := range []string{"__Host-vignette-login=", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Lax"} {
		if !strings.Contains(begun, want) {
			t.Errorf("Set-Cookie: %s; want %s", begun, want)
		}
	}
	session := strings.Join(s.logInAt("/").header.Values("Set-Cookie"), "\n")
	for _, want := range []string{"__Host-vignette=", "; Secure", "; HttpOnly", "; SameSite=Strict"} {
		if !strings.Contains(session, want) {
			t.Errorf("Set-Cookie: %s; want %s", session, want)
		}
	}
	if strings.Contains(session, "ey") && strings.Count(session, ".") > 1 {
		t.Errorf("a cookie holds a token: %s", session)
	}
}

func TestALoginThatBeganElsewhereIsRefused(t *testing.T) {
	i := startIssuer(t)
	s := startTeam(t, i)
	begun := s.get("/console/v1/login")
	confirmed := s.follow(begun.header.Get("Location")).header.Get("Location")
	for _, address := range []string{strings.Replace(confirmed, "state=", "state=x", 1), confirmed} { // the first try uses the login up
		if answer := s.follow(address); answer.status != http.StatusBadRequest || !strings.Contains(answer.problem(), "try again") || strings.Contains(strings.Join(answer.header.Values("Set-Cookie"), " "), sessionCookie+"=") {
			t.Errorf("%s: %d %s", address, answer.status, answer.body)
		}
	}
	other := startTeam(t, i)
	if answer := other.get(strings.TrimPrefix(confirmed, s.origin)); answer.status != http.StatusBadRequest {
		t.Errorf("in another browser: %d", answer.status)
	}
}

func TestOthersLoginsKeepNobodyFromCompletingTheirs(t *testing.T) {
	i := startIssuer(t)
	s := startTeam(t, i)
	begun := s.get("/console/v1/login")
	for range 600 {
		begin := httptest.NewRequest(http.MethodGet, loginPath, http.NoBody)
		if err := s.team.begin(httptest.NewRecorder(), begin); err != nil {
			t.Fatal(err)
		}
	}
	confirmed := s.follow(begun.header.Get("Location")).header.Get("Location")
	if answer := s.follow(confirmed); answer.status != http.StatusSeeOther {
		t.Errorf("%d %s; want the login completed", answer.status, answer.body)
	}
}

func TestALoginCookieIsRefusedLateOrChanged(t *testing.T) {
	seal, err := newLoginSeal()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	sealed, err := seal.seal(pendingLogin{State: "s", To: "/" + strings.Repeat("x", 5000), Until: now.Add(loginLifetime)})
	if err != nil || len(sealed) > 4000 {
		t.Fatalf("%d bytes, %v; want a cookie below 4 KiB", len(sealed), err)
	}
	if login, ok := seal.open(sealed, now); !ok || login.State != "s" || login.To != "/" {
		t.Errorf("%+v, %v; want the login, which leads home", login, ok)
	}
	changed := []byte(sealed)
	changed[20] ^= 1
	other, err := newLoginSeal()
	if err != nil {
		t.Fatal(err)
	}
	for what, ok := range map[string]func() bool{
		"late":                       func() bool { _, ok := seal.open(sealed, now.Add(loginLifetime)); return ok },
		"changed":                    func() bool { _, ok := seal.open(string(changed), now); return ok },
		"of another console":         func() bool { _, ok := other.open(sealed, now); return ok },
		"no cookie of the console's": func() bool { _, ok := seal.open("x", now); return ok },
	} {
		if ok() {
			t.Errorf("a cookie that is %s is taken", what)
		}
	}
}

func TestATokenForAnotherClientLogsNobodyIn(t *testing.T) {
	i := startIssuer(t)
	i.audience = "another"
	s := startTeam(t, i)
	if answer := s.logInAt("/"); answer.status != http.StatusBadRequest || !strings.Contains(answer.problem(), "not for this console") {
		t.Errorf("%d %s", answer.status, answer.body)
	}
}

func TestALoginLeadsOnlyToPagesOfTheConsole(t *testing.T) {
	for to, want := range map[string]string{
		"/ns/a/runs/b?tab=map#x": "/ns/a/runs/b?tab=map#x", "": "/", "https://evil.example": "/", "//evil.example/": "/", `/\evil.example`: "/", "javascript:alert(1)": "/", "/\t/evil.example": "/",
	} {
		if got := localPath(to); got != want {
			t.Errorf("%q leads to %q; want %q", to, got, want)
		}
	}
}

func TestATokenIsRenewedBeforeItEnds(t *testing.T) {
	i := startIssuer(t)
	i.lifetime = 30 * time.Second // less than refreshAhead
	s := startTeam(t, i)
	s.logInAt("/")
	i.mu.Lock()
	i.lifetime = time.Hour
	i.mu.Unlock()
	for range 3 {
		if answer := s.get(experiments); answer.status != http.StatusOK || !strings.Contains(s.lastToken(), `"jti":"renewed"`) {
			t.Errorf("%d %s as %s", answer.status, answer.body, s.lastToken())
		}
	}
	if i.refreshs != 1 {
		t.Errorf("%d renewals; want 1", i.refreshs)
	}
}

// startAlmostExpired is a session whose token is renewed at each request.
func startAlmostExpired(t *testing.T, i *issuer) (*site, *teamSession) {
	t.Helper()
	i.lifetime = 30 * time.Second
	s := startTeam(t, i)
	s.logInAt("/")
	for _, one := range s.team.sessions.entries {
		return s, one.value
	}
	t.Fatal("there is no session")
	return nil, nil
}

func TestARenewedTokenOfAnotherUserEndsTheSession(t *testing.T) {
	i := startIssuer(t)
	i.renews = "eve"
	s, session := startAlmostExpired(t, i)
	for range 2 {
		if answer := s.get(experiments); answer.status != http.StatusUnauthorized || len(s.api.requests()) != 0 || i.refreshs != 1 {
			t.Errorf("%d %s after %d renewals, %d requests to the API server; want 401 and none", answer.status, answer.body, i.refreshs, len(s.api.requests()))
		}
	}
	if session.user.Session.Err() == nil {
		t.Error("what the session has opened goes on")
	}
	if !strings.Contains(s.log.String(), "is of another user") {
		t.Errorf("the log has %q", s.log.String())
	}
}

func TestANewRefreshTokenIsKeptAlsoWithoutAnIDToken(t *testing.T) {
	i := startIssuer(t)
	i.renews, i.rotates = nobody, true
	s, session := startAlmostExpired(t, i)
	s.get(experiments)
	if session.refresh != "refresh-" {
		t.Fatalf("refresh token %q; want the new one", session.refresh)
	}
	i.mu.Lock()
	i.renews = ""
	i.mu.Unlock()
	if s.get(experiments); !strings.Contains(s.lastToken(), `"jti":"renewed"`) {
		t.Errorf("as %s; want the renewed token", s.lastToken())
	}
}

func TestEachFailureOfALoginIsInTheLog(t *testing.T) {
	i := startIssuer(t)
	i.audience = "another"
	s := startTeam(t, i)
	s.logInAt("/")
	refused := s.follow(strings.Replace(s.follow(s.get("/console/v1/login").header.Get("Location")).header.Get("Location"), "code=code", "error=access_denied", 1))
	if refused.status != http.StatusBadRequest || !strings.Contains(refused.problem(), "refused it") {
		t.Errorf("%d %s", refused.status, refused.body)
	}
	i.Close()
	s.team.provider = nil
	s.get("/console/v1/login")
	for _, want := range []string{"expected audience", "access_denied", "the login service gives no answer", i.URL} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, s.log.String())
		}
	}
}

func TestStreamsEndWithTheirSession(t *testing.T) {
	for name, end := range map[string]func(*site){
		"logout": func(s *site) { s.post("/console/v1/logout", "") },
		"its lifetime": func(s *site) {
			for _, one := range s.team.sessions.entries {
				one.value.end()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startTeam(t, startIssuer(t))
			s.api.answer = func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
			s.logInAt("/")
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.origin+experiments+"?watch=true", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			watch, err := s.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Body.Close()
			ended := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, watch.Body)
				close(ended)
			}()
			select {
			case <-ended:
				t.Fatal("the watch ended by itself")
			case <-time.After(100 * time.Millisecond):
			}
			end(s)
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Error("the watch goes on")
			}
		})
	}
}

func TestASessionsContextEndsAfterItsLifetime(t *testing.T) {
	session := (&teamSession{user: &User{}}).begin()
	defer session.end()
	if until, bounded := session.user.Session.Deadline(); !bounded || time.Until(until) > sessionLifetime {
		t.Errorf("until %v; want the session's lifetime", until)
	}
}

func TestASessionEndsWithItsTokenIfTheIssuerDoesNotRenewIt(t *testing.T) {
	i := startIssuer(t)
	i.lifetime = 5 * time.Second // long enough to log in on a busy machine
	s := startTeam(t, i)
	s.logInAt("/")
	i.Close()
	deadline := time.Now().Add(20 * time.Second)
	for {
		answer := s.get(experiments)
		if answer.status == http.StatusUnauthorized && strings.Contains(answer.problem(), "has ended") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d %s; want the end of the session", answer.status, answer.body)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func TestAUserWhoLogsOutIsNobody(t *testing.T) {
	s := startTeam(t, startIssuer(t))
	s.logInAt("/")
	cookies := s.client.Jar.Cookies(mustParse(s.origin))
	if answer := s.send(http.MethodPost, "/console/v1/logout", "", "Origin: https://evil.example"); answer.status != http.StatusForbidden {
		t.Errorf("logged out by another site: %d", answer.status)
	}
	if answer := s.post("/console/v1/logout", ""); answer.status != http.StatusNoContent {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	s.client.Jar.SetCookies(mustParse(s.origin), cookies) // also who has kept the cookie
	if answer := s.get(experiments); answer.status != http.StatusUnauthorized {
		t.Errorf("%d; want 401", answer.status)
	}
}

func mustParse(address string) *url.URL {
	parsed, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return parsed
}

func TestAnIssuerThatIsDownIsNamed(t *testing.T) {
	i := startIssuer(t)
	i.Close()
	if answer := startTeam(t, i).get("/console/v1/login"); answer.status != http.StatusBadGateway || !strings.Contains(answer.problem(), i.URL) {
		t.Errorf("%d %s", answer.status, answer.body)
	}
}

func TestBeyondItsBoundAStoreForgetsTheOldest(t *testing.T) {
	s, now := newStore[int](2, time.Minute), time.Now()
	first, second, third := s.add(1, now), s.add(2, now), s.add(3, now)
	for name, want := range map[string]bool{first: false, second: true, third: true} {
		if _, found := s.get(name, now); found != want {
			t.Errorf("entry %s: %v; want %v", name, found, want)
		}
	}
	if _, found := s.get(third, now.Add(time.Minute)); found {
		t.Error("an entry outlives its time")
	}
	var ended []int
	s.ended = func(value int) { ended = append(ended, value) }
	s.remove(second)
	fourth := s.add(4, now)
	if _, found := s.get(third, now); !found || len(s.order) != 2 || len(ended) != 1 || ended[0] != 2 {
		t.Errorf("after a removal: %v, %d names, %s, ended %v", found, len(s.order), fourth, ended)
	}
}

func TestEntriesThatAreGoneTakeNoRoomOfTheOthers(t *testing.T) {
	s, now := newStore[int](3, time.Minute), time.Now()
	first := s.add(1, now)
	for range 10 {
		s.remove(s.add(2, now))
	}
	if _, found := s.get(first, now); !found || len(s.order) != 1 {
		t.Errorf("the first: %v, %d names; want it alone", found, len(s.order))
	}
}

func TestAnOriginIsAsBrowsersWriteIt(t *testing.T) {
	for text, want := range map[string]string{
		"https://Console.Example": "https://console.example", "https://console.example:443/": "https://console.example", "http://127.0.0.1:8443": "http://127.0.0.1:8443", "http://[::1]:80": "http://[::1]",
		"https://console.example/ui": "", "console.example": "", "ftp://console.example": "", "https://": "", "https://a@console.example": "",
	} {
		if got, _, err := parseOrigin(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}
