package worker

import (
	"math"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/runapi"
)

// linksPerCall is roughly how many links are read from the loop at a time, in less than a tenth of a
// millisecond.
const linksPerCall = 2048

// countRadios adds data of the model and the environment to the nodes, which have the order of the ports. The
// manager's lock is held. With reset, as for samples, receivers' links are added in rotation if a second has
// no room for all.
func (n *network) countRadios(counted *NetworkCounters, ports []*radio.Port, reset bool) {
	if counted.Physical = n.object.Spec.Waveform.PHY() != nil; !counted.Physical || len(ports) == 0 {
		return
	}
	now := clock.Monotonic()
	n.countNodes(counted, ports, reset)
	if reset {
		n.nextReceiver = n.countReceivedLinks(counted, ports, n.nextReceiver%len(ports), runapi.MaxRadioLinks, now)
	} else if counted.LinksHeard <= figures.MaxLinkSeries {
		_ = n.countReceivedLinks(counted, ports, 0, math.MaxInt, now)
	}
	n.countEnvironment(counted, now, reset)
}

// countReceivedLinks adds the links of receivers, from one on, as far as there is room, and returns the next
// receiver.
func (n *network) countReceivedLinks(counted *NetworkCounters, ports []*radio.Port, turn, room int, now int64) (next int) {
	n.eachReceiver(ports, turn, func(receiver int, links []phy.LinkStatistics) (more bool) {
		if len(counted.Links) > 0 && len(counted.Links)+len(links) > room {
			next = receiver
			return false
		}
		n.countLinks(counted, ports[receiver], links, now)
		return true
	})
	return next
}

func (n *network) countNodes(counted *NetworkCounters, ports []*radio.Port, reset bool) {
	n.running.Do(func(_ *radio.Network, model radio.Model) {
		for i, p := range ports {
			s := n.initialSettings.statistics(model, p, reset)
			counted.Nodes[i].Slots, counted.Nodes[i].Classes = s.slots, s.classes
		}
		counted.LinksHeard = n.initialSettings.medium(model).LinksHeard()
	})
}

// eachReceiver reads all ports' links from the loop, a few ports at a time, and calls give until it returns
// false.
func (n *network) eachReceiver(ports []*radio.Port, turn int, give func(receiver int, links []phy.LinkStatistics) (more bool)) {
	size := max(linksPerCall/len(ports), 1)
	links, ends := make([]phy.LinkStatistics, 0, size*len(ports)), make([]int, 0, size)
	for first := 0; first < len(ports); first += size {
		links, ends = links[:0], ends[:0]
		n.running.Do(func(_ *radio.Network, model radio.Model) {
			medium := n.initialSettings.medium(model)
			for i := first; i < min(first+size, len(ports)); i++ {
				links = medium.AppendLinks(links, ports[(turn+i)%len(ports)])
				ends = append(ends, len(links))
			}
		})
		begin := 0
		for i, end := range ends {
			if !give((turn+first+i)%len(ports), links[begin:end]) {
				return
			}
			begin = end
		}
	}
}

func (n *network) countLinks(counted *NetworkCounters, receiver *radio.Port, links []phy.LinkStatistics, now int64) {
	for i := range links {
		l := &links[i]
		link := LinkCounters{Receiver: receiver.Name, From: l.From.Name, SINRDB: l.SINRDB, PathlossDB: math.NaN(), Heard: l.Received, Missed: l.Missed}
		if loss, known := n.environment.between(l.From, receiver, now); known {
			link.PathlossDB = loss
		}
		counted.Links = append(counted.Links, link)
	}
}

func (n *network) countEnvironment(counted *NetworkCounters, now int64, reset bool) {
	if n.preparer == nil {
		return
	}
	steps := n.steps.snapshot(reset)
	counted.Steps, counted.LateSteps, counted.WorstStepLateness = steps.steps, steps.late, time.Duration(steps.worst)
	attached := make(map[string]bool, len(counted.Nodes))
	for i := range counted.Nodes {
		attached[counted.Nodes[i].Node] = true
	}
	m := n.preparer.momentAt(now)
	for i, member := range n.preparer.preparer.members {
		if p := m.positions[i]; m.placed[i] && attached[member.Node] {
			if counted.Positions == nil {
				counted.Positions = map[string][3]float64{}
			}
			counted.Positions[member.Node] = [3]float64{round(p.Latitude, 1e6), round(p.Longitude, 1e6), round(p.Altitude, 10)}
		}
	}
}

// round rounds to a part of the unit.
func round(value, parts float64) float64 { return math.Round(value*parts) / parts }
