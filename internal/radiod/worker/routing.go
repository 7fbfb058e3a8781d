package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/internal/routing/routerprocess"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// domainKey identifies a node's part in a routing domain: all its networks with that protocol.
type domainKey struct {
	podUID   string
	protocol v1alpha1.RoutingProtocol
}

func (k domainKey) id() string { return k.podUID + "_" + string(k.protocol) }

// wantedDomain is a node's domain as RadioNetworks and attachments require it.
type wantedDomain struct {
	config      routing.Config
	attachments []*attachment // by interface
	silent      []bool        // by interface: the radio may not transmit
}

// domain is a node's routing domain that runs, or should.
type domain struct {
	wantedDomain
	instance        *routerprocess.Instance // nil if it could not be started, or has ended
	err             error
	next            time.Time // of another try
	failing         time.Time // since when it fails; zero if it does not
	reportedGivenUp bool      // whether giving up was reported
	saved           int64     // when its state was saved, by CLOCK_REALTIME
	// counted are the last counters by interface name, if it has ended by itself.
	counted map[string]routing.Counters
}

// savedDomain outlives the worker.
type savedDomain struct {
	PodUID          string                   `json:"podUID"`
	Protocol        v1alpha1.RoutingProtocol `json:"protocol"`
	TimeNanoseconds int64                    `json:"ts"`
	State           routing.State            `json:"state"`
}

const (
	// domainFiles have routers' states.
	domainFiles = "routing"
	// routingDelay is the wait for further changes, because a node's networks come one after the other.
	routingDelay = 50 * time.Millisecond
	retryRouting = time.Second
	// giveUpRouting is the time after which a node's failure to route fails the run.
	giveUpRouting = 10 * time.Second
	// keepSaved is how long the state of an attachment that is not restored yet is kept.
	keepSaved = 5 * time.Minute
)

// routers has the nodes' routing.
type routers struct {
	wake chan struct{}

	reconciling    sync.Mutex                // serialises reconciling
	saved          map[domainKey]savedDomain // of earlier processes; nil before the first reconciling
	keepSavedUntil time.Time                 // until when they are kept
	next           time.Time                 // of another try to start a process
	seen           int64                     // when routers last worked, by CLOCK_REALTIME

	mu      sync.Mutex          // protects the rest, which only changes while reconciling; taken after Manager.mu
	host    *routerprocess.Host // nil while nothing routes
	domains map[domainKey]*domain
	scratch []olsr.Route
}

// silentRadios has the radios of a network that may not transmit.
type silentRadios struct {
	all   bool
	radio func(*radio.Port) phy.Radio // nil for models without radio silence of single nodes
}

func (q *silentRadios) includes(nem int32) bool {
	if q == nil {
		return false
	}
	return q.all || q.radio != nil && !q.radio(&radio.Port{PortOptions: radio.PortOptions{NEM: int(nem)}}).Transmit
}

// publishSilence stores which radios are silent, for the routers. It must not block, because the network's loop
// calls it.
func (m *Manager) publishSilence(n *network, s settings, silent bool) {
	q := &silentRadios{all: silent}
	switch s := s.(type) {
	case pipeSettings:
		q.radio = s.Radio
	case slotSettings:
		q.radio = s.Radio
	}
	n.silentRadios.Store(q)
	notify(m.routers.wake)
}

// RunRouting runs nodes' routing until ctx ends. Their routes stay then, and the state for the next worker is
// saved.
func (m *Manager) RunRouting(ctx context.Context) error {
	again := time.NewTicker(retryRouting)
	defer again.Stop()
	saving := time.NewTimer(saveInterval)
	defer saving.Stop()
	for {
		select {
		case <-ctx.Done():
			m.leaveRouting()
			return nil
		case <-m.routers.wake:
			clock.Pause(ctx, routingDelay)
			m.reconcileRouting()
		case <-again.C:
			m.reconcileRouting()
		case <-saving.C:
			saving.Reset(m.saveNext())
		}
	}
}

// reconcileRouting starts, changes and stops routing as required.
func (m *Manager) reconcileRouting() {
	m.routers.reconciling.Lock()
	defer m.routers.reconciling.Unlock()
	wanted := m.wantedDomains()
	if !m.openRouting(len(wanted) > 0) {
		return
	}
	m.refreshRouting()
	m.routers.mu.Lock()
	running := maps.Clone(m.routers.domains)
	m.routers.mu.Unlock()
	for key, d := range running {
		if wanted[key] == nil {
			m.stopDomain(key, d)
		}
	}
	for key, w := range wanted {
		d := running[key]
		switch {
		case d != nil && d.instance != nil && reflect.DeepEqual(d.config, w.config):
			m.updateDomain(d, w)
		case d == nil || d.instance != nil || !time.Now().Before(d.next):
			m.startDomain(key, d, w)
		}
	}
	m.dropSaved()
}

