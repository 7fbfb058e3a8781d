package attach

import (
	"errors"
	"strings"

	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// RemovePinned releases namespaces that only radiod's descriptors keep alive, or those that others of radiod are known to.
func (m *Attachments) RemovePinned(others func(podUID string) bool) error {
	return m.removeWithoutNamespace(func(a *Radio) bool {
		return a.Pinned || a.Engine == v1alpha1.EngineEMANE || others(a.PodUID)
	})
}

// RemoveOrphans removes leftovers: attachments without a namespace, radios of pods that no RadioNetwork lists, and
// TAPs that never reached a pod. The RadioNetworks must be known by then. Rules stay with their namespace:
// eth0 must stay closed as long as a pod exists, whether a network lists it or not.
func (m *Attachments) RemoveOrphans() error {
	err := errors.Join(m.RemoveFormerMembers(), m.removeWithoutNamespace(func(*Radio) bool { return true }), removeTemporary())
	namespaces, findErr := m.Finder.All()
	err = errors.Join(err, findErr)
	for _, namespace := range namespaces {
		err = errors.Join(err, netns.Do(namespace, m.SweepPod), namespace.Close())
	}
	return err
}

// SweepPod removes orphans on a thread in the pod's namespace.
func (m *Attachments) SweepPod() error {
	owned, err := podnet.Owned()
	for name, state := range owned {
		owner, ours := strings.CutPrefix(state.Owner, m.instance+" ")
		podUID, interfaceName, ofGuest := strings.Cut(owner, " ")
		if !ofGuest {
			interfaceName = name
		}
		if !ours || m.Members.IsKnown(membership.Key{PodUID: podUID, Interface: interfaceName}) {
			continue
		}
		removed, reclaimErr := removeOrphan(name, &state)
		err = errors.Join(err, reclaimErr)
		if removed {
			m.Log.Warn("removed a radio that no RadioNetwork lists", "pod", podUID, "interface", name)
		}
	}
	return err
}

// removeOrphan removes an orphan: a TAP that no process holds, or a veth pair.
func removeOrphan(name string, state *podnet.State) (removed bool, err error) {
	if state.Veth {
		return true, podnet.Remove(name)
	}
	return tap.RemoveUnused(name, state.Index)
}

// removeWithoutNamespace removes the selected attachments whose namespace is gone.
func (m *Attachments) removeWithoutNamespace(which func(*Radio) bool) (err error) {
	for _, a := range m.all(which) {
		file, findErr := m.Finder.Find(a.NamespacePath, a.Namespace)
		if findErr == nil {
			_ = file.Close()
			continue
		}
		if errors.Is(findErr, netns.ErrGone) {
			err = errors.Join(err, m.removeIf(a.Key(), func(x *Radio) bool { return x == a }))
		}
	}
	return err
}
