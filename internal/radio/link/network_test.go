package link_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/virtual"
)

func newNetwork(t *testing.T, nodes int, config link.Config) *virtual.Network {
	t.Helper()
	n := virtual.NewOf(nodes, link.New(config))
	t.Cleanup(func() {
		if is := n.Unaccounted(); is != "" {
			t.Error(is)
		}
	})
	return n
}

func configure(n *virtual.Network, config link.Config) {
	n.Configure(func(m radio.Model) { m.(*link.Model).Configure(config) })
}

// burst sends frames to node 2 at once.
func burst(n *virtual.Network, frames, length int) {
	for range frames {
		n.Send(1, virtual.Address(2), length)
	}
}

func TestDelayIsDelayPlusSerialisation(t *testing.T) {
	for name, c := range map[string]struct {
		rate    float64
		delay   time.Duration
		lengths []int
	}{
		"9.8 kbit/s":  {9.8e3, 100 * time.Millisecond, []int{60, 100, 60, 200}},
		"250 kbit/s":  {250e3, 50 * time.Millisecond, []int{60, 500, 1514, 60, 900, 300}},
		"2 Mbit/s":    {2e6, 5 * time.Millisecond, []int{60, 1514, 60, 900, 300, 1514, 700, 64}},
		"10 Mbit/s":   {10e6, time.Millisecond, []int{60, 1514, 60, 900, 300, 1514, 700, 64}},
		"no rate":     {0, 20 * time.Millisecond, []int{60, 1514, 60, 900, 300}},
		"no time due": {0, 0, []int{60, 1514, 60, 900}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, 2, link.Config{Default: link.Parameters{RateBitsPerSecond: c.rate, Delay: c.delay}})
			for i, length := range c.lengths {
				n.Send(1, virtual.Address(2), length)
				n.Settle()
				want := c.delay
				if c.rate > 0 {
					want += time.Duration(math.Round(8e9 * float64(length) / c.rate))
				}
				if got := n.Received(2)[i]; got.Delay() != want || got.Length != length {
					t.Errorf("%d bytes arrived as %d after %v; want %v", length, got.Length, got.Delay(), want)
				}
			}
		})
	}
}

func TestCarriedRateIsTheLinksRate(t *testing.T) {
	const frames, length = 500, 1400
	for _, rate := range []float64{9.8e3, 250e3, 2e6, 10e6} {
		n := newNetwork(t, 2, link.Config{Default: link.Parameters{RateBitsPerSecond: rate}})
		burst(n, frames, length)
		n.Settle()
		if got := 8e9 * frames * length / float64(n.Received(2)[frames-1].Delay()); math.Abs(got/rate-1) > 1e-6 {
			t.Errorf("carried %.3f bit/s; want %.3f", got, rate)
		}
		if got := n.Sequences(2); !slices.IsSorted(got) {
			t.Errorf("frames arrived in the order %v", got)
		}
	}
}

func TestLossLiesInTheBinomialInterval(t *testing.T) {
	const frames = 4000
	for _, loss := range []float64{0.01, 0.1, 0.5} {
		n := newNetwork(t, 2, link.Config{Seed: 1, Default: link.Parameters{Loss: loss, Delay: time.Millisecond, Limit: frames}})
		burst(n, frames, 60)
		n.Settle()
		lost := frames - len(n.Received(2))
		// The 99 % interval of the binomial distribution in its normal approximation.
		margin := 2.576 * math.Sqrt(frames*loss*(1-loss))
		if math.Abs(float64(lost)-frames*loss) > margin {
			t.Errorf("%d of %d frames lost; want %.0f ± %.0f", lost, frames, frames*loss, margin)
		}
		if counted := n.Counters(1).Drops[radio.Loss]; counted != uint64(lost) {
			t.Errorf("%d losses counted, %d seen", counted, lost)
		}
	}
}

