package radio

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

// delayModel is a model that delivers every frame to all after a time.
type delayModel struct {
	time  int64
	ports []*Port
}

func (w *delayModel) Members(ports []*Port) { w.ports = ports }

func (w *delayModel) Transmit(n *Network, now int64, f *Frame) {
	f.Receivers = w.ports
	if w.time == 0 {
		n.Deliver(now, f)
		return
	}
	n.Hold(f, now+w.time)
}

func (w *delayModel) Due(n *Network, now int64, f *Frame) { n.Deliver(now, f) }

// station is a node whose radio is a pair of sockets instead of a TAP.
type station struct {
	node int
	port *Port
}

func newStations(t testing.TB, n *Network, count int) (all []station) {
	t.Helper()
	for i := range count {
		all = append(all, newStation(t, n, i+1))
	}
	return all
}

func newStation(t testing.TB, n *Network, nem int) station {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	p, err := n.Attach(PortOptions{Name: fmt.Sprint("n", nem-1), NEM: nem, MAC: MAC(nem), Descriptor: fds[1]}) //nolint:gosec // positive
	if err != nil {
		t.Fatal(err)
	}
	return station{fds[0], p}
}

func (s station) send(t *testing.T, to MAC, payload string) {
	t.Helper()
	frame := []byte{byte(to >> 40), byte(to >> 32), byte(to >> 24), byte(to >> 16), byte(to >> 8), byte(to), 0, 0, 0, 0, 0, 0, 8, 0}
	if _, err := unix.Write(s.node, append(frame, payload...)); err != nil {
		t.Fatal(err)
	}
}

// receive returns the payload of the next frame, or "" if none comes within the timeout.
func (s station) receive(t *testing.T, timeout time.Duration) string {
	t.Helper()
	count, err := 0, error(unix.EINTR)
	for end := time.Now().Add(timeout); err == unix.EINTR; { // Go's scheduler sends signals
		count, err = unix.Poll([]unix.PollFd{{Fd: int32(s.node), Events: unix.POLLIN}}, int(max(time.Until(end), 0)/time.Millisecond))
	}
	if err != nil || count == 0 {
		return ""
	}
	buffer := make([]byte, 65536)
	n, err := unix.Read(s.node, buffer)
	if err != nil {
		t.Fatal(err)
	}
	return string(buffer[HeaderLength:n])
}

func newNetwork(t testing.TB, m Model) *Network {
	t.Helper()
	return newNetworkWith(t, m, Options{})
}

