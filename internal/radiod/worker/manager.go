// Package worker is the part of radiod that may be replaced at any time. It admits and sets up attachments,
// runs the radio engine, and reports to the cluster, Prometheus and the archive.
package worker

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/emaned"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/hosts"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/queues"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/internal/radiod/routers"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Keeper holds descriptors while workers come and go; a *holder.Client is one.
type Keeper interface {
	Hold(id string, fd int) error
	Drop(id string) error
}

// Options of a Manager.
type Options struct {
	// Host is the Kubernetes node's name.
	Host string
	// StateDirectory on the host.
	StateDirectory string
	// Radio carries the frames of networks without EMANE.
	Radio  *driver.Driver
	Keeper Keeper
	Finder netns.Finder
	Log    *slog.Logger
	// Scenarios has compiled scenarios; nil without a server.
	Scenarios ScenarioStore
	// Captures records frames at the attachments' radios; nil for no captures.
	Captures *capture.Recorder
	// Recorder records an attachment's end or a time without radio for the results; nil for none.
	Recorder Recorder
	// Changed is called when the number of a network's attachments or its message may have changed. It must
	// return at once.
	Changed func(network *v1alpha1.RadioNetwork)
}

// network is a RadioNetwork and, while it has attachments here, its engine's network.
type network struct {
	object          *v1alpha1.RadioNetwork
	running         *driver.Network
	initialSettings settings // of the model when it was made
	environment     *environment
	driver          *emaned.Driver      // of a network that EMANE carries, while it has attachments here; running is nil then
	preparer        *backgroundPreparer // nil for waveforms without a physical layer, and where something is missing for it
	steps           stepCounters
	nextReceiver    int // index of the receiver whose links are sampled next
	message         string
	// trouble is why its radios are silent, or differ from the spec.
	trouble error
	// preparationError is why future positions or pathlosses cannot be prepared. memberError is why no member
	// can be attached or route.
	preparationError, memberError error
	// silentRadios has the radios that may not transmit, for the routers.
	silentRadios atomic.Pointer[silentRadios]
}

// attachment is one member's radio on this host.
type attachment struct {
	membership.Attachment
	fd int
	// closed reports whether fd is closed, and may be another file's now. Manager.closing guards it.
	closed   bool
	port     *driver.Port
	tap      *capture.Tap
	counters *counterFile
	// traffic of a radio that EMANE carries, as last counted by the kernel.
	traffic radio.Traffic
	// slots of the radio when it was detached, because its model then forgets them.
	slots SlotCounters
	// unreadDrops are frames that found no room in the TAP's ring before this worker read them.
	unreadDrops uint64
	// usedIndexes are the interface indexes that the pod's namespace had before.
	usedIndexes []int
	// congestionControl of TCP for the pod; empty for its host's.
	congestionControl string
	// captureError is why a capture could not begin here before T0, when the run cannot begin without it. Later the
	// run goes on, and the error is in the network's message only.
	captureError error
}

// Manager owns the attachments of this host.
type Manager struct {
	Options
	folder   state.Folder
	members  *membership.Store
	library  *library
	instance string               // of the state folder
	attach   prometheus.Histogram // how long attachments took
	changes  changeCounters
	refused  refusalLog
	routers  *routers.Routers
	queues   *queues.Servers
	hashSeed maphash.Seed
	pods     [64]sync.Mutex // by hash of the pod's UID: serialises what is done to a pod

	// closing guards the attachments' closed.
	closing sync.Mutex

	mu             sync.Mutex // protects the rest; never held while the kernel sets up interfaces
	networks       map[string]*network
	attachments    map[membership.Key]*attachment
	restoring      bool // networks stay paused until all their ports are back
	missing        map[membership.Key]*missing
	lastWorkerSeen int64         // when the previous worker was last seen; set by Restore
	detached       []*attachment // detached, with frames under way
	nextRing       int           // index of the next pod whose rings are read
	allowed        podnet.Allowed
	hosts          atomic.Pointer[hosts.Hosts]
	// rulesOutdated reports whether some pod's rules could not be updated.
	rulesOutdated bool
}