func TestAFullQueueDropsTheNewestFrames(t *testing.T) {
	const limit, frames = 20, 50
	n := newNetwork(t, 2, link.Config{Default: link.Parameters{RateBitsPerSecond: 250e3, Delay: 50 * time.Millisecond, Limit: limit}})
	burst(n, frames, 1000)
	n.Settle()
	if got := n.Sequences(2); len(got) != limit || got[0] != 0 || got[limit-1] != limit-1 {
		t.Errorf("frames %v arrived; want the first %d", got, limit)
	}
	if dropped := n.Counters(1).Drops[radio.QueueFull]; dropped != frames-limit {
		t.Errorf("%d frames counted as queueFull; want %d", dropped, frames-limit)
	}
}

func TestABroadcastGoesOnceOverTheSendersEgress(t *testing.T) {
	const frames = 10
	n := newNetwork(t, 4, link.Config{Default: link.Parameters{RateBitsPerSecond: 250e3}})
	for range frames {
		n.Send(1, virtual.Everybody, 1000) // 32 ms
	}
	n.Settle()
	for nem := 2; nem <= 4; nem++ {
		if all := n.Received(nem); len(all) != frames || all[frames-1].Delay() != frames*32*time.Millisecond {
			t.Errorf("node %d received %v; want %d frames, the last after %v", nem, all, frames, frames*32*time.Millisecond)
		}
	}
	if own := n.Received(1); len(own) != 0 {
		t.Errorf("the sender received %d of its own frames", len(own))
	}
}

func TestAFrameForNobodyUsesTheEgressAndIsDropped(t *testing.T) {
	n := newNetwork(t, 2, link.Config{Default: link.Parameters{RateBitsPerSecond: 250e3}})
	n.Send(1, virtual.Stranger, 1000)
	n.Send(1, virtual.Address(2), 1000)
	n.Settle()
	if got := n.Received(2); len(got) != 1 || got[0].Delay() != 64*time.Millisecond {
		t.Errorf("received %v; want the frame behind one for nobody after 64 ms", got)
	}
	if dropped := n.Counters(1).Drops[radio.NoReceiver]; dropped != 1 {
		t.Errorf("%d frames counted as noReceiver; want 1", dropped)
	}
}

func TestInASilentNetworkNothingArrives(t *testing.T) {
	n := newNetwork(t, 2, link.Config{Default: link.Parameters{Delay: 500 * time.Millisecond}})
	burst(n, 1, 100) // under way when silence falls
	n.Pass(2 * time.Millisecond)
	if err := n.Hosts[0].Network.Configure(1500, true); err != nil {
		t.Fatal(err)
	}
	burst(n, 10, 100)
	n.Settle()
	if dropped := n.Counters(1).Drops[radio.Silent]; dropped != 11 || len(n.Received(2)) != 0 {
		t.Errorf("%d frames counted as silent, %d arrived; want 11 and none", dropped, len(n.Received(2)))
	}
}

func TestALinkBetweenGroupsHasAQueueOfItsOwn(t *testing.T) {
	n := newNetwork(t, 4, link.Config{Default: link.Parameters{Delay: time.Millisecond},
		Links: []link.Link{{From: "node-1", To: "node-3", Parameters: link.Parameters{RateBitsPerSecond: 250e3, Delay: 50 * time.Millisecond}},
			{From: "node-1", To: "node-4", Parameters: link.Parameters{Loss: 1}}}})
	const frames = 5
	for range frames {
		n.Send(1, virtual.Everybody, 1000)
	}
	n.Settle()
	for nem, want := range map[int]time.Duration{2: time.Millisecond, 3: (50 + frames*32) * time.Millisecond} {
		if all := n.Received(nem); len(all) != frames || all[frames-1].Delay() != want {
			t.Errorf("node-%d received %v; want %d frames, the last after %v", nem, all, frames, want)
		}
	}
	if counters := n.Counters(1); counters.FramesSent != frames || counters.Copies != 2*frames || counters.Drops[radio.Loss] != frames || len(n.Received(4)) != 0 {
		t.Errorf("counters %+v; want %d sent, each over three links, one of which loses all", counters, frames)
	}
}

