package link_test

import (
	"math"
	"math/bits"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/radiotest"
)

type bed struct{ *radiotest.Bed }

func newBed(t testing.TB, nodes int, config link.Config) *bed {
	t.Helper()
	return &bed{radiotest.NewBed(t, nodes, link.New(config))}
}

func TestDelayThroughTAPsIsDelayPlusSerialisation(t *testing.T) {
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
			b := newBed(t, 2, link.Config{Default: link.Parameters{RateBitsPerSecond: c.rate, Delay: c.delay}})
			quiet := bestOf(5, func() []time.Duration {
				var errors []time.Duration
				for i, length := range slices.Repeat(c.lengths, 3) {
					want := c.delay
					if c.rate > 0 {
						want += time.Duration(8e9 * float64(length) / c.rate)
					}
					errors = append(errors, b.sendAlone(t, uint64(i), length)-want)
				}
				return errors
			})
			checkErrors(t, quiet)
			b.Conserved(t)
		})
	}
}

// goodMedian of the delay's error.
const goodMedian = 500 * time.Microsecond

// bestOf measures again while the median is too large, and returns the best. Other programs on a busy machine
// can only add to delays.
func bestOf(rounds int, measure func() []time.Duration) (best []time.Duration) {
	for range rounds {
		errors := measure()
		slices.Sort(errors)
		if best == nil || errors[len(errors)/2] < best[len(best)/2] {
			best = errors
		}
		if best[len(best)/2] <= goodMedian {
			break
		}
	}
	return best
}

// sendAlone sends one frame over an idle link and returns its delay.
func (b *bed) sendAlone(t *testing.T, sequence uint64, length int) time.Duration {
	t.Helper()
	if err := b.Nodes[0].Send(b.Nodes[0].Frame(b.Nodes[1].MAC, sequence, length)); err != nil {
		t.Fatal(err)
	}
	r, ok, err := b.Nodes[1].Receive(5 * time.Second)
	if err != nil || !ok || r.Sequence != sequence || r.Length != length {
		t.Fatalf("frame %d of %d bytes: got %+v, %v, %v", sequence, length, r, ok, err)
	}
	return r.Delay()
}

// checkErrors judges the minimum and the median of sorted errors; the tail is for the bench.
func checkErrors(t *testing.T, errors []time.Duration) {
	t.Helper()
	least, median, worst := errors[0], errors[len(errors)/2], errors[len(errors)-1]
	t.Logf("delay error: least %v, median %v, worst %v", least, median, worst)
	if least < 0 {
		t.Errorf("a frame arrived %v too early", -least)
	}
	if least > 300*time.Microsecond {
		t.Errorf("even the best frame was %v late; want < 0.3 ms", least)
	}
	if median > goodMedian {
		t.Errorf("the median frame was %v late; want < 0.5 ms", median)
	}
}

func TestCarriedRateIsTheLinksRate(t *testing.T) {
	for name, c := range map[string]struct {
		rate   float64
		frames int
		length int
	}{
		"9.8 kbit/s": {9.8e3, 20, 100}, "250 kbit/s": {250e3, 60, 900}, "2 Mbit/s": {2e6, 300, 1400}, "10 Mbit/s": {10e6, 900, 1514},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, 2, link.Config{Default: link.Parameters{RateBitsPerSecond: c.rate}})
			b.burst(t, c.frames, c.length)
			arrived := b.receive(t, c.frames, 3*time.Second)
			got := carriedRate(arrived, c.length)
			t.Logf("carried %.0f bit/s", got)
			if math.Abs(got/c.rate-1) > 0.01 {
				t.Errorf("carried %.0f bit/s; want %.0f within 1 %%", got, c.rate)
			}
			b.Conserved(t)
		})
	}
}

// carriedRate in bit/s, from the median time that half of all frames took. A busy machine may delay a few
// frames at either end.
func carriedRate(arrived []radiotest.Received, length int) float64 {
	half := len(arrived) / 2
	var spans []int64
	for i := range len(arrived) - half {
		spans = append(spans, arrived[i+half].Arrived-arrived[i].Arrived)
	}
	slices.Sort(spans)
	return 8e9 * float64(length*half) / float64(spans[len(spans)/2])
}

func (b *bed) burst(t *testing.T, frames, length int) {
	t.Helper()
	for i := range frames {
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(b.Nodes[1].MAC, uint64(i), length)); err != nil {
			t.Fatal(err)
		}
	}
}

