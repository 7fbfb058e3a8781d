//go:build long

package worker

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
)

// journal follows numbered datagrams from radio to radio, and knows where each has got to. It belongs to the loop's thread
// until its taps are off.
type journal struct {
	port     uint16 // of the datagrams
	byMAC    map[radio.MAC]*radio.Port
	air      *air
	messages []journey
	// sent and arrived are frames by the link's SINR, rounded down to whole dB.
	sent, arrived map[int]int
}

// journey of one datagram.
type journey struct {
	// radios that have sent it, by NEM id.
	radios []uint16
	// onAir until the addressee has it, over a link of that SINR; alone tells that nobody has the addressee's MAC.
	onAir, alone bool
	sinrDB       float64
	told         string // by the kernel that dropped it: the ICMP error's name
}

// watch is a port's tap.
type watch struct {
	*journal
	at *radio.Port
}

// follow all ports of the networks of b, of messages that go to a UDP port.
func follow(b *airBed, port uint16, messages int) (j *journal, end func()) {
	j = &journal{port: port, byMAC: map[radio.MAC]*radio.Port{}, messages: make([]journey, messages), sent: map[int]int{}, arrived: map[int]int{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	var ports []*radio.Port
	for _, a := range b.attachments {
		ports, j.byMAC[a.port.MAC] = append(ports, a.port), a.port
	}
	j.air = b.networks[string(b.object.UID)].air
	for _, p := range ports {
		p.SetTap(watch{j, p})
	}
	return j, func() {
		for _, p := range ports {
			p.SetTap(nil)
		}
	}
}

const ethernetIPv4 = 0x0800

// Frame implements radio.Tap.
func (w watch) Frame(direction radio.Direction, data []byte) {
	if len(data) < radio.HeaderLength+20 || binary.BigEndian.Uint16(data[12:]) != ethernetIPv4 {
		return
	}
	packet := data[radio.HeaderLength:]
	if packet[9] == unix.IPPROTO_ICMP {
		if direction == radio.Out {
			w.complaint(packet)
		}
		return
	}
	number, ok := w.number(packet)
	if !ok {
		return
	}
	m := &w.messages[number]
	if direction == radio.In {
		m.onAir = false
		w.arrived[int(m.sinrDB)]++
		return
	}
	m.radios, m.onAir = append(m.radios, uint16(w.at.NEM)), true
	to := w.byMAC[addressee(data)]
	m.alone, m.sinrDB = to == nil, 0
	if to != nil {
		loss, _ := w.air.Pathloss(w.at, to, clock.Monotonic())
		m.sinrDB = manyPowerDBm - loss - manyNoiseDBm
	}
	w.sent[int(m.sinrDB)]++
}

func addressee(frame []byte) radio.MAC {
	var octets [8]byte
	copy(octets[2:], frame[:6])
	return radio.MAC(binary.BigEndian.Uint64(octets[:]))
}

// number that a datagram begins with.
func (j *journal) number(packet []byte) (number uint32, ok bool) {
	header := int(packet[0]&15) * 4
	if packet[9] != unix.IPPROTO_UDP || len(packet) < header+12 || binary.BigEndian.Uint16(packet[header+2:]) != j.port {
		return 0, false
	}
	number = binary.BigEndian.Uint32(packet[header+8:])
	return number, int(number) < len(j.messages)
}

// complaint of a relay's kernel about a datagram that it has dropped (RFC 792), which repeats its beginning.
func (j *journal) complaint(packet []byte) {
	icmp := packet[int(packet[0]&15)*4:]
	if len(icmp) < 8+20 {
		return
	}
	name := map[[2]byte]string{{3, 0}: "no route", {3, 1}: "no answer to ARP", {3, 3}: "no such port", {11, 0}: "TTL used up"}[[2]byte{icmp[0], icmp[1]}]
	if name == "" {
		name = fmt.Sprintf("ICMP type %d code %d", icmp[0], icmp[1])
	}
	if number, ok := j.number(icmp[8:]); ok {
		j.messages[number].told = name
	}
}

// looped tells that a radio has sent the datagram twice.
func (m *journey) looped() bool {
	sorted := slices.Sorted(slices.Values(m.radios))
	return len(slices.Compact(sorted)) < len(m.radios)
}

// Fates that the journal itself must know.
const (
	delivered   = "arrived"
	unexplained = "unexplained"
)

// fate of a message: where it was seen last, and why it was not seen again.
func (m *journey) fate(refused string, arrived int) string {
	switch {
	case arrived > 0:
		return delivered
	case refused != "":
		return "refused by the sender's kernel: " + refused
	case m.told != "":
		return "dropped by a kernel: " + m.told
	case len(m.radios) == 0:
		return "kept by the sender's kernel: no answer to ARP, or no route"
	case m.onAir && m.alone:
		return radio.NoReceiver.String()
	case m.onAir && m.sinrDB < 0:
		return radio.BelowSensitivity.String()
	case m.onAir && m.sinrDB < 25:
		return radio.LowSINR.String()
	case m.onAir:
		return unexplained
	}
	return "dropped by a relay's kernel, which had no way to tell the sender"
}
