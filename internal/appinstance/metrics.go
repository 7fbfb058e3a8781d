package appinstance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ServeMetrics offers metrics at /metrics of a TCP port until ctx ends; port 0 is none.
func ServeMetrics(ctx context.Context, metrics prometheus.Gatherer, port int) error {
	if port == 0 {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return fmt.Errorf("metricsPort %d: %w", port, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() {
		if err := serve(server, listener); err != nil {
			fmt.Fprintf(os.Stderr, "metricsPort %d: %v: metrics are no longer served\n", port, err)
		}
	}()
	return nil
}

// serve until the server is closed. After an error live displays lack this instance, but what it does goes on.
func serve(server *http.Server, listener net.Listener) error {
	defer listener.Close()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
