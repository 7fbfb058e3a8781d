package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Times are nanoseconds of Unix time. never is the end of a live cluster, forever the end of what starts then.
const (
	never   = math.MaxInt64 - 1
	forever = math.MaxInt64
)

// roomChange is a time at which a run returns room, or a reservation takes it.
type roomChange struct {
	at    int64
	sign  int64
	holds []Holding
	team  string
	claim Claim
}

// reservationStart is a time at which a reservation takes room. Between two of them free room only grows.
type reservationStart struct {
	at          int64
	free        *freeTable
	reservedFor *Identity
}

// team is a namespace with its quotas.
type team struct {
	quotas []Quota
	runs   []*Run
	// free is what each quota has free now.
	free         []Claim
	reservations []quotaReservationStart
	reservationCounts
	// refused is the first experiment whose pods the API server refused.
	refused *Identity
}

type quotaReservationStart struct {
	at          int64
	free        []Claim
	reservedFor *Identity
}

// reservationCounts are the reservations by known ends and by those of live clusters, and the tries.
type reservationCounts struct{ known, live, tries int }

func (p *reservationCounts) exhausted() bool { return p.known >= Depth || p.tries >= 2*Depth }

// planner is the state of one decision.
type planner struct {
	*Snapshot
	now int64
	// free is the free room now, empty that of empty hosts, withoutExperiments that with only other pods.
	free, empty, withoutExperiments, scratch, window *freeTable
	// reservations in order of time.
	reservations []reservationStart
	minFree      []*freeTable
	stale        bool
	changes      []roomChange
	liveRuns     []*Run
	teams        map[string]*team
	reservationCounts
	// tooLarge and failed are demands that do not fit. Within a decision room only shrinks.
	tooLarge       map[uint64]string
	fitsCache      map[uint64]bool
	failedAttempts map[attempt]obstacle
	decisions      []Decision
	// hostIndices are the hosts by name, once a reservation needs them.
	hostIndices map[string]int
}

type attempt struct {
	hash     uint64
	duration time.Duration
}

// obstacle is why an experiment cannot start now.
type obstacle struct {
	kind obstacleKind
	// reservedFor is whose reserved start would be delayed.
	reservedFor *Identity
	// quota and claim are the quota and its kind of which there is too little.
	quota, claim int
}

type obstacleKind int

const (
	noObstacle obstacleKind = iota
	quotaFull
	quotaReserved
	clusterFull
	clusterReserved
)

// Decide decides on all waiting experiments. The decisions are in the order of the snapshot's waiters.
func Decide(s *Snapshot) []Decision {
	d := newPlanner(s)
	order := make([]int32, len(s.Waiters))
	places := make([]int64, len(s.Waiters))
	for i := range s.Waiters {
		order[i], places[i] = int32(i), s.Waiters[i].orderKey()
	}
	slices.SortFunc(order, func(a, b int32) int {
		if places[a] != places[b] {
			return cmp.Compare(places[a], places[b])
		}
		if s.Waiters[a].Before(&s.Waiters[b].Identity) {
			return -1
		}
		return 1
	})
	position := 0
	for _, i := range order {
		w, decision := &s.Waiters[i], &d.decisions[i]
		if d.neverFits(w, decision) {
			continue
		}
		position++
		decision.Position = position
		d.decide(w, decision)
	}
	return d.decisions
}

func newPlanner(s *Snapshot) *planner {
	kinds := s.Kinds.Len()
	d := &planner{
		Snapshot: s, now: s.Now.UnixNano(), teams: map[string]*team{}, tooLarge: map[uint64]string{}, fitsCache: map[uint64]bool{}, failedAttempts: map[attempt]obstacle{},
		decisions:          make([]Decision, len(s.Waiters)),
		free:               newTableOf(s.Hosts, kinds, func(h *Host) Amount { return h.Free }),
		empty:              newTableOf(s.Hosts, kinds, func(h *Host) Amount { return h.Allocatable }),
		withoutExperiments: newTable(kinds, len(s.Hosts)), scratch: newTable(kinds, len(s.Hosts)), window: newTable(kinds, len(s.Hosts)),
	}
	d.withoutExperiments.copyFrom(d.free)
	for i := range s.Runs {
		run := &s.Runs[i]
		d.withoutExperiments.add(run.Holds, 1)
		t := d.team(run.Namespace)
		t.runs = append(t.runs, run)
		if run.Ends.IsZero() {
			d.liveRuns = append(d.liveRuns, run)
			continue
		}
		ends := max(run.Ends.UnixNano(), d.now+int64(Overrun))
		d.changes = append(d.changes, roomChange{at: ends, sign: 1, holds: run.Holds, team: run.Namespace, claim: run.Claim})
	}
	slices.SortStableFunc(d.changes, func(a, b roomChange) int { return cmp.Compare(a.at, b.at) })
	return d
}

