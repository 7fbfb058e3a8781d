package rfpipe_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/rfpipe"
	"vignette.dev/vignette/internal/radio/virtual"
)

func TestDelayIsDelayPlusTimeOnAir(t *testing.T) {
	for name, c := range map[string]struct {
		rate   float64
		delay  time.Duration
		length int
		want   time.Duration
	}{
		"EMANE's measured case, 900 bytes of UDP": {1e6, 0, 942, 7536 * time.Microsecond},
		"VHF":            {9.8e3, 20 * time.Millisecond, 100, 20*time.Millisecond + 81632653},
		"UHF with delay": {500e3, 5 * time.Millisecond, 1514, 5*time.Millisecond + 24224*time.Microsecond},
		"no rate":        {0, 10 * time.Millisecond, 1514, 10 * time.Millisecond},
	} {
		config := pipe(everywhere(2, 70), c.rate)
		config.Delay = c.delay
		n := newNetwork(t, 2, config)
		n.Send(1, virtual.Address(2), c.length)
		n.Settle()
		if got := n.Received(2)[0]; got.Delay() != c.want || got.Length != c.length {
			t.Errorf("%s: %d bytes arrived after %v; want %v", name, got.Length, got.Delay(), c.want)
		}
	}
}

func TestASaturatedRadioCarriesItsRate(t *testing.T) {
	const frames, length = 200, 1400
	for _, bitsPerSecond := range []float64{175e3, 1e6, 5e6} {
		n := newNetwork(t, 2, pipe(everywhere(2, 70), bitsPerSecond))
		send(n, 1, virtual.Address(2), frames, length)
		n.Settle()
		if got := 8e9 * frames * length / float64(n.Received(2)[frames-1].Delay()); math.Abs(got/bitsPerSecond-1) > 1e-6 {
			t.Errorf("carried %.3f bit/s; want %.0f", got, bitsPerSecond)
		}
	}
}

func TestAFullQueueDropsTheOldestBehindTheNextFrame(t *testing.T) {
	config := pipe(everywhere(2, 70), 16e3) // 0.5 s for 1000 bytes
	config.QueueDepth = 3
	n := newNetwork(t, 2, config)
	send(n, 1, virtual.Address(2), 10, 1000)
	if depth := statistics(n)[0].QueueDepth; depth != 4 {
		t.Errorf("%d frames wait; want the next one and 3 behind it", depth)
	}
	n.Settle()
	if got := n.Sequences(2); !slices.Equal(got, []int{0, 1, 7, 8, 9}) {
		t.Errorf("frames %v arrived; want the one on the air, the next one and the newest 3", got)
	}
	if dropped := n.Counters(1).Drops[radio.QueueFull]; dropped != 5 {
		t.Errorf("%d frames counted as queueFull; want 5", dropped)
	}
}

func TestTheDefaultQueueIsThatOfEMANE(t *testing.T) {
	n := newNetwork(t, 2, pipe(everywhere(2, 70), 100e3))
	send(n, 1, virtual.Address(2), 300, 60)
	n.Settle()
	// One on the air, one next, 255 behind it.
	if got, dropped := len(n.Received(2)), n.Counters(1).Drops[radio.QueueFull]; got != 257 || dropped != 43 {
		t.Errorf("%d frames arrived, %d dropped; want 257 and 43", got, dropped)
	}
}

