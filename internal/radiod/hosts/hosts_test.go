package hosts

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// far has a pair of hosts with a network of one member each.
type far struct {
	*Hosts
	ports *enginePorts
}

// enginePorts have taken what was received.
type enginePorts struct {
	mu       sync.Mutex
	attached []string
	received []int // sources
	useless  bool
}

func (p *enginePorts) AttachRemote(o radio.PortOptions) (detach func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attached = append(p.attached, o.Name)
	return func() {}, nil
}

func (p *enginePorts) ReceiveShipment(s *radio.Shipment) (useful bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received = append(p.received, s.Source)
	return !p.useless
}

func (p *enginePorts) FollowClock(int64) {}

// noRecorder records nothing.
type noRecorder struct{}

func (noRecorder) Record(string, []runapi.RadioGap, []figures.Network) error { return nil }

// newPair makes two hosts that share a network, and waits until they know each other's clocks.
func newPair(t *testing.T) (a, b far) {
	t.Helper()
	n := &v1alpha1.RadioNetwork{Spec: v1alpha1.RadioNetworkSpec{Network: "vhf", Members: []v1alpha1.Member{
		{Node: "node-1", NEM: 1, MAC: "02:02:00:00:00:01"}, {Node: "node-2", NEM: 2, MAC: "02:02:00:00:00:02"}}}}
	both := []*far{&a, &b}
	for i, name := range []string{"host-a", "host-b"} {
		key, err := peers.NewPrivateKey()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := peers.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		h := New(Options{Host: name, Address: conn.LocalAddr().String(), Key: key, Conn: conn, Log: slog.New(slog.DiscardHandler), Recorder: noRecorder{},
			Changed: func(*v1alpha1.RadioNetwork) {}, MTU: func(netip.AddrPort) int { return 1400 }})
		ctx, cancel := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		wait.Go(func() { _ = h.Run(ctx, nil) })
		t.Cleanup(func() { cancel(); wait.Wait() })
		peer := h.Peer()
		n.Status.Hosts = append(n.Status.Hosts, v1alpha1.RadioNetworkHost{Host: name, NEMs: []int32{int32(i + 1)}, Peer: &peer})
		*both[i] = far{h, &enginePorts{}}
	}
	for _, h := range both {
		h.Connect("net", Network{Object: n, Ports: h.ports})
	}
	for deadline := time.Now().Add(10 * time.Second); !a.peers.Peer("host-b").Clock().Known || !b.peers.Peer("host-a").Clock().Known; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("after 10 s the hosts do not know each other's clocks")
		}
	}
	return a, b
}

// counts waits for what b has counted of host-a.
func (f *far) counts(t *testing.T, want State) {
	t.Helper()
	var got State
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, got = range f.States() {
			if got.Received == want.Received && got.Late == want.Late && got.Unusable == want.Unusable {
				return
			}
		}
	}
	t.Errorf("%d received, %d late, %d of no use; want %d, %d and %d", got.Received, got.Late, got.Unusable, want.Received, want.Late, want.Unusable)
}

func TestATransmissionReachesThePortsOfTheOtherHost(t *testing.T) {
	a, b := newPair(t)
	if !slices.Equal(a.ports.attached, []string{"node-2"}) || !slices.Equal(b.ports.attached, []string{"node-1"}) {
		t.Errorf("ports for %v and %v; want one for the other host's member each", a.ports.attached, b.ports.attached)
	}
	out := a.networks["net"].hosts["host-b"]
	soon := clock.Monotonic() + int64(time.Minute)
	out.Ship(&radio.Shipment{Source: 1, Due: soon, Bytes: 1, Data: []byte{1}})
	b.counts(t, State{Received: 1})
	out.Ship(&radio.Shipment{Source: 1, Due: 0, Bytes: 1, Data: []byte{1}})
	b.counts(t, State{Received: 2, Late: 1})
	out.Ship(&radio.Shipment{Source: 2, Due: soon, Bytes: 1, Data: []byte{1}})
	b.counts(t, State{Received: 3, Late: 1, Unusable: 1})
	b.ports.mu.Lock()
	b.ports.useless = true
	b.ports.mu.Unlock()
	out.Ship(&radio.Shipment{Source: 1, Due: soon, Bytes: 1, Data: []byte{1}})
	b.counts(t, State{Received: 4, Late: 1, Unusable: 2})
	if b.ports.mu.Lock(); !slices.Equal(b.ports.received, []int{1, 1, 1}) {
		t.Errorf("received from %v; want three times from 1: 2 is no member at host-a", b.ports.received)
	}
	b.ports.mu.Unlock()
}

