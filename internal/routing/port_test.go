package routing

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// fromAir is a UDP datagram to the routers' group as a radio delivers it, without a UDP checksum.
func fromAir(payload int) []byte {
	frame := make([]byte, 14+20+8+payload)
	copy(frame, []byte{0x01, 0x00, 0x5e, 0, 0, 109, 0x02, 0x02, 0, 0, 0, 2, 0x08, 0x00})
	packet := frame[14:]
	packet[0], packet[8], packet[9] = 0x45, 1, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	copy(packet[12:], []byte{198, 18, 0, 2, 224, 0, 0, 109})
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(packet[i:]))
	}
	binary.BigEndian.PutUint16(packet[10:], ^uint16(sum+sum>>16))
	binary.BigEndian.PutUint16(packet[20:], olsr.Port)
	binary.BigEndian.PutUint16(packet[22:], olsr.Port)
	binary.BigEndian.PutUint16(packet[24:], uint16(8+payload))
	return frame
}

func TestPacketsThatFindNoRoomInTheSocketAreCounted(t *testing.T) {
	n := node(t, 1)
	c := configOf(n, v1alpha1.RoutingOLSRv2)
	p, err := openPort(n.Namespace, &c.Interfaces[0], olsr.Port, olsr.Group)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p.fd)
	p.setCounters(Counters{ReceiveDrops: 5})
	const patient, all = 200, 20_000
	send := func(packets int) {
		for range packets {
			if _, err := unix.Write(n.TAP, fromAir(60)); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(patient)
	if drops := p.counters().ReceiveDrops; drops != 5 {
		t.Errorf("%d packets dropped of those that a router of hundreds may find waiting; want only the 5 of before", drops)
	}
	send(all - patient)
	buffer := make([]byte, 100)
	for {
		from, _, err := p.read(buffer)
		if err != nil {
			break
		}
		if from != netip.MustParseAddr("198.18.0.2") {
			t.Fatalf("a packet of %v; want those of 198.18.0.2", from)
		}
	}
	counted := p.counters()
	if counted.ReceiveDrops <= 5 || counted.PacketsReceived < patient || counted.PacketsReceived+counted.ReceiveDrops-5 != all {
		t.Errorf("%d packets received and %d dropped; want some of both, %d in all", counted.PacketsReceived, counted.ReceiveDrops-5, all)
	}
}
