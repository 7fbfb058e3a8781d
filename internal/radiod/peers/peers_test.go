package peers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testtool"
)

// testNetwork carries datagrams between conns in memory, and loses and reorders some.
type testNetwork struct {
	mu    sync.Mutex
	conns map[netip.AddrPort]*conn
	// loss of a datagram's, from 0 to 1; cut ends everything.
	loss float64
	cut  atomic.Bool
	// longest datagram so far.
	longest int
	seen    [][]byte
}

type conn struct {
	ether   *testNetwork
	address netip.AddrPort
	in      chan parcel
	done    chan struct{}
	once    sync.Once
}

type parcel struct {
	data []byte
	from netip.AddrPort
}

func (e *testNetwork) open(number byte) *conn {
	c := &conn{ether: e, address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, number}), 9601), in: make(chan parcel, 4096), done: make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns == nil {
		e.conns = map[netip.AddrPort]*conn{}
	}
	e.conns[c.address] = c
	return c
}

func (c *conn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case p := <-c.in:
		return copy(b, p.data), p.from, nil
	case <-c.done:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

func (c *conn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	e := c.ether
	e.mu.Lock()
	defer e.mu.Unlock()
	e.longest = max(e.longest, len(b))
	other := e.conns[to]
	if other == nil || e.cut.Load() || rand.Float64() < e.loss {
		return len(b), nil
	}
	data := bytes.Clone(b)
	if len(e.seen) < 1000 {
		e.seen = append(e.seen, data)
	}
	select {
	case other.in <- parcel{data, c.address}:
	default:
	}
	return len(b), nil
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// radiod is one of a test's.
type radiod struct {
	*Peers
	address  Address
	mu       sync.Mutex
	messages [][]byte
	changes  []Change
}

func (r *radiod) received() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.messages)
}

func (r *radiod) firstChange() Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes[0]
}

func start(t *testing.T, e *testNetwork, number byte, now func() int64) *radiod {
	t.Helper()
	key, err := NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	c := e.open(number)
	r := &radiod{address: Address{c.address, key.Public()}}
	realtime := func() int64 { return time.Now().UnixNano() }
	if now == nil {
		now = realtime
	}
	r.Peers = New(Options{Host: fmt.Sprintf("host-%d", number), Key: key, Conn: c, Now: now, Realtime: realtime, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		MTU: func(netip.AddrPort) int { return 1400 },
		Receive: func(_ string, message []byte) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.messages = append(r.messages, bytes.Clone(message))
		},
		Changed: func(c Change) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changes = append(r.changes, c)
		}})
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = r.Run(ctx) })
	t.Cleanup(func() { cancel(); wait.Wait() })
	return r
}

func introduce(a, b *radiod) {
	a.Set(map[string]Address{b.Host: b.address})
	b.Set(map[string]Address{a.Host: a.address})
}

var eventually = testtool.Eventually

func (r *radiod) knows(host string) bool {
	peer := r.Peer(host)
	return peer != nil && peer.Clock().Known
}

