// Package link is the link model: rate, delay, loss and a finite queue on every sender's egress,
// as `tc netem rate/delay/loss/limit` on that interface would give, without a kernel module.
package link

import (
	"vignette.dev/vignette/internal/radio"
)

// Link replaces the default link for frames from one group of nodes to another. From and To name a
// group or a node.
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
	// Links that replace it between groups. Where several fit, the one that names more nodes (not
	// groups) holds, and of those the first.
	Links []Link
}

// Model is the link model of one network.
type Model struct {
	config  Config
	ports   []*radio.Port
	senders map[*radio.Port]*sender
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

// Configure changes the links. Frames under way keep the times and receivers they were given.
func (m *Model) Configure(config Config) {
	m.config = config
	m.rebuild()
}

// Members implements radio.Model.
func (m *Model) Members(ports []*radio.Port) {
	m.ports = ports
	m.rebuild()
}

func (m *Model) rebuild() {
	senders := make(map[*radio.Port]*sender, len(m.ports))
	for slot, p := range m.ports {
		p.Slot = slot
	}
	for _, p := range m.ports {
		s := m.senders[p]
		if s == nil {
			s = &sender{self: []*radio.Port{p}, queues: map[string]*Queue{}}
		}
		senders[p] = s
		m.route(p, s)
	}
	m.senders = senders
}

// defaultDestinations names the random stream of the default link: all that no other link leads to.
const defaultDestinations = ""

func (m *Model) route(p *radio.Port, s *sender) {
	s.egress = s.queue(m.config.Seed, p.NEM, defaultDestinations, m.config.Default)
	s.routes, s.broadcast = nil, nil
	s.egress.to = m.ports
	if !m.leadsFrom(p) {
		s.broadcast = []*Queue{s.egress}
		return
	}
	s.routes = make([]*Queue, len(m.ports))
	receivers := map[*Queue][]*radio.Port{}
	for slot, to := range m.ports {
		q := s.egress
		if l := m.config.best(p, to); l != nil {
			q = s.queue(m.config.Seed, p.NEM, l.From+">"+l.To, l.Parameters)
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

func (s *sender) queue(seed int64, nem int, destinations string, p Parameters) *Queue {
	q := s.queues[destinations]
	if q == nil {
		q = &Queue{random: newStream(seed, nem, destinations)}
		s.queues[destinations] = q
	}
	q.Parameters = p
	return q
}

func (m *Model) leadsFrom(p *radio.Port) bool {
	for i := range m.config.Links {
		if names(m.config.Links[i].From, p) > 0 {
			return true
		}
	}
	return false
}

// best is the link from one port to another, or nil for the default.
func (c *Config) best(from, to *radio.Port) *Link {
	var found *Link
	most := 0
	for i := range c.Links {
		l := &c.Links[i]
		a, b := names(l.From, from), names(l.To, to)
		if a > 0 && b > 0 && a+b > most {
			found, most = l, a+b
		}
	}
	return found
}

// names tells how well a name fits a port: 2 for the node itself, 1 for its group, 0 not at all.
func names(name string, p *radio.Port) int {
	switch name {
	case p.Name:
		return 2
	case p.Group:
		return 1
	default:
		return 0
	}
}

// Transmit implements radio.Model. A broadcast or multicast goes once over each distinct link.
func (m *Model) Transmit(n *radio.Network, now int64, f *radio.Frame) {
	s := m.senders[f.Source]
	if !f.Destination.IsMulticast() {
		m.unicast(n, now, f, s)
		return
	}
	for _, q := range s.broadcast[1:] {
		offer(n, now, n.Copy(f), q, q.to)
	}
	offer(n, now, f, s.broadcast[0], s.broadcast[0].to)
}

// unicast sends to one port. A frame that nobody can receive occupies the sender's link all the same.
func (m *Model) unicast(n *radio.Network, now int64, f *radio.Frame, s *sender) {
	to := n.Find(f.Destination)
	if to == nil {
		offer(n, now, f, s.egress, nil)
		return
	}
	q := s.egress
	if s.routes != nil {
		q = s.routes[to.Slot]
	}
	offer(n, now, f, q, m.senders[to].self)
}

func offer(n *radio.Network, now int64, f *radio.Frame, q *Queue, receivers []*radio.Port) {
	arrival, reason, accepted := q.Offer(now, len(f.Data))
	if !accepted {
		n.Drop(f, reason)
		return
	}
	f.Receivers, f.Context = receivers, q
	if arrival > now {
		n.Hold(f, arrival)
		return
	}
	q.Arrived()
	n.Deliver(now, f)
}

// Due implements radio.Model.
func (m *Model) Due(n *radio.Network, now int64, f *radio.Frame) {
	f.Context.(*Queue).Arrived()
	n.Deliver(now, f)
}
