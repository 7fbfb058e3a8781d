package topology

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// bridgeDirection is one direction of a bridge for messages of a topic filter.
type bridgeDirection struct {
	from, to string
	// filter matches the topics without the prefix strip, which is removed; the prefix add is added.
	filter, strip, add string
	// bridge is its place in the spec. A message does not return over the bridge that it came by.
	bridge string
	path   *field.Path
}

// checkBridgeRings refuses bridges that return a message to its broker, where it would circulate for ever. References must
// be valid.
func (t references) checkBridgeRings(spec *v1alpha1.ExperimentSpec) field.ErrorList {
	walk := ringSearch{all: t.bridgeDirections(spec), next: map[string][]sameFilter{}, done: map[searchStep]bool{}}
	for i, p := range walk.all {
		walk.add(i, p)
	}
	for i, p := range walk.all {
		filter := p.strip + p.filter
		if ring := walk.findRing(searchStep{i, filter}); ring != nil {
			return field.ErrorList{field.Invalid(ring[0].path, filter, fmt.Sprintf("the bridges make a ring, %s, in which a message of a topic that matches %s "+
				"circulates for ever: leave out one of the bridges, or use topics or directions that do not lead back", describeRing(ring), filter))}
		}
	}
	return nil
}

func (t references) bridgeDirections(spec *v1alpha1.ExperimentSpec) (all []bridgeDirection) {
	for i, app := range spec.Apps {
		if app.Mosquitto == nil {
			continue
		}
		for _, node := range t.NodesRunning(app.Name) {
			for j, bridge := range app.Mosquitto.Bridges {
				peer, err := t.BridgePeer(node, bridge)
				if err != nil {
					continue // CheckReferences reports it
				}
				path := field.NewPath("spec", "apps").Index(i).Child("mosquitto", "bridges").Index(j).Child("to")
				p := bridgeDirection{from: brokerName(node.Name, app.Name), to: brokerName(peer.Name, bridge.To), bridge: node.Name + path.String(), path: path}
				all = append(all, p.directions(bridge.Topics)...)
			}
		}
	}
	return all
}

// directions of a bridge, from its broker's side. Without topics it carries everything in both directions.
func (p bridgeDirection) directions(topics []v1alpha1.BridgeTopic) (all []bridgeDirection) {
	if len(topics) == 0 {
		topics = []v1alpha1.BridgeTopic{{Filter: "#"}}
	}
	back := p
	back.from, back.to = p.to, p.from
	for _, topic := range topics {
		p.filter, p.strip, p.add = topic.Filter, topic.LocalPrefix, topic.RemotePrefix
		back.filter, back.strip, back.add = p.filter, p.add, p.strip
		if topic.Direction != "in" {
			all = append(all, p)
		}
		if topic.Direction != "out" {
			all = append(all, back)
		}
	}
	return all
}

// searchStep is a step of a path: the index of the next direction, and a filter that the messages' topics match before it.
type searchStep struct {
	direction int
	topics    string
}

const (
	// maxRingLength is more than the longest chain of bridges. A longer path is a ring in which prefixes add up.
	maxRingLength = 300
	// maxSearchSteps limits the search, as prefixes may cause very many steps.
	maxSearchSteps = 300_000
)

// ringSearch searches paths over bridges, of which each differs from the one before.
type ringSearch struct {
	all  []bridgeDirection
	next map[string][]sameFilter // by the broker where they begin
	done map[searchStep]bool
	path []searchStep
}

// sameFilter are directions for the same topics, which many nodes may have: their filter is compared once.
type sameFilter struct {
	filter     string
	directions []int
}

func (w *ringSearch) add(i int, p bridgeDirection) {
	filter, next := p.strip+p.filter, w.next[p.from]
	at := slices.IndexFunc(next, func(o sameFilter) bool { return o.filter == filter })
	if at < 0 {
		at, next = len(next), append(next, sameFilter{filter: filter})
	}
	next[at].directions = append(next[at].directions, i)
	w.next[p.from] = next
}

// findRing returns directions that lead from a broker back to it, nil if none begins with the step.
func (w *ringSearch) findRing(s searchStep) []bridgeDirection {
	again := slices.Index(w.path, s)
	if len(w.path) == maxRingLength {
		again = slices.IndexFunc(w.path, func(o searchStep) bool { return o.direction == s.direction })
	}
	if again >= 0 {
		return w.firstRing(w.path[again:])
	}
	p := w.all[s.direction]
	bare, passes := strings.CutPrefix(s.topics, p.strip)
	if !passes || w.done[s] || len(w.done) > maxSearchSteps || len(w.path) == maxRingLength {
		return nil
	}
	w.path = append(w.path, s)
	for _, same := range w.next[p.to] {
		if !covers(same.filter, p.add+bare) {
			continue
		}
		for _, i := range same.directions {
			if w.all[i].bridge == p.bridge {
				continue
			}
			if ring := w.findRing(searchStep{i, p.add + bare}); ring != nil {
				return ring
			}
		}
	}
	w.path, w.done[s] = w.path[:len(w.path)-1], true
	return nil
}

// firstRing are the directions of a path until it reaches its first broker again.
func (w *ringSearch) firstRing(steps []searchStep) (ring []bridgeDirection) {
	for _, s := range steps {
		p := w.all[s.direction]
		if ring = append(ring, p); p.to == ring[0].from {
			break
		}
	}
	return ring
}

func describeRing(ring []bridgeDirection) string {
	text := ring[0].from
	for _, p := range ring {
		text += " to " + p.to
	}
	return text
}

// covers reports whether every topic that matches the narrow filter matches the wide one.
func covers(wide, narrow string) bool {
	w, n := strings.Split(wide, "/"), strings.Split(narrow, "/")
	for i, level := range w {
		switch {
		case level == "#":
			return true
		case i >= len(n), n[i] == "#", level != "+" && level != n[i]:
			return false
		}
	}
	return len(w) == len(n)
}
