package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// requestTimeout for a plugin to send its request and read the answer.
const requestTimeout = 10 * time.Second

// Handler answers a request. The namespace is nil where the request has none.
type Handler func(request Request, namespace *os.File) Answer

// Listen serves the CNI plugin at a socket that only root can reach, until ctx ends.
func Listen(ctx context.Context, path string, handle Handler, log *slog.Logger) error {
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
		wait.Go(func() { serve(conn, handle, log) })
	}
}

func serve(conn *net.UnixConn, handle Handler, log *slog.Logger) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(requestTimeout)) // fails only on a closed connection
	request, namespace, err := Receive(conn)
	if namespace != nil {
		defer namespace.Close()
	}
	answer := Answer{}
	if err != nil {
		answer.Error = err.Error()
	} else {
		answer = handle(request, namespace)
	}
	if err := Reply(conn, answer); err != nil {
		log.Warn("answer the CNI plugin", "command", request.Command, "pod", request.PodUID, "error", err)
	}
}