func newNetworkWith(t testing.TB, m Model, options Options) *Network {
	t.Helper()
	e, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	n, err := e.NewNetwork(NetworkOptions{Model: m, MTU: 100})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const everybody = MAC(0xffffffffffff)

func TestFramesReachTheOthersInOrder(t *testing.T) {
	for name, waiting := range map[string]int64{"at once": 0, "after a time": 3e6} {
		t.Run(name, func(t *testing.T) {
			stations := newStations(t, newNetwork(t, &delayModel{time: waiting}), 3)
			for i := range 50 {
				stations[0].send(t, everybody, fmt.Sprint("frame ", i))
			}
			for _, s := range stations[1:] {
				for i := range 50 {
					if got := s.receive(t, time.Second); got != fmt.Sprint("frame ", i) {
						t.Fatalf("%s got %q; want frame %d", s.port.Name, got, i)
					}
				}
			}
			if got := stations[0].receive(t, 10*time.Millisecond); got != "" {
				t.Errorf("the sender got its own %q", got)
			}
		})
	}
}

func TestWhatIsNoFrameOfTheNetworkIsDroppedByName(t *testing.T) {
	n := newNetwork(t, &delayModel{})
	stations := newStations(t, n, 2)
	if _, err := unix.Write(stations[0].node, []byte("short")); err != nil {
		t.Fatal(err)
	}
	stations[0].send(t, everybody, string(make([]byte, 101))) // one byte above the MTU
	stations[0].send(t, everybody, string(make([]byte, 100)))
	stations[0].send(t, everybody, "good")
	for _, want := range []string{string(make([]byte, 100)), "good"} {
		if got := stations[1].receive(t, time.Second); got != want {
			t.Fatalf("got %q; want %q", got, want)
		}
	}
	c := n.Snapshot(false)[0].Counters
	if c.Drops[Malformed] != 1 || c.Drops[Oversize] != 1 || c.FramesSent != 4 || c.Released != 2 {
		t.Errorf("counters %+v; want one malformed, one oversize, two released of four", c)
	}
}

func TestAFrameToAPortThatWentIsDropped(t *testing.T) {
	n := newNetwork(t, &delayModel{time: 30e6})
	stations := newStations(t, n, 3)
	stations[0].send(t, everybody, "hello")
	for n.Snapshot(false)[0].InFlight == 0 {
		time.Sleep(time.Millisecond)
	}
	stations[2].port.Detach()
	if got := stations[1].receive(t, time.Second); got != "hello" {
		t.Errorf("the port that stayed got %q; want hello", got)
	}
	if got := stations[2].receive(t, 20*time.Millisecond); got != "" {
		t.Errorf("the port that went got %q", got)
	}
	if last := stations[2].port.Detach(); last.Drops[Detached] != 1 {
		t.Errorf("counters %+v; want one frame dropped as detached", last)
	}
}

func TestANetworksEndDropsWhatIsInFlight(t *testing.T) {
	n := newNetwork(t, &delayModel{time: 30e6})
	stations := newStations(t, n, 2)
	stations[0].send(t, everybody, "hello")
	for n.Snapshot(false)[0].InFlight == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, s := range stations {
		s.port.Detach()
	}
	n.Close()
	if got := stations[1].receive(t, 60*time.Millisecond); got != "" {
		t.Errorf("got %q after the network's end", got)
	}
	if last := stations[0].port.Detach(); last.Drops[InFlightAtEnd] != 1 || last.InFlight != 0 {
		t.Errorf("counters %+v; want one frame dropped as inFlightAtEnd", last)
	}
}

func TestASecondPortWithAMACIsRefused(t *testing.T) {
	n := newNetwork(t, &delayModel{})
	stations := newStations(t, n, 1)
	_, err := n.Attach(PortOptions{Name: "twin", MAC: stations[0].port.MAC, Descriptor: stations[0].port.Descriptor})
	if err == nil {
		t.Error("a second port with the same MAC was attached")
	}
}

func TestGoneIsCalledOnce(t *testing.T) {
	n := newNetwork(t, &delayModel{})
	fds := make([]int, 2)
	if err := unix.Pipe2(fds, unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	gone := make(chan bool, 10)
	// Reading a write-only descriptor fails, like that of a TAP whose interface went.
	if _, err := n.Attach(PortOptions{MAC: 1, Descriptor: fds[1], Gone: func() { gone <- true }}); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fds[0]) // makes the other end report an error
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Fatal("not told that the interface is gone")
	}
	select {
	case <-gone:
		t.Error("told twice")
	case <-time.After(50 * time.Millisecond):
	}
}

// stoppedLoopWith makes a loop that the test drives itself.
func stoppedLoopWith(t testing.TB, m Model) (*loop, []station) {
	t.Helper()
	l, err := newLoop()
	if err != nil {
		t.Fatal(err)
	}
	n := &Network{engine: &Engine{}, loop: l, model: m, byMAC: map[MAC]*Port{}, maxFrame: 1518}
	var stations []station
	go func() { // Attach waits for the loop
		stations = newStations(t, n, 3)
		l.do(func() { l.ended = true })
	}()
	l.run(Options{})
	if l.epoll, err = unix.EpollCreate1(0); err != nil { // the loop has closed its own
		t.Fatal(err)
	}
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(l.epoll), unix.Close(l.timer) })
	return l, stations
}

func TestAFrameCostsNoAllocation(t *testing.T) {
	for name, waiting := range map[string]int64{"at once": 0, "after a time": 1} {
		t.Run(name, func(t *testing.T) {
			l, stations := stoppedLoopWith(t, &delayModel{time: waiting})
			frame, buffer := slices.Repeat([]byte{0xff}, 900), make([]byte, 2000)
			allocations := testing.AllocsPerRun(500, func() {
				_, _ = unix.Write(stations[0].node, frame)
				l.iteration++
				l.read(stations[0].port)
				l.releaseDue(clock.Monotonic() + 10)
				l.arm(clock.Monotonic())
				for _, s := range stations[1:] {
					_, _ = unix.Read(s.node, buffer)
				}
			})
			if allocations != 0 {
				t.Errorf("%v allocations per frame; want none", allocations)
			}
			if stations[1].port.counters.FramesReceived < 500 {
				t.Errorf("only %d frames were carried: nothing was measured", stations[1].port.counters.FramesReceived)
			}
		})
	}
}

func TestTheHeapGivesFramesByTimeThenOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h heap
	var want []int64
	for range 2000 {
		due := random.Int64N(300)
		want = append(want, due)
		h.push(due, &Frame{Due: due, Sent: int64(h.order)})
	}
	slices.Sort(want)
	var before *Frame
	for i := range want {
		f := h.pop()
		if f.Due != want[i] {
			t.Fatalf("frame %d is due at %d; want %d", i, f.Due, want[i])
		}
		if before != nil && before.Due == f.Due && before.Sent > f.Sent {
			t.Fatalf("frames due at %d: the later one came first", f.Due)
		}
		before = f
	}
}

