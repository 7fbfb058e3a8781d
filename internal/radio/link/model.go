// Package link is the link model: rate, delay, jitter, loss, duplication, corruption and a finite queue on every
// sender's egress, as `tc netem rate/delay/loss/duplicate/corrupt/limit` on that interface would give, without
// a kernel module. docs/links.md has the model in full.
package link

import (
	"slices"

	"vignette.dev/vignette/internal/radio"
)

// Everybody as a Link's From or To names all nodes.
const Everybody = "*"

// Link replaces the default link for frames from one group of nodes to another. From and To name a
// group, a node, or Everybody.
type Link struct {
	From, To string
	Parameters
}

// Config of a network's links.
type Config struct {
	// Seed of the random streams.
	Seed int64
	// Default link on every node's egress.
	Default Parameters
	// Links that replace it. Where several fit two nodes, the one that names Everybody least often holds, of those
	// the one that names more nodes (not groups), and of those the first. Each sender has one queue for every
	// distinct To of the links that hold for it; links to Everybody share the queue of the default.
	Links []Link
	// Effects, where they are given, hold in the place of Links: each pair of nodes has a queue of its own then.
	Effects Effects
}

// Model is the link model of one network.
type Model struct {
	config  Config
	ports   []*radio.Port
	senders map[*radio.Port]*sender
	// here are the ports that this host serves.
	here     []*radio.Port
	byNEM    map[int]*radio.Port
	shipment radio.Shipment // scratch
}

// sender is what one port's frames go through.
type sender struct {
	self   []*radio.Port     // the port alone, as receivers of a frame for it
	queues map[string]*Queue // by destination set
	// egress is the default queue; broadcast has each queue that leads to somebody, or else egress.
	egress    *Queue
	broadcast []*Queue
	routes    []*Queue // by the receiver's slot; nil where all go through egress
}

// New makes a model without members.
func New(config Config) *Model {
	return &Model{config: config, senders: map[*radio.Port]*sender{}}
}

// Configure changes the links. Frames under way keep the times and receivers they were given, and no
// later frame overtakes them unless its link reorders.
func (m *Model) Configure(config Config) {
	m.config = config
	before := make([]int, len(m.ports))
	for slot := range before {
		before[slot] = slot
	}
	m.rebuild(before)
}

// Members implements radio.Model.
func (m *Model) Members(ports []*radio.Port) {
	before := make([]int, len(ports))
	for slot, p := range ports {
		before[slot] = -1
		if m.senders[p] != nil {
			before[slot] = p.Slot
		}
	}
	for slot, p := range ports {
		p.Slot = slot
	}
	m.ports = ports
	m.findHere()
	m.rebuild(before)
}

// rebuild routes everything anew; before has the ports' slots until now, -1 for new ones.
func (m *Model) rebuild(before []int) {
	senders := make(map[*radio.Port]*sender, len(m.ports))
	for _, p := range m.ports {
		s := m.senders[p]
		if s == nil {
			s = &sender{self: []*radio.Port{p}, queues: map[string]*Queue{}}
			s.egress = s.queue(m.config.Seed, p.NEM, Everybody, m.config.Default)
		}
		senders[p] = s
		m.route(p, s, before)
	}
	m.senders = senders
}

func (m *Model) route(p *radio.Port, s *sender, before []int) {
	links := m.config.leadingFrom(p)
	defaults, branches := m.config.Default, false
	for _, l := range links {
		if l.To == Everybody {
			defaults = l.Parameters
		} else {
			branches = true
		}
	}
	s.egress.Parameters = defaults
	old := s.routes
	s.routes, s.broadcast = nil, []*Queue{s.egress}
	s.egress.to = m.ports
	if branches {
		m.branch(p, s, links)
	}
	for slot, to := range m.ports {
		if before[slot] >= 0 && to != p {
			s.route(slot).follow(oldRoute(old, before[slot], s.egress))
		}
	}
}

func oldRoute(routes []*Queue, slot int, egress *Queue) *Queue {
	if routes == nil {
		return egress
	}
	return routes[slot]
}

// branch gives the sender a route to each receiver.
func (m *Model) branch(p *radio.Port, s *sender, links []ranked) {
	s.routes, s.broadcast = make([]*Queue, len(m.ports)), nil
	receivers := map[*Queue][]*radio.Port{}
	for slot, to := range m.ports {
		q := s.egress
		if l := best(links, to); l != nil && l.To != Everybody {
			q = s.queue(m.config.Seed, p.NEM, l.To, l.Parameters)
		}
		s.routes[slot] = q
		if to == p {
			continue
		}
		if receivers[q] == nil {
			s.broadcast = append(s.broadcast, q)
		}
		receivers[q] = append(receivers[q], to)
	}
	s.egress.to = nil
	for q, to := range receivers {
		q.to = to // a new slice: frames under way keep the old one
	}
	if s.broadcast == nil {
		s.broadcast = []*Queue{s.egress}
	}
}

