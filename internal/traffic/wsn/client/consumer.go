package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
)

// consumer is the endpoint that receives messages from a broker.
type consumer struct {
	client   *client
	listener net.Listener
	server   *http.Server

	mu sync.Mutex
	// number is that of the valid subscription, and its path. Earlier brokers get an answer that theirs is gone.
	number int
}

const consumerPath = "/consumer/"

// idleTimeout ends connections of a broker that vanished.
const idleTimeout = 10 * time.Minute

func listen(c *client) (*consumer, error) {
	config := net.ListenConfig{KeepAlive: -1} // it would load the network
	listener, err := config.Listen(context.Background(), "tcp", ":0")
	if err != nil {
		return nil, err
	}
	e := &consumer{client: c, listener: listener}
	e.server = &http.Server{Handler: e, ReadHeaderTimeout: time.Minute, IdleTimeout: idleTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		if err := e.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			c.setup.Warn("the port for the broker's messages fails: " + transport.Words(err))
		}
	}()
	return e, nil
}

func (e *consumer) close() { e.server.Close() }

// next returns the address of the next subscription: the local address of the broker's connection, and a path of its own.
func (e *consumer) next(local net.Addr) (soap.EPR, error) {
	host, _, err := net.SplitHostPort(local.String())
	if err != nil {
		return soap.EPR{}, err
	}
	_, port, err := net.SplitHostPort(e.listener.Addr().String())
	if err != nil {
		return soap.EPR{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.number++
	return soap.EPR{Address: "http://" + net.JoinHostPort(host, port) + consumerPath + strconv.Itoa(e.number)}, nil
}

func (e *consumer) current(path string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return path == consumerPath+strconv.Itoa(e.number)
}

// ServeHTTP receives one Notify.
func (e *consumer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, consumerPath):
		http.Error(w, "want POST of a Notify", http.StatusNotFound)
		return
	case !e.current(r.URL.Path):
		http.Error(w, "the subscription was replaced by another one", http.StatusGone)
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, wire.MaxBytes))
	at := time.Now()
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		why := fmt.Sprintf("the Notify is too large: want at most %d bytes", wire.MaxBytes)
		e.client.setup.Warn("refused a Notify: " + why)
		http.Error(w, why, http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the Notify ended before it was whole", http.StatusBadRequest)
		return
	}
	if err := e.take(at, data); err != nil {
		e.client.setup.Warn("refused a Notify: " + err.Error())
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (e *consumer) take(at time.Time, data []byte) error {
	m, err := wire.ParseMessage(data)
	if err != nil {
		return err
	}
	messages, err := wire.ParseNotify(m.Body)
	if err != nil {
		return err
	}
	return e.client.received(at, messages)
}
