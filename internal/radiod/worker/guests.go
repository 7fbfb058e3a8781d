package worker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/vmnic"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// eth0 is the name that container runtimes give a pod's first interface, and KubeVirt relies on.
const eth0 = "eth0"

// asked finds the member that a request of the runtime means; the lock is held. KubeVirt gives a virtual machine's interfaces names of
// its own. Which of its networks is meant is then for the configuration to say: that the machine is a member, its launcher's UID tells.
func (m *Manager) asked(request *wire.Request) (*network, *v1alpha1.Member) {
	if n, member := m.member(memberKey{request.PodUID, request.Interface}); member != nil {
		return n, member
	}
	if n, member := m.member(memberKey{request.PodUID, request.Network}); member != nil && member.Runtime == v1alpha1.RuntimeVM {
		return n, member
	}
	return nil, nil
}

// prepareGuest looks into a launcher's namespace before the radio comes.
func (a *attachment) prepareGuest() error {
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

// putGuest makes QEMU's TAP beside a radio that is there, and wires the two.
func (a *attachment) putGuest(i podnet.Interface, namespace *os.File) error {
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

// destroyGuest removes QEMU's TAP, unless QEMU still has it. One whose namespace the runtime has let go of goes with that.
func (m *Manager) destroyGuest(a *attachment) error {
	if a.Guest == nil || a.Guest.Index == 0 {
		return nil
	}
	namespace := m.Finder.At(a.NamespacePath, a.Namespace)
	if namespace == nil {
		return nil
	}
	defer namespace.Close()
	return netns.Do(namespace, func() error { return vmnic.Reclaim(a.Guest.TAP, a.Guest.Index) })
}

// seenGuest tells that what a virtual machine has besides radiod's interface is there, on a thread in its namespace.
func (a *attachment) seenGuest() error {
	if a.Guest == nil {
		return nil
	}
	return errors.Join(vmnic.Check(a.Guest.TAP, a.Guest.Index), vmnic.Check(a.link(), a.Index))
}