func TestFramesReachWhoIsInRangeAndUnicastOnlyItsAddressee(t *testing.T) {
	// 2 is close, 3 just below the sensitivity, 4 far away, 5 unknown.
	n := newNetwork(t, 5, pipe(world{{1, 2}: 80, {1, 3}: 112, {1, 4}: 200}, 10e6))
	check := func(what string, received [5]int, missed [5]uint64) {
		t.Helper()
		n.Settle()
		for i := range received {
			if got := len(n.Received(i + 1)); got != received[i] {
				t.Errorf("%s: node %d received %d; want %d", what, i+1, got, received[i])
			}
			if got := n.Counters(i + 1).Drops[radio.BelowSensitivity]; got != missed[i] {
				t.Errorf("%s: node %d missed %d below its sensitivity; want %d", what, i+1, got, missed[i])
			}
		}
	}
	send(n, 1, virtual.Everybody, 20, 100)
	check("broadcasts", [5]int{1: 20}, [5]uint64{2: 20})
	send(n, 1, virtual.Address(2), 10, 100)
	check("to the second node", [5]int{1: 30}, [5]uint64{2: 20})
	send(n, 1, virtual.Address(4), 10, 100)
	check("to a node out of reach", [5]int{1: 30}, [5]uint64{2: 20, 3: 10})
	send(n, 1, virtual.Stranger, 1, 100)
	check("to nobody", [5]int{1: 30}, [5]uint64{2: 20, 3: 10})
	if got := n.Counters(1).Drops[radio.NoReceiver]; got != 1 {
		t.Errorf("%d frames without a receiver; want 1", got)
	}
}

func TestSharesFollowTheCurve(t *testing.T) {
	const frames = 2000
	for loss, completion := range map[float64]float64{90: 1, 95: 0.75, 100: 0.5, 105: 0.25, 111: 0} {
		config := pipe(everywhere(2, loss), 20e6)
		config.Seed, config.PCR, config.QueueDepth = 1, curve(t, linearPCR), frames
		n := newNetwork(t, 2, config)
		send(n, 1, virtual.Address(2), frames, 100)
		n.Settle()
		got, c := len(n.Received(2)), n.Counters(2)
		if missed := int(c.Drops[radio.LowSINR] + c.Drops[radio.BelowSensitivity]); missed+got != frames {
			t.Errorf("%d received and %d missed; want %d in all", got, missed, frames)
		}
		// The 99 % interval; the seed is fixed.
		if d := math.Abs(float64(got) - frames*completion); d > 2.576*math.Sqrt(frames*completion*(1-completion)) {
			t.Errorf("at %v dB %d of %d received; want a share of %v", loss, got, frames, completion)
		}
	}
}

func TestTheSameFramesAreLostInEveryRunWithTheSameSeed(t *testing.T) {
	run := func(seed int64) string {
		config := pipe(everywhere(3, 100), 20e6)
		config.Seed, config.PCR = seed, curve(t, linearPCR)
		n := newNetwork(t, 3, config)
		send(n, 1, virtual.Everybody, 200, 100)
		n.Settle()
		return fmt.Sprint(n.Sequences(2), n.Sequences(3))
	}
	if a, b := run(5), run(5); a != b {
		t.Errorf("two runs differ:\n%s\n%s", a, b)
	}
	if run(5) == run(6) {
		t.Error("another seed gives the same losses")
	}
}

func TestASilentRadioSendsNothingAndGoesOnReceiving(t *testing.T) {
	config := pipe(everywhere(2, 70), 4e3)
	n := newNetwork(t, 2, config)
	send(n, 1, virtual.Address(2), 3, 500) // one on the air, two wait
	config.Radio = func(p *radio.Port) phy.Radio {
		r := emaneRadio(p)
		r.Transmit = p.NEM != 1
		return r
	}
	configure(n, config)
	send(n, 1, virtual.Address(2), 2, 500)
	send(n, 2, virtual.Address(1), 2, 60)
	n.Settle()
	if got := n.Sequences(2); !slices.Equal(got, []int{0}) {
		t.Errorf("frames %v arrived; want only that which was on the air", got)
	}
	if got := n.Counters(1).Drops[radio.EmissionControl]; got != 4 {
		t.Errorf("%d frames dropped for emission control; want 4", got)
	}
	if got := n.Sequences(1); !slices.Equal(got, []int{5, 6}) {
		t.Errorf("the silent radio received %v; want both frames", got)
	}
}

