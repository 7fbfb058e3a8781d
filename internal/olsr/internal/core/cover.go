package core

// Candidate for an MPR: a symmetric neighbour.
type Candidate struct {
	Willingness int
	// Distance is the metric of the link to it.
	Distance uint32
}

// Reach is a way to a target: which candidate leads there, and how far it is from it.
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

// Cover chooses MPRs: the fewest the greedy algorithm of RFC 7181 appendix B (RFC 3626 section 8.3.1) finds such that each
// target that is not reached as well directly is reached over an MPR, at the least distance there is. Of equals the first
// candidate is taken. A candidate of willingness 0 is never chosen, one of always is in any case.
func Cover(candidates []Candidate, targets []Target, always int) []bool {
	chosen := make([]bool, len(candidates))
	// by is which candidates reach a target best, over which targets.
	by := make([][]int, 0, len(targets))
	for _, t := range targets {
		if best := best(candidates, t); len(best) > 0 {
			by = append(by, best)
		}
	}
	for i, c := range candidates {
		chosen[i] = c.Willingness >= always
	}
	for _, best := range by {
		if len(best) == 1 {
			chosen[best[0]] = true
		}
	}
	for {
		reach := make([]int, len(candidates))
		rest := by[:0]
		for _, best := range by {
			if covered(best, chosen) {
				continue
			}
			rest = append(rest, best)
			for _, i := range best {
				reach[i]++
			}
		}
		if by = rest; len(by) == 0 {
			return chosen
		}
		chosen[widest(candidates, reach)] = true
	}
}

func best(candidates []Candidate, t Target) []int {
	var all []int
	least := t.Direct
	for _, r := range t.Reaches {
		c := candidates[r.Candidate]
		d := c.Distance + r.Distance
		if c.Willingness == 0 || least != 0 && d > least || t.Direct != 0 && d >= t.Direct {
			continue
		}
		if least == 0 || d < least {
			least, all = d, all[:0]
		}
		all = append(all, r.Candidate)
	}
	return all
}

func covered(best []int, chosen []bool) bool {
	for _, i := range best {
		if chosen[i] {
			return true
		}
	}
	return false
}

// widest is the candidate of the greatest willingness, among those the one that reaches most.
func widest(candidates []Candidate, reach []int) int {
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