// openRouting starts the routers' process, once the first node routes, and reports whether it runs.
func (m *Manager) openRouting(needed bool) bool {
	if host := m.routers.host; host != nil {
		select {
		case <-host.Ended():
			m.routingEnded()
		default:
			return true
		}
	}
	if !needed || time.Now().Before(m.routers.next) {
		return false
	}
	m.routers.next = time.Now().Add(retryRouting)
	host, err := routerprocess.Start(m.Log, routerprocess.Options{Engine: m.Radio.Options(), Ended: func() { notify(m.routers.wake) }})
	if err == nil {
		m.setRoutingHost(host)
		err = m.loadSaved()
	}
	if err != nil {
		m.Log.Error("routing", "error", err)
	}
	return m.routers.host != nil
}

func (m *Manager) setRoutingHost(host *routerprocess.Host) {
	m.routers.mu.Lock()
	defer m.routers.mu.Unlock()
	m.routers.host = host
}

// routingEnded handles an unexpected end of the routers' process. The next one continues from the saved
// states.
func (m *Manager) routingEnded() {
	host := m.routers.host
	m.routers.seen = host.Seen()
	m.Log.Error("the routers' process ended; starting another", "error", host.Close())
	m.routers.mu.Lock()
	defer m.routers.mu.Unlock()
	m.routers.host = nil
	for _, d := range m.routers.domains {
		if d.instance == nil {
			continue
		}
		d.counted = map[string]routing.Counters{}
		for i := range d.config.Interfaces {
			d.counted[d.config.Interfaces[i].Name] = d.instance.Counters(i)
		}
		d.instance = nil
	}
}

// refreshRouting reads the routers' counters and routes.
func (m *Manager) refreshRouting() {
	m.routers.mu.Lock()
	host := m.routers.host
	m.routers.mu.Unlock()
	if host == nil {
		return
	}
	if err := host.Refresh(); err != nil {
		select {
		case <-host.Ended(): // which is logged when another is started
		default:
			m.Log.Warn("routing", "error", err)
		}
	}
}

func (m *Manager) loadSaved() error {
	if m.routers.saved == nil {
		m.routers.seen = m.lastWorkerSeen
	}
	m.routers.saved, m.routers.keepSavedUntil = map[domainKey]savedDomain{}, time.Now().Add(keepSaved)
	if err := os.MkdirAll(filepath.Join(m.StateDirectory, domainFiles), 0o700); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	all, err := load[savedDomain](m.store, domainFiles)
	for _, s := range all {
		m.routers.saved[domainKey{s.PodUID, s.Protocol}] = s
	}
	return err
}

func (m *Manager) dropSaved() {
	if len(m.routers.saved) == 0 || time.Now().Before(m.routers.keepSavedUntil) {
		return
	}
	for key := range m.routers.saved {
		if err := m.store.remove(domainFiles, key.id()); err != nil {
			m.Log.Error("routing", "error", err)
		}
	}
	clear(m.routers.saved)
}

// wantedDomains returns the domains that RadioNetworks and attachments require.
func (m *Manager) wantedDomains() map[domainKey]*wantedDomain {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[domainKey]*wantedDomain{}
	for _, a := range m.attachments {
		n := m.networks[a.NetworkUID]
		if n == nil || n.object.Spec.Routing == nil || a.Guest != nil { // a guest routes by itself
			continue
		}
		protocol := n.object.Spec.Routing.Protocol
		if protocol == "" || protocol == v1alpha1.RoutingNone {
			continue
		}
		key := domainKey{a.PodUID, protocol}
		if all[key] == nil {
			all[key] = &wantedDomain{}
		}
		all[key].attachments = append(all[key].attachments, a)
	}
	for _, w := range all {
		slices.SortFunc(w.attachments, func(a, b *attachment) int {
			if a.Member.Primary != b.Member.Primary {
				return map[bool]int{true: -1, false: 1}[a.Member.Primary]
			}
			return cmp.Compare(a.Interface, b.Interface)
		})
		m.configure(w)
	}
	return all
}