func TestAChangeOfTheLinkDoesNotDisturbFramesUnderWay(t *testing.T) {
	n := newNetwork(t, 2, link.Config{Default: link.Parameters{Delay: 200 * time.Millisecond}})
	burst(n, 3, 100)
	n.Pass(20 * time.Millisecond)
	configure(n, link.Config{Default: link.Parameters{Delay: 400 * time.Millisecond}})
	burst(n, 1, 100)
	n.Settle()
	for i, want := range []time.Duration{200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
		if got := n.Received(2)[i].Delay(); got != want {
			t.Errorf("frame %d took %v; want %v", i, got, want)
		}
	}
}

// A link that takes over from another begins when that has sent all, instead of sending beside it.
func TestALinkThatBranchesOffWaitsForWhatWasSentBefore(t *testing.T) {
	const frames = 10 // of 10 ms each
	config := link.Config{Default: link.Parameters{RateBitsPerSecond: 48e3}}
	n := newNetwork(t, 2, config)
	burst(n, frames, 60)
	config.Links = []link.Link{{From: "node-1", To: "node-2", Parameters: config.Default}}
	configure(n, config)
	burst(n, frames, 60)
	n.Settle()
	for i, a := range n.Received(2) {
		if want := time.Duration(i+1) * 10 * time.Millisecond; a.Delay() != want || a.Sequence != uint64(i) {
			t.Errorf("frame %d arrived in place %d after %v; want %v", a.Sequence, i, a.Delay(), want)
		}
	}
}

// With jitter that keeps the order a frame also waits for earlier ones, so the mean is not the link's delay.
func TestJitterSpreadsTheDelayEvenly(t *testing.T) {
	const delay, jitter, frames = 40 * time.Millisecond, 30 * time.Millisecond, 300
	n := newNetwork(t, 2, link.Config{Seed: 1, Default: link.Parameters{Delay: delay, Jitter: jitter, Reorder: true}})
	for range frames {
		burst(n, 1, 60)
		n.Pass(time.Millisecond)
	}
	n.Settle()
	var delays []time.Duration
	for _, a := range n.Received(2) {
		delays = append(delays, a.Delay())
	}
	slices.Sort(delays)
	if len(delays) != frames || delays[0] < delay-jitter || delays[frames-1] > delay+jitter {
		t.Fatalf("%d frames took %v to %v; want %d from %v to %v", len(delays), delays[0], delays[len(delays)-1], frames, delay-jitter, delay+jitter)
	}
	// The median of many uniform delays is off by at most 2.576·jitter/√frames (at 1 %; the seed is fixed).
	margin := time.Duration(2.576 * float64(jitter) / math.Sqrt(frames))
	if median := delays[frames/2]; (median - delay).Abs() > margin {
		t.Errorf("the median frame took %v; want %v ± %v", median, delay, margin)
	}
	if slices.IsSorted(n.Sequences(2)) {
		t.Error("no frame overtook another, although the link reorders")
	}
}

func TestJitterKeepsTheOrder(t *testing.T) {
	const frames = 300
	n := newNetwork(t, 2, link.Config{Seed: 1, Default: link.Parameters{Delay: 20 * time.Millisecond, Jitter: 20 * time.Millisecond, Distribution: link.Normal}})
	for range frames {
		burst(n, 1, 60)
		n.Pass(200 * time.Microsecond)
	}
	n.Settle()
	if got := n.Sequences(2); len(got) != frames || !slices.IsSorted(got) {
		t.Errorf("%d frames arrived in the order %v", len(got), got)
	}
}

func TestACorruptedFrameArrivesWithOneWrongBit(t *testing.T) {
	const frames = 200
	n := newNetwork(t, 3, link.Config{Seed: 1, Default: link.Parameters{Delay: time.Millisecond, Corrupt: 1}})
	arrived := map[int][][]byte{}
	n.Arrived = func(nem int, _ virtual.Arrival, data []byte) { arrived[nem] = append(arrived[nem], slices.Clone(data)) }
	for i := range frames {
		sent := n.Frame(1, virtual.Everybody, 90)
		n.SendFrame(1, slices.Clone(sent))
		n.Settle()
		wrong, got := 0, arrived[2][i]
		for k := range sent {
			wrong += bits.OnesCount8(sent[k] ^ got[k])
		}
		if len(got) != len(sent) || wrong != 1 || !slices.Equal(got, arrived[3][i]) {
			t.Fatalf("frame %d has %d wrong bits; want one, the same for all receivers", i, wrong)
		}
	}
	if counted := n.Counters(1).Corrupted; counted != frames {
		t.Errorf("%d frames counted as corrupted; want %d", counted, frames)
	}
}