func (d *planner) team(namespace string) *team {
	t := d.teams[namespace]
	if t == nil {
		t = &team{quotas: d.Quotas[namespace]}
		for _, quota := range t.quotas {
			t.free = append(t.free, quota.Hard.minus(quota.Used))
		}
		d.teams[namespace] = t
	}
	return t
}

// decide decides on one experiment, after all that come before it.
func (d *planner) decide(w *Waiter, decision *Decision) {
	t := d.team(w.Namespace)
	if w.Refused || t.refused != nil {
		if t.refused == nil {
			t.refused = &w.Identity
		}
		d.explainRefused(w, t, decision)
		return
	}
	ends := d.endOf(d.now, w.Duration)
	obstacle, holds := d.findRoom(w, t, ends)
	if obstacle.kind == noObstacle {
		d.takeRoom(w, t, ends, holds)
		decision.Admitted, decision.holds = true, holds
	} else {
		hosts := obstacle.kind == clusterFull || obstacle.kind == clusterReserved || obstacle.kind == quotaFull && d.quotaTakenByLater(w, t)
		var p *searchState
		p, decision.searched = d.reserve(w, t, hosts)
		if p != nil && p.at < never {
			decision.ExpectedStart, decision.reserved = time.Unix(0, p.at).UTC(), hosts
		}
		if p != nil && hosts {
			decision.Reservation = d.reservationOf(p.holds)
		}
	}
	d.explain(w, t, obstacle, decision)
}

// quotaTakenByLater reports whether the quota lacks only because later experiments of the team have overtaken this one.
// Then it waits for the cluster too.
func (d *planner) quotaTakenByLater(w *Waiter, t *team) bool {
	free := slices.Clone(t.free)
	for _, run := range t.runs {
		if run.overtook(w) {
			for q := range free {
				free[q] = free[q].plus(run.Claim, 1)
			}
		}
	}
	_, _, lacks := firstShortage(free, &w.Demand.Claim)
	return !lacks
}

// endOf is the end of an experiment that starts at a time.
func (d *planner) endOf(start int64, lasts time.Duration) int64 {
	if lasts == Forever || start >= never-int64(lasts) {
		return forever
	}
	return start + int64(lasts)
}

// findRoom looks for room from now until the end, beside the reservations.
func (d *planner) findRoom(w *Waiter, t *team, ends int64) (obstacle, []Holding) {
	if quota, of, lacks := firstShortage(t.free, &w.Demand.Claim); lacks {
		return obstacle{kind: quotaFull, quota: quota, claim: of}, nil
	}
	for i := range t.reservations {
		if p := &t.reservations[i]; p.at < ends {
			if quota, of, lacks := firstShortage(p.free, &w.Demand.Claim); lacks {
				return obstacle{kind: quotaReserved, reservedFor: p.reservedFor, quota: quota, claim: of}, nil
			}
		}
	}
	key := attempt{w.Demand.hash, w.Duration}
	if known, found := d.failedAttempts[key]; found && w.Reservation == nil {
		return known, nil
	}
	found, holds := d.findHosts(w, ends)
	if found.kind != noObstacle {
		d.failedAttempts[key] = found
	}
	return found, holds
}

func (d *planner) findHosts(w *Waiter, ends int64) (obstacle, []Holding) {
	if !d.free.mayFit(w.Demand) {
		return obstacle{kind: clusterFull}, nil
	}
	free, first := d.freeUntil(ends)
	if free.mayFit(w.Demand) {
		d.window.copyFrom(free)
		if holds := d.placeInWindow(w); holds != nil {
			return obstacle{}, holds
		}
	}
	if first == nil || !d.free.fits(w.Demand, d.scratch) {
		return obstacle{kind: clusterFull}, nil
	}
	return obstacle{kind: clusterReserved, reservedFor: first}, nil
}