// NewManager reads no state; see Restore.
func NewManager(options Options) (*Manager, error) {
	folder, err := state.Open(options.StateDirectory)
	if err != nil {
		return nil, err
	}
	instance, err := folder.Instance()
	if err != nil {
		return nil, err
	}
	library, err := newLibrary(options.StateDirectory)
	if err != nil {
		return nil, err
	}
	if options.Changed == nil {
		options.Changed = func(*v1alpha1.RadioNetwork) {}
	}
	if options.Recorder == nil {
		options.Recorder = noRecorder{}
	}
	attach := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "vignette_radio_attach_seconds", Help: "Time to attach a pod to a radio network.",
		Buckets: []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}})
	m := &Manager{Options: options, attach: attach, folder: folder, members: membership.NewStore(), library: library, instance: instance, hashSeed: maphash.MakeSeed(), networks: map[string]*network{},
		attachments: map[membership.Key]*attachment{}, missing: map[membership.Key]*missing{}}
	changed := options.Changed
	m.routers = routers.New(routers.Options{Members: m.members, Silent: m.isSilent, Find: m.find, Folder: folder, Seen: func() int64 { return m.lastWorkerSeen },
		Engine: m.Radio.Options(), Log: m.Log, Changed: changed})
	m.queues = queues.New(queues.Options{Attachments: m.members.Attachments, Waiting: m.waiting, Find: m.find, Log: m.Log})
	m.Changed = func(n *v1alpha1.RadioNetwork) { m.routers.Wake(); m.queues.Wake(); changed(n) }
	m.Finder.Except = m.routers.Includes
	return m, nil
}

// owner returns the owner of a pod's radios. Another radiod may run on the same kernel, as in a cluster of
// containers, and must not take them for its orphans.
func (m *Manager) owner(podUID string) string { return m.instance + " " + podUID }

// ownerOf returns the owner of an attachment's interfaces. In a launcher they are not named after the
// network, so the owner includes it.
func (m *Manager) ownerOf(a *attachment) string {
	if a.Guest != nil {
		return m.owner(a.PodUID) + " " + a.Interface
	}
	return m.owner(a.PodUID)
}

func (m *Manager) lockPod(uid string) *sync.Mutex {
	l := &m.pods[maphash.String(m.hashSeed, uid)%uint64(len(m.pods))]
	l.Lock()
	return l
}

// SetNetwork takes a new or changed RadioNetwork. Frames in flight are not disturbed.
func (m *Manager) SetNetwork(object *v1alpha1.RadioNetwork) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := string(object.UID)
	n := m.networks[uid]
	var before *v1alpha1.RadioNetworkSpec
	if n == nil {
		n = &network{}
		m.networks[uid] = n
	} else if object.Generation != 0 && n.object.Generation == object.Generation {
		n.object = object // only its status has changed
		m.members.Set(object)
		m.updateDriver(uid, n)
		m.connectHosts(uid, n)
		return nil
	} else {
		before = &n.object.Spec
	}
	n.object, n.memberError = object, refusal.Of(checkMembers(&object.Spec))
	m.members.Set(object)
	err := m.folder.Put(networkFiles, uid, object)
	if n.running != nil {
		err = errors.Join(err, m.changeNetwork(n, before))
	}
	m.updateDriver(uid, n)
	err = errors.Join(err, m.setAllCaptures(uid, n))
	m.connectHosts(uid, n)
	m.routers.Wake()
	n.message = ""
	if err != nil {
		n.message = err.Error()
	}
	return err
}

// RemoveNetwork removes a deleted RadioNetwork.
func (m *Manager) RemoveNetwork(uid string) error {
	m.mu.Lock()
	n := m.networks[uid]
	if n == nil {
		m.mu.Unlock()
		return nil
	}
	delete(m.networks, uid)
	m.connectHosts(uid, nil)
	m.members.Remove(uid)
	keys := m.keysOf(func(a *attachment) bool { return a.NetworkUID == uid })
	for _, key := range keys {
		n.readSlots(m.attachments[key])
	}
	m.mu.Unlock()
	err := m.folder.Remove(networkFiles, uid)
	for _, key := range keys {
		err = errors.Join(err, m.removeIf(key, nil))
	}
	if n.running != nil {
		n.running.Close()
	}
	n.endDriver()
	n.stopPreparer()
	return errors.Join(err, m.recordNetworkEnd(uid), m.removeUnusedScenarios())
}

