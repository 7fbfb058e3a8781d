// Package link is the link model: rate, delay, jitter, loss, duplication, corruption and a finite queue on
// every sender's egress. It does what `tc netem rate/delay/loss/duplicate/corrupt/limit` (tc-netem(8)) on
// that interface would, without a kernel module. docs/reference/radio/link.md has the complete model.
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
	// Links that replace it. If several match two nodes, the one that names Everybody least often holds, then
	// the one that names more nodes (not groups), then the first. Each sender has one queue for every
	// distinct To of the links that hold for it. Links to Everybody share the queue of the default.
	Links []Link
	// Effects, if given, replace Links. Each pair of nodes then has its own queue.
	Effects Effects
}

// Model is the link model of one network.
type Model struct {
	config  Config
	ports   []*radio.Port
	senders []*sender // by the ports' slots
	// localPorts are the ports that this host serves.
	localPorts []*radio.Port
	byNEM      map[int]*radio.Port
	shipment   radio.Shipment // scratch
}

// sender has the queues of one port.
type sender struct {
	self   []*radio.Port     // the port alone, as receivers of a frame for it
	queues map[string]*Queue // by destination set
	// egress is the default queue. broadcast has each queue that leads to a receiver, or egress if none does.
	egress    *Queue
	broadcast []*Queue
	routes    []*Queue // by the receiver's slot; nil if all go through egress
}

// New makes a model without members.
func New(config Config) *Model {
	return &Model{config: config}
}

// Configure changes the links. Frames under way keep their times and receivers. No later frame overtakes them
// unless its link reorders.
func (m *Model) Configure(config Config) {
	m.config = config
	m.rebuild(radio.SetSlots(m.ports, m.ports))
}

// Members implements radio.Model.
func (m *Model) Members(_ int64, ports []*radio.Port, from []int) {
	m.ports = ports
	m.findLocalPorts()
	m.rebuild(from)
}

// rebuild assigns all queues again. from has the ports' previous slots, -1 for new ones.
func (m *Model) rebuild(from []int) {
	senders := make([]*sender, len(m.ports))
	for slot, p := range m.ports {
		if was := from[slot]; was >= 0 {
			senders[slot] = m.senders[was]
		} else {
			senders[slot] = &sender{self: []*radio.Port{p}, queues: map[string]*Queue{}}
			senders[slot].egress = senders[slot].queue(m.config.Seed, p.NEM, Everybody, m.config.Default)
		}
		m.route(p, senders[slot], from)
	}
	m.senders = senders
}

func (m *Model) route(p *radio.Port, s *sender, from []int) {
	links := m.config.linksFrom(p)
	defaults, branches := m.config.Default, false
	for _, l := range links {
		if l.To == Everybody {
			defaults = l.Parameters
		} else {
			branches = true
		}
	}
	s.egress.Parameters = defaults
	old := *s
	s.routes, s.broadcast = nil, []*Queue{s.egress}
	s.egress.to = m.ports
	if branches {
		m.routePerReceiver(p, s, links)
	}
	for slot, to := range m.ports {
		if from[slot] >= 0 && to != p {
			s.route(slot).continueAfter(old.route(from[slot]))
		}
	}
}

// routePerReceiver gives the sender a separate route to each receiver.
func (m *Model) routePerReceiver(p *radio.Port, s *sender, links []ranked) {
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

// queue returns the sender's queue to a set of destinations. The set's name also selects its random streams.
func (s *sender) queue(seed int64, nem int, destinations string, p Parameters) *Queue {
	q := s.queues[destinations]
	if q == nil {
		q = &Queue{streams: newStreams(seed, nem, destinations)}
		s.queues[destinations] = q
	}
	q.Parameters = p
	return q
}

// The ranks of names in a link. Two groups rank above a node and Everybody.
const (
	rankEverybody = 1
	rankGroup     = 4
	rankNode      = 5
)

// rank returns how specifically a name matches a port, 0 if it does not.
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
	fromRank int
}

// linksFrom lists the links from a port in their order, with only the link that holds for each To.
func (c *Config) linksFrom(p *radio.Port) (links []ranked) {
	for i := range c.Links {
		l := ranked{&c.Links[i], rank(c.Links[i].From, p)}
		if l.fromRank == 0 {
			continue
		}
		same := slices.IndexFunc(links, func(other ranked) bool { return other.To == l.To })
		switch {
		case same < 0:
			links = append(links, l)
		case l.fromRank > links[same].fromRank:
			links = append(slices.Delete(links, same, same+1), l)
		}
	}
	return links
}

// best returns the link that holds for a receiver, or nil for the default.
func best(links []ranked, to *radio.Port) (found *Link) {
	most := 0
	for _, l := range links {
		if r := rank(l.To, to); r > 0 && l.fromRank+r > most {
			found, most = l.Link, l.fromRank+r
		}
	}
	return found
}

// Transmit implements radio.Model. A broadcast or multicast goes once over each distinct link.
func (m *Model) Transmit(n *radio.Network, now int64, f *radio.Frame) {
	s := m.senders[f.Source.Slot]
	if m.config.Effects != nil {
		m.transmitPerReceiver(n, now, f, s)
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

// unicast sends to one port. A frame that nobody can receive also occupies the sender's link.
func (m *Model) unicast(n *radio.Network, now int64, f *radio.Frame, s *sender) {
	to := n.Find(f.Destination)
	if to == nil {
		m.offer(n, now, f, s.egress, nil)
		return
	}
	m.offer(n, now, f, s.route(to.Slot), m.senders[to.Slot].self)
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
		m.forward(n, now, f, arrival)
		return
	}
	second := n.Copy(f)
	corrupt(n, f, q.Corrupted(length, false))
	m.forward(n, now, f, arrival)
	if arrival, reason, accepted = q.OfferDuplicate(now, length); !accepted {
		n.Drop(second, reason)
		return
	}
	corrupt(n, second, q.Corrupted(length, true))
	m.forward(n, now, second, arrival)
}

// corrupt inverts a bit of a frame; -1 is none.
func corrupt(n *radio.Network, f *radio.Frame, bit int) {
	if bit >= 0 {
		f.Data[bit/8] ^= 0x80 >> (bit % 8)
		n.Corrupted(f)
	}
}

func (m *Model) forward(n *radio.Network, now int64, f *radio.Frame, arrival int64) {
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
