// Package state keeps what outlives radiod's worker in files of a host's folder, so that a new worker carries frames before it
// reaches the API server.
package state

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/wholefile"
)

// Folder of the host.
type Folder struct{ directory string }

// Open a folder, and make it if it is not there.
func Open(directory string) (Folder, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return Folder{}, fmt.Errorf("state folder: %w", err)
	}
	return Folder{directory}, nil
}

// Path of a kind's file, which need not exist; its folder does then.
func (f Folder) Path(kind, name string) (string, error) {
	if err := os.MkdirAll(filepath.Join(f.directory, kind), 0o700); err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	return f.path(kind, name), nil
}

func (f Folder) path(kind, name string) string {
	return filepath.Join(f.directory, kind, strings.ReplaceAll(name, "/", "_")+".json")
}

// Put replaces a file as a whole. It does not sync: the folder is on a tmpfs, and a power cut also ends the
// namespaces.
func (f Folder) Put(kind, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("state of %s: %w", name, err)
	}
	final, err := f.Path(kind, name)
	if err != nil {
		return err
	}
	if err := wholefile.Write(final, text, 0o600); err != nil {
		return fmt.Errorf("state of %s: %w", name, err)
	}
	return nil
}

// Remove a file, if it is there.
func (f Folder) Remove(kind, name string) error {
	if err := os.Remove(f.path(kind, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("state of %s: %w", name, err)
	}
	return nil
}

// Load reads all files of a kind. Broken ones are reported and removed.
func Load[T any](f Folder, kind string) (values []T, err error) {
	entries, err := os.ReadDir(filepath.Join(f.directory, kind))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	var broken error
	for _, entry := range entries {
		path := filepath.Join(f.directory, kind, entry.Name())
		if !strings.HasSuffix(path, ".json") {
			_ = os.Remove(path) // left incomplete when the worker died
			continue
		}
		var value T
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		if err != nil {
			broken = errors.Join(broken, fmt.Errorf("state file %s: %w", path, err), os.Remove(path))
			continue
		}
		values = append(values, value)
	}
	return values, broken
}

// Keep removes a kind's files but those of some names.
func (f Folder) Keep(kind string, names ...string) error {
	entries, err := os.ReadDir(filepath.Join(f.directory, kind))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	known := map[string]bool{}
	for _, name := range names {
		known[filepath.Base(f.path(kind, name))] = true
	}
	for _, entry := range entries {
		if !known[entry.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(f.directory, kind, entry.Name())))
		}
	}
	return err
}

// Instance returns this state folder's unique name.
func (f Folder) Instance() (string, error) {
	path := filepath.Join(f.directory, "instance")
	text, err := os.ReadFile(path)
	if err == nil && len(text) > 0 {
		return string(text), nil
	}
	name := rand.Text()
	return name, wholefile.Write(path, []byte(name), 0o600)
}

const (
	// Worker is the file with a worker's sign of life.
	Worker = "seen"
	// Plane is the file with a data plane's sign of life.
	Plane = "plane-seen"

	bootFile = "boot-id"
	// bootID of the kernel. After a boot namespaces' numbers may be reused.
	bootID = "/proc/sys/kernel/random/boot_id"
)

// Boot returns the ID of the kernel's boot.
func Boot() ([]byte, error) {
	id, err := os.ReadFile(bootID)
	if err != nil {
		return nil, fmt.Errorf("the kernel's boot: %w", err)
	}
	return id, nil
}

// NewBoot reports whether the host was booted since an earlier worker wrote its state.
func (f Folder) NewBoot() (bool, error) {
	current, err := Boot()
	if err != nil {
		return false, err
	}
	path := filepath.Join(f.directory, bootFile)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("state folder: %w", err)
	}
	if string(before) == string(current) {
		return false, nil
	}
	// An empty file is one that a killed worker was writing.
	return len(before) > 0, wholefile.Write(path, current, 0o600)
}

// LastSeen returns when the previous process of a kind was last seen, nanoseconds of the real-time clock; 0 for never.
func (f Folder) LastSeen(of string) int64 {
	text, err := os.ReadFile(filepath.Join(f.directory, of))
	if err != nil || len(text) != 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(text)) //nolint:gosec // as it was written
}

// heartbeatInterval is the precision of a gap's beginning.
const heartbeatInterval = 20 * time.Millisecond

// WriteHeartbeat records every 20 ms that the process runs, until ctx ends. It must begin only after the gap before was
// recorded.
func (f Folder) WriteHeartbeat(ctx context.Context, of string) error {
	file, err := os.OpenFile(filepath.Join(f.directory, of), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	defer file.Close()
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		var text [8]byte
		binary.LittleEndian.PutUint64(text[:], uint64(clock.Realtime())) //nolint:gosec // after 1970
		if _, err := file.WriteAt(text[:], 0); err != nil {
			return fmt.Errorf("state folder: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
