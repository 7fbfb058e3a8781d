// Package attach sets up and removes the radios of pods as the CNI plugin asks for it, and restores them after a restart of
// radiod. It owns their interfaces, descriptors and counter files.
package attach

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Keeper holds descriptors while workers come and go; a *holder.Client is one.
type Keeper interface {
	Hold(id string, fd int) error
	Drop(id string) error
}

// Members are those of the host; a *membership.Store has them.
type Members interface {
	Member(key membership.Key) (*v1alpha1.RadioNetwork, *v1alpha1.Member)
	// Lists reports whether a network lists the member, IsKnown whether any does, or it has an attachment.
	Lists(uid string, key membership.Key) bool
	IsKnown(key membership.Key) bool
	// Attach adds an attachment, if its network lists it.
	Attach(*membership.Attachment) error
	Detach(*membership.Attachment)
}

// Networks carry the frames of radios.
type Networks interface {
	// Join lets a radio's frames flow. They wait until Resume while the networks are restored.
	Join(*Radio) error
	// Leave ends that, if it has joined, and records the radio's last counters.
	Leave(*Radio) error
	// Release ends it for the next worker, and records nothing.
	Release(*Radio)
	// Pause keeps frames from flowing in networks that begin, until Resume.
	Pause()
	Resume() error
}

// Rules say what pods may reach through eth0; an *isolation.Rules has them.
type Rules interface {
	Allowed() podnet.Allowed
	Apply(namespace *os.File, a *membership.Attachment) error
}

// Options of Attachments.
type Options struct {
	Folder   state.Folder
	Keeper   Keeper
	Finder   *netns.Finder
	Members  Members
	Networks Networks
	Rules    Rules
	// LockPod serialises what is done to a pod, until unlock is called.
	LockPod func(uid string) (unlock func())
	// Record records gaps of a run for its results. When it returns they are stored where they outlive the worker.
	Record func(runUID string, gaps []runapi.RadioGap) error
	// Changed is called when the attachments of a network have changed, or their trouble.
	Changed func(networkUID string)
	Log     *slog.Logger
}

// Attachments of this host.
type Attachments struct {
	Options
	instance string               // of the state folder
	took     prometheus.Histogram // how long attachments took
	refused  refusalLog

	// closing guards the radios' closed.
	closing sync.Mutex

	mu             sync.Mutex // protects the rest; never held while the kernel sets up interfaces
	radios         map[membership.Key]*Radio
	missing        map[membership.Key]*missing
	lastWorkerSeen int64 // when the previous worker was last seen; set by Restore
	nextRing       int   // index of the next pod whose rings are read
}

// PodLocks serialise what is done to pods.
type PodLocks struct {
	seed maphash.Seed
	pods [64]sync.Mutex // by hash of the pod's UID
}

// NewPodLocks are free.
func NewPodLocks() *PodLocks { return &PodLocks{seed: maphash.MakeSeed()} }

// Lock a pod until unlock is called.
func (p *PodLocks) Lock(uid string) (unlock func()) {
	l := &p.pods[maphash.String(p.seed, uid)%uint64(len(p.pods))]
	l.Lock()
	return l.Unlock
}

// Radio is one attachment.
type Radio struct {
	membership.Attachment
	Counters *CounterFile

	fd int
	// closed reports whether fd is closed, and may be another file's now. Attachments.closing guards it.
	closed bool
	gone   func()
	// traffic as last counted by the kernel.
	traffic atomic.Pointer[radio.Traffic]
	// unreadDrops are frames that found no room in the TAP's ring before this worker read them.
	unreadDrops uint64
	// usedIndexes are the interface indexes that the pod's namespace had before.
	usedIndexes []int
	// congestionControl of TCP for the pod; empty for its host's.
	congestionControl string
}

// Descriptor of the TAP, which Attachments closes after the radio has left its network.
func (r *Radio) Descriptor() int { return r.fd }

// Gone is to be called when the kernel has removed the interface. It must not be called with a lock held.
func (r *Radio) Gone() { r.gone() }

