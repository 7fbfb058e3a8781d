package link

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"vignette.dev/vignette/internal/radio"
)

func TestTheLimitInBytesCountsWhatIsUnderWay(t *testing.T) {
	q := Queue{Parameters: Parameters{Delay: time.Second, LimitBytes: 1000}}
	for i, c := range []struct {
		length   int
		accepted bool
	}{{600, true}, {401, false}, {400, true}, {1, false}} {
		_, reason, accepted := q.Offer(0, c.length)
		if accepted != c.accepted || !accepted && reason != radio.QueueFull {
			t.Errorf("frame %d of %d bytes: %v, %v; want %v, or queueFull", i, c.length, accepted, reason, c.accepted)
		}
	}
	q.Arrived(600)
	if _, _, accepted := q.Offer(0, 600); !accepted {
		t.Error("a frame was dropped although there was room for its bytes")
	}
}

func TestBothLimitsHold(t *testing.T) {
	property := func(lengths []uint16, limit uint8, limitBytes uint16, departures []bool) bool {
		p := Parameters{Delay: time.Second, Limit: int(limit)%20 + 1, LimitBytes: int64(limitBytes) + 1}
		q := Queue{Parameters: p}
		var under []int
		total := 0
		for i, l := range lengths {
			length := int(l % 1500)
			_, _, accepted := q.Offer(0, length)
			if accepted != (len(under) < p.Limit && total+length <= int(p.LimitBytes)) {
				return false
			}
			if accepted {
				under, total = append(under, length), total+length
			}
			if i < len(departures) && departures[i] && len(under) > 0 {
				q.Arrived(under[0])
				under, total = under[1:], total-under[0]
			}
		}
		return q.Depth() == len(under)
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 1000}); err != nil {
		t.Error(err)
	}
}

func TestAFrameNeverArrivesOverTheSlowestLink(t *testing.T) {
	q := Queue{Parameters: Parameters{RateBitsPerSecond: 1e-9}} // the slowest that the API accepts
	for range 3 {
		if arrival, _, _ := q.Offer(time.Hour.Nanoseconds(), 60); arrival < radio.FarFuture {
			t.Errorf("a frame arrives at %v; want after many years", time.Duration(arrival))
		}
	}
}

func TestALoweredLimitDropsNoFrameUnderWay(t *testing.T) {
	q := Queue{Parameters: Parameters{Delay: time.Second, Limit: 3}}
	for range 3 {
		q.Offer(0, 100)
	}
	q.Limit = 1
	q.Arrived(100)
	q.Arrived(100)
	if _, _, accepted := q.Offer(0, 100); accepted {
		t.Error("a frame was accepted with as many under way as the lowered limit")
	}
	q.Arrived(100)
	if _, _, accepted := q.Offer(0, 100); !accepted || q.Depth() != 1 {
		t.Errorf("an empty queue did not accept; depth %d", q.Depth())
	}
}

func TestADuplicateFollowsItsFrameAndTakesTheLinksTime(t *testing.T) {
	q := Queue{Parameters: Parameters{RateBitsPerSecond: 8e3, Delay: time.Second, Duplicate: 1, Limit: 3}}
	first, _, _ := q.Offer(0, 1000)
	if !q.Duplicated() {
		t.Fatal("a frame was not duplicated although all are")
	}
	if second, _, accepted := q.OfferDuplicate(0, 1000); !accepted || first != 2e9 || second != 3e9 {
		t.Errorf("the frame arrives at %d, its duplicate at %d, %v; want 2 s and 3 s", first, second, accepted)
	}
	if third, _, accepted := q.Offer(0, 1000); !accepted || third != 4e9 {
		t.Errorf("the next frame arrives at %d, %v; want 4 s", third, accepted)
	}
	if _, reason, accepted := q.OfferDuplicate(0, 1000); accepted || reason != radio.QueueFull {
		t.Errorf("the duplicate above the limit: %v, %v; want queueFull", accepted, reason)
	}
}

// randomParameters may be any link's, but for Reorder.
func randomParameters(r *rand.Rand) Parameters {
	p := Parameters{Delay: time.Duration(r.IntN(50)) * time.Millisecond, Jitter: time.Duration(r.IntN(40)) * time.Millisecond,
		Distribution: Distribution(r.IntN(4)), JitterCorrelation: r.Float64(), LossCorrelation: r.Float64(), Corrupt: r.Float64() * 0.1, Duplicate: r.Float64() * 0.3, Limit: 1 + r.IntN(100), LimitBytes: int64(r.IntN(3)) * 5000}
	if r.IntN(2) == 0 {
		p.RateBitsPerSecond = math.Exp(r.Float64()*12 + 8) // 3 kbit/s to 0.5 Gbit/s
	}
	if r.IntN(2) == 0 {
		p.GilbertElliott = &GilbertElliott{GoodToBad: r.Float64(), BadToGood: r.Float64(), LossInBad: r.Float64()}
	} else {
		p.Loss = r.Float64() * 0.5
	}
	return p
}

func TestFramesAreNeverReorderedUnlessAskedForWhateverChanges(t *testing.T) {
	property := func(seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 0))
		q := Queue{Parameters: randomParameters(r), streams: newStreams(int64(seed), 1, Everybody)}
		var now, latest int64
		var under []int64
		offered := func(arrival int64, accepted bool) bool {
			if !accepted {
				return true
			}
			under = append(under, arrival)
			inOrder := arrival >= latest && arrival >= now || q.Reorder
			latest = max(latest, arrival)
			return inOrder
		}
		for range 500 {
			now += int64(r.ExpFloat64() * 2e6)
			if r.IntN(20) == 0 {
				q.Parameters = randomParameters(r)
				q.Reorder = r.IntN(4) == 0
			}
			under = slices.DeleteFunc(under, func(arrival int64) bool {
				if arrival <= now {
					q.Arrived(100)
				}
				return arrival <= now
			})
			arrival, _, accepted := q.Offer(now, 100)
			if !offered(arrival, accepted) {
				return false
			}
			if accepted && q.Duplicated() {
				arrival, _, accepted = q.OfferDuplicate(now, 100)
				if !offered(arrival, accepted) {
					return false
				}
			}
		}
		return q.Depth() == len(under) && q.bytes == int64(100*len(under))
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 300}); err != nil {
		t.Error(err)
	}
}

func TestFramesAreReorderedWhereAskedFor(t *testing.T) {
	q := queueOf(1, Parameters{Delay: 100 * time.Millisecond, Jitter: 50 * time.Millisecond, Reorder: true})
	overtaken := 0
	var before int64
	for i := range int64(1000) {
		arrival, _, _ := q.Offer(i*1e6, 100)
		if arrival < before {
			overtaken++
		}
		before = arrival
	}
	if overtaken < 300 {
		t.Errorf("%d of 1000 frames 1 ms apart overtake the one before, with a jitter of 50 ms; want about half", overtaken)
	}
	q.Reorder = false
	if arrival, _, _ := q.Offer(1e9, 100); arrival < q.latestArrival {
		t.Errorf("a frame arrives at %d although one before it arrives at %d", arrival, q.latestArrival)
	}
}
