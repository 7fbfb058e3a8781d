package driver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/virtual"
)

// wantCovered checks that intervals cover a stop without being five times as long.
func wantCovered(t *testing.T, all []radio.Interval, from, to int64) {
	t.Helper()
	total, covered := int64(0), int64(0)
	for _, i := range all {
		total += i.To - i.From
		covered += max(min(i.To, to)-max(i.From, from), 0)
	}
	if covered < (to-from)*98/100 {
		t.Errorf("a stop of %v: %v of it is covered by %v", time.Duration(to-from), time.Duration(covered), all)
	}
	if total > 5*(to-from) {
		t.Errorf("a stop of %v makes %v late; want at most five times as long", time.Duration(to-from), time.Duration(total))
	}
}

func wantInOrder(t *testing.T, s station, frames int) {
	t.Helper()
	for i := range frames {
		if got := s.receive(t, 10*time.Second); got != fmt.Sprint(i) {
			t.Fatalf("got %q; want frame %d", got, i)
		}
	}
}

func TestABlockedLoopReportsItsLateness(t *testing.T) {
	const stop, frames = 100 * time.Millisecond, 8
	n := newNetwork(t, &virtual.Delay{})
	all := newStations(t, n, 2)
	began, ended := make(chan int64), make(chan int64, 1)
	n.Schedule(clock.Monotonic(), func(now int64, _ radio.Model) (bool, int64) {
		began <- now
		time.Sleep(stop)
		ended <- clock.Monotonic()
		return false, 0
	})
	from := <-began
	for i := range frames {
		all[0].send(t, everybody, fmt.Sprint(i))
	}
	to := <-ended
	wantInOrder(t, all[1], frames)
	wantCovered(t, n.driver.LateIntervals()[n.Loop()], from+int64(stop/50), to)
	if again := n.driver.LateIntervals()[0]; len(again) > 1 { // the machine may have been late since
		t.Errorf("%d intervals are handed over twice", len(again))
	}
}

// stopped is the environment variable that makes the test binary run the engine that is stopped.
const stopped = "VIGNETTE_TEST_STOPPED_ENGINE"

// TestMain may be the process whose engine a test stops. It has a port on each inherited descriptor. For each
// line that it reads it writes its late intervals.
func TestMain(m *testing.M) {
	ports, _ := strconv.Atoi(os.Getenv(stopped))
	if ports == 0 {
		os.Exit(m.Run())
	}
	d, err := New(Options{})
	if err != nil {
		panic(err)
	}
	n, err := d.NewNetwork(radio.NetworkOptions{Model: &virtual.Delay{Time: time.Millisecond}, MTU: 100})
	for i := range ports {
		if err == nil {
			_, err = n.Attach(PortOptions{PortOptions: radio.PortOptions{MAC: radio.MAC(i + 1)}, Descriptor: 3 + i}) //nolint:gosec // positive
		}
	}
	if err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		_ = json.NewEncoder(os.Stdout).Encode(d.LateIntervals()[0])
	}
}

func TestAStoppedProcessReportsItsLateness(t *testing.T) {
	const frames = 8
	var all []station
	command := exec.Command(os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), stopped+"=2"), os.Stderr
	for range 2 {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		inherited := os.NewFile(uintptr(fds[1]), "radio")
		t.Cleanup(func() { _, _ = unix.Close(fds[0]), inherited.Close() })
		command.ExtraFiles = append(command.ExtraFiles, inherited)
		all = append(all, station{node: fds[0]})
	}
	in, _ := command.StdinPipe()
	out, _ := command.StdoutPipe()
	answers := json.NewDecoder(out)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), command.Wait() })
	late := func() (intervals []radio.Interval) {
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if err := answers.Decode(&intervals); err != nil {
			t.Fatal(err)
		}
		return intervals
	}
	late() // it has begun
	for _, length := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond} {
		from := clock.Monotonic()
		_ = command.Process.Signal(unix.SIGSTOP)
		for i := range frames {
			all[0].send(t, everybody, fmt.Sprint(i))
		}
		time.Sleep(length)
		to := clock.Monotonic()
		_ = command.Process.Signal(unix.SIGCONT)
		wantInOrder(t, all[1], frames)
		wantCovered(t, late(), from+int64(length/20), to) // a signal takes its time
	}
}

// threadLateness sleeps from pulse to pulse as a loop does, and returns for how long it was late. So it measures the
// machine alone.
func threadLateness(during time.Duration) (late time.Duration) {
	runtime.LockOSThread() // not unlocked: the thread ends with its slack
	clock.SetTimerSlack(1)
	for before, end := clock.Monotonic(), clock.Monotonic()+int64(during); before < end; {
		next := unix.NsecToTimespec(before + pulse)
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &next, nil)
		now := clock.Monotonic()
		if now-before-pulse >= radio.LateThreshold {
			late += time.Duration(now - before)
		}
		before = now
	}
	return late
}

func TestALoopOnTimeIsSeldomLate(t *testing.T) {
	n := newNetwork(t, &virtual.Delay{})
	newStations(t, n, 2)
	var late, machine time.Duration
	for range 5 {
		n.driver.LateIntervals()
		seen := make(chan time.Duration)
		go func() { seen <- threadLateness(time.Second) }()
		machine, late = <-seen, 0
		for _, i := range n.driver.LateIntervals()[0] {
			late += time.Duration(i.To - i.From)
		}
		if late < time.Second/5+2*machine {
			return
		}
	}
	t.Errorf("an idle loop was late for %v of a second, a thread that only sleeps for %v", late, machine)
}

func TestOnlyALoopWithPortsHasAPulse(t *testing.T) {
	n := newNetwork(t, &virtual.Delay{})
	turns := func() (turn uint64) {
		n.loop.do(func() { turn = n.loop.iteration })
		return turn
	}
	during := func() uint64 {
		before := turns()
		time.Sleep(20 * pulse)
		return turns() - before
	}
	const asked = 4 // turns that asking takes
	if got := during(); got > asked {
		t.Errorf("%d turns without ports; want none but those that ask", got)
	}
	s := newStation(t, n, 1)
	if got := during(); got < asked+5 {
		t.Errorf("%d turns in 20 pulses", got)
	}
	s.port.Detach()
	time.Sleep(3 * pulse)
	if got := during(); got > asked {
		t.Errorf("%d turns when the port has gone; want none but those that ask", got)
	}
}

func TestABurstIsNotLateAndAPortThatStaysFullIs(t *testing.T) {
	l, all := stoppedLoopWith(t, &virtual.Delay{})
	buffer := make([]byte, 200)
	turn := func(frames int) {
		for range frames {
			all[0].send(t, everybody, "frame")
		}
		l.iteration++
		l.read(all[0].port)
		for _, s := range all[1:] {
			for {
				if _, err := unix.Read(s.node, buffer); err != nil {
					break
				}
			}
		}
	}
	l.drainedAt = clock.Monotonic() + 1e9 // as if no time had passed since
	turn(8)
	if got := l.late.Take(); len(got) > 0 {
		t.Errorf("a burst is late: %v", got)
	}
	l.iteration, l.drainedAt = l.iteration+1, clock.Monotonic()
	since := l.drainedAt
	for range 3 { // which leave frames of the eight
		turn(0)
		time.Sleep(3 * time.Millisecond)
	}
	if got := l.late.Take(); len(got) != 1 || got[0].From != since || got[0].Worst < radio.LateThreshold {
		t.Errorf("late %v; want once, since %d", got, since)
	}
}
