package olsr

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr/rfc5444"
)

// severalTopologies is a router of three topologies, of which its interface carries the first two. sent collects what it sends.
func severalTopologies(t *testing.T, sent *[]rfc5444.Message) *router {
	t.Helper()
	c := Config{Topologies: []Topology{{Type: 225, Metric: HopCount}, {Type: 224, Metric: HopCount}},
		Interfaces: []Interface{{Name: "r0", Address: me, Topologies: []uint8{225}}}}
	r, err := New(c, func(_ int, packet []byte) {
		var p rfc5444.Packet
		if err := rfc5444.Split(packet, &p); err != nil {
			t.Fatal(err)
		}
		for i := range p.Messages {
			var m rfc5444.Message
			if err := p.Messages[i].Decode(&m); err != nil {
				t.Fatal(err)
			}
			*sent = append(*sent, m)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.(*router)
}

// stated is what the last message of a type says of an address, as "type/extension value".
func stated(t *testing.T, sent []rfc5444.Message, kind uint8, address string) string {
	t.Helper()
	for n := len(sent) - 1; n >= 0; n-- {
		if sent[n].Type != kind {
			continue
		}
		var all []string
		for _, block := range sent[n].Blocks {
			for i, p := range block.Addresses {
				for k := range block.TLVs {
					if value, covered := block.TLVs[k].At(i); covered && p.Addr().String() == address {
						all = append(all, fmt.Sprintf("%d/%d %x", block.TLVs[k].Type, block.TLVs[k].Extension, value))
					}
				}
			}
		}
		return strings.Join(all, ", ")
	}
	t.Fatalf("no message of type %d was sent", kind)
	return ""
}

func extended(kind, extension uint8, value ...byte) rfc5444.Attribute {
	return rfc5444.Attribute{Type: kind, Extension: extension, Value: value}
}

// helloOfTypes is a HELLO of peer with the TLV MPR_TYPES.
func helloOfTypes(t testing.TB, types, willing []byte, entries ...rfc5444.Entry) []byte {
	t.Helper()
	m := rfc5444.Message{
		Header: rfc5444.Header{Type: messageHello, AddressLength: 4, Originator: peer},
		TLVs: []rfc5444.TLV{{Type: rfc5444.ValidityTime, Value: []byte{100}},
			{Type: 7, Value: willing}, {Type: 7, Extension: 1, Value: types}},
		Blocks: rfc5444.Blocks(append([]rfc5444.Entry{said(peer, attribute(addressLocalIf, thisIf))}, entries...)),
	}
	b, err := m.Append(rfc5444.AppendPacketHeader(nil, 0, false))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// linkMetric of both directions of a link and of the neighbour, of one hop.
func linkMetric(kind uint8) rfc5444.Attribute {
	return extended(addressLinkMetric, kind, rfc5444.MetricValue(0xf, 1)...)
}

func TestMessagesOfSeveralTopologiesHaveTheTLVsOfRFC7722(t *testing.T) {
	var sent []rfc5444.Message
	r := severalTopologies(t, &sent)
	// The peer has the types 224, 0 and 225 in that order, and has chosen this node for flooding, 0 and 225. It reaches far in
	// the topologies 0 and 225.
	receive := func(at time.Duration) {
		hear(t, r, at, helloOfTypes(t, []byte{224, 0, 225}, []byte{0x7a, 0xbc},
			said(me, attribute(addressLinkStatus, statusSymmetric), attribute(addressMPR, 0b1101), linkMetric(0), linkMetric(225)),
			said(far, attribute(addressLinkStatus, statusSymmetric), linkMetric(0), linkMetric(225))))
	}
	for second := range 12 {
		receive(time.Duration(second) * time.Second)
	}
	n := r.neighbours[peer]
	if n.willFlooding != 7 || n.willRouting != [MaxTopologies]int{0xb, 0xc, 0xa} {
		t.Errorf("the peer's willingness is %d and %v; want 7, and 11, 12 and 10", n.willFlooding, n.willRouting)
	}
	if n.selector != [MaxTopologies]bool{true, true, false} || !n.links[0].selector {
		t.Errorf("the peer has chosen this node in %v; want in the first two", n.selector)
	}
	// In HELLOs: chosen in the first two topologies, and a metric for each that the interface carries.
	if got, want := stated(t, sent, messageHello, "10.0.0.2"), "3/0 01, 8/0 07, 7/0 f000, 7/225 f000"; got != want {
		t.Errorf("the HELLO says %q of the peer; want %q", got, want)
	}
	if got, want := stated(t, sent, messageTC, "10.0.0.2"), "9/0 03, 7/0 1000, 7/225 1000"; got != want {
		t.Errorf("the TC says %q of the peer; want %q", got, want)
	}
	for _, m := range sent {
		if types, _ := m.TLV(7, 1); fmt.Sprintf("%x", types) != "00e1e0" {
			t.Errorf("a message of type %d has the metric types %x; want 00e1e0", m.Type, types)
		}
		if willing, there := m.TLV(7, 0); m.Type == messageHello && fmt.Sprintf("%x", willing) != "7777" || m.Type == messageTC && there {
			t.Errorf("a message of type %d has the willingness %x; want 7777 in HELLOs", m.Type, willing)
		}
	}
}

func TestMessagesOfOneTopologyAreThoseOfRFC7181(t *testing.T) {
	r := one(t, Config{})
	hear(t, r, 0, hello(t, said(me, attribute(addressLinkStatus, statusSymmetric), attribute(addressMPR, mprFlooding|mprRouting))))
	r.sendHello(r.last, r.ifaces[0])
	var m rfc5444.Message
	if err := r.raw(t).Decode(&m); err != nil {
		t.Fatal(err)
	}
	if _, there := m.TLV(7, 1); there {
		t.Error("a HELLO of one topology has the TLV MPR_TYPES")
	}
	if willing, _ := m.TLV(7, 0); len(willing) != 1 || willing[0] != 0x77 {
		t.Errorf("a HELLO of one topology has the willingness %x; want one octet, 77", willing)
	}
}

// raw is the last message that the router encoded.
func (r *router) raw(t *testing.T) *rfc5444.RawMessage {
	t.Helper()
	var p rfc5444.Packet
	if err := rfc5444.Split(append([]byte{0}, r.encoded...), &p); err != nil || len(p.Messages) != 1 {
		t.Fatal(len(p.Messages), err)
	}
	return &p.Messages[0]
}

func TestANeighbourThatLeavesTypesOutIsNotInTheirTopologies(t *testing.T) {
	for name, c := range map[string]struct {
		packet  func(*testing.T) []byte
		willing [MaxTopologies]int
		usable  [MaxTopologies]bool
	}{
		"no MPR_TYPES": {func(t *testing.T) []byte {
			return hello(t, said(me, attribute(addressLinkStatus, statusSymmetric), attribute(addressMPR, 0b111)))
		}, [MaxTopologies]int{7, 0, 0}, [MaxTopologies]bool{true, false, false}},
		"another type only": {func(t *testing.T) []byte {
			return helloOfTypes(t, []byte{225}, []byte{0x75}, said(me, attribute(addressLinkStatus, statusSymmetric), attribute(addressMPR, 0b11), linkMetric(225)))
		}, [MaxTopologies]int{0, 5, 0}, [MaxTopologies]bool{false, true, false}},
		"one willingness for all": {func(t *testing.T) []byte {
			return helloOfTypes(t, []byte{0, 225}, []byte{0x75}, said(me, attribute(addressLinkStatus, statusSymmetric), linkMetric(0), linkMetric(225)))
		}, [MaxTopologies]int{5, 5, 0}, [MaxTopologies]bool{true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []rfc5444.Message
			r := severalTopologies(t, &sent)
			hear(t, r, 0, c.packet(t))
			n := r.neighbours[peer]
			if n.willRouting != c.willing {
				t.Errorf("willingness %v; want %v", n.willRouting, c.willing)
			}
			for topology, want := range c.usable {
				if got := n.links[0].usable(topology); got != want {
					t.Errorf("the link is usable in topology %d: %v; want %v", topology, got, want)
				}
				if n.selector[topology] && c.willing[topology] == 0 {
					t.Errorf("the peer has chosen this node in topology %d, which it does not have", topology)
				}
			}
		})
	}
}
