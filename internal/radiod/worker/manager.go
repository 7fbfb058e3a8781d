// Package worker is the part of radiod that may be replaced at any time. It composes the packages that admit and set up
// attachments, carry their frames, and report to the cluster, Prometheus and the archive.
//
// Locks are taken in this order: a pod's, attach.Attachments, networks.Networks, then hosts.Hosts or
// dataplane.Local. hosts.Hosts also calls dataplane.Local with its lock held.
package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/keymutex"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/attach"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/cluster"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/hosts"
	"vignette.dev/vignette/internal/radiod/isolation"
	"vignette.dev/vignette/internal/radiod/library"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/metrics"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/networks"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/podradio"
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
	// Plane carries the frames of networks without EMANE.
	Plane dataplane.Plane
	// Loops of the data plane in another process, whose processors are not for routers.
	Loops  int
	Keeper podradio.Keeper
	Finder netns.Finder
	// CongestionControls: see podradio.Options.
	CongestionControls []string
	Log                *slog.Logger
	// Scenarios has compiled scenarios; nil without a server.
	Scenarios library.Store
	// Captures records frames at the attachments' radios; nil for no captures.
	Captures *capture.Recorder
	// Recorder records an attachment's end or a time without radio for the results; nil for none.
	Recorder hosts.Recorder
	// Changed is called when the number of a network's attachments or its message may have changed. It must
	// return at once.
	Changed func(network *v1alpha1.RadioNetwork)
}

// Manager has all that a host does for its attachments.
type Manager struct {
	Options
	*attach.Attachments
	*networks.Networks
	// Routers and Queues are to be run.
	Routers *routers.Routers
	Queues  *queues.Servers
	folder  state.Folder
	members *membership.Store
	rules   *isolation.Rules
}

// NewManager reads no state; see Restore.
func NewManager(options Options) (*Manager, error) {
	folder, err := state.Open(options.StateDirectory)
	if err != nil {
		return nil, err
	}
	if options.Changed == nil {
		options.Changed = func(*v1alpha1.RadioNetwork) {}
	}
	if options.Recorder == nil {
		options.Recorder = noRecorder{}
	}
	m := &Manager{Options: options, folder: folder, members: membership.NewStore()}
	m.Networks, err = networks.New(networks.Options{Host: m.Host, Plane: options.Plane, Finder: &m.Finder, Log: m.Log, Folder: folder, StateDirectory: m.StateDirectory,
		Scenarios: m.Scenarios, Captures: m.Captures, Recorder: m.Recorder, Changed: m.changed, Silenced: func() { m.Routers.Wake() }})
	if err != nil {
		return nil, err
	}
	pods := keymutex.NewHashed(64)
	lockPod := func(uid string) (unlock func()) {
		pods.LockKey(uid)
		return func() { _ = pods.UnlockKey(uid) } // never fails
	}
	m.rules = isolation.New(isolation.Options{Attachments: m.members.Attachments, Find: m.find, LockPod: lockPod})
	pod := podradio.Options{Keeper: m.Keeper, Finder: &m.Finder, Rules: m.rules, CongestionControls: m.CongestionControls, Log: m.Log}
	m.Attachments, err = attach.New(attach.Options{Options: pod, Folder: folder, Members: m.members, Networks: m.Networks,
		LockPod: lockPod, Record: func(run string, gaps []runapi.RadioGap) error { return m.Options.Recorder.Record(run, gaps, nil) }, Changed: m.changed})
	if err != nil {
		return nil, err
	}
	m.Routers = routers.New(routers.Options{Members: m.members, Silent: m.IsSilent, Find: m.find, Folder: folder, Seen: m.Seen,
		Loops: m.Loops, Log: m.Log, Changed: m.Options.Changed})
	m.Queues = queues.New(queues.Options{Attachments: m.members.Attachments, Waiting: m.Waiting, Find: m.find, Log: m.Log})
	m.Finder.Except = m.Routers.Includes
	return m, nil
}

type noRecorder struct{}

func (noRecorder) Record(string, []runapi.RadioGap, []figures.Network) error { return nil }

// changed is called when a network's attachments or its status may have changed.
func (m *Manager) changed(uid string) {
	m.Routers.Wake()
	m.Queues.Wake()
	if n := m.members.Network(uid); n != nil {
		m.Options.Changed(n)
	}
}

// find the namespace of an attachment.
func (m *Manager) find(a *membership.Attachment) (*os.File, error) {
	return m.Finder.Find(a.NamespacePath, a.Namespace)
}

// SetNetwork takes a new or changed RadioNetwork. Frames in flight are not disturbed.
func (m *Manager) SetNetwork(object *v1alpha1.RadioNetwork) error {
	err := m.Networks.Set(object) // first, so that members find it
	m.members.Set(object)
	m.Routers.Wake()
	return err
}

