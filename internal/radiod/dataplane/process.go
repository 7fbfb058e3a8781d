package dataplane

import (
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/holder"
)

// Run is the data plane's process: it serves the workers that the parent starts, until the parent ends.
func Run(log *slog.Logger) error {
	signal.Ignore(unix.SIGINT, unix.SIGTERM) // the parent ends it
	parent, err := holder.Conn(os.NewFile(holder.ParentSocket, "parent"))
	if err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/comm", []byte(holder.PlaneCommand), 0) // for ps and top only
	server := NewServer(log)
	for {
		worker, err := holder.NextWorker(parent)
		if err != nil {
			return nil //nolint:nilerr // the parent has gone, and the interfaces stay
		}
		go func() {
			if err := server.Serve(worker); err != nil {
				log.Error("requests of a worker", "error", err)
			}
		}()
	}
}