// placeInWindow places an experiment within window, which it changes. If it finds no place it uses that of the
// experiment's reservation. It returns nil if there is none.
func (d *planner) placeInWindow(w *Waiter) []Holding {
	holds := d.reservedHoldings(w.Reservation)
	if holds != nil && !d.window.hasRoomFor(holds) {
		holds = nil
	}
	if found, _, ok := d.window.place(w.Demand); ok {
		return found
	}
	return holds
}

// reservedHoldings are the holdings of a reservation on the hosts of this snapshot, nil if a host is gone.
func (d *planner) reservedHoldings(plan *Reservation) (holds []Holding) {
	if plan == nil {
		return nil
	}
	if d.hostIndices == nil {
		d.hostIndices = make(map[string]int, len(d.Hosts))
		for i := range d.Hosts {
			d.hostIndices[d.Hosts[i].Name] = i
		}
	}
	for _, p := range plan.rooms {
		host, found := d.hostIndices[p.host]
		if !found {
			return nil
		}
		holds = append(holds, Holding{Host: host, Taken: p.taken})
	}
	return holds
}

func (d *planner) reservationOf(holds []Holding) *Reservation {
	plan := &Reservation{}
	for _, hold := range holds {
		plan.rooms = append(plan.rooms, reservedRoom{d.Hosts[hold.Host].Name, hold.Taken})
	}
	return plan
}

// freeUntil is what is always free from now until a time, and the first reservation that starts before it.
func (d *planner) freeUntil(ends int64) (*freeTable, *Identity) {
	count, _ := slices.BinarySearchFunc(d.reservations, ends, func(p reservationStart, ends int64) int { return cmp.Compare(p.at, ends) })
	if count == 0 {
		return d.free, nil
	}
	if d.stale {
		before := d.free
		for i := range d.reservations {
			if i == len(d.minFree) {
				d.minFree = append(d.minFree, newTable(0, 0))
			}
			d.minFree[i].copyFrom(before)
			d.minFree[i].takeMinimum(d.reservations[i].free)
			before = d.minFree[i]
		}
		d.stale = false
	}
	return d.minFree[count-1], d.reservations[0].reservedFor
}

// setWindow sets window to what is always free between two times.
func (d *planner) setWindow(free *freeTable, from, to int64) {
	d.window.copyFrom(free)
	for i := range d.reservations {
		if p := &d.reservations[i]; p.at < to && p.at >= from {
			d.window.takeMinimum(p.free)
		}
	}
}

// takeRoom takes an experiment's room from now on.
func (d *planner) takeRoom(w *Waiter, t *team, ends int64, holds []Holding) {
	d.free.add(holds, -1)
	d.stale = true
	t.takeBetween(d.now, ends, &w.Demand.Claim)
	for i := range t.free {
		t.free[i] = t.free[i].minus(w.Demand.Claim)
	}
	d.takeBetween(d.now, ends, holds)
	if ends < forever {
		d.insertChange(roomChange{at: ends, sign: 1, holds: holds, team: w.Namespace, claim: w.Demand.Claim})
	}
}

// takeBetween takes room from the points between two times.
func (d *planner) takeBetween(from, to int64, holds []Holding) {
	for i := range d.reservations {
		if p := &d.reservations[i]; p.at >= from && p.at < to {
			p.free.add(holds, -1)
		}
	}
}

func (t *team) takeBetween(from, to int64, claim *Claim) {
	for i := range t.reservations {
		if p := &t.reservations[i]; p.at >= from && p.at < to {
			for q := range p.free {
				p.free[q] = p.free[q].minus(*claim)
			}
		}
	}
}