// flood sends short frames as fast as the radio takes them from the TAP. The TAP's ring drops frames that
// find no room.
func (b *bed) flood(t *testing.T, frames int, to net.HardwareAddr) {
	t.Helper()
	const ring = 500
	for i := range frames {
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(to, uint64(i), 60)); err != nil {
			t.Fatal(err)
		}
		if (i+1)%ring == 0 {
			b.AwaitRead(t, 0, uint64(i+1))
		}
	}
}

// receive takes exactly that many frames, in the order in which they were sent.
func (b *bed) receive(t *testing.T, frames int, quiet time.Duration) (all []radiotest.Received) {
	t.Helper()
	for len(all) < frames {
		r, ok, err := b.Nodes[1].Receive(quiet)
		if err != nil || !ok {
			t.Fatalf("%d of %d frames arrived: %v", len(all), frames, err)
		}
		if len(all) > 0 && r.Sequence <= all[len(all)-1].Sequence {
			t.Fatalf("frame %d arrived after %d", r.Sequence, all[len(all)-1].Sequence)
		}
		all = append(all, r)
	}
	return all
}

func TestLossLiesInTheBinomialInterval(t *testing.T) {
	const frames = 4000
	for name, loss := range map[string]float64{"1 %": 0.01, "10 %": 0.1, "50 %": 0.5} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, 2, link.Config{Seed: 1, Default: link.Parameters{Loss: loss, Delay: time.Millisecond, Limit: frames}})
			b.flood(t, frames, b.Nodes[1].MAC)
			arrived, err := b.Nodes[1].ReceiveAll(300 * time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			lost := frames - len(arrived)
			// The 99 % interval of the binomial distribution in its normal approximation.
			margin := 2.576 * math.Sqrt(frames*loss*(1-loss))
			if math.Abs(float64(lost)-frames*loss) > margin {
				t.Errorf("%d of %d frames lost; want %.0f ± %.0f", lost, frames, frames*loss, margin)
			}
			if counted := b.Network.Snapshot(false)[0].Drops[radio.Loss]; counted != uint64(lost) {
				t.Errorf("%d losses counted, %d seen", counted, lost)
			}
			b.Conserved(t)
		})
	}
}

