package attach

import (
	"cmp"
	"maps"
	"slices"

	"vignette.dev/vignette/internal/radiod/netns"
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
		m.interfaces.ReadRings(identity, pods[identity])
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
