package core

import "sync"

// Candidate for an MPR: a symmetric neighbour.
type Candidate struct {
	Willingness int
	// Distance is the metric of the link to it.
	Distance uint32
}

// Reach is a path to a target: which candidate leads there, and its distance from the target.
type Reach struct {
	Candidate int
	Distance  uint32
}

// Target is a node that the MPRs must reach.
type Target struct {
	// Direct is the metric of a link to it; 0 if it is no neighbour.
	Direct  uint32
	Reaches []Reach
}

// Cover chooses MPRs by the greedy algorithm of RFC 7181 appendix B (RFC 3626 section 8.3.1). Each target
// that is not reached as well directly is reached over an MPR at the least distance. Of equal candidates the
// first is taken. A candidate of willingness 0 is never chosen, one of willingness always is.
func Cover(candidates []Candidate, targets []Target, always int) []bool {
	c := covers.Get().(*cover)
	defer covers.Put(c)
	chosen := make([]bool, len(candidates))
	c.by, c.all = c.by[:0], c.all[:0]
	for i := range targets {
		if best := c.best(candidates, &targets[i]); len(best) > 0 {
			c.by = append(c.by, best)
		}
	}
	for i := range candidates {
		chosen[i] = candidates[i].Willingness >= always
	}
	for _, best := range c.by {
		if len(best) == 1 {
			chosen[best[0]] = true
		}
	}
	for {
		c.reach = append(c.reach[:0], make([]int, len(candidates))...)
		rest := c.by[:0]
		for _, best := range c.by {
			if covered(best, chosen) {
				continue
			}
			rest = append(rest, best)
			for _, i := range best {
				c.reach[i]++
			}
		}
		if c.by = rest; len(c.by) == 0 {
			return chosen
		}
		chosen[mostWilling(candidates, c.reach)] = true
	}
}

// cover is memory that is kept between choices.
type cover struct {
	by    [][]int // the best candidates of each target that is not covered
	all   []int   // the memory of by
	reach []int   // how many of those targets each candidate reaches
}

var covers = sync.Pool{New: func() any { return &cover{} }}

// best returns the best candidates for a target.
func (c *cover) best(candidates []Candidate, t *Target) []int {
	first, least := len(c.all), t.Direct
	for _, r := range t.Reaches {
		candidate := &candidates[r.Candidate]
		d := candidate.Distance + r.Distance
		if candidate.Willingness == 0 || least != 0 && d > least || t.Direct != 0 && d >= t.Direct {
			continue
		}
		if least == 0 || d < least {
			least, c.all = d, c.all[:first]
		}
		c.all = append(c.all, r.Candidate)
	}
	return c.all[first:]
}

func covered(best []int, chosen []bool) bool {
	for _, i := range best {
		if chosen[i] {
			return true
		}
	}
	return false
}

// mostWilling returns the candidate of the greatest willingness, among those the one that reaches most.
func mostWilling(candidates []Candidate, reach []int) int {
	choice := -1
	for i, c := range candidates {
		if reach[i] == 0 {
			continue
		}
		if choice < 0 || c.Willingness > candidates[choice].Willingness ||
			c.Willingness == candidates[choice].Willingness && reach[i] > reach[choice] {
			choice = i
		}
	}
	return choice
}