// configure sets a domain's configuration. HELLOs and TCs have the times of each network. A router has one metric, that
// of the first network, and the topologies of all networks.
func (m *Manager) configure(w *wantedDomain) {
	first := m.networks[w.attachments[0].NetworkUID].object
	r := first.Spec.Routing
	w.config = routing.ConfigOf(r, first.Spec.Seed^int64(w.attachments[0].Member.NEM)<<32)
	for _, a := range w.attachments {
		n := m.networks[a.NetworkUID]
		_, member := m.member(a.key())
		if member == nil {
			member = &a.Member
		}
		// The router reports an invalid address.
		address, _ := netip.ParsePrefix(member.Address)
		i := routing.Interface{Name: a.Interface, Index: a.Index, Address: address, MTU: int(n.object.Spec.MTU),
			RateBitsPerSecond: n.object.Spec.Waveform.RateBitsPerSecond()}
		for _, route := range member.Routes {
			to, toErr := netip.ParsePrefix(route.To)
			via, viaErr := netip.ParseAddr(route.Via)
			if toErr == nil && viaErr == nil {
				i.Routes = append(i.Routes, routing.StaticRoute{To: to.Masked(), Via: via})
			}
		}
		w.config.Add(i, n.object.Spec.Routing)
		w.silent = append(w.silent, n.silentRadios.Load().includes(member.NEM))
	}
}

// startDomain starts routing, or starts it again with another configuration or after a failure.
func (m *Manager) startDomain(key domainKey, old *domain, w *wantedDomain) {
	var state routing.State
	var absent time.Duration
	if old != nil && old.instance != nil {
		var err error
		if state, err = old.instance.State(); err != nil {
			m.Log.Warn("routing starts without its earlier state", "pod", key.podUID, "error", err)
		}
		if err := old.instance.Leave(); err != nil {
			m.Log.Warn("routing", "pod", key.podUID, "error", err)
		}
	} else if saved, ok := m.routers.saved[key]; ok {
		// The routers have not worked since they were last seen.
		state, absent = saved.State, time.Duration(max(clock.Realtime()-max(m.routers.seen, saved.TimeNanoseconds), 0))
		state.Counters = nil // they are older than the last sample: readers understand a counter that begins again, but not one that goes back
	}
	if old != nil && old.counted != nil {
		state.Counters = old.counted
	}
	d := &domain{wantedDomain: *w}
	d.silent = make([]bool, len(w.silent))
	if old != nil {
		d.failing = old.failing
	}
	instance, err := m.startInstance(w, state, absent)
	d.instance = instance
	d.setError(err)
	if d.err != nil {
		d.instance, d.next = nil, time.Now().Add(retryRouting)
		m.Log.Warn("routing", "pod", key.podUID, "protocol", key.protocol, "error", d.err)
	} else {
		delete(m.routers.saved, key)
	}
	m.routers.mu.Lock()
	m.routers.domains[key] = d
	m.routers.mu.Unlock()
	if d.err == nil {
		m.updateDomain(d, w)
		m.save(key, d)
	}
	m.routingChanged(d)
}

// setError sets the current error, and since when there is one.
func (d *domain) setError(err error) {
	d.err = err
	switch {
	case err == nil:
		d.failing = time.Time{}
	case d.failing.IsZero():
		d.failing = time.Now()
	}
}

// givenUp reports whether the node has failed to route for so long that the run fails.
func (d *domain) givenUp() bool { return d.err != nil && time.Since(d.failing) > giveUpRouting }

func (m *Manager) startInstance(w *wantedDomain, s routing.State, absent time.Duration) (*routerprocess.Instance, error) {
	namespace, err := m.Finder.Find(w.attachments[0].NamespacePath, w.attachments[0].Namespace)
	if err != nil {
		return nil, err
	}
	defer namespace.Close()
	return m.routers.host.Adopt(namespace, w.config, s, absent)
}

// updateDomain sets which of a router's radios may transmit.
func (m *Manager) updateDomain(d *domain, w *wantedDomain) {
	var failed error
	for i, silent := range w.silent {
		if d.silent[i] == silent {
			continue
		}
		if err := d.instance.Transmit(i, !silent); err != nil {
			failed = errors.Join(failed, err) // the next look tries again
			continue
		}
		d.silent[i] = silent
	}
	m.routers.mu.Lock()
	d.attachments = w.attachments
	err := errors.Join(failed, d.instance.Err())
	before := d.err
	d.setError(err)
	differs := fmt.Sprint(err) != fmt.Sprint(before) || d.reportedGivenUp != d.givenUp()
	d.reportedGivenUp = d.givenUp()
	m.routers.mu.Unlock()
	if differs {
		m.routingChanged(d)
	}
}

// routingChanged marks the status of a domain's networks to be written.
func (m *Manager) routingChanged(d *domain) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range d.attachments {
		if n := m.networks[a.NetworkUID]; n != nil {
			m.Options.Changed(n.object)
		}
	}
}

