package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/testcert"
)

// issue a certificate, as the authority of the API server's aggregation layer does.
func issue(t *testing.T, authority *testcert.Authority, name string) tls.Certificate {
	t.Helper()
	made, err := authority.Issue(name)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func newAuthority(t *testing.T) *testcert.Authority {
	t.Helper()
	made, err := testcert.New()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// serveBehindAPIServer serves a lab's archive to those whose certificate is front-proxy's.
func serveBehindAPIServer(l *lab) (front *testcert.Authority, server *httptest.Server) {
	front = newAuthority(l.t)
	verify := func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: front.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}
	list := func(values ...string) headerrequest.StringSliceProvider {
		return headerrequest.StaticStringSlice(values)
	}
	server = httptest.NewUnstartedServer(l.server.Aggregated(headerrequest.NewDynamicVerifyOptionsSecure(verify, list("front-proxy-client"),
		list("X-Remote-User"), list("X-Remote-Uid"), list("X-Remote-Group"), list("X-Remote-Extra-"))))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	l.t.Cleanup(server.Close)
	return front, server
}

// request for a path as a user, with a client certificate or without one.
func request(t *testing.T, server *httptest.Server, certificate *tls.Certificate, user, group, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Remote-User", user)
	request.Header.Set("X-Remote-Group", group)
	request.Header.Set("Authorization", "Bearer admin")
	transport := server.Client().Transport.(*http.Transport).Clone()
	if certificate != nil {
		transport.TLSClientConfig.Certificates = []tls.Certificate{*certificate}
	}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestUsersReadTheirTeamsArchiveBehindTheAPIServer(t *testing.T) {
	l := newLab(t)
	l.plan()
	l.plan(func(p *runapi.Plan) { p.UID, p.Namespace, p.Nodes = "run-of-prt", "team-prt", nil })
	front, server := serveBehindAPIServer(l)
	apiServer, other, stranger := issue(t, front, "front-proxy-client"), issue(t, front, "kubelet"), issue(t, newAuthority(t), "front-proxy-client")
	nor, prt, all := runapi.ArchivePath("team-nor"), runapi.ArchivePath("team-prt"), runapi.ArchivePath("")
	for name, c := range map[string]struct {
		certificate *tls.Certificate
		user, group string
		path        string
		status      int
		says        string
	}{
		"a viewer by its group":                {&apiServer, "vera", "nor-viewers", nor + "/v1/runs/run-1", 200, `"quickstart"`},
		"a viewer's files":                     {&apiServer, "vera", "nor-viewers", nor + "/v1/runs/run-1/files/run.json", 200, `"team-nor"`},
		"a viewer's list":                      {&apiServer, "vera", "nor-viewers", nor + "/v1/runs", 200, `"run-1"`},
		"somebody without that group":          {&apiServer, "vera", "others", nor + "/v1/runs/run-1", 403, "not for vera"},
		"somebody of another team":             {&apiServer, "paula", "", nor + "/v1/runs/run-1", 403, "not for paula"},
		"another team's run by one's own path": {&apiServer, "paula", "", prt + "/v1/runs/run-1", 404, "no run of namespace team-prt"},
		"a run that is not there":              {&apiServer, "paula", "", prt + "/v1/runs/run-2", 404, "no run of namespace team-prt"},
		"another team's list by one's own":     {&apiServer, "paula", "", prt + "/v1/runs?namespace=team-nor", 403, "has an archive of its own"},
		"another team's run in a comparison":   {&apiServer, "paula", "", prt + "/v1/compare?run=run-1&run=run-of-prt", 404, "no run of namespace team-prt"},
		"all runs that one may read":           {&apiServer, "paula", "", all + "/v1/runs", 200, `"run-of-prt"`},
		"a path out of the archive":            {&apiServer, "paula", "", prt + "/v1/runs/../../../../../../../namespaces/team-nor/archives/default/proxy/v1/runs", 403, "not for paula"},
		"an archive that is not there":         {&apiServer, "vera", "nor-viewers", strings.Replace(nor, "default", "other", 1) + "/v1/runs", 404, ""},
		"all teams' metrics":                   {&apiServer, "vera", "nor-viewers", nor + "/metrics", 404, ""},
		"headers without a certificate":        {nil, "anna", "system:masters", nor + "/v1/runs/run-1", 401, "for the API server of Kubernetes"},
		"headers with a kubelet's certificate": {&other, "anna", "system:masters", nor + "/v1/runs/run-1", 401, "for the API server of Kubernetes"},
		"headers with a certificate of one's own": {&stranger, "anna", "system:masters", nor + "/v1/runs/run-1", 401,
			"for the API server of Kubernetes"},
		"what the API has": {nil, "", "", "/apis/results.vignette.dev/v1alpha1", 200, `"archives/proxy"`},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := request(t, server, c.certificate, c.user, c.group, c.path)
			if status != c.status || !strings.Contains(text, c.says) {
				t.Errorf("%d %s; want %d and %q", status, text, c.status, c.says)
			}
		})
	}
	if _, text := request(t, server, &apiServer, "paula", "", all+"/v1/runs"); strings.Contains(text, "team-nor") {
		t.Errorf("runs that are not hers: %s", text)
	}
}

