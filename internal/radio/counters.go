package radio

// DelayBounds and LatenessBounds are the upper bounds of the histograms' buckets in nanoseconds. The last
// bucket has none.
var (
	DelayBounds = []int64{100e3, 1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6,
		1e9, 2e9, 5e9, 10e9, 20e9, 50e9, 100e9}
	LatenessBounds = []int64{20e3, 50e3, 100e3, 200e3, 500e3, 1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 1e9}
)

// LateThreshold in nanoseconds: what happens later than this after its time counts as late.
const LateThreshold = 2e6

// IsLate reports whether what was due at a time and happens now is late.
func IsLate(due, now int64) bool { return now-due > LateThreshold }

const maxBuckets = 18

// Histogram counts durations in nanoseconds.
type Histogram struct {
	// Buckets counts per bucket, not cumulated; the last used one is above every bound.
	Buckets [maxBuckets]uint64
	Count   uint64
	// Sum in nanoseconds.
	Sum int64
}

// Add counts a duration by the bounds.
func (h *Histogram) Add(bounds []int64, v int64) {
	i := 0
	for i < len(bounds) && v > bounds[i] {
		i++
	}
	h.Buckets[i]++
	h.Count++
	h.Sum += v
}

// Counters of one port since it was attached. Every frame is accounted for:
//
//	FramesSent + Copies = Released + the sender's Drops (up to NoReceiver) + InFlight
//	Deliveries due to a port = FramesReceived + the receiver's Drops (after NoReceiver)
type Counters struct {
	// FramesSent and BytesSent from the node to its radio.
	FramesSent, BytesSent uint64
	// FramesReceived and BytesReceived from the radio to the node.
	FramesReceived, BytesReceived uint64
	// Copies are the additional transmissions of frames that go over several links.
	Copies uint64
	// Corrupted are the transmissions whose content the model changed.
	Corrupted uint64
	// Released are the transmissions that reached their receivers' interfaces.
	Released uint64
	// Drops by Reason.
	Drops [reasons]uint64
	// LateInterference are receptions that would have failed had a transmission of another host or network been known in time.
	LateInterference uint64
	// InFlight is the number of the node's frames that wait or are under way.
	InFlight int
	// Delay from being sent to being released, and Lateness of the release against the model's time.
	// Lateness, WorstLateness and LateReleases include frames received from senders on other hosts.
	Delay, Lateness Histogram
	// WorstLateness in nanoseconds and LateReleases since the last snapshot that reset them.
	WorstLateness int64
	LateReleases  uint64
}

// AddUp reports whether every frame of the node, and every copy, is accounted for.
func (c *Counters) AddUp() bool {
	ended := c.Released + uint64(c.InFlight) //nolint:gosec // not negative
	for _, drops := range c.Drops[:NoReceiver+1] {
		ended += drops
	}
	return c.FramesSent+c.Copies == ended
}

func (c *Counters) addReleased(sent, due, now int64) {
	c.Released++
	c.Delay.Add(DelayBounds, now-sent)
	c.addLateness(due, now)
}

func (c *Counters) addLateness(due, now int64) {
	late := max(now-due, 0)
	c.Lateness.Add(LatenessBounds, late)
	c.WorstLateness = max(c.WorstLateness, late)
	if IsLate(due, now) {
		c.LateReleases++
	}
}

// Dropped calls f for each reason that has dropped frames.
func (c *Counters) Dropped(f func(reason string, frames uint64)) {
	for r, n := range c.Drops {
		if n > 0 {
			f(Reason(r).String(), n)
		}
	}
}
