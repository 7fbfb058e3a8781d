// Package antenna has the gain of an antenna towards another one, as EMANE's antenna profiles describe it.
package antenna

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Limits of all profiles together, so that a scenario's index stays small.
const (
	MaxProfiles = 4096
	MaxBearings = 1 << 20
)

// missingGainDBi is EMANE's gain where an antenna pattern has no entry. Where a blockage pattern has none, nothing is blocked.
const missingGainDBi = -327

// Bearing is the gain in dBi, or in dB of a blockage, from one bearing to another in whole degrees.
type Bearing struct {
	Min, Max int16
	Gain     float64
}

// Elevation is what a pattern has from one elevation to another in whole degrees. Its bearings ascend and do not overlap.
type Elevation struct {
	Min, Max int16
	Bearings []Bearing
}

// Pattern of an antenna, or of what blocks it. Its elevations ascend and do not overlap.
type Pattern struct{ Elevations []Elevation }

// gain in a direction, or another value where the pattern has none.
func (p *Pattern) gain(bearing, elevation, missing float64) float64 {
	b, e := int16(math.Round(bearing)), int16(math.Round(elevation))
	if b == 360 { // as EMANE's AntennaPattern::getGain does, of antennas and of blockages
		b = 0
	}
	i, _ := slices.BinarySearchFunc(p.Elevations, e, func(r Elevation, e int16) int { return cmp.Compare(r.Max, e) })
	if i == len(p.Elevations) || e < p.Elevations[i].Min {
		return missing
	}
	bearings := p.Elevations[i].Bearings
	k, _ := slices.BinarySearchFunc(bearings, b, func(r Bearing, b int16) int { return cmp.Compare(r.Max, b) })
	if k == len(bearings) || b < bearings[k].Min {
		return missing
	}
	return bearings[k].Gain
}

// size is how many bearings the pattern has.
func (p *Pattern) size() (bearings int) {
	for i := range p.Elevations {
		bearings += len(p.Elevations[i].Bearings)
	}
	return bearings
}

// check that a search finds what the pattern has.
func (p *Pattern) check() error {
	if len(p.Elevations) == 0 {
		return errors.New("a pattern has no elevations")
	}
	for i, e := range p.Elevations {
		if e.Min > e.Max || i > 0 && e.Min <= p.Elevations[i-1].Max || len(e.Bearings) == 0 {
			return fmt.Errorf("elevations from %d to %d are out of order, or empty", e.Min, e.Max)
		}
		for k, b := range e.Bearings {
			if b.Min > b.Max || k > 0 && b.Min <= e.Bearings[k-1].Max || math.IsNaN(b.Gain) || math.IsInf(b.Gain, 0) {
				return fmt.Errorf("bearings from %d to %d are out of order, or without a gain", b.Min, b.Max)
			}
		}
	}
	return nil
}

// Placement of an antenna on its platform, in metres from the platform's position: north is ahead where the platform is not turned.
type Placement struct{ North, East, Up float64 }

// Profile is an antenna with its place on a platform.
type Profile struct {
	ID        int
	Antenna   *Pattern
	Blockage  *Pattern // nil for none
	Placement Placement
}

// Profiles that a scenario's platforms may take, ascending by ID.
type Profiles []Profile

// Find a profile; nil if there is none of this ID.
func (p Profiles) Find(id int) *Profile {
	i, found := slices.BinarySearchFunc(p, id, func(f Profile, id int) int { return cmp.Compare(f.ID, id) })
	if !found {
		return nil
	}
	return &p[i]
}

// Check that the profiles can be found, and are within the limits.
func (p Profiles) Check() error {
	if len(p) > MaxProfiles {
		return fmt.Errorf("there are %d antenna profiles: want at most %d", len(p), MaxProfiles)
	}
	for i, f := range p {
		if f.ID < 0 || f.ID > math.MaxUint16 || i > 0 && f.ID <= p[i-1].ID || f.Antenna == nil {
			return fmt.Errorf("antenna profile %d is out of order, out of range, or without a pattern", f.ID)
		}
		if v := f.Placement; !(math.Abs(v.North)+math.Abs(v.East)+math.Abs(v.Up) <= 1e9) {
			return fmt.Errorf("antenna profile %d is placed at %v", f.ID, v)
		}
	}
	bearings := 0
	for _, pattern := range p.patterns() {
		if err := pattern.check(); err != nil {
			return err
		}
		bearings += pattern.size()
	}
	if bearings > MaxBearings {
		return fmt.Errorf("antenna patterns have %d bearings: want at most %d", bearings, MaxBearings)
	}
	return nil
}

// patterns of all profiles, each once.
func (p Profiles) patterns() (all []*Pattern) {
	seen := map[*Pattern]bool{nil: true}
	for i := range p {
		for _, pattern := range []*Pattern{p[i].Antenna, p[i].Blockage} {
			if !seen[pattern] {
				seen[pattern] = true
				all = append(all, pattern)
			}
		}
	}
	return all
}
