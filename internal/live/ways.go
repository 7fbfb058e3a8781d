package live

import (
	"slices"
	"strings"

	"vignette.dev/vignette/internal/runapi"
)

// mediatorKind of apps that take messages from one broker to another. Passages do not name them.
const mediatorKind = "mediator"

// ways over a node, by the rule of the analysis (ways.py in analysis/vignette_analysis/figures): which deliveries it takes part in.
type ways struct {
	// there has the instances on the node, or whose broker is.
	there   []bool
	brokers []wayOver
	// mediates is set if the node has a mediator.
	mediates bool
}

// wayOver one broker: its own clients, those whose messages get to it, and those that it leads to.
type wayOver struct {
	own, before, after []bool
	// sides have the clients of brokers that only one passage joins to this one: what stays there does not come over it.
	sides [][]bool
}

// neighbours of brokers by the plan's passages, whatever topics these carry.
type neighbours map[string][]string

func (n neighbours) reached(from, without string) map[string]bool {
	found, ahead := map[string]bool{from: true}, []string{from}
	for len(ahead) > 0 {
		at := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		for _, next := range n[at] {
			if next != without && !found[next] {
				found[next], ahead = true, append(ahead, next)
			}
		}
	}
	return found
}

func waysOver(node string, plan *runapi.Plan, instances []instance) *ways {
	w := &ways{there: clients(instances, func(i *instance) bool { return i.node == node || i.brokerNode == node })}
	ahead, behind, both, names := neighbours{}, neighbours{}, neighbours{}, map[string]bool{}
	for _, p := range plan.Passages {
		ahead[p.From], behind[p.To] = append(ahead[p.From], p.To), append(behind[p.To], p.From)
		both[p.From], both[p.To] = append(both[p.From], p.To), append(both[p.To], p.From)
		names[p.From], names[p.To] = true, true
	}
	for i := range instances {
		for _, broker := range instances[i].brokers {
			names[broker] = true
		}
	}
	for _, n := range plan.Nodes {
		for _, app := range n.Apps {
			w.mediates = w.mediates || n.Name == node && app.Kind == mediatorKind
		}
	}
	for name := range names {
		if !strings.HasPrefix(name, node+"/") {
			continue
		}
		over := wayOver{own: clients(instances, func(i *instance) bool { return slices.Contains(i.brokers, name) })}
		over.before, over.after = someOf(instances, behind.reached(name, "")), someOf(instances, ahead.reached(name, ""))
		for _, next := range both[name] {
			side := both.reached(next, name)
			if !slices.ContainsFunc(both[name], func(other string) bool { return other != next && side[other] }) {
				over.sides = append(over.sides, allOf(instances, side))
			}
		}
		w.brokers = append(w.brokers, over)
	}
	return w
}

func clients(instances []instance, are func(*instance) bool) []bool {
	found := make([]bool, len(instances))
	for i := range instances {
		found[i] = are(&instances[i])
	}
	return found
}

// someOf are the clients of one of these brokers at least.
func someOf(instances []instance, brokers map[string]bool) []bool {
	return clients(instances, func(i *instance) bool {
		return slices.ContainsFunc(i.brokers, func(b string) bool { return brokers[b] })
	})
}

// allOf are the clients of these brokers alone.
func allOf(instances []instance, brokers map[string]bool) []bool {
	return clients(instances, func(i *instance) bool {
		return len(i.brokers) > 0 && !slices.ContainsFunc(i.brokers, func(b string) bool { return !brokers[b] })
	})
}

// carry reports whether a delivery may have come over the node.
func (w *ways) carry(instances []instance, publisher, subscriber int) bool {
	if w.there[publisher] || w.there[subscriber] {
		return true
	}
	from, to := instances[publisher].brokers, instances[subscriber].brokers
	if w.mediates && len(from) > 0 && len(to) > 0 && !slices.ContainsFunc(from, func(b string) bool { return slices.Contains(to, b) }) {
		return true
	}
	return slices.ContainsFunc(w.brokers, func(over wayOver) bool {
		if over.own[publisher] || over.own[subscriber] {
			return true
		}
		within := slices.ContainsFunc(over.sides, func(side []bool) bool { return side[publisher] && side[subscriber] })
		return over.before[publisher] && over.after[subscriber] && !within
	})
}

// waysOver a node whose radio was late.
func (t *Tally) waysOver(node string) *ways {
	if t.ways[node] == nil {
		t.ways[node] = waysOver(node, &t.plan, t.instances)
	}
	return t.ways[node]
}

// lateNodesOf a delivery are the late nodes that take part in it, and "" for all.
func (t *Tally) lateNodesOf(s *stream, slot int) []string {
	to := &s.subscribers[slot]
	for ; to.lateKnown < len(t.lateNodes); to.lateKnown++ {
		if node := t.lateNodes[to.lateKnown]; node == "" || t.waysOver(node).carry(t.instances, s.publisher, to.instance) {
			to.lateNodes = append(to.lateNodes, node)
		}
	}
	return to.lateNodes
}