func TestChangesLeaveWhatIsOnTheAirAsItIs(t *testing.T) {
	config := pipe(everywhere(2, 70), 16e3) // 500 bytes take 250 ms
	n := newNetwork(t, 2, config)
	n.Send(1, virtual.Address(2), 500)
	config.RateBitsPerSecond, config.Delay = rate(1e6), 100*time.Millisecond
	configure(n, config)
	n.Settle()
	n.Send(1, virtual.Address(2), 500)
	n.Settle()
	for i, want := range []time.Duration{250 * time.Millisecond, 104 * time.Millisecond} {
		if got := n.Received(2)[i].Delay(); got != want {
			t.Errorf("frame %d took %v; want %v", i, got, want)
		}
	}
}

func TestHiddenTerminalsInterfere(t *testing.T) {
	for name, c := range map[string]struct {
		interference phy.Interference
		// what the node in the middle gets of two that send at once, and itself sends nothing
		middle     int
		interfered uint64
	}{
		"EMANE's RF pipe: no collisions": {phy.None, 2, 0},
		"all interfere":                  {phy.All, 0, 2},
	} {
		config := pipe(world{{2, 1}: 80, {3, 1}: 80, {1, 2}: 80, {1, 3}: 80}, 6e3) // 2 and 3 are out of each other's range
		config.PCR, config.Interference = curve(t, linearPCR), c.interference
		n := newNetwork(t, 3, config)
		n.Send(2, virtual.Address(1), 400)
		n.Send(3, virtual.Address(1), 400)
		n.Settle()
		if got, lost := len(n.Received(1)), n.Counters(1).Drops[radio.Interfered]; got != c.middle || lost != c.interfered {
			t.Errorf("%s: the node in the middle received %d frames, and %d interfered; want %d and %d", name, got, lost, c.middle, c.interfered)
		}
	}
}

func TestAHalfDuplexRadioReceivesNothingWhileItSends(t *testing.T) {
	for half, want := range map[bool]int{false: 2, true: 0} {
		config := pipe(everywhere(2, 80), 6e3)
		config.HalfDuplex = half
		n := newNetwork(t, 2, config)
		n.Send(1, virtual.Address(2), 400)
		n.Send(2, virtual.Address(1), 400)
		n.Settle()
		got := len(n.Received(1)) + len(n.Received(2))
		lost := n.Counters(1).Drops[radio.HalfDuplex] + n.Counters(2).Drops[radio.HalfDuplex]
		if got != want || int(lost) != 2-want {
			t.Errorf("half duplex %v, and two send to each other at once: %d frames received, %d lost as halfDuplex", half, got, lost)
		}
	}
}

func TestADutyCycleMakesARadioWaitAfterEachFrame(t *testing.T) {
	// 1000 bytes take 0.1 s at 80 kbit/s, and at 10 % the next frame starts 1 s after the one before.
	for share, want := range map[float64][]time.Duration{0: {100, 200, 300}, 1: {100, 200, 300}, 0.1: {100, 1100, 2100}} {
		config := pipe(everywhere(2, 80), 80e3)
		config.DutyCycle = share
		n := newNetwork(t, 2, config)
		send(n, 1, virtual.Address(2), 3, 1000)
		n.Settle()
		var got []time.Duration
		for _, r := range n.Received(2) {
			got = append(got, r.Delay()/time.Millisecond)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with a duty cycle of %v frames arrive after %v ms; want %v", share, got, want)
		}
	}
}

func TestARadioWithADutyCycleDropsTheOldestFrameThatWaits(t *testing.T) {
	config := pipe(everywhere(2, 80), 80e3)
	config.DutyCycle, config.QueueDepth = 0.1, 2
	n := newNetwork(t, 2, config)
	send(n, 1, virtual.Address(2), 6, 1000) // one is on the air, the next is kept, of the others two
	n.Settle()
	if got, dropped := len(n.Received(2)), n.Counters(1).Drops[radio.QueueFull]; got != 4 || dropped != 2 {
		t.Errorf("%d frames arrive and %d are dropped; want 4 and 2", got, dropped)
	}
}

