package compile

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/terrain"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Moments at which pathloss is wanted, in order: that of all pairs, and that of one pair of platforms, by their numbers.
type Moments struct {
	All, OfPair []time.Duration
	Pair        [2]int
}

// within reports whether one of some moments lies in a time until, but not at, its end. An open time has no end.
func within(moments []time.Duration, from, end time.Duration, open bool) bool {
	i, _ := slices.BinarySearch(moments, from)
	return i < len(moments) && (open || moments[i] < end)
}

// Store keeps a scenario in memory.
type Store interface {
	io.Writer
	Bytes() []byte
}

// Prepared is a scenario whose sources were read, so that pathloss can be computed at any moments. Several may use it at once.
type Prepared struct {
	compilation compilation
	movement    *scenario.Scenario
	bytes       int64
	// propagator is nil for a scenario without propagation, which has the result already.
	propagator *propagator
	result     Result
}

// Prepare reads the sources of a spec into a store. Errors are as those of Compile.
func Prepare(ctx context.Context, spec v1alpha1.ScenarioSpec, open Open, store Store) (*Prepared, error) {
	return run(ctx, spec, open, func(c *compilation) (*Prepared, error) { return c.prepare(store) })
}

func (c *compilation) prepare(store Store) (p *Prepared, err error) {
	b := scenario.NewBuilder(scenario.Options{Sorted: c.spec.Format == v1alpha1.ScenarioSynthetic, Context: c.ctx})
	defer b.Close()
	if err := c.read(b); err != nil {
		return nil, err
	}
	p = &Prepared{}
	if c.spec.Propagation == nil {
		p.result, err = c.finish(b, store)
	} else {
		_, err = b.Write(store)
	}
	if err != nil {
		return nil, err
	}
	p.bytes = int64(len(store.Bytes()))
	if p.movement, err = scenario.Open(bytes.NewReader(store.Bytes()), p.bytes); err != nil {
		return nil, err
	}
	if c.spec.Propagation != nil {
		if p.propagator, err = c.checkedPropagator(p.movement); err != nil {
			return nil, err
		}
	}
	p.compilation = *c
	p.compilation.open = nil // its sources were read
	return p, nil
}

// Duration of the movement.
func (p *Prepared) Duration() time.Duration { return p.movement.Duration() }

// Bytes of memory, about.
func (p *Prepared) Bytes() int64 {
	all := p.bytes
	if p.propagator != nil {
		if grid, is := p.propagator.ground.(*terrain.Grid); is {
			all += 4 * int64(grid.Columns) * int64(grid.Rows)
		}
	}
	return all
}

// At returns the scenario with the pathloss of some moments. It is as the compiled one then, within ResolutionDB. Where the sources
// have pathloss of their own, it has all of it.
func (p *Prepared) At(ctx context.Context, wanted Moments, store Store) (*scenario.Scenario, Result, error) {
	if p.propagator == nil {
		return p.movement, p.result, nil
	}
	// Each use adds to maps and slices of its own. The antennas and the terrain are only read.
	c := p.compilation
	c.ctx, c.unknown, c.warnings = ctx, maps.Clone(c.unknown), slices.Clone(c.warnings)
	own := *p.propagator
	own.sampled = true
	own.begin()
	result, err := c.propagated(&own, &wanted, store)
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return nil, Result{}, err
	}
	s, err := scenario.Open(bytes.NewReader(store.Bytes()), int64(len(store.Bytes())))
	return s, result, err
}

// sample computes and records what is wanted of the moments from t until the next change.
func (p *propagator) sample(ctx context.Context, t time.Duration, cursor *scenario.Cursor, wanted *Moments, out *scenario.Builder) error {
	next, more := following(t, cursor)
	if within(wanted.All, t, next, !more) {
		p.compute(ctx)
		return cmp.Or(ctx.Err(), p.record(t, out))
	}
	i, known := p.movement.Index(wanted.Pair[0])
	j, also := p.movement.Index(wanted.Pair[1])
	i, j = max(i, j), min(i, j)
	if !known || !also || i == j || !within(wanted.OfPair, t, next, !more) || !p.hasMoved(i, j) {
		return nil
	}
	p.computePair(i, j)
	return p.recordPair(t, i, j, out)
}
