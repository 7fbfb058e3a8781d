package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// tick is the step of a simulation.
const tick = time.Minute

// simulation is a cluster on which experiments arrive, start as decided, and end.
type simulation struct {
	t       *testing.T
	random  *rand.Rand
	now     time.Time
	kinds   *ResourceKinds
	hosts   []Host
	quotas  map[string][]Quota
	waiting []Waiter
	running []runningExperiment
	arrived int
	// lastPosition and promisedStart are those of each waiting experiment.
	lastPosition  map[string]int
	promisedStart map[string]time.Time
}

type runningExperiment struct {
	run Run
	// ends is the actual end, zero for a live cluster before its stop.
	ends time.Time
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	w := &simulation{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), now: noon, kinds: NewResourceKinds(), quotas: map[string][]Quota{},
		lastPosition: map[string]int{}, promisedStart: map[string]time.Time{},
	}
	for i := range 1 + w.random.IntN(4) {
		amount := Amount{int64(5 + w.random.IntN(30)), int64(8+w.random.IntN(24)) << 30, int64(2000 * (1 + w.random.IntN(4))), Unlimited}
		w.hosts = append(w.hosts, Host{Name: fmt.Sprint("n", i), Allocatable: amount, Free: slices.Clone(amount)})
	}
	for _, team := range []string{"a", "b", "c"} {
		quota := Quota{Name: "team"}
		for of := range quota.Hard {
			quota.Hard[of] = Unlimited
		}
		if w.random.IntN(3) > 0 {
			quota.Hard[ClaimPods] = int64(4 + w.random.IntN(40))
		}
		w.quotas[team] = []Quota{quota}
	}
	return w
}

func (w *simulation) arrive(namespace string, priority int32, lasts time.Duration, shapes ...Shape) string {
	w.arrived++
	demand := &Demand{Shapes: shapes}
	demand.complete()
	demand.Claim[ClaimPods] = demand.pods()
	name := fmt.Sprintf("e%05d", w.arrived)
	w.waiting = append(w.waiting, Waiter{
		Identity: Identity{Namespace: namespace, Name: name, Created: w.now, Priority: priority}, Demand: demand, Duration: lasts,
	})
	return name
}

// arriveRandom adds an experiment of random size.
func (w *simulation) arriveRandom(live bool) {
	r := w.random
	shapes := []Shape{{Count: int64(1 + r.IntN(12)), Each: Amount{1, int64(1+r.IntN(2000)) << 20, int64(10 * (1 + r.IntN(60))), 0}}}
	if r.IntN(2) == 0 {
		shapes = append(shapes, Shape{Count: int64(1 + r.IntN(3)), Each: Amount{1, int64(1+r.IntN(6000)) << 20, int64(10 * (1 + r.IntN(150))), 0}})
	}
	w.arriveWith(live, shapes...)
}

// arriveUneven adds an experiment with up to four kinds of pods, some half a host in size. Whether they fit depends on
// their placement.
func (w *simulation) arriveUneven(live bool) {
	r := w.random
	var shapes []Shape
	for range 1 + r.IntN(4) {
		each := Amount{1, int64(1+r.IntN(64)) << 26, int64(10 * (1 + r.IntN(200))), 0}
		if r.IntN(3) == 0 {
			each[kindMemory] = int64(1+r.IntN(12)) << 30
		}
		shapes = append(shapes, Shape{Count: int64(1 + r.IntN(5)), Each: each})
	}
	w.arriveWith(live, shapes...)
}

func (w *simulation) arriveWith(live bool, shapes ...Shape) {
	r := w.random
	lasts := time.Duration(1+r.IntN(90)) * time.Minute
	if live && r.IntN(6) == 0 {
		lasts = Forever
	}
	priority := int32(0)
	if r.IntN(3) == 0 {
		priority = int32(r.IntN(21) - 10)
	}
	w.arrive([]string{"a", "b", "c"}[r.IntN(3)], priority, lasts, shapes...)
}