// Prune removes networks that do not exist any more, and attachments of none and of former members.
func (m *Manager) Prune(existing map[string]bool) error {
	var err error
	m.mu.Lock()
	var gone []string
	for uid := range m.networks {
		if !existing[uid] {
			gone = append(gone, uid)
		}
	}
	m.mu.Unlock()
	for _, uid := range gone {
		err = errors.Join(err, m.RemoveNetwork(uid))
	}
	return errors.Join(err, m.RemoveFormerMembers(), m.removeUnusedScenarios())
}

// RemoveFormerMembers removes attachments that no RadioNetwork lists any more.
func (m *Manager) RemoveFormerMembers() error {
	m.mu.Lock()
	keys := m.keysOf(func(a *attachment) bool { return !m.members.Lists(a.NetworkUID, a.Key()) })
	m.mu.Unlock()
	var err error
	for _, key := range keys {
		err = errors.Join(err, m.removeIf(key, nil))
	}
	return err
}

// keysOf lists the keys of attachments; the lock is held.
func (m *Manager) keysOf(which func(*attachment) bool) (keys []membership.Key) {
	for key, a := range m.attachments {
		if which(a) {
			keys = append(keys, key)
		}
	}
	return keys
}

// join adds the attachment's radio to its network.
func (m *Manager) join(a *attachment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[a.NetworkUID]
	if err := m.members.Attach(&a.Attachment); err != nil {
		return err
	}
	if err := m.carrierOf(a).join(n, a); err != nil {
		m.members.Detach(&a.Attachment)
		return err
	}
	m.attachments[a.Key()] = a
	m.connectHosts(a.NetworkUID, n)
	m.Changed(n.object)
	return nil
}

// interfaceGone cleans up after a pod that went without a DEL.
func (m *Manager) interfaceGone(key membership.Key, containerID string) {
	m.Log.Info("interface went with its pod", "pod", key.PodUID, "interface", key.Interface)
	err := m.removeIf(key, func(a *attachment) bool { return a.ContainerID == containerID })
	if err != nil {
		m.Log.Warn("clean up after a pod", "error", err)
	}
}

// removeIf removes the attachment if there is one and meant accepts it.
func (m *Manager) removeIf(key membership.Key, meant func(*attachment) bool) error {
	defer m.lockPod(key.PodUID).Unlock()
	m.mu.Lock()
	a := m.attachments[key]
	m.mu.Unlock()
	if a == nil || meant != nil && !meant(a) {
		return nil
	}
	return m.remove(a)
}

// remove ends an attachment; its pod is locked. The interface vanishes with the last descriptor.
func (m *Manager) remove(a *attachment) error {
	m.readRingAtEnd(a)
	m.carrierOf(a).leave(a)
	m.mu.Lock()
	if m.attachments[a.Key()] == a {
		delete(m.attachments, a.Key())
	}
	m.members.Detach(&a.Attachment)
	n := m.networks[a.NetworkUID]
	m.connectHosts(a.NetworkUID, n)
	m.mu.Unlock()
	m.endCaptures(a)
	// The last counters are recorded before their memory is freed.
	err := errors.Join(m.recordEnd(a), m.folder.Remove(attachmentFiles, a.ID()), m.folder.Remove(counterFiles, a.ID()), m.carrierOf(a).destroy(a), m.destroyGuest(a))
	if n != nil {
		m.Changed(n.object)
	}
	return err
}

// SetAllowed changes what all pods may reach through eth0.
func (m *Manager) SetAllowed(allowed podnet.Allowed) error {
	allowed = allowed.Normalise()
	m.mu.Lock()
	same := m.allowed.Equal(allowed) && !m.rulesOutdated
	m.allowed, m.rulesOutdated = allowed, false
	pods := map[string]*attachment{}
	for _, a := range m.attachments {
		pods[a.PodUID] = a
	}
	m.mu.Unlock()
	if same {
		return nil
	}
	var err error
	for _, a := range pods {
		err = errors.Join(err, m.renewRules(a))
	}
	if err != nil {
		m.mu.Lock()
		m.rulesOutdated = true // the next call tries again
		m.mu.Unlock()
	}
	return err
}

