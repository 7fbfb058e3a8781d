// Package attach sets up and removes the radios of pods as the CNI plugin asks for it, and restores them after a restart of
// radiod. It owns their interfaces, descriptors and counter files.
package attach

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/cache"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podradio"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/radiod/wire"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

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
	// Left says what flowed without a worker, Restored that the time before is recorded.
	Left() (dataplane.Left, error)
	Restored() error
}

// Options of Attachments.
type Options struct {
	podradio.Options // without Indexes
	Folder           state.Folder
	Members          *membership.Store
	Networks         Networks
	// LockPod serialises what is done to a pod, until unlock is called.
	LockPod func(uid string) (unlock func())
	// Record records gaps of a run for its results. When it returns they are stored where they outlive the worker.
	Record func(runUID string, gaps []runapi.RadioGap) error
	// Changed is called when the attachments of a network have changed, or their trouble.
	Changed func(networkUID string)
}

// attachmentFiles and counterFiles are kinds of files in the state folder. Counters are not JSON, despite their names.
const (
	attachmentFiles = "attachments"
	counterFiles    = "counters"
)

// Radio is one attachment.
type Radio = podradio.Radio

// refusalInterval between two log lines about the same pod and interface.
const refusalInterval = time.Minute

// Attachments of this host.
type Attachments struct {
	Options
	interfaces *podradio.Interfaces
	instance   string               // of the state folder
	took       prometheus.Histogram // how long attachments took
	refused    *cache.Expiring      // requests whose refusal was logged lately

	// When the previous worker was last seen, and the previous data plane or else the worker, by CLOCK_REALTIME. Restore sets them.
	workerSeen, radioSeen atomic.Int64

	mu       sync.Mutex // protects the rest; never held while the kernel makes or configures interfaces
	radios   map[membership.Key]*Radio
	missing  map[membership.Key]*missing
	nextRing int // index of the next pod whose rings are read
}

// New reads no state; see Restore.
func New(o Options) (*Attachments, error) {
	instance, err := o.Folder.Instance()
	if err != nil {
		return nil, err
	}
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "vignette_radio_attach_seconds", Help: "Time to attach a pod to a radio network.",
		Buckets: []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}})
	m := &Attachments{Options: o, instance: instance, took: took, refused: cache.NewExpiring(), radios: map[membership.Key]*Radio{}, missing: map[membership.Key]*missing{}}
	m.Indexes = m.indexes
	m.interfaces = &podradio.Interfaces{Options: m.Options.Options}
	return m, nil
}

// Seconds is how long attachments took.
func (m *Attachments) Seconds() prometheus.Collector { return m.took }

