package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/netns"
)

const (
	port = 5000
	// headerBytes of a payload: what parse reads.
	headerBytes = 15
)

// load is the nodes' sockets.
type load struct {
	bytes   int // of a payload
	sockets []int
	poll    []unix.PollFd
	mu      sync.Mutex
	got     []reception
	ended   bool
	done    chan error
}

// reception of a message; times are nanoseconds of CLOCK_REALTIME.
type reception struct {
	kind          byte
	from, to      int
	sequence      uint32
	sent, arrived int64
}

// The kinds of messages.
const (
	warming byte = iota
	periodic
	saturating
)

// newLoad opens a socket in each node, and begins to receive.
func newLoad(nodes []node, bytes int) (*load, error) {
	l := &load{bytes: bytes, done: make(chan error, 1)}
	for _, n := range nodes {
		err := netns.Do(n.namespace, func() error {
			fd, err := socket(n.radio)
			l.sockets = append(l.sockets, fd)
			l.poll = append(l.poll, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	go func() { l.done <- l.receive() }()
	return l, nil
}

func socket(device string) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	return fd, errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1),
		unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, device),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16<<20),
		// The kernel's time of arrival, which does not depend on when this program runs.
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Port: port}))
}

func (l *load) close() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	<-l.done
	for _, fd := range l.sockets {
		_ = unix.Close(fd)
	}
}

func (l *load) receive() error {
	data, control := make([]byte, 2048), make([]byte, 128)
	for {
		l.mu.Lock()
		ended := l.ended
		l.mu.Unlock()
		if ended {
			return nil
		}
		if _, err := unix.Poll(l.poll, 100); err != nil && err != unix.EINTR {
			return err
		}
		for to := range l.poll {
			for l.poll[to].Revents != 0 {
				n, controlLength, _, _, err := unix.Recvmsg(l.sockets[to], data, control, 0)
				if err != nil {
					break
				}
				if r, ok := l.parse(data[:n], control[:controlLength]); ok && r.from != to { // the kernel gives a sender its own broadcasts
					r.to = to
					l.mu.Lock()
					l.got = append(l.got, r)
					l.mu.Unlock()
				}
			}
		}
	}
}

func (l *load) parse(data, control []byte) (r reception, ok bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(data) != l.bytes || len(messages) == 0 || len(messages[0].Data) < 16 {
		return r, false
	}
	stamp := messages[0].Data
	r.arrived = int64(binary.NativeEndian.Uint64(stamp))*int64(time.Second) + int64(binary.NativeEndian.Uint64(stamp[8:]))
	r.from = int(binary.BigEndian.Uint16(data[13:]))
	r.kind, r.sequence, r.sent = data[0], binary.BigEndian.Uint32(data[1:]), int64(binary.BigEndian.Uint64(data[5:]))
	return r, true
}

// message that is to be sent at a time after the load's beginning.
type message struct {
	at       time.Duration
	from     int
	to       netip.Addr
	kind     byte
	sequence uint32
}

// broadcast is the broadcast address; the sockets' interface decides the network.
var broadcast = netip.MustParseAddr("255.255.255.255")

func addressOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18, byte((i + 1) >> 8), byte(i + 1)})
}

// send sends messages at their times, counted from a moment.
func (l *load) send(start int64, all []message) error {
	slices.SortFunc(all, func(a, b message) int { return cmp.Compare(a.at, b.at) })
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock.SetTimerSlack(1)
	payload := make([]byte, l.bytes)
	for _, m := range all {
		due := unix.NsecToTimespec(start + int64(m.at))
		for unix.ClockNanosleep(unix.CLOCK_REALTIME, unix.TIMER_ABSTIME, &due, nil) == unix.EINTR {
		}
		payload[0] = m.kind
		binary.BigEndian.PutUint32(payload[1:], m.sequence)
		binary.BigEndian.PutUint64(payload[5:], uint64(clock.Realtime()))
		binary.BigEndian.PutUint16(payload[13:], uint16(m.from))
		if err := unix.Sendto(l.sockets[m.from], payload, 0, &unix.SockaddrInet4{Port: port, Addr: m.to.As4()}); err != nil {
			return fmt.Errorf("node %d: send to %v: %w", m.from+1, m.to, err)
		}
	}
	return nil
}

// receptionsOf are the receptions of a kind.
func (l *load) receptionsOf(kind byte) (all []reception) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.got {
		if r.kind == kind {
			all = append(all, r)
		}
	}
	return all
}

// run runs the loads and fills in the figures.
func (l *load) run(s *settings, b bed, f *figures) error {
	// So that the saturated pair knows its addresses, and one-time effects are not measured.
	for range 3 {
		if err := l.send(clock.Realtime(), []message{{from: 0, to: addressOf(1), kind: warming}, {from: 1, to: addressOf(0), kind: warming, at: time.Millisecond}}); err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
	before, err := b.cpu()
	if err != nil {
		return err
	}
	messages := l.periodic(s, f.Period)
	if err := l.send(l.nextStart(), messages); err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	after, err := b.cpu()
	if err != nil {
		return err
	}
	f.Sent = len(messages)
	f.delays(l.receptionsOf(periodic), after-before)
	if e, ok := b.(interface{ splitProcessors() error }); ok {
		if err := e.splitProcessors(); err != nil {
			return err
		}
	}
	if err := l.saturate(s, f.Model); err != nil {
		return err
	}
	f.throughput(l.receptionsOf(saturating))
	if e, ok := b.(interface{ lateness() (float64, error) }); ok {
		f.TimerLatenessMicroseconds, err = e.lateness()
	}
	return err
}

// nextStart is when a load begins: with a frame of TDMA, so that both engines get each message at the same time in its frame.
func (l *load) nextStart() int64 {
	least, frame := clock.Realtime()+int64(500*time.Millisecond), int64(frameOf(len(l.sockets)))
	return (least + frame - 1) / frame * frame
}

// periodic returns broadcasts of all nodes, each with its own phase.
func (l *load) periodic(s *settings, period time.Duration) (all []message) {
	random := rand.New(rand.NewPCG(s.seed, 0))
	for from := range l.sockets {
		phase := time.Duration(random.Int64N(int64(period)))
		for at := phase; at < s.duration; at += period {
			all = append(all, message{at, from, broadcast, periodic, uint32(len(all))})
		}
	}
	return all
}

// saturate loads the link from the first node to the second with one and a half times its rate.
func (l *load) saturate(s *settings, model string) error {
	capacity := float64(s.rate)
	if model == "tdma" {
		capacity /= float64(len(l.sockets))
	}
	interval := time.Duration(8e9 * float64(l.bytes+42) / capacity / 1.5)
	var all []message
	for at := time.Duration(0); at < s.saturate; at += interval {
		all = append(all, message{at, 0, addressOf(1), saturating, uint32(len(all))})
	}
	return l.send(l.nextStart(), all)
}
