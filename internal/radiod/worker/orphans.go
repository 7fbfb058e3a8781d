package worker

import (
	"errors"
	"strings"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
)

// orphan is an interface that belongs to nothing that is known.
type orphan struct {
	namespace netns.Identity
	name      string
	index     int
}

// Sweeper finds what nobody told us is left over: attachments without a namespace, radios of pods
// that no RadioNetwork lists, TAPs that never reached a pod. An interface goes only when it is an orphan
// in two sweeps: it may belong to an attachment that is just being made.
type Sweeper struct {
	Manager     *Manager
	temporaries map[temporary]bool
	orphans     map[orphan]bool
}

// Sweep looks once. The RadioNetworks must be known by then. Rules go with their namespace: as long as a
// pod is there, eth0 must stay closed, whether a network lists the pod or not.
func (s *Sweeper) Sweep() error {
	err := errors.Join(s.Manager.RemoveFormer(), s.Manager.removeDeserted(), removeTemporary(s.temporaries))
	found, findErr := temporaries()
	s.temporaries = map[temporary]bool{}
	for _, t := range found {
		s.temporaries[t] = true
	}
	return errors.Join(err, findErr, s.sweepPods())
}

func (s *Sweeper) sweepPods() error {
	namespaces, err := s.Manager.Finder.All()
	seen := map[orphan]bool{}
	for identity, namespace := range namespaces {
		err = errors.Join(err, netns.Do(namespace, func() error { return s.sweepPod(identity, seen) }), namespace.Close())
	}
	s.orphans = seen
	return err
}

func (s *Sweeper) sweepPod(identity netns.Identity, seen map[orphan]bool) error {
	owned, err := podnet.Owned()
	for name, state := range owned {
		podUID, ours := strings.CutPrefix(state.Owner, s.Manager.owner(""))
		o := orphan{identity, name, state.Index}
		switch {
		case !ours || s.Manager.knows(memberKey{podUID, name}):
		case s.orphans[o]:
			s.Manager.Log.Warn("removed a radio that no RadioNetwork lists", "pod", podUID, "interface", name)
			err = errors.Join(err, podnet.Remove(name))
		default:
			seen[o] = true
		}
	}
	return err
}

// knows tells that a RadioNetwork lists the member, or that it has an attachment that is about to go.
func (m *Manager) knows(key memberKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members[key] != "" || m.attachments[key] != nil
}

// removeDeserted removes attachments whose namespace is gone.
func (m *Manager) removeDeserted() error {
	return m.removeWithoutNamespace(func(*attachment) bool { return true })
}

// removeWithoutNamespace removes those of some attachments whose namespace is gone.
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
			err = errors.Join(err, m.removeIf(a.key(), func(x *attachment) bool { return x == a }))
		}
	}
	return err
}