func (w *simulation) snapshot() *Snapshot {
	s := &Snapshot{Now: w.now, Kinds: w.kinds, Quotas: map[string][]Quota{}, Waiters: slices.Clone(w.waiting)}
	for _, host := range w.hosts {
		host.Free = slices.Clone(host.Free)
		s.Hosts = append(s.Hosts, host)
	}
	for namespace, quotas := range w.quotas {
		s.Quotas[namespace] = slices.Clone(quotas)
	}
	for _, running := range w.running {
		s.Runs = append(s.Runs, running.run)
	}
	w.random.Shuffle(len(s.Waiters), func(a, b int) { s.Waiters[a], s.Waiters[b] = s.Waiters[b], s.Waiters[a] })
	return s
}

// step is a tick, in which experiments end, the queue decides, and experiments start.
func (w *simulation) step() []Decision {
	w.t.Helper()
	w.now = w.now.Add(tick)
	w.running = slices.DeleteFunc(w.running, func(s runningExperiment) bool {
		over := !s.ends.IsZero() && !s.ends.After(w.now) || s.ends.IsZero() && w.random.IntN(300) == 0
		if over {
			w.changeRoom(&s.run, 1)
		}
		return over
	})
	s := w.snapshot()
	decisions := Decide(s)
	w.check(s, decisions)
	w.keepReservations(s, decisions)
	for i, decision := range decisions {
		if decision.Admitted {
			w.begin(&s.Waiters[i], decision)
		}
	}
	w.wantNoOvercommit()
	return decisions
}

// keepReservations returns reservations to the next snapshot as the operator does.
func (w *simulation) keepReservations(s *Snapshot, decisions []Decision) {
	for i := range w.waiting {
		w.waiting[i].Reservation = nil
		for j := range s.Waiters {
			if s.Waiters[j].Name == w.waiting[i].Name {
				w.waiting[i].Reservation = decisions[j].Reservation
			}
		}
	}
}

func (w *simulation) changeRoom(run *Run, sign int64) {
	for _, hold := range run.Holds {
		for k, v := range hold.Taken {
			w.hosts[hold.Host].Free[k] += sign * v
		}
	}
	for i := range w.quotas[run.Namespace] {
		quota := &w.quotas[run.Namespace][i]
		quota.Used = quota.Used.plus(run.Claim, -sign)
	}
}

func (w *simulation) begin(waiter *Waiter, decision Decision) {
	w.t.Helper()
	s := runningExperiment{run: Run{Identity: waiter.Identity, Started: w.now, Holds: decision.holds, Claim: waiter.Demand.Claim}}
	if waiter.Duration != Forever {
		s.run.Ends = w.now.Add(waiter.Duration)
		s.ends = w.now.Add(time.Duration(1 + w.random.Int64N(int64(waiter.Duration)))) // never later than planned
	}
	var pods int64
	for _, hold := range decision.holds {
		pods += hold.Taken[kindPods]
	}
	if pods != waiter.Demand.pods() {
		w.t.Fatalf("%s starts %d of its %d pods", waiter.Name, pods, waiter.Demand.pods())
	}
	w.changeRoom(&s.run, -1)
	w.running = append(w.running, s)
	w.waiting = slices.DeleteFunc(w.waiting, func(other Waiter) bool { return other.Name == waiter.Name })
	if due, promised := w.promisedStart[waiter.Name]; promised && w.now.After(due.Add(tick)) {
		w.t.Errorf("%s starts at %s, %s after its promised start, although nobody came before it", waiter.Name, w.now, w.now.Sub(due))
	}
}

func (w *simulation) wantNoOvercommit() {
	w.t.Helper()
	for _, host := range w.hosts {
		for k, v := range host.Free {
			if v < 0 {
				w.t.Fatalf("host %s has %d free of kind %d", host.Name, v, k)
			}
		}
	}
	for namespace, quotas := range w.quotas {
		for of := range quotas[0].Hard {
			if quotas[0].Used[of] > quotas[0].Hard[of] {
				w.t.Fatalf("team %s uses %d of %d of %s", namespace, quotas[0].Used[of], quotas[0].Hard[of], claimNames[of])
			}
		}
	}
}

