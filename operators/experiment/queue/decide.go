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

// event gives room back at a moment, or takes it for a plan.
type event struct {
	at    int64
	sign  int64
	holds []Holding
	team  string
	claim Claim
}

// point is a moment at which a plan takes room: between two of them there is only more.
type point struct {
	at   int64
	free *table
	plan *Identity
}

// team is a namespace with its quotas.
type team struct {
	quotas []Quota
	runs   []*Run
	// free of each quota now.
	free   []Claim
	points []teamPoint
	plans
	// refused is the first whose pods the API server refused.
	refused *Identity
}

type teamPoint struct {
	at   int64
	free []Claim
	plan *Identity
}

// plans that were made: by known ends, by those of live clusters, and the tries.
type plans struct{ known, never, tries int }

func (p *plans) exhausted() bool { return p.known >= Depth || p.tries >= 2*Depth }

// decision under way.
type decision struct {
	*Snapshot
	now int64
	// free now, empty with nothing at all, bare with no experiment.
	free, empty, bare, scratch, window *table
	// points in order of time; least has, for each number of them, what is free now and at all of these, if it is not stale.
	points []point
	least  []*table
	stale  bool
	events []event
	live   []*Run
	teams  map[string]*team
	plans
	// hopeless and failed are demands that were found not to fit: within a decision room only shrinks.
	hopeless map[uint64]string
	fitting  map[uint64]bool
	failed   map[attempt]obstacle
	verdicts []Verdict
	// indices of the hosts by their names, once a plan has asked for them.
	indices map[string]int
}

type attempt struct {
	print uint64
	lasts time.Duration
}

// obstacle to a start now; none if there is room.
type obstacle struct {
	kind obstacleKind
	// first is whose plan would be delayed.
	first *Identity
	// quota and what of it lacks.
	quota, of int
}

type obstacleKind int

const (
	none obstacleKind = iota
	quotaFull
	quotaPlanned
	clusterFull
	clusterPlanned
)

// Decide on all who wait; the verdicts are in the order of the snapshot's waiters.
func Decide(s *Snapshot) []Verdict {
	d := begin(s)
	order := make([]int32, len(s.Waiters))
	places := make([]int64, len(s.Waiters))
	for i := range s.Waiters {
		order[i], places[i] = int32(i), s.Waiters[i].place()
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
		w, verdict := &s.Waiters[i], &d.verdicts[i]
		if d.neverFits(w, verdict) {
			continue
		}
		position++
		verdict.Position = position
		d.decide(w, verdict)
	}
	return d.verdicts
}

