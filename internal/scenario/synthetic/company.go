package synthetic

import (
	"math"
	"math/rand/v2"
	"slices"

	"vignette.dev/vignette/internal/scenario"
)

// The movement patterns of a company.
const (
	AnglovaLike         = "AnglovaLike"
	AnglovaLikeModified = "AnglovaLikeModified"
)

const (
	// platoonSize is the number of vehicles that stay together; 24 make a headquarters and three platoons.
	platoonSize = 6
	// topSpeed is a vehicle's top speed in m/s across country.
	topSpeed = 10.0
	// followSeconds is the time in which a vehicle closes most of the gap to its place in the formation.
	followSeconds = 8.0
	// boundSeconds is the time from one platoon's start to the next one's.
	boundSeconds = 45
	// scatterMetres is the range around its place in the formation in which a vehicle chooses a new spot for each phase.
	scatterMetres = 60.0
	// checksPerSearch is the number of checks of the network between two searches of a vehicle for better ground.
	checksPerSearch = 6
	// coverMetres is the distance between the search rings around its place in the formation.
	coverMetres = 100.0
	// contactSeconds is the time between two checks of the network. factor is how much the company then closes or opens up.
	contactSeconds  = 5
	closeUp, openUp = 0.99, 1.005
	// maxWatched is the most vehicles in a check of the network. maxGroups is the most groups of platoons that wait or move together.
	maxWatched, maxGroups = 48, 8
)

// phase is a phase of the company's advance: a leg, or a halt.
type phase struct {
	seconds   int
	from, to  point
	sin, cos  float64
	formation formation
	scatter   []point
}

// formation returns the place of vehicle i of n, in units of the company's scale, x forward and y to the left of the centre.
type formation func(vehicle, vehicles int) point

// company is a company on the move.
type company struct {
	shape shape
	over  *surveyor
	scale float64
	lost  bool // contact is lost, or nearly so
	// strained is the network's strain at the last check.
	strained int
	second   int
	now      []point
	cover    []point // the offset of each vehicle from its place in the formation to low ground
	phases   []phase
	starts   []int
	current  []int  // the phase of each platoon
	waits    []bool // platoons that wait until the next check
}

// newCompany returns a company at the largest scale with initial contact.
func newCompany(p movement, over *surveyor) *company {
	c := &company{shape: shapeOf(p.pattern), over: over, now: make([]point, p.platforms), cover: make([]point, p.platforms),
		current: make([]int, platoons(p.platforms)), waits: make([]bool, min(platoons(p.platforms), maxGroups))}
	c.plan(p.random(0xc0), p)
	for c.scale = c.shape.largest; ; c.scale *= 0.95 {
		for i := range c.now {
			c.cover[i] = point{}
			c.cover[i] = c.better(c.target(i))
			c.now[i] = c.target(i)
		}
		if closer := c.contact(); !closer || c.scale < c.shape.smallest {
			return c
		}
	}
}

// contact reports whether the company should close up: some vehicles are out of reach, or some paths have too many or avoidable
// hops. Like a commander, it checks the current network.
func (c *company) contact() (closer bool) {
	network := c.over.at(c.watched(c.now))
	c.strained = c.strain(network)
	c.lost = network.Hops[0] > 0 || network.MaxHops() >= c.shape.maxHops
	return c.lost || network.MeanHops() > c.shape.meanHops
}

func platoons(vehicles int) int { return (vehicles + platoonSize - 1) / platoonSize }

// plan plans legs and halts for the full duration.
func (c *company) plan(r *rand.Rand, p movement) {
	shape := c.shape
	at, heading := point{(r.Float64() - 0.5) * shape.wide, (r.Float64() - 0.5) * shape.high}, 2*math.Pi*r.Float64()
	whole := int(p.duration / Step)
	for second := 0; second <= whole; {
		to := point{(r.Float64() - 0.5) * shape.wide, (r.Float64() - 0.5) * shape.high}
		if !shape.keepsFront {
			way := to.minus(at)
			heading = math.Atan2(way.y, way.x)
		}
		leg := c.phase(r, p.platforms, at, to, heading, shape.moving[r.IntN(len(shape.moving))])
		leg.seconds = max(60, int(to.minus(at).length()/(3+4*r.Float64())))
		halt := c.phase(r, p.platforms, to, to, heading, shape.halted[r.IntN(len(shape.halted))])
		halt.seconds = 180 + r.IntN(600)
		c.phases = append(c.phases, leg, halt)
		c.starts = append(c.starts, second, second+leg.seconds)
		second += leg.seconds + halt.seconds
		at = to
	}
}

func (c *company) phase(r *rand.Rand, vehicles int, from, to point, heading float64, f formation) phase {
	ph := phase{from: from, to: to, formation: f, scatter: make([]point, vehicles)}
	ph.sin, ph.cos = math.Sincos(heading)
	for i := range ph.scatter {
		ph.scatter[i] = point{(2*r.Float64() - 1) * scatterMetres, (2*r.Float64() - 1) * scatterMetres}
	}
	return ph
}

