package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"k8s.io/client-go/rest"
)

// TeamConfig is that of a console for many users, who log in by OpenID Connect.
type TeamConfig struct {
	// Issuer and ClientID are those that the API server trusts, too. ClientSecret is empty for a public client.
	Issuer, ClientID, ClientSecret string
	// Scopes asked for beside openid.
	Scopes []string
	// Origin of the console, by https.
	Origin string
	// Server is the API server, without credentials.
	Server *rest.Config
	// Namespace that the page begins with.
	Namespace string
	// Client sends requests to the issuer.
	Client *http.Client
	// Log of failures of OpenID Connect; slog's default if nil.
	Log *slog.Logger
}

// teamMode is the Mode of its users.
const teamMode = "team"

const (
	loginPath    = "/console/v1/login"
	callbackPath = "/console/v1/callback"
	// The prefix makes browsers refuse the cookie from anybody but this host by https.
	sessionCookie = "__Host-vignette"
	loginCookie   = "__Host-vignette-login"
	// loginLifetime is how long a user may take to log in.
	loginLifetime = 10 * time.Minute
	// sessionLifetime ends a session that is still in use.
	sessionLifetime = 12 * time.Hour
	// refreshAhead of a token's end another one is fetched.
	refreshAhead = time.Minute
	// maxSessions beyond which the oldest one ends.
	maxSessions = 2000
)

// Team is the Access of many users. A session is in memory: a new start asks the issuer again.
type Team struct {
	config   TeamConfig
	origin   string
	logins   *loginSeal
	sessions *store[*teamSession]
	now      func() time.Time

	mu sync.Mutex
	// provider is nil until the issuer has answered.
	provider *oidc.Provider
}

// teamSession is a user who is logged in.
type teamSession struct {
	mu      sync.Mutex
	user    *User
	expires time.Time
	refresh string
	// issuer and subject are who the user is to the login service.
	issuer, subject string
	// end of the session: what is still open as its user ends, too.
	end context.CancelFunc
}

// begin a session's lifetime.
func (s *teamSession) begin() *teamSession {
	s.user.Session, s.end = context.WithTimeout(context.Background(), sessionLifetime)
	return s
}

// NewTeam makes the access.
func NewTeam(config TeamConfig) (*Team, error) {
	origin, _, err := parseOrigin(config.Origin)
	if err != nil || !strings.HasPrefix(origin, "https:") {
		return nil, errors.New("the console's origin is " + config.Origin + ": want one such as https://console.example, as browsers keep its cookie for https only")
	}
	if _, err := NewUser(rest.AnonymousClientConfig(config.Server)); err != nil {
		return nil, err
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	logins, err := newLoginSeal()
	if err != nil {
		return nil, err
	}
	t := &Team{config: config, origin: origin, now: time.Now, logins: logins, sessions: newStore[*teamSession](maxSessions, sessionLifetime)}
	t.sessions.ended = func(session *teamSession) { session.end() }
	return t, nil
}

// Register implements Access.
func (t *Team) Register(mux *http.ServeMux) {
	for path, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET " + loginPath: t.begin, "GET " + callbackPath: t.complete, "POST /console/v1/logout": t.logOut,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if err := handle(w, r); err != nil {
				WriteError(w, err)
			}
		})
	}
}

// issuer returns the provider, and how to ask it.
func (t *Team) issuer() (*oidc.Provider, *oauth2.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.provider == nil {
		provider, err := oidc.NewProvider(t.context(context.Background()), t.config.Issuer)
		if err != nil {
			t.config.Log.Error("the login service gives no answer that can be used", "issuer", t.config.Issuer, "error", err)
			return nil, nil, Errorf(http.StatusBadGateway, "the login service %s gives no answer that can be used: try again, or tell the console's administrator", t.config.Issuer)
		}
		t.provider = provider
	}
	return t.provider, &oauth2.Config{
		ClientID: t.config.ClientID, ClientSecret: t.config.ClientSecret, Endpoint: t.provider.Endpoint(),
		RedirectURL: t.origin + callbackPath, Scopes: append([]string{oidc.ScopeOpenID}, t.config.Scopes...),
	}, nil
}

func (t *Team) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, t.config.Client)
}

// begin a login: the browser goes to the issuer.
func (t *Team) begin(w http.ResponseWriter, r *http.Request) error {
	_, asking, err := t.issuer()
	if err != nil {
		return err
	}
	login := pendingLogin{randomText(), randomText(), oauth2.GenerateVerifier(), localPath(r.URL.Query().Get("to")), t.now().Add(loginLifetime)}
	sealed, err := t.logins.seal(login)
	if err != nil {
		return err
	}
	// Lax, as the issuer's page sends the browser back.
	setCookie(w, loginCookie, sealed, http.SameSiteLaxMode, loginLifetime)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, asking.AuthCodeURL(login.State, oidc.Nonce(login.Nonce), oauth2.S256ChallengeOption(login.Verifier)), http.StatusSeeOther)
	return nil
}

