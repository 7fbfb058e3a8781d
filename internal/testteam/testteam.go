// Package testteam gives tests a cluster's control plane with two teams, for the console: a real API server that trusts a login service, the
// roles of the chart, and the archive behind the aggregation layer.
package testteam

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"vignette.dev/vignette/internal/testcert"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/internal/testoidc"
)

// The client that the login service and the API server know.
const (
	ClientID     = "vignette-test"
	ClientSecret = "hush"
	CallbackPath = "/console/v1/callback"
)

// Password of all users.
const Password = "let me in"

// The teams' namespaces. Anna runs experiments in Alpha, and Vera looks at them; Bert runs those of Bravo.
const (
	Alpha = "team-alpha"
	Bravo = "team-bravo"
)

// Users of the login service. Their roles are those of their groups.
func Users() []testoidc.User {
	user := func(name, group string) testoidc.User {
		return testoidc.User{Name: name, Password: Password, Email: name + "@example.org", Groups: []string{group}}
	}
	return []testoidc.User{user("anna", "alpha"), user("vera", "alpha-viewers"), user("bert", "bravo")}
}

// World is a control plane with two teams.
type World struct {
	// Kube reaches the API server as an administrator.
	Kube *rest.Config
	// Objects of the API server, as an administrator.
	Objects client.Client
	// Provider is the login service.
	Provider *testoidc.Provider
	// Folder has files of the world; it goes with it.
	Folder string
	// ConsoleURL is where the console is in the cluster; nil for a world without one.
	ConsoleURL  *url.URL
	environment *envtest.Environment
	// file of the API server's login services.
	file string
	ends []func() error
}

// Start a world whose console has an origin. The binary is that of testkube, and charts the folder of the charts.
func Start(ctx context.Context, binary, charts, origin string) (w *World, err error) {
	w = &World{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Stop())
		}
	}()
	if w.Folder, err = os.MkdirTemp("", "testteam-"); err != nil {
		return w, err
	}
	w.ends = append(w.ends, func() error { return os.RemoveAll(w.Folder) })
	w.file = filepath.Join(w.Folder, authenticationFile)
	if err := w.startProvider("127.0.0.1", origin); err != nil {
		return w, err
	}
	front, err := testcert.New()
	if err != nil {
		return w, err
	}
	if err := w.startAPIServer(binary, front); err != nil {
		return w, fmt.Errorf("start the API server %s: %w", binary, err)
	}
	if w.Objects, err = client.New(w.Kube, client.Options{Scheme: testkube.Scheme()}); err != nil {
		return w, err
	}
	if err := w.Trust(ctx); err != nil {
		return w, err
	}
	if err := w.apply(ctx, charts); err != nil {
		return w, fmt.Errorf("objects of the teams: %w", err)
	}
	if _, err := w.raw(ctx, "/apis/vignette.dev/v1alpha1/waveforms"); err != nil { // which no team has: its storage may still begin
		return w, err
	}
	return w, w.startArchive(front)
}

// Stop everything.
func (w *World) Stop() (err error) {
	for i := len(w.ends) - 1; i >= 0; i-- {
		err = errors.Join(err, w.ends[i]())
	}
	w.ends = nil
	return err
}

// Trust the login service, as an administrator has the API server do.
func (w *World) Trust(ctx context.Context) error {
	return Trust(ctx, w.Kube, w.file, w.Provider)
}

// Distrust it.
func (w *World) Distrust(ctx context.Context) error {
	return Configure(ctx, w.Kube, w.file, NoIssuers)
}

// startAPIServer as a cluster has it: it trusts no login service yet, and those behind it can trust it.
func (w *World) startAPIServer(binary string, front *testcert.Authority) (err error) {
	assets := filepath.Join(w.Folder, "bin")
	if err := os.Mkdir(assets, 0o755); err != nil {
		return err
	}
	if w.environment, err = testkube.Environment(binary, assets); err != nil {
		return err
	}
	proxy, err := front.Issue(frontProxy)
	if err != nil {
		return err
	}
	certFile, keyFile, err := testcert.Write(w.Folder, "front-proxy-client", proxy)
	if err != nil {
		return err
	}
	authority := filepath.Join(w.Folder, "front-proxy-ca.crt")
	if err := errors.Join(os.WriteFile(authority, front.PEM(), 0o644), os.WriteFile(w.file, NoIssuers, 0o644)); err != nil {
		return err
	}
	arguments := w.environment.ControlPlane.GetAPIServer().Configure()
	for name, value := range map[string]string{
		"authentication-config": w.file, "proxy-client-cert-file": certFile, "proxy-client-key-file": keyFile,
		"requestheader-client-ca-file": authority, "requestheader-allowed-names": frontProxy, "requestheader-username-headers": headerUser,
		"requestheader-uid-headers": headerUID, "requestheader-group-headers": headerGroup, "requestheader-extra-headers-prefix": headerExtra,
	} {
		arguments.Set(name, value)
	}
	w.ends = append(w.ends, w.environment.Stop)
	w.Kube, err = w.environment.Start()
	if err == nil {
		w.Kube.QPS, w.Kube.Burst = -1, 0
	}
	return err
}
