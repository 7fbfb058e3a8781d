// Package carrier measures a process's cost of forwarding frames between TAPs. That process is a child that
// inherits the TAPs, so that its CPU time and memory are separate. The bench that starts it makes the load.
package carrier

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/radiotest"
)

// MTU is that of the nodes' interfaces, in bytes.
const MTU = 1500

const firstTAP = 3

// Report is a carrier's report: totals since its start.
type Report struct {
	CPU           time.Duration
	Delivered     uint64
	Lateness      radio.Histogram
	ResidentBytes int64
}

// Measure returns the number of delivered frames, and how late the model's releases were.
type Measure func() (delivered uint64, lateness radio.Histogram)

// Serve runs a carrier's main loop: a report for every line on its standard input, until that ends.
func Serve(measure Measure) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		r := Report{CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}
		var err error
		if r.ResidentBytes, err = resident(); err != nil {
			return err
		}
		r.Delivered, r.Lateness = measure()
		if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// The resident memory of this process, in bytes.
func resident() (int64, error) {
	self, err := procfs.Self()
	if err != nil {
		return 0, err
	}
	stat, err := self.Stat()
	return int64(stat.ResidentMemory()), err
}

// Engine carries frames between inherited TAPs through a model. Nodes have the NEM ids from 1 on.
func Engine(nodes int, options driver.Options, model radio.Model) (Measure, error) {
	engine, err := driver.New(options)
	if err != nil {
		return nil, err
	}
	_ = engine.RaisePriority() // as the daemon does, too; a refusal costs lateness
	network, err := engine.NewNetwork(radio.NetworkOptions{Model: model, MTU: MTU})
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		_, err := network.Attach(driver.PortOptions{Descriptor: firstTAP + i,
			PortOptions: radio.PortOptions{Name: strconv.Itoa(i), NEM: i + 1, MAC: radio.MAC(0x020200000000 + i + 1)}})
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

// Hub is the base of the comparison: epoll, a read, one write per other TAP.
func Hub(nodes int, options driver.Options) (Measure, error) {
	epoll, err := unix.EpollCreate1(0)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, firstTAP+i, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(firstTAP + i)}); err != nil {
			return nil, err
		}
	}
	_ = driver.RaiseProcessPriority(options) // as the engine's
	delivered := new(uint64)                 // read without a lock: a report may miss the current frame
	go func() {
		runtime.LockOSThread()
		_ = driver.SetThreadPriority(options) // as the engine: a refusal affects both
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

// Carrier is a process that carries frames between nodes' TAPs.
type Carrier struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

// Start starts this program again with the arguments, and with the nodes' TAPs.
func Start(nodes []*radiotest.Node, arguments ...string) (*Carrier, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &Carrier{command: exec.Command(self, arguments...)}
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

// Report requests the carrier's report.
func (c *Carrier) Report() (r Report, err error) {
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		return r, err
	}
	return r, c.out.Decode(&r)
}

// Stop ends the carrier.
func (c *Carrier) Stop() error { return errors.Join(c.in.Close(), c.command.Wait()) }

// Quiet makes nodes with minimal receivers.
func Quiet(count int) (nodes []*radiotest.Node, err error) {
	for i := range count {
		n, err := radiotest.NewNode(i+1, MTU)
		if err != nil {
			return nodes, fmt.Errorf("node %d: %w", i+1, err)
		}
		n.Quiet()
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// PerFrame returns the CPU time per delivered frame in microseconds.
func (r *Report) PerFrame() float64 {
	return float64(r.CPU) / float64(time.Microsecond) / float64(r.Delivered)
}

// Unbounded is the 99th percentile of a lateness beyond all buckets.
const Unbounded = time.Duration(1<<63 - 1)

// Tail returns the upper bound of the bucket with the 99th percentile of the lateness, and the share above 2 ms.
func (r *Report) Tail() (p99 time.Duration, late float64) {
	p99 = Unbounded
	var below, good uint64
	for i, bound := range radio.LatenessBounds {
		below += r.Lateness.Buckets[i]
		if p99 == Unbounded && float64(below) >= 0.99*float64(r.Lateness.Count) {
			p99 = time.Duration(bound)
		}
		if bound <= radio.LateThreshold {
			good = below
		}
	}
	return p99, 1 - float64(good)/float64(r.Lateness.Count)
}
