package worker

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Restore takes up the attachments of earlier workers: with the descriptors that the parent held,
// or, where the parent has died as well, by opening the TAPs in their pods' namespaces. What cannot
// be taken up is removed. Errors are for the log: the rest goes on.
func (m *Manager) Restore(held map[string]int) error {
	networks, err := load[v1alpha1.RadioNetwork](m.store, networkFiles)
	for i := range networks {
		err = errors.Join(err, m.SetNetwork(&networks[i]))
	}
	records, loadErr := load[record](m.store, attachmentFiles)
	err = errors.Join(err, loadErr)
	for _, r := range records {
		fd, ok := held[r.id()]
		if !ok {
			fd = -1
		}
		delete(held, r.id())
		if restoreErr := m.restore(r, fd); restoreErr != nil {
			err = errors.Join(err, fmt.Errorf("restore %s of pod %s: %w", r.Interface, r.PodUID, restoreErr))
		}
	}
	for id, fd := range held {
		err = errors.Join(err, tap.Destroy(fd), m.Keeper.Drop(id))
	}
	return errors.Join(err, removeTemporary())
}

func (m *Manager) restore(r record, fd int) error {
	defer m.lockPod(r.PodUID).Unlock()
	a := &attachment{record: r, fd: fd}
	if fd < 0 {
		if err := m.adopt(a); err != nil {
			if errors.Is(err, netns.ErrGone) {
				err = nil
			}
			return errors.Join(err, m.store.remove(attachmentFiles, r.id()))
		}
	}
	if err := m.join(a); err != nil {
		return errors.Join(err, m.remove(a))
	}
	return nil
}

// adopt opens the TAP of a record in its pod's namespace and gives it to the parent.
func (m *Manager) adopt(a *attachment) error {
	namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace)
	if err != nil {
		return err
	}
	defer namespace.Close()
	err = netns.Do(namespace, func() error {
		a.fd, err = tap.Open(a.Interface, a.Index)
		return err
	})
	if err != nil {
		return err
	}
	a.Pinned = true
	return errors.Join(m.store.put(attachmentFiles, a.id(), &a.record), m.Keeper.Hold(a.id(), a.fd))
}

// removeTemporary removes TAPs that never reached their pods.
func removeTemporary() error {
	links, err := net.Interfaces()
	for _, l := range links {
		if strings.HasPrefix(l.Name, tap.TemporaryPrefix) {
			err = errors.Join(err, podnet.Remove(l.Name))
		}
	}
	return err
}
