// Package v1 implements the Optimized Link State Routing Protocol version 1 (RFC 3626) as a state machine
// with the interface of package olsr, for IPv4 only.
package v1

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/internal/core"
)

const sweepInterval = 100 * time.Millisecond

// New returns a Router of OLSRv1 that sends by send.
func New(c olsr.Config, send olsr.Send) (olsr.Router, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	switch {
	case !c.Interfaces[0].Address.Is4():
		return nil, fmt.Errorf("interfaces[0].address: %v: OLSRv1 is for IPv4", c.Interfaces[0].Address)
	case len(c.Interfaces) > 64:
		return nil, fmt.Errorf("interfaces: %d are more than 64", len(c.Interfaces))
	case c.Metric != olsr.HopCount:
		return nil, fmt.Errorf("metric: OLSRv1 knows hop count only")
	case len(c.Topologies) > 0:
		return nil, fmt.Errorf("topologies: OLSRv1 has one only")
	}
	for _, i := range c.Interfaces {
		if longest := max(i.HelloValidity, i.TCValidity); longest > timeOf(0xff) {
			return nil, fmt.Errorf("helloValidity, tcValidity: messages of OLSRv1 hold for %v at most, not for %v", timeOf(0xff), longest)
		}
	}
	r := &router{
		c: c, send: send, random: rand.New(rand.NewSource(c.Seed)), origin: c.Interfaces[0].Address, own: map[netip.Addr]bool{},
		tables: tables{
			Links: map[linkKey]*link{}, Neighbours: map[netip.Addr]*neighbour{}, Mains: map[netip.Addr]*alias{}, Origins: map[netip.Addr]*origin{},
		},
		nextSweep: core.Forever, dirty: true,
	}
	r.Sequence, r.ANSN = uint16(r.random.Uint32()), uint16(r.random.Uint32())
	for n, i := range c.Interfaces {
		r.own[i.Address] = true
		r.ifaces = append(r.ifaces, &iface{Interface: i, number: n, packetSeq: uint16(r.random.Uint32())})
	}
	for _, s := range c.TCSchedules() {
		r.schedules = append(r.schedules, &schedule{TCSchedule: s})
	}
	return r, nil
}

// maxJitter is MAXJITTER (RFC 3626 section 18.3) of messages that go over all interfaces.
func (r *router) maxJitter() time.Duration { return r.c.ShortestHello() / 4 }

func (r *router) moment(at time.Time) time.Duration {
	r.last = max(r.last, r.clock.Moment(at))
	if !r.started {
		r.started = true
		for _, i := range r.ifaces {
			i.nextHello = r.last + core.Jitter(r.random, i.Hello)
		}
		for _, s := range r.schedules {
			s.nextTC = r.last + r.c.ShortestHello() + core.Jitter(r.random, s.Interval)
			s.nextMID = r.last + core.Jitter(r.random, r.c.ShortestHello())
			s.nextHNA = s.nextTC
		}
	}
	return r.last
}

func (r *router) Receive(at time.Time, number int, from netip.Addr, packet []byte) error {
	now := r.moment(at)
	if number < 0 || number >= len(r.ifaces) {
		return fmt.Errorf("interface %d: there are %d", number, len(r.ifaces))
	}
	from = from.Unmap()
	if r.own[from] || !from.Is4() {
		return nil
	}
	var err error
	r.messages, err = split(packet, r.messages[:0])
	for i := range r.messages {
		err = errors.Join(err, r.receive(now, r.ifaces[number], from, &r.messages[i]))
	}
	if err != nil {
		r.counters.Refused++
	}
	return err
}

// receive a message (RFC 3626 section 3.4).
func (r *router) receive(now time.Duration, i *iface, from netip.Addr, m *message) error {
	if m.TTL == 0 || r.own[m.Originator] {
		return nil
	}
	if m.Type == typeHello {
		return r.receiveHello(now, i, from, m)
	}
	l := r.Links[linkKey{i.number, from}]
	if l == nil || l.status(now) != olsr.Symmetric {
		// Not even a duplicate of a later copy (RFC 3626 sections 3.4.1, 5.4, 9.5 and 12.5).
		return nil
	}
	o := r.Origins[m.Originator]
	if o == nil {
		if len(r.Origins) >= maxOrigins {
			r.counters.Overflows++
			return nil
		}
		o = &origin{}
		r.Origins[m.Originator] = o
		r.expireBy(now + duplicateHold)
	}
	var err error
	switch {
	case !o.Processed.Add(m.Sequence, now, duplicateHold):
		r.counters.Duplicates++
	case m.Type == typeTC:
		err = r.receiveTC(now, o, m)
	case m.Type == typeMID:
		err = r.receiveMID(now, m)
	case m.Type == typeHNA:
		err = r.receiveHNA(now, o, m)
	}
	if err == nil {
		r.forward(now, i, o, from, m)
	}
	return err
}

// forward by the default algorithm (RFC 3626 section 3.4.1). The first copy over each interface decides.
func (r *router) forward(now time.Duration, i *iface, o *origin, from netip.Addr, m *message) {
	for len(o.Received) <= i.number {
		o.Received = append(o.Received, core.Window{})
	}
	if !o.Received[i.number].Add(m.Sequence, now, duplicateHold) || m.TTL <= 1 {
		return
	}
	n := r.Neighbours[r.main(from)]
	if n == nil || n.Selector <= now || !o.Forwarded.Add(m.Sequence, now, duplicateHold) {
		return
	}
	copied := slices.Clone(m.Bytes)
	copied[8]--
	copied[9]++
	due := now + core.Jitter(r.random, r.maxJitter())
	r.counters.Forwarded++
	for _, out := range r.ifaces {
		if r.passes(now, i, out, o, m.Type) {
			r.enqueue(out, due, copied)
		}
	}
}