func TestASilencedRadioDropsWhatItsDutyCycleHeldBack(t *testing.T) {
	config := pipe(everywhere(2, 80), 80e3)
	config.DutyCycle = 0.1
	n := newNetwork(t, 2, config)
	send(n, 1, virtual.Address(2), 3, 1000)
	n.Pass(500 * time.Millisecond)
	config.Radio = func(p *radio.Port) phy.Radio { r := emaneRadio(p); r.Transmit = false; return r }
	configure(n, config)
	n.Settle()
	if got, dropped := len(n.Received(2)), n.Counters(1).Drops[radio.EmissionControl]; got != 1 || dropped != 2 {
		t.Errorf("%d frames arrive and %d are dropped; want 1 and 2", got, dropped)
	}
}

func TestStatisticsHaveTheLinks(t *testing.T) {
	n := newNetwork(t, 3, pipe(world{{1, 2}: 80, {1, 3}: 112}, 10e6))
	send(n, 1, virtual.Everybody, 7, 100)
	n.Settle()
	all := statistics(n)
	if len(all[0].Links) != 0 {
		t.Errorf("sender: %+v; want nothing heard", all[0])
	}
	near, far := all[1].Links, all[2].Links
	if len(near) != 1 || near[0].FromNEM != 1 || near[0].Received != 7 || near[0].SINRDB != 30 {
		t.Errorf("near receiver: %+v; want 7 received at 30 dB", near)
	}
	if len(far) != 1 || far[0].Received != 0 || far[0].Missed[0] != 7 {
		t.Errorf("far receiver: %+v; want 7 missed below the sensitivity", far)
	}
}

func TestMembersMayComeAndGoWhileFramesAreUnderWay(t *testing.T) {
	n := newNetwork(t, 3, pipe(everywhere(3, 70), 16e3))
	send(n, 1, virtual.Everybody, 2, 200)
	send(n, 2, virtual.Everybody, 2, 200)
	n.Leave(1)
	n.Settle()
	if got := n.Sequences(3); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("frames %v arrived; want those of the node that stayed", got)
	}
	if last := n.Counters(1); last.InFlight != 0 || last.FramesSent != last.Released {
		t.Errorf("the node that left: %+v; want its frames to have ended", last)
	}
}

func TestAFrameAllocatesNothing(t *testing.T) {
	config := pipe(everywhere(5, 70), 100e6)
	config.PCR, config.Delay, config.Jitter = curve(t, linearPCR), 20e3, 10e3
	if each := virtual.Allocations(newNetwork(t, 5, config), 1); each != 0 {
		t.Errorf("%v allocations per frame; want none", each)
	}
}

// onHosts is a network of as many nodes on as many hosts.
func onHosts(nodes, hosts int, config rfpipe.Config) *virtual.Network {
	var models []radio.Model
	for range hosts {
		models = append(models, rfpipe.New(config))
	}
	n := virtual.New(1500, models...)
	n.JoinAll(nodes)
	return n
}

func TestTheSameFramesArriveOnSeveralHostsAsOnOne(t *testing.T) {
	const frames = 200
	config := pipe(everywhere(2, 100), 10e6) // 10 dB: half of them
	config.PCR, config.Seed = curve(t, linearPCR), 4711
	one, several := newNetwork(t, 2, config), onHosts(2, 2, config)
	for _, n := range []*virtual.Network{one, several} {
		send(n, 1, virtual.Everybody, frames, 200)
		n.Settle()
	}
	if want, got := one.Received(2), several.Received(2); len(want) == 0 || len(want) == frames || !slices.Equal(got, want) {
		t.Errorf("on two hosts %d frames arrived, %v; on one %d, %v", len(got), got, len(want), want)
	}
	if sender := several.Counters(1); sender.Released != frames || sender.InFlight != 0 {
		t.Errorf("the sender's host has %d of %d frames as released, %d under way", sender.Released, frames, sender.InFlight)
	}
	if c := several.Counters(2); c.Lateness.Count != c.FramesReceived || c.FramesReceived+c.Drops[radio.LowSINR] != frames {
		t.Errorf("counters %+v of the receiver; want every frame received or missed, and the lateness of those received", c)
	}
}

