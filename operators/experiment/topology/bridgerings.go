package topology

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// passage is one way over a bridge for messages of a topic filter.
type passage struct {
	from, to, filter string
	// bridge is its place in the spec; a message does not go back over the bridge that it came by.
	bridge string
	path   *field.Path
}

// checkBridgeRings refuses bridges that bring a message back to its broker. It would go round for ever. References must be good.
func (t *Topology) checkBridgeRings(spec *v1alpha1.ExperimentSpec) field.ErrorList {
	all := t.passages(spec)
	tried := map[string]bool{}
	for _, p := range all {
		if tried[p.filter] {
			continue
		}
		tried[p.filter] = true
		// What matches this filter takes all of these ways.
		open := slices.DeleteFunc(slices.Clone(all), func(o passage) bool { return !covers(o.filter, p.filter) })
		if ring := findRing(open); ring != nil {
			return field.ErrorList{field.Invalid(ring[0].path, p.filter, fmt.Sprintf("the bridges make a ring, %s, in which a message of a topic that matches %s "+
				"goes round for ever: leave out one of the bridges, or take topics or directions that do not lead back", names(ring), p.filter))}
		}
	}
	return nil
}

func (t *Topology) passages(spec *v1alpha1.ExperimentSpec) (all []passage) {
	for i, app := range spec.Apps {
		if app.Mosquitto == nil {
			continue
		}
		for _, node := range t.Hosts(app.Name) {
			for j, bridge := range app.Mosquitto.Bridges {
				peer, err := t.BridgePeer(node, bridge)
				if err != nil {
					continue // has been said
				}
				path := field.NewPath("spec", "apps").Index(i).Child("mosquitto", "bridges").Index(j).Child("to")
				p := passage{brokerName(node.Name, app.Name), brokerName(peer.Name, bridge.To), "", node.Name + path.String(), path}
				all = append(all, p.ways(bridge.Topics)...)
			}
		}
	}
	return all
}

// ways over a bridge from its broker's side. Without topics everything crosses it, both ways.
func (p passage) ways(topics []v1alpha1.BridgeTopic) (all []passage) {
	if len(topics) == 0 {
		topics = []v1alpha1.BridgeTopic{{Filter: "#"}}
	}
	back := p
	back.from, back.to = p.to, p.from
	for _, topic := range topics {
		p.filter, back.filter = topic.Filter, topic.Filter
		if topic.Direction != "in" {
			all = append(all, p)
		}
		if topic.Direction != "out" {
			all = append(all, back)
		}
	}
	return all
}

// findRing gives ways that lead from a broker back to it, each over another bridge than the one before; nil where there are none.
func findRing(all []passage) []passage {
	next := map[string][]passage{}
	for _, p := range all {
		next[p.from] = append(next[p.from], p)
	}
	done := map[passage]bool{}
	var under []passage
	var visit func(p passage) []passage
	visit = func(p passage) []passage {
		if i := slices.Index(under, p); i >= 0 {
			return slices.Clone(under[i:])
		}
		if done[p] {
			return nil
		}
		under = append(under, p)
		for _, n := range next[p.to] {
			if n.bridge == p.bridge {
				continue
			}
			if ring := visit(n); ring != nil {
				return ring
			}
		}
		under, done[p] = under[:len(under)-1], true
		return nil
	}
	for _, p := range all {
		if ring := visit(p); ring != nil {
			return ring
		}
	}
	return nil
}

func names(ring []passage) string {
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
