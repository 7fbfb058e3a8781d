package networks

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/emane/ota"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/emaned"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/packettap"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/radiod/veth"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

var errNoRelay = errors.New("spectrum: radiod does not know its host's address, without which EMANE's networks do not hear each other")

// updateDriver updates EMANE's driver to the network's current state; the lock is held.
func (n *network) updateDriver() {
	if n.object.Spec.Engine != v1alpha1.EngineEMANE || n.ending {
		return
	}
	if len(n.attachments) == 0 {
		n.endDriver()
		return
	}
	in := emaned.Input{Network: n.object, Parked: map[int32]string{}}
	for _, a := range n.attachments {
		in.Parked[a.Member.NEM] = veth.ParkedName(a.ID())
	}
	in.PodUID = n.emanePod()
	h, neighbours := n.networks.hosts.Load(), n.neighbours()
	for i := range neighbours {
		in.Neighbours = append(in.Neighbours, neighbours[i].Spec.Members...)
	}
	in.Relayed = h != nil && (len(neighbours) > 0 || h.IsDistributed(n.object))
	in.Trouble = errors.Join(n.updateEnvironment(), n.beginPreparation())
	if h == nil && len(neighbours) > 0 {
		in.Trouble = errors.Join(in.Trouble, errNoRelay)
	}
	if n.object.Spec.Scenario != "" {
		in.Scenario, _ = n.networks.library.Get(n.object.Spec.Scenario) // updateEnvironment reports why it is not here
	}
	if n.driver != nil {
		n.driver.Set(in)
		return
	}
	published := int64(0)
	if n.networks.restoring && !n.networks.left.New { // else a gap names the time without radiod
		published = n.networks.Folder.LastSeen(state.Worker)
	}
	uid, name := string(n.object.UID), n.object.Spec.Network
	n.driver = emaned.Start(emaned.Options{Find: n.networks.Finder.OfPod, Log: n.networks.Log, Changed: func() { go n.networks.Changed(uid) },
		Channel: func(of *ota.Sockets) error { return n.networks.Plane.SetChannel(uid, of) },
		Step:    n.steps.Add, Change: func(late time.Duration) { n.countChange(name, clock.Realtime(), late) }, Published: published}, in)
}

// emanePod is the UID of EMANE's pod on this host; empty if there is none.
func (n *network) emanePod() string {
	for _, pod := range n.object.Spec.EMANE {
		if pod.Host == n.networks.Host {
			return string(pod.PodUID)
		}
	}
	return ""
}

// abandon notes that a radio leaves EMANE's process, if that has opened it: EMANE opens no other.
func (n *network) abandon(a *attachment) {
	if _, opened := n.driver.Statistics(a.Member.NEM); opened && !n.ending {
		n.abandoned[a.Member.NEM] = n.emanePod()
		_ = n.save() // which tries again
	}
}

// isAbandoned reports whether EMANE's process of an attachment had another radio before, and so does not carry this one.
func (n *network) isAbandoned(a *attachment) bool {
	pod, had := n.abandoned[a.Member.NEM]
	return had && pod == n.emanePod()
}

