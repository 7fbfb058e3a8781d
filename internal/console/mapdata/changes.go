package mapdata

import (
	"cmp"
	"math"
	"slices"
	"time"

	"vignette.dev/vignette/internal/linkbudget"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Jammer from a change of the timeline or by hand until it ends.
type Jammer struct {
	Network     string  `json:"network"`
	Name        string  `json:"name"`
	FromSeconds float64 `json:"fromSeconds"`
	// ToSeconds is null for one that does not end before the run.
	ToSeconds *float64 `json:"toSeconds"`
	// Latitude and Longitude are null for a jammer with the same pathloss to all nodes.
	Latitude  *float64 `json:"latitude"`
	Longitude *float64 `json:"longitude"`
	// Power with its unit, such as 30dBm.
	Power string `json:"power"`
	// RangeMetres up to which radios as in the waveform have it above their own noise, so that it counts, at most about 1000 km.
	// Null for a jammer without a position, and for one that disturbs nobody.
	RangeMetres *float64 `json:"rangeMetres"`
}

// Silence is a time in which radios do not transmit.
type Silence struct {
	Network string `json:"network"`
	// Node is null for all of the network, which then receive nothing either.
	Node        *string `json:"node"`
	FromSeconds float64 `json:"fromSeconds"`
	// ToSeconds is null for one that does not end before the run.
	ToSeconds *float64 `json:"toSeconds"`
}

// Happening is a change of a network.
type Happening struct {
	AtSeconds float64 `json:"atSeconds"`
	Network   string  `json:"network"`
	// Nodes whose radios or links change; empty for all.
	Nodes []string `json:"nodes"`
	// What changes in plain words.
	What string `json:"what"`
	// Change as in the object.
	Change v1alpha1.RadioChange `json:"change"`
}

// changes of the run's networks, in order of time.
func (r *run) changes() (jammers []Jammer, silences []Silence, happened []Happening) {
	l := ledger{jammers: []Jammer{}, silences: []Silence{}}
	happened = []Happening{}
	for i := range r.networks {
		spec := &r.networks[i]
		for k := range spec.Changes {
			change := &spec.Changes[k]
			l.apply(spec, change)
			happened = append(happened, Happening{AtSeconds: seconds(change), Network: spec.Network, Nodes: named(spec, change.From), What: what(&change.RadioChange), Change: change.RadioChange})
		}
	}
	slices.SortStableFunc(l.jammers, func(a, b Jammer) int { return cmp.Compare(a.FromSeconds, b.FromSeconds) })
	slices.SortStableFunc(l.silences, func(a, b Silence) int { return cmp.Compare(a.FromSeconds, b.FromSeconds) })
	slices.SortStableFunc(happened, func(a, b Happening) int { return cmp.Compare(a.AtSeconds, b.AtSeconds) })
	return l.jammers, l.silences, happened
}

func seconds(change *v1alpha1.TimedRadioChange) float64 {
	return time.Duration(change.AtNanoseconds).Seconds()
}

// named are the members that a change's name means; none for all of them.
func named(spec *v1alpha1.RadioNetworkSpec, name string) []string {
	nodes := []string{}
	if name == "" || name == v1alpha1.EveryNode {
		return nodes
	}
	for i := range spec.Members {
		if spec.Members[i].IsCalled(name) {
			nodes = append(nodes, spec.Members[i].Node)
		}
	}
	return nodes
}

func what(change *v1alpha1.RadioChange) string {
	switch {
	case change.Jammer != nil && change.Jammer.Ended():
		return "jammer " + change.Jammer.Name + " ends"
	case change.Jammer != nil:
		return "jammer " + change.Jammer.Name
	case change.Silent != nil && *change.Silent:
		return "all radios are silent"
	case change.Silent != nil:
		return "the radios are no longer silent"
	case change.Radio != nil && change.Radio.Transmit != nil && !*change.Radio.Transmit:
		return "radio silence"
	case change.Radio != nil && change.Radio.Transmit != nil:
		return "radio silence ends"
	case change.Radio != nil:
		return "radios change"
	case change.Schedule != "":
		return "schedule changes"
	}
	return "link changes"
}

// ledger has what began, with its end as far as it has come.
type ledger struct {
	jammers  []Jammer
	silences []Silence
}

// apply a change; those of one network come in order of time.
func (l *ledger) apply(spec *v1alpha1.RadioNetworkSpec, change *v1alpha1.TimedRadioChange) {
	at := seconds(change)
	if change.Jammer != nil {
		l.jam(spec, at, change.Jammer)
	}
	if change.Silent != nil {
		l.silence(spec.Network, nil, at, *change.Silent)
	}
	if change.Radio == nil || change.Radio.Transmit == nil {
		return
	}
	for i := range spec.Members {
		if change.From == "" || spec.Members[i].IsCalled(change.From) {
			l.silence(spec.Network, &spec.Members[i].Node, at, !*change.Radio.Transmit)
		}
	}
}

// jam begins a jammer, and ends the one of the same name.
func (l *ledger) jam(spec *v1alpha1.RadioNetworkSpec, at float64, j *v1alpha1.Jammer) {
	network := spec.Network
	for i := range l.jammers {
		if before := &l.jammers[i]; before.Network == network && before.Name == j.Name && before.ToSeconds == nil {
			before.ToSeconds = &at
		}
	}
	if j.Ended() {
		return
	}
	made := Jammer{Network: network, Name: j.Name, FromSeconds: at}
	if j.Power != nil {
		made.Power = string(*j.Power)
	}
	if j.Position != nil {
		latitude, longitude := j.Position.Latitude.Float(), j.Position.Longitude.Float()
		made.Latitude, made.Longitude = &latitude, &longitude
	}
	if metres, known := linkbudget.JammerMetres(spec, j); known {
		metres = math.Round(metres)
		made.RangeMetres = &metres
	}
	l.jammers = append(l.jammers, made)
}

// silence begins or ends that of a node, or of a network without one.
func (l *ledger) silence(network string, node *string, at float64, silent bool) {
	open := slices.IndexFunc(l.silences, func(s Silence) bool {
		return s.Network == network && s.ToSeconds == nil && (s.Node == nil) == (node == nil) && (node == nil || *s.Node == *node)
	})
	switch {
	case silent && open < 0:
		l.silences = append(l.silences, Silence{Network: network, Node: node, FromSeconds: at})
	case !silent && open >= 0:
		l.silences[open].ToSeconds = &at
	}
}
