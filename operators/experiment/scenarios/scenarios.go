// Package scenarios reads compiled scenarios from the server, as radiod does.
package scenarios

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"vignette.dev/vignette/internal/scenario"
)

// Store is the server's store of compiled scenarios.
type Store interface {
	Scenario(ctx context.Context, digest string) (io.ReadCloser, error)
}

// downloadTimeout limits the download of a compiled scenario, which may be large.
const downloadTimeout = time.Minute

// Use downloads a compiled scenario for the time of a call.
func Use(ctx context.Context, store Store, digest string, use func(*scenario.Scenario) error) (err error) {
	file, err := os.CreateTemp("", "scenario-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	size, err := download(ctx, store, digest, file)
	if err != nil {
		return err
	}
	compiled, err := scenario.Open(file, size)
	if err != nil {
		return err
	}
	return use(compiled)
}

func download(ctx context.Context, store Store, digest string, to io.Writer) (size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	body, err := store.Scenario(ctx, digest)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return io.Copy(to, body)
}
