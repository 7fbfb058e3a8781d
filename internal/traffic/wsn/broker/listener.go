package broker

import (
	"io"
	"log"
	"net"
	"sync"
)

// quiet drops net/http's messages about clients that do not speak HTTP or TLS, with which anybody could fill a log.
var quiet = log.New(io.Discard, "", 0)

// limitedListener limits simultaneous connections.
type limitedListener struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limited(l net.Listener, most int) net.Listener {
	return &limitedListener{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept first waits for a free place.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close closes the listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type placedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection and frees its place.
func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
