package synthetic

import (
	"context"
	"math"
	"math/rand/v2"
)

// AnglovaLikeBattalion is the movement pattern of a battalion.
const AnglovaLikeBattalion = "AnglovaLikeBattalion"

// BattalionVehicles are the vehicles of the six companies.
const BattalionVehicles = 157

// BattalionPlatforms are all platforms: vehicles, drones, support and soldiers.
const BattalionPlatforms = 243

const (
	// companyPlatforms are those of a company, and of movements by default.
	companyPlatforms = 24
	// footReach is the distance in metres within which soldiers stay around their standing vehicle, and footSpeed that of a walk in m/s.
	footReach, footSpeed = 120.0, 1.5
	// followReach is the distance in metres within which vehicles follow another one.
	followReach = 250.0
	// fetchSpeed in m/s is that of followers that catch up with a vehicle; soldiers are aboard one.
	fetchSpeed = 1.5 * topSpeed
	// Drones circle over a company at this radius in metres, speed in m/s, and altitude in metres above the sea.
	droneRadius, droneSpeed, droneAltitude = 800.0, 18.0, 650.0
)

// sector is a company's part of the battalion: its size, and the centre of the area in which it moves.
type sector struct {
	vehicles int
	centre   point
}

// sectors are those of the companies: two ahead, two behind them, then staff and mortars, and logistics last. The first is the single
// company's own.
var sectors = []sector{
	{24, point{0, 0}}, {24, point{4000, 500}}, {24, point{500, -4500}}, {24, point{4500, -4000}}, {22, point{2000, -8000}}, {39, point{2500, -11_500}},
}

// follower stays near a vehicle.
type follower struct {
	vehicle int
	// spot is its place beside the vehicle.
	spot point
	// foot: it is beside the vehicle only while that stands, else aboard.
	foot bool
}

// battalion is six companies, and who follows their vehicles or flies over them.
type battalion struct {
	companies []*company
	// first is the first vehicle of each company.
	first     []int
	followers []follower
	// drones are the companies over which drones circle.
	drones []int
	second int
	// now has all platforms by their numbers: vehicles, stations of drones, drones, support, soldiers. Of them the first are wanted.
	now    []point
	wanted int
}

// battalion returns the battalion, of which the first platforms are wanted.
func (p movement) battalion(ctx context.Context) (*battalion, error) {
	b := &battalion{wanted: p.platforms}
	first := 0
	for k, s := range sectors {
		of := p
		of.pattern, of.platforms, of.seed = AnglovaLike, s.vehicles, p.seed+int64(k)*1_000_003
		over, err := of.surveyor(ctx, p.seed, s.centre)
		if err != nil {
			return nil, err
		}
		b.companies, b.first = append(b.companies, newCompany(of, over)), append(b.first, first)
		first += s.vehicles
	}
	b.staff(p.random(0xba))
	b.now = make([]point, BattalionPlatforms)
	b.drive()
	for i, f := range b.followers {
		b.now[b.place(i)] = b.now[f.vehicle].plus(f.spot)
	}
	b.fly()
	return b, nil
}

// place returns the index of a follower among all platforms. Drones are behind the first two.
func (b *battalion) place(follower int) int {
	if follower < 2 {
		return BattalionVehicles + follower
	}
	return BattalionVehicles + follower + len(b.drones)
}

// staff adds those who follow vehicles: two control stations of drones, eight of support, three soldiers a vehicle of infantry platoons.
func (b *battalion) staff(r *rand.Rand) {
	beside := func(vehicle int, reach float64, foot bool) {
		sin, cos := math.Sincos(2 * math.Pi * r.Float64())
		distance := reach * (0.2 + 0.8*r.Float64())
		b.followers = append(b.followers, follower{vehicle, point{distance * cos, distance * sin}, foot})
	}
	b.drones = []int{0, 1, 2, 3}
	for range 2 {
		beside(b.first[4], followReach, false)
	}
	for i := range 8 {
		beside(b.first[5]+1+i, followReach, false)
	}
	for _, company := range []int{2, 3} {
		for i := 12; i < 24; i++ {
			for range 3 {
				beside(b.first[company]+i, footReach, true)
			}
		}
	}
}

// drive takes over the companies' places.
func (b *battalion) drive() {
	for k, c := range b.companies {
		for i, at := range c.places() {
			b.now[b.first[k]+i] = at.plus(sectors[k].centre)
		}
	}
}

// fly moves the drones along their circles.
func (b *battalion) fly() {
	for i, company := range b.drones {
		var centre point
		vehicles := b.now[b.first[company] : b.first[company]+sectors[company].vehicles]
		for _, at := range vehicles {
			centre = centre.plus(at.times(1 / float64(len(vehicles))))
		}
		sin, cos := math.Sincos(float64(b.second)*droneSpeed/droneRadius + float64(i))
		b.now[BattalionVehicles+2+i] = centre.plus(point{droneRadius * cos, droneRadius * sin})
	}
}

func (b *battalion) places() []point { return b.now[:b.wanted] }

func (b *battalion) step() {
	before := append([]point(nil), b.now[:BattalionVehicles]...)
	b.second++
	for _, c := range b.companies {
		c.step()
	}
	b.drive()
	for i, f := range b.followers {
		at := &b.now[b.place(i)]
		*at = f.next(*at, b.now[f.vehicle], before[f.vehicle] == b.now[f.vehicle])
	}
	b.fly()
}

// next returns a follower's next place, by its vehicle's.
func (f *follower) next(now, vehicle point, stands bool) point {
	to, speed := vehicle.plus(f.spot), fetchSpeed
	if f.foot && stands {
		speed = footSpeed
	} else if f.foot {
		to = vehicle
	}
	way := to.minus(now)
	if left := way.length(); left > speed {
		return now.plus(way.times(speed / left))
	}
	return to
}

// altitude returns that of a platform above the sea; 0 is on the ground.
func (b *battalion) altitude(platform int) float64 {
	if first := BattalionVehicles + 2; platform >= first && platform < first+len(b.drones) {
		return droneAltitude
	}
	return 0
}
