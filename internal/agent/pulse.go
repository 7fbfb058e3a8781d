package agent

import "time"

// pulsePeriod is how often an agent looks after what nobody tells it of.
const pulsePeriod = time.Second

var pulseOrigin = time.Now()

// pulse fires every pulsePeriod, at the same moments as all others of this program. To wake up costs more than most of what is done then, and hundreds
// of agents on a host wake up.
type pulse struct{ *time.Timer }

func newPulse() pulse { return pulse{time.NewTimer(untilPulse(time.Since(pulseOrigin)))} }

// next is to be called after each time it has fired.
func (p pulse) next() { p.Reset(untilPulse(time.Since(pulseOrigin))) }

// untilPulse is how long the next one takes, so long after the first.
func untilPulse(since time.Duration) time.Duration { return pulsePeriod - since%pulsePeriod }
