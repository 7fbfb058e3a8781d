// Package worker is the part of radiod that may be replaced at any time. It admits and sets up attachments,
// runs the radio engine, and reports to the cluster, Prometheus and the archive.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/attach"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/emaned"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/hosts"
	"vignette.dev/vignette/internal/radiod/isolation"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/queues"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/internal/radiod/routers"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Options of a Manager.
type Options struct {
	// Host is the Kubernetes node's name.
	Host string
	// StateDirectory on the host.
	StateDirectory string
	// Radio carries the frames of networks without EMANE.
	Radio  *driver.Driver
	Keeper attach.Keeper
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

// networkFiles in the state folder have the RadioNetworks.
const networkFiles = "networks"

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

// attachment is one member's radio in its network.
type attachment struct {
	*attach.Radio
	port *driver.Port
	tap  *capture.Tap
	// slots of the radio when it was detached, because its model then forgets them.
	slots SlotCounters
	// captureError is why a capture could not begin here before T0, when the run cannot begin without it. Later the
	// run goes on, and the error is in the network's message only.
	captureError error
}

// Manager carries the frames of the attachments of this host, in their networks.
type Manager struct {
	Options
	// Attachments set up the radios, as the CNI plugin asks for it.
	*attach.Attachments
	folder  state.Folder
	members *membership.Store
	library *library
	rules   *isolation.Rules
	changes changeCounters
	routers *routers.Routers
	queues  *queues.Servers
	hosts   atomic.Pointer[hosts.Hosts]

	mu          sync.Mutex // protects the rest; never held while the kernel sets up interfaces
	networks    map[string]*network
	attachments map[membership.Key]*attachment
	restoring   bool          // networks stay paused until all their ports are back
	detached    []*attachment // detached, with frames under way
}

// NewManager reads no state; see Restore.
func NewManager(options Options) (*Manager, error) {
	folder, err := state.Open(options.StateDirectory)
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
	m := &Manager{Options: options, folder: folder, members: membership.NewStore(), library: library, networks: map[string]*network{}, attachments: map[membership.Key]*attachment{}}
	changed := options.Changed
	m.Changed = func(n *v1alpha1.RadioNetwork) { m.routers.Wake(); m.queues.Wake(); changed(n) }
	pods := attach.NewPodLocks()
	m.rules = isolation.New(isolation.Options{Attachments: m.members.Attachments, Find: m.find, LockPod: pods.Lock})
	m.Attachments, err = attach.New(attach.Options{Folder: folder, Keeper: m.Keeper, Finder: &m.Finder, Members: m.members, Networks: m, Rules: m.rules,
		LockPod: pods.Lock, Record: func(run string, gaps []runapi.RadioGap) error { return m.Recorder.Record(run, gaps, nil) }, Log: m.Log})
	if err != nil {
		return nil, err
	}
	m.routers = routers.New(routers.Options{Members: m.members, Silent: m.isSilent, Find: m.find, Folder: folder, Seen: m.Seen,
		Engine: m.Radio.Options(), Log: m.Log, Changed: changed})
	m.queues = queues.New(queues.Options{Attachments: m.members.Attachments, Waiting: m.waiting, Find: m.find, Log: m.Log})
	m.Finder.Except = m.routers.Includes
	return m, nil
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
	if m.members.Network(uid) == nil {
		return nil
	}
	m.members.Remove(uid) // nobody joins it any more
	err := errors.Join(m.folder.Remove(networkFiles, uid), m.RemoveOfNetwork(uid))
	m.mu.Lock()
	n := m.networks[uid]
	delete(m.networks, uid)
	m.mu.Unlock()
	if n != nil {
		if n.running != nil {
			n.running.Close()
		}
		n.endDriver()
		n.stopPreparer()
	}
	return errors.Join(err, m.recordNetworkEnd(uid), m.removeUnusedScenarios())
}

// Prune removes networks that do not exist any more, and attachments of none and of former members.
func (m *Manager) Prune(existing map[string]bool) error {
	var err error
	for uid := range m.members.Networks() {
		if !existing[uid] {
			err = errors.Join(err, m.RemoveNetwork(uid))
		}
	}
	return errors.Join(err, m.RemoveFormerMembers(), m.removeUnusedScenarios())
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

// SetAllowed changes what all pods may reach through eth0.
func (m *Manager) SetAllowed(allowed podnet.Allowed) error { return m.rules.Set(allowed) }

// RemovePinned releases namespaces that only radiod keeps alive.
func (m *Manager) RemovePinned() error {
	return m.Attachments.RemovePinned(func(podUID string) bool { return m.routers.Serves(podUID) || m.queues.Serves(podUID) })
}

// Restore restores the networks and attachments of earlier workers. Errors are only for the log.
func (m *Manager) Restore(held map[string]int) error {
	networks, err := state.Load[v1alpha1.RadioNetwork](m.folder, networkFiles)
	for i := range networks {
		err = errors.Join(err, m.SetNetwork(&networks[i]))
	}
	return errors.Join(err, m.Attachments.Restore(held))
}

// Close does what the end of the process would do. It ends the engine with all frames under way and closes
// descriptors, but leaves the interfaces for the next worker.
func (m *Manager) Close() {
	m.routers.Close()
	_ = m.Radio.Close() // never fails
	m.Attachments.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.networks {
		n.endDriver()
		n.stopPreparer()
	}
}
