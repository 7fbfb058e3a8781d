package worker

import (
	"errors"
	"strings"

	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/tap"
)

// RemoveOrphans removes leftovers: attachments without a namespace, radios of pods that no RadioNetwork lists, and
// TAPs that never reached a pod. The RadioNetworks must be known by then. Rules stay with their namespace:
// eth0 must stay closed as long as a pod exists, whether a network lists it or not.
func (m *Manager) RemoveOrphans() error {
	err := errors.Join(m.RemoveFormerMembers(), m.removeWithoutNamespace(func(*attachment) bool { return true }), removeTemporary())
	namespaces, findErr := m.Finder.All()
	err = errors.Join(err, findErr)
	for _, namespace := range namespaces {
		err = errors.Join(err, netns.Do(namespace, m.sweepPod), namespace.Close())
	}
	return err
}

// sweepPod removes orphans on a thread in the pod's namespace.
func (m *Manager) sweepPod() error {
	owned, err := podnet.Owned()
	for name, state := range owned {
		owner, ours := strings.CutPrefix(state.Owner, m.owner(""))
		podUID, interfaceName, ofGuest := strings.Cut(owner, " ")
		if !ofGuest {
			interfaceName = name
		}
		if !ours || m.members.IsKnown(membership.Key{PodUID: podUID, Interface: interfaceName}) {
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
func (m *Manager) removeWithoutNamespace(which func(*attachment) bool) (err error) {
	m.mu.Lock()
	var all []*attachment
	for _, a := range m.attachments {
		if which(a) {
			all = append(all, a)
		}
	}
	m.mu.Unlock()
	for _, a := range all {

		file, findErr := m.Finder.Find(a.NamespacePath, a.Namespace)
		if findErr == nil {
			_ = file.Close()
			continue
		}
		if errors.Is(findErr, netns.ErrGone) {
			err = errors.Join(err, m.removeIf(a.Key(), func(x *attachment) bool { return x == a }))
		}
	}
	return err
}
