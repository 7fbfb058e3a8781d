package waveforms

import (
	"cmp"
	"maps"
	"slices"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/spectrum"
)

// AddNeighbours adds to a request the radios of the other networks of its spectrum, as they are at the same moment and
// will become by their own changes. An error of a neighbour is its own request's. The networks get T0 one
// after the other; until both have the same, the times of a neighbour's changes are unknown here, and they are left out.
func AddNeighbours(n *dataplane.Network, neighbours []spectrum.Neighbour, now int64) {
	if n.Now.Radios == nil || len(neighbours) == 0 {
		return
	}
	all := []source{{radios: n.Now.Radios.ByNEM, changes: n.Later}}
	for i := range neighbours {
		other := &neighbours[i]
		if r, _ := Network("", &other.Spec, now, false); r.Now.Radios != nil {
			from := source{radios: seen(other, r.Now.Radios)}
			if r.T0 == n.T0 {
				from.changes = seenChanges(other, r.Later)
			}
			all = append(all, from)
		}
	}
	n.Now.Radios = combine(all, n.Now.Radios.Other)
	n.Later = combineChanges(n, all)
}

// source is a network whose radios are in a request.
type source struct {
	radios  map[int]dataplane.Radio // now
	changes []dataplane.Change
}

// seen returns a neighbour's radios as the network knows them.
func seen(other *spectrum.Neighbour, radios *dataplane.Radios) map[int]dataplane.Radio {
	all := make(map[int]dataplane.Radio, len(radios.ByNEM))
	for nem, r := range radios.ByNEM {
		r.SubID = other.SubID()
		all[other.Offset+nem] = r
	}
	return all
}

// seenChanges returns the changes of a neighbour's radios as the network knows them.
func seenChanges(other *spectrum.Neighbour, changes []dataplane.Change) (all []dataplane.Change) {
	for i := range changes {
		if r := changes[i].Radios; r != nil {
			all = append(all, dataplane.Change{AtNanoseconds: changes[i].AtNanoseconds, State: dataplane.State{Radios: &dataplane.Radios{ByNEM: seen(other, r)}}})
		}
	}
	return all
}

func combine(all []source, other dataplane.Radio) *dataplane.Radios {
	r := &dataplane.Radios{ByNEM: map[int]dataplane.Radio{}, Other: other}
	for i := range all {
		maps.Copy(r.ByNEM, all[i].radios)
	}
	return r
}

// combineChanges merges the changes of all sources in order of time. The first source is the network itself. A change of a
// neighbour leaves the network's silence, delays and schedule alone.
func combineChanges(n *dataplane.Network, all []source) (merged []dataplane.Change) {
	type change struct {
		*dataplane.Change
		source int
	}
	var order []change
	for i := range all {
		for k := range all[i].changes {
			order = append(order, change{&all[i].changes[k], i})
		}
	}
	slices.SortStableFunc(order, func(a, b change) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
	own, other := n.Now, n.Now.Radios.Other
	for _, c := range order {
		next := dataplane.Change{AtNanoseconds: c.AtNanoseconds, State: c.State}
		if c.Radios != nil {
			all[c.source].radios = c.Radios.ByNEM
		}
		if c.source == 0 {
			own = c.State
		} else {
			next.Neighbour, next.State = true, dataplane.State{Silent: own.Silent, Delay: own.Delay, Jitter: own.Jitter}
		}
		if c.Radios != nil {
			next.Radios = combine(all, other)
		}
		merged = append(merged, next)
	}
	return merged
}