func (d *planner) insertChange(e roomChange) {
	at, _ := slices.BinarySearchFunc(d.changes, e.at, func(e roomChange, at int64) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	d.changes = slices.Insert(d.changes, at, e)
}

// reserve finds the earliest start of an experiment that cannot start now, and reserves its room, if it is among the first.
func (d *planner) reserve(w *Waiter, t *team, hosts bool) (p *searchState, first bool) {
	made := &t.reservationCounts
	if hosts {
		made = &d.reservationCounts
	}
	if made.exhausted() || hosts && !d.fitsWithoutExperiments(w) {
		return nil, false
	}
	made.tries++
	p = d.search(w, t, hosts)
	if p == nil || p.at == never && made.live >= Depth {
		return nil, true
	}
	d.addReservation(w, t, p, hosts)
	if p.at == never {
		made.live++
	} else {
		made.known++
	}
	return p, true
}

// searchState is the free room at a time in the search.
type searchState struct {
	at    int64
	free  *freeTable
	quota []Claim
	holds []Holding
}

func (p *searchState) apply(e *roomChange, namespace string, hosts bool) {
	if hosts {
		p.free.add(e.holds, e.sign)
	}
	if e.team == namespace {
		for q := range p.quota {
			p.quota[q] = p.quota[q].plus(e.claim, e.sign)
		}
	}
}

// search finds the earliest time with room.
func (d *planner) search(w *Waiter, t *team, hosts bool) *searchState {
	p := &searchState{quota: slices.Clone(t.free)}
	if hosts {
		p.free = newTable(0, 0)
		p.free.copyFrom(d.free)
	}
	next := 0
	for next < len(d.changes) && d.changes[next].at < never {
		p.at = d.changes[next].at
		gives := false
		for ; next < len(d.changes) && d.changes[next].at == p.at; next++ {
			e := &d.changes[next]
			p.apply(e, w.Namespace, hosts)
			gives = gives || e.sign > 0 && (hosts || e.team == w.Namespace)
		}
		if gives && d.fitsAt(w, t, p, hosts) {
			return p
		}
	}
	p.at = never
	for ; next < len(d.changes); next++ {
		p.apply(&d.changes[next], w.Namespace, hosts)
	}
	for _, passed := range []bool{false, true} { // first without the ends of experiments that have overtaken it
		for _, run := range d.liveRuns {
			if run.overtook(w) == passed {
				p.apply(&roomChange{sign: 1, holds: run.Holds, team: run.Namespace, claim: run.Claim}, w.Namespace, hosts)
			}
		}
		if d.fitsAt(w, t, p, hosts) {
			return p
		}
	}
	return nil
}

// fitsAt reports whether an experiment that starts at a time has room until its end, beside the reservations.
func (d *planner) fitsAt(w *Waiter, t *team, p *searchState, hosts bool) bool {
	ends := d.endOf(p.at, w.Duration)
	if _, _, lacks := firstShortage(p.quota, &w.Demand.Claim); lacks {
		return false
	}
	for i := range t.reservations {
		if other := &t.reservations[i]; other.at > p.at && other.at < ends {
			if _, _, lacks := firstShortage(other.free, &w.Demand.Claim); lacks {
				return false
			}
		}
	}
	if !hosts {
		return true
	}
	if !p.free.mayFit(w.Demand) {
		return false
	}
	d.setWindow(p.free, p.at+1, ends)
	p.holds = d.placeInWindow(w)
	return p.holds != nil
}

// addReservation reserves an experiment's room.
func (d *planner) addReservation(w *Waiter, t *team, p *searchState, hosts bool) {
	ends := d.endOf(p.at, w.Duration)
	d.insertChange(roomChange{at: p.at, sign: -1, holds: p.holds, team: w.Namespace, claim: w.Demand.Claim})
	if ends < forever {
		d.insertChange(roomChange{at: ends, sign: 1, holds: p.holds, team: w.Namespace, claim: w.Demand.Claim})
	}
	t.takeBetween(p.at, ends, &w.Demand.Claim)
	for q := range p.quota {
		p.quota[q] = p.quota[q].minus(w.Demand.Claim)
	}
	t.reservations = append(t.reservations, quotaReservationStart{at: p.at, free: p.quota, reservedFor: &w.Identity})
	if hosts {
		d.takeBetween(p.at, ends, p.holds)
		p.free.add(p.holds, -1)
		at, _ := slices.BinarySearchFunc(d.reservations, p.at, func(p reservationStart, at int64) int { return cmp.Compare(p.at, at) })
		d.reservations = slices.Insert(d.reservations, at, reservationStart{at: p.at, free: p.free, reservedFor: &w.Identity})
		d.stale = true
	}
}

// firstShortage is the first quota and kind of which there is too little.
func firstShortage(free []Claim, claim *Claim) (quota, of int, lacks bool) {
	for quota = range free {
		for of = range claim {
			if claim[of] > 0 && claim[of] > free[quota][of] {
				return quota, of, true
			}
		}
	}
	return 0, 0, false
}

// Plus adds another claim.
func (c Claim) Plus(other Claim) Claim { return c.plus(other, 1) }

func (c Claim) minus(other Claim) Claim { return c.plus(other, -1) }

// plus adds another claim times sign. Unlimited stays unlimited.
func (c Claim) plus(other Claim, sign int64) Claim {
	for i := range c {
		if c[i] != Unlimited {
			c[i] += sign * other[i]
		}
	}
	return c
}
