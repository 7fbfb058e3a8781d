package geo

import (
	"cmp"
	"slices"
)

// Farthest returns the two places that are farthest apart, by their indexes, and their distance in metres. Pairs of at most
// beyond metres do not count: without a farther one, ok is false.
func Farthest(places []Vector, beyond float64) (a, b int, metres float64, ok bool) {
	radius, order := spread(places)
	metres = beyond
	for n, i := range order {
		if 2*radius[i] <= metres { // none of the rest is farther from another
			break
		}
		for _, j := range order[n+1:] {
			if radius[i]+radius[j] <= metres {
				break
			}
			if d := places[i].Sub(places[j]).Length(); d > metres {
				a, b, metres, ok = min(i, j), max(i, j), d, true
			}
		}
	}
	return a, b, metres, ok
}

// spread returns the distance of each place from their middle, and their indexes, the outermost first.
func spread(places []Vector) (radius []float64, order []int) {
	radius, order = make([]float64, len(places)), make([]int, len(places))
	if len(places) == 0 {
		return radius, order
	}
	low, high := places[0], places[0]
	for _, p := range places {
		low = Vector{X: min(low.X, p.X), Y: min(low.Y, p.Y), Z: min(low.Z, p.Z)}
		high = Vector{X: max(high.X, p.X), Y: max(high.Y, p.Y), Z: max(high.Z, p.Z)}
	}
	middle := Vector{X: (low.X + high.X) / 2, Y: (low.Y + high.Y) / 2, Z: (low.Z + high.Z) / 2}
	for i, p := range places {
		radius[i], order[i] = p.Sub(middle).Length(), i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(radius[j], radius[i]), i-j) })
	return radius, order
}
