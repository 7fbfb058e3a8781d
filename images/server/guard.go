package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"vignette.dev/vignette/internal/metricreaders"
)

// guardCommand checks requests to a Prometheus, which has no access control. That listens on the loopback interface of the same pod.
func guardCommand() *cobra.Command {
	var listenAt, upstream string
	command := &cobra.Command{
		Use:   "guard",
		Short: "Pass requests to a Prometheus, if the caller may get /metrics of the cluster",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return guard(command.Context(), listenAt, upstream)
		},
	}
	command.Flags().StringVar(&listenAt, "listen", ":9090", "address to listen on")
	command.Flags().StringVar(&upstream, "upstream", "http://127.0.0.1:9091", "`URL` of the Prometheus")
	return command
}

func guard(ctx context.Context, listenAt, upstream string) error {
	target, err := url.Parse(upstream)
	if err != nil || target.Scheme != "http" || target.Host == "" {
		return fmt.Errorf("--upstream %q: want http://HOST:PORT", upstream)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("the guard checks tokens with the API server: %w", err)
	}
	readers, err := metricreaders.New(config, slog.Default())
	if err != nil {
		return err
	}
	return listen(ctx, listenAt, guardHandler(readers.Only, target), nil)
}

// guardHandler passes requests on. Anybody may ask whether Prometheus is up, as the kubelet has no token.
func guardHandler(only func(http.Handler) http.Handler, target *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Authorization")
	}}
	mux := http.NewServeMux()
	mux.Handle("/", only(proxy))
	for _, probe := range []string{"GET /-/ready", "GET /-/healthy"} {
		mux.Handle(probe, proxy)
	}
	return mux
}
