// Package rfpipe is a radio that sends each frame at once at a fixed rate, without channel access. It follows
// EMANE's published RF Pipe model; docs/reference/radio/rfpipe.md has the complete model.
package rfpipe

import (
	"math"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// DefaultQueueDepth is EMANE's default.
const DefaultQueueDepth = 255

// Config of a network's radios.
type Config struct {
	// Seed of the draws and of the jitter.
	Seed int64
	// Radio of a port, and RateBitsPerSecond at which it sends; 0 means that sending takes no time. Only
	// Members and Configure call them.
	Radio             func(p *radio.Port) phy.Radio
	RateBitsPerSecond func(p *radio.Port) float64
	Environment       phy.Environment
	// Delay of every frame before it is queued to be sent. Jitter spreads it uniformly from -Jitter/2 to
	// +Jitter/2. A negative delay becomes zero.
	Delay, Jitter time.Duration
	// QueueDepth is the most frames that wait at a node behind the next one to be sent. Beyond it the oldest
	// of them is dropped. 0 means DefaultQueueDepth.
	QueueDepth   int
	Interference phy.Interference
	HalfDuplex   bool
	// DutyCycle is the share of time in which a node may send; 0 is without limit.
	DutyCycle float64
	// PCR curve; nil for none: frames above the sensitivity are received.
	PCR *phy.Curve
}

// Model is the RF pipe of one network.
type Model struct {
	config  Config
	medium  *phy.Medium
	senders []*sender // by slot
	bursts  radio.Recycled[burst]
	// Scratch.
	receivers []*radio.Port
	shipment  radio.Shipment
}

// New makes a model without members.
func New(config Config) *Model {
	return &Model{config: config, medium: phy.NewMedium(config.medium())}
}

func (c *Config) medium() phy.Config {
	return phy.Config{Seed: c.Seed, Radio: c.Radio, Environment: c.Environment,
		Interference: c.Interference, HalfDuplex: c.HalfDuplex, PCR: c.PCR, Missed: (*radio.Port).AddMissed}
}

// Configure changes the radios. Frames on the air keep their end, waiting frames their time on air.
func (m *Model) Configure(config Config) {
	m.config = config
	m.medium.Configure(config.medium())
	for _, s := range m.senders {
		s.rate = config.RateBitsPerSecond(s.port)
	}
}

// Members implements radio.Model.
func (m *Model) Members(_ int64, ports []*radio.Port, from []int) {
	m.medium.Members(ports, from)
	senders := make([]*sender, len(ports))
	for slot, p := range ports {
		s := &sender{port: p}
		if was := from[slot]; was >= 0 {
			s = m.senders[was]
		}
		s.rate = m.config.RateBitsPerSecond(p)
		senders[slot] = s
	}
	m.senders = senders
}

// Transmit implements radio.Model.
func (m *Model) Transmit(n *radio.Network, now int64, f *radio.Frame) {
	s := m.senders[f.Source.Slot]
	b := m.bursts.Get()
	b.sender, b.Index, b.Bytes, b.RateBitsPerSecond = s, s.offered, len(f.Data), s.rate
	s.offered++
	f.Context = b
	if delay := m.delay(b); delay > 0 {
		n.Hold(f, now+delay)
		return
	}
	m.enqueue(n, now, b, f)
}

// purposeJitter separates the jitter's stream of random numbers from others.
const purposeJitter = 1

func (m *Model) delay(b *burst) int64 {
	delay := int64(m.config.Delay)
	if m.config.Jitter > 0 {
		u := phy.Uniform(m.config.Seed, purposeJitter, b.sender.port.NEM, b.Index)
		delay += int64(math.Round((u - 0.5) * float64(m.config.Jitter)))
	}
	return delay
}

// Due implements radio.Model: a frame's delay is over, or its time on air.
func (m *Model) Due(n *radio.Network, now int64, f *radio.Frame) {
	b := f.Context.(*burst)
	if b.waits {
		s := b.sender
		b.waits, s.sending = false, false
		m.start(n, f.Due, b, f)
		m.startNext(n, f.Due, s) // as a silent radio has dropped it
		return
	}
	if !b.sending {
		m.enqueue(n, f.Due, b, f)
		return
	}
	if !b.remote {
		b.sender.sending = false
		m.startNext(n, f.Due, b.sender)
	}
	m.arrive(n, now, b, f)
	m.recycle(b)
}

// enqueue sends a frame, or queues it behind others.
func (m *Model) enqueue(n *radio.Network, at int64, b *burst, f *radio.Frame) {
	s := b.sender
	if !s.sending {
		m.start(n, at, b, f)
		return
	}
	depth := m.config.QueueDepth
	if depth <= 0 {
		depth = DefaultQueueDepth
	}
	b.frame = n.Keep(f)
	for s.next != nil && s.queue.length >= depth {
		m.drop(n, s.queue.pop(), radio.QueueFull)
	}
	if s.next == nil {
		s.next = b
	} else {
		s.queue.push(b)
	}
}

func (m *Model) startNext(n *radio.Network, at int64, s *sender) {
	for s.next != nil && !s.sending {
		b := s.next
		s.next = s.queue.pop()
		m.start(n, at, b, b.frame)
	}
}

// start puts a frame on the air, unless its radio keeps silence or has to wait by its duty cycle.
func (m *Model) start(n *radio.Network, at int64, b *burst, f *radio.Frame) {
	if at < b.sender.free {
		b.waits, b.sender.sending = true, true
		n.Hold(f, b.sender.free)
		return
	}
	r := m.medium.Radio(b.sender.port)
	if r != nil {
		if !r.Transmit {
			b.frame = f
			m.drop(n, b, radio.EmissionControl)
			return
		}
		b.FrequencyHertz, b.PowerDBm = r.FrequencyHertz, r.TransmitPowerDBm
	}
	// As in EMANE the time on air is that of the Ethernet frame, without a header of the radio.
	b.Source, b.Start, b.End = b.sender.port, at, at+radio.TimeOnAir(b.Bytes, b.RateBitsPerSecond)
	m.medium.Begin(&b.Transmission)
	b.sending, b.sender.sending = true, true
	b.sender.free = b.End + m.pause(b.End-b.Start)
	if n.Distributed() {
		m.ship(n, b, f)
	}
	n.Hold(f, b.End)
}

// pause returns how long a node may not send after a frame, by the duty cycle.
func (m *Model) pause(onAir int64) int64 {
	if share := m.config.DutyCycle; share > 0 && share < 1 {
		return int64(min(float64(onAir)*(1/share-1), radio.FarFuture))
	}
	return 0
}

// arrive delivers a frame to those that receive it: the addressee, or all in range.
func (m *Model) arrive(n *radio.Network, now int64, b *burst, f *radio.Frame) {
	m.receivers = m.receivers[:0]
	if f.Destination.IsMulticast() {
		m.receivers = m.medium.Broadcast(now, &b.Transmission, m.receivers)
	} else if to := n.Find(f.Destination); to == nil {
		n.Drop(f, radio.NoReceiver)
		return
	} else if to != b.Source && to.IsLocal() && m.medium.Radio(b.Source) != nil {
		m.receiveAtAddressee(now, b, to)
	}
	f.Receivers = m.receivers
	n.Radiate(now, f)
}

// receiveAtAddressee receives a frame at its addressee, which counts it as missed however far away it is.
func (m *Model) receiveAtAddressee(now int64, b *burst, to *radio.Port) {
	if neighbour := m.medium.Neighbour(now, b.Source, to, b.PowerDBm); neighbour != nil {
		m.receive(now, b, neighbour)
	} else {
		to.AddMissed(radio.BelowSensitivity, 1)
	}
}

func (m *Model) receive(now int64, b *burst, to *phy.Neighbour) {
	r := m.medium.Receive(now, &b.Transmission, to, to.Radio().FrequencyHertz, true)
	if r.Received {
		m.receivers = append(m.receivers, to.Port)
	} else {
		to.Port.AddMissed(r.Reason, 1)
	}
}

func (m *Model) drop(n *radio.Network, b *burst, reason radio.Reason) {
	n.Drop(b.frame, reason)
	m.recycle(b)
}

func (m *Model) recycle(b *burst) {
	*b = burst{}
	m.bursts.Keep(b)
}

// Medium that the radios share. It is for the thread of the network's loop.
func (m *Model) Medium() *phy.Medium { return m.medium }

// Tally implements radio.Tallier.
func (m *Model) Tally(senders int) (all bool) { return m.medium.Tally(senders) }
