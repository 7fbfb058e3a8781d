// Package networks carries the frames of this host's attachments, each network in the data plane or by EMANE: it applies
// changes, prepares the environment of radios, captures frames and counts.
package networks

import (
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/emaned"
	"vignette.dev/vignette/internal/radiod/hosts"
	"vignette.dev/vignette/internal/radiod/library"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/packettap"
	"vignette.dev/vignette/internal/radiod/podradio"
	"vignette.dev/vignette/internal/radiod/preparation"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// networkFiles in the state folder have the RadioNetworks.
const networkFiles = "networks"

// Options of Networks.
type Options struct {
	// Host is the Kubernetes node's name.
	Host string
	// Plane carries the frames of networks without EMANE.
	Plane  dataplane.Plane
	Finder *netns.Finder
	Log    *slog.Logger
	// Folder keeps the RadioNetworks for the next worker.
	Folder state.Folder
	// StateDirectory has the scenarios of Scenarios, which is nil without a server.
	StateDirectory string
	Scenarios      library.Store
	// Captures records frames at the attachments' radios; nil for no captures.
	Captures *capture.Recorder
	// Recorder records an attachment's end.
	Recorder hosts.Recorder
	// Changed is called when a network's status may have changed, Silenced when other radios may transmit. Both must
	// return at once.
	Changed  func(uid string)
	Silenced func()
}

// Networks carry the frames of this host's attachments, in the engine or by EMANE.
type Networks struct {
	Options
	library *library.Library
	changes changeCounters
	hosts   atomic.Pointer[hosts.Hosts]

	mu        sync.Mutex // protects the rest; never held while the kernel makes or configures interfaces
	networks  map[string]*network
	abandoned map[string]map[int32]string // network.abandoned of an earlier worker, by UID
	restoring bool                        // networks stay paused until all their ports are back
	left      dataplane.Left              // by an earlier worker; it counts while restoring
}

// savedNetwork is what the next worker is to know of a network.
type savedNetwork struct {
	v1alpha1.RadioNetwork
	Abandoned map[int32]string `json:"abandoned,omitempty"`
}

// network is a RadioNetwork and, while it has attachments here, its engine's network.
type network struct {
	networks     *Networks
	object       *v1alpha1.RadioNetwork
	attachments  map[membership.Key]*attachment
	latest       map[string]*attachment           // by node, also of those that have left
	detached     []*attachment                    // with frames under way
	leaving      sync.WaitGroup                   // for attachments that are being detached
	departing    map[dataplane.PortID]*attachment // the same
	running      *dataplane.Network               // as last requested; nil while the data plane does not have it
	state        dataplane.State                  // as last carried out
	requests     uint64
	driver       *emaned.Driver          // of a network that EMANE carries, while it has attachments here; running is nil then
	abandoned    map[int32]string        // NEM ids whose processes of EMANE had a radio that has left, with the UIDs of their pods
	preparer     *preparation.Background // nil for waveforms without a physical layer, and where something is missing for it
	steps        preparation.StepCounters
	lateChanges  lateChanges
	disturbed    dataplane.PortSet // the radios of its neighbours on this host
	nextReceiver int               // index of the receiver whose links are sampled next
	message      string
	// unsaved is why the next worker would not know it, and saving the next attempt.
	unsaved error
	saving  *time.Timer
	// ending reports whether it is being removed: its attachments leave, and nothing is updated for those that remain.
	ending bool
	// trouble is why its radios are silent, or differ from the spec.
	trouble error
	// preparationError is why future positions or pathlosses cannot be prepared. memberError is why no member
	// can be attached or route.
	preparationError, memberError error
}

// attachment is one member's radio in its network.
type attachment struct {
	*podradio.Radio
	port dataplane.PortID // 0 for a radio that EMANE carries
	tap  *capture.Tap
	// watch reads the frames of a radio that EMANE carries, once it is captured.
	watch *packettap.Watch
	// last are the counters as last read.
	last radio.Counters
	// slots of the radio when it was detached, because its model then forgets them.
	slots tdma.SlotStatistics
	// captureError is why a capture could not begin here before T0, when the run cannot begin without it. Later the
	// run goes on, and the error is in the network's message only.
	captureError error
}

// New knows no networks yet.
func New(o Options) (*Networks, error) {
	scenarios, err := library.Open(o.StateDirectory)
	if err != nil {
		return nil, err
	}
	m := &Networks{Options: o, library: scenarios, networks: map[string]*network{}}
	go m.follow(o.Plane)
	return m, nil
}

// Set takes a new or changed RadioNetwork. Frames in flight are not disturbed.
func (m *Networks) Set(object *v1alpha1.RadioNetwork) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := string(object.UID)
	n := m.networks[uid]
	if n != nil && object.Generation != 0 && n.object.Generation == object.Generation {
		same := reflect.DeepEqual(n.object.Status.Hosts, object.Status.Hosts)
		n.object = object // only its status has changed
		if !same {        // the next worker is to know the other hosts at once
			err = n.save()
		}
		n.updateDriver()
		n.connect()
		return err
	}
	if n == nil {
		n = &network{networks: m, object: object, attachments: map[membership.Key]*attachment{}, latest: map[string]*attachment{}, departing: map[dataplane.PortID]*attachment{}, abandoned: map[int32]string{},
			requests: uint64(clock.Realtime())} //nolint:gosec // after 1970, and after those of earlier workers
		maps.Copy(n.abandoned, m.abandoned[uid])
		m.networks[uid] = n
	}
	before := &n.object.Spec
	n.object, n.memberError = object, refusal.Of(checkMembers(&object.Spec))
	saveErr := n.save()
	if n.running != nil {
		err = n.change(before)
	}
	n.changeNeighbours()
	n.updateDriver()
	err = errors.Join(err, n.setAllCaptures())
	n.connect()
	n.message = ""
	if err != nil {
		n.message = err.Error()
	}
	return errors.Join(saveErr, err)
}

