package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
)

// baseline is the baseline LAN of EXPERIMENTS.md.
var baseline = link.Parameters{RateBitsPerSecond: 1e9, Delay: time.Millisecond, Limit: 1000}

// report is what a carrier says of itself.
type report struct {
	CPU       time.Duration
	Delivered uint64
	Lateness  radio.Histogram
}

// runCarrier carries frames between inherited TAPs and reports on every line it reads.
func runCarrier(kind string, nodes int) error {
	var measure func() (uint64, radio.Histogram)
	var err error
	if kind == "hub" {
		measure, err = startHub(nodes)
	} else {
		measure, err = startEngine(nodes)
	}
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		r := report{CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}
		r.Delivered, r.Lateness = measure()
		if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
			return err
		}
	}
	return nil
}

const firstTAP = 3

func startEngine(nodes int) (func() (uint64, radio.Histogram), error) {
	runtime.GOMAXPROCS(runtime.NumCPU() + 2) // as the daemon does
	engine, err := radio.New(engineOptions)
	if err != nil {
		return nil, err
	}
	network, err := engine.NewNetwork(radio.NetworkOptions{Model: link.New(link.Config{Default: baseline}), MTU: mtu})
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		_, err := network.Attach(radio.PortOptions{Name: strconv.Itoa(i), NEM: i + 1, MAC: radio.MAC(0x020200000000 + i + 1), Descriptor: firstTAP + i})
		if err != nil {
			return nil, err
		}
	}
	return func() (delivered uint64, lateness radio.Histogram) {
		for _, s := range network.Snapshot(false) {
			delivered += s.FramesReceived
			lateness.Count += s.Lateness.Count
			for i, n := range s.Lateness.Buckets {
				lateness.Buckets[i] += n
			}
		}
		return delivered, lateness
	}, nil
}

// startHub is the floor that the engine is held against: epoll, a read, one write per other TAP.
func startHub(nodes int) (func() (uint64, radio.Histogram), error) {
	epoll, err := unix.EpollCreate1(0)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, firstTAP+i, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(firstTAP + i)}); err != nil {
			return nil, err
		}
	}
	delivered := new(uint64) // read without a lock: a report may miss the frame that is being carried
	go func() {
		runtime.LockOSThread()
		_ = radio.Prioritise(engineOptions) // as the engine: what it is refused the hub is too
		buffer, events := make([]byte, 65536), make([]unix.EpollEvent, 64)
		for {
			count, _ := unix.EpollWait(epoll, events, -1)
			for i := range max(count, 0) {
				forward(int(events[i].Fd), nodes, buffer, delivered)
			}
		}
	}()
	return func() (uint64, radio.Histogram) { return *delivered, radio.Histogram{} }, nil
}

func forward(from, nodes int, buffer []byte, delivered *uint64) {
	for {
		length, err := unix.Read(from, buffer)
		if err != nil {
			return
		}
		for to := firstTAP; to < firstTAP+nodes; to++ {
			if to == from {
				continue
			}
			if _, err := unix.Write(to, buffer[:length]); err == nil {
				*delivered++
			}
		}
	}
}

// carrier is a process that carries frames between the nodes' TAPs.
type carrier struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

func startCarrier(kind string, nodes []*radiotest.Node) (*carrier, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &carrier{command: exec.Command(self, "-carrier", kind, "-nodes", strconv.Itoa(len(nodes)),
		"-realtime", strconv.Itoa(engineOptions.Realtime))}
	c.command.Stderr = os.Stderr
	for _, n := range nodes {
		fd, err := unix.Dup(n.TAP)
		if err != nil {
			return nil, err
		}
		file := os.NewFile(uintptr(fd), "tap")
		defer file.Close()
		c.command.ExtraFiles = append(c.command.ExtraFiles, file)
	}
	if c.in, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(out)
	return c, c.command.Start()
}

func (c *carrier) report() (r report, err error) {
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		return r, err
	}
	return r, c.out.Decode(&r)
}

func (c *carrier) stop() error {
	return errors.Join(c.in.Close(), c.command.Wait())
}