// ownerOf returns the owner of an attachment's interfaces. Another radiod may run on the same kernel, as in a cluster of
// containers, and must not take them for its orphans. In a launcher they are not named after the network, so the owner
// includes it.
func ownerOf(instance string, a *Radio) string {
	owner := instance + " " + a.PodUID
	if a.Guest != nil {
		owner += " " + a.Interface
	}
	return owner
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
		if answer.Retry { // the plugin repeats it several times a second
			key := membership.Key{PodUID: request.PodUID, Interface: request.Interface}
			if _, logged := m.refused.Get(key); logged {
				return answer
			}
			m.refused.Set(key, nil, refusalInterval)
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
		if existing.Wire() == a.Wire() && existing.Namespace == identity && existing.IsIntact(namespace) {
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
	n, member := memberFor(m.Members, &request)
	if member == nil {
		return nil, 0, fmt.Errorf("pod UID %s is not a member of a radio network with interface %q: only pods that the operator "+
			"made for an experiment's node are, with the interface named after the network", request.PodUID, request.Interface)
	}
	a := podradio.New(membership.Attachment{PodUID: request.PodUID, PodNamespace: request.PodNamespace, PodName: request.PodName,
		ContainerID: request.ContainerID, Interface: member.Interface, Configuration: request.Configuration,
		NamespacePath: request.Namespace, Namespace: identity, NetworkUID: string(n.UID),
		RunUID: string(n.Spec.Experiment.UID), Network: n.Spec.Network, Member: *member, Engine: n.Spec.Engine}, -1)
	a.CongestionControl = n.Spec.TCPCongestionControl
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

// create makes and sets up the radio; a failure leaves nothing behind.
func (m *Attachments) create(a *Radio, mtu int, namespace *os.File) (err error) {
	if err := m.Folder.Remove(counterFiles, a.ID()); err != nil { // left by a worker that died before it wrote its record
		return err
	}
	m.openCounters(a)
	defer func() {
		if err != nil {
			err = errors.Join(err, m.remove(a))
		}
	}()
	allowed := m.Rules.Allowed()
	if err := m.interfaces.Create(a, mtu, ownerOf(m.instance, a), namespace); err != nil {
		return err
	}
	if err := m.Folder.Put(attachmentFiles, a.ID(), &a.Attachment); err != nil {
		return err
	}
	if err := m.join(a); err != nil {
		return err
	}
	if !m.Rules.Allowed().Equal(allowed) {
		// A change of the rules only knows pods that have joined, and may have missed this one.
		return m.Rules.Apply(namespace, &a.Attachment)
	}
	return nil
}

// openCounters opens an attachment's counters; fresh reports whether they are new. If that fails they are in memory that a
// kill would lose, so that the node still gets its radio.
func (m *Attachments) openCounters(a *Radio) (fresh bool) {
	path, err := m.Folder.Path(counterFiles, a.ID())
	if err == nil {
		a.Counters, fresh, err = dataplane.OpenCounters(path)
	}
	if err != nil {
		m.Log.Error("this attachment's counters will not outlive the worker", "pod", a.PodUID, "interface", a.Interface, "error", err)
		a.Counters, fresh = dataplane.CountersInMemory(), true
	}
	return fresh
}

// indexes of the radios in a namespace.
func (m *Attachments) indexes(namespace netns.Identity) (all []int) {
	for _, a := range m.all(func(a *Radio) bool { return a.Namespace == namespace }) {
		all = append(all, a.Index)
	}
	return all
}

// memberFor returns the member of a request of the runtime. KubeVirt chooses the names of a virtual machine's
// interfaces. The configuration then names the network. The launcher's UID still proves that the machine is a member.
func memberFor(members *membership.Store, request *wire.Request) (*v1alpha1.RadioNetwork, *v1alpha1.Member) {
	if n, member := members.Member(membership.Key{PodUID: request.PodUID, Interface: request.Interface}); member != nil {
		return n, member
	}
	if n, member := members.Member(membership.Key{PodUID: request.PodUID, Interface: request.Network}); member != nil && member.Runtime == v1alpha1.RuntimeVM {
		return n, member
	}
	return nil, nil
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
	found := m.all(func(a *Radio) bool { return a.PodUID == request.PodUID && a.Wire() == request.Attachment })
	if len(found) == 0 {
		return fmt.Errorf("container %s has no attachment %s", request.ContainerID, request.Interface)
	}
	if namespace == nil || !found[0].IsIntact(namespace) {
		return fmt.Errorf("interface %s of container %s: it is missing or has changed since it was attached", request.Interface, request.ContainerID)
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
	a.Gone = func() { // its pod went without a DEL
		m.Log.Info("interface went with its pod", "pod", a.PodUID, "interface", a.Interface)
		if err := m.removeIf(a.Key(), func(x *Radio) bool { return x.ContainerID == a.ContainerID }); err != nil {
			m.Log.Warn("clean up after a pod", "error", err)
		}
	}
	if err := m.Networks.Join(a); err != nil {
		m.Members.Detach(&a.Attachment)
		return err
	}
	m.radios[a.Key()] = a
	m.Changed(a.NetworkUID)
	return nil
}

// removeIf removes the attachment if there is one and meant accepts it.
func (m *Attachments) removeIf(key membership.Key, meant func(*Radio) bool) error {
	defer m.LockPod(key.PodUID)()
	a := m.existing(key)
	if a == nil || meant != nil && !meant(a) {
		return nil
	}
	return m.remove(a)
}

// remove ends an attachment; its pod is locked. The interface vanishes with the last descriptor.
func (m *Attachments) remove(a *Radio) error {
	m.interfaces.ReadRingAtEnd(a)
	m.mu.Lock()
	if m.radios[a.Key()] == a {
		delete(m.radios, a.Key())
	}
	m.mu.Unlock()
	m.Members.Detach(&a.Attachment)
	// The last counters are recorded before their memory is freed.
	err := errors.Join(m.Networks.Leave(a), m.removeFiles(a), m.interfaces.Destroy(a))
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
		m.interfaces.Release(a)
	}
	m.radios = map[membership.Key]*Radio{}
}
