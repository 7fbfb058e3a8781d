// Package scenarios reads compiled scenarios from the server, as radiod does.
package scenarios

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/scenario"
)

// Store is the server's store of compiled scenarios.
type Store interface {
	Scenario(ctx context.Context, digest string) (io.ReadCloser, error)
}

// downloadTimeout limits the download of a compiled scenario, which may be large.
const downloadTimeout = time.Minute

// UnavailableError means that a scenario cannot be read now, and may be later.
type UnavailableError struct{ err error }

func (e *UnavailableError) Error() string { return e.err.Error() }

func (e *UnavailableError) Unwrap() error { return e.err }

// Use downloads a compiled scenario for the time of a call. A scenario that the server does not have is no UnavailableError.
func Use(ctx context.Context, store Store, digest string, use func(*scenario.Scenario) error) (err error) {
	file, err := os.CreateTemp("", "scenario-*")
	if err != nil {
		return &UnavailableError{err}
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	size, err := download(ctx, store, digest, file)
	switch {
	case runs.IsNotFound(err):
		return err
	case err != nil:
		return &UnavailableError{err}
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
