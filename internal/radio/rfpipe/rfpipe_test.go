package rfpipe_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radio/rfpipe"
)

func TestDelayThroughTAPsIsDelayPlusTimeOnAir(t *testing.T) {
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
		t.Run(name, func(t *testing.T) {
			config := pipe(everywhere(2, 70), c.rate)
			config.Delay = c.delay
			b := newBed(t, 2, config)
			best := time.Duration(math.MaxInt64)
			for i := range 40 { // other programs can only add to delays
				b.send(t, 0, 1, i, 1, c.length)
				r, ok, err := b.Nodes[1].Receive(5 * time.Second)
				if err != nil || !ok || r.Length != c.length {
					t.Fatalf("frame %d: %+v, %v, %v", i, r, ok, err)
				}
				if best = min(best, r.Delay()); best-c.want < 200*time.Microsecond && i > 5 {
					break
				}
			}
			if off := best - c.want; off < 0 || off > 500*time.Microsecond {
				t.Errorf("the best frame took %v; want %v and less than 0.5 ms more", best, c.want)
			}
			b.Conserved(t)
		})
	}
}

func TestASaturatedRadioCarriesItsRate(t *testing.T) {
	for name, c := range map[string]struct {
		rate           float64
		frames, length int
	}{
		"175 kbit/s": {175e3, 40, 942}, "1 Mbit/s": {1e6, 100, 1514}, "5 Mbit/s": {5e6, 250, 1400},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, 2, pipe(everywhere(2, 70), c.rate))
			got := 0.0
			for range 5 { // other programs may hold up the sender or the last frames
				if got = carriedRate(b.carry(t, c.frames, c.length), c.length); math.Abs(got/c.rate-1) <= 0.01 {
					break
				}
			}
			if math.Abs(got/c.rate-1) > 0.01 {
				t.Errorf("carried %.0f bit/s; want %.0f within 1 %%", got, c.rate)
			}
			b.Conserved(t)
		})
	}
}

// carry sends frames as fast as possible, and returns the times of their arrivals.
func (b *bed) carry(t *testing.T, frames, length int) (arrived []int64) {
	t.Helper()
	b.send(t, 0, 1, 0, frames, length)
	for range frames {
		r, ok, err := b.Nodes[1].Receive(10 * time.Second)
		if err != nil || !ok {
			t.Fatalf("%d of %d frames arrived: %v", len(arrived), frames, err)
		}
		arrived = append(arrived, r.Arrived)
	}
	return arrived
}

// carriedRate in bit/s, from the median time that half of all frames took. A busy machine may delay a few.
func carriedRate(arrived []int64, length int) float64 {
	half := len(arrived) / 2
	var spans []int64
	for i := range len(arrived) - half {
		spans = append(spans, arrived[i+half]-arrived[i])
	}
	slices.Sort(spans)
	return 8e9 * float64(length*half) / float64(spans[len(spans)/2])
}

func TestAFullQueueDropsTheOldestBehindTheNextFrame(t *testing.T) {
	config := pipe(everywhere(2, 70), 1e6)
	config.QueueDepth = 3
	config.RateBitsPerSecond = rate(16e3) // 0.5 s for 1000 bytes
	b := newBed(t, 2, config)
	b.send(t, 0, 1, 0, 10, 1000)
	b.AwaitRead(t, 0, 10)
	if depth := statistics(b)[0].QueueDepth; depth != 4 {
		t.Errorf("%d frames wait; want the next one and 3 behind it", depth)
	}
	if got := fmt.Sprint(b.settled(t, 1)); got != "[0 1 7 8 9]" {
		t.Errorf("frames %v arrived; want the one on the air, the next one and the newest 3", got)
	}
	if n := b.drops(0, radio.QueueFull); n != 5 {
		t.Errorf("%d frames counted as queueFull; want 5", n)
	}
	b.Conserved(t)
}

func TestTheDefaultQueueIsThatOfEMANE(t *testing.T) {
	b := newBed(t, 2, pipe(everywhere(2, 70), 100e3))
	const frames = 300
	for first := 0; first < frames; first += 100 { // no faster than the TAP's ring is emptied
		b.send(t, 0, 1, first, 100, 60)
		b.AwaitRead(t, 0, uint64(first+100))
	}
	got := len(b.settled(t, 1))
	if dropped := int(b.drops(0, radio.QueueFull)); got+dropped != frames || dropped == 0 {
		t.Errorf("%d frames arrived, %d dropped; want %d in all", got, dropped, frames)
	}
	// One on the air, one next, 255 behind it; later frames made room.
	if got < 257 {
		t.Errorf("%d frames arrived; want at least 257", got)
	}
}

