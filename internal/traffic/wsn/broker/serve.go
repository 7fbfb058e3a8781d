// Package broker is a broker of WS-Notification 1.3. Publishers send Notify to it. Consumers subscribe, and receive matching messages or
// fetch them from pull points. It keeps the last message of each topic for GetCurrentMessage. Nothing outlives its process.
package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/netutil"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/clock"
	httpreq "vignette.dev/vignette/internal/traffic/http/client"
	"vignette.dev/vignette/internal/traffic/wsn"
)

// quiet drops net/http's messages about clients that do not speak HTTP or TLS, with which anybody could fill a log.
var quiet = log.New(io.Discard, "", 0)

// Serve runs the broker of a configuration file until ctx ends.
func Serve(ctx context.Context, path string) error {
	config, err := appinstance.ReadConfig[wsn.BrokerConfig](path)
	if err != nil {
		return err
	}
	listening := net.ListenConfig{KeepAlive: -1} // it would load the network
	listener, err := listening.Listen(ctx, "tcp", config.Listen)
	if err != nil {
		return httpreq.ListenError(config.Listen, err)
	}
	b, err := New(config)
	if err != nil {
		return err
	}
	b.metrics.Serve(ctx, config.MetricsPort, func(text string) { fmt.Fprintf(os.Stderr, "wsn-broker %s: %s\n", config.Instance, text) })
	fmt.Fprintf(os.Stderr, "wsn-broker %s: listens on %s\n", config.Instance, listener.Addr())
	return b.Run(ctx, listener)
}

// Timeouts of connections. A message of 2 kB over a link of 9.8 kbit/s with a full queue takes most of the minute.
const (
	headerTimeout = time.Minute
	// stallTimeout is how long each piece of a request or response may take. Whole ones have no limit.
	stallTimeout = 2 * time.Minute
	idleTimeout  = 10 * time.Minute
	maxHeader    = 16 << 10
)

// Run serves connections until ctx ends.
func (b *Broker) Run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: b, ReadHeaderTimeout: headerTimeout, ReadTimeout: b.stall, WriteTimeout: b.stall, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: quiet}
	defer context.AfterFunc(ctx, func() {
		b.stop()
		server.Close()
	})()
	go clock.Every(ctx, time.Second, func() { b.expireAt(b.now()) })
	listener = netutil.LimitListener(listener, b.limits.Connections)
	err := error(nil)
	if b.config.CertFile != "" {
		err = server.ServeTLS(listener, b.config.CertFile, b.config.KeyFile)
	} else {
		err = server.Serve(listener)
	}
	b.stop()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
