package console

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"vignette.dev/vignette/internal/runapi"
)

// proxyPrefix is that of the API server's paths.
const proxyPrefix = "/k8s"

// requestHeaders are those of a browser that reach the API server. Others could claim other rights (Authorization, Impersonate-…).
var requestHeaders = []string{
	"Accept", "Accept-Encoding", "Content-Encoding", "Content-Length", "Content-Type", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "Range",
	"Connection", "Upgrade", "Sec-Websocket-Extensions", "Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version",
	"X-Stream-Protocol-Version",
}

// answerHeaders are those of the API server that reach the browser. Others could set cookies, or open the console to other sites.
var answerHeaders = []string{
	"Accept-Ranges", "Age", "Audit-Id", "Content-Disposition", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Date", "Etag",
	"Last-Modified", "Retry-After", "Trailer", "Vary", "Warning", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid",
	"Connection", "Upgrade", "Sec-Websocket-Accept", "Sec-Websocket-Extensions", "Sec-Websocket-Protocol", "X-Stream-Protocol-Version",
}

// tokenProtocol begins the WebSocket subprotocol by which a browser could log in as somebody else.
const tokenProtocol = "base64url.bearer.authorization.k8s.io."

// proxiedPolicy makes an answer that a browser shows as a page run without access to the console.
const proxiedPolicy = "sandbox allow-scripts allow-downloads; frame-ancestors 'self'; base-uri 'none'; form-action 'none'; connect-src 'none'"

// proxy passes a request on to the API server as the user.
func (c *Console) proxy(w http.ResponseWriter, r *http.Request, user *User) error {
	if err := checkProxied(r); err != nil {
		return err
	}
	for name := range w.Header() {
		w.Header().Del(name) // the answer has its own
	}
	reverse := httputil.ReverseProxy{
		Transport: user.Transport, FlushInterval: -1,
		ErrorLog:       log.New(io.Discard, "", 0), // browsers end streams all the time
		Rewrite:        func(p *httputil.ProxyRequest) { rewrite(p, user.Server) },
		ModifyResponse: func(answer *http.Response) error { sanitize(answer); return nil },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			secureHeaders(w.Header())
			WriteError(w, c.explain(user, err))
		},
	}
	reverse.ServeHTTP(w, r)
	return nil
}

// infos reads paths as the API server does.
var infos = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// checkProxied refuses paths that are none of the API server's API, and those behind which others serve pages.
func checkProxied(r *http.Request) error {
	path := strings.TrimPrefix(r.URL.Path, proxyPrefix)
	if !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/apis/") && path != "/api" && path != "/apis" && path != "/version" {
		return Errorf(http.StatusNotFound, "%s is no path of the Kubernetes API: want /k8s/api/…, /k8s/apis/… or /k8s/version", r.URL.Path)
	}
	for segment := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if segment == "" || segment == "." || segment == ".." {
			return Errorf(http.StatusBadRequest, "the path %s has an empty part or dots", r.URL.Path)
		}
	}
	info, err := infos.NewRequestInfo(&http.Request{Method: r.Method, URL: &url.URL{Path: path}})
	if err != nil {
		return Errorf(http.StatusBadRequest, "%s is no path of the Kubernetes API", r.URL.Path)
	}
	archive := info.APIGroup == runapi.ArchiveGroup && info.Resource == runapi.ArchiveResource
	if info.Verb == "proxy" || info.Subresource == "proxy" && !archive {
		return Errorf(http.StatusForbidden, "the console does not pass on what pods, services and hosts serve themselves: use kubectl proxy or kubectl port-forward")
	}
	return nil
}

// rewrite a browser's request into one to the API server.
func rewrite(p *httputil.ProxyRequest, server *url.URL) {
	target := *p.In.URL
	target.Scheme, target.Host = server.Scheme, server.Host
	target.Path = strings.TrimRight(server.Path, "/") + strings.TrimPrefix(p.In.URL.Path, proxyPrefix)
	target.RawPath = ""
	if p.In.URL.RawPath != "" {
		target.RawPath = strings.TrimRight(server.EscapedPath(), "/") + strings.TrimPrefix(p.In.URL.RawPath, proxyPrefix)
	}
	p.Out.URL, p.Out.Host = &target, server.Host
	keep(p.Out.Header, requestHeaders)
	p.Out.Header.Set("User-Agent", "vignette-console")
	if isUpgrade(p.In) { // watches over WebSocket are refused without an origin; checkOrigin has checked the browser's
		p.Out.Header.Set("Origin", server.Scheme+"://"+server.Host)
	}
	if offered := p.Out.Header.Values("Sec-Websocket-Protocol"); len(offered) > 0 {
		p.Out.Header.Set("Sec-Websocket-Protocol", withoutTokens(offered))
	}
}

// withoutTokens leaves those subprotocols that are no token.
func withoutTokens(offered []string) string {
	var kept []string
	for protocol := range strings.SplitSeq(strings.Join(offered, ","), ",") {
		if protocol = strings.TrimSpace(protocol); protocol != "" && !strings.HasPrefix(protocol, tokenProtocol) {
			kept = append(kept, protocol)
		}
	}
	return strings.Join(kept, ", ")
}

func keep(header http.Header, names []string) {
	for name := range header {
		if !has(names, name) {
			header.Del(name)
		}
	}
}

// sanitize an answer of the API server.
func sanitize(answer *http.Response) {
	policies := answer.Header.Values("Content-Security-Policy")
	keep(answer.Header, answerHeaders)
	header := answer.Header
	secureHeaders(header)
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", proxiedPolicy)
	for _, policy := range policies { // both hold; only the console may show the page in a frame
		header.Add("Content-Security-Policy", strings.ReplaceAll(policy, "frame-ancestors 'none'", "frame-ancestors 'self'"))
	}
}

// explain why the API server gave no answer.
func (c *Console) explain(user *User, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		c.config.Log.Warn("the API server does not accept a login", "server", user.Server.Host, "mode", user.Mode)
		return unaccepted(user)
	case errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest:
		return Errorf(int(status.Status().Code), "%s", status.Status().Message)
	case errors.Is(err, context.Canceled):
		return Errorf(http.StatusServiceUnavailable, "the browser no longer waits")
	}
	c.config.Log.Warn("the API server gave no answer", "server", user.Server.Host, "error", err)
	return Errorf(http.StatusBadGateway, "the API server at %s cannot be reached: is the cluster up?", user.Server.Host)
}

// unaccepted is the error of a user whose login is not the API server's. The session has not ended: logging in again would change nothing.
func unaccepted(user *User) error {
	if user.Mode == teamMode {
		return Errorf(http.StatusBadGateway, "the API server does not accept your login: the console's administrator must have it trust the login service and the console's client ID")
	}
	return Errorf(http.StatusBadGateway, "the API server does not accept your kubeconfig's login: renew it, and start vignette ui again")
}
