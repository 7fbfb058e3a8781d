// Package store has the one folder to which the developer cluster writes,
// and writes there so that an interruption leaves nothing incomplete.
package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
)

// Home is the folder of everything.
type Home string

// Find returns $VIGNETTE_HOME, else the folder vignette in the user's cache.
func Find() (Home, error) {
	if dir := os.Getenv("VIGNETTE_HOME"); dir != "" {
		abs, err := filepath.Abs(dir)
		return Home(abs), err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("VIGNETTE_HOME is not set and there is no cache folder: %w", err)
	}
	return Home(filepath.Join(cache, "vignette")), nil
}

// Build is the folder of cached build products.
func (h Home) Build() string { return filepath.Join(string(h), "build") }

// Images is the folder of image archives.
func (h Home) Images() string { return filepath.Join(string(h), "images") }

// Logs is the folder of the logs of builds and steps.
func (h Home) Logs() string { return filepath.Join(string(h), "logs") }

// Clusters is the folder with one folder per cluster.
func (h Home) Clusters() string { return filepath.Join(string(h), "clusters") }

var clusterName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Cluster returns the folder of the named cluster.
func (h Home) Cluster(name string) (string, error) {
	if !clusterName.MatchString(name) {
		return "", fmt.Errorf("cluster name %q: want lower-case letters, digits and dashes, at most 32, first a letter", name)
	}
	return filepath.Join(h.Clusters(), name), nil
}

// WriteFile replaces a file in one step: readers see the old or the new one.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Close())
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// Symlink makes or replaces a symbolic link in one step.
func Symlink(target, path string) error {
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := fmt.Sprintf("%s.new-%d", path, os.Getpid())
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// Lock takes the lock file at path and waits while another process holds it;
// waiting is called once if it has to wait. The kernel drops the lock when
// the holder ends, however it ends.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