func begin(s *Snapshot) *decision {
	kinds := s.Space.Len()
	d := &decision{
		Snapshot: s, now: s.Now.UnixNano(), teams: map[string]*team{}, hopeless: map[uint64]string{}, fitting: map[uint64]bool{}, failed: map[attempt]obstacle{},
		verdicts: make([]Verdict, len(s.Waiters)),
		free:     tableOf(s.Hosts, kinds, func(h *Host) Amount { return h.Free }),
		empty:    tableOf(s.Hosts, kinds, func(h *Host) Amount { return h.Allocatable }),
		bare:     newTable(kinds, len(s.Hosts)), scratch: newTable(kinds, len(s.Hosts)), window: newTable(kinds, len(s.Hosts)),
	}
	d.bare.copyFrom(d.free)
	for i := range s.Runs {
		run := &s.Runs[i]
		d.bare.add(run.Holds, 1)
		t := d.team(run.Namespace)
		t.runs = append(t.runs, run)
		if run.Ends.IsZero() {
			d.live = append(d.live, run)
			continue
		}
		ends := max(run.Ends.UnixNano(), d.now+int64(Overrun))
		d.events = append(d.events, event{at: ends, sign: 1, holds: run.Holds, team: run.Namespace, claim: run.Claim})
	}
	slices.SortStableFunc(d.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return d
}

func (d *decision) team(namespace string) *team {
	t := d.teams[namespace]
	if t == nil {
		t = &team{quotas: d.Quotas[namespace]}
		for _, quota := range t.quotas {
			t.free = append(t.free, quota.Hard.less(quota.Used))
		}
		d.teams[namespace] = t
	}
	return t
}

// decide on one, after all that come before it.
func (d *decision) decide(w *Waiter, verdict *Verdict) {
	t := d.team(w.Namespace)
	if w.Refused || t.refused != nil {
		if t.refused == nil {
			t.refused = &w.Identity
		}
		d.tellRefused(w, t, verdict)
		return
	}
	ends := d.ends(d.now, w.Lasts)
	obstacle, holds := d.look(w, t, ends)
	if obstacle.kind == none {
		d.take(w, t, ends, holds)
		verdict.Admitted, verdict.holds = true, holds
	} else {
		hosts := obstacle.kind == clusterFull || obstacle.kind == clusterPlanned || obstacle.kind == quotaFull && d.quotaIsPassed(w, t)
		var p *walk
		p, verdict.first = d.plan(w, t, hosts)
		if p != nil && p.at < never {
			verdict.Starts, verdict.firm = time.Unix(0, p.at).UTC(), hosts
		}
		if p != nil && hosts {
			verdict.Plan = d.planned(p.holds)
		}
	}
	d.tell(w, t, obstacle, verdict)
}

// quotaIsPassed tells that only those lack quota whom others of the team have passed: they wait for the cluster too.
func (d *decision) quotaIsPassed(w *Waiter, t *team) bool {
	free := slices.Clone(t.free)
	for _, run := range t.runs {
		if run.passed(w) {
			for q := range free {
				free[q] = free[q].plus(run.Claim, 1)
			}
		}
	}
	_, _, lacks := lacking(free, &w.Demand.Claim)
	return !lacks
}

// ends of something that starts at a moment.
func (d *decision) ends(start int64, lasts time.Duration) int64 {
	if lasts == Forever || start >= never-int64(lasts) {
		return forever
	}
	return start + int64(lasts)
}

// look whether there is room now and until the end, beside the plans.
func (d *decision) look(w *Waiter, t *team, ends int64) (obstacle, []Holding) {
	if quota, of, lacks := lacking(t.free, &w.Demand.Claim); lacks {
		return obstacle{kind: quotaFull, quota: quota, of: of}, nil
	}
	for i := range t.points {
		if p := &t.points[i]; p.at < ends {
			if quota, of, lacks := lacking(p.free, &w.Demand.Claim); lacks {
				return obstacle{kind: quotaPlanned, first: p.plan, quota: quota, of: of}, nil
			}
		}
	}
	key := attempt{w.Demand.print, w.Lasts}
	if known, found := d.failed[key]; found && w.Plan == nil {
		return known, nil
	}
	found, holds := d.lookForHosts(w, ends)
	if found.kind != none {
		d.failed[key] = found
	}
	return found, holds
}

func (d *decision) lookForHosts(w *Waiter, ends int64) (obstacle, []Holding) {
	if !d.free.mayPlace(w.Demand) {
		return obstacle{kind: clusterFull}, nil
	}
	free, first := d.until(ends)
	if free.mayPlace(w.Demand) {
		d.window.copyFrom(free)
		if holds := d.place(w); holds != nil {
			return obstacle{}, holds
		}
	}
	if first == nil || !d.free.fits(w.Demand, d.scratch) {
		return obstacle{kind: clusterFull}, nil
	}
	return obstacle{kind: clusterPlanned, first: first}, nil
}

// place one within window, which is spoilt: where its plan had it, if no other place is found; nil for none.
func (d *decision) place(w *Waiter) []Holding {
	holds := d.kept(w.Plan)
	if holds != nil && !d.window.has(holds) {
		holds = nil
	}
	if found, _, ok := d.window.place(w.Demand); ok {
		return found
	}
	return holds
}

// kept is what a plan holds, by the hosts of this snapshot; nil where one of them is gone.
func (d *decision) kept(plan *Plan) (holds []Holding) {
	if plan == nil {
		return nil
	}
	if d.indices == nil {
		d.indices = make(map[string]int, len(d.Hosts))
		for i := range d.Hosts {
			d.indices[d.Hosts[i].Name] = i
		}
	}
	for _, p := range plan.on {
		host, found := d.indices[p.host]
		if !found {
			return nil
		}
		holds = append(holds, Holding{Host: host, Taken: p.taken})
	}
	return holds
}

func (d *decision) planned(holds []Holding) *Plan {
	plan := &Plan{}
	for _, hold := range holds {
		plan.on = append(plan.on, placed{d.Hosts[hold.Host].Name, hold.Taken})
	}
	return plan
}

// until is what is free from now to a moment all the time, and the first plan that begins before it.
func (d *decision) until(ends int64) (*table, *Identity) {
	count, _ := slices.BinarySearchFunc(d.points, ends, func(p point, ends int64) int { return cmp.Compare(p.at, ends) })
	if count == 0 {
		return d.free, nil
	}
	if d.stale {
		before := d.free
		for i := range d.points {
			if i == len(d.least) {
				d.least = append(d.least, newTable(0, 0))
			}
			d.least[i].copyFrom(before)
			d.least[i].least(d.points[i].free)
			before = d.least[i]
		}
		d.stale = false
	}
	return d.least[count-1], d.points[0].plan
}

// within sets window to what is free from a moment to another one all the time.
func (d *decision) within(free *table, from, to int64) {
	d.window.copyFrom(free)
	for i := range d.points {
		if p := &d.points[i]; p.at < to && p.at >= from {
			d.window.least(p.free)
		}
	}
}

// take room from now on.
func (d *decision) take(w *Waiter, t *team, ends int64, holds []Holding) {
	d.free.add(holds, -1)
	d.stale = true
	t.take(d.now, ends, &w.Demand.Claim)
	for i := range t.free {
		t.free[i] = t.free[i].less(w.Demand.Claim)
	}
	d.takeAt(d.now, ends, holds)
	if ends < forever {
		d.insert(event{at: ends, sign: 1, holds: holds, team: w.Namespace, claim: w.Demand.Claim})
	}
}

// takeAt takes room from the points between two moments.
func (d *decision) takeAt(from, to int64, holds []Holding) {
	for i := range d.points {
		if p := &d.points[i]; p.at >= from && p.at < to {
			p.free.add(holds, -1)
		}
	}
}

func (t *team) take(from, to int64, claim *Claim) {
	for i := range t.points {
		if p := &t.points[i]; p.at >= from && p.at < to {
			for q := range p.free {
				p.free[q] = p.free[q].less(*claim)
			}
		}
	}
}

func (d *decision) insert(e event) {
	at, _ := slices.BinarySearchFunc(d.events, e.at, func(e event, at int64) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	d.events = slices.Insert(d.events, at, e)
}

// plan the earliest start of one that cannot start now, and keep its room, if it is among the first; nil where there is none.
func (d *decision) plan(w *Waiter, t *team, hosts bool) (p *walk, first bool) {
	made := &t.plans
	if hosts {
		made = &d.plans
	}
	if made.exhausted() || hosts && !d.fitsBare(w) {
		return nil, false
	}
	made.tries++
	p = d.search(w, t, hosts)
	if p == nil || p.at == never && made.never >= Depth {
		return nil, true
	}
	d.keep(w, t, p, hosts)
	if p.at == never {
		made.never++
	} else {
		made.known++
	}
	return p, true
}

// walk is the state at a moment on the way through the events.
type walk struct {
	at    int64
	free  *table
	quota []Claim
	holds []Holding
}

func (p *walk) apply(e *event, namespace string, hosts bool) {
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
func (d *decision) search(w *Waiter, t *team, hosts bool) *walk {
	p := &walk{quota: slices.Clone(t.free)}
	if hosts {
		p.free = newTable(0, 0)
		p.free.copyFrom(d.free)
	}
	next := 0
	for next < len(d.events) && d.events[next].at < never {
		p.at = d.events[next].at
		gives := false
		for ; next < len(d.events) && d.events[next].at == p.at; next++ {
			e := &d.events[next]
			p.apply(e, w.Namespace, hosts)
			gives = gives || e.sign > 0 && (hosts || e.team == w.Namespace)
		}
		if gives && d.fitsAt(w, t, p, hosts) {
			return p
		}
	}
	p.at = never
	for ; next < len(d.events); next++ {
		p.apply(&d.events[next], w.Namespace, hosts)
	}
	for _, passed := range []bool{false, true} { // what passed it stays, if there is room without that
		for _, run := range d.live {
			if run.passed(w) == passed {
				p.apply(&event{sign: 1, holds: run.Holds, team: run.Namespace, claim: run.Claim}, w.Namespace, hosts)
			}
		}
		if d.fitsAt(w, t, p, hosts) {
			return p
		}
	}
	return nil
}

// fitsAt tells that there is room from a moment until the end of one that starts then, beside the plans that begin meanwhile.
func (d *decision) fitsAt(w *Waiter, t *team, p *walk, hosts bool) bool {
	ends := d.ends(p.at, w.Lasts)
	if _, _, lacks := lacking(p.quota, &w.Demand.Claim); lacks {
		return false
	}
	for i := range t.points {
		if other := &t.points[i]; other.at > p.at && other.at < ends {
			if _, _, lacks := lacking(other.free, &w.Demand.Claim); lacks {
				return false
			}
		}
	}
	if !hosts {
		return true
	}
	if !p.free.mayPlace(w.Demand) {
		return false
	}
	d.within(p.free, p.at+1, ends)
	p.holds = d.place(w)
	return p.holds != nil
}

// keep the room of a plan.
func (d *decision) keep(w *Waiter, t *team, p *walk, hosts bool) {
	ends := d.ends(p.at, w.Lasts)
	d.insert(event{at: p.at, sign: -1, holds: p.holds, team: w.Namespace, claim: w.Demand.Claim})
	if ends < forever {
		d.insert(event{at: ends, sign: 1, holds: p.holds, team: w.Namespace, claim: w.Demand.Claim})
	}
	t.take(p.at, ends, &w.Demand.Claim)
	for q := range p.quota {
		p.quota[q] = p.quota[q].less(w.Demand.Claim)
	}
	t.points = append(t.points, teamPoint{at: p.at, free: p.quota, plan: &w.Identity})
	if hosts {
		d.takeAt(p.at, ends, p.holds)
		p.free.add(p.holds, -1)
		at, _ := slices.BinarySearchFunc(d.points, p.at, func(p point, at int64) int { return cmp.Compare(p.at, at) })
		d.points = slices.Insert(d.points, at, point{at: p.at, free: p.free, plan: &w.Identity})
		d.stale = true
	}
}

// lacking is the first quota, and kind, of which there is too little.
func lacking(free []Claim, claim *Claim) (quota, of int, lacks bool) {
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

func (c Claim) less(other Claim) Claim { return c.plus(other, -1) }

// plus another claim, times sign; what is unlimited stays so.
func (c Claim) plus(other Claim, sign int64) Claim {
	for i := range c {
		if c[i] != Unlimited {
			c[i] += sign * other[i]
		}
	}
	return c
}
