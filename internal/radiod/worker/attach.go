package worker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Serve answers a request of the CNI plugin.
func (m *Manager) Serve(request wire.Request, namespace *os.File) wire.Answer {
	var answer wire.Answer
	var err error
	switch request.Command {
	case "ADD":
		answer, err = m.add(request, namespace)
	case "DEL":
		err = m.delete(request.Attachment)
	case "CHECK":
		err = m.check(request, namespace)
	case "GC":
		err = m.collectGarbage(request)
	case "STATUS":
	default:
		err = fmt.Errorf("command %q: want ADD, DEL, CHECK, GC or STATUS", request.Command)
	}
	if err != nil {
		answer.Error = err.Error()
		if answer.Retry && !m.refused.shouldLog(membership.Key{request.PodUID, request.Interface}) {
			return answer // the plugin repeats it several times a second
		}
		m.Log.Warn("request of the CNI plugin failed", "command", request.Command, "pod", request.PodUID,
			"namespace", request.PodNamespace, "name", request.PodName, "interface", request.Interface, "error", err)
	}
	return answer
}

func (m *Manager) add(request wire.Request, namespace *os.File) (wire.Answer, error) {
	start := time.Now()
	if namespace == nil {
		return wire.Answer{}, errors.New("namespace: ADD must pass the pod's network namespace as a descriptor")
	}
	identity, err := netns.Of(namespace)
	if err != nil {
		return wire.Answer{}, err
	}
	defer m.lockPod(request.PodUID).Unlock()
	a, mtu, err := m.admit(request, identity)
	if err != nil {
		// The RadioNetwork may not have reached this host yet.
		return wire.Answer{Retry: true}, err
	}
	answer := wire.Answer{MAC: a.Member.MAC, Address: a.Member.Address, MTU: mtu}
	if existing := m.existing(a.Key()); existing != nil {
		if existing.Wire() == a.Wire() && existing.Namespace == identity && existing.isIntact(namespace) {
			return answer, nil
		}
		if err := m.remove(existing); err != nil {
			m.Log.Warn("replace an attachment", "pod", request.PodUID, "interface", request.Interface, "error", err)
		}
	}
	if err := m.create(a, mtu, namespace); err != nil {
		return wire.Answer{}, fmt.Errorf("attach pod %s to %s: %w", request.PodUID, request.Interface, err)
	}
	took := time.Since(start)
	m.attach.Observe(took.Seconds())
	m.Log.Info("attached", "pod", request.PodUID, "namespace", request.PodNamespace, "name", request.PodName,
		"interface", request.Interface, "address", a.Member.Address, "took", took)
	return answer, nil
}

// admit decides by the pod's UID and the interface only.
func (m *Manager) admit(request wire.Request, identity netns.Identity) (*attachment, int, error) {
	n, member := m.memberFor(&request)
	if member == nil {
		return nil, 0, fmt.Errorf("pod UID %s is not a member of a radio network with interface %q: only pods that the operator "+
			"made for an experiment's node are, with the interface named after the network", request.PodUID, request.Interface)
	}
	a := &attachment{Attachment: membership.Attachment{PodUID: request.PodUID, PodNamespace: request.PodNamespace, PodName: request.PodName,
		ContainerID: request.ContainerID, Interface: member.Interface, Configuration: request.Configuration,
		NamespacePath: request.Namespace, Namespace: identity, NetworkUID: string(n.UID),
		RunUID: string(n.Spec.Experiment.UID), Network: n.Spec.Network, Member: *member, Engine: n.Spec.Engine},
		congestionControl: n.Spec.TCPCongestionControl, fd: -1}
	if member.Runtime == v1alpha1.RuntimeVM {
		a.Guest = &membership.Guest{TAP: request.Interface}
	}
	return a, int(n.Spec.MTU), nil
}

func (m *Manager) existing(key membership.Key) *attachment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.attachments[key]
}

// isIntact reports whether the interface is in the namespace as it was attached.
func (a *attachment) isIntact(namespace *os.File) bool {
	return netns.Do(namespace, func() error {
		state, err := podnet.Read(a.Link())
		if err == nil && state.Index != a.Index {
			err = fmt.Errorf("interface %s: has index %d, ours had %d", a.Link(), state.Index, a.Index)
		}
		return errors.Join(err, a.verifyGuest())
	}) == nil
}

// create makes and sets up the radio; a failure leaves nothing behind.
func (m *Manager) create(a *attachment, mtu int, namespace *os.File) (err error) {
	i, err := podnet.ParseInterface(a.Link(), a.Member.MAC, a.Member.Address, mtu, a.Member.Primary)
	if err != nil {
		return err
	}
	i.Owner, i.ForwardOnly = m.ownerOf(a), a.Guest != nil
	if err := m.folder.Remove(counterFiles, a.ID()); err != nil { // left by a worker that died before it wrote its record
		return err
	}
	a.counters, _ = m.openCountersOf(a.ID())
	defer func() {
		if err != nil {
			err = errors.Join(err, m.remove(a))
		}
	}()
	if err := netns.Do(namespace, a.prepare); err != nil {
		return err
	}
	allowed := m.currentlyAllowed()
	if err := m.carrierOf(a).put(a, i, namespace); err != nil {
		return err
	}
	if err := a.createGuest(i, namespace); err != nil {
		return err
	}
	m.setCongestionControl(a, namespace)
	if err := m.folder.Put(attachmentFiles, a.ID(), &a.Attachment); err != nil {
		return err
	}
	if err := m.join(a); err != nil {
		return err
	}
	if !m.currentlyAllowed().Equal(allowed) {
		// SetAllowed only knows pods that have joined, and may have missed this one.
		return m.applyRules(namespace, a)
	}
	return nil
}

