package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/clock"
)

const (
	lockFile  = ".lock"
	lockPause = 200 * time.Millisecond
)

// Lock waits until no other process has the archive in dir, as each keeps the sizes of logs in memory. The kernel gives up the lock of
// a process that was killed. A volume that knows no locks has none.
func Lock(ctx context.Context, dir string, log *slog.Logger) (io.Closer, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	for waits := false; ; waits = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			log.Warn("the archive's volume knows no locks: nothing keeps a second server away from it", "error", err)
			return f, nil
		case !waits:
			log.Info("another server still has the archive: this one waits for its end", "archive", dir)
		}
		if !clock.Pause(ctx, lockPause) {
			return nil, errors.Join(fmt.Errorf("archive: another server has it: %w", ctx.Err()), f.Close())
		}
	}
}
