package worker

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// carrier makes the radio interfaces of attachments and carries their frames: radiod's own engine with TAPs,
// or EMANE with veths.
type carrier interface {
	// put makes the radio in the pod's namespace, with the pod's rules.
	put(a *attachment, i podnet.Interface, namespace *os.File) error
	// adopt takes over a radio of an earlier worker that no process holds, after it was seen in its
	// namespace.
	adopt(a *attachment, namespace *os.File) error
	// join lets frames flow; the manager's lock is held.
	join(n *network, a *attachment) error
	// leave ends that: a's counters do not change any more.
	leave(a *attachment)
	// destroy removes the radio, if it is still there.
	destroy(a *attachment) error
	// release releases the radio, which stays for the next worker; the manager's lock is held.
	release(a *attachment)
}

// carrierOf returns an attachment's carrier, by its network's engine.
func (m *Manager) carrierOf(a *attachment) carrier {
	if a.Engine == v1alpha1.EngineEMANE {
		return veths{m}
	}
	return taps{m}
}

// taps are the radios that radiod's own engine serves.
type taps struct{ *Manager }

func (m taps) put(a *attachment, i podnet.Interface, namespace *os.File) error {
	fd, temporary, err := tap.Create()
	if err != nil {
		return err
	}
	a.fd = fd
	if err := m.Keeper.Hold(a.ID(), fd); err != nil {
		return err
	}
	return m.moveAndLoadRules(a, temporary, i, namespace)
}

// adopt opens the TAP of a record in its pod's namespace and passes it to the parent.
func (m taps) adopt(a *attachment, namespace *os.File) error {
	err := netns.Do(namespace, func() (err error) {
		a.fd, err = tap.Open(a.Link(), a.Index)
		return err
	})
	if err != nil {
		return err
	}
	a.Pinned = true
	return errors.Join(m.folder.Put(attachmentFiles, a.ID(), &a.Attachment), m.Keeper.Hold(a.ID(), a.fd))
}

func (m taps) join(n *network, a *attachment) error {
	mac, err := radio.ParseMAC(a.Member.MAC)
	if err != nil {
		return err
	}
	if n.running == nil {
		if err = m.startNetwork(n); err != nil {
			return err
		}
		if m.restoring {
			n.running.Pause()
		}
	}
	key, containerID := a.Key(), a.ContainerID
	options := driver.PortOptions{Descriptor: a.fd,
		PortOptions: radio.PortOptions{Name: a.Member.Node, Group: a.Member.Group, NEM: int(a.Member.NEM), MAC: mac, Ledger: &a.counters.ledger},
		Gone:        func() { m.interfaceGone(key, containerID) }}
	if err := m.setCaptures(n, a, func(t *capture.Tap) { options.Tap = tapOf(t) }); err != nil {
		n.message = err.Error()
		if !m.restoring && !n.hasBegun() { // a run does not begin without its captures
			a.captureError = refusal.Of(err)
		}
	}
	port, err := n.running.Attach(options)
	if err != nil {
		return err
	}
	a.port = port
	a.counters.keepMappedFor(a.port.Port)
	return nil
}

func (m taps) leave(a *attachment) {
	if a.port != nil {
		m.readSlotsAtEnd(a)
		a.port.Detach()
	}
}

// destroy closes the TAP, which vanishes with its last descriptor.
func (m taps) destroy(a *attachment) error {
	if a.fd < 0 || !m.mayClose(a) {
		return nil
	}
	return errors.Join(tap.Destroy(a.fd), m.Keeper.Drop(a.ID()))
}

func (m taps) release(a *attachment) {
	a.port.Detach()
	if m.mayClose(a) {
		_ = unix.Close(a.fd)
	}
}

// verifyInterface checks that the radio of a record still exists and has the same owner, on a thread in its
// namespace.
func (a *attachment) verifyInterface(owner string) error {
	state, err := podnet.Read(a.Link())
	replaced := state.Index != a.Index || state.Owner != "" && state.Owner != owner
	if errors.Is(err, os.ErrNotExist) || err == nil && replaced {
		return fmt.Errorf("%w: its interface %s was removed", netns.ErrGone, a.Link())
	}
	if guestErr := a.verifyGuest(); err == nil && guestErr != nil {
		return fmt.Errorf("%w: the wire to QEMU is gone: %w", netns.ErrGone, guestErr)
	}
	return err
}