// RemoveNetwork removes a deleted RadioNetwork.
func (m *Manager) RemoveNetwork(uid string) error {
	if m.members.Network(uid) == nil {
		return nil
	}
	m.members.Remove(uid) // nobody joins it any more
	m.Networks.BeginRemoval(uid)
	return errors.Join(m.RemoveOfNetwork(uid), m.Networks.Remove(uid))
}

// Prune removes networks that do not exist any more, and attachments of none and of former members.
func (m *Manager) Prune(existing map[string]bool) (err error) {
	for uid := range m.members.Networks() {
		if !existing[uid] {
			err = errors.Join(err, m.RemoveNetwork(uid))
		}
	}
	return errors.Join(err, m.RemoveFormerMembers(), m.RemoveUnusedScenarios())
}

// SetAllowed changes what all pods may reach through eth0.
func (m *Manager) SetAllowed(allowed podnet.Allowed) error { return m.rules.Set(allowed) }

// RemovePinned releases namespaces that only radiod keeps alive.
func (m *Manager) RemovePinned() error {
	return m.Attachments.RemovePinned(func(podUID string) bool { return m.Routers.Serves(podUID) || m.Queues.Serves(podUID) })
}

// Restore restores the networks and attachments of earlier workers. Errors are only for the log.
func (m *Manager) Restore(held map[string]int) error {
	saved, err := m.Saved()
	for i := range saved {
		err = errors.Join(err, m.SetNetwork(&saved[i]))
	}
	return errors.Join(err, m.Attachments.Restore(held))
}

// WriteHeartbeat records that the worker runs, until ctx ends. It must begin only after Restore.
func (m *Manager) WriteHeartbeat(ctx context.Context) error {
	return m.folder.WriteHeartbeat(ctx, state.Worker)
}

// Routes of all nodes with built-in routing, sorted by node.
func (m *Manager) Routes() []figures.Routes { return m.Routers.Routes() }

// Counters returns the counters of all networks with attachments here, sorted. With reset, values since the
// last reset start again.
func (m *Manager) Counters(reset bool) []figures.Network {
	return m.Networks.Counters(m.Routers.Counters(), reset)
}

// LateIntervals implements samples.Source.
func (m *Manager) LateIntervals() [][]radio.Interval {
	all, err := m.Options.Plane.LateIntervals()
	if err != nil {
		m.Options.Log.Error("lateness of the radio", "error", err)
	}
	return all
}

// ForgetLateIntervals implements samples.Source.
func (m *Manager) ForgetLateIntervals() {
	if err := m.Options.Plane.ForgetLateIntervals(); err != nil {
		m.Options.Log.Error("lateness of the radio", "error", err)
	}
}

// Collectors of the host's metrics.
func (m *Manager) Collectors() []prometheus.Collector {
	return append(m.Networks.Collectors(), m.Seconds(), metrics.Collector{Counters: func() []figures.Network { return m.Counters(false) }})
}

// Close does what the end of the process would do. It closes descriptors, but leaves the interfaces for the next worker. A
// data plane in this process ends with all frames under way.
func (m *Manager) Close() {
	m.Routers.Close()
	if err := m.Options.Plane.Close(); err != nil {
		m.Options.Log.Error("end of the data plane", "error", err)
	}
	m.Attachments.Close()
	m.Networks.Close()
}

// Changed marks a network's status to be written.
func (m *Manager) Changed(n *v1alpha1.RadioNetwork) { m.changed(string(n.UID)) }

// HostStatus returns this host's entry in a network's status; known is false if there is no such network.
func (m *Manager) HostStatus(uid string) (status cluster.Status, known bool) {
	n := m.Networks.Status(uid)
	if n == nil {
		return status, false
	}
	routing := m.Routers.Trouble(uid)
	var message []string
	add := func(text string) {
		if text != "" {
			message = append(message, text)
		}
	}
	add(n.Message)
	for _, err := range append(n.Troubles, routing) {
		if err != nil {
			add(err.Error())
		}
	}
	for _, text := range m.Missing(uid) {
		add(text)
	}
	status.Attached, status.Refused = n.Attached, refusal.First(errors.Join(append(n.Troubles, routing, n.CaptureError)...))
	here := m.members.Attachments(membership.OfNetwork(uid))
	slices.SortFunc(here, func(a, b *membership.Attachment) int { return cmp.Compare(a.Member.NEM, b.Member.NEM) })
	var nems []string
	for _, a := range here {
		status.CongestionControl = cmp.Or(status.CongestionControl, a.Settings[podnet.CongestionControl])
		nems = append(nems, strconv.Itoa(int(a.Member.NEM)))
	}
	if h := m.Hosts(); h != nil && len(here) > 0 {
		status.NEMs, status.Peer = strings.Join(nems, " "), h.Peer()
		add(h.Trouble(uid))
	}
	status.Message = strings.Join(message, "; ")
	return status, true
}
