package testteam

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"vignette.dev/vignette/internal/testcert"
)

// Front ends TLS before a console, as an Ingress does. Its address is known before there is a console.
type Front struct {
	// Origin of the console.
	Origin string
	// Authority is that of its certificate.
	Authority *testcert.Authority
	listener  net.Listener
	server    *http.Server
}

// NewFront listens on the loopback interface.
func NewFront() (*Front, error) {
	authority, err := testcert.New()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &Front{Origin: "https://" + listener.Addr().String(), Authority: authority, listener: listener}, nil
}

// Serve what is behind it, until Close.
func (f *Front) Serve(behind http.Handler) error {
	certificate, err := f.Authority.Issue("console", "127.0.0.1")
	if err != nil {
		return err
	}
	f.server = &http.Server{Handler: behind, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}
	go func() { _ = f.server.ServeTLS(f.listener, "", "") }()
	return nil
}

// Close it.
func (f *Front) Close() error {
	if f.server == nil {
		return f.listener.Close()
	}
	return f.server.Close()
}
