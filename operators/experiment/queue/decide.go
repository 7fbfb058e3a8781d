package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Moments are nanoseconds of Unix time. never is that of a live cluster's end, forever the end of what begins then.
const (
	never   = math.MaxInt64 - 1
	forever = math.MaxInt64
)

// roomChange gives room back at a moment, or takes it for a plan.
type roomChange struct {
	at    int64
	sign  int64
	holds []Holding
	team  string
	claim Claim
}

// reservationStart is a moment at which a plan takes room: between two of them there is only more.
type reservationStart struct {
	at          int64
	free        *freeTable
	reservedFor *Identity
}

// team is a namespace with its quotas.
type team struct {
	quotas []Quota
	runs   []*Run
	// free of each quota now.
	free         []Claim
	reservations []quotaReservationStart
	reservationCounts
	// refused is the first whose pods the API server refused.
	refused *Identity
}

type quotaReservationStart struct {
	at          int64
	free        []Claim
	reservedFor *Identity
}

// reservationCounts that were made: by known ends, by those of live clusters, and the tries.
type reservationCounts struct{ known, live, tries int }

func (p *reservationCounts) exhausted() bool { return p.known >= Depth || p.tries >= 2*Depth }

// planner under way.
type planner struct {
	*Snapshot
	now int64
	// free now, empty with nothing at all, bare with no experiment.
	free, empty, withoutExperiments, scratch, window *freeTable
	// reservations in order of time; least has, for each number of them, what is free now and at all of these, if it is not stale.
	reservations []reservationStart
	minFree      []*freeTable
	stale        bool
	changes      []roomChange
	liveRuns     []*Run
	teams        map[string]*team
	reservationCounts
	// tooLarge and failed are demands that were found not to fit: within a decision room only shrinks.
	tooLarge       map[uint64]string
	fitsCache      map[uint64]bool
	failedAttempts map[attempt]obstacle
	decisions      []Decision
	// hostIndices of the hosts by their names, once a plan has asked for them.
	hostIndices map[string]int
}

type attempt struct {
	hash     uint64
	duration time.Duration
}

// obstacle to a start now; none if there is room.
type obstacle struct {
	kind obstacleKind
	// reservedFor is whose plan would be delayed.
	reservedFor *Identity
	// quota and what of it lacks.
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

// Decide on all who wait; the verdicts are in the order of the snapshot's waiters.
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
		w, verdict := &s.Waiters[i], &d.decisions[i]
		if d.neverFits(w, verdict) {
			continue
		}
		position++
		verdict.Position = position
		d.decide(w, verdict)
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

// decide on one, after all that come before it.
func (d *planner) decide(w *Waiter, verdict *Decision) {
	t := d.team(w.Namespace)
	if w.Refused || t.refused != nil {
		if t.refused == nil {
			t.refused = &w.Identity
		}
		d.explainRefused(w, t, verdict)
		return
	}
	ends := d.endOf(d.now, w.Duration)
	obstacle, holds := d.findRoom(w, t, ends)
	if obstacle.kind == noObstacle {
		d.takeRoom(w, t, ends, holds)
		verdict.Admitted, verdict.holds = true, holds
	} else {
		hosts := obstacle.kind == clusterFull || obstacle.kind == clusterReserved || obstacle.kind == quotaFull && d.quotaTakenByLater(w, t)
		var p *searchState
		p, verdict.searched = d.reserve(w, t, hosts)
		if p != nil && p.at < never {
			verdict.ExpectedStart, verdict.reserved = time.Unix(0, p.at).UTC(), hosts
		}
		if p != nil && hosts {
			verdict.Reservation = d.reservationOf(p.holds)
		}
	}
	d.explain(w, t, obstacle, verdict)
}

// quotaTakenByLater tells that only those lack quota whom others of the team have passed: they wait for the cluster too.
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

// endOf of something that starts at a moment.
func (d *planner) endOf(start int64, lasts time.Duration) int64 {
	if lasts == Forever || start >= never-int64(lasts) {
		return forever
	}
	return start + int64(lasts)
}

// findRoom whether there is room now and until the end, beside the plans.
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

// placeInWindow one within window, which is spoilt: where its plan had it, if no other place is found; nil for none.
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

// reservedHoldings is what a plan holds, by the hosts of this snapshot; nil where one of them is gone.
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

// freeUntil is what is free from now to a moment all the time, and the first plan that begins before it.
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

// setWindow sets window to what is free from a moment to another one all the time.
func (d *planner) setWindow(free *freeTable, from, to int64) {
	d.window.copyFrom(free)
	for i := range d.reservations {
		if p := &d.reservations[i]; p.at < to && p.at >= from {
			d.window.takeMinimum(p.free)
		}
	}
}

// takeRoom room from now on.
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

// takeBetween takes room from the points between two moments.
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

// reserve the earliest start of one that cannot start now, and keep its room, if it is among the first; nil where there is none.
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

// searchState is the state at a moment on the way through the events.
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

// search the earliest moment with room.
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
	for _, passed := range []bool{false, true} { // what passed it stays, if there is room without that
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

// fitsAt tells that there is room from a moment until the end of one that starts then, beside the plans that begin meanwhile.
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

// addReservation the room of a plan.
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

// firstShortage is the first quota, and kind, of which there is too little.
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

// Plus another claim.
func (c Claim) Plus(other Claim) Claim { return c.plus(other, 1) }

func (c Claim) minus(other Claim) Claim { return c.plus(other, -1) }

// plus another claim, times sign; what is unlimited stays so.
func (c Claim) plus(other Claim, sign int64) Claim {
	for i := range c {
		if c[i] != Unlimited {
			c[i] += sign * other[i]
		}
	}
	return c
}