// passes reports whether an originator's message that came over an interface goes on over another now. An interface with a
// longer interval would otherwise carry messages of all nodes at the shorter one.
func (r *router) passes(now time.Duration, in, out *iface, o *origin, kind uint8) bool {
	if out.TC <= in.TC || kind != typeTC && kind != typeMID && kind != typeHNA {
		return true
	}
	if o.thinnings == nil {
		o.thinnings = map[thinningKey]*core.Thinning{}
	}
	key := thinningKey{out.number, kind}
	if o.thinnings[key] == nil {
		o.thinnings[key] = &core.Thinning{}
	}
	return o.thinnings[key].Pass(now, in.TC, out.TC)
}

func (r *router) enqueue(i *iface, due time.Duration, bytes []byte) {
	switch {
	case i.silent:
		r.counters.Silenced++
	case !i.queue.Add(due, bytes):
		r.counters.Overflows++
	}
}

func (r *router) Tick(at time.Time) time.Time {
	now := r.moment(at)
	if now >= r.nextSweep {
		r.sweep(now)
	}
	r.generate(now)
	for _, i := range r.ifaces {
		i.queue.FlushDue(now, i.MTU-packetHeader, func(messages [][]byte) { r.transmit(i, messages) })
	}
	if r.dirty && now >= r.nextRoute {
		r.calculate(now)
		r.nextRoute = now + r.c.RouteInterval
	}
	return r.clock.Time(r.next())
}

// generate the messages that are due. MID is for nodes with several interfaces, HNA for gateways (RFC 3626 sections 5.2 and
// 12.2), both at the interval of TC.
func (r *router) generate(now time.Duration) {
	for _, i := range r.ifaces {
		if now >= i.nextHello {
			i.nextHello = core.After(r.random, now, i.nextHello, i.Hello, i.Hello/4)
			r.sendHello(now, i)
		}
	}
	for _, s := range r.schedules {
		r.generateFlooded(now, s)
	}
}

// generateFlooded generates the messages of a schedule that are due.
func (r *router) generateFlooded(now time.Duration, s *schedule) {
	due := func(next *time.Duration) bool {
		if now < *next {
			return false
		}
		*next = core.After(r.random, now, *next, s.Interval, r.maxJitter())
		return true
	}
	if due(&s.nextTC) {
		r.sendTC(now, s)
	}
	if due(&s.nextMID) && len(r.ifaces) > 1 {
		var others []netip.Addr
		for _, i := range r.ifaces[1:] {
			others = append(others, i.Address)
		}
		r.flood(now, s, typeMID, appendAddresses(nil, others))
	}
	if due(&s.nextHNA) {
		var networks []netip.Prefix
		for _, a := range r.c.Attached {
			networks = append(networks, a.Prefix)
		}
		for chunk := range slices.Chunk(networks, (r.leastMTU()-packetHeader-messageHeader)/(2*addressSize)) {
			r.flood(now, s, typeHNA, appendHNA(nil, chunk))
		}
	}
}

// flood a message of this node over the interfaces of a schedule, and from there over the domain.
func (r *router) flood(now time.Duration, s *schedule, kind uint8, body []byte) {
	if kind == typeTC {
		r.counters.TCsSent++
	}
	r.Sequence++
	m := message{Type: kind, Validity: s.Validity, Originator: r.origin, TTL: 255, Sequence: r.Sequence, Body: body}
	bytes := m.append(nil)
	for _, number := range s.Interfaces {
		r.enqueue(r.ifaces[number], now, bytes)
	}
}

func (r *router) leastMTU() int {
	least := r.ifaces[0].MTU
	for _, i := range r.ifaces {
		least = min(least, i.MTU)
	}
	return least
}

func (r *router) transmit(i *iface, messages [][]byte) {
	packet := make([]byte, packetHeader, packetHeader+len(messages[0]))
	for _, m := range messages {
		packet = append(packet, m...)
	}
	binary.BigEndian.PutUint16(packet, uint16(len(packet)))
	i.packetSeq++
	binary.BigEndian.PutUint16(packet[2:], i.packetSeq)
	r.counters.PacketsSent++
	r.counters.BytesSent += uint64(len(packet))
	r.send(i.number, packet)
}

func (r *router) next() time.Duration {
	next := r.nextSweep
	for _, s := range r.schedules {
		next = min(next, s.nextTC, s.nextMID, s.nextHNA)
	}
	for _, i := range r.ifaces {
		next = min(next, i.nextHello)
		if due, waiting := i.queue.Due(); waiting {
			next = min(next, due)
		}
	}
	if r.dirty {
		next = min(next, r.nextRoute)
	}
	return next
}

func (r *router) Transmit(at time.Time, number int, allowed bool) {
	now := r.moment(at)
	if number < 0 || number >= len(r.ifaces) || r.ifaces[number].silent == !allowed {
		return
	}
	i := r.ifaces[number]
	i.silent = !allowed
	if allowed {
		i.nextHello = now
		return
	}
	r.counters.Silenced += uint64(i.queue.Clear())
}

func (r *router) Routes() []olsr.Route    { return r.routes }
func (r *router) Generation() uint64      { return r.generation }
func (r *router) Counters() olsr.Counters { return r.counters }
