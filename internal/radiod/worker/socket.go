package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"vignette.dev/vignette/internal/radiod/wire"
)

// requestTimeout for a plugin to send its request and read the answer.
const requestTimeout = 10 * time.Second

// Listen serves the CNI plugin at a socket that only root can reach, until ctx ends.
func (m *Manager) Listen(ctx context.Context, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	listener.SetUnlinkOnClose(false) // the next worker's socket may be there already
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(fmt.Errorf("socket %s: %w", path, err), listener.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var wait sync.WaitGroup
	defer wait.Wait()
	for {
		conn, err := listener.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("socket %s: %w", path, err)
		}
		wait.Go(func() { m.serveConnection(conn) })
	}
}

func (m *Manager) serveConnection(conn *net.UnixConn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(requestTimeout)) // fails only on a closed connection
	request, namespace, err := wire.Receive(conn)
	if namespace != nil {
		defer namespace.Close()
	}
	answer := wire.Answer{}
	if err != nil {
		answer.Error = err.Error()
	} else {
		answer = m.Serve(request, namespace)
	}
	if err := wire.Reply(conn, answer); err != nil {
		m.Log.Warn("answer the CNI plugin", "command", request.Command, "pod", request.PodUID, "error", err)
	}
}
