package synthetic

import "math"

// shape of a company's movement.
type shape struct {
	// wide and high, in metres, are the size of the area in which the company's centre moves.
	wide, high     float64
	moving, halted []formation
	// keepsFront: the company's front does not turn with its direction.
	keepsFront bool
	// meanHops and maxHops are the required hops over links of at most limitDB.
	meanHops float64
	maxHops  int
	limitDB  float64
	// coverRings is the number of rings that a vehicle searches for lower ground.
	coverRings int
	// The smallest and largest scale of the formation in metres.
	smallest, largest float64
}

func shapeOf(pattern string) shape {
	if pattern == AnglovaLikeModified {
		return shape{wide: 4000, high: 4000, keepsFront: true, meanHops: 2.5, maxHops: 7, limitDB: ModifiedLimitDB,
			moving: []formation{chain}, halted: []formation{chain}, coverRings: 4, smallest: 1000, largest: 12_000}
	}
	return shape{wide: 1500, high: 2500, meanHops: 1.6, maxHops: 4, limitDB: LimitDB,
		moving: []formation{column, wedge}, halted: []formation{ring, wedge}, coverRings: 3, smallest: 300, largest: 4500}
}

// place returns a vehicle's platoon, the number of platoons, and its share of its platoon's length, 0 to 1.
func place(vehicle, vehicles int) (platoon, all, share float64) {
	first := vehicle / platoonSize * platoonSize
	size := min(platoonSize, vehicles-first)
	return float64(vehicle / platoonSize), float64(platoons(vehicles)), (float64(vehicle-first) + 0.5) / float64(size)
}

// column is a column on a road, platoon behind platoon.
func column(vehicle, vehicles int) point {
	platoon, all, share := place(vehicle, vehicles)
	return point{x: 0.5 - (platoon+0.2+0.6*share)/all}
}

// wedge: the first platoon in front, the others to both sides behind it, and each platoon in a line of its own.
func wedge(vehicle, vehicles int) point {
	platoon, all, share := place(vehicle, vehicles)
	side := math.Mod(platoon, 2)*2 - 1
	rank := math.Ceil(platoon / 2)
	return point{x: 0.25 - rank/all, y: side*rank/all*0.8 + (share-0.5)*0.6/all*2}
}

// ring is a ring of platoons that face outwards, each in its own line.
func ring(vehicle, vehicles int) point {
	platoon, all, share := place(vehicle, vehicles)
	sin, cos := math.Sincos(2 * math.Pi * (platoon + 0.7*share) / all)
	return point{x: 0.3 * cos, y: 0.3 * sin}
}

// chain is a chain across the front: the platoons side by side, with single vehicles that link them.
func chain(vehicle, vehicles int) point {
	platoon, all, share := place(vehicle, vehicles)
	return point{x: 0.02 * math.Sin(7*platoon+5*share), y: (platoon+share)/all - 0.5}
}
