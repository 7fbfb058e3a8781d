package live

import (
	"slices"

	"vignette.dev/vignette/internal/runapi"
)

// maxLateTimes that are kept of one node, or of all: the newest ones.
const maxLateTimes = 4096

// lateTime is a time in which a radio was late, Unix nanoseconds.
type lateTime struct{ from, to int64 }

// lateTimes are disjoint and in ascending order.
type lateTimes []lateTime

// add a time, merged with those that it overlaps.
func (l *lateTimes) add(from, to int64) {
	first, _ := slices.BinarySearchFunc(*l, from, func(one lateTime, from int64) int { return compareTimes(one.to, from) })
	last := first
	for ; last < len(*l) && (*l)[last].from <= to; last++ {
		from, to = min(from, (*l)[last].from), max(to, (*l)[last].to)
	}
	*l = slices.Replace(*l, first, last, lateTime{from, to})
	if surplus := len(*l) - maxLateTimes; surplus > 0 {
		*l = slices.Delete(*l, 0, surplus)
	}
}

func compareTimes(a, b int64) int {
	if a < b {
		return -1
	}
	return 1 // times that only touch are merged too
}

// heldUpNanoseconds is how long these times held up a delivery, by the rule of the analysis (held_up in bounds.py).
// A time that ended shortly before counts too, as it filled a queue: within the delivery's delay before it was sent.
func (l lateTimes) heldUpNanoseconds(sent, received int64) (late int64) {
	first, _ := slices.BinarySearchFunc(l, 2*sent-received, func(one lateTime, reach int64) int { return compareTimes(one.to, reach) })
	for _, one := range l[first:] {
		if one.from >= received {
			break
		}
		late += min(received, one.to) - one.from
	}
	return late
}

// Late adds a time in which the radio was late: a host's affects all deliveries, a node's those that it sends, receives or
// may carry as a broker, also on the way. In a routed network any node may relay, so that all are affected.
func (t *Tally) Late(network, node string, from, to int64) {
	if to <= from {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if node != "" && isRouted(&t.plan, network) {
		node = ""
	}
	times, known := t.late[node]
	if !known {
		t.lateNodes = append(t.lateNodes, node)
	}
	times.add(from, to)
	t.late[node] = times
	for i := range t.recent {
		d := &t.recent[i]
		if d.ts > from && 2*d.sent-d.ts <= to && (node == "" || t.involves(d, node)) {
			t.applyLateTimes(d)
		}
	}
}

func isRouted(plan *runapi.Plan, network string) bool {
	for i := range plan.Spec.Networks {
		if n := &plan.Spec.Networks[i]; n.Name == network {
			return n.Routing != nil
		}
	}
	return true
}

// involves reports whether a node takes part in a delivery.
func (t *Tally) involves(d *delivery, node string) bool {
	s := &t.streams[d.stream]
	return t.waysOver(node).carry(t.instances, s.publisher, s.subscribers[d.slot].instance)
}

// applyLateTimes counts a delivery's least delay without the radio's lateness.
func (t *Tally) applyLateTimes(d *delivery) {
	s := &t.streams[d.stream]
	if s.subscribers[d.slot].local {
		return
	}
	var late int64
	for _, node := range t.lateNodesOf(s, int(d.slot)) {
		late += t.late[node].heldUpNanoseconds(d.sent, d.ts)
	}
	late = max(0, min(late, d.ts-d.sent))
	if late == d.late {
		return
	}
	before := d.leastDelay()
	d.late = late
	t.eachDelays(s, int(d.slot), func(l *delays) { l.lower(before, d.leastDelay()) })
}
