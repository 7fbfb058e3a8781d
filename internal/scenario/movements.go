package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/geo"
)

const (
	// longestStep is the longest time from one position to the next in which a platform counts as moving between them.
	longestStep = 10 * time.Second
	// MaxMovementBytes of all movements of a scenario: 10 million positions have about 60 MiB.
	MaxMovementBytes = 128 << 20
	// momentsPerCheck is the number of moments between two checks of the context.
	momentsPerCheck = 64
)

// ErrTooManyPositions says that a scenario's movements exceed their limit.
var ErrTooManyPositions = fmt.Errorf("the positions of all platforms take more than %d MiB: want fewer or less dense ones", MaxMovementBytes>>20)

// Movements returns the movement of each platform with positions: a compiled scenario with its positions and velocities alone.
// A cursor over it gives the same positions at the same times.
//
// Where the scenario has no velocity, it is that to the next position if this comes within 10 s, else 0.
func (s *Scenario) Movements(ctx context.Context) (map[int][]byte, error) {
	return s.movements(ctx, MaxMovementBytes)
}

func (s *Scenario) movements(ctx context.Context, most int) (map[int][]byte, error) {
	m := movements{cursor: s.NewCursor(), platforms: s.platforms, movers: make([]*mover, len(s.platforms)), most: most}
	if s.HasPositions() {
		if err := m.read(ctx); err != nil {
			return nil, err
		}
	}
	return m.write(ctx, s.Duration())
}

// movements follows all platforms through a scenario.
type movements struct {
	cursor    *Cursor
	platforms []int
	movers    []*mover // by index, nil for a platform that has no position yet
	most      int      // the most bytes of all
}

// read applies all moments.
func (m *movements) read(ctx context.Context) error {
	for n := 0; ; n++ {
		at, more := m.cursor.Next()
		if !more {
			return nil
		}
		if n%momentsPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := m.cursor.Seek(at); err != nil {
			return err
		}
		for i := range m.platforms {
			if err := m.follow(i, at); err != nil {
				return err
			}
		}
		if n%momentsPerCheck == 0 && m.kept() > m.most {
			return ErrTooManyPositions
		}
	}
}

// follow takes the position of a platform at a moment.
func (m *movements) follow(i int, at time.Duration) error {
	position, placed := m.cursor.Position(i)
	if !placed {
		return nil
	}
	velocity, known := m.cursor.Velocity(i)
	if m.movers[i] == nil {
		m.movers[i] = &mover{builder: NewBuilder(Options{Sorted: true, InMemory: true}), platform: m.platforms[i], at: at, position: position, velocity: velocity, known: known}
		return nil
	}
	return m.movers[i].move(at, position, velocity, known)
}

// write compiles the movements.
func (m *movements) write(ctx context.Context, duration time.Duration) (map[int][]byte, error) {
	compiled, size := map[int][]byte{}, 0
	for i, one := range m.movers {
		if one == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		content, err := one.finish(duration)
		if err != nil {
			return nil, fmt.Errorf("movement of platform %d: %w", one.platform, err)
		}
		m.movers[i] = nil // it has large buffers
		compiled[one.platform] = content
		if size += len(content); size > m.most {
			return nil, ErrTooManyPositions
		}
	}
	return compiled, nil
}

// kept is the number of bytes that are compressed so far.
func (m *movements) kept() (bytes int) {
	for _, one := range m.movers {
		if one != nil {
			bytes += len(one.builder.moments.memory)
		}
	}
	return bytes
}

// mover is one platform at its last position, which is written with the velocity to the next one.
type mover struct {
	builder  *Builder
	platform int
	at       time.Duration
	position geo.Position
	// velocity of the scenario, if it is known.
	velocity geo.Velocity
	known    bool
}

// move goes on to a position, unless nothing has changed.
func (m *mover) move(at time.Duration, position geo.Position, velocity geo.Velocity, known bool) error {
	if position == m.position && velocity == m.velocity && known == m.known {
		return nil
	}
	next := m.velocity
	if !m.known {
		next = towards(m.position, position, at-m.at)
	}
	if err := m.add(next); err != nil {
		return err
	}
	m.at, m.position, m.velocity, m.known = at, position, velocity, known
	return nil
}

func (m *mover) add(v geo.Velocity) error {
	return errors.Join(m.builder.Position(m.at, m.platform, m.position), m.builder.Velocity(m.at, m.platform, v))
}

// finish adds the last position. The platform stays there unless the scenario has a velocity for it.
func (m *mover) finish(duration time.Duration) ([]byte, error) {
	last := geo.Velocity{}
	if m.known {
		last = m.velocity
	}
	var content bytes.Buffer
	if err := errors.Join(m.add(last), m.builder.Extend(duration)); err != nil {
		return nil, err
	}
	_, err := m.builder.Write(&content)
	return content.Bytes(), err
}

// towards is the velocity of an even movement between two positions; none where it takes too long.
func towards(from, to geo.Position, took time.Duration) geo.Velocity {
	if took <= 0 || took > longestStep {
		return geo.Velocity{}
	}
	return geo.VelocityBetween(from, to, took.Seconds())
}