// Traffic of a veth as the kernel counted it lately.
func (r *Radio) Traffic() (t radio.Traffic) {
	if last := r.traffic.Load(); last != nil {
		t = *last
	}
	return t
}

// New reads no state; see Restore.
func New(o Options) (*Attachments, error) {
	instance, err := o.Folder.Instance()
	if err != nil {
		return nil, err
	}
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "vignette_radio_attach_seconds", Help: "Time to attach a pod to a radio network.",
		Buckets: []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}})
	return &Attachments{Options: o, instance: instance, took: took, radios: map[membership.Key]*Radio{}, missing: map[membership.Key]*missing{}}, nil
}

// Seconds is how long attachments took.
func (m *Attachments) Seconds() prometheus.Collector { return m.took }

// owner returns the owner of a pod's radios. Another radiod may run on the same kernel, as in a cluster of
// containers, and must not take them for its orphans.
func (m *Attachments) owner(podUID string) string { return m.instance + " " + podUID }

// ownerOf returns the owner of an attachment's interfaces. In a launcher they are not named after the
// network, so the owner includes it.
func (m *Attachments) ownerOf(a *Radio) string {
	if a.Guest != nil {
		return m.owner(a.PodUID) + " " + a.Interface
	}
	return m.owner(a.PodUID)
}

// Serve answers a request of the CNI plugin.
func (m *Attachments) Serve(request wire.Request, namespace *os.File) wire.Answer {
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
		if answer.Retry && !m.refused.shouldLog(membership.Key{PodUID: request.PodUID, Interface: request.Interface}) {
			return answer // the plugin repeats it several times a second
		}
		m.Log.Warn("request of the CNI plugin failed", "command", request.Command, "pod", request.PodUID,
			"namespace", request.PodNamespace, "name", request.PodName, "interface", request.Interface, "error", err)
	}
	return answer
}

func (m *Attachments) add(request wire.Request, namespace *os.File) (wire.Answer, error) {
	start := time.Now()
	if namespace == nil {
		return wire.Answer{}, errors.New("namespace: ADD must pass the pod's network namespace as a descriptor")
	}
	identity, err := netns.Of(namespace)
	if err != nil {
		return wire.Answer{}, err
	}
	defer m.LockPod(request.PodUID)()
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
	m.took.Observe(took.Seconds())
	m.Log.Info("attached", "pod", request.PodUID, "namespace", request.PodNamespace, "name", request.PodName,
		"interface", request.Interface, "address", a.Member.Address, "took", took)
	return answer, nil
}

// admit decides by the pod's UID and the interface only.
func (m *Attachments) admit(request wire.Request, identity netns.Identity) (*Radio, int, error) {
	n, member := m.memberFor(&request)
	if member == nil {
		return nil, 0, fmt.Errorf("pod UID %s is not a member of a radio network with interface %q: only pods that the operator "+
			"made for an experiment's node are, with the interface named after the network", request.PodUID, request.Interface)
	}
	a := &Radio{Attachment: membership.Attachment{PodUID: request.PodUID, PodNamespace: request.PodNamespace, PodName: request.PodName,
		ContainerID: request.ContainerID, Interface: member.Interface, Configuration: request.Configuration,
		NamespacePath: request.Namespace, Namespace: identity, NetworkUID: string(n.UID),
		RunUID: string(n.Spec.Experiment.UID), Network: n.Spec.Network, Member: *member, Engine: n.Spec.Engine},
		congestionControl: n.Spec.TCPCongestionControl, fd: -1}
	if member.Runtime == v1alpha1.RuntimeVM {
		a.Guest = &membership.Guest{TAP: request.Interface}
	}
	return a, int(n.Spec.MTU), nil
}

func (m *Attachments) existing(key membership.Key) *Radio {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.radios[key]
}

// isIntact reports whether the interface is in the namespace as it was attached.
func (a *Radio) isIntact(namespace *os.File) bool {
	return netns.Do(namespace, func() error {
		state, err := podnet.Read(a.Link())
		if err == nil && state.Index != a.Index {
			err = fmt.Errorf("interface %s: has index %d, ours had %d", a.Link(), state.Index, a.Index)
		}
		return errors.Join(err, a.verifyGuest())
	}) == nil
}