func TestMessagesOfAllSizesArriveInDatagramsBelowTheMTU(t *testing.T) {
	e := &testNetwork{}
	a, b := start(t, e, 1, nil), start(t, e, 2, nil)
	introduce(a, b)
	eventually(t, "both know each other", func() bool { return a.knows("host-2") && b.knows("host-1") })
	var want [][]byte
	for _, length := range []int{0, 1, 100, 1300, 1400, 9014, 65000} {
		message := make([]byte, length)
		for i := range message {
			message[i] = byte(rand.Uint32())
		}
		want = append(want, message)
		a.Peer("host-2").Send(append(a.Peer("host-2").Buffer(), message...))
	}
	eventually(t, "all messages are there", func() bool { return b.received() == len(want) })
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range want {
		if !bytes.Equal(b.messages[i], want[i]) {
			t.Errorf("message %d of %d bytes arrived as another one of %d", i, len(want[i]), len(b.messages[i]))
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.longest+ipOverhead > 1400 {
		t.Errorf("a packet had %d bytes; want at most 1400", e.longest+ipOverhead)
	}
	for _, datagram := range e.seen {
		if bytes.Contains(datagram, want[2]) {
			t.Error("a message went in the clear")
		}
	}
}

func TestJunkFromAnotherAddressKeepsNoHostFromConnecting(t *testing.T) {
	e, hosts := &testNetwork{}, [2]*Peers{}
	var addresses [2]Address
	for i := range hosts {
		key, err := NewPrivateKey()
		if err != nil {
			t.Fatal(err)
		}
		c := e.open(byte(i + 1))
		zero := func() int64 { return 0 }
		hosts[i] = New(Options{Host: fmt.Sprintf("host-%d", i+1), Key: key, Conn: c, Now: zero, Realtime: zero, MTU: func(netip.AddrPort) int { return 1400 }})
		defer hosts[i].Set(nil)
		addresses[i] = Address{c.address, key.Public()}
	}
	junk, plain := append([]byte{datagramInitiation}, make([]byte, 100)...), make([]byte, 65536)
	hosts[1].Set(map[string]Address{"host-1": addresses[0]})
	for range 10 * strangersMax {
		if hosts[1].handleDatagram(junk, plain, netip.MustParseAddrPort("10.0.0.66:9601"), 0) == nil {
			t.Fatal("junk was taken")
		}
	}
	hosts[0].Set(map[string]Address{"host-2": addresses[1]})
	datagram := make([]byte, 65536)
	n, from, err := hosts[1].Conn.ReadFromUDPAddrPort(datagram)
	if err != nil {
		t.Fatal(err)
	}
	if err := hosts[1].handleDatagram(datagram[:n], plain, from, 0); err != nil {
		t.Errorf("the peer's handshake after junk: %v", err)
	}
}

func TestSessionsFormAndClocksAreKnownOverALossyPath(t *testing.T) {
	e := &testNetwork{loss: 0.3}
	a, b := start(t, e, 1, nil), start(t, e, 2, nil)
	introduce(a, b)
	eventually(t, "both know each other", func() bool { return a.knows("host-2") && b.knows("host-1") })
}

func TestASkewedAndDriftingClockIsMeasuredWithinItsUncertainty(t *testing.T) {
	const skew, drift = 250 * time.Millisecond, 80e-6
	begin := time.Now().UnixNano()
	ahead := func(now int64) int64 { return int64(skew) + int64(drift*float64(now-begin)) }
	skewed := func() int64 {
		now := time.Now().UnixNano()
		return now + ahead(now)
	}
	e := &testNetwork{}
	a, b := start(t, e, 1, nil), start(t, e, 2, skewed)
	introduce(a, b)
	eventually(t, "both know each other", func() bool { return a.knows("host-2") && b.knows("host-1") })
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		clock, truth := a.Peer("host-2").Clock(), time.Duration(ahead(time.Now().UnixNano()))
		if off := (clock.Offset - truth).Abs(); off > clock.Uncertainty+20*time.Microsecond {
			t.Errorf("offset %v ± %v; it is %v", clock.Offset, clock.Uncertainty, truth)
		}
		back := b.Peer("host-1").Clock()
		if off := (back.Offset + truth).Abs(); off > back.Uncertainty+20*time.Microsecond {
			t.Errorf("offset back %v ± %v; it is %v", back.Offset, back.Uncertainty, -truth)
		}
	}
	clock := a.Peer("host-2").Clock()
	t.Logf("offset %v ± %v, round trip %v, CLOCK_REALTIME %v", clock.Offset, clock.Uncertainty, clock.RoundTrip, clock.RealtimeOffset)
}

func TestALostHostIsReportedAndComesBack(t *testing.T) {
	e := &testNetwork{}
	a, b := start(t, e, 1, nil), start(t, e, 2, nil)
	introduce(a, b)
	eventually(t, "both know each other", func() bool { return a.knows("host-2") && b.knows("host-1") })
	told := func(r *radiod, reachable bool) func() bool {
		return func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.changes) > 0 && r.changes[len(r.changes)-1].Reachable == reachable
		}
	}
	e.cut.Store(true)
	eventually(t, "a has lost b", told(a, false))
	eventually(t, "b has lost a", told(b, false))
	if heard := a.firstChange().Heard; time.Since(time.Unix(0, heard)) < LostAfter {
		t.Errorf("a last heard of b %v ago; want at least %v", time.Since(time.Unix(0, heard)), LostAfter)
	}
	a.Peer("host-2").Send([]byte("nobody there"))
	eventually(t, "the message is counted as lost", func() bool { return a.States()[0].Lost == 1 })
	e.cut.Store(false)
	eventually(t, "a has b again", told(a, true))
	eventually(t, "b has a again", told(b, true))
}

func TestARestartedPeerGetsANewSession(t *testing.T) {
	e := &testNetwork{}
	a, b := start(t, e, 1, nil), start(t, e, 2, nil)
	introduce(a, b)
	eventually(t, "both know each other", func() bool { return a.knows("host-2") && b.knows("host-1") })
	b.Set(nil) // forgets its sessions, as a new worker does
	b.Set(map[string]Address{a.Host: a.address})
	eventually(t, "b has a clock again", func() bool { return b.knows("host-1") })
	eventually(t, "messages arrive again", func() bool {
		a.Peer("host-2").Send([]byte("hello"))
		return b.received() > 0
	})
}

func TestDatagramsOfUnknownSendersAndReplaysAreRejected(t *testing.T) {
	e := &testNetwork{}
	a, b, stranger := start(t, e, 1, nil), start(t, e, 2, nil), start(t, e, 0, nil)
	introduce(a, b)
	eventually(t, "both know each other", func() bool { return a.knows("host-2") && b.knows("host-1") })
	a.Peer("host-2").Send([]byte("once"))
	eventually(t, "it is there", func() bool { return b.received() == 1 })
	stranger.Set(map[string]Address{b.Host: b.address}) // whose host name says that it may begin
	before := b.Rejected()
	eventually(t, "the stranger is rejected", func() bool { return b.Rejected() > before })
	e.mu.Lock()
	for _, datagram := range e.seen {
		select {
		case e.conns[b.address.UDP].in <- parcel{datagram, a.address.UDP}:
		default:
		}
	}
	e.mu.Unlock()
	a.Peer("host-2").Send([]byte("twice"))
	eventually(t, "the next is there", func() bool { return b.received() >= 2 })
	time.Sleep(100 * time.Millisecond)
	if n := b.received(); n != 2 {
		t.Errorf("%d messages after a replay; want 2", n)
	}
	if stranger.knows("host-2") {
		t.Error("a stranger has a session")
	}
}

func FuzzTake(f *testing.F) {
	key, err := NewPrivateKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{datagramInitiation, 0, 0, 0, 0})
	f.Add(make([]byte, 96))
	f.Add([]byte{datagramData, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18})
	f.Fuzz(func(t *testing.T, datagram []byte) {
		p := New(Options{Host: "h", Key: key, Conn: (&testNetwork{}).open(1), Now: func() int64 { return 0 }, Realtime: func() int64 { return 0 }})
		p.Set(map[string]Address{"a": {netip.MustParseAddrPort("10.0.0.9:1"), Key{1}}})
		defer p.Set(nil)
		if err := p.handleDatagram(datagram, make([]byte, 65536), netip.AddrPort{}, 0); err == nil {
			t.Errorf("%x was taken", datagram)
		}
	})
}
