package testteam

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	objects "sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/internal/testcert"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// How the API server names its users to those behind it.
const (
	frontProxy  = "front-proxy-client"
	headerUser  = "X-Remote-User"
	headerUID   = "X-Remote-Uid"
	headerGroup = "X-Remote-Group"
	headerExtra = "X-Remote-Extra-"
)

// The archive's Service.
const (
	platform    = "vignette-system"
	archiveName = "vignette-server"
)

// operator is the name, and the token, of whoever tells the archive of runs.
const operator = "operator"

type operatorOnly struct{}

func (operatorOnly) Authenticate(_ context.Context, token string) (server.Identity, error) {
	if token != operator {
		return server.Identity{}, server.ErrBadToken
	}
	return server.Identity{Username: operator}, nil
}

// startArchive behind the aggregation layer, with a run of each team.
func (w *World) startArchive(front *testcert.Authority) error {
	reviews, err := authorizationclient.NewForConfig(w.Kube)
	if err != nil {
		return err
	}
	folder := filepath.Join(w.Folder, "archive")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	archive, err := server.New(server.Config{
		Dir: folder, Authenticator: operatorOnly{}, Authorizer: server.AccessReviewer{Reviews: reviews.SubjectAccessReviews()},
		Policy: server.Policy{OperatorUser: operator, RadiodUser: "radiod"}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	w.ends = append(w.ends, archive.Close)
	direct, err := w.serve(archive, nil)
	if err != nil {
		return err
	}
	for _, namespace := range []string{Alpha, Bravo} {
		if err := w.putRun(client.New("http://"+direct.String(), http.DefaultClient, func() (string, error) { return operator, nil }), namespace); err != nil {
			return err
		}
	}
	return w.aggregate(archive, front)
}

// serve a handler until the world stops.
func (w *World) serve(handler http.Handler, secured *tls.Config) (*net.TCPAddr, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if secured != nil {
		listener = tls.NewListener(listener, secured)
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = s.Serve(listener) }()
	w.ends = append(w.ends, s.Close)
	return listener.Addr().(*net.TCPAddr), nil
}

// Run of a team: its experiment, which the archive knows by its UID.
func (w *World) Run(ctx context.Context, namespace string) (*v1alpha1.Experiment, error) {
	experiment := &v1alpha1.Experiment{}
	return experiment, w.Objects.Get(ctx, objects.ObjectKey{Namespace: namespace, Name: Words[namespace]}, experiment)
}

func (w *World) putRun(archive *client.Client, namespace string) error {
	ctx := context.Background()
	experiment, err := w.Run(ctx, namespace)
	if err != nil {
		return err
	}
	plan := runapi.Plan{Namespace: namespace, Name: experiment.Name, UID: string(experiment.UID), Phase: v1alpha1.PhaseRunning, T0: &experiment.Status.T0.Time}
	for i, node := range experiment.Spec.Nodes {
		plan.Nodes = append(plan.Nodes, runapi.PlannedNode{Name: node.Name, NEM: int32(i + 1), PodUID: "pod-of-" + node.Name})
	}
	_, err = archive.PutPlan(ctx, plan)
	return err
}

// aggregate the archive: the API server finds it by its Service.
func (w *World) aggregate(archive *server.Server, front *testcert.Authority) error {
	authority, err := testcert.New()
	if err != nil {
		return err
	}
	certificate, err := authority.Issue(archiveName, archiveName+"."+platform+".svc")
	if err != nil {
		return err
	}
	verify := func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: front.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}
	one := func(name string) headerrequest.StringSliceProvider {
		return headerrequest.StaticStringSlice([]string{name})
	}
	proxies := headerrequest.NewDynamicVerifyOptionsSecure(verify, one(frontProxy), one(headerUser), one(headerUID), one(headerGroup), one(headerExtra))
	address, err := w.serve(archive.Aggregated(proxies), &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: archiveName}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: int32(address.Port)}},
	}}
	if err := w.Objects.Create(context.Background(), service); err != nil {
		return err
	}
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": runapi.ArchiveVersion + "." + runapi.ArchiveGroup},
		"spec": map[string]any{
			"group": runapi.ArchiveGroup, "version": runapi.ArchiveVersion, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10), "caBundle": authority.PEM(),
			"service": map[string]any{"name": archiveName, "namespace": platform, "port": int64(address.Port)},
		},
	}}
	if err := w.Objects.Create(context.Background(), api); err != nil {
		return err
	}
	return w.waitForArchive()
}

// waitForArchive until the API server passes requests on to it.
func (w *World) waitForArchive() error {
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), reloadPoll, reloadTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = w.raw(ctx, runapi.ArchivePath(Alpha)+"/v1/runs")
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not reach the archive: %w", errors.Join(err, last))
	}
	return nil
}