// asUser sends requests as the API server does for a user.
type asUser struct {
	http.RoundTripper
	name string
}

func (a asUser) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Remote-User", a.name)
	return a.RoundTripper.RoundTrip(r)
}

func TestARefusalBehindTheAPIServerSaysWhyToBothKindsOfClients(t *testing.T) {
	l := newLab(t)
	l.plan()
	front, server := serveBehindAPIServer(l)
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.Certificates = []tls.Certificate{issue(t, front, "front-proxy-client")}
	t.Cleanup(transport.CloseIdleConnections)
	browser := &http.Client{Transport: asUser{transport, "paula"}}
	kubectl, err := rest.UnversionedRESTClientForConfigAndClient(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{
		GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: scheme.Codecs.WithoutConversion()}}, browser)
	if err != nil {
		t.Fatal(err)
	}
	nor, prt := runapi.ArchivePath("team-nor"), runapi.ArchivePath("team-prt")
	for name, c := range map[string]struct {
		archive, uid, words string
		status              int
		reason              metav1.StatusReason
	}{
		"another team's run":      {nor, runUID, "deleting this run is not for paula", http.StatusForbidden, metav1.StatusReasonForbidden},
		"a run that is not there": {prt, "run-2", `no run of namespace team-prt has uid "run-2"`, http.StatusNotFound, metav1.StatusReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			err := kubectl.Delete().RequestURI(c.archive + "/v1/runs/" + c.uid).Do(t.Context()).Error()
			if err == nil || err.Error() != c.words || apierrors.ReasonForError(err) != c.reason {
				t.Errorf("kubectl reads %v, reason %q; want %q, %q", err, apierrors.ReasonForError(err), c.words, c.reason)
			}
			err = client.New(server.URL+c.archive, browser, client.NoToken).Delete(t.Context(), c.uid)
			if answer, ok := errors.AsType[*client.Error](err); !ok || answer.Message != c.words || answer.Status != c.status {
				t.Errorf("the commands read %v; want %d %q", err, c.status, c.words)
			}
		})
	}
}

// countingAuthorizer is an Authorizer that counts what it is asked.
type countingAuthorizer struct {
	rights
	asked int
}

func (c *countingAuthorizer) Authorize(ctx context.Context, who Identity, verb, namespace string) (bool, error) {
	c.asked++
	return c.rights.Authorize(ctx, who, verb, namespace)
}

func TestAccessAnswersAreCachedForSeconds(t *testing.T) {
	now := time.Unix(0, 0)
	for name, c := range map[string]struct {
		user    string
		after   time.Duration
		asked   int
		allowed bool
	}{
		"a right, at once":             {"vera", 0, 1, true},
		"a right, in 9 s":              {"vera", 9 * time.Second, 1, true},
		"a right that may have ended":  {"vera", 11 * time.Second, 2, true},
		"no right, in 1 s":             {"nick", time.Second, 1, false},
		"no right that may have begun": {"nick", 3 * time.Second, 2, false},
		"an answer that was not had":   {"outage", 0, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			api := &countingAuthorizer{rights: rights{"vera get team-nor"}}
			at := now
			d := newAccessCache(api, func() time.Time { return at })
			_, _ = d.Authorize(t.Context(), Identity{Username: c.user}, "get", "team-nor")
			at = at.Add(c.after)
			allowed, _ := d.Authorize(t.Context(), Identity{Username: c.user}, "get", "team-nor")
			if allowed != c.allowed || api.asked != c.asked {
				t.Errorf("allowed %t, asked %d times; want %t, %d", allowed, api.asked, c.allowed, c.asked)
			}
		})
	}
}

func TestAnAccessAnswerIsForOneUserVerbAndNamespace(t *testing.T) {
	d := newAccessCache(rights{"vera get team-nor", "nor get team-nor"}, time.Now)
	for _, who := range []Identity{{Username: "vera"}, {Username: "x", Groups: []string{"nor"}}} {
		if allowed, _ := d.Authorize(t.Context(), who, "get", "team-nor"); !allowed {
			t.Fatalf("%+v may not read", who)
		}
	}
	for name, c := range map[string]struct {
		who             Identity
		verb, namespace string
	}{
		"another namespace": {Identity{Username: "vera"}, "get", "team-prt"},
		"all namespaces":    {Identity{Username: "vera"}, "get", ""},
		"another verb":      {Identity{Username: "vera"}, "delete", "team-nor"},
		"another user":      {Identity{Username: "v"}, "get", "team-nor"},
		"without its group": {Identity{Username: "x"}, "get", "team-nor"},
	} {
		if allowed, _ := d.Authorize(t.Context(), c.who, c.verb, c.namespace); allowed {
			t.Errorf("%s: allowed", name)
		}
	}
}

func TestAFailedReviewIsNotARefusal(t *testing.T) {
	l := newLab(t, func(c *Config) {
		c.Authenticator = tokenUsers{"operator": {Username: operatorUser}, "user": {Username: "outage"}}
	})
	l.plan()
	if _, err := l.as("user").State(t.Context(), runUID); status(err) != http.StatusServiceUnavailable {
		t.Errorf("%v: want 503, so that the caller tries again", err)
	}
}