// localPath returns a path of the console; the home page for anything else.
func localPath(to string) string {
	address, err := url.Parse(to)
	if err != nil || address.Scheme != "" || address.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\t\r\n") {
		return "/"
	}
	return to
}

// complete a login with the issuer's code.
func (t *Team) complete(w http.ResponseWriter, r *http.Request) error {
	again := func(why string) error {
		return Errorf(http.StatusBadRequest, "the login failed, %s: open %s and try again", why, t.origin)
	}
	cookie, err := r.Cookie(loginCookie)
	if err != nil {
		return again("as it took too long or began in another browser")
	}
	setCookie(w, loginCookie, "", http.SameSiteLaxMode, -time.Second) // one try
	login, found := t.logins.open(cookie.Value, t.now())
	query := r.URL.Query()
	switch {
	case !found || !equal(query.Get("state"), login.State):
		return again("as it took too long or began in another browser")
	case query.Get("error") != "":
		t.config.Log.Warn("the login service refused a login", "issuer", t.config.Issuer, "error", query.Get("error"), "description", query.Get("error_description"))
		return again("as the login service refused it")
	}
	_, asking, err := t.issuer()
	if err != nil {
		return err
	}
	tokens, err := asking.Exchange(t.context(r.Context()), query.Get("code"), oauth2.VerifierOption(login.Verifier))
	if err != nil {
		t.config.Log.Error("the login service did not confirm a login", "issuer", t.config.Issuer, "error", err)
		return again("as the login service did not confirm it")
	}
	session, err := t.newSession(r.Context(), tokens, login.Nonce)
	if err != nil {
		t.config.Log.Error("the login service's token is not for this console", "issuer", t.config.Issuer, "error", err)
		return again("as the login service's token is not for this console")
	}
	setCookie(w, sessionCookie, t.sessions.add(session.begin(), t.now()), http.SameSiteStrictMode, sessionLifetime)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, login.To, http.StatusSeeOther)
	return nil
}

// newSession of tokens of the issuer. A refreshed token need not have a nonce.
func (t *Team) newSession(ctx context.Context, tokens *oauth2.Token, nonce string) (*teamSession, error) {
	provider, _, err := t.issuer()
	if err != nil {
		return nil, err
	}
	raw, _ := tokens.Extra("id_token").(string)
	verified, err := provider.VerifierContext(t.context(ctx), &oidc.Config{ClientID: t.config.ClientID, Now: t.now}).Verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	if nonce != "" && !equal(verified.Nonce, nonce) {
		return nil, errors.New("the token is of another login")
	}
	config := rest.AnonymousClientConfig(t.config.Server)
	config.BearerToken = raw
	user, err := NewUser(config)
	if err != nil {
		return nil, err
	}
	user.Mode, user.Namespace = teamMode, t.config.Namespace
	return &teamSession{user: user, expires: verified.Expiry, refresh: tokens.RefreshToken, issuer: verified.Issuer, subject: verified.Subject}, nil
}

// User implements Access.
func (t *Team) User(r *http.Request) (*User, error) {
	refused := &Error{Status: http.StatusUnauthorized, Message: "nobody is logged in", Login: loginPath}
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil, refused
	}
	session, found := t.sessions.get(cookie.Value, t.now())
	if !found {
		return nil, refused
	}
	session.mu.Lock()
	defer session.mu.Unlock()
	if t.now().Before(session.expires.Add(-refreshAhead)) {
		return session.user, nil
	}
	if err := t.renew(context.WithoutCancel(r.Context()), session); err != nil {
		t.config.Log.Warn("a session's token was not renewed", "issuer", t.config.Issuer, "error", err)
		if !t.now().Before(session.expires) || errors.Is(err, errAnotherUser) {
			t.sessions.remove(cookie.Value)
			refused.Message = "the session has ended"
			return nil, refused
		}
	}
	return session.user, nil
}

// errAnotherUser ends a session, because the login service now names another user for it.
var errAnotherUser = errors.New("the renewed token is of another user")

// renew a session's token.
func (t *Team) renew(ctx context.Context, session *teamSession) error {
	if session.refresh == "" {
		return errors.New("the issuer gave no refresh token")
	}
	_, asking, err := t.issuer()
	if err != nil {
		return err
	}
	tokens, err := asking.TokenSource(t.context(ctx), &oauth2.Token{RefreshToken: session.refresh}).Token()
	if err != nil {
		return err
	}
	session.refresh = tokens.RefreshToken // the one before may be used up
	renewed, err := t.newSession(ctx, tokens, "")
	if err != nil {
		return err
	}
	if renewed.issuer != session.issuer || renewed.subject != session.subject {
		return errAnotherUser
	}
	renewed.user.Session = session.user.Session
	session.user, session.expires = renewed.user, renewed.expires
	return nil
}

func (t *Team) logOut(w http.ResponseWriter, r *http.Request) error {
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		t.sessions.remove(cookie.Value)
	}
	setCookie(w, sessionCookie, "", http.SameSiteStrictMode, -time.Second)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func setCookie(w http.ResponseWriter, name, value string, site http.SameSite, lifetime time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: site, MaxAge: int(lifetime.Seconds())})
}