func TestWhatAnotherHostSendsOfANetworkThatEMANEDoesNotCarryHereIsCountedUnusable(t *testing.T) {
	a, b := newPair(t)
	id := networkIDOf("net")
	for _, message := range [][]byte{{otaVersion}, append(append([]byte{otaVersion}, id[:]...), "hello"...), append([]byte{otaVersion}, make([]byte, 40)...)} {
		a.peers.Peer("host-b").Send(message)
	}
	b.counts(t, State{Received: 3, Unusable: 3})
}

func TestWrittenShipmentsAreReadAsTheyWere(t *testing.T) {
	same := func(x int64) int64 { return x + 5 }
	for name, s := range map[string]radio.Shipment{
		"a frame for all":   {Source: 65534, Index: 7, Sent: 1, Start: 2, Due: 3, Bytes: 3, Data: []byte{1, 2, 3}},
		"a frame for some":  {Source: 1, Receivers: []uint16{2, 65534}, Due: -9, Bytes: 1, Data: []byte{9}},
		"only interference": {Source: 3, FrequencyHertz: 2.4e9, PowerDBm: -3.5, RateBitsPerSecond: 1e6, Bytes: 900},
		"a slot": {Source: 3, Slot: 1 << 40, SlotDuration: 4, OnAir: 3, Start: 5, Due: 9, Bytes: 40, Parts: []radio.Part{
			{Destination: 0xffffffffffff, Class: 4, Sequence: 1 << 33, Offset: 3, Bytes: 2, Last: true, Sent: -7, Data: []byte{1, 2, 3, 4, 5}},
			{Destination: 0x020200000001, Bytes: 20, Sent: 8}}},
	} {
		t.Run(name, func(t *testing.T) {
			id, got, err := parseShipment(appendShipment(nil, networkIDOf("uid"), &s, same))
			if err != nil || id != networkIDOf("uid") {
				t.Fatalf("%x: %v", id, err)
			}
			want := s
			want.Parts = slices.Clone(s.Parts)
			shiftTimes(&want, 5)
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("read %+v; want %+v", *got, want)
			}
		})
	}
}

func TestOtherHostsEntriesAreChecked(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(make([]byte, peers.KeyLength))
	for name, c := range map[string]struct {
		peer v1alpha1.RadioPeer
		want string
	}{
		"good":       {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: good}, ""},
		"no port":    {v1alpha1.RadioPeer{Address: "192.0.2.7", Key: good}, "peer.address"},
		"a name":     {v1alpha1.RadioPeer{Address: "host:9601", Key: good}, "peer.address"},
		"short key":  {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: good[:20]}, "peer.key"},
		"not base64": {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: "§"}, "peer.key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsePeer(&c.peer)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
		})
	}
}

func FuzzParseShipment(f *testing.F) {
	f.Add(appendShipment(nil, networkIDOf("uid"), &radio.Shipment{Receivers: []uint16{1}, Bytes: 1, Data: []byte{1}}, func(x int64) int64 { return x }))
	f.Add([]byte{shipmentVersion})
	f.Add(appendShipment(nil, networkIDOf("uid"), &radio.Shipment{Parts: []radio.Part{{Bytes: 1}, {Last: true, Bytes: 1, Data: []byte{1, 2}}}}, func(x int64) int64 { return x }))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, s, err := parseShipment(b); err == nil && len(s.Data) > 0 && len(s.Data) != s.Bytes {
			t.Errorf("a frame of %d bytes has %d", s.Bytes, len(s.Data))
		}
	})
}