func TestThePoolKeepsContentsApartAndShrinks(t *testing.T) {
	var p pool
	var frames []*Frame
	for i := range 1000 {
		frames = append(frames, p.get(bytes.Repeat([]byte{byte(i)}, 1+i*7%3000)))
	}
	for i, f := range frames {
		if len(f.Data) != 1+i*7%3000 || f.Data[0] != byte(i) || f.Data[len(f.Data)-1] != byte(i) {
			t.Fatalf("frame %d: %d bytes of %d", i, len(f.Data), f.Data[0])
		}
		p.put(f)
	}
	p.trim() // the burst is within this interval
	p.trim()
	for class, count := range p.count {
		if count > 64 {
			t.Errorf("%d free buffers of %d bytes are kept; want at most 64", count, bufferSizes[class])
		}
	}
}

func TestHistogramsCountIntoTheRightBuckets(t *testing.T) {
	var h Histogram
	for _, v := range []int64{0, 20e3, 20e3 + 1, 2e9} {
		h.add(LatenessBounds, v)
	}
	if h.Buckets[0] != 2 || h.Buckets[1] != 1 || h.Buckets[len(LatenessBounds)] != 1 || h.Count != 4 || h.Sum != 2e9+40e3+1 {
		t.Errorf("histogram %+v", h)
	}
	if len(DelayBounds) >= maxBuckets || len(LatenessBounds) >= maxBuckets {
		t.Error("more bounds than buckets")
	}
}

func TestEveryReasonHasAName(t *testing.T) {
	seen := map[string]bool{}
	for r := range reasons {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("reason %d is named %q", r, name)
		} else {
			seen[name] = true
		}
	}
}

func FuzzDestination(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0})
	f.Add(bytes.Repeat([]byte{0xff}, 60))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, ok := destination(data)
		if ok != (len(data) >= HeaderLength) {
			t.Errorf("%d bytes: ok %v", len(data), ok)
		}
		if !ok {
			return
		}
		want := net.HardwareAddr(data[:6])
		if m.String() != want.String() || m.IsMulticast() != (want[0]&1 == 1) {
			t.Errorf("got %v, multicast %v; want %v", m, m.IsMulticast(), want)
		}
		if parsed, err := ParseMAC(m.String()); err != nil || parsed != m {
			t.Errorf("ParseMAC(%v) = %v, %v", m, parsed, err)
		}
	})
}

func FuzzParseMAC(f *testing.F) {
	f.Add("02:02:00:00:00:01")
	f.Add("02-02-00-00-00-01-02-03")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMAC(text)
		if err == nil && m>>48 != 0 {
			t.Errorf("ParseMAC(%q) = %x: more than 48 bits", text, uint64(m))
		}
	})
}

func TestThreadsOfTheProcessAreRaised(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the test, and others set their own
	if err := RaiseProcessPriority(Options{Nice: -3}); err != nil {
		t.Skipf("not allowed here: %v", err)
	}
	is, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	if err != nil || 20-is != -3 { // the kernel answers 20 - nice
		t.Errorf("this thread has priority %d, error %v; want -3", 20-is, err)
	}
}

func TestLoopsHaveABetterPriorityThanOtherThreads(t *testing.T) {
	runtime.LockOSThread() // not unlocked, as above; the process's first thread may have been a loop's of an earlier test
	e, err := New(Options{Nice: -3})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.RaisePriority(); err != nil {
		t.Skipf("not allowed here: %v", err)
	}
	var loop int
	e.loops[0].do(func() { loop = unix.Gettid() })
	for thread, want := range map[int]int{loop: -3 - niceAdvantage, unix.Gettid(): -3} {
		if is, err := unix.Getpriority(unix.PRIO_PROCESS, thread); err != nil || 20-is != want {
			t.Errorf("a thread has priority %d, error %v; want %d: -3 for the process, and the loop before it", 20-is, err, want)
		}
	}
}

func TestPortsAreDetachedByManyAsTheEngineEnds(t *testing.T) {
	n := newNetwork(t, &delayModel{})
	stations := newStations(t, n, 8)
	var all sync.WaitGroup
	for range 2 { // as the owner and the one who found the interface gone do
		for _, s := range stations {
			all.Go(func() { s.port.Detach() })
		}
	}
	_ = n.engine.Close()
	all.Wait()
	if ports := n.Snapshot(false); len(ports) != 0 {
		t.Errorf("%d ports are left", len(ports))
	}
}
