package olsr

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand"
	"net/netip"
	"slices"
	"time"

	"vignette.dev/vignette/internal/olsr/internal/core"
	"vignette.dev/vignette/internal/olsr/rfc5444"
)

// sweepInterval is the least time between two searches of the tables for expired entries.
const sweepInterval = 100 * time.Millisecond

// New returns a Router of OLSRv2 that sends by send.
func New(c Config, send Send) (Router, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	r := &router{
		c: c, send: send, random: rand.New(rand.NewSource(c.Seed)), hash: maphash.MakeSeed(),
		origin: c.Interfaces[0].Address, length: c.Interfaces[0].Address.BitLen() / 8,
		own: map[netip.Addr]bool{}, neighbours: map[netip.Addr]*neighbour{}, lost: map[netip.Addr]time.Duration{},
		nextSweep: core.Forever, dirty: true, indexAge: 1,
		topologies: append([]Topology{{Type: metricExtension, Metric: c.Metric}}, c.Topologies...),
	}
	r.measures = slices.ContainsFunc(r.topologies, func(t Topology) bool { return t.Metric == DAT })
	r.seq, r.ansn = uint16(r.random.Uint32()), uint16(r.random.Uint32())
	for n, i := range c.Interfaces {
		r.own[i.Address] = true
		r.lostHold = max(r.lostHold, i.HelloValidity)
		r.ifaces = append(r.ifaces, &iface{Interface: i, number: n, carries: r.carriedBy(&i), packetSeq: uint16(r.random.Uint32())})
	}
	for _, s := range c.TCSchedules() {
		r.schedules = append(r.schedules, &schedule{TCSchedule: s})
	}
	return r, nil
}

// maxJitter of messages that go over all interfaces (RFC 7181 section 5.5).
func (r *router) maxJitter() time.Duration { return r.c.ShortestHello() / 4 }

// moment converts a time, and sets the Router's present.
func (r *router) moment(at time.Time) time.Duration {
	r.last = max(r.last, r.clock.Moment(at))
	return r.last
}

// start spreads the first messages over an interval, so that nodes started together do not send together.
func (r *router) start(now time.Duration) {
	if r.started {
		return
	}
	r.started = true
	for _, i := range r.ifaces {
		i.nextHello = now + core.Jitter(r.random, i.Hello)
	}
	for _, s := range r.schedules {
		s.next = now + r.c.ShortestHello() + core.Jitter(r.random, s.Interval)
	}
}

// expireBy schedules the next search for expired entries at a moment at the latest.
func (r *router) expireBy(at time.Duration) {
	if at > 0 {
		r.nextSweep = min(r.nextSweep, at)
	}
}

func (r *router) Receive(at time.Time, number int, from netip.Addr, packet []byte) error {
	now := r.moment(at)
	if number < 0 || number >= len(r.ifaces) {
		return fmt.Errorf("interface %d: there are %d", number, len(r.ifaces))
	}
	r.start(now)
	i := r.ifaces[number]
	from = from.Unmap().WithZone("")
	if r.own[from] {
		return nil
	}
	err := rfc5444.Split(packet, &r.packet)
	whole := err == nil
	for m := range r.packet.Messages {
		err = errors.Join(err, r.receiveMessage(now, i, from, &r.packet.Messages[m]))
	}
	// After the messages, as the first HELLO makes the link (RFC 7779 section 9.3).
	if l := i.links.of(from); whole && l != nil && r.packet.HasSequence && r.measures {
		l.loss.packet(r.packet.Sequence, now)
	}
	if err != nil {
		r.counters.Refused++
	}
	return err
}

func (r *router) receiveMessage(now time.Duration, i *iface, from netip.Addr, raw *rfc5444.RawMessage) error {
	if raw.AddressLength != r.length {
		return fmt.Errorf("message of %v: addresses of %d bytes, not %d", from, raw.AddressLength, r.length)
	}
	if raw.Type != messageHello {
		return r.receiveFlooded(now, i, from, raw)
	}
	if err := raw.Decode(&r.message); err != nil {
		return fmt.Errorf("HELLO of %v: %w", from, err)
	}
	return r.receiveHello(now, i, from, &r.message)
}

