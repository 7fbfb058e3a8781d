package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const recordedUID = "0b6fd5cc-5c1e-4f5e-9d43-6a0f3c5f6d11"

// byToken takes a token for the name of who has it, with the UID of a pod after a slash.
type byToken struct{}

func (byToken) Authenticate(_ context.Context, token string) (server.Identity, error) {
	name, pod, _ := strings.Cut(token, "/")
	return server.Identity{Username: name, PodUID: pod}, nil
}

// teamAdmin is the user whom Kubernetes lets do everything with the team's archive.
const teamAdmin = "anna"

// clusterAdmin is the user whom Kubernetes lets do everything.
const clusterAdmin = "root"

// admins stands for Kubernetes, which decides about users other than the platform's own.
type admins struct{}

func (admins) Authorize(_ context.Context, who server.Identity, _, namespace string) (bool, error) {
	return who.Username == clusterAdmin || who.Username == teamAdmin && namespace == "team-nor", nil
}

// realArchive is the platform's server, with a connection that can be made to break.
type realArchive struct {
	t      *testing.T
	server *server.Server
	url    string
	// breakAfter so many bytes of an answer to a path with breakAt in it, breaks times.
	mu         sync.Mutex
	breakAt    string
	breakAfter int
	breaks     int
	// asked are the paths that were asked for, with their queries.
	asked []string
}

func newRealArchive(t *testing.T) *realArchive {
	t.Helper()
	s, err := server.New(server.Config{Dir: t.TempDir(), Authenticator: byToken{}, Authorizer: admins{}, LongPoll: time.Second, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Policy: server.Policy{OperatorUser: "operator", RadiodUser: "radiod"}})
	if err != nil {
		t.Fatal(err)
	}
	a := &realArchive{t: t, server: s}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(a.watch(w, r), r)
	}))
	a.url = h.URL
	t.Cleanup(func() { h.Close(); _ = s.Close() })
	return a
}

func (a *realArchive) watch(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.URL.RequestURI())
	if a.breaks == 0 || !strings.Contains(r.URL.Path, a.breakAt) {
		return w
	}
	a.breaks--
	return &breaking{w, a.breakAfter}
}

func (a *realArchive) askedFor(part string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, path := range a.asked {
		if strings.Contains(path, part) {
			n++
		}
	}
	return n
}

// breaking is a connection that breaks.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) <= b.left {
		b.left -= len(p)
		return b.ResponseWriter.Write(p)
	}
	_, _ = b.ResponseWriter.Write(p[:b.left])
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func (a *realArchive) as(token string) *runclient.Client {
	return runclient.New(a.url, http.DefaultClient, func() (string, error) { return token, nil })
}

func (a *realArchive) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// run archives a run of that plan, sealed, with a log of some size and results.
func (a *realArchive) run(plan runapi.Plan, logBytes int) {
	a.t.Helper()
	ctx := context.Background()
	_, err := a.as("operator").PutPlan(ctx, plan)
	a.must(err)
	node := plan.Nodes[0]
	account := "system:serviceaccount:" + plan.Namespace + ":"
	_, err = a.as(account+"default/"+node.PodUID).AppendLogs(ctx, node.Apps[0].Name, []runclient.LogPart{{File: "stdout-1.log", Content: []byte(strings.Repeat("0123456789abcdef", logBytes/16))}})
	a.must(err)
	_, err = a.as("radiod").AppendRadio(ctx, "host-a", plan.UID, 0, strings.NewReader("{\"ts\":1}\n"))
	a.must(err)
	workflow := a.as(account + "vignette-workflow")
	_, err = workflow.Seal(ctx, plan.UID, runapi.SealRequest{})
	a.must(err)
	for name, text := range map[string]string{"results.json": `{"schemaVersion": 1}`, "groups.csv": "group,sent\n", "report.html": "<html>the report</html>"} {
		a.must(workflow.PutResult(ctx, plan.UID, name, strings.NewReader(text)))
	}
}

// cluster with the archive; objects are what its API server has.
func (a *realArchive) cluster(objects ...client.Object) *cluster {
	kube := fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithStatusSubresource(&v1alpha1.Experiment{}, &v1alpha1.Scenario{}).WithObjects(objects...).Build()
	version := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"gitVersion": "v1.34.1"}`)
	}))
	a.t.Cleanup(version.Close)
	return &cluster{namespace: "team-nor", kube: kube, archive: a.as("operator"), config: &rest.Config{Host: version.URL}}
}
