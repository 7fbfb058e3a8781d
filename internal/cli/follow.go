package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	runclient "vignette.dev/vignette/internal/runapi/client"
)

// retryInterval after a lost connection.
const retryInterval = time.Second

// follower reads an archived file as it grows, over several connections if necessary. It ends with the file: when the run is sealed, or
// its capture has ended.
type follower struct {
	open    func(offset int64) (io.ReadCloser, error)
	wait    func() error
	note    func(string)
	offset  int64
	content io.ReadCloser
	// noted since the last bytes, so that a long loss is told once.
	noted bool
}

func newFollower(ctx context.Context, c *cluster, uid, path string, offset int64, note func(string)) *follower {
	return &follower{
		offset: offset, note: note,
		open: func(offset int64) (io.ReadCloser, error) { return c.archive.Follow(ctx, uid, path, offset) },
		wait: func() error { return pause(ctx, retryInterval) },
	}
}

// Read implements io.Reader.
func (f *follower) Read(p []byte) (int, error) {
	for {
		if f.content == nil {
			if err := f.connect(); err != nil {
				return 0, err
			}
		}
		n, err := f.content.Read(p)
		f.offset += int64(n)
		f.noted = f.noted && n == 0
		if err == nil || errors.Is(err, io.EOF) {
			return n, err
		}
		_ = f.content.Close() // the connection is lost anyway
		f.content = nil
		if n > 0 {
			return n, nil
		}
		if err := f.waitForRetry(err); err != nil {
			return 0, err
		}
	}
}

func (f *follower) connect() (err error) {
	for {
		f.content, err = f.open(f.offset)
		switch e := asServerError(err); {
		case err == nil:
			return nil
		case runclient.IsNotFound(err):
			return io.EOF // the run has ended without this file
		case e != nil && e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests:
			return err
		}
		if err := f.waitForRetry(err); err != nil {
			return err
		}
	}
}

// waitForRetry before the next attempt.
func (f *follower) waitForRetry(reason error) error {
	err := f.wait()
	if err == nil && !f.noted {
		f.noted = true
		f.note(fmt.Sprintf("connection to the archive lost, retrying: %v", reason))
	}
	return err
}

// Close ends the connection.
func (f *follower) Close() error {
	if f.content == nil {
		return nil
	}
	return f.content.Close()
}
