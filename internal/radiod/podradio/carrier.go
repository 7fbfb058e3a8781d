package podradio

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/internal/radiod/veth"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// carrier makes the radio interfaces of attachments and carries their frames: radiod's own engine with TAPs,
// or EMANE with veths.
type carrier interface {
	// put makes the radio in the pod's namespace, with the pod's rules.
	put(a *Radio, i podnet.Interface, namespace *os.File) error
	// adopt takes over a radio of an earlier worker that no process holds, after it was seen in its
	// namespace.
	adopt(a *Radio, namespace *os.File) error
	// destroy removes the radio, if it is still there.
	destroy(a *Radio) error
	// release releases the radio, which stays for the next worker.
	release(a *Radio)
}

// carrierOf returns an attachment's carrier, by its network's engine.
func (m *Interfaces) carrierOf(a *Radio) carrier {
	if a.Engine == v1alpha1.EngineEMANE {
		return veths{m}
	}
	return taps{m}
}

// taps are the radios that radiod's own engine serves.
type taps struct{ *Interfaces }

func (m taps) put(a *Radio, i podnet.Interface, namespace *os.File) error {
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
func (m taps) adopt(a *Radio, namespace *os.File) error {
	fd, err := netns.Get(namespace, func() (int, error) { return tap.Open(a.Link(), a.Index) })
	if err != nil {
		return err
	}
	a.fd, a.Pinned, a.unheld = fd, true, true
	return m.hold(a)
}

// destroy closes the TAP, which vanishes with its last descriptor.
func (m taps) destroy(a *Radio) error {
	if a.fd < 0 || !a.mayClose() {
		return nil
	}
	return errors.Join(tap.Destroy(a.fd), m.Keeper.Drop(a.ID()))
}

func (m taps) release(a *Radio) {
	if a.mayClose() {
		_ = unix.Close(a.fd)
	}
}

// verifyInterface checks that the radio of a record still exists and has the same owner, on a thread in its
// namespace.
func (a *Radio) verifyInterface(owner string) error {
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

// temporaryVeth is a radio's name in its pod until it gets its own.
const temporaryVeth = "vgveth0"

// veths are the radios whose other ends are in a pod of EMANE, which carries the frames. An attachment's
// counters are the last ones that its process reported. They are kept in its counter file, because the
// process counts from its own start.
type veths struct{ *Interfaces }

func (m veths) put(a *Radio, i podnet.Interface, namespace *os.File) error {
	if err := veth.Create(namespace, temporaryVeth, veth.ParkedName(a.ID()), i); err != nil {
		return err
	}
	err := netns.Do(namespace, func() (err error) {
		a.Index, a.Settings, err = podnet.SetUp(temporaryVeth, i)
		return err
	})
	if err != nil {
		return errors.Join(err, netns.Do(namespace, func() error { return veth.Remove(temporaryVeth) }))
	}
	a.Settings["engine"] = string(v1alpha1.EngineEMANE)
	return m.Rules.Apply(namespace, &a.Attachment)
}

// adopt does nothing: the veth pair works without radiod.
func (m veths) adopt(*Radio, *os.File) error { return nil }

func (m veths) destroy(a *Radio) error {
	namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace)
	if errors.Is(err, netns.ErrGone) {
		return nil // the pair went with it
	}
	if err != nil {
		return err
	}
	defer namespace.Close()
	return netns.Do(namespace, func() error {
		if state, err := podnet.Read(a.Link()); err != nil || state.Index != a.Index {
			return nil // another interface has the name now
		}
		return veth.Remove(a.Link())
	})
}

func (m veths) release(*Radio) {}