func (m *Manager) stopDomain(key domainKey, d *domain) {
	m.routers.mu.Lock()
	delete(m.routers.domains, key)
	m.routers.mu.Unlock()
	var err error
	if d.instance != nil {
		err = d.instance.Stop()
	}
	if err = errors.Join(err, m.store.remove(domainFiles, key.id())); err != nil {
		m.Log.Warn("end of routing", "pod", key.podUID, "protocol", key.protocol, "error", err)
	}
}

// leaveRouting releases all routers for the next worker.
func (m *Manager) leaveRouting() {
	m.routers.reconciling.Lock()
	defer m.routers.reconciling.Unlock()
	m.routers.mu.Lock()
	domains := m.routers.domains
	m.routers.domains = map[domainKey]*domain{}
	m.routers.mu.Unlock()
	for key, d := range domains {
		if d.instance == nil {
			continue
		}
		m.save(key, d)
		if err := d.instance.Leave(); err != nil {
			m.Log.Warn("routing", "pod", key.podUID, "error", err)
		}
	}
	if m.routers.host != nil {
		if err := m.routers.host.Close(); err != nil {
			m.Log.Warn("routing", "error", err)
		}
		m.setRoutingHost(nil)
	}
}

const (
	// saveInterval is how often each router's state is saved. It is saved less often if that takes more than
	// a saveShare of a processor.
	saveInterval = time.Second
	saveShare    = 50
)

// saveNext saves the oldest state, and returns the time until the next.
func (m *Manager) saveNext() time.Duration {
	m.routers.reconciling.Lock()
	defer m.routers.reconciling.Unlock()
	m.routers.mu.Lock()
	count, oldest := len(m.routers.domains), domainKey{}
	var next *domain
	for key, d := range m.routers.domains {
		if d.instance != nil && (next == nil || d.saved < next.saved) {
			oldest, next = key, d
		}
	}
	m.routers.mu.Unlock()
	if next == nil {
		return saveInterval
	}
	began := time.Now()
	m.save(oldest, next)
	return max(saveShare*time.Since(began), saveInterval/time.Duration(count))
}

// save saves a router's state for the next worker.
func (m *Manager) save(key domainKey, d *domain) {
	now := clock.Realtime()
	d.saved = now
	state, err := d.instance.State()
	if err == nil {
		err = m.store.put(domainFiles, key.id(), savedDomain{key.podUID, key.protocol, now, state})
	}
	if err != nil {
		m.Log.Warn("save the state of routing", "pod", key.podUID, "error", err)
	}
}

// hasRouter reports whether a node routes. Its sockets then keep its namespace alive.
func (m *Manager) hasRouter(podUID string) bool {
	m.routers.mu.Lock()
	defer m.routers.mu.Unlock()
	for key := range m.routers.domains {
		if key.podUID == podUID {
			return true
		}
	}
	return false
}

// RoutersProcess returns the id of the routers' process, or an error if there is none.
func (m *Manager) RoutersProcess() (int, error) {
	m.routers.mu.Lock()
	defer m.routers.mu.Unlock()
	if m.routers.host == nil {
		return 0, errors.New("no node routes")
	}
	return m.routers.host.Process(), nil
}

// isRouter reports whether a process is the routers' process, whose threads enter pods' namespaces, or a
// routing daemon in one. They must not keep a namespace of a node that has gone.
func (m *Manager) isRouter(pid int) bool {
	m.routers.mu.Lock()
	defer m.routers.mu.Unlock()
	if m.routers.host != nil && m.routers.host.Process() == pid {
		return true
	}
	for _, d := range m.routers.domains {
		if d.instance != nil && d.instance.Process() == pid {
			return true
		}
	}
	return false
}

// routingTrouble returns the routing errors of a network's nodes, or nil.
func (m *Manager) routingTrouble(networkUID string) error {
	m.routers.mu.Lock()
	defer m.routers.mu.Unlock()
	var failed []string
	givenUp := false
	for _, d := range m.routers.domains {
		for _, a := range d.attachments {
			if d.err != nil && a.NetworkUID == networkUID {
				failed = append(failed, fmt.Sprintf("%s: %v", a.Member.Node, d.err))
				givenUp = givenUp || d.givenUp()
			}
		}
	}
	if len(failed) == 0 {
		return nil
	}
	slices.Sort(failed)
	err := errors.New(failed[0])
	if rest := len(failed) - 1; rest > 0 {
		err = fmt.Errorf("%s, and %d more", failed[0], rest)
	}
	if givenUp {
		return asRefusal(err)
	}
	return err
}
