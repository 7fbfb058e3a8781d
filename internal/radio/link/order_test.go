package link_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
)

// stations are the nodes' ends of radios that are pairs of sockets instead of TAPs.
func stations(t testing.TB, n *radio.Network, groups ...string) (ends []int) {
	t.Helper()
	for i, group := range groups {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.Attach(radio.PortOptions{Name: fmt.Sprint(group, "-", i), Group: group, NEM: i + 1, MAC: radio.MAC(i + 1), Descriptor: fds[1]})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			p.Detach()
			_, _ = unix.Close(fds[0]), unix.Close(fds[1])
		})
		ends = append(ends, fds[0])
	}
	return ends
}

func newNetwork(t testing.TB, config link.Config) *radio.Network {
	t.Helper()
	engine, err := radio.New(radio.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := engine.NewNetwork(radio.NetworkOptions{Model: link.New(config), MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return n
}

// frame from node 1 to a port, with its number.
func frame(to radio.MAC, number uint64) []byte {
	f := make([]byte, 60)
	binary.BigEndian.PutUint16(f, uint16(to>>32))
	binary.BigEndian.PutUint32(f[2:], uint32(to))
	f[11] = 1
	binary.BigEndian.PutUint64(f[radio.HeaderLength:], number)
	return f
}

func write(t testing.TB, end int, f []byte) {
	for {
		_, err := unix.Write(end, f)
		if err == nil {
			return
		}
		if err != unix.EAGAIN {
			t.Error(err)
			return
		}
		time.Sleep(100 * time.Microsecond) // the radio has not yet taken the ones before
	}
}

// drain reads all frames and fails the test if one came after a later one.
func drain(t testing.TB, end int, latest uint64) (newest uint64, count int) {
	buffer := make([]byte, 2000)
	for {
		if _, err := unix.Read(end, buffer); err != nil {
			return latest, count
		}
		number := binary.BigEndian.Uint64(buffer[radio.HeaderLength:])
		if number < latest {
			t.Errorf("frame %d arrived after frame %d", number, latest)
		}
		latest, count = max(latest, number), count+1
	}
}

// randomConfig of links between two groups of two; none reorders.
func randomConfig(r *rand.Rand) link.Config {
	parameters := func() link.Parameters {
		p := link.Parameters{Delay: time.Duration(r.IntN(30)) * time.Millisecond, Jitter: time.Duration(r.IntN(20)) * time.Millisecond,
			Distribution: link.Distribution(r.IntN(4)), JitterCorrelation: r.Float64(), LossCorrelation: r.Float64(), Loss: r.Float64() * 0.2, Duplicate: r.Float64() * 0.3, LimitBytes: int64(r.IntN(2)) * 20_000}
		if r.IntN(2) == 0 {
			p.RateBitsPerSecond = 1e6 * float64(1+r.IntN(100))
		}
		return p
	}
	names := []string{"red", "blue", "red-0", "red-1", "blue-2", "blue-3", link.Everybody}
	config := link.Config{Seed: 1, Default: parameters()}
	for range r.IntN(5) {
		config.Links = append(config.Links, link.Link{From: names[r.IntN(len(names))], To: names[r.IntN(len(names))], Parameters: parameters()})
	}
	return config
}

func TestNoFrameOvertakesAnotherAndAllAreAccountedForWhateverChangesUnderWay(t *testing.T) {
	const frames = 6000
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	n := newNetwork(t, randomConfig(r))
	ends := stations(t, n, "red", "red", "blue", "blue")
	var wait sync.WaitGroup
	wait.Go(func() {
		destinations := []radio.MAC{2, 3, 4, 0xffffffffffff, 99}
		for i := range uint64(frames) {
			write(t, ends[0], frame(destinations[rand.IntN(len(destinations))], i+1))
			if i%20 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	})
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	latest, received := make([]uint64, len(ends)), uint64(0)
	for sending := true; sending || n.Snapshot(false)[0].InFlight > 0; {
		select {
		case <-done:
			sending = false
		case <-time.After(2 * time.Millisecond):
		}
		config := randomConfig(r)
		if err := n.Configure(1500, false, func(m radio.Model) { m.(*link.Model).Configure(config) }); err != nil {
			t.Fatal(err)
		}
		received += drainAll(t, ends, latest)
		accounted(t, n)
	}
	received += drainAll(t, ends, latest)
	if s := n.Snapshot(false)[0]; s.FramesSent != frames || s.Copies == 0 || s.Drops[radio.Loss] == 0 || received < frames/10 {
		t.Errorf("%d frames received, counters %+v: not the load that was meant", received, s.Counters)
	}
}

func drainAll(t testing.TB, ends []int, latest []uint64) (received uint64) {
	for i, end := range ends {
		newest, count := drain(t, end, latest[i])
		latest[i] = newest
		received += uint64(count)
	}
	return received
}

// accounted holds the identity of radio.Counters at one instant.
func accounted(t testing.TB, n *radio.Network) {
	t.Helper()
	for _, s := range n.Snapshot(false) {
		ended := s.Released + uint64(s.InFlight)
		for _, drops := range s.Drops[:radio.NoReceiver+1] {
			ended += drops
		}
		if s.FramesSent+s.Copies != ended {
			t.Fatalf("%s: %d frames sent, %d copies, but %d accounted for: %+v", s.Port.Name, s.FramesSent, s.Copies, ended, s.Counters)
		}
	}
}

// A link that takes over from another begins when that has sent all, instead of sending beside it.
func TestALinkThatBranchesOffWaitsForWhatWasSentBefore(t *testing.T) {
	const rate, frames = 48e3, 10 // 10 ms a frame
	config := link.Config{Default: link.Parameters{RateBitsPerSecond: rate}}
	n := newNetwork(t, config)
	ends := stations(t, n, "red", "blue")
	began := time.Now()
	for i := range uint64(frames) {
		write(t, ends[0], frame(2, i+1))
	}
	for n.Snapshot(false)[0].FramesSent < frames {
		time.Sleep(100 * time.Microsecond)
	}
	config.Links = []link.Link{{From: "red", To: "blue", Parameters: config.Default}}
	if err := n.Configure(1500, false, func(m radio.Model) { m.(*link.Model).Configure(config) }); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(frames) {
		write(t, ends[0], frame(2, frames+i+1))
	}
	var latest uint64
	for latest < 2*frames {
		latest, _ = drain(t, ends[1], latest)
		if time.Since(began) > 10*time.Second {
			t.Fatalf("only frame %d has arrived after 10 s", latest)
		}
		time.Sleep(100 * time.Microsecond)
	}
	if took, least := time.Since(began), 2*frames*10*time.Millisecond; took < least {
		t.Errorf("%d frames took %v; want at least %v", 2*frames, took, least)
	}
}

func TestAFrameCostsNoAllocation(t *testing.T) {
	const rounds, frames = 40, 100
	n := newNetwork(t, link.Config{Seed: 1, Default: link.Parameters{RateBitsPerSecond: 1e9, Delay: time.Millisecond, Jitter: time.Millisecond,
		Distribution: link.Normal, Duplicate: 0.3, GilbertElliott: &link.GilbertElliott{GoodToBad: 0.1, BadToGood: 0.5, LossInBad: 0.5}}})
	ends := stations(t, n, "red", "blue")
	f, buffer := frame(2, 1), make([]byte, 2000)
	round := func() {
		for range frames {
			write(t, ends[0], f)
		}
		for idle := 0; idle < 20; { // until all have arrived
			if _, err := unix.Read(ends[1], buffer); err != nil {
				idle++
				time.Sleep(time.Millisecond)
			} else {
				idle = 0
			}
		}
	}
	round() // fills the pool
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		round()
	}
	runtime.ReadMemStats(&after)
	if s := n.Snapshot(false)[0]; s.Released < rounds*frames/2 || s.Copies == 0 {
		t.Fatalf("counters %+v: not the load that was meant", s.Counters)
	}
	if each := float64(after.Mallocs-before.Mallocs) / (rounds * frames); each > 0.2 {
		t.Errorf("%.2f allocations per frame; want none but those of the runtime", each)
	}
}
