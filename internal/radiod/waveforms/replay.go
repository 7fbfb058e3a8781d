package waveforms

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Network returns the request for a network as it is at a moment, Unix epoch in nanoseconds, and will become by its
// changes, without the other networks of its spectrum. An error names what is wrong; wrong changes are left out, and
// without a usable waveform the radios are silent. They are also silent where the caller says so.
func Network(uid string, spec *v1alpha1.RadioNetworkSpec, now int64, silent bool) (*dataplane.Network, error) {
	r, err := newReplay(spec)
	r.advance(now - r.t0)
	r.silencedByAdministrator = r.silencedByAdministrator || silent
	n := &dataplane.Network{UID: uid, MTU: int(spec.MTU), Now: r.state(), T0: r.t0}
	r.waveform.model(n)
	for before := n.Now; r.next < len(r.changes); {
		change := dataplane.Change{AtNanoseconds: r.changes[r.next].AtNanoseconds}
		r.applyNext()
		after := r.state()
		change.State = changedSince(after, &before)
		n.Later = append(n.Later, change)
		before = after
	}
	return n, err
}

// changedSince leaves out of a state what is as it was before.
func changedSince(s dataplane.State, before *dataplane.State) dataplane.State {
	if s.Links != nil && reflect.DeepEqual(s.Links, before.Links) {
		s.Links = nil
	}
	if s.Radios != nil && maps.Equal(s.Radios.ByNEM, before.Radios.ByNEM) {
		s.Radios = nil // the other radio never changes
	}
	if s.Schedule == before.Schedule {
		s.Schedule = nil
	}
	return s
}

// replay applies a network's changes one after the other.
type replay struct {
	waveform waveform
	// silencedByAdministrator is the administrator's silence, which no change ends; silent is set by changes.
	silencedByAdministrator, silent bool
	t0                              int64 // nanoseconds of the Unix epoch
	changes                         []v1alpha1.TimedRadioChange
	next                            int // of the changes
}

// newReplay begins before the first change. An error names what is wrong; wrong changes are left out, and
// without a usable waveform the radios are silent.
func newReplay(spec *v1alpha1.RadioNetworkSpec) (*replay, error) {
	r := &replay{silencedByAdministrator: spec.Silent}
	if spec.T0 != nil { // without T0 no change happens
		r.t0 = spec.T0.UnixNano()
		r.changes = slices.SortedStableFunc(slices.Values(spec.Changes), func(a, b v1alpha1.TimedRadioChange) int {
			return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds)
		})
	}
	w, err := newWaveform(spec, r.changes)
	if w == nil {
		w, r.silencedByAdministrator = newLinks(spec), true
	}
	r.waveform = w
	return r, err
}

// advance applies the changes up to an offset from T0 in nanoseconds.
func (r *replay) advance(offset int64) {
	for r.next < len(r.changes) && r.changes[r.next].AtNanoseconds <= offset {
		r.applyNext()
	}
}

func (r *replay) applyNext() {
	change := &r.changes[r.next].RadioChange
	if change.Silent != nil {
		r.silent = *change.Silent
	}
	r.waveform.apply(change)
	r.next++
}

// state returns the current state; later changes do not affect it.
func (r *replay) state() (s dataplane.State) {
	r.waveform.state(&s)
	s.Silent = r.silent || r.silencedByAdministrator
	return s
}

// NewlyOverdue returns the changes before the given time, Unix epoch in nanoseconds, that were not known by
// then.
func NewlyOverdue(before, spec *v1alpha1.RadioNetworkSpec, now int64) (overdue []v1alpha1.TimedRadioChange) {
	if spec.T0 == nil {
		return nil
	}
	known := map[int64][]v1alpha1.RadioChange{}
	if before.T0.Equal(spec.T0) {
		for _, c := range before.Changes {
			known[c.AtNanoseconds] = append(known[c.AtNanoseconds], c.RadioChange)
		}
	}
	for _, c := range spec.Changes {
		if spec.T0.UnixNano()+c.AtNanoseconds > now {
			continue
		}
		if !slices.ContainsFunc(known[c.AtNanoseconds], func(k v1alpha1.RadioChange) bool { return equality.Semantic.DeepEqual(k, c.RadioChange) }) {
			overdue = append(overdue, c)
		}
	}
	return overdue
}
