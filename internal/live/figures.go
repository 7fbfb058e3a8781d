package live

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Quantiles of the figures, in order.
var Quantiles = []float64{0, 0.25, 0.5, 0.75, 0.95, 1}

// Bounds of the delay buckets in seconds, for quantiles over part of a run.
var Bounds = func() (bounds []float64) {
	for decade := time.Millisecond; decade <= 100*time.Second; decade *= 10 {
		for _, tenths := range []time.Duration{10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82} { // series E12 of IEC 60063
			bounds = append(bounds, (decade * tenths / 10).Seconds())
		}
	}
	return bounds
}()

// delays of a group of deliveries.
type delays struct {
	sketch sketch
	// least is the sketch of the delays without the times in which the radio was late.
	least sketch
	// buckets by Bounds; the last one counts delays above all of them.
	buckets []uint64
	sum     float64
	// lateSum is the sum of the delays less the sum of the least delays.
	lateSum float64
}

func (d *delays) bucket(seconds float64) *uint64 {
	if d.buckets == nil {
		d.buckets = make([]uint64, len(Bounds)+1)
	}
	i, _ := slices.BinarySearch(Bounds, seconds)
	return &d.buckets[i]
}

func (d *delays) add(seconds float64) {
	d.sketch.add(seconds)
	d.least.add(seconds)
	*d.bucket(seconds)++
	d.sum += seconds
}

// remove subtracts a delay, but not from the buckets: rates need counters that only grow.
func (d *delays) remove(seconds, least float64) {
	d.sketch.remove(seconds)
	d.least.remove(least)
	d.sum -= seconds
	d.lateSum -= seconds - least
}

// lower replaces a least delay by a smaller one.
func (d *delays) lower(from, to float64) {
	d.least.remove(from)
	d.least.add(to)
	d.lateSum += from - to
}

// Counts of deliveries. Offered ones are expected, or would be if their messages had been sent.
type Counts struct{ Offered, Expected, Received, Duplicates int64 }

func (c *Counts) add(more Counts) {
	c.Offered += more.Offered
	c.Expected += more.Expected
	c.Received += more.Received
	c.Duplicates += more.Duplicates
}

// Group of deliveries: all, radio, local, cross, or those of a node group's publishers, as in the results.
type Group struct {
	Name string
	Counts
	// DelaySeconds are the Quantiles, SumSeconds the sum of all delays; nil if nothing was received. LeastSeconds are the
	// quantiles without the times in which the radio was late.
	DelaySeconds, LeastSeconds  []float64
	SumSeconds, LeastSumSeconds float64
}

// Sender is an app on a node that sends.
type Sender struct {
	Node, App string
	// Sent messages, and bytes of their content.
	Sent, Bytes int64
	Counts
}

// Receiver is a node that receives.
type Receiver struct {
	Node string
	Counts
}

// Figures of a run so far.
type Figures struct {
	// Messages of all instances that were triggered, and sent.
	Triggered, Sent int64
	// Groups, all first.
	Groups []Group
	// Headline is the headline group: radio, or all if no delivery goes to another node.
	Headline  Group
	Senders   []Sender
	Receivers []Receiver
	// Buckets of the headline group's delays: how many are up to each of Bounds; Count of all, and SumSeconds of them.
	// They include arrivals after the end of the drain, if that was not known yet.
	Buckets    map[float64]uint64
	Count      uint64
	SumSeconds float64
	// LeftOut messages were not counted, because there were too many topics.
	LeftOut int64
}

// Figures returns the present figures.
func (t *Tally) Figures() Figures {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.plan.T0 != nil {
		t.resolveInstances()
	}
	groups, senders, receivers := map[string]*Counts{"all": {}}, map[[2]string]*Sender{}, map[string]*Counts{}
	f := Figures{LeftOut: t.leftOut}
	for i, n := range t.sent {
		f.Sent += n
		if n == 0 {
			continue
		}
		s := getOrNew(senders, [2]string{t.instances[i].node, t.instances[i].app})
		s.Sent += n
		s.Bytes += t.bytes[i]
	}
	f.Triggered = f.Sent
	for i := range t.streams {
		s := &t.streams[i]
		f.Triggered += s.unsent
		from := getOrNew(senders, [2]string{t.instances[s.publisher].node, t.instances[s.publisher].app})
		for slot, to := range s.subscribers {
			counts := Counts{Offered: s.expecting + s.unsent, Expected: s.expecting, Received: s.received[slot], Duplicates: s.duplicates[slot]}
			from.add(counts)
			getOrNew(receivers, t.instances[to.instance].node).add(counts)
			groups["all"].add(counts)
			for _, name := range t.groupsOf(s, slot) {
				getOrNew(groups, name).add(counts)
			}
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(groups), compareGroups) {
		g := Group{Name: name, Counts: *groups[name]}
		if d := t.delaysOf(name); d != nil && d.sketch.count > 0 {
			g.DelaySeconds, g.SumSeconds = d.sketch.quantiles(), d.sum
			g.LeastSeconds, g.LeastSumSeconds = d.least.quantiles(), d.sum-d.lateSum
		}
		f.Groups = append(f.Groups, g)
		if name == "all" || name == "radio" {
			f.Headline = g
		}
	}
	for key, s := range senders {
		s.Node, s.App = key[0], key[1]
		f.Senders = append(f.Senders, *s)
	}
	slices.SortFunc(f.Senders, func(a, b Sender) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.App, b.App)) })
	for _, node := range slices.Sorted(maps.Keys(receivers)) {
		f.Receivers = append(f.Receivers, Receiver{Node: node, Counts: *receivers[node]})
	}
	t.histogram(&f)
	return f
}

func getOrNew[K comparable, V any](all map[K]*V, key K) *V {
	if all[key] == nil {
		all[key] = new(V)
	}
	return all[key]
}

func compareGroups(a, b string) int {
	if (a == "all") != (b == "all") {
		if a == "all" {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

func (t *Tally) delaysOf(group string) *delays {
	if group == "all" {
		return t.all
	}
	return t.groups[group]
}

func (s *sketch) quantiles() []float64 {
	values := make([]float64, len(Quantiles))
	for i, q := range Quantiles {
		values[i] = s.quantile(q)
	}
	return values
}

func (t *Tally) histogram(f *Figures) {
	d := t.delaysOf(f.Headline.Name)
	f.Buckets = make(map[float64]uint64, len(Bounds))
	if d == nil || d.buckets == nil {
		d = &delays{buckets: make([]uint64, len(Bounds)+1)}
	}
	for i, bound := range Bounds {
		f.Count += d.buckets[i]
		f.Buckets[bound] = f.Count
	}
	f.Count += d.buckets[len(Bounds)]
	f.SumSeconds = d.sum
}