// create makes and sets up the radio; a failure leaves nothing behind.
func (m *Attachments) create(a *Radio, mtu int, namespace *os.File) (err error) {
	i, err := podnet.ParseInterface(a.Link(), a.Member.MAC, a.Member.Address, mtu, a.Member.Primary)
	if err != nil {
		return err
	}
	i.Owner, i.ForwardOnly = m.ownerOf(a), a.Guest != nil
	if err := m.Folder.Remove(counterFiles, a.ID()); err != nil { // left by a worker that died before it wrote its record
		return err
	}
	a.Counters, _ = m.openCountersOf(a.ID())
	defer func() {
		if err != nil {
			err = errors.Join(err, m.remove(a))
		}
	}()
	if err := netns.Do(namespace, a.prepare); err != nil {
		return err
	}
	allowed := m.Rules.Allowed()
	if err := m.carrierOf(a).put(a, i, namespace); err != nil {
		return err
	}
	if err := a.createGuest(i, namespace); err != nil {
		return err
	}
	m.setCongestionControl(a, namespace)
	if err := m.Folder.Put(attachmentFiles, a.ID(), &a.Attachment); err != nil {
		return err
	}
	if err := m.join(a); err != nil {
		return err
	}
	if !m.Rules.Allowed().Equal(allowed) {
		// SetAllowed only knows pods that have joined, and may have missed this one.
		return m.Rules.Apply(namespace, &a.Attachment)
	}
	return nil
}