func TestDuplicatesArriveTwiceRightAfterTheirFrames(t *testing.T) {
	const frames, share = 4000, 0.1
	n := newNetwork(t, 3, link.Config{Seed: 1, Default: link.Parameters{Delay: time.Millisecond, Duplicate: share, Limit: 2 * frames}})
	for range frames {
		n.Send(1, virtual.Everybody, 60)
	}
	n.Settle()
	arrived := n.Sequences(2)
	if !slices.IsSorted(arrived) || !slices.Equal(n.Sequences(3), arrived) {
		t.Error("frames arrived out of order, or two receivers got different ones: duplicates are drawn once for all of them")
	}
	duplicates := len(arrived) - frames
	// The 99 % interval of the binomial distribution in its normal approximation; the seed is fixed.
	if margin := 2.576 * math.Sqrt(frames*share*(1-share)); math.Abs(float64(duplicates)-frames*share) > margin {
		t.Errorf("%d of %d frames arrived twice; want %.0f ± %.0f", duplicates, frames, frames*share, margin)
	}
	if len(slices.Compact(arrived)) != frames {
		t.Error("a frame did not arrive")
	}
	if c := n.Counters(1); c.Copies != uint64(duplicates) || c.Released != frames+c.Copies { //nolint:gosec // not negative
		t.Errorf("counters %+v; want %d copies, all released", c, duplicates)
	}
}

func TestABasesDownlinkIsTheLinkOfItsEgressAlone(t *testing.T) {
	n := newNetwork(t, 3, link.Config{Default: link.Parameters{RateBitsPerSecond: 200e3}, // 40 ms a frame up
		Links: []link.Link{{From: "node-1", To: link.Everybody, Parameters: link.Parameters{RateBitsPerSecond: 800e3}}}}) // 10 ms down
	for i := range 4 { // to both alternately, over one link
		n.Send(1, virtual.Address(2+i%2), 1000)
	}
	n.Send(2, virtual.Address(1), 1000)
	n.Settle()
	for nem, want := range map[int][]time.Duration{2: {10 * time.Millisecond, 30 * time.Millisecond}, 3: {20 * time.Millisecond, 40 * time.Millisecond}, 1: {40 * time.Millisecond}} {
		var got []time.Duration
		for _, a := range n.Received(nem) {
			got = append(got, a.Delay())
		}
		if !slices.Equal(got, want) {
			t.Errorf("frames to node %d took %v; want %v", nem, got, want)
		}
	}
}

// effects by the NEM ids of sender and receiver.
type effects map[[2]int]link.Effect

func (e effects) Effect(from, to *radio.Port, _ int64) (link.Effect, bool) {
	found, known := e[[2]int{from.NEM, to.NEM}]
	return found, known
}

func TestEachPairOfNodesHasTheEffectThatHoldsForIt(t *testing.T) {
	e := effects{{1, 2}: {Latency: 5 * time.Millisecond, Broadcast: 80_000}, {1, 3}: {Loss: 1}}
	n := newNetwork(t, 4, link.Config{Default: link.Parameters{Delay: 400 * time.Millisecond}, Effects: e})
	check := func(what string, to radio.MAC, want map[int]time.Duration) {
		t.Helper()
		before := map[int]int{}
		for nem := 2; nem <= 4; nem++ {
			before[nem] = len(n.Received(nem))
		}
		n.Send(1, to, 100)
		n.Settle()
		for nem := 2; nem <= 4; nem++ {
			got := n.Received(nem)[before[nem]:]
			delay, hears := want[nem]
			if hears != (len(got) == 1) || hears && got[0].Delay() != delay {
				t.Errorf("%s: node %d received %v; want it after %v, %v", what, nem, got, delay, hears)
			}
		}
	}
	check("unicast", virtual.Address(2), map[int]time.Duration{2: 5 * time.Millisecond})
	// The network's own link holds for the fourth.
	check("800 bit to all", virtual.Everybody, map[int]time.Duration{2: 15 * time.Millisecond, 4: 400 * time.Millisecond})
	delete(e, [2]int{1, 2})
	e[[2]int{1, 3}] = link.Effect{Latency: 8 * time.Millisecond}
	check("after a change", virtual.Address(3), map[int]time.Duration{3: 8 * time.Millisecond})
}

