// Package testoidc is an OpenID Connect provider for tests. Its users log in on its page; it gives ID tokens with their e-mail address and groups.
package testoidc

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/testcert"
)

// User who may log in.
type User struct {
	// Name is the user's subject, and what the user types on the page.
	Name, Password string
	Email          string
	Groups         []string
}

// Config of a provider.
type Config struct {
	// Listen is its address, such as 127.0.0.1:0. The issuer's name has it.
	Listen string
	// ClientID and ClientSecret of its one client, and where the browser goes after a login.
	ClientID, ClientSecret, RedirectURI string
	Users                               []User
	// Lifetime of ID tokens.
	Lifetime time.Duration
}

// Provider that listens.
type Provider struct {
	// Issuer is its address, by https.
	Issuer string
	// Authority is that of its certificate.
	Authority *testcert.Authority
	storage   *users
	server    *http.Server
}

// loginPath is that of the page.
const loginPath = "/login"

// Start a provider.
func Start(config Config) (*Provider, error) {
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, err
	}
	p := &Provider{Issuer: "https://" + listener.Addr().String(), storage: newUsers(config)}
	if err := p.serve(listener); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return p, nil
}

func (p *Provider) serve(listener net.Listener) (err error) {
	if p.Authority, err = testcert.New(); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	certificate, err := p.Authority.Issue("issuer", host)
	if err != nil {
		return err
	}
	settings := &op.Config{CodeMethodS256: true, GrantTypeRefreshToken: true}
	_, _ = rand.Read(settings.CryptoKey[:]) // never fails
	provider, err := op.NewProvider(settings, p.storage, op.StaticIssuer(p.Issuer), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+loginPath, func(w http.ResponseWriter, r *http.Request) { showPage(w, r.FormValue("request"), "") })
	mux.Handle("POST "+loginPath, op.NewIssuerInterceptor(provider.IssuerFromRequest).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := r.FormValue("request")
		if err := p.storage.CheckUsernamePassword(r.FormValue("name"), r.FormValue("password"), request); err != nil {
			showPage(w, request, "Wrong name or password")
			return
		}
		http.Redirect(w, r, op.AuthCallbackURL(provider)(r.Context(), request), http.StatusFound)
	}))
	mux.Handle("/", provider)
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return nil
}

// Close ends the provider.
func (p *Provider) Close() error { return p.server.Close() }

// SetLifetime of the ID tokens from now on.
func (p *Provider) SetLifetime(lifetime time.Duration) {
	p.storage.change(func(s *settings) { s.lifetime = lifetime })
}

// RenewAs has refresh tokens bring ID tokens of a user, whoever has logged in.
func (p *Provider) RenewAs(user string) { p.storage.change(func(s *settings) { s.renewAs = user }) }

// Prefix is before the names of users and groups in Kubernetes.
const Prefix = "oidc:"

// AuthenticationConfiguration by which an API server trusts the provider.
func (p *Provider) AuthenticationConfiguration() ([]byte, error) {
	return yaml.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": []any{map[string]any{
		"issuer": map[string]any{"url": p.Issuer, "audiences": []string{p.storage.client}, "certificateAuthority": string(p.Authority.PEM())},
		"claimMappings": map[string]any{
			"username": map[string]string{"claim": "email", "prefix": Prefix},
			"groups":   map[string]string{"claim": "groups", "prefix": Prefix},
		},
	}}})
}

var page = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Log in</title><link rel="icon" href="data:,">
<h1>Log in</h1><p>{{.Problem}}</p>
<form method="post" action="` + loginPath + `"><input type="hidden" name="request" value="{{.Request}}">
<label>Name <input name="name"></label> <label>Password <input name="password" type="password"></label> <button>Log in</button></form></html>
`))

func showPage(w http.ResponseWriter, request, problem string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(w, map[string]string{"Request": request, "Problem": problem}) // the browser may be gone
}

// users are a storage of the library, with groups and what tests may change.
type users struct {
	*storage.Storage
	client string
	groups map[string][]string
	mu     sync.Mutex
	now    settings
}

// settings that tests may change.
type settings struct {
	lifetime time.Duration
	renewAs  string
}

func newUsers(config Config) *users {
	u := &users{client: config.ClientID, groups: map[string][]string{}, now: settings{lifetime: config.Lifetime}}
	known := userStore{}
	for _, user := range config.Users {
		known[user.Name] = &storage.User{ID: user.Name, Username: user.Name, Password: user.Password, FirstName: user.Name, Email: user.Email, EmailVerified: true}
		u.groups[user.Name] = user.Groups
	}
	u.Storage = storage.NewStorageWithClients(known, map[string]*storage.Client{
		config.ClientID: storage.WebClient(config.ClientID, config.ClientSecret, config.RedirectURI),
	})
	return u
}

func (u *users) change(how func(*settings)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	how(&u.now)
}

func (u *users) settings() settings {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.now
}

// scopeGroups asks for the claim of the same name.
const scopeGroups = "groups"

// SetUserinfoFromRequest adds the groups to an ID token.
func (u *users) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	if slices.Contains(scopes, scopeGroups) {
		info.AppendClaims(scopeGroups, u.groups[request.GetSubject()])
	}
	return u.Storage.SetUserinfoFromRequest(ctx, info, request, scopes)
}

// TokenRequestByRefreshToken names another user after RenewAs.
func (u *users) TokenRequestByRefreshToken(ctx context.Context, token string) (op.RefreshTokenRequest, error) {
	request, err := u.Storage.TokenRequestByRefreshToken(ctx, token)
	if own, ok := request.(*storage.RefreshTokenRequest); err == nil && ok && u.settings().renewAs != "" {
		another := *own.RefreshToken
		another.UserID = u.settings().renewAs
		return storage.RefreshTokenRequestFromBusiness(&another), nil
	}
	return request, err
}

// GetClientByClientID returns the client with the settings of now.
func (u *users) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := u.Storage.GetClientByClientID(ctx, id)
	return &client{found, u.settings().lifetime}, err
}

// client is one of the library, whose ID tokens have all claims.
type client struct {
	op.Client
	lifetime time.Duration
}

func (c *client) LoginURL(id string) string            { return loginPath + "?request=" + url.QueryEscape(id) }
func (c *client) IDTokenLifetime() time.Duration       { return c.lifetime }
func (c *client) IsScopeAllowed(scope string) bool     { return scope == scopeGroups }
func (c *client) IDTokenUserinfoClaimsAssertion() bool { return true }

// userStore has users by their names.
type userStore map[string]*storage.User

func (s userStore) GetUserByID(id string) *storage.User         { return s[id] }
func (s userStore) GetUserByUsername(name string) *storage.User { return s[name] }
func (s userStore) ExampleClientID() string                     { return "" }
