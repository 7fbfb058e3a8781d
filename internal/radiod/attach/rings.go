package attach

import (
	"cmp"
	"maps"
	"os"
	"slices"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
)

// podsPerRingRead is how many pods' namespaces are read at a time. All of hundreds would take a tenth of a
// processor.
const podsPerRingRead = 50

// ReadRings reads the drops of TAPs' rings, and the traffic of veths. The kernel counts them in the pods'
// namespaces. Up to podsPerRingRead pods are read, in rotation.
func (m *Attachments) ReadRings() {
	pods := map[netns.Identity][]*Radio{}
	for _, a := range m.all(func(*Radio) bool { return true }) {
		pods[a.Namespace] = append(pods[a.Namespace], a)
	}
	order := slices.SortedFunc(maps.Keys(pods), func(a, b netns.Identity) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Inode, b.Inode))
	})
	m.mu.Lock()
	order = nextInRotation(order, &m.nextRing, podsPerRingRead)
	m.mu.Unlock()
	for _, identity := range order {
		m.readRings(identity, pods[identity])
	}
}

// nextInRotation returns the next elements in rotation, at most most of them.
func nextInRotation[T any](all []T, turn *int, most int) (next []T) {
	for range min(len(all), most) {
		*turn %= len(all)
		next = append(next, all[*turn])
		*turn++
	}
	return next
}

// readRings reads the rings of one pod. A pod that cannot be read is about to be removed.
func (m *Attachments) readRings(identity netns.Identity, attachments []*Radio) {
	namespace, err := m.Finder.Find(attachments[0].NamespacePath, identity)
	if err != nil {
		return
	}
	defer namespace.Close()
	m.readRingsIn(namespace, attachments)
}

// readRingAtEnd reads the drops of a TAP's ring before its end, if its namespace is at its path. Searching
// for it would take long when hundreds go at once.
func (m *Attachments) readRingAtEnd(a *Radio) {
	if namespace := m.Finder.At(a.NamespacePath, a.Namespace); namespace != nil {
		defer namespace.Close()
		m.readRingsIn(namespace, []*Radio{a})
	}
}

func (m *Attachments) readRingsIn(namespace *os.File, attachments []*Radio) {
	states := make([]podnet.State, len(attachments))
	_ = netns.Do(namespace, func() error {
		for i, a := range attachments {
			if state, err := podnet.Read(a.Link()); err == nil {
				states[i] = state
			}
		}
		return nil
	})
	for i, a := range attachments {
		a.Counters.setRingDrops(states[i].RingDrops)
		if states[i].Index == a.Index {
			a.traffic.Store(&states[i].Traffic)
		}
	}
}
