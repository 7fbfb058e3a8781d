package podradio

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/internal/radiod/vmnic"
)

// eth0 is the name that container runtimes give a pod's first interface; KubeVirt relies on it.
const eth0 = "eth0"

// prepareGuest inspects a launcher's namespace before the radio is made.
func (a *Radio) prepareGuest() error {
	if err := podnet.Remove(a.Guest.TAP); err != nil {
		return err
	}
	link, err := net.InterfaceByName(eth0)
	if err != nil {
		return fmt.Errorf("interface %s of the launcher: %w", eth0, err)
	}
	a.Guest.Management = link.Index
	return nil
}

// createGuest makes QEMU's TAP beside the radio, and wires the two.
func (a *Radio) createGuest(i podnet.Interface, namespace *os.File) error {
	if a.Guest == nil {
		return nil
	}
	a.Settings[a.Interface+".mtu"], a.Settings[a.Interface+".txqueuelen"] = strconv.Itoa(i.MTU), strconv.Itoa(podnet.QueueLength)
	i.Name = a.Guest.TAP
	return netns.Do(namespace, func() (err error) {
		if a.Guest.Index, err = vmnic.Create(i); err != nil {
			return err
		}
		return vmnic.Wire(a.Index, a.Guest.Index)
	})
}

// destroyGuest removes QEMU's TAP, unless QEMU still has it open, as it cannot handle its loss. If the runtime has
// released the namespace, the TAP goes with it.
func (m *Interfaces) destroyGuest(a *Radio) error {
	if a.Guest == nil || a.Guest.Index == 0 {
		return nil
	}
	namespace := m.Finder.At(a.NamespacePath, a.Namespace)
	if namespace == nil {
		return nil
	}
	defer namespace.Close()
	return netns.Do(namespace, func() error {
		_, err := tap.RemoveUnused(a.Guest.TAP, a.Guest.Index)
		return err
	})
}

// verifyGuest checks a virtual machine's additional interfaces, on a thread in its namespace.
func (a *Radio) verifyGuest() error {
	if a.Guest == nil {
		return nil
	}
	return errors.Join(vmnic.Check(a.Guest.TAP, a.Guest.Index), vmnic.Check(a.Link(), a.Index))
}