func TestFramesReachWhoIsInRangeAndUnicastOnlyItsAddressee(t *testing.T) {
	// 2 is close, 3 just below the sensitivity, 4 far away, 5 unknown.
	b := newBed(t, 5, pipe(world{{1, 2}: 80, {1, 3}: 112, {1, 4}: 200}, 10e6))
	b.send(t, 0, -1, 0, 20, 100)
	for node, want := range []int{0, 20, 0, 0, 0} {
		if got := len(b.settled(t, node)); got != want {
			t.Errorf("node %d received %d broadcasts; want %d", node+1, got, want)
		}
	}
	for node, want := range []uint64{0, 0, 20, 0, 0} {
		if got := b.drops(node, radio.BelowSensitivity); got != want {
			t.Errorf("node %d missed %d broadcasts below its sensitivity; want %d", node+1, got, want)
		}
	}
	b.send(t, 0, 1, 100, 10, 100)
	b.send(t, 0, 3, 200, 10, 100)
	if got := len(b.settled(t, 1)); got != 10 {
		t.Errorf("the addressee received %d frames; want 10", got)
	}
	if got := b.drops(2, radio.BelowSensitivity); got != 20 {
		t.Errorf("another node missed %d frames that were not for it", got-20)
	}
	if got := b.drops(3, radio.BelowSensitivity); got != 10 {
		t.Errorf("the addressee out of reach missed %d frames; want 10", got)
	}
	stranger := []byte{2, 2, 0, 0, 0, 99}
	if err := b.Nodes[0].Send(b.Nodes[0].Frame(stranger, 0, 100)); err != nil {
		t.Fatal(err)
	}
	b.AwaitRead(t, 0, 41)
	b.settled(t, 1)
	if got := b.drops(0, radio.NoReceiver); got != 1 {
		t.Errorf("%d frames without a receiver; want 1", got)
	}
	b.Conserved(t)
}

func TestSharesThroughTAPsFollowTheCurve(t *testing.T) {
	const frames = 2000
	for loss, completion := range map[float64]float64{90: 1, 95: 0.75, 100: 0.5, 105: 0.25, 111: 0} {
		t.Run(fmt.Sprint(loss, " dB"), func(t *testing.T) {
			radiotest.AtOnePercent(t, func(seed int64) string {
				config := pipe(everywhere(2, loss), 20e6)
				config.Seed, config.PCR, config.QueueDepth = seed, curve(t, linearPCR), frames
				b := newBed(t, 2, config)
				for first := 0; first < frames; first += 200 {
					b.send(t, 0, 1, first, 200, 100)
					b.AwaitRead(t, 0, uint64(first+200))
				}
				got := len(b.settled(t, 1))
				b.Conserved(t)
				if missed := b.drops(1, radio.LowSINR) + b.drops(1, radio.BelowSensitivity); int(missed)+got != frames {
					t.Errorf("%d received and %d missed; want %d in all", got, missed, frames)
				}
				if d := math.Abs(float64(got) - frames*completion); d > 2.576*math.Sqrt(frames*completion*(1-completion)) {
					return fmt.Sprintf("%d of %d received; want a share of %v", got, frames, completion)
				}
				return ""
			})
		})
	}
}