// setCongestionControl sets TCP's congestion control in a pod. The settings show a refusal by the kernel. The
// node's agent checks them and fails the run.
func (m *Attachments) setCongestionControl(a *Radio, namespace *os.File) {
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
func (a *Radio) prepare() error {
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
func (m *Attachments) moveAndLoadRules(a *Radio, temporary string, i podnet.Interface, namespace *os.File) error {
	a.Index = m.freeIndex(a)
	guarded := make(chan error, 1)
	go func(planned membership.Attachment) { guarded <- m.Rules.Apply(namespace, &planned) }(a.Attachment)
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
		return m.Rules.Apply(namespace, &a.Attachment)
	}
	return nil
}

// firstIndex of radio interfaces in pods, above those that the kernel assigns by itself.
const firstIndex = 1000

// freeIndex returns an index that no interface in the pod has. On hosts that have made many interfaces eth0
// may have a number above firstIndex, and the rules would treat it as a radio.
func (m *Attachments) freeIndex(a *Radio) int {
	index := firstIndex
	for slices.Contains(a.usedIndexes, index) || len(m.all(func(other *Radio) bool { return other.Namespace == a.Namespace && other.Index == index })) > 0 {
		index++
	}
	return index
}

// delete removes a container's attachment, unless another container's has replaced it.
func (m *Attachments) delete(which wire.Attachment) error {
	var err error
	for _, a := range m.all(func(a *Radio) bool { return a.Wire() == which }) {
		err = errors.Join(err, m.removeIf(a.Key(), func(a *Radio) bool { return a.ContainerID == which.ContainerID }))
	}
	return err
}

func (m *Attachments) check(request wire.Request, namespace *os.File) error {
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
func (m *Attachments) findAttachment(request wire.Request) *Radio {
	for _, a := range m.all(func(a *Radio) bool { return a.PodUID == request.PodUID && a.Wire() == request.Attachment }) {
		return a
	}
	return nil
}

// collectGarbage removes attachments that the runtime does not know any more and whose namespace is gone. The
// second condition protects against runtimes that list too few: they do not distinguish equal names of
// network configurations in two namespaces.
func (m *Attachments) collectGarbage(request wire.Request) error {
	return m.removeWithoutNamespace(func(a *Radio) bool {
		return a.Configuration == request.Configuration && !slices.Contains(request.Valid, a.Wire())
	})
}

// join adds the attachment's radio to its network.
func (m *Attachments) join(a *Radio) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.Members.Attach(&a.Attachment); err != nil {
		return err
	}
	key, containerID := a.Key(), a.ContainerID
	a.gone = func() { m.interfaceGone(key, containerID) }
	if err := m.Networks.Join(a); err != nil {
		m.Members.Detach(&a.Attachment)
		return err
	}
	m.radios[a.Key()] = a
	m.Changed(a.NetworkUID)
	return nil
}

// interfaceGone cleans up after a pod that went without a DEL.
func (m *Attachments) interfaceGone(key membership.Key, containerID string) {
	m.Log.Info("interface went with its pod", "pod", key.PodUID, "interface", key.Interface)
	err := m.removeIf(key, func(a *Radio) bool { return a.ContainerID == containerID })
	if err != nil {
		m.Log.Warn("clean up after a pod", "error", err)
	}
}

// removeIf removes the attachment if there is one and meant accepts it.
func (m *Attachments) removeIf(key membership.Key, meant func(*Radio) bool) error {
	defer m.LockPod(key.PodUID)()
	m.mu.Lock()
	a := m.radios[key]
	m.mu.Unlock()
	if a == nil || meant != nil && !meant(a) {
		return nil
	}
	return m.remove(a)
}

// remove ends an attachment; its pod is locked. The interface vanishes with the last descriptor.
func (m *Attachments) remove(a *Radio) error {
	m.readRingAtEnd(a)
	m.mu.Lock()
	if m.radios[a.Key()] == a {
		delete(m.radios, a.Key())
	}
	m.mu.Unlock()
	m.Members.Detach(&a.Attachment)
	// The last counters are recorded before their memory is freed.
	err := errors.Join(m.Networks.Leave(a), m.removeFiles(a), m.carrierOf(a).destroy(a), m.destroyGuest(a))
	m.Changed(a.NetworkUID)
	return err
}

// RemoveOfNetwork removes the attachments of a network.
func (m *Attachments) RemoveOfNetwork(uid string) (err error) {
	for _, a := range m.all(func(a *Radio) bool { return a.NetworkUID == uid }) {
		err = errors.Join(err, m.removeIf(a.Key(), nil))
	}
	return err
}

// RemoveFormerMembers removes attachments that no RadioNetwork lists any more.
func (m *Attachments) RemoveFormerMembers() (err error) {
	for _, a := range m.all(func(a *Radio) bool { return !m.Members.Lists(a.NetworkUID, a.Key()) }) {
		err = errors.Join(err, m.removeIf(a.Key(), nil))
	}
	return err
}

// all radios that which accepts.
func (m *Attachments) all(which func(*Radio) bool) (all []*Radio) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.radios {
		if which(a) {
			all = append(all, a)
		}
	}
	return all
}

// Close releases descriptors, but leaves the interfaces for the next worker.
func (m *Attachments) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.radios {
		m.Networks.Release(a)
		m.Members.Detach(&a.Attachment)
		m.carrierOf(a).release(a)
	}
	m.radios = map[membership.Key]*Radio{}
}

// mayClose reports whether the caller must close the attachment's descriptor. A pod may go while the worker
// ends, and a second close could close another file.
func (m *Attachments) mayClose(a *Radio) bool {
	m.closing.Lock()
	defer m.closing.Unlock()
	first := !a.closed
	a.closed = true
	return first
}

// refusalLog remembers which refusals were logged lately.
type refusalLog struct {
	mu     sync.Mutex
	logged map[membership.Key]time.Time
}

// refusalInterval between two log lines about the same pod and interface.
const refusalInterval = time.Minute

// shouldLog reports whether no such refusal was logged lately, and records it.
func (r *refusalLog) shouldLog(key membership.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.logged[key]) < refusalInterval {
		return false
	}
	if r.logged == nil {
		r.logged = map[membership.Key]time.Time{}
	}
	for old, at := range r.logged {
		if now.Sub(at) >= refusalInterval {
			delete(r.logged, old)
		}
	}
	r.logged[key] = now
	return true
}
