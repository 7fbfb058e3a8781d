package peers

import "time"

const (
	// clockSamples of exchanges are kept; one comes every exchangeInterval.
	clockSamples = 16
	// wander is the most by which two clocks drift apart, or are slewed, per unit of time: 500 ppm is adjtimex(2)'s limit.
	wander = 500e-6
)

// Clock is what is known of a peer's clock.
type Clock struct {
	// Offset is the peer's clock less ours; what it really is differs by no more than Uncertainty as long as the way there and
	// back is no faster than nothing.
	Offset, Uncertainty time.Duration
	// RoundTrip of the exchange that Offset is from.
	RoundTrip time.Duration
	// RealtimeOffset is the peer's CLOCK_REALTIME less ours, and Epoch the peer's CLOCK_REALTIME less our other clock, in
	// nanoseconds; a step of our CLOCK_REALTIME does not show in Epoch.
	RealtimeOffset time.Duration
	Epoch          int64
	// Known tells that there was an exchange at all.
	Known bool
}

// exchange of time stamps as of NTP (RFC 5905): a request is sent and its answer received by our clock, received and answered
// by the peer's.
type exchange struct {
	sent, peerReceived, peerSent, received int64
	// realtime is the peer's CLOCK_REALTIME less its other clock.
	realtime int64
}

func (e *exchange) offset() int64 {
	return ((e.peerReceived - e.sent) + (e.peerSent - e.received)) / 2
}

func (e *exchange) roundTrip() int64 {
	return max((e.received-e.sent)-(e.peerSent-e.peerReceived), 0)
}

// clockFilter keeps the last exchanges. The one with the shortest round trip tells the offset best, but the less the older it
// is: half the round trip, plus what clocks may have wandered since then, bounds its error.
type clockFilter struct {
	samples [clockSamples]exchange
	count   int
}

func (f *clockFilter) add(e exchange) {
	f.samples[f.count%clockSamples] = e
	f.count++
}

// at gives the best estimate at a time of our clock, whose CLOCK_REALTIME less that is given.
func (f *clockFilter) at(now, realtime int64) (best Clock) {
	for i := range min(f.count, clockSamples) {
		e := &f.samples[i]
		bound := time.Duration(float64(e.roundTrip())/2 + wander*float64(now-e.received))
		if !best.Known || bound < best.Uncertainty {
			best = Clock{Known: true, Offset: time.Duration(e.offset()), Uncertainty: bound, RoundTrip: time.Duration(e.roundTrip()),
				RealtimeOffset: time.Duration(e.offset() + e.realtime - realtime), Epoch: e.offset() + e.realtime}
		}
	}
	return best
}