func TestTheSameFramesAreLostInEveryRunWithTheSameSeed(t *testing.T) {
	run := func(seed int64) string {
		config := pipe(everywhere(3, 100), 20e6)
		config.Seed, config.PCR = seed, curve(t, linearPCR)
		b := newBed(t, 3, config)
		b.send(t, 0, -1, 0, 200, 100)
		b.AwaitRead(t, 0, 200)
		return fmt.Sprint(b.settled(t, 1), b.settled(t, 2))
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
	b := newBed(t, 2, config)
	b.send(t, 0, 1, 0, 3, 500) // one on the air, two wait
	b.AwaitRead(t, 0, 3)
	config.Radio = func(p *radio.Port) phy.Radio {
		r := emaneRadio(p)
		r.Transmit = p.NEM != 1
		return r
	}
	b.configure(t, config)
	b.send(t, 0, 1, 3, 2, 500)
	b.AwaitRead(t, 0, 5)
	b.send(t, 1, 0, 100, 2, 60)
	if got := fmt.Sprint(b.settled(t, 1)); got != "[0]" {
		t.Errorf("frames %s arrived; want only that which was on the air", got)
	}
	if got := b.drops(0, radio.EmissionControl); got != 4 {
		t.Errorf("%d frames dropped for emission control; want 4", got)
	}
	b.AwaitRead(t, 1, 2)
	if got := fmt.Sprint(b.settled(t, 0)); got != "[100 101]" {
		t.Errorf("the silent radio received %s; want both frames", got)
	}
	b.Conserved(t)
}

func TestChangesLeaveWhatIsOnTheAirAsItIs(t *testing.T) {
	config := pipe(everywhere(2, 70), 16e3) // 500 bytes take 250 ms
	b := newBed(t, 2, config)
	b.send(t, 0, 1, 0, 1, 500)
	b.AwaitRead(t, 0, 1)
	config.RateBitsPerSecond, config.Delay = rate(1e6), 100*time.Millisecond
	b.configure(t, config)
	first, ok, err := b.Nodes[1].Receive(5 * time.Second)
	if !ok || err != nil || first.Delay() < 250*time.Millisecond {
		t.Errorf("the frame on the air took %v, %v, %v; want 250 ms as before the change", first.Delay(), ok, err)
	}
	best := time.Hour
	for i := range 5 {
		b.send(t, 0, 1, i+1, 1, 500)
		r, _, _ := b.Nodes[1].Receive(5 * time.Second)
		best = min(best, r.Delay())
	}
	if best < 104*time.Millisecond || best > 130*time.Millisecond {
		t.Errorf("a frame after the change took %v; want 104 ms", best)
	}
}

func TestAHiddenTerminalAndHalfDuplexThroughTAPs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rfpipe.Config)
		// what the node in the middle gets of two that send at once, and itself sends nothing
		middle int
		reason radio.Reason
	}{
		"EMANE's RF pipe: no collisions": {func(*rfpipe.Config) {}, 2, 0},
		"all interfere":                  {func(c *rfpipe.Config) { c.Interference = phy.All }, 0, radio.Interfered},
	} {
		t.Run(name, func(t *testing.T) {
			config := pipe(world{{2, 1}: 80, {3, 1}: 80, {1, 2}: 80, {1, 3}: 80}, 6e3) // 2 and 3 are out of each other's range
			config.PCR = curve(t, linearPCR)
			c.change(&config)
			b := newBed(t, 3, config)
			b.send(t, 1, 0, 0, 1, 400) // 533 ms
			b.send(t, 2, 0, 1, 1, 400)
			b.AwaitRead(t, 1, 1)
			b.AwaitRead(t, 2, 1)
			if got := len(b.settled(t, 0)); got != c.middle {
				t.Errorf("the node in the middle received %d frames; want %d", got, c.middle)
			}
			if c.reason != 0 && b.drops(0, c.reason) != 2 {
				t.Errorf("%d frames counted as %v; want 2", b.drops(0, c.reason), c.reason)
			}
			b.Conserved(t)
		})
	}
	for name, half := range map[string]bool{"full duplex": false, "half duplex": true} {
		t.Run(name, func(t *testing.T) {
			config := pipe(everywhere(2, 80), 6e3)
			config.HalfDuplex = half
			b := newBed(t, 2, config)
			b.send(t, 0, 1, 0, 1, 400)
			b.send(t, 1, 0, 1, 1, 400)
			b.AwaitRead(t, 0, 1)
			b.AwaitRead(t, 1, 1)
			got := len(b.settled(t, 0)) + len(b.settled(t, 1))
			lost := b.drops(0, radio.HalfDuplex) + b.drops(1, radio.HalfDuplex)
			if half && (got != 0 || lost != 2) || !half && got != 2 {
				t.Errorf("two that sent to each other at once: %d frames received, %d lost as halfDuplex", got, lost)
			}
		})
	}
}

func TestStatisticsHaveTheLinksAndTheTransmissions(t *testing.T) {
	b := newBed(t, 3, pipe(world{{1, 2}: 80, {1, 3}: 112}, 10e6))
	b.send(t, 0, -1, 0, 7, 100)
	b.AwaitRead(t, 0, 7)
	b.settled(t, 1)
	all := statistics(b)
	if all[0].Transmissions != 7 || len(all[0].Links) != 0 {
		t.Errorf("sender: %+v; want 7 transmissions and nothing heard", all[0])
	}
	near, far := all[1].Links, all[2].Links
	if len(near) != 1 || near[0].From != b.Ports[0] || near[0].Received != 7 || near[0].SINRDB != 30 || near[0].PowerDBm != -80 {
		t.Errorf("near receiver: %+v; want 7 received at -80 dBm, 30 dB", near)
	}
	if len(far) != 1 || far[0].Received != 0 || far[0].Missed[0] != 7 {
		t.Errorf("far receiver: %+v; want 7 missed below the sensitivity", far)
	}
}

func TestMembersMayComeAndGoWhileFramesAreUnderWay(t *testing.T) {
	b := newBed(t, 3, pipe(everywhere(3, 70), 16e3))
	b.send(t, 0, -1, 0, 2, 200)
	b.send(t, 1, -1, 10, 2, 200)
	b.AwaitRead(t, 0, 2)
	b.AwaitRead(t, 1, 2)
	b.Ports[0].Detach()
	if got := fmt.Sprint(b.settled(t, 2)); got != "[10 11]" {
		t.Errorf("frames %v arrived; want those of the node that stayed", got)
	}
	if last := b.Ports[0].CurrentCounters(); last.InFlight != 0 || last.FramesSent != last.Released {
		t.Errorf("the node that left: %+v; want its frames to have ended", last)
	}
	b.Conserved(t)
}