// check checks what must hold for every decision, and stores the promised starts.
func (w *simulation) check(s *Snapshot, decisions []Decision) {
	w.t.Helper()
	order := make([]int, len(decisions))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return decisions[a].Position - decisions[b].Position })
	var before *Waiter
	for _, i := range order {
		v, waiter := decisions[i], &s.Waiters[i]
		if v.Reason == "" || v.Message == "" || v.Admitted != (v.Reason == ReasonAdmitted) {
			w.t.Fatalf("%s gets %+v", waiter.Name, v)
		}
		if v.Position == 0 {
			continue
		}
		if before != nil && waiter.Before(&before.Identity) {
			w.t.Fatalf("%s is behind %s", waiter.Name, before.Name)
		}
		before = waiter
		if last, known := w.lastPosition[waiter.Name]; known && v.Position > last {
			delete(w.promisedStart, waiter.Name) // somebody of a higher priority came before it
		}
		if _, promised := w.promisedStart[waiter.Name]; !promised && v.reserved && v.Position == 1 {
			w.promisedStart[waiter.Name] = v.ExpectedStart
		}
		w.lastPosition[waiter.Name] = v.Position
	}
}

func TestSimulatedQueuesStartAllOrNothingInOrderAndWithinTheRoom(t *testing.T) {
	for seed := range uint64(12) {
		w := newSimulation(t, seed)
		for range 200 {
			for range w.random.IntN(3) {
				w.arriveRandom(true)
			}
			w.step()
		}
	}
}

// Without kept reservations, seed 10 of the uneven experiments is seven minutes late.
func TestOvertakingDelaysNoReservation(t *testing.T) {
	for name, comes := range map[string]func(*simulation, bool){"nearly equal pods": (*simulation).arriveRandom, "very unequal pods": (*simulation).arriveUneven} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(11) {
				w := newSimulation(t, seed)
				for range 200 {
					for range w.random.IntN(3) {
						comes(w, seed%2 == 0)
					}
					w.step()
				}
				if t.Failed() {
					t.Fatalf("with seed %d", seed)
				}
			}
		})
	}
}

func TestEveryExperimentStartsAlthoughOthersKeepArriving(t *testing.T) {
	for seed := range uint64(8) {
		w := newSimulation(t, seed)
		w.hosts = w.hosts[:1]
		w.hosts[0].Allocatable = Amount{20, 32 << 30, 8000, Unlimited}
		w.hosts[0].Free = slices.Clone(w.hosts[0].Allocatable)
		w.quotas = map[string][]Quota{}
		one := Amount{1, 1 << 30, 100, 0}
		for range 3 {
			w.arrive("b", 5, time.Hour, Shape{Count: 10, Each: one})
		}
		w.step()
		all := w.arrive("a", -2, time.Hour, Shape{Count: 20, Each: one}) // needs the whole host
		for range 60 * 6 {
			if w.random.IntN(8) == 0 {
				w.arrive("b", int32(w.random.IntN(3)), time.Duration(1+w.random.IntN(60))*time.Minute, Shape{Count: 1 + w.random.Int64N(12), Each: one})
			}
			w.step()
		}
		if slices.ContainsFunc(w.waiting, func(waiter Waiter) bool { return waiter.Name == all }) {
			t.Errorf("seed %d: the largest still waits after 6 hours", seed)
		}
	}
}

func TestAPriorityIsWorthABoundedTimeInTheQueue(t *testing.T) {
	low := Identity{Namespace: "a", Name: "low", Created: noon, Priority: -100}
	high := Identity{Namespace: "b", Name: "high", Created: noon.Add(200*PriorityStep + time.Second), Priority: 100}
	if !low.Before(&high) {
		t.Errorf("an experiment that came %s later overtakes", high.Created.Sub(low.Created))
	}
	high.Created = noon.Add(200*PriorityStep - time.Second)
	if low.Before(&high) {
		t.Errorf("an experiment that came %s later does not overtake", high.Created.Sub(low.Created))
	}
}

func TestADecisionDependsOnlyOnTheSnapshot(t *testing.T) {
	for seed := range uint64(8) {
		w := newSimulation(t, seed)
		for range 40 {
			for range 3 {
				w.arriveRandom(true)
			}
			w.step()
		}
		byName := func() map[string]string {
			s, got := w.snapshot(), map[string]string{} // in another order each time
			for i, v := range Decide(s) {
				got[s.Waiters[i].Name] = fmt.Sprint(v.Admitted, v.Reason, v.Message, v.Position, v.ExpectedStart)
			}
			return got
		}
		first := byName()
		for name, again := range byName() {
			if first[name] != again {
				t.Errorf("seed %d: %s gets %s, then %s", seed, name, first[name], again)
			}
		}
	}
}