func TestAFullQueueDropsTheNewestFrames(t *testing.T) {
	const limit, frames = 20, 50
	b := newBed(t, 2, link.Config{Default: link.Parameters{RateBitsPerSecond: 250e3, Delay: 50 * time.Millisecond, Limit: limit}})
	b.burst(t, frames, 1000)
	arrived, err := b.Nodes[1].ReceiveAll(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(arrived) != limit {
		t.Errorf("%d frames arrived; want the first %d", len(arrived), limit)
	}
	for i, r := range arrived {
		if r.Sequence != uint64(i) {
			t.Fatalf("frame %d arrived in place %d; want the first %d frames in order", r.Sequence, i, limit)
		}
	}
	if dropped := b.Network.Snapshot(false)[0].Drops[radio.QueueFull]; dropped != frames-limit {
		t.Errorf("%d frames counted as queueFull; want %d", dropped, frames-limit)
	}
	b.Conserved(t)
}

func TestABroadcastGoesOnceOverTheSendersEgress(t *testing.T) {
	const rate, length, frames = 250e3, 1000, 10
	b := newBed(t, 4, link.Config{Default: link.Parameters{RateBitsPerSecond: rate}})
	for i := range frames {
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(radiotest.Broadcast, uint64(i), length)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range b.Nodes[1:] {
		arrived, err := n.ReceiveAll(500 * time.Millisecond)
		if err != nil || len(arrived) != frames {
			t.Fatalf("node %d received %d frames, %v; want %d", n.NEM, len(arrived), err, frames)
		}
		last := span(arrived)
		if want := time.Duration(frames * 8e9 * length / rate); last < want || last > want+50*time.Millisecond {
			t.Errorf("the last of %d broadcasts took %v; want %v: once over the link, not once per receiver", frames, last, want)
		}
	}
	if own, _ := b.Nodes[0].ReceiveAll(10 * time.Millisecond); len(own) != 0 {
		t.Errorf("the sender received %d of its own frames", len(own))
	}
	b.Conserved(t)
}

// span from the first frame being sent to the last one's arrival.
func span(arrived []radiotest.Received) time.Duration {
	return time.Duration(arrived[len(arrived)-1].Arrived - arrived[0].Sent)
}

func TestAFrameForNobodyUsesTheEgressAndIsDropped(t *testing.T) {
	b := newBed(t, 2, link.Config{Default: link.Parameters{RateBitsPerSecond: 250e3}})
	stranger := []byte{2, 2, 0, 0, 0, 99}
	if err := b.Nodes[0].Send(b.Nodes[0].Frame(stranger, 0, 1000)); err != nil {
		t.Fatal(err)
	}
	got, want := b.sendAlone(t, 1, 1000), 64*time.Millisecond // 32 ms for each of the two
	if got < want-5*time.Millisecond || got > want+20*time.Millisecond {
		t.Errorf("the frame behind one for nobody took %v; want %v", got, want)
	}
	if dropped := b.Network.Snapshot(false)[0].Drops[radio.NoReceiver]; dropped != 1 {
		t.Errorf("%d frames counted as noReceiver; want 1", dropped)
	}
	b.Conserved(t)
}

func TestInASilentNetworkNothingArrives(t *testing.T) {
	const delay = 500 * time.Millisecond // ample for what comes before the silence, on a busy machine too
	b := newBed(t, 2, link.Config{Default: link.Parameters{Delay: delay}})
	b.burst(t, 1, 100) // under way when silence falls
	time.Sleep(2 * time.Millisecond)
	if err := b.Network.Configure(1500, true, nil); err != nil {
		t.Fatal(err)
	}
	b.burst(t, 10, 100)
	arrived, err := b.Nodes[1].ReceiveAll(2 * delay)
	if err != nil || len(arrived) != 0 {
		t.Errorf("%d frames arrived, %v; want silence", len(arrived), err)
	}
	if dropped := b.Network.Snapshot(false)[0].Drops[radio.Silent]; dropped != 11 {
		t.Errorf("%d frames counted as silent; want 11", dropped)
	}
	b.Conserved(t)
}

func TestTwinNetworksAtFullLoadNeverExchangeAFrame(t *testing.T) {
	one := newBed(t, 3, link.Config{Seed: 1})
	two := newBed(t, 3, link.Config{Seed: 1}) // equal in every name, address and MAC
	const frames = 3000
	var wait sync.WaitGroup
	for marker, b := range []*bed{one, two} {
		for _, n := range b.Nodes {
			wait.Go(func() {
				for i := range frames {
					to := b.Nodes[i%3].MAC
					if i%2 == 0 {
						to = radiotest.Broadcast
					}
					// An error is a full queue of the kernel: load, not a fault.
					_ = n.Send(n.Frame(to, uint64(marker), 200))
				}
			})
		}
	}
	wait.Wait()
	for marker, b := range []*bed{one, two} {
		received := 0
		for _, n := range b.Nodes {
			all, err := n.ReceiveAll(100 * time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			received += len(all)
			for _, r := range all {
				if r.Sequence != uint64(marker) {
					t.Fatalf("a frame of network %d reached a node of network %d", r.Sequence, marker)
				}
			}
		}
		if received < frames {
			t.Errorf("only %d frames arrived in network %d: not a load", received, marker)
		}
		b.Conserved(t)
	}
}

func TestALinkBetweenGroupsHasAQueueOfItsOwn(t *testing.T) {
	b := newBed(t, 4, link.Config{Default: link.Parameters{Delay: time.Millisecond},
		Links: []link.Link{{From: "node-1", To: "node-3", Parameters: link.Parameters{RateBitsPerSecond: 250e3, Delay: 50 * time.Millisecond}},
			{From: "node-1", To: "node-4", Parameters: link.Parameters{Loss: 1}}}})
	const frames, length = 5, 1000
	for i := range frames {
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(radiotest.Broadcast, uint64(i), length)); err != nil {
			t.Fatal(err)
		}
	}
	for node, want := range map[int]struct {
		frames int
		last   time.Duration
	}{1: {frames, time.Millisecond}, 2: {frames, 50*time.Millisecond + frames*32*time.Millisecond}, 3: {0, 0}} {
		arrived, err := b.Nodes[node].ReceiveAll(300 * time.Millisecond)
		if err != nil || len(arrived) != want.frames {
			t.Errorf("node-%d received %d frames, %v; want %d", node+1, len(arrived), err, want.frames)
			continue
		}
		if len(arrived) > 0 {
			if last := span(arrived); last < want.last || last > want.last+50*time.Millisecond {
				t.Errorf("the last frame reached node-%d after %v; want %v", node+1, last, want.last)
			}
		}
	}
	counters := b.Network.Snapshot(false)[0].Counters
	if counters.FramesSent != frames || counters.Copies != 2*frames || counters.Drops[radio.Loss] != frames {
		t.Errorf("counters %+v; want %d sent, each over three links, one of which loses all", counters, frames)
	}
	b.Conserved(t)
}

func TestAChangeOfTheLinkDoesNotDisturbFramesUnderWay(t *testing.T) {
	b := newBed(t, 2, link.Config{Default: link.Parameters{Delay: 200 * time.Millisecond}})
	b.burst(t, 3, 100)
	time.Sleep(20 * time.Millisecond)
	err := b.Network.Configure(1500, false, func(m radio.Model) {
		m.(*link.Model).Configure(link.Config{Default: link.Parameters{Delay: 400 * time.Millisecond}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Nodes[0].Send(b.Nodes[0].Frame(b.Nodes[1].MAC, 3, 100)); err != nil {
		t.Fatal(err)
	}
	for i, r := range b.receive(t, 4, time.Second) {
		want := 200 * time.Millisecond
		if i == 3 {
			want = 400 * time.Millisecond
		}
		// Less than the other delay, with as much room as that leaves for a machine that stalls for a moment.
		if got := r.Delay(); got < want || got > want+190*time.Millisecond {
			t.Errorf("frame %d took %v; want %v", i, got, want)
		}
	}
	b.Conserved(t)
}

// With jitter that keeps the order a frame also waits for earlier ones, so the mean is not the link's delay.
// The other distributions are tested against closed forms without the kernel.
func TestJitterThroughTAPsSpreadsTheDelayEvenly(t *testing.T) {
	const delay, jitter, frames = 40 * time.Millisecond, 30 * time.Millisecond, 300
	b := newBed(t, 2, link.Config{Seed: 1, Default: link.Parameters{Delay: delay, Jitter: jitter, Reorder: true}})
	for i := range frames {
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(b.Nodes[1].MAC, uint64(i), 60)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	arrived, err := b.Nodes[1].ReceiveAll(time.Second)
	if err != nil || len(arrived) != frames {
		t.Fatalf("%d of %d frames arrived, %v", len(arrived), frames, err)
	}
	var delays []time.Duration
	overtaken := 0
	for i, r := range arrived {
		delays = append(delays, r.Delay())
		if i > 0 && r.Sequence < arrived[i-1].Sequence {
			overtaken++
		}
	}
	slices.Sort(delays)
	if delays[0] < delay-jitter {
		t.Errorf("the fastest frame took %v; want at least %v", delays[0], delay-jitter)
	}
	// The median of many uniform delays is off by at most 2.576·jitter/√frames (at 1 %; the seed is fixed).
	margin := time.Duration(2.576 * float64(jitter) / math.Sqrt(frames))
	if median := delays[frames/2]; median < delay-margin || median > delay+margin+2*goodMedian {
		t.Errorf("the median frame took %v; want %v ± %v", median, delay, margin)
	}
	if overtaken == 0 {
		t.Error("no frame overtook another, although the link reorders")
	}
	b.Conserved(t)
}

func TestJitterThroughTAPsKeepsTheOrder(t *testing.T) {
	const frames = 300
	b := newBed(t, 2, link.Config{Seed: 1, Default: link.Parameters{Delay: 20 * time.Millisecond, Jitter: 20 * time.Millisecond, Distribution: link.Normal}})
	for i := range frames {
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(b.Nodes[1].MAC, uint64(i), 60)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Microsecond)
	}
	b.receive(t, frames, time.Second) // in order
	b.Conserved(t)
}

// watcher keeps copies of a port's frames by direction.
type watcher struct {
	mu   sync.Mutex
	seen [2][][]byte
}

func (w *watcher) Frame(d radio.Direction, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[d] = append(w.seen[d], slices.Clone(data))
}

func TestACorruptedFrameArrivesWithOneWrongBit(t *testing.T) {
	const frames, length = 200, 90
	b := newBed(t, 3, link.Config{Seed: 1, Default: link.Parameters{Delay: time.Millisecond, Corrupt: 1, Limit: 2 * frames}})
	var sender, first, second watcher
	for i, w := range []*watcher{&sender, &first, &second} {
		b.Ports[i].SetTap(w)
	}
	for i := range frames {
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(radiotest.Broadcast, uint64(i), length)); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); b.Network.Snapshot(false)[2].FramesReceived < frames; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v; want %d frames received", b.Network.Snapshot(false)[2], frames)
		}
	}
	for i := range b.Ports {
		b.Ports[i].SetTap(nil)
	}
	for i, sent := range sender.seen[radio.Out] {
		got := first.seen[radio.In][i]
		wrong := 0
		for k := range sent {
			wrong += bits.OnesCount8(sent[k] ^ got[k])
		}
		if len(got) != len(sent) || wrong != 1 || !slices.Equal(got, second.seen[radio.In][i]) {
			t.Fatalf("frame %d has %d wrong bits; want one, the same for all receivers", i, wrong)
		}
	}
	if counted := b.Network.Snapshot(false)[0].Corrupted; counted != frames {
		t.Errorf("%d frames counted as corrupted; want %d", counted, frames)
	}
	b.Conserved(t)
}

func TestDuplicatesArriveTwiceRightAfterTheirFrames(t *testing.T) {
	const frames, share = 4000, 0.1
	b := newBed(t, 3, link.Config{Seed: 1, Default: link.Parameters{Delay: time.Millisecond, Duplicate: share, Limit: 2 * frames}})
	b.flood(t, frames, radiotest.Broadcast)
	var duplicates []uint64
	for _, n := range b.Nodes[1:] {
		arrived, err := n.ReceiveAll(300 * time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		var twice []uint64
		for i, r := range arrived {
			switch {
			case i > 0 && r.Sequence == arrived[i-1].Sequence:
				twice = append(twice, r.Sequence)
			case i > 0 && r.Sequence != arrived[i-1].Sequence+1:
				t.Fatalf("frame %d arrived after frame %d", r.Sequence, arrived[i-1].Sequence)
			}
		}
		if duplicates != nil && !slices.Equal(twice, duplicates) {
			t.Error("two receivers got different frames twice: each is drawn once for all of them")
		}
		duplicates = twice
	}
	// The 99 % interval of the binomial distribution in its normal approximation; the seed is fixed.
	if margin := 2.576 * math.Sqrt(frames*share*(1-share)); math.Abs(float64(len(duplicates))-frames*share) > margin {
		t.Errorf("%d of %d frames arrived twice; want %.0f ± %.0f", len(duplicates), frames, frames*share, margin)
	}
	if s := b.Network.Snapshot(false)[0]; s.Copies != uint64(len(duplicates)) || s.Released != frames+s.Copies {
		t.Errorf("counters %+v; want %d copies, all released", s.Counters, len(duplicates))
	}
	b.Conserved(t)
}

func TestABasesDownlinkIsTheLinkOfItsEgressAlone(t *testing.T) {
	const length, frames = 1000, 4
	b := newBed(t, 3, link.Config{Default: link.Parameters{RateBitsPerSecond: 200e3}, // 40 ms a frame up
		Links: []link.Link{{From: "node-1", To: link.Everybody, Parameters: link.Parameters{RateBitsPerSecond: 800e3}}}}) // 10 ms down
	for i := range frames { // to both alternately, over one link
		if err := b.Nodes[0].Send(b.Nodes[0].Frame(b.Nodes[1+i%2].MAC, uint64(i), length)); err != nil {
			t.Fatal(err)
		}
	}
	var arrived []radiotest.Received
	for _, n := range b.Nodes[1:] {
		half, err := n.ReceiveAll(300 * time.Millisecond)
		if err != nil || len(half) != frames/2 {
			t.Fatalf("node %d received %d frames, %v; want %d", n.NEM, len(half), err, frames/2)
		}
		arrived = append(arrived, half...)
	}
	// 40 ms over one link of the base; two would take 20 ms, and its uplink 160 ms.
	if got := span(arrived); got < frames*10*time.Millisecond || got > frames*30*time.Millisecond {
		t.Errorf("the last frame down took %v; want %v", got, frames*10*time.Millisecond)
	}
	if err := b.Nodes[1].Send(b.Nodes[1].Frame(b.Nodes[0].MAC, 0, length)); err != nil {
		t.Fatal(err)
	}
	r, ok, err := b.Nodes[0].Receive(time.Second)
	if want := 40 * time.Millisecond; err != nil || !ok || r.Delay() < want {
		t.Errorf("the frame up took %v, %v, %v; want at least %v", r.Delay(), ok, err, want)
	}
	b.Conserved(t)
}
