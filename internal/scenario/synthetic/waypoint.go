package synthetic

import "math/rand/v2"

// Speeds in m/s and the longest pause in seconds of RandomWaypoint. A slowest speed well above zero keeps the mean speed
// from decaying (Yoon, Liu, Noble: "Random Waypoint Considered Harmful", INFOCOM 2003).
const (
	slowest, fastest = 2.0, 12.0
	longestPause     = 60.0
)

// waypoints: each platform goes straight to a random place in a square, pauses there, and continues.
type waypoints struct {
	half   float64
	now    []point
	to     []point
	speed  []float64
	pause  []float64
	random []*rand.Rand
}

func (p movement) randomWaypoint() *waypoints {
	w := &waypoints{half: p.spacing}
	for i := range p.platforms {
		r := p.random(uint64(i) + 1)
		w.random = append(w.random, r)
		w.now = append(w.now, w.draw(r))
		w.to = append(w.to, w.draw(r))
		w.speed = append(w.speed, slowest+r.Float64()*(fastest-slowest))
		w.pause = append(w.pause, 0)
	}
	return w
}

func (w *waypoints) draw(r *rand.Rand) point {
	return point{x: (2*r.Float64() - 1) * w.half, y: (2*r.Float64() - 1) * w.half}
}

func (w *waypoints) places() []point { return w.now }

func (w *waypoints) step() {
	for i := range w.now {
		if w.pause[i] >= 1 {
			w.pause[i]--
			continue
		}
		way := w.to[i].minus(w.now[i])
		if left := way.length(); left > w.speed[i] {
			w.now[i] = w.now[i].plus(way.times(w.speed[i] / left))
			continue
		}
		r := w.random[i]
		w.now[i], w.to[i] = w.to[i], w.draw(r)
		w.speed[i], w.pause[i] = slowest+r.Float64()*(fastest-slowest), r.Float64()*longestPause
	}
}
