package driver

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/virtual"
)

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
	p, err := n.Attach(PortOptions{Descriptor: fds[1], PortOptions: radio.PortOptions{Name: fmt.Sprint("n", nem-1), NEM: nem, MAC: radio.MAC(nem)}}) //nolint:gosec // positive
	if err != nil {
		t.Fatal(err)
	}
	return station{fds[0], p}
}

func (s station) send(t *testing.T, to radio.MAC, payload string) {
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
	return string(buffer[radio.HeaderLength:n])
}

func newNetwork(t testing.TB, m radio.Model) *Network {
	t.Helper()
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	n, err := d.NewNetwork(radio.NetworkOptions{Model: m, MTU: 100})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const everybody = radio.MAC(0xffffffffffff)

func TestFramesReachTheOthersInOrder(t *testing.T) {
	for name, waiting := range map[string]time.Duration{"at once": 0, "after a time": 3 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			stations := newStations(t, newNetwork(t, &virtual.Delay{Time: waiting}), 3)
			for i := range 50 {
				stations[0].send(t, everybody, fmt.Sprint("frame ", i))
			}
			for _, s := range stations[1:] {
				for i := range 50 {
					if got := s.receive(t, 10*time.Second); got != fmt.Sprint("frame ", i) {
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

func TestGoneIsCalledOnce(t *testing.T) {
	n := newNetwork(t, &virtual.Delay{})
	fds := make([]int, 2)
	if err := unix.Pipe2(fds, unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[1])
	gone := make(chan bool, 10)
	// Reading a write-only descriptor fails, like that of a TAP whose interface went.
	if _, err := n.Attach(PortOptions{PortOptions: radio.PortOptions{MAC: 1}, Descriptor: fds[1], Gone: func() { gone <- true }}); err != nil {
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
func stoppedLoopWith(t testing.TB, m radio.Model) (*loop, []station) {
	t.Helper()
	l, err := newLoop()
	if err != nil {
		t.Fatal(err)
	}
	n := &Network{loop: l}
	if n.radio, err = l.engine.NewNetwork(radio.NetworkOptions{Model: m, MTU: 1500}); err != nil {
		t.Fatal(err)
	}
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
	for name, waiting := range map[string]time.Duration{"at once": 0, "after a time": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			l, stations := stoppedLoopWith(t, &virtual.Delay{Time: waiting})
			frame, buffer := slices.Repeat([]byte{0xff}, 900), make([]byte, 2000)
			allocations := testing.AllocsPerRun(500, func() {
				_, _ = unix.Write(stations[0].node, frame)
				l.iteration++
				l.read(stations[0].port)
				l.tick(clock.Monotonic() + 10)
				l.arm(clock.Monotonic())
				for _, s := range stations[1:] {
					_, _ = unix.Read(s.node, buffer)
				}
			})
			if allocations != 0 {
				t.Errorf("%v allocations per frame; want none", allocations)
			}
			if stations[1].port.Port.CurrentCounters().FramesReceived < 500 {
				t.Errorf("only %d frames were carried: nothing was measured", stations[1].port.Port.CurrentCounters().FramesReceived)
			}
		})
	}
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
	d, err := New(Options{Nice: -3})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.RaisePriority(); err != nil {
		t.Skipf("not allowed here: %v", err)
	}
	var loop int
	d.loops[0].do(func() { loop = unix.Gettid() })
	for thread, want := range map[int]int{loop: -3 - niceAdvantage, unix.Gettid(): -3} {
		if is, err := unix.Getpriority(unix.PRIO_PROCESS, thread); err != nil || 20-is != want {
			t.Errorf("a thread has priority %d, error %v; want %d: -3 for the process, and the loop before it", 20-is, err, want)
		}
	}
}

func TestPortsAreDetachedByManyAsTheEngineEnds(t *testing.T) {
	n := newNetwork(t, &virtual.Delay{})
	stations := newStations(t, n, 8)
	var all sync.WaitGroup
	for range 2 { // as the owner and the one who found the interface gone do
		for _, s := range stations {
			all.Go(func() { s.port.Detach() })
		}
	}
	_ = n.driver.Close()
	all.Wait()
	if ports := n.Snapshot(false); len(ports) != 0 {
		t.Errorf("%d ports are left", len(ports))
	}
}
func TestAPausedNetworksFramesWaitForEverybody(t *testing.T) {
	n := newNetwork(t, &virtual.Delay{})
	n.Pause()
	first := newStations(t, n, 1)[0]
	first.send(t, 2, "early")
	n.driver.AwaitLoops()
	if sent := first.port.CurrentCounters().FramesSent; sent != 0 {
		t.Errorf("%d frames were taken in the pause; want 0", sent)
	}
	second := newStation(t, n, 2)
	if err := n.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := second.receive(t, 10*time.Second); got != "early" {
		t.Errorf("received %q; want what was sent before the receiver was there", got)
	}
	first.port.Detach()
	if err := n.Resume(); err != nil {
		t.Errorf("resumed again: %v", err)
	}
}

// unwatchable is a descriptor that epoll refuses.
func unwatchable(t *testing.T) int {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return int(file.Fd())
}

// far is another host, to which nothing is sent.
type far struct{}

func (far) Ship(*radio.Shipment) {}

func TestAnAttachmentThatFailsGivesNoPortAndChangesNothing(t *testing.T) {
	n := newNetwork(t, &virtual.Delay{})
	newStation(t, n, 1)
	remote, err := n.Attach(PortOptions{PortOptions: radio.PortOptions{Name: "remote", NEM: 2, MAC: 2, Host: far{}}})
	if err != nil {
		t.Fatal(err)
	}
	for what, options := range map[string]PortOptions{
		"a MAC that a local port has":         {Descriptor: unwatchable(t), PortOptions: radio.PortOptions{Name: "second", NEM: 3, MAC: 1}},
		"a remote port's MAC that is taken":   {PortOptions: radio.PortOptions{Name: "second", NEM: 3, MAC: 1, Host: far{}}},
		"a descriptor that cannot be watched": {Descriptor: unwatchable(t), PortOptions: radio.PortOptions{Name: "moved", NEM: 2, MAC: 2}},
	} {
		if p, err := n.Attach(options); p != nil || err == nil {
			t.Errorf("%s: port %v, error %v; want no port and an error", what, p, err)
		}
	}
	n.Do(func(r *radio.Network, _ radio.Model) {
		if r.Ports() != 2 || r.Find(2) != remote.Port {
			t.Errorf("%d ports, at the remote port's MAC %+v; want the two from before", r.Ports(), r.Find(2))
		}
	})
	if load := n.loop.load.Load(); load != 1 {
		t.Errorf("the loop's load is %d; want 1", load)
	}
}

func TestARefusedSecondPortLeavesTheFirstItsFrames(t *testing.T) {
	n := newNetwork(t, &virtual.Delay{})
	stations := newStations(t, n, 2)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	if p, err := n.Attach(PortOptions{Descriptor: fds[1], PortOptions: radio.PortOptions{Name: "second", NEM: 3, MAC: 1}}); p != nil || err == nil {
		t.Fatalf("port %v, error %v; want no port and an error", p, err)
	}
	station{node: fds[0]}.send(t, everybody, "from the refused port")
	stations[0].send(t, everybody, "from the first")
	if got := stations[1].receive(t, 10*time.Second); got != "from the first" {
		t.Errorf("got %q; want the first port's frame only", got)
	}
}

func TestANetworkWithAWrongMTUIsNotMade(t *testing.T) {
	d := newNetwork(t, &virtual.Delay{}).driver
	if n, err := d.NewNetwork(radio.NetworkOptions{Model: &virtual.Delay{}, MTU: 1}); n != nil || err == nil {
		t.Errorf("network %v, error %v; want no network and an error", n, err)
	}
}

func TestResumeTriesAgainThePortsThatItCouldNotWatch(t *testing.T) {
	n := newNetwork(t, &virtual.Delay{})
	n.Pause()
	stations := newStations(t, n, 2)
	socket := stations[0].port.Handle
	kept, err := unix.Dup(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(kept) })
	if err := unix.Dup2(unwatchable(t), socket); err != nil {
		t.Fatal(err)
	}
	if err := n.Resume(); err == nil {
		t.Fatal("no error for a port that cannot be watched")
	}
	if err := unix.Dup2(kept, socket); err != nil {
		t.Fatal(err)
	}
	if err := n.Resume(); err != nil {
		t.Fatal(err)
	}
	stations[0].send(t, everybody, "late")
	if got := stations[1].receive(t, 10*time.Second); got != "late" {
		t.Errorf("got %q; want the frame of the port that could not be watched at first", got)
	}
}