// saveInterval is the time between two attempts to write a network's file. Its volume may be full for a while.
const saveInterval = time.Second

// save keeps the network for the next worker. The lock is held.
func (n *network) save() error {
	m, uid := n.networks, string(n.object.UID)
	if n.saving != nil {
		n.saving.Stop()
	}
	n.unsaved = m.Folder.Put(networkFiles, uid, savedNetwork{*n.object, n.abandoned})
	if n.unsaved == nil {
		return nil
	}
	n.saving = time.AfterFunc(saveInterval, func() {
		m.mu.Lock()
		saved := m.networks[uid] == n && n.save() == nil
		m.mu.Unlock()
		if saved {
			m.Changed(uid)
		}
	})
	return n.unsaved
}

// BeginRemoval prepares the removal of a network, whose attachments leave next.
func (m *Networks) BeginRemoval(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.networks[uid]; n != nil {
		n.ending = true
		n.changeNeighbours()
		n.connect()
	}
	if h := m.hosts.Load(); h != nil {
		h.Disconnect(uid)
	}
}

// Remove removes a network, which has no attachments any more.
func (m *Networks) Remove(uid string) error {
	m.mu.Lock()
	n := m.networks[uid]
	delete(m.networks, uid)
	m.mu.Unlock()
	err := m.Folder.Remove(networkFiles, uid)
	if n == nil {
		return err
	}
	n.leaving.Wait()
	if n.running != nil {
		last, endErr := m.Plane.EndNetwork(uid) // nothing is counted after it
		err = errors.Join(err, endErr, m.recordNetworkEnd(n, last))
	}
	n.endDriver()
	n.stopPreparer()
	return errors.Join(err, m.RemoveUnusedScenarios())
}

// Collectors of the metrics of changes.
func (m *Networks) Collectors() []prometheus.Collector { return m.changes.collectors() }

// Hosts to which networks are connected; nil for none.
func (m *Networks) Hosts() *hosts.Hosts { return m.hosts.Load() }

// Saved are the RadioNetworks of earlier workers.
func (m *Networks) Saved() (objects []v1alpha1.RadioNetwork, err error) {
	saved, err := state.Load[savedNetwork](m.Folder, networkFiles)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.abandoned = map[string]map[int32]string{}
	for i := range saved {
		objects = append(objects, saved[i].RadioNetwork)
		m.abandoned[string(saved[i].UID)] = saved[i].Abandoned
	}
	return objects, err
}

// SetHosts connects networks to those of other hosts from now on.
func (m *Networks) SetHosts(h *hosts.Hosts) { m.hosts.Store(h) }

// Close ends what is prepared and driven in the background.
func (m *Networks) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.networks {
		n.endDriver()
		n.stopPreparer()
		if n.saving != nil {
			n.saving.Stop()
		}
	}
}