func (m *Manager) currentlyAllowed() podnet.Allowed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.allowed
}

func (m *Manager) renewRules(a *attachment) error {
	defer m.lockPod(a.PodUID).Unlock()
	namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace)
	if errors.Is(err, netns.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer namespace.Close()
	return m.applyRules(namespace, a)
}

// applyRules loads the rules of an attachment's pod, whether the attachment has joined yet or not.
func (m *Manager) applyRules(namespace *os.File, a *attachment) error {
	if a.Member.OpenManagement {
		return nil
	}
	m.mu.Lock()
	allowed := m.allowed
	radios := []int{a.Index}
	for _, other := range m.attachments {
		if other.PodUID == a.PodUID && other.Namespace == a.Namespace && other.Index != a.Index {
			radios = append(radios, other.Index)
		}
	}
	m.mu.Unlock()
	slices.Sort(radios)
	allowed.Hosts = append(slices.Clone(allowed.Hosts), podnet.ParseAddresses(a.Gateways)...)
	if a.Guest != nil {
		return podnet.ApplyLauncherRules(namespace, a.Guest.Management, allowed.Normalise())
	}
	return podnet.ApplyRules(namespace, radios, allowed.Normalise())
}

// WriteHeartbeat records that the worker runs, until ctx ends. It must begin only after Restore.
func (m *Manager) WriteHeartbeat(ctx context.Context) error { return m.folder.WriteHeartbeat(ctx) }

// RunRouting runs nodes' routing until ctx ends.
func (m *Manager) RunRouting(ctx context.Context) error { return m.routers.Run(ctx) }

// RunQueues serves the pods' queues until ctx ends.
func (m *Manager) RunQueues(ctx context.Context) error { return m.queues.Run(ctx) }

// waiting returns the frames that wait at an attachment's radio.
func (m *Manager) waiting(of *membership.Attachment) int {
	m.mu.Lock()
	a := m.attachments[of.Key()]
	m.mu.Unlock()
	if a == nil || a.port == nil {
		return 0
	}
	return a.port.CurrentCounters().InFlight
}

// SetHosts connects networks to those of other hosts from now on.
func (m *Manager) SetHosts(h *hosts.Hosts) { m.hosts.Store(h) }

// RoutersProcess returns the id of the routers' process, or an error if there is none.
func (m *Manager) RoutersProcess() (int, error) { return m.routers.Process() }

// Routes of all nodes with built-in routing, sorted by node.
func (m *Manager) Routes() []figures.Routes { return m.routers.Routes() }

// find the namespace of an attachment.
func (m *Manager) find(a *membership.Attachment) (*os.File, error) {
	return m.Finder.Find(a.NamespacePath, a.Namespace)
}

// isSilent reports whether a member's radio may not transmit.
func (m *Manager) isSilent(networkUID string, nem int32) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[networkUID]
	return n != nil && n.silentRadios.Load().includes(nem)
}

func notify(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// RemovePinned releases namespaces that only radiod's descriptors keep alive.
func (m *Manager) RemovePinned() error {
	return m.removeWithoutNamespace(func(a *attachment) bool {
		return a.Pinned || a.Engine == v1alpha1.EngineEMANE || m.routers.Serves(a.PodUID) || m.queues.Serves(a.PodUID)
	})
}

// Close does what the end of the process would do. It ends the engine with all frames under way and closes
// descriptors, but leaves the interfaces for the next worker.
func (m *Manager) Close() {
	m.routers.Close()
	_ = m.Radio.Close() // never fails
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.attachments {
		m.carrierOf(a).release(a)
		m.members.Detach(&a.Attachment)
	}
	m.attachments = map[membership.Key]*attachment{}
	for _, n := range m.networks {
		n.endDriver()
		n.stopPreparer()
	}
}

// mayClose reports whether the caller must close the attachment's descriptor. A pod may go while the worker
// ends, and a second close could close another file.
func (m *Manager) mayClose(a *attachment) bool {
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