// setCongestionControl sets TCP's congestion control in a pod. The settings show a refusal by the kernel. The
// node's agent checks them and fails the run.
func (m *Manager) setCongestionControl(a *attachment, namespace *os.File) {
	wanted := a.congestionControl
	if wanted == "" || a.Guest != nil { // a guest has its own kernel
		return
	}
	set := func() error { return netns.Do(namespace, func() error { return podnet.SetCongestionControl(wanted) }) }
	err := set()
	if err != nil && podnet.AllowCongestionControl(wanted) == nil {
		err = set()
	}
	if err != nil {
		m.Log.Warn("TCP keeps the host's congestion control", "pod", a.PodUID, "interface", a.Interface, "error", err)
		return
	}
	a.Settings[podnet.CongestionControl] = wanted
}

// prepare inspects the pod's namespace before the radio is made.
func (a *attachment) prepare() error {
	// A radio of that name is left from a worker that died before it wrote its record.
	if err := podnet.Remove(a.Link()); err != nil {
		return err
	}
	if a.Guest != nil {
		if err := a.prepareGuest(); err != nil {
			return err
		}
	}
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("interfaces: %w", err)
	}
	for _, link := range links {
		a.usedIndexes = append(a.usedIndexes, link.Index)
	}
	gateways, err := podnet.Gateways()
	for _, gateway := range gateways {
		a.Gateways = append(a.Gateways, gateway.String())
	}
	return err
}

// moveAndLoadRules moves the TAP, sets it up and loads the rules. Moving and loading each wait for the kernel's
// grace periods, more than 10 ms together, so they run at the same time. The rules only need the interface's
// index, which is requested beforehand.
func (m *Manager) moveAndLoadRules(a *attachment, temporary string, i podnet.Interface, namespace *os.File) error {
	a.Index = m.freeIndex(a)
	guarded := make(chan error, 1)
	go func(planned attachment) { guarded <- m.applyRules(namespace, &planned) }(*a)
	planned := a.Index
	err := podnet.Move(temporary, i, namespace, planned)
	if err == nil {
		err = netns.Do(namespace, func() (err error) {
			a.Index, a.Settings, err = podnet.SetUp(temporary, i)
			return err
		})
	}
	if err := errors.Join(err, <-guarded); err != nil {
		return err
	}
	if a.Index != planned {
		return m.applyRules(namespace, a)
	}
	return nil
}

// firstIndex of radio interfaces in pods, above those that the kernel assigns by itself.
const firstIndex = 1000

// freeIndex returns an index that no interface in the pod has. On hosts that have made many interfaces eth0
// may have a number above firstIndex, and the rules would treat it as a radio.
func (m *Manager) freeIndex(a *attachment) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	index := firstIndex
	for slices.Contains(a.usedIndexes, index) || len(m.keysOf(func(other *attachment) bool { return other.Namespace == a.Namespace && other.Index == index })) > 0 {
		index++
	}
	return index
}

// delete removes a container's attachment, unless another container's has replaced it.
func (m *Manager) delete(which wire.Attachment) error {
	m.mu.Lock()
	keys := m.keysOf(func(a *attachment) bool { return a.Wire() == which })
	m.mu.Unlock()
	var err error
	for _, key := range keys {
		err = errors.Join(err, m.removeIf(key, func(a *attachment) bool { return a.ContainerID == which.ContainerID }))
	}
	return err
}

func (m *Manager) check(request wire.Request, namespace *os.File) error {
	a := m.findAttachment(request)
	if a == nil {
		return fmt.Errorf("container %s has no attachment %s", request.ContainerID, request.Interface)
	}
	if namespace == nil || !a.isIntact(namespace) {
		return fmt.Errorf("interface %s of container %s: it is missing or has changed since it was attached", request.Interface, request.ContainerID)
	}
	return nil
}

// findAttachment returns the attachment that the runtime's request is about, or nil.
func (m *Manager) findAttachment(request wire.Request) *attachment {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.attachments {
		if a.PodUID == request.PodUID && a.Wire() == request.Attachment {
			return a
		}
	}
	return nil
}

// collectGarbage removes attachments that the runtime does not know any more and whose namespace is gone. The
// second condition protects against runtimes that list too few: they do not distinguish equal names of
// network configurations in two namespaces.
func (m *Manager) collectGarbage(request wire.Request) error {
	return m.removeWithoutNamespace(func(a *attachment) bool {
		return a.Configuration == request.Configuration && !slices.Contains(request.Valid, a.Wire())
	})
}