// route to the receiver in a slot.
func (s *sender) route(slot int) *Queue {
	if s.routes == nil {
		return s.egress
	}
	return s.routes[slot]
}

// queue to a set of destinations, whose name its random streams have too.
func (s *sender) queue(seed int64, nem int, destinations string, p Parameters) *Queue {
	q := s.queues[destinations]
	if q == nil {
		q = &Queue{streams: newStreams(seed, nem, destinations)}
		s.queues[destinations] = q
	}
	q.Parameters = p
	return q
}

// The ranks of what a link names. Two groups rank above a node and Everybody.
const (
	rankEverybody = 1
	rankGroup     = 4
	rankNode      = 5
)

// rank tells how well a name fits a port, 0 for not at all.
func rank(name string, p *radio.Port) int {
	switch name {
	case p.Name:
		return rankNode
	case p.Group:
		return rankGroup
	case Everybody:
		return rankEverybody
	default:
		return 0
	}
}

// ranked is a link with the rank of its From.
type ranked struct {
	*Link
	from int
}

// leadingFrom lists the links from a port in their order, of each To only the one that holds.
func (c *Config) leadingFrom(p *radio.Port) (links []ranked) {
	for i := range c.Links {
		l := ranked{&c.Links[i], rank(c.Links[i].From, p)}
		if l.from == 0 {
			continue
		}
		same := slices.IndexFunc(links, func(other ranked) bool { return other.To == l.To })
		switch {
		case same < 0:
			links = append(links, l)
		case l.from > links[same].from:
			links = append(slices.Delete(links, same, same+1), l)
		}
	}
	return links
}

// best of a sender's links to a port, or nil for the default.
func best(links []ranked, to *radio.Port) (found *Link) {
	most := 0
	for _, l := range links {
		if r := rank(l.To, to); r > 0 && l.from+r > most {
			found, most = l.Link, l.from+r
		}
	}
	return found
}

// Transmit implements radio.Model. A broadcast or multicast goes once over each distinct link.
func (m *Model) Transmit(n *radio.Network, now int64, f *radio.Frame) {
	s := m.senders[f.Source]
	if m.config.Effects != nil {
		m.transmitApart(n, now, f, s)
		return
	}
	if !f.Destination.IsMulticast() {
		m.unicast(n, now, f, s)
		return
	}
	for _, q := range s.broadcast[1:] {
		m.offer(n, now, n.Copy(f), q, q.to)
	}
	m.offer(n, now, f, s.broadcast[0], s.broadcast[0].to)
}

// unicast sends to one port. A frame that nobody can receive occupies the sender's link all the same.
func (m *Model) unicast(n *radio.Network, now int64, f *radio.Frame, s *sender) {
	to := n.Find(f.Destination)
	if to == nil {
		m.offer(n, now, f, s.egress, nil)
		return
	}
	q := s.egress
	if s.routes != nil {
		q = s.routes[to.Slot]
	}
	m.offer(n, now, f, q, m.senders[to].self)
}

// offer sends a frame to the receivers through a queue, and again if it is duplicated.
func (m *Model) offer(n *radio.Network, now int64, f *radio.Frame, q *Queue, receivers []*radio.Port) {
	length := len(f.Data)
	arrival, reason, accepted := q.Offer(now, length)
	if !accepted {
		n.Drop(f, reason)
		return
	}
	f.Receivers, f.Context = receivers, q
	if !q.Duplicated() {
		corrupt(n, f, q.Corrupted(length, false))
		m.pass(n, now, f, arrival)
		return
	}
	second := n.Copy(f)
	corrupt(n, f, q.Corrupted(length, false))
	m.pass(n, now, f, arrival)
	if arrival, reason, accepted = q.OfferDuplicate(now, length); !accepted {
		n.Drop(second, reason)
		return
	}
	corrupt(n, second, q.Corrupted(length, true))
	m.pass(n, now, second, arrival)
}

// corrupt turns a bit of a frame over; -1 is none.
func corrupt(n *radio.Network, f *radio.Frame, bit int) {
	if bit >= 0 {
		f.Data[bit/8] ^= 0x80 >> (bit % 8)
		n.Corrupted(f)
	}
}

func (m *Model) pass(n *radio.Network, now int64, f *radio.Frame, arrival int64) {
	if n.Distributed() {
		m.ship(n, now, f, arrival)
	}
	if arrival > now {
		n.Hold(f, arrival)
		return
	}
	arrived(n, now, f)
}

// Due implements radio.Model.
func (m *Model) Due(n *radio.Network, now int64, f *radio.Frame) { arrived(n, now, f) }

func arrived(n *radio.Network, now int64, f *radio.Frame) {
	if q, sentHere := f.Context.(*Queue); sentHere {
		q.Arrived(len(f.Data))
	}
	n.Deliver(now, f)
}
