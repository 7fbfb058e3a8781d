package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// span of numbers, with both ends.
type span struct{ from, to int64 }

func (s span) draw(random *rand.Rand) int64 { return s.from + random.Int64N(s.to-s.from+1) }

// sizes of experiments on a shared testbed, with their share, pods and minutes.
var sizes = []struct {
	name          string
	share         float64
	pods, minutes span
}{
	{"small", 0.7, span{6, 30}, span{10, 30}},
	{"medium", 0.2, span{60, 121}, span{20, 60}},
	{"battalions", 0.1, span{243, 243}, span{30, 120}},
}

const (
	testbedPods        = 300
	testbedExperiments = 120
	testbedSeeds       = 20
)

// request is an experiment of a testbed. took is how long it runs, at most lasts.
type request struct {
	arrives     time.Time
	size        int
	team        string
	pods        int64
	lasts, took time.Duration
}

// requestsOf are a testbed's experiments, which arrive every 8 minutes on average.
func requestsOf(seed uint64) (requests []request) {
	random := rand.New(rand.NewPCG(seed, 2))
	at := noon
	for range testbedExperiments {
		at = at.Add(time.Duration(random.ExpFloat64() * float64(8*time.Minute)))
		size := 0
		for share := random.Float64(); size < len(sizes)-1 && share >= sizes[size].share; size++ {
			share -= sizes[size].share
		}
		s := sizes[size]
		lasts := time.Duration(s.minutes.draw(random)) * time.Minute
		requests = append(requests, request{
			arrives: at, size: size, team: string(rune('a' + random.IntN(4))), pods: s.pods.draw(random),
			lasts: lasts, took: time.Duration((0.8 + 0.2*random.Float64()) * float64(lasts)),
		})
	}
	return requests
}

// testbed carries out requests. In strict order nothing starts before the first in the queue.
type testbed struct {
	*simulation
	strict   bool
	requests map[string]request
	// waits by size.
	waits [][]time.Duration
}

func newTestbed(t *testing.T, seed uint64, strict bool) *testbed {
	w := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 3)), now: noon, kinds: NewResourceKinds(), quotas: map[string][]Quota{}}
	for i := range 3 {
		amount := Amount{testbedPods / 3, 1 << 40, 1 << 20, Unlimited}
		w.hosts = append(w.hosts, Host{Name: fmt.Sprint("n", i), Allocatable: amount, Free: slices.Clone(amount)})
	}
	return &testbed{simulation: w, strict: strict, requests: map[string]request{}, waits: make([][]time.Duration, len(sizes))}
}

// carryOut all requests. It decides at each arrival and each end.
func (b *testbed) carryOut(requests []request) {
	for len(requests) > 0 || len(b.running) > 0 {
		b.now = b.nextEvent(requests)
		b.running = slices.DeleteFunc(b.running, func(r runningExperiment) bool {
			over := !r.ends.After(b.now)
			if over {
				b.changeRoom(&r.run, 1)
			}
			return over
		})
		for len(requests) > 0 && !requests[0].arrives.After(b.now) {
			name := b.arrive(requests[0].team, 0, requests[0].lasts, Shape{Count: requests[0].pods, Each: Amount{1, 1 << 28, 100, 0}})
			b.requests[name] = requests[0]
			requests = requests[1:]
		}
		b.startAdmitted()
	}
	if len(b.waiting) > 0 {
		b.t.Errorf("%d experiments wait for an empty cluster", len(b.waiting))
	}
}

func (b *testbed) nextEvent(requests []request) time.Time {
	var next time.Time
	if len(requests) > 0 {
		next = requests[0].arrives
	}
	for _, r := range b.running {
		if next.IsZero() || r.ends.Before(next) {
			next = r.ends
		}
	}
	return next
}

func (b *testbed) startAdmitted() {
	s := b.snapshot()
	decisions := Decide(s)
	b.keepReservations(s, decisions)
	order := make([]int, len(decisions))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return decisions[i].Position - decisions[j].Position })
	for _, i := range order {
		waiter := &s.Waiters[i]
		if !decisions[i].Admitted {
			if b.strict {
				return
			}
			continue
		}
		asked := b.requests[waiter.Name]
		run := Run{Identity: waiter.Identity, Started: b.now, Ends: b.now.Add(asked.lasts), Holds: decisions[i].holds, Claim: waiter.Demand.Claim}
		b.changeRoom(&run, -1)
		b.running = append(b.running, runningExperiment{run: run, ends: b.now.Add(asked.took)})
		b.waiting = slices.DeleteFunc(b.waiting, func(other Waiter) bool { return other.Name == waiter.Name })
		b.waits[asked.size] = append(b.waits[asked.size], b.now.Sub(asked.arrives))
	}
}

// busy is the share of the pods' time in use, from the first arrival to the last end.
func (b *testbed) busy(requests []request) float64 {
	used := 0.0
	for _, r := range requests {
		used += float64(r.pods) * r.took.Seconds()
	}
	return used / testbedPods / b.now.Sub(requests[0].arrives).Seconds()
}

func meanMinutes(waits []time.Duration) float64 {
	sum := 0.0
	for _, wait := range waits {
		sum += wait.Minutes()
	}
	return sum / float64(len(waits))
}

// TestBackfillingShortensWaitsAndDelaysNoLargeExperiments has the figures of docs/adr/0015.
func TestBackfillingShortensWaitsAndDelaysNoLargeExperiments(t *testing.T) {
	var waits [2][][]time.Duration
	var busy [2]float64
	for i, strict := range []bool{false, true} {
		waits[i] = make([][]time.Duration, len(sizes))
		for seed := range uint64(testbedSeeds) {
			b, requests := newTestbed(t, seed, strict), requestsOf(seed)
			b.carryOut(requests)
			busy[i] += b.busy(requests) / testbedSeeds
			for size, of := range b.waits {
				waits[i][size] = append(waits[i][size], of...)
			}
		}
	}
	t.Logf("%-26s %16s %16s", "", "with backfilling", "strictly in order")
	row := func(name, unit string, of func(i int) float64) {
		t.Logf("%-26s %12.0f %s %12.0f %s", name, of(0), unit, of(1), unit)
	}
	all := [2][]time.Duration{slices.Concat(waits[0]...), slices.Concat(waits[1]...)}
	row("mean wait", "min", func(i int) float64 { return meanMinutes(all[i]) })
	row("95th percentile", "min", func(i int) float64 {
		sorted := slices.Sorted(slices.Values(all[i]))
		return sorted[len(sorted)*95/100].Minutes()
	})
	for size, s := range sizes {
		row("mean wait of "+s.name, "min", func(i int) float64 { return meanMinutes(waits[i][size]) })
		if with, without := meanMinutes(waits[0][size]), meanMinutes(waits[1][size]); with > without {
			t.Errorf("%s wait %.1f min on average with backfilling; strictly in order %.1f min", s.name, with, without)
		}
	}
	row("pods in use", "%", func(i int) float64 { return 100 * busy[i] })
	if with, without := meanMinutes(all[0]), meanMinutes(all[1]); with >= without {
		t.Errorf("the mean wait is %.1f min with backfilling; strictly in order %.1f min", with, without)
	}
}
