// Command server is the results archive (`server serve`), and the workflow's step that waits until it is complete (`server collect`).
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/metricreaders"
	"vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// version of the program, set when it is linked.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{Use: "server", Short: "vignette's results archive", Version: version, SilenceUsage: true}
	root.AddCommand(serveCommand(), collectCommand(), guardCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		stop()
		os.Exit(1)
	}
}

// options of `server serve`.
type options struct {
	listen, dir, quota, audience string
	scenarioQuota, teamQuota     string
	teamQuotas, teamRetentions   map[string]string
	analysis                     string
	aggregated, host, metrics    string
	retention                    time.Duration
	policy                       server.Policy
}

func serveCommand() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the archive over HTTP",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return serve(command.Context(), o) },
	}
	flags := command.Flags()
	flags.StringVar(&o.listen, "listen", ":8080", "address to listen on")
	flags.StringVar(&o.metrics, "metrics-listen", ":9090", "address of the metrics of all teams' runs, for those who may get /metrics of the cluster; none if empty")
	flags.StringVar(&o.dir, "archive", "/archive", "folder of the archive")
	flags.StringVar(&o.quota, "quota", "2Gi", "most bytes of the logs of one run, such as 2Gi; 0 means no limit")
	flags.StringVar(&o.teamQuota, "team-quota", "50%", "most bytes of all runs of a namespace together, such as 20Gi, or a share of the archive's volume; 0 means no limit")
	flags.StringToStringVar(&o.teamQuotas, "team-quotas", nil, "--team-quota for some namespaces, such as team-nor=40Gi")
	flags.StringToStringVar(&o.teamRetentions, "team-retentions", nil, "--retention for some namespaces, such as team-nor=720h")
	flags.StringVar(&o.scenarioQuota, "scenario-quota", "2Gi", "most bytes of all compiled scenarios together; 0 means no limit")
	flags.StringVar(&o.audience, "audience", v1alpha1.TokenAudience, "audience that callers' tokens must have")
	flags.StringVar(&o.analysis, "analysis-socket", "", "Unix socket of the analysis that compares runs; without one, none are compared")
	flags.DurationVar(&o.retention, "retention", 0, "delete runs this long after they ended, and scenarios this long after their last use, such as 720h; 0 means never")
	flags.StringVar(&o.policy.OperatorUser, "operator-user", "system:serviceaccount:vignette-system:vignette-operator", "user name of the operator")
	flags.StringVar(&o.policy.RadiodUser, "radiod-user", "system:serviceaccount:vignette-system:vignette-radiod", "user name of radiod")
	flags.StringSliceVar(&o.policy.AdminUsers, "admin-user", nil, "user names that may delete runs")
	flags.BoolVar(&o.policy.ScenarioUploads, "scenario-uploads", true, "allow users with the right to update archives/proxy to store compiled scenarios, up to half of --scenario-quota")
	flags.StringVar(&o.aggregated, "aggregated-listen", ":8443", "address for the API server's aggregation layer, which sends requests of users; none if empty")
	flags.StringVar(&o.host, "host", "vignette-server.vignette-system.svc", "name by which the API server reaches that address")
	return command
}

func serve(ctx context.Context, o options) error {
	quota, err := amountOf("quota", o.quota)
	if err != nil {
		return err
	}
	scenarioQuota, err := amountOf("scenario-quota", o.scenarioQuota)
	if err != nil {
		return err
	}
	teamQuota, err := parseBytes("team-quota", o.teamQuota, o.dir)
	if err != nil {
		return err
	}
	teamQuotas, err := parseQuotas("team-quotas", o.teamQuotas, o.dir)
	if err != nil {
		return err
	}
	teamRetentions, err := parseRetentions("team-retentions", o.teamRetentions)
	if err != nil {
		return err
	}
	if o.policy.OperatorUser == "" || o.policy.RadiodUser == "" {
		return errors.New("--operator-user and --radiod-user must not be empty")
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("the server checks tokens with the API server: %w", err)
	}
	// At the start every agent's first request needs a review; the default of 5 a second would delay every run.
	config.QPS, config.Burst = 200, 1000
	authentication, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return err
	}
	authorization, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return err
	}
	lock, err := archive.Lock(ctx, o.dir, slog.Default())
	if err != nil {
		return err
	}
	s, err := server.New(server.Config{
		Dir: o.dir, Policy: o.policy, QuotaBytes: quota, ScenarioQuotaBytes: scenarioQuota, Retention: o.retention,
		TeamQuotaBytes: teamQuota, TeamQuotas: teamQuotas, TeamRetentions: teamRetentions, AnalysisSocket: o.analysis,
		Authenticator: server.TokenReviewer{Reviews: authentication.TokenReviews(), Audience: o.audience},
		Authorizer:    server.AccessReviewer{Reviews: authorization.SubjectAccessReviews()},
	})
	if err != nil {
		return err
	}
	go s.Expire(ctx)
	return errors.Join(o.listenAll(ctx, config, s), s.Close(), lock.Close())
}

// listenAll serves until the context ends or a port cannot be served.
func (o options) listenAll(ctx context.Context, config *rest.Config, s *server.Server) error {
	var a *aggregation
	if o.aggregated != "" {
		var err error
		if a, err = newAggregation(ctx, config, o.host); err != nil {
			return err
		}
	}
	readers, err := metricreaders.New(config, slog.Default())
	if err != nil {
		return err
	}
	ports, ctx := errgroup.WithContext(ctx)
	ports.Go(func() error { return listen(ctx, o.listen, s, nil) })
	if o.metrics != "" {
		metrics := http.NewServeMux()
		metrics.Handle("GET "+metricreaders.Path, readers.Only(s.Metrics()))
		ports.Go(func() error { return listen(ctx, o.metrics, metrics, nil) })
	}
	if a != nil {
		ports.Go(func() error { return listen(ctx, o.aggregated, s.Aggregated(a.front), a.tls()) })
		ports.Go(func() error { a.register(ctx); return nil })
	}
	return ports.Wait()
}

// Limits for connections; bodies have their own, piece by piece.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 5 * time.Second
)

// listen serves until the context ends, with TLS if it is configured. Long polls end too, so that a restart is quick.
func listen(ctx context.Context, address string, handler http.Handler, secured *tls.Config) error {
	requests, cancelRequests := context.WithCancel(context.Background())
	defer cancelRequests()
	h := server.NewHTTP(requests, address, handler, headerTimeout, idleTimeout)
	serve := h.ListenAndServe
	if secured != nil {
		h.TLSConfig = secured
		serve = func() error { return h.ListenAndServeTLS("", "") }
	}
	failed := make(chan error, 1)
	go func() { failed <- serve() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	cancelRequests()
	limit, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	return h.Shutdown(limit)
}