func TestTransmissionsInterfereAcrossHosts(t *testing.T) {
	config := pipe(everywhere(3, 90), 10e3) // alone every frame arrives, and takes 160 ms
	config.PCR, config.Interference = curve(t, linearPCR), phy.All
	n := onHosts(3, 3, config)
	var whole, bare []int // the sources of what comes to node 2 with and without its frame
	n.Shipped = func(_, to *virtual.Host, s *radio.Shipment) {
		switch {
		case to != n.Home(2):
		case len(s.Data) > 0:
			whole = append(whole, s.Source)
		default:
			bare = append(bare, s.Source)
		}
	}
	n.Send(1, virtual.Address(2), 200)
	n.Send(3, virtual.Address(1), 200)
	n.Settle()
	if lost := n.Counters(2).Drops[radio.Interfered]; lost != 1 {
		t.Errorf("%d frames interfered; want 1", lost)
	}
	if !slices.Equal(whole, []int{1}) || !slices.Equal(bare, []int{3}) {
		t.Errorf("whole frames came from %v, others from %v; want 1, and 3, whose frame is for another", whole, bare)
	}
}

// Any overlap of these signals of equal strength is a loss. So the count is exactly what arrives too much.
func TestReceptionsWhoseInterferenceIsKnownTooLateAreCounted(t *testing.T) {
	const frames = 4000
	for name, c := range map[string]struct {
		interference phy.Interference
		latency      time.Duration
	}{
		"over a latency":         {phy.All, time.Millisecond},
		"over one of two frames": {phy.All, 5 * time.Millisecond},
		"known at once":          {phy.All, 0},
		"without interference":   {phy.None, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			config := pipe(everywhere(4, 90), 1e6)
			config.PCR, config.Interference = curve(t, linearPCR), c.interference
			received := func(hosts int) (received, late uint64) {
				n, random := onHosts(4, hosts, config), rand.New(rand.NewPCG(1, 2))
				n.Latency = c.latency
				for range frames {
					n.Send(1+random.IntN(4), virtual.Everybody, 250) // 2 ms
					n.Pass(time.Duration(random.Int64N(int64(6 * time.Millisecond))))
				}
				n.Settle()
				for nem := 1; nem <= 4; nem++ {
					received += n.Counters(nem).FramesReceived
					late += n.Counters(nem).LateInterference
				}
				return received, late
			}
			one, none := received(1)
			two, late := received(2)
			if none != 0 || two-late != one || (late > 0) != (c.latency > 0 && c.interference != phy.None) {
				t.Errorf("two hosts received %d, with the interference of %d known too late; one host %d, %d", two, late, one, none)
			}
		})
	}
}

func TestALocalPortReplacesThatOfAnotherHost(t *testing.T) {
	n := onHosts(2, 2, pipe(everywhere(2, 0), 0))
	here := n.Home(1)
	local := radio.PortOptions{NEM: 2, MAC: virtual.Address(2)}
	if _, err := here.Network.Attach(n.Now, local); err != nil {
		t.Fatal(err)
	}
	n.Shipped = func(_, _ *virtual.Host, s *radio.Shipment) { t.Errorf("%+v went to the other host", s) }
	n.Send(1, virtual.Address(2), 100)
	n.Settle()
	if len(n.Received(2)) != 1 {
		t.Errorf("received %v; want one frame here", n.Received(2))
	}
	far := local
	far.Host = here.Ports[2].Host
	if _, err := here.Network.Attach(n.Now, far); err == nil {
		t.Error("a port elsewhere took the place of one here")
	}
}
