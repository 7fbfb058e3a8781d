package peers

import "time"

const (
	// clockSamples exchanges are kept; one is added every exchangeInterval.
	clockSamples = 16
	// maxDrift is the largest relative drift of two clocks, including slewing. 500 ppm is adjtimex(2)'s limit.
	maxDrift = 500e-6
)

// Clock describes a peer's clock.
type Clock struct {
	// Offset is the peer's clock minus ours. Its error is at most Uncertainty, whatever the asymmetry of the
	// path.
	Offset, Uncertainty time.Duration
	// RoundTrip of the exchange that gave Offset.
	RoundTrip time.Duration
	// RealtimeOffset is the peer's CLOCK_REALTIME minus ours. Epoch is the peer's CLOCK_REALTIME minus our
	// other clock, in nanoseconds; a step of our CLOCK_REALTIME does not change it.
	RealtimeOffset time.Duration
	Epoch          int64
	// Known reports whether there was an exchange.
	Known bool
}

// exchange of timestamps as in NTP (RFC 5905). Sent and received are by our clock, peerReceived and peerSent
// by the peer's.
type exchange struct {
	sent, peerReceived, peerSent, received int64
	// realtime is the peer's CLOCK_REALTIME minus its other clock.
	realtime int64
}

func (e *exchange) offset() int64 {
	return ((e.peerReceived - e.sent) + (e.peerSent - e.received)) / 2
}

func (e *exchange) roundTrip() int64 {
	return max((e.received-e.sent)-(e.peerSent-e.peerReceived), 0)
}

// clockFilter keeps the last exchanges. The one with the shortest round trip gives the best offset, but less
// so with age. Its error is bounded by half the round trip plus the possible drift since then.
type clockFilter struct {
	samples [clockSamples]exchange
	count   int
}

func (f *clockFilter) add(e exchange) {
	f.samples[f.count%clockSamples] = e
	f.count++
}

// at returns the best estimate at a time of our clock; realtime is our CLOCK_REALTIME minus that clock.
func (f *clockFilter) at(now, realtime int64) (best Clock) {
	for i := range min(f.count, clockSamples) {
		e := &f.samples[i]
		bound := time.Duration(float64(e.roundTrip())/2 + maxDrift*float64(now-e.received))
		if !best.Known || bound < best.Uncertainty {
			best = Clock{Known: true, Offset: time.Duration(e.offset()), Uncertainty: bound, RoundTrip: time.Duration(e.roundTrip()),
				RealtimeOffset: time.Duration(e.offset() + e.realtime - realtime), Epoch: e.offset() + e.realtime}
		}
	}
	return best
}