// abandonedError names the first node whose radio EMANE does not carry; the lock is held.
func (n *network) abandonedError() error {
	var names []string
	for _, a := range n.attachments {
		if n.isAbandoned(a) {
			names = append(names, a.Member.Node)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return refusal.Of(fmt.Errorf("node %s: its radio was attached again after EMANE had opened it, and EMANE opens no other: run the experiment again", slices.Min(names)))
}

func (n *network) endDriver() {
	if n.driver != nil {
		n.driver.Stop()
		n.driver = nil
		n.stopPreparer()
	}
}

// captureVeth sets an attachment's captures, which are of the node's end of the pair; the lock is held.
func (n *network) captureVeth(a *attachment) error {
	captured := n.object.Spec.Captured(a.Member.Node)
	if n.networks.Captures == nil || a.watch == nil && !captured {
		a.captureError = nil
		return nil
	}
	if a.watch == nil {
		namespace, err := n.networks.Finder.Find(a.NamespacePath, a.Namespace)
		if err != nil {
			return err
		}
		defer namespace.Close()
		if a.watch, err = packettap.Open(namespace, a.Link(), n.driver.CaptureLock()); err != nil {
			return err
		}
	}
	err := n.setCaptures(a, a.installAtVeth)
	if a.tap == nil {
		a.endWatch()
	}
	return err
}

// installAtVeth sets the tap of an attachment whose frames are watched.
func (a *attachment) installAtVeth(t *capture.Tap) error {
	switch {
	case a.watch == nil:
	case t == nil:
		a.watch.SetTap(nil)
	default:
		a.watch.SetTap(t)
	}
	return nil
}

func (a *attachment) endWatch() {
	if a.watch != nil {
		_ = a.watch.Close()
		a.watch = nil
	}
}

// readEMANE copies the last counters of an attachment's process and of the kernel to its counter file.
func (n *network) readEMANE(a *attachment) {
	counters := &a.Counters.Ledger.Counters
	now := *counters
	if s, known := n.driver.Statistics(a.Member.NEM); known {
		now = s.Counters
		a.slots = tdma.SlotStatistics{Used: s.SlotsUsed, Missed: s.SlotsMissed}
	}
	now.FramesSent, now.BytesSent = counters.FramesSent, counters.BytesSent
	now.FramesReceived, now.BytesReceived = counters.FramesReceived, counters.BytesReceived
	if traffic := a.Traffic(); traffic != nil { // else an earlier worker's counts hold until the pod's turn
		now.FramesSent, now.BytesSent = traffic.FramesRead, traffic.BytesRead
		now.FramesReceived, now.BytesReceived = traffic.FramesWritten, traffic.BytesWritten
	}
	*counters = now
}

// countEMANE returns the counters of a network that EMANE carries; the lock is held. With reset, receivers'
// links are sampled in rotation if a sample has no room for all.
func (n *network) countEMANE(routed map[membership.Key]*figures.Routing, reset bool) figures.Network {
	spec := &n.object.Spec
	counted := figures.Network{UID: string(n.object.UID), Experiment: spec.Experiment, Network: spec.Network, Loop: figures.NoLoop, Physical: true}
	here := slices.SortedFunc(maps.Values(n.attachments), func(a, b *attachment) int { return strings.Compare(a.Member.Node, b.Member.Node) })
	for _, a := range here {
		n.readEMANE(a)
		node := figures.Node{Node: a.Member.Node, Counters: a.Counters.Ledger.Counters, Settings: a.Settings, Slots: a.slots, Routing: routed[a.Key()]}
		if spec.Waveform.TDMA != nil {
			node.Classes = []int{} // slots are counted
			if s, known := n.driver.Statistics(a.Member.NEM); known && s.Waiting != nil {
				node.Classes = s.Waiting
			}
		}
		if reset {
			node.Slots.MissedIn = n.driver.MissedSlots(a.Member.NEM)
		}
		counted.Nodes = append(counted.Nodes, node)
	}
	if reset {
		counted.Late = n.driver.Late()
	}
	counted.LateChanges = n.lateChanges.take(reset)
	n.countEMANELinks(&counted, here, reset)
	n.countEnvironment(&counted, clock.Monotonic(), reset)
	return counted
}

func (n *network) countEMANELinks(counted *figures.Network, here []*attachment, reset bool) {
	room, turn := figures.MaxLinkSeries, 0
	if reset && len(here) > 0 {
		room, turn = runapi.MaxRadioLinks, n.nextReceiver%len(here)
		n.nextReceiver = 0
	}
	full := false
	for i := range here {
		receiver := (turn + i) % len(here)
		a := here[receiver]
		s, _ := n.driver.Statistics(a.Member.NEM)
		counted.LinksHeard += len(s.Links)
		if full = full || len(counted.Links) > 0 && len(counted.Links)+len(s.Links) > room; full {
			if reset && n.nextReceiver == 0 {
				n.nextReceiver = receiver
			}
			continue
		}
		countLinks(counted, a.Member.Node, s.Links, func(from int) (dB float64, known bool) {
			dB, known = s.LossDB[from]
			return dB, known
		})
	}
	if full && !reset {
		counted.Links = nil
	}
}
