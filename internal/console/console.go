// Package console serves the web console: the page, and the API server's own API with the rights of the page's user.
// It has no rights and no data of its own.
//
// Paths:
//
//	GET  /, /ns/…, …                       the page: files of the build, and index.html for the page's own paths
//	*    /k8s/api/…, /k8s/apis/…           the API server, as the user; also WebSockets
//	GET  /console/v1/session               the Session
//	POST /console/v1/login, …              what the Access registers
//	GET  /console/v1/capacity?namespace=N  what `vignette capacity -o json` prints
//	POST /console/v1/validate?namespace=N  YAML; the answer is what `vignette validate -o json` prints. Objects of N may be named
//	POST /console/v1/forecast?namespace=N  YAML; the answer is a Forecast, from N's quotas and the cluster's queue
//	GET  /console/v1/namespaces/NS/runs/RUN/clone  a Clone of a run, by its UID or the name of its experiment
//	GET  /console/v1/library               the scenarios that this program has, as []LibraryEntry
//	GET  /console/v1/library/PATH          one of them, as YAML
//	GET  /console/v1/namespaces/NS/runs/UID/map    a mapdata.Map
//	GET  /console/v1/namespaces/NS/runs/UID/links  mapdata.Links; ?network=N&at=SECONDS&hopsFrom=NODE&expected=true, now without at
//	GET  /console/v1/background            the PMTiles file of Config.Map, in ranges
//	POST /console/v1/scenario/preview      a Scenario and its ConfigMaps; the answer is a mapdata.ScenarioPreview; ?at=SECONDS&limit=DB&from=N&to=N
//
// An error is {"error": "…"}. The API server's own errors are passed on as it sends them.
package console

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
)

// Config of a console.
type Config struct {
	// Assets is the build of the page.
	Assets fs.FS
	// Library has the scenarios that the page offers.
	Library fs.FS
	// Access tells who sends a request.
	Access Access
	// Clone makes clones of runs; nil for a console that makes none.
	Clone CloneFunc
	// Map that maps show below terrain and tracks; nil for none.
	Map *MapFile
	// Origins are those of the console itself, such as http://127.0.0.1:8443. A request by another name is refused.
	Origins []string
	// PlatformNamespace and Version are told to the page.
	PlatformNamespace, Version string
	// MemoryLimit is the operator's for apps without one; nil to read it from the operator's Deployment.
	MemoryLimit *resource.Quantity
	// Log of failures; slog's default if nil.
	Log *slog.Logger
}

// Access tells who sends a request.
type Access interface {
	// Register adds the paths by which users log in and out.
	Register(*http.ServeMux)
	// User of a request; an error with status 401 without a session.
	User(*http.Request) (*User, error)
}

// User is somebody with a session.
type User struct {
	// Mode is local or team.
	Mode string
	// Context of the user's kubeconfig, and the namespace that it names.
	Context, Namespace string
	// Config reaches the API server as the user.
	Config *rest.Config
	// Server is the API server's address, and Transport sends it requests as the user.
	Server    *url.URL
	Transport http.RoundTripper
	// Session ends with the user's session, and with it what is still open; nil for one that does not end.
	Session context.Context
}

// NewUser makes the user of a configuration.
func NewUser(config *rest.Config) (*User, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &User{Config: config, Server: server, Transport: transport}, nil
}

// within the user's session: the context ends with the session, too.
func (u *User) within(ctx context.Context) (joined context.Context, done func()) {
	joined, cancel := context.WithCancel(ctx)
	if u.Session == nil {
		return joined, cancel
	}
	stop := context.AfterFunc(u.Session, cancel)
	return joined, func() {
		stop()
		cancel()
	}
}

// Console is the handler.
type Console struct {
	config  Config
	hosts   map[string]string // origins by host
	pages   *pages
	library *library
	// judging bounds the validations at a time.
	judging chan struct{}
	mux     *http.ServeMux
}

// maxJudging validations run at a time: each may take a core for seconds.
const maxJudging = 2

// New makes a console.
func New(config Config) (*Console, error) {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	c := &Console{config: config, hosts: map[string]string{}, judging: make(chan struct{}, maxJudging), mux: http.NewServeMux(), pages: newPages(config.Assets)}
	for _, text := range config.Origins {
		origin, host, err := parseOrigin(text)
		if err != nil {
			return nil, err
		}
		c.hosts[host] = origin
	}
	var err error
	if c.library, err = newLibrary(config.Library); err != nil {
		return nil, err
	}
	c.register()
	return c, nil
}

func (c *Console) register() {
	c.config.Access.Register(c.mux)
	c.mux.Handle("/k8s/", c.forUsers(c.proxy))
	c.mux.Handle("GET /console/v1/session", c.forUsers(c.session))
	c.mux.Handle("GET /console/v1/capacity", c.forUsers(c.capacity))
	c.mux.Handle("POST /console/v1/validate", c.forUsers(c.validate))
	c.mux.Handle("POST /console/v1/forecast", c.forUsers(c.forecast))
	c.mux.Handle("GET /console/v1/namespaces/{namespace}/runs/{run}/clone", c.forUsers(c.clone))
	c.mux.Handle("GET /console/v1/library", c.forUsers(c.listLibrary))
	c.mux.Handle("GET /console/v1/library/{path...}", c.forUsers(c.readLibrary))
	c.mux.Handle("GET /console/v1/background", c.forUsers(c.background))
	c.registerMaps()
	c.mux.HandleFunc("/console/", func(w http.ResponseWriter, r *http.Request) {
		WriteError(w, Errorf(http.StatusNotFound, "the console has no path %s for %s", r.URL.Path, r.Method))
	})
	c.mux.HandleFunc("/", c.pages.serve)
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secureHeaders(w.Header())
	if err := c.checkOrigin(r); err != nil {
		WriteError(w, err)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// userHandler answers a user's request.
type userHandler func(http.ResponseWriter, *http.Request, *User) error

func (c *Console) forUsers(handle userHandler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := c.config.Access.User(r)
		if err == nil {
			ctx, done := user.within(r.Context())
			defer done()
			err = handle(w, r.WithContext(ctx), user)
		}
		if err != nil {
			if !errors.As(err, new(*Error)) {
				c.config.Log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
			}
			WriteError(w, err)
		}
	})
}

// Limits for connections. Bodies have none of their own: watches stay open.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 160 << 10 // as the server's, to which they go
)

// NewHTTP makes the server of a console.
func NewHTTP(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes}
}

// has reports whether a list has a word.
func has(words []string, word string) bool { return slices.Contains(words, word) }
