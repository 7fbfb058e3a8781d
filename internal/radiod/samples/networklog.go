package samples

import (
	"encoding/json"
	"errors"
	"math"

	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/runapi"
)

// networkLog remembers what has been written of a network's positions, links and steps.
type networkLog struct {
	positions map[string][3]float64
	links     map[[2]string]uint64 // transmissions received and missed, by receiver and sender
	steps     uint64
}

// sample writes the changes of a network's positions, links and steps.
func (c *networkLog) sample(encoder *json.Encoder, now int64, n *figures.Network) error {
	var failed error
	if moved := c.newPositions(n.Positions); len(moved) > 0 {
		failed = encoder.Encode(runapi.RadioPositions{TimeNanoseconds: now, Network: n.Network, Positions: moved})
	}
	if n.Steps != c.steps {
		c.steps = n.Steps
		failed = errors.Join(failed, encoder.Encode(runapi.RadioSteps{TimeNanoseconds: now, Network: n.Network, Steps: n.Steps, LateSteps: n.LateSteps,
			WorstStepLatenessSeconds: n.WorstStepLateness.Seconds()}))
	}
	for _, links := range c.changedLinks(now, n) {
		failed = errors.Join(failed, encoder.Encode(links))
	}
	return failed
}

// newPositions returns the positions that changed, and remembers them.
func (c *networkLog) newPositions(positions map[string][3]float64) map[string][3]float64 {
	moved := map[string][3]float64{}
	for node, position := range positions {
		if before, written := c.positions[node]; !written || before != position {
			moved[node] = position
		}
	}
	c.positions = positions
	return moved
}

// changedLinks returns the links with new transmissions.
func (c *networkLog) changedLinks(now int64, n *figures.Network) (lines []*runapi.RadioLinks) {
	if c.links == nil {
		c.links = map[[2]string]uint64{}
	}
	var line *runapi.RadioLinks
	for i := range n.Links {
		l := &n.Links[i]
		key, count := [2]string{l.Receiver, l.From}, l.Transmissions()
		if c.links[key] == count {
			continue
		}
		c.links[key] = count
		if line == nil || line.Receiver != l.Receiver {
			line = &runapi.RadioLinks{TimeNanoseconds: now, Network: n.Network, Receiver: l.Receiver}
			lines = append(lines, line)
		}
		line.From = append(line.From, runapi.RadioLink{Node: l.From, SINRDecibels: hundredths(l.SINRDB), PathlossDecibels: hundredths(l.PathlossDB),
			Received: l.Heard, Missed: l.Missed.ByReason()})
	}
	return lines
}

// hundredths rounds a figure for JSON, which has neither NaN nor infinity.
func hundredths(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	value = math.Round(value*100) / 100
	return &value
}
