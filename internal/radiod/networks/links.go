package networks

import (
	"math"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/runapi"
)

// linksPerRequest is roughly how many links are requested at a time.
const linksPerRequest = 2048

// countRadios adds data of the model and the environment to the nodes of a snapshot. The lock is held. With
// reset, as for samples, receivers' links are added in rotation if a second has no room for all.
func (n *network) countRadios(counted *figures.Network, s *dataplane.Snapshot, reset bool) {
	if counted.Physical = n.object.Spec.Waveform.PHY() != nil; !counted.Physical || len(s.Ports) == 0 {
		return
	}
	now := clock.Monotonic()
	counted.LinksHeard = s.LinksHeard
	if reset {
		n.nextReceiver = n.countReceivedLinks(counted, s, n.nextReceiver%len(s.Ports), runapi.MaxRadioLinks, now)
	} else if counted.LinksHeard <= figures.MaxLinkSeries {
		_ = n.countReceivedLinks(counted, s, 0, math.MaxInt, now)
	}
	n.countEnvironment(counted, now, reset)
}

// countReceivedLinks adds the links of receivers, from one on, as far as there is room, and returns the next
// receiver.
func (n *network) countReceivedLinks(counted *figures.Network, s *dataplane.Snapshot, turn, room int, now int64) (next int) {
	size := max(linksPerRequest/len(s.Ports), 1)
	for first := 0; first < len(s.Ports); first += size {
		var receivers []dataplane.PortID
		for i := first; i < min(first+size, len(s.Ports)); i++ {
			receivers = append(receivers, s.Ports[(turn+i)%len(s.Ports)].ID)
		}
		links, err := n.networks.Plane.Links(string(n.object.UID), receivers)
		if err != nil { // one of them is detached; the next call has the others
			return turn
		}
		for i := range links {
			receiver := (turn + first + i) % len(s.Ports)
			if len(counted.Links) > 0 && len(counted.Links)+len(links[i]) > room {
				return receiver
			}
			countLinks(counted, s.Ports[receiver].Name, links[i], func(from int) (dB float64, known bool) {
				if n.preparer == nil {
					return 0, false
				}
				return n.preparer.Now(now).Pathloss(from, s.Ports[receiver].NEM)
			})
		}
	}
	return 0
}

// countLinks adds a receiver's links, with the pathloss from NEM ids.
func countLinks(counted *figures.Network, receiver string, links []phy.LinkStatistics, pathloss func(from int) (dB float64, known bool)) {
	for i := range links {
		l := &links[i]
		loss, known := pathloss(l.FromNEM)
		if !known {
			loss = math.NaN()
		}
		counted.Links = append(counted.Links, figures.Link{Receiver: receiver, From: l.From, SINRDB: l.SINRDB, PathlossDB: loss, Heard: l.Received, Missed: l.Missed})
	}
}

func (n *network) countEnvironment(counted *figures.Network, now int64, reset bool) {
	if n.preparer == nil {
		return
	}
	steps := n.steps.Snapshot(reset)
	counted.Steps, counted.LateSteps, counted.WorstStepLateness = steps.Steps, steps.Late, steps.Worst
	attached := make(map[string]bool, len(counted.Nodes))
	for i := range counted.Nodes {
		attached[counted.Nodes[i].Node] = true
	}
	n.preparer.Now(now).Positions(func(node string, p geo.Position) {
		if !attached[node] {
			return
		}
		if counted.Positions == nil {
			counted.Positions = map[string][3]float64{}
		}
		counted.Positions[node] = [3]float64{round(p.Latitude, 1e6), round(p.Longitude, 1e6), round(p.Altitude, 10)}
	})
}

// round rounds to a part of the unit.
func round(value, parts float64) float64 { return math.Round(value*parts) / parts }