func (r *router) Tick(at time.Time) time.Time {
	now := r.moment(at)
	r.start(now)
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

// generate the messages that are due.
func (r *router) generate(now time.Duration) {
	for _, i := range r.ifaces {
		if now >= i.nextHello {
			i.nextHello = core.After(r.random, now, i.nextHello, i.Hello, i.Hello/4) // RFC 6130 section 5.4
			r.sendHello(now, i)
		}
	}
	for _, s := range r.schedules {
		if now >= s.next {
			s.next = core.After(r.random, now, s.next, s.Interval, r.maxJitter())
			r.sendTC(now, s)
		}
	}
}

func (r *router) transmit(i *iface, messages [][]byte) {
	size := packetHeader
	for _, m := range messages {
		size += len(m)
	}
	packet := rfc5444.AppendPacketHeader(make([]byte, 0, size), i.packetSeq, r.measures)
	for _, m := range messages {
		packet = append(packet, m...)
	}
	i.packetSeq++
	r.counters.PacketsSent++
	r.counters.BytesSent += uint64(len(packet))
	r.send(i.number, packet)
}

func (r *router) next() time.Duration {
	next := r.nextSweep
	for _, s := range r.schedules {
		next = min(next, s.next)
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

// sweep removes expired entries, and schedules the next search.
func (r *router) sweep(now time.Duration) {
	r.nextSweep = core.Forever
	for _, i := range r.ifaces {
		for _, l := range i.links.order {
			r.sweepLink(now, l)
		}
	}
	for a, until := range r.lost {
		if until <= now {
			delete(r.lost, a)
			continue
		}
		r.expireBy(until)
	}
	for _, origin := range r.topology {
		if origin != nil && origin.until > 0 {
			r.sweepRemote(now, origin)
		}
	}
	r.nextSweep = max(r.nextSweep, now+sweepInterval)
}

func (r *router) sweepLink(now time.Duration, l *link) {
	r.updateDependents(now, l)
	if l.until <= now {
		r.removeLink(now, l)
		return
	}
	before := len(l.twoHops)
	l.twoHops = slices.DeleteFunc(l.twoHops, func(two twoHop) bool { return two.until <= now })
	if gone := before - len(l.twoHops); gone > 0 {
		r.twoHops -= gone
		r.dirty, r.mprDirty = true, true
	}
	for k := range l.twoHops {
		r.expireBy(l.twoHops[k].until)
	}
	for _, until := range []time.Duration{l.symmetricUntil, l.heardUntil, l.until} {
		if until > now {
			r.expireBy(until)
		}
	}
}

func (r *router) sweepRemote(now time.Duration, o *remote) {
	before := len(o.edges) + len(o.networks)
	o.edges = slices.DeleteFunc(o.edges, func(e remoteEdge) bool { return e.until <= now })
	o.networks = slices.DeleteFunc(o.networks, func(n remoteNetwork) bool { return n.until <= now })
	if gone := before - len(o.edges) - len(o.networks); gone > 0 {
		r.allEdges -= gone
		r.dirty = true
		o.contentDigest = 0
	}
	if o.until > now {
		r.expireBy(o.until)
	} else {
		o.until, o.contentDigest = 0, 0
	}
	for _, e := range o.edges {
		r.expireBy(e.until)
	}
	for _, n := range o.networks {
		r.expireBy(n.until)
	}
}

func (r *router) Transmit(at time.Time, number int, allowed bool) {
	now := r.moment(at)
	if number < 0 || number >= len(r.ifaces) || r.ifaces[number].silent == !allowed {
		return
	}
	r.start(now)
	i := r.ifaces[number]
	i.silent = !allowed
	if allowed {
		i.nextHello = now
		return
	}
	r.counters.Silenced += uint64(i.queue.Clear())
}

func (r *router) Routes() []Route    { return r.routes }
func (r *router) Generation() uint64 { return r.generation }
func (r *router) Counters() Counters { return r.counters }