func TestABroadcastGoesOnceToEachOtherHost(t *testing.T) {
	const delay = 30 * time.Millisecond
	n, shipped := onHosts(3, link.Config{Default: link.Parameters{Delay: delay}})
	n.Send(3, virtual.Everybody, 200) // host 0 has node 3, host 1 nodes 1 and 4, host 2 node 2
	n.Settle()
	for i, h := range n.Hosts[1:] {
		if s := (*shipped)[h]; len(s) != 1 || s[0].Source != 3 || len(s[0].Receivers) != i || s[0].Due-s[0].Sent != int64(delay) || s[0].Bytes != 200 {
			t.Errorf("shipped %+v; want 200 bytes of 3 for all, or for 2, due after %v", s, delay)
		}
	}
	for _, nem := range []int{1, 2, 4} {
		if all := n.Received(nem); len(all) != 1 || all[0].Delay() != delay {
			t.Errorf("node %d received %v; want one frame after %v", nem, all, delay)
		}
	}
	if c := n.Counters(3); c.Released != 1 || c.Drops[radio.NoReceiver] != 0 {
		t.Errorf("the sender counts %+v; want one released frame", c)
	}
}

func TestAUnicastNamesItsReceiverWhereItIsTheOnlyNodeOfItsHost(t *testing.T) {
	n, shipped := onHosts(3, link.Config{})
	n.Send(3, virtual.Address(2), 200)
	n.Settle()
	if s := (*shipped)[n.Hosts[2]]; len(s) != 1 || !slices.Equal(s[0].Receivers, []uint16{2}) {
		t.Errorf("shipped %+v; want one frame for 2", s)
	}
}

// onHosts is a network of four nodes on three hosts, and what was shipped to each.
func onHosts(hosts int, config link.Config) (n *virtual.Network, shipped *map[*virtual.Host][]radio.Shipment) {
	var models []radio.Model
	for range hosts {
		models = append(models, link.New(config))
	}
	n, shipped = virtual.New(1500, models...), &map[*virtual.Host][]radio.Shipment{}
	n.JoinAll(4)
	n.Shipped = func(_, to *virtual.Host, s *radio.Shipment) {
		c := *s
		c.Receivers = slices.Clone(s.Receivers)
		(*shipped)[to] = append((*shipped)[to], c)
	}
	return n, shipped
}

func TestLinksOfTheirOwnNameTheirReceivers(t *testing.T) {
	n, shipped := onHosts(3, link.Config{Default: link.Parameters{Delay: time.Millisecond},
		Links: []link.Link{{From: link.Everybody, To: "node-4", Parameters: link.Parameters{Delay: time.Second}}}})
	n.Send(3, virtual.Everybody, 100)
	n.Settle()
	due := map[uint16]int64{}
	for _, s := range (*shipped)[n.Hosts[1]] {
		if len(s.Receivers) != 1 {
			t.Fatalf("shipped for %v; want one receiver", s.Receivers)
		}
		due[s.Receivers[0]] = s.Due - s.Sent
	}
	if due[1] != int64(time.Millisecond) || due[4] != int64(time.Second) {
		t.Errorf("due after %v; want 1 ms for 1 and 1 s for 4", due)
	}
}

