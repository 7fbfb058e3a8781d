package propagation

import "fmt"

// TwoRayRange counts pairs of antennas for which TwoRay is a poor model.
type TwoRayRange struct {
	pairs, near, far int
	// apart are pairs at unknown distances, and low those of all with a low antenna.
	apart, low int
}

// Add a pair of antennas at heights above the ground.
func (r *TwoRayRange) Add(metres, height1, height2, frequencyHertz float64) {
	r.pairs++
	switch {
	case metres < CrossoverMetres(height1, height2, frequencyHertz):
		r.near++
	case metres > HorizonMetres(height1, height2):
		r.far++
	}
	r.addLow(height1, height2, frequencyHertz)
}

// AddApart adds a pair of antennas at an unknown distance.
func (r *TwoRayRange) AddApart(height1, height2, frequencyHertz float64) {
	r.apart++
	r.addLow(height1, height2, frequencyHertz)
}

func (r *TwoRayRange) addLow(height1, height2, frequencyHertz float64) {
	if min(height1, height2) < SpeedOfLight/frequencyHertz {
		r.low++
	}
}

// Warnings for users; none if TwoRay fits every pair.
func (r *TwoRayRange) Warnings() (warnings []string) {
	for _, w := range []struct {
		count, of int
		text      string
	}{
		{r.near, r.pairs, "are closer than the crossover distance, and have the loss of free space"},
		{r.far, r.pairs, "are beyond the radio horizon, where two rays give too little loss: Diffraction of a Scenario knows the Earth's curvature"},
		{r.low, r.pairs + r.apart, "have an antenna lower than a wavelength, whose ground wave two rays leave out"},
	} {
		if w.count > 0 {
			warnings = append(warnings, fmt.Sprintf("TwoRay: %.3g %% of the pairs %s", 100*float64(w.count)/float64(w.of), w.text))
		}
	}
	return warnings
}
