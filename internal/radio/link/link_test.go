package link

import (
	"math"
	"testing"
	"testing/quick"
	"time"

	"vignette.dev/vignette/internal/radio"
)

func TestAFrameOnAnIdleLinkTakesDelayPlusSerialisation(t *testing.T) {
	property := func(lengths []uint16, rate uint32, delayMicroseconds uint32) bool {
		p := Parameters{RateBitsPerSecond: float64(rate%100e6 + 100), Delay: time.Duration(delayMicroseconds) * time.Microsecond}
		q := Queue{Parameters: p}
		now := int64(1e9)
		for _, length := range lengths {
			arrival, _, accepted := q.Offer(now, int(length))
			want := float64(now) + float64(p.Delay) + 8e9*float64(length)/p.RateBitsPerSecond
			if !accepted || math.Abs(float64(arrival)-want) > 1 {
				return false
			}
			q.Arrived(int(length))
			now = arrival + 1
		}
		return true
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

// A reference without queues: Lindley's recursion over the departures (D. V. Lindley, The theory of queues
// with a single server, 1952).
func TestABackloggedLinkFollowsLindleysRecursion(t *testing.T) {
	property := func(gapsMicroseconds []uint16, lengths [64]uint16) bool {
		p := Parameters{RateBitsPerSecond: 1e6, Delay: 30 * time.Millisecond, Limit: math.MaxInt}
		q := Queue{Parameters: p}
		var now int64
		departure := math.Inf(-1)
		for i, gap := range gapsMicroseconds {
			now += int64(gap) * 1000
			length := int(lengths[i%64] % 1500)
			arrival, _, accepted := q.Offer(now, length)
			departure = math.Max(float64(now), departure) + 8e9*float64(length)/p.RateBitsPerSecond
			if !accepted || math.Abs(float64(arrival)-departure-float64(p.Delay)) > float64(i+1) {
				return false
			}
		}
		return true
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestTheLimitCountsFramesUnderWayAndTheNewestIsDropped(t *testing.T) {
	q := Queue{Parameters: Parameters{Delay: time.Second, Limit: 3}}
	for i := range 3 {
		if _, _, accepted := q.Offer(int64(i), 100); !accepted {
			t.Fatalf("frame %d was dropped below the limit", i)
		}
	}
	// Without a rate nothing waits; all three are on their way.
	if _, reason, accepted := q.Offer(3, 100); accepted || reason != radio.QueueFull {
		t.Errorf("the frame above the limit: %v, %v; want queueFull", reason, accepted)
	}
	q.Arrived(100)
	if _, _, accepted := q.Offer(4, 100); !accepted {
		t.Error("a frame was dropped although one had arrived")
	}
}

func TestADroppedFrameDoesNotUseTheLink(t *testing.T) {
	q := Queue{Parameters: Parameters{RateBitsPerSecond: 8e3, Limit: 1}}
	q.Offer(0, 1000) // until 1 s
	q.Offer(0, 1000) // dropped
	q.Arrived(1000)
	if arrival, _, _ := q.Offer(0, 1000); arrival != 2e9 {
		t.Errorf("arrives at %d ns; want 2 s: the dropped frame must not have been sent", arrival)
	}
}

func TestALowerDelayDoesNotReorder(t *testing.T) {
	q := Queue{Parameters: Parameters{Delay: time.Second}}
	first, _, _ := q.Offer(0, 100)
	q.Delay = time.Millisecond
	second, _, _ := q.Offer(1000, 100)
	if first != 1e9 {
		t.Errorf("the frame under way arrives at %d ns; want 1 s as promised", first)
	}
	if second < first {
		t.Errorf("the later frame arrives at %d, the earlier at %d", second, first)
	}
	if third, _, _ := q.Offer(5e9, 100); third != 5e9+1e6 {
		t.Errorf("a frame on the idle link arrives at %d ns; want 1 ms after it was sent", third)
	}
}

func TestASlowLinkDoesNotOverflow(t *testing.T) {
	q := Queue{Parameters: Parameters{RateBitsPerSecond: 1, Delay: 24 * time.Hour, Limit: math.MaxInt}}
	var before int64
	for range 2_000_000 {
		arrival, _, _ := q.Offer(1, 65535)
		if arrival < before {
			t.Fatalf("arrives at %d after %d", arrival, before)
		}
		before = arrival
	}
}

// Over many seeds, the share of lost frames lies outside the 99 % interval in about 1 % of them.
func TestLossesAreBinomialOverSeeds(t *testing.T) {
	const seeds, frames = 500, 4000
	for name, loss := range map[string]float64{"1 %": 0.01, "10 %": 0.1, "50 %": 0.5} {
		t.Run(name, func(t *testing.T) {
			outside := 0
			for seed := range int64(seeds) {
				q := Queue{Parameters: Parameters{Loss: loss, Limit: frames}, streams: newStreams(seed, 3, "*")}
				lost := 0
				for range frames {
					if _, _, accepted := q.Offer(0, 100); !accepted {
						lost++
					}
				}
				if math.Abs(float64(lost)-frames*loss) > 2.576*math.Sqrt(frames*loss*(1-loss)) {
					outside++
				}
			}
			// 5 expected, standard deviation 2.2.
			if outside < 1 || outside > 12 {
				t.Errorf("%d of %d seeds outside the 99 %% interval; want about 5", outside, seeds)
			}
		})
	}
}

func TestLossesAreNotCorrelated(t *testing.T) {
	const frames = 200_000
	s := newStream(1, 1, "*", "loss")
	var both, one int
	for i := range uint64(frames) {
		if s.uniform(i) < 0.1 {
			one++
			if s.uniform(i+1) < 0.1 {
				both++
			}
		}
	}
	if share := float64(both) / float64(one); math.Abs(share-0.1) > 0.01 {
		t.Errorf("after a loss %.3f of frames are lost; want 0.1 as always", share)
	}
}

func TestStreamsRepeatAndDiffer(t *testing.T) {
	if once, again := newStream(7, 1, "a>b", "loss"), newStream(7, 1, "a>b", "loss"); once != again {
		t.Error("equal seed, source and destinations give different streams")
	}
	seen := map[stream]string{}
	for name, s := range map[string]stream{"base": newStream(7, 1, "", "loss"), "seed": newStream(8, 1, "", "loss"),
		"source": newStream(7, 2, "", "loss"), "destinations": newStream(7, 1, "a>b", "loss"), "shifted": newStream(71, 0, "", "loss"),
		"purpose": newStream(7, 1, "", "state")} {
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s share a stream", name, other)
		}
		seen[s] = name
	}
}

func TestTheMostSpecificLinkHolds(t *testing.T) {
	config := Config{Links: []Link{
		{From: "red", To: "blue"}, {From: "red", To: "blue-1"}, {From: "red-1", To: "blue-1"}, {From: "red-1", To: "blue"},
		{From: "base", To: "*"}, {From: "gold", To: "*"}, {From: "gold", To: "grey"}, {From: "*", To: "grey"}, {From: "*", To: "grey-3"},
		{From: "gold", To: "grey"},
	}}
	port := func(name, group string) *radio.Port {
		return &radio.Port{PortOptions: radio.PortOptions{Name: name, Group: group}}
	}
	for name, c := range map[string]struct {
		from, to *radio.Port
		want     int // index of the link, -1 for the default
	}{
		"group to group":             {port("red-2", "red"), port("blue-2", "blue"), 0},
		"group to node":              {port("red-2", "red"), port("blue-1", "blue"), 1},
		"node to node":               {port("red-1", "red"), port("blue-1", "blue"), 2},
		"node to group":              {port("red-1", "red"), port("blue-2", "blue"), 3},
		"the other way":              {port("blue-1", "blue"), port("red-1", "red"), -1},
		"within a group":             {port("red-1", "red"), port("red-2", "red"), -1},
		"to somebody of no such":     {port("red-1", "red"), port("green", "green"), -1},
		"group of the node's name":   {port("red", "red"), port("blue", "blue"), 0},
		"from a stranger to a group": {port("green", "green"), port("blue-1", "blue"), -1},
		"a base to everybody":        {port("base", "gold"), port("green", "green"), 4},
		"a base to a group":          {port("base", "gold"), port("grey-2", "grey"), 6},
		"its group to everybody":     {port("other", "gold"), port("green", "green"), 5},
		"everybody to a group":       {port("green", "green"), port("grey-2", "grey"), 7},
		"everybody to a node":        {port("green", "green"), port("grey-3", "grey"), 8},
		"the first of two alike":     {port("gold", "gold"), port("grey-4", "grey"), 6},
	} {
		t.Run(name, func(t *testing.T) {
			got := best(config.linksFrom(c.from), c.to)
			if c.want < 0 && got != nil || c.want >= 0 && got != &config.Links[c.want] {
				t.Errorf("got %+v; want link %d", got, c.want)
			}
		})
	}
}
