// Command console serves the web console to the users of a cluster. It has no rights: it sends each user's own token to the API server.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	_ "golang.org/x/crypto/x509roots/fallback" // the image has no certificates of its own
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	page "vignette.dev/vignette/console"
	"vignette.dev/vignette/internal/cli"
	"vignette.dev/vignette/internal/console"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/scenarios"
)

// version of the program, set when it is linked.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		stop()
		os.Exit(1)
	}
}

// options of the program.
type options struct {
	listen, platform, server, serverCA string
	issuerCA, secretFile, mapFile      string
	memoryLimit                        string
	team                               console.TeamConfig
}

func command() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use: "console", Short: "vignette's web console for teams", Version: version, SilenceUsage: true, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.serve(command.Context()) },
	}
	flags := command.Flags()
	flags.StringVar(&o.listen, "listen", ":8080", "address to listen on; TLS ends before it")
	flags.StringVar(&o.team.Origin, "origin", "", "address by which browsers reach the console, such as https://console.example")
	flags.StringVar(&o.team.Issuer, "issuer", "", "OpenID Connect issuer, which the API server trusts, too")
	flags.StringVar(&o.team.ClientID, "client-id", "", "client ID, which is the audience that the API server asks for")
	flags.StringVar(&o.secretFile, "client-secret-file", "", "file with the client's secret; none for a public client")
	flags.StringSliceVar(&o.team.Scopes, "scopes", []string{"profile", "email", "groups", "offline_access"}, "scopes asked for, beside openid")
	flags.StringVar(&o.issuerCA, "issuer-ca", "", "file with the certificates by which the issuer is known; default: those of public authorities")
	flags.StringVar(&o.server, "api-server", "https://kubernetes.default.svc", "address of the API server")
	flags.StringVar(&o.serverCA, "api-server-ca", "/etc/vignette/api-server/ca.crt", "file with the certificates by which the API server is known")
	flags.StringVar(&o.platform, "platform-namespace", "vignette-system", "namespace of the platform")
	flags.StringVar(&o.team.Namespace, "namespace", "default", "namespace that the page begins with")
	flags.StringVar(&o.memoryLimit, render.MemoryLimitFlag, render.DefaultMemoryLimit, "memory of an app's container that states no limit, as the operator has it; 0 is no limit")
	flags.StringVar(&o.mapFile, "map", "", "PMTiles file that maps show below terrain and tracks")
	return command
}

func (o *options) serve(ctx context.Context) error {
	handler, err := o.handler()
	if err != nil {
		return err
	}
	server := console.NewHTTP(handler)
	server.Addr = o.listen
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Close() // watches never end by themselves
	}
}

// handler of the console, and of the kubelet's probes.
func (o *options) handler() (http.Handler, error) {
	if o.team.Issuer == "" || o.team.ClientID == "" || o.team.Origin == "" {
		return nil, errors.New("--origin, --issuer and --client-id are needed: see docs/how-to/share-a-cluster.md")
	}
	memoryLimit, err := limitOf(o.memoryLimit)
	if err != nil {
		return nil, err
	}
	if o.team.Client, err = clientFor(o.issuerCA); err != nil {
		return nil, err
	}
	if o.secretFile != "" {
		secret, err := os.ReadFile(o.secretFile)
		if err != nil {
			return nil, fmt.Errorf("--client-secret-file: %w", err)
		}
		o.team.ClientSecret = strings.TrimSpace(string(secret))
	}
	o.team.Server = &rest.Config{Host: o.server, TLSClientConfig: rest.TLSClientConfig{CAFile: o.serverCA}}
	access, err := console.NewTeam(o.team)
	if err != nil {
		return nil, err
	}
	background, err := console.OpenMap(o.mapFile)
	if err != nil {
		return nil, fmt.Errorf("--map: %w", err)
	}
	assets, err := fs.Sub(page.Files, "dist")
	if err != nil {
		return nil, err
	}
	site, err := console.New(console.Config{
		Assets: assets, Library: scenarios.Files, Access: access, Map: background, Origins: []string{o.team.Origin}, PlatformNamespace: o.platform, Version: version, MemoryLimit: &memoryLimit,
		Clone: func(ctx context.Context, config *rest.Config, namespace, run string) (*console.Clone, error) {
			return cli.CloneRun(ctx, config, o.platform, namespace, run)
		},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.Handle("/", site)
	return mux, nil
}

// limitOf the flag's text.
func limitOf(text string) (resource.Quantity, error) {
	limit, err := resource.ParseQuantity(text)
	if err != nil || limit.Sign() < 0 {
		return limit, fmt.Errorf("--%s %q: use bytes such as 2Gi, or 0 for none", render.MemoryLimitFlag, text)
	}
	return limit, nil
}

// issuerTimeout for each request to the issuer.
const issuerTimeout = 15 * time.Second

// clientFor an issuer that is known by the certificates in a file, or by public ones.
func clientFor(file string) (*http.Client, error) {
	client := &http.Client{Timeout: issuerTimeout}
	if file == "" {
		return client, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--issuer-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--issuer-ca %s has no certificate in PEM", file)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	client.Transport = transport
	return client, nil
}
