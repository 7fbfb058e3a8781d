// Package position has the position of a node as a function of time: that of its platform in the scenario, or its fixed one.
// The radios use the same function of time.
package position

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
)

// fixedPlatform is the platform in the movement of a fixed node.
const fixedPlatform = 1

// ErrNone says that a movement has no position at any time.
var ErrNone = errors.New("the movement has no position at any time")

// Place of a node at a time.
type Place struct {
	geo.Position
	geo.Velocity
}

// Movement is a node's position as a function of time. It is safe for concurrent use.
type Movement struct {
	mu     sync.Mutex
	cursor *scenario.Cursor
	// first is when the first position holds.
	first time.Duration
}

// Open reads a movement from a file (scenario.Movements).
func Open(path string) (*Movement, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := New(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// New reads a movement (scenario.Movements).
func New(content []byte) (*Movement, error) {
	s, err := scenario.Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	m := &Movement{cursor: s.NewCursor()}
	if err := m.findFirst(); err != nil {
		return nil, err
	}
	return m, nil
}

// findFirst finds the first position, of which the movement has one at least.
func (m *Movement) findFirst() error {
	for {
		at, more := m.cursor.Next()
		if !more {
			return ErrNone
		}
		if err := m.cursor.Seek(at); err != nil {
			return err
		}
		if _, known := m.cursor.Position(0); known {
			m.first = at
			return nil
		}
	}
}

// Next returns when the place changes next after a time.
func (m *Movement) Next(sinceT0 time.Duration) (at time.Duration, more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.cursor.Seek(max(sinceT0, 0)); err != nil {
		return 0, false, err
	}
	at, more = m.cursor.Next()
	return at, more, nil
}

// Fixed is the movement of a node that stays where it is.
func Fixed(p geo.Position) ([]byte, error) {
	b := scenario.NewBuilder(scenario.Options{Sorted: true, InMemory: true})
	var content bytes.Buffer
	if err := errors.Join(b.Position(0, fixedPlatform, p), b.Velocity(0, fixedPlatform, geo.Velocity{})); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	_, err := b.Write(&content)
	return content.Bytes(), err
}

// At returns the place at a time after T0; before T0 that of T0, as for the radios. Known reports whether the platform has a
// position by then: if not, the place is the first one that it will have.
func (m *Movement) At(sinceT0 time.Duration) (place Place, known bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := max(sinceT0, 0)
	if err := m.cursor.Seek(max(at, m.first)); err != nil {
		return place, false, err
	}
	place.Position, _ = m.cursor.Position(0)
	place.Velocity, _ = m.cursor.Velocity(0)
	return place, at >= m.first, nil
}