func (c *company) places() []point { return c.now }

// step moves the company. Every few seconds it checks its network, and closes up or opens. Vehicles that would exceed the most hops
// or break the network wait until the others have moved.
func (c *company) step() {
	if c.second%contactSeconds == 0 {
		c.adjust()
		c.clear()
	}
	c.second++
	for i := range c.now {
		if !c.waits[c.group(i)] {
			c.now[i] = c.next(i)
		}
	}
}

// adjust adapts the formation to the network, and vehicles to the ground. A company that halts in contact stays unchanged.
func (c *company) adjust() {
	closer := c.contact()
	if c.halted() && !c.lost {
		return
	}
	if closer {
		c.scale = max(c.scale*closeUp, c.shape.smallest)
	} else {
		c.scale = min(c.scale*openUp, c.shape.largest)
	}
	for i := c.second / contactSeconds % checksPerSearch; i < len(c.now); i += checksPerSearch {
		c.cover[i] = c.better(c.target(i).minus(c.cover[i]))
	}
}

// halted reports whether no platoon is on a leg.
func (c *company) halted() bool {
	return !slices.ContainsFunc(c.current, func(k int) bool { return c.phases[k].from != c.phases[k].to })
}

// next returns a vehicle's next place.
func (c *company) next(vehicle int) point {
	way := c.target(vehicle).minus(c.now[vehicle])
	left := way.length()
	if left < 0.5 {
		return c.now[vehicle] // it has halted
	}
	return c.now[vehicle].plus(way.times(min(topSpeed, left/followSeconds) / left))
}

// clear lets platoons move until the next check: all, or else one after the other as the network allows.
func (c *company) clear() {
	for k := range c.waits {
		c.waits[k] = false
	}
	if c.allowed() {
		return
	}
	for k := range c.waits {
		c.waits[k] = true
	}
	for k := range c.waits {
		first := (k + c.second/contactSeconds) % len(c.waits)
		c.waits[first] = false
		if !c.allowed() {
			c.waits[first] = true
		}
	}
}

// allowed reports whether the network is under no more strain while the moving platoons move until the next check.
func (c *company) allowed() bool {
	ahead := *c
	ahead.now = slices.Clone(c.now)
	ahead.current = slices.Clone(c.current)
	for range contactSeconds {
		ahead.second++
		for i := range ahead.now {
			if !ahead.waits[c.group(i)] {
				ahead.now[i] = ahead.next(i)
			}
		}
		if c.strain(c.over.at(c.watched(ahead.now))) > c.strained {
			return false
		}
	}
	return true
}

// strain is zero for a good network: within the most hops, and no more than one vehicle out of contact.
func (c *company) strain(network scenario.Connectivity) int {
	n := min(len(c.now), maxWatched)
	return max(0, network.MaxHops()-c.shape.maxHops)*n*n + max(0, network.Hops[0]-2*(n-1))
}

// watched returns the places of a company, or of an even selection from a larger force, to limit the computation.
func (c *company) watched(all []point) []point {
	if len(all) <= maxWatched {
		return all
	}
	some := make([]point, maxWatched)
	for i := range some {
		some[i] = all[i*len(all)/maxWatched]
	}
	return some
}

func (c *company) group(vehicle int) int { return vehicle / platoonSize % len(c.waits) }

// target returns the current destination of a vehicle.
func (c *company) target(vehicle int) point {
	platoon := vehicle / platoonSize
	second := max(0, c.second-platoon*boundSeconds)
	for k := c.current[platoon]; k+1 < len(c.starts) && second >= c.starts[k+1]; k++ {
		c.current[platoon] = k + 1
	}
	k := c.current[platoon]
	ph := &c.phases[k]
	share := min(1, float64(second-c.starts[k])/float64(ph.seconds))
	centre := ph.from.plus(ph.to.minus(ph.from).times(share))
	place := ph.formation(vehicle, len(c.now)).times(c.scale)
	return centre.plus(place.turned(ph.sin, ph.cos)).plus(ph.scatter[vehicle]).plus(c.cover[vehicle])
}

// better returns the offset to better ground near a place. Vehicles stay in valleys, with roads and cover, until contact is nearly lost.
// Then they search for a height.
func (c *company) better(near point) (way point) {
	best := math.Inf(1)
	for k := range 1 + 8*c.shape.coverRings {
		sin, cos := math.Sincos(float64(k%8) * math.Pi / 4)
		radius := float64((k+7)/8) * coverMetres
		there := point{radius * cos, radius * sin}
		height := c.over.height(near.plus(there))
		if c.lost {
			height = -height
		}
		if height < best {
			way, best = there, height
		}
	}
	return way
}
