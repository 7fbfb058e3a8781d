// Package library keeps compiled scenarios on the host, as long as a network needs them.
package library

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/digests"
	"vignette.dev/vignette/internal/scenario"
)

// Store has compiled scenarios by digest; a *client.Client is one.
type Store interface {
	Scenario(ctx context.Context, digest string) (io.ReadCloser, error)
}

const (
	// maxScenarioBytes of a compiled scenario, because the state folder is in memory.
	maxScenarioBytes = 256 << 20
	scenarioFiles    = "scenarios"
	fetching         = "fetching-*" // files that are not complete yet
	// fetchTimeout of one attempt.
	fetchTimeout = 5 * time.Minute
	firstFetch   = 500 * time.Millisecond
	longestFetch = 30 * time.Second
)

// Library keeps compiled scenarios in the state folder as long as a network needs them.
type Library struct {
	directory string
	wake      bell.Bell

	mu      sync.Mutex
	open    map[string]*scenario.Scenario // a replay may still use one after its file was removed
	missing map[string]*missingScenario
}

// missingScenario is a scenario that is being fetched.
type missingScenario struct {
	err   error
	next  time.Time
	pause time.Duration
}

// Open opens the library in the state folder, without the scenarios that an earlier process had not fetched completely.
func Open(directory string) (*Library, error) {
	l := &Library{directory: filepath.Join(directory, scenarioFiles), wake: bell.New(), open: map[string]*scenario.Scenario{}, missing: map[string]*missingScenario{}}
	if err := os.MkdirAll(l.directory, 0o700); err != nil {
		return nil, fmt.Errorf("scenarios: %w", err)
	}
	halves, err := filepath.Glob(filepath.Join(l.directory, fetching))
	for _, half := range halves {
		err = errors.Join(err, os.Remove(half)) // the worker died while fetching
	}
	return l, err
}

// Get opens a scenario. If it is not here, it is fetched, and the error says so.
func (l *Library) Get(digest string) (*scenario.Scenario, error) {
	if err := digests.Check(digest); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.open[digest]; v != nil {
		return v, nil
	}
	v, err := open(l.path(digest))
	if err == nil {
		l.open[digest] = v
		delete(l.missing, digest)
		return v, nil
	}
	a := l.missing[digest]
	if a == nil {
		a = &missingScenario{pause: firstFetch}
		l.missing[digest] = a
		l.wake.Ring()
	}
	if !errors.Is(err, os.ErrNotExist) {
		a.err = errors.Join(err, os.Remove(l.path(digest))) // the file is unusable
	}
	if a.err != nil {
		return nil, fmt.Errorf("scenario %s is not on this host yet; it is fetched again: %w", digest, a.err)
	}
	return nil, fmt.Errorf("scenario %s is not on this host yet", digest)
}

func (l *Library) path(digest string) string {
	return filepath.Join(l.directory, digests.File(digest))
}

func open(path string) (*scenario.Scenario, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	information, err := file.Stat()
	if err == nil {
		var s *scenario.Scenario
		if s, err = scenario.Open(file, information.Size()); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, file.Close())
}

// RemoveUnused removes the scenarios that are not used. The garbage collector closes files, because moments may still
// be prepared from them.
func (l *Library) RemoveUnused(used map[string]bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.open, func(digest string, _ *scenario.Scenario) bool { return !used[digest] })
	maps.DeleteFunc(l.missing, func(digest string, _ *missingScenario) bool { return !used[digest] })
	entries, err := os.ReadDir(l.directory)
	if err != nil {
		return fmt.Errorf("scenarios: %w", err)
	}
	for _, entry := range entries {
		if digest, whole := digests.OfFile(entry.Name()); whole && !used[digest] {
			err = errors.Join(err, os.Remove(filepath.Join(l.directory, entry.Name())))
		}
	}
	return err
}

// Fetch fetches missing scenarios until ctx ends, and calls arrived after each.
func (l *Library) Fetch(ctx context.Context, store Store, arrived func(digest string)) {
	timer := time.NewTicker(firstFetch)
	defer timer.Stop()
	for {
		for _, digest := range l.readyToFetch(time.Now()) {
			err := l.download(ctx, store, digest)
			l.recordAttempt(digest, err)
			arrived(digest)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-timer.C:
		}
	}
}

func (l *Library) readyToFetch(now time.Time) (digests []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for digest, a := range l.missing {
		if !now.Before(a.next) {
			digests = append(digests, digest)
		}
	}
	return digests
}

func (l *Library) recordAttempt(digest string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.missing[digest]; a != nil {
		a.err, a.next = err, time.Now().Add(a.pause)
		a.pause = min(2*a.pause, longestFetch)
	}
}

// download adds a scenario to the folder in one step, if it has the digest.
func (l *Library) download(ctx context.Context, store Store, digest string) error {
	if store == nil {
		return errors.New("radiod has no server to fetch it from: --token-file is not set")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	content, err := store.Scenario(ctx, digest)
	if err != nil {
		return err
	}
	defer content.Close()
	file, err := os.CreateTemp(l.directory, fetching)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // renamed on success
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(content, maxScenarioBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if size > maxScenarioBytes {
		return fmt.Errorf("it has more than %d bytes", int64(maxScenarioBytes))
	}
	if got := digests.Of(hash); got != digest {
		return fmt.Errorf("the server's file has the digest %s", got)
	}
	return os.Rename(file.Name(), l.path(digest))
}