func TestATransmissionThatComesLateCountsSoAtItsReceiver(t *testing.T) {
	n, _ := onHosts(2, link.Config{})
	n.Latency = 5 * time.Millisecond
	n.Send(1, virtual.Address(2), 100)
	n.Settle()
	if c := n.Counters(2); c.FramesReceived != 1 || c.LateReleases != 1 || c.Released != 0 || c.WorstLateness != 5e6 {
		t.Errorf("counted %+v; want one frame received, 5 ms late", c)
	}
	n.Hosts[0].Network.ReceiveShipment(n.Now, &radio.Shipment{Source: 9, Data: make([]byte, 60)})
	n.Settle()
	if c := n.Counters(2); c.FramesReceived != 1 {
		t.Errorf("%d frames received after one of an unknown source; want 1", c.FramesReceived)
	}
}

// randomConfig of links between two groups; none reorders.
func randomConfig(r *rand.Rand) link.Config {
	parameters := func() link.Parameters {
		p := link.Parameters{Delay: time.Duration(r.IntN(30)) * time.Millisecond, Jitter: time.Duration(r.IntN(20)) * time.Millisecond,
			Distribution: link.Distribution(r.IntN(4)), JitterCorrelation: r.Float64(), LossCorrelation: r.Float64(), Loss: r.Float64() * 0.2, Duplicate: r.Float64() * 0.3, LimitBytes: int64(r.IntN(2)) * 20_000}
		if r.IntN(2) == 0 {
			p.RateBitsPerSecond = 1e6 * float64(1+r.IntN(100))
		}
		return p
	}
	names := []string{"red", "blue", "red-1", "red-2", "blue-3", "blue-4", link.Everybody}
	config := link.Config{Seed: 1, Default: parameters()}
	for range r.IntN(5) {
		config.Links = append(config.Links, link.Link{From: names[r.IntN(len(names))], To: names[r.IntN(len(names))], Parameters: parameters()})
	}
	return config
}

func TestNoFrameOvertakesAnotherAndAllAreAccountedForWhateverChangesUnderWay(t *testing.T) {
	const frames = 6000
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := virtual.New(1500, link.New(randomConfig(r)))
		for nem, group := range []string{"red", "red", "blue", "blue"} {
			n.Join(nem+1, fmt.Sprint(group, "-", nem+1), group)
		}
		destinations := []radio.MAC{virtual.Address(2), virtual.Address(3), virtual.Address(4), virtual.Everybody, virtual.Stranger}
		for i := range frames {
			n.Send(1, destinations[r.IntN(len(destinations))], 60)
			n.Pass(50 * time.Microsecond)
			if i%40 == 0 {
				configure(n, randomConfig(r))
				if is := n.Unaccounted(); is != "" {
					t.Fatal(is)
				}
			}
		}
		n.Settle()
		received := 0
		for nem := 2; nem <= 4; nem++ {
			if got := n.Sequences(nem); !slices.IsSorted(got) {
				t.Errorf("seed %d: frames arrived out of order at node %d", seed, nem)
			}
			received += len(n.Received(nem))
		}
		if c := n.Counters(1); c.FramesSent != frames || c.Copies == 0 || c.Drops[radio.Loss] == 0 || c.InFlight != 0 || received < frames/10 {
			t.Errorf("seed %d: %d frames received, counters %+v: not the load that was meant", seed, received, c)
		}
		if is := n.Unaccounted(); is != "" {
			t.Errorf("seed %d: %s", seed, is)
		}
	}
}

func TestAFrameCostsNoAllocation(t *testing.T) {
	n := virtual.NewOf(2, link.New(link.Config{Seed: 1, Default: link.Parameters{RateBitsPerSecond: 1e9, Delay: time.Millisecond, Jitter: time.Millisecond,
		Distribution: link.Normal, Duplicate: 0.3, GilbertElliott: &link.GilbertElliott{GoodToBad: 0.1, BadToGood: 0.5, LossInBad: 0.5}}}))
	if each := virtual.Allocations(n, 1); each != 0 {
		t.Errorf("%v allocations per frame; want none", each)
	}
	if c := n.Counters(1); c.Copies == 0 || c.Drops[radio.Loss] == 0 {
		t.Errorf("counters %+v: not the load that was meant", c)
	}
}
