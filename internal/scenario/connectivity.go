package scenario

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// DefaultPathlossLimitDB is the largest pathloss of a link, as in analyses of the Anglova scenario.
const DefaultPathlossLimitDB = 121

// Connectivity is a scenario's connectivity at a moment, by a limit of the pathloss.
type Connectivity struct {
	// Hops[h] is the number of ordered pairs of platforms whose shortest path has h hops, from 1; Hops[0] is the number of pairs
	// without any path.
	Hops []int
	// Links is the number of ordered pairs with pathloss up to the limit.
	Links int
	// Components are groups in which all platforms reach each other over links in both directions: their sizes, largest first.
	Components []int
}

// MeanHops returns the mean over the ordered pairs with a path; 0 if none has.
func (c Connectivity) MeanHops() float64 {
	pairs, hops := 0, 0
	for h := 1; h < len(c.Hops); h++ {
		pairs += c.Hops[h]
		hops += h * c.Hops[h]
	}
	if pairs == 0 {
		return 0
	}
	return float64(hops) / float64(pairs)
}

// MaxHops returns the length of the longest shortest path; 0 if there is none.
func (c Connectivity) MaxHops() int { return max(len(c.Hops)-1, 0) }

// Connected returns the share of the ordered pairs with a path, from 0 to 1; 1 if there are no pairs.
func (c Connectivity) Connected() float64 {
	pairs := 0
	for _, n := range c.Hops {
		pairs += n
	}
	if pairs == 0 {
		return 1
	}
	return 1 - float64(c.Hops[0])/float64(pairs)
}

// bitset is a set of platforms' indexes.
type bitset []uint64

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 == 1 }

// each calls do for each index in the set.
func (b bitset) each(do func(i int)) {
	for word, w := range b {
		for ; w != 0; w &= w - 1 {
			do(word*64 + bits.TrailingZeros64(w))
		}
	}
}

func newBitsets(n int) []bitset {
	words := (n + 63) / 64
	all := make(bitset, n*words)
	sets := make([]bitset, n)
	for i := range sets {
		sets[i] = all[i*words : (i+1)*words]
	}
	return sets
}

// Connectivity returns the connectivity at the current moment: there is a link if the pathloss is known and at most limitDB.
func (c *Cursor) Connectivity(limitDB float64) Connectivity {
	return NewConnectivity(len(c.scenario.platforms), func(i, j int) bool {
		dB, known := c.Pathloss(i, j)
		return known && dB <= limitDB
	})
}

// NewConnectivity returns the connectivity of n platforms with the links between them. A platform is not linked to itself.
func NewConnectivity(n int, linked func(i, j int) bool) Connectivity {
	links := newBitsets(n)
	result := Connectivity{Hops: []int{0}}
	for i := range n {
		for j := range n {
			if linked(i, j) {
				links[i].set(j)
				result.Links++
			}
		}
	}
	for i := range n {
		result.countHops(links, i)
	}
	result.Components = components(links)
	return result
}

// countHops counts from one platform to all others, breadth first.
func (c *Connectivity) countHops(links []bitset, from int) {
	n := len(links)
	words := len(links[from])
	sets := make(bitset, 3*words)
	seen, front, next := sets[:words], sets[words:2*words], sets[2*words:]
	seen.set(from)
	front.set(from)
	reached := 1
	for hops := 1; ; hops++ {
		clear(next)
		front.each(func(i int) {
			for w := range next {
				next[w] |= links[i][w]
			}
		})
		found := 0
		for w := range next {
			next[w] &^= seen[w]
			seen[w] |= next[w]
			found += bits.OnesCount64(next[w])
		}
		if found == 0 {
			break
		}
		for len(c.Hops) <= hops {
			c.Hops = append(c.Hops, 0)
		}
		c.Hops[hops] += found
		reached += found
		front, next = next, front
	}
	c.Hops[0] += n - reached
}

// components returns the sizes of groups over links in both directions, largest first.
func components(links []bitset) []int {
	var sizes []int
	seen := make([]bool, len(links))
	for start := range links {
		if seen[start] {
			continue
		}
		seen[start] = true
		group := []int{start}
		for done := 0; done < len(group); done++ {
			i := group[done]
			links[i].each(func(j int) {
				if !seen[j] && links[j].has(i) {
					seen[j] = true
					group = append(group, j)
				}
			})
		}
		sizes = append(sizes, len(group))
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	return sizes
}

// Connectivity returns the connectivity at t.
func (s *Scenario) Connectivity(t time.Duration, limitDB float64) (Connectivity, error) {
	c := s.NewCursor()
	if err := c.Seek(t); err != nil {
		return Connectivity{}, err
	}
	return c.Connectivity(limitDB), nil
}

// ConnectivityAt is the connectivity at a time.
type ConnectivityAt struct {
	At time.Duration
	Connectivity
}

// MaxMoments is the most moments of a timeline: nobody reads a longer table or curve.
const MaxMoments = 100_000

// Moments returns the number of moments of a timeline with a step.
func (s *Scenario) Moments(step time.Duration) int64 {
	if step <= 0 {
		return 1
	}
	return int64(s.Duration()/step) + 1
}

// Timeline returns the connectivity from 0 to the scenario's end, every step (and at the end).
func (s *Scenario) Timeline(ctx context.Context, step time.Duration, limitDB float64) ([]ConnectivityAt, error) {
	if n := s.Moments(step); n > MaxMoments {
		return nil, fmt.Errorf("a step of %s gives %d moments: want at most %d", step, n, MaxMoments)
	}
	c := s.NewCursor()
	var line []ConnectivityAt
	for t := time.Duration(0); ; t += step {
		t = min(t, s.Duration())
		if err := cmp.Or(ctx.Err(), c.Seek(t)); err != nil {
			return nil, err
		}
		line = append(line, ConnectivityAt{t, c.Connectivity(limitDB)})
		if t >= s.Duration() || step <= 0 {
			return line, nil
		}
	}
}

// Total returns the sum of hops and links over a timeline: the histogram of all pairs at all its times.
func Total(line []ConnectivityAt) Connectivity {
	total := Connectivity{Hops: []int{0}}
	for _, at := range line {
		for len(total.Hops) < len(at.Hops) {
			total.Hops = append(total.Hops, 0)
		}
		for h, n := range at.Hops {
			total.Hops[h] += n
		}
		total.Links += at.Links
	}
	return total
}