// benchCost compares the CPU time per delivered frame of the engine and of a bare hub.
func benchCost(s scale) error {
	const count = 24
	nodes := make([]*radiotest.Node, count)
	for i := range nodes {
		n, err := radiotest.NewNode(i+1, mtu)
		if err != nil {
			return err
		}
		defer n.Close()
		n.Quiet()
		nodes[i] = n
	}
	t := newTable(fmt.Sprintf("CPU per delivered frame, %d nodes broadcasting 900-byte frames, baseline link, beside a bare TAP hub on the same TAPs", count),
		"frames/s in all\tdeliveries/s\thub\tengine\tratio\tengine's lateness p99\tlate > 2 ms")
	for _, rate := range []int{120, 1200, 4000} {
		hub, err := costAt("hub", nodes, rate, s.loadTime)
		if err != nil {
			return fmt.Errorf("hub at %d frames/s: %w", rate, err)
		}
		engine, err := costAt("engine", nodes, rate, s.loadTime)
		if err != nil {
			return fmt.Errorf("engine at %d frames/s: %w", rate, err)
		}
		p99, late := tail(engine.Lateness)
		t.row("%d\t%.0f\t%.1f µs\t%.1f µs\t%.2f\t%s\t%.3f %%", rate, float64(engine.Delivered)/s.loadTime.Seconds(),
			perFrame(hub), perFrame(engine), perFrame(engine)/perFrame(hub), p99, 100*late)
	}
	t.end()
	return nil
}

func perFrame(r report) float64 {
	return float64(r.CPU) / float64(time.Microsecond) / float64(r.Delivered)
}

// tail gives the upper bound of the bucket with the 99th percentile, and the share above 2 ms.
func tail(h radio.Histogram) (p99 string, late float64) {
	p99 = "?"
	var below, good uint64
	for i, bound := range radio.LatenessBounds {
		below += h.Buckets[i]
		if p99 == "?" && float64(below) >= 0.99*float64(h.Count) {
			p99 = "≤ " + time.Duration(bound).String()
		}
		if bound <= radio.LateRelease {
			good = below
		}
	}
	return p99, 1 - float64(good)/float64(h.Count)
}

func costAt(kind string, nodes []*radiotest.Node, rate int, duration time.Duration) (r report, err error) {
	c, err := startCarrier(kind, nodes)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	sockets, err := broadcasters(nodes)
	if err != nil {
		return r, err
	}
	defer closeAll(sockets)
	load(sockets, rate, time.Second) // to warm up
	before, err := c.report()
	if err != nil {
		return r, err
	}
	load(sockets, rate, duration)
	after, err := c.report()
	if err != nil {
		return r, err
	}
	r = report{CPU: after.CPU - before.CPU, Delivered: after.Delivered - before.Delivered, Lateness: after.Lateness}
	r.Lateness.Count -= before.Lateness.Count
	for i, n := range before.Lateness.Buckets {
		r.Lateness.Buckets[i] -= n
	}
	if r.Delivered == 0 {
		return r, errors.New("nothing was delivered")
	}
	return r, nil
}

func broadcasters(nodes []*radiotest.Node) (sockets []int, err error) {
	for _, n := range nodes {
		err := netns.Do(n.Namespace, func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			sockets = append(sockets, fd)
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
				return err
			}
			to := &unix.SockaddrInet4{Port: 1883}
			copy(to.Addr[:], net.IPv4(198, 18, 255, 255).To4())
			return unix.Connect(fd, to)
		})
		if err != nil {
			closeAll(sockets)
			return nil, err
		}
	}
	return sockets, nil
}

func closeAll(sockets []int) {
	for _, fd := range sockets {
		_ = unix.Close(fd)
	}
}

// load sends rate frames/s in all, the nodes in turn, at even distances.
func load(sockets []int, rate int, duration time.Duration) {
	const udpPayload = 900 - radio.HeaderLength - 28
	payload := make([]byte, udpPayload)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock.SetTimerSlack(1)
	start, interval := clock.Monotonic(), int64(time.Second)/int64(rate)
	for i := range int64(duration) / interval {
		due := unix.NsecToTimespec(start + i*interval)
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &due, nil) // an early wake-up costs evenness only
		_, _ = unix.Write(sockets[int(i)%len(sockets)], payload)                     // what is missing shows in the deliveries
	}
}
