// Package routers runs the routing of nodes as RadioNetworks and attachments require it. Nodes'
// routes and the routers' states outlive the worker.
package routers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/refusal"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// fileOf a domain's state.
func fileOf(k figures.Domain) string { return k.PodUID + "_" + string(k.Protocol) }

// wantedDomain is a node's domain as RadioNetworks and attachments require it.
type wantedDomain struct {
	config      routing.Config
	attachments []*membership.Attachment // by interface
	silent      []bool                   // by interface: the radio may not transmit
}

// domain is a node's routing domain that runs, or should.
type domain struct {
	wantedDomain
	instance        *routing.Instance // nil if it could not be started
	err             error
	next            time.Time // of another try
	failing         time.Time // since when it fails; zero if it does not
	reportedGivenUp bool      // whether giving up was reported
	saved           int64     // when its state was saved, by CLOCK_REALTIME
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

// Options of Routers.
type Options struct {
	Members *membership.Store
	// Silent reports whether the radio of a network's member may not transmit.
	Silent func(networkUID string, nem int32) bool
	// Find returns the namespace of an attachment.
	Find func(a *membership.Attachment) (*os.File, error)
	// Folder outlives the worker.
	Folder state.Folder
	// Seen is when the worker before was last seen, by CLOCK_REALTIME.
	Seen func() int64
	// Loops of the data plane, whose processors are not for routers.
	Loops int
	Log   *slog.Logger
	// Changed is called when the trouble of a network's routers may have changed.
	Changed func(*v1alpha1.RadioNetwork)
}

// Routers has the nodes' routing.
type Routers struct {
	Options
	wake bell.Bell

	reconciling    sync.Mutex                     // serialises reconciling
	saved          map[figures.Domain]savedDomain // of earlier workers
	keepSavedUntil time.Time                      // until when they are kept
	seen           int64                          // when routers last worked, by CLOCK_REALTIME

	host *routing.Host // nil while nothing routes

	mu      sync.Mutex // protects the rest, which only changes while reconciling
	domains map[figures.Domain]*domain
	scratch []olsr.Route
}

// New makes Routers that Run runs.
func New(o Options) *Routers {
	return &Routers{Options: o, wake: bell.New(), domains: map[figures.Domain]*domain{}}
}

// Wake makes Run look again at what is required. It does not block.
func (r *Routers) Wake() {
	r.wake.Ring()
}

// Run runs nodes' routing until ctx ends. Their routes stay then, and the state for the next worker is
// saved.
func (r *Routers) Run(ctx context.Context) error {
	again := time.NewTicker(retryRouting)
	defer again.Stop()
	saving := time.NewTimer(saveInterval)
	defer saving.Stop()
	for {
		select {
		case <-ctx.Done():
			r.Close()
			return nil
		case <-r.wake:
			clock.Pause(ctx, routingDelay)
			r.reconcile()
		case <-again.C:
			r.reconcile()
		case <-saving.C:
			saving.Reset(r.saveNext())
		}
	}
}

// reconcile starts, changes and stops routing as required.
func (r *Routers) reconcile() {
	r.reconciling.Lock()
	defer r.reconciling.Unlock()
	wanted := r.wantedDomains()
	if !r.open(len(wanted) > 0) {
		return
	}
	r.mu.Lock()
	running := maps.Clone(r.domains)
	r.mu.Unlock()
	for key, d := range running {
		if wanted[key] == nil {
			r.stopDomain(key, d)
		}
	}
	for key, w := range wanted {
		d := running[key]
		switch {
		case d != nil && d.instance != nil && reflect.DeepEqual(d.config, w.config):
			r.updateDomain(d, w)
		case d == nil || d.instance != nil || !time.Now().Before(d.next):
			r.startDomain(key, d, w)
		}
	}
	r.dropSaved()
}

// open makes what runs routers, once the first node routes, and reports whether there is one.
func (r *Routers) open(needed bool) bool {
	if r.host != nil || !needed {
		return r.host != nil
	}
	leaveProcessors(r.Loops)
	host, err := routing.NewHost(r.Log)
	if err == nil {
		r.host = host
		err = r.loadSaved()
	}
	if err != nil {
		r.Log.Error("routing", "error", err)
	}
	return r.host != nil
}

func (r *Routers) loadSaved() error {
	r.seen = r.Seen()
	r.saved, r.keepSavedUntil = map[figures.Domain]savedDomain{}, time.Now().Add(keepSaved)
	all, err := state.Load[savedDomain](r.Folder, domainFiles)
	for _, s := range all {
		r.saved[figures.Domain{PodUID: s.PodUID, Protocol: s.Protocol}] = s
	}
	return err
}

func (r *Routers) dropSaved() {
	if len(r.saved) == 0 || time.Now().Before(r.keepSavedUntil) {
		return
	}
	for key := range r.saved {
		if err := r.Folder.Remove(domainFiles, fileOf(key)); err != nil {
			r.Log.Error("routing", "error", err)
		}
	}
	clear(r.saved)
}

// wantedDomains returns the domains that RadioNetworks and attachments require.
func (r *Routers) wantedDomains() map[figures.Domain]*wantedDomain {
	all, networks := map[figures.Domain]*wantedDomain{}, map[string]*v1alpha1.RadioNetwork{}
	for _, a := range r.Members.Attachments(func(a *membership.Attachment) bool { return a.Guest == nil }) { // a guest routes by itself
		n := r.Members.Network(a.NetworkUID)
		if n == nil || !n.Spec.Routing.SetsRoutes() {
			continue
		}
		networks[a.NetworkUID] = n
		key := figures.Domain{PodUID: a.PodUID, Protocol: n.Spec.Routing.Protocol}
		if all[key] == nil {
			all[key] = &wantedDomain{}
		}
		all[key].attachments = append(all[key].attachments, a)
	}
	for _, w := range all {
		slices.SortFunc(w.attachments, func(a, b *membership.Attachment) int {
			if a.Member.Primary != b.Member.Primary {
				return map[bool]int{true: -1, false: 1}[a.Member.Primary]
			}
			return cmp.Or(cmp.Compare(a.Member.Place, b.Member.Place), cmp.Compare(a.Interface, b.Interface))
		})
		r.configure(w, networks)
	}
	return all
}

// configure sets a domain's configuration. HELLOs and TCs have the times of each network. A router has one metric, that
// of the first network, and the topologies of all networks.
func (r *Routers) configure(w *wantedDomain, networks map[string]*v1alpha1.RadioNetwork) {
	first := networks[w.attachments[0].NetworkUID]
	w.config = routing.ConfigOf(first.Spec.Routing, first.Spec.Seed^int64(w.attachments[0].Member.NEM)<<32)
	for _, a := range w.attachments {
		n := networks[a.NetworkUID]
		_, member := r.Members.Member(a.Key())
		if member == nil {
			member = &a.Member
		}
		// The router reports an invalid address.
		address, _ := netip.ParsePrefix(member.Address)
		i := routing.Interface{Name: a.Interface, Index: a.Index, Address: address, MTU: int(n.Spec.MTU), RateBitsPerSecond: n.Spec.Waveform.RateBitsPerSecond()}
		for _, route := range member.Routes {
			to, toErr := netip.ParsePrefix(route.To)
			via, viaErr := netip.ParseAddr(route.Via)
			if toErr == nil && viaErr == nil {
				i.Routes = append(i.Routes, routing.StaticRoute{To: to.Masked(), Via: via})
			}
		}
		w.config.Add(i, n.Spec.Routing)
		w.silent = append(w.silent, r.Silent(a.NetworkUID, member.NEM))
	}
}

// startDomain starts routing, or starts it again with another configuration or after a failure.
func (r *Routers) startDomain(key figures.Domain, old *domain, w *wantedDomain) {
	var state routing.State
	var absent time.Duration
	if old != nil && old.instance != nil {
		var err error
		if state, err = old.instance.State(); err != nil {
			r.Log.Warn("routing starts without its earlier state", "pod", key.PodUID, "error", err)
		}
		if err := old.instance.Leave(); err != nil {
			r.Log.Warn("routing", "pod", key.PodUID, "error", err)
		}
	} else if saved, ok := r.saved[key]; ok {
		// The routers have not worked since they were last seen.
		state, absent = saved.State, time.Duration(max(clock.Realtime()-max(r.seen, saved.TimeNanoseconds), 0))
		state.Counters = nil // they are older than the last sample: readers understand a counter that begins again, but not one that goes back
	}
	d := &domain{wantedDomain: *w}
	d.silent = make([]bool, len(w.silent))
	if old != nil {
		d.failing = old.failing
	}
	instance, err := r.startInstance(w, state, absent)
	d.instance = instance
	d.setError(err)
	if d.err != nil {
		d.instance, d.next = nil, time.Now().Add(retryRouting)
		r.Log.Warn("routing", "pod", key.PodUID, "protocol", key.Protocol, "error", d.err)
	} else {
		delete(r.saved, key)
	}
	r.mu.Lock()
	r.domains[key] = d
	r.mu.Unlock()
	if d.err == nil {
		r.updateDomain(d, w)
		r.save(key, d)
	}
	r.routingChanged(d)
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

func (r *Routers) startInstance(w *wantedDomain, s routing.State, absent time.Duration) (*routing.Instance, error) {
	namespace, err := r.Find(w.attachments[0])
	if err != nil {
		return nil, err
	}
	defer namespace.Close()
	return r.host.Adopt(namespace, w.config, s, absent)
}

// updateDomain sets which of a router's radios may transmit.
func (r *Routers) updateDomain(d *domain, w *wantedDomain) {
	for i, silent := range w.silent {
		if d.silent[i] != silent {
			d.instance.Transmit(i, !silent)
			d.silent[i] = silent
		}
	}
	r.mu.Lock()
	d.attachments = w.attachments
	err := d.instance.Err()
	before := d.err
	d.setError(err)
	differs := fmt.Sprint(err) != fmt.Sprint(before) || d.reportedGivenUp != d.givenUp()
	d.reportedGivenUp = d.givenUp()
	r.mu.Unlock()
	if differs {
		r.routingChanged(d)
	}
}

// routingChanged marks the status of a domain's networks to be written.
func (r *Routers) routingChanged(d *domain) {
	for _, a := range d.attachments {
		if n := r.Members.Network(a.NetworkUID); n != nil {
			r.Changed(n)
		}
	}
}

func (r *Routers) stopDomain(key figures.Domain, d *domain) {
	r.mu.Lock()
	delete(r.domains, key)
	r.mu.Unlock()
	var err error
	if d.instance != nil {
		err = d.instance.Stop()
	}
	if err = errors.Join(err, r.Folder.Remove(domainFiles, fileOf(key))); err != nil {
		r.Log.Warn("end of routing", "pod", key.PodUID, "protocol", key.Protocol, "error", err)
	}
}

// Close releases all routers for the next worker.
func (r *Routers) Close() {
	r.reconciling.Lock()
	defer r.reconciling.Unlock()
	r.mu.Lock()
	domains := r.domains
	r.domains = map[figures.Domain]*domain{}
	r.mu.Unlock()
	for key, d := range domains {
		if d.instance == nil {
			continue
		}
		r.save(key, d)
		if err := d.instance.Leave(); err != nil {
			r.Log.Warn("routing", "pod", key.PodUID, "error", err)
		}
	}
	if r.host != nil {
		if err := r.host.Close(); err != nil {
			r.Log.Warn("routing", "error", err)
		}
		r.host = nil
	}
}

const (
	// saveInterval is how often each router's state is saved. It is saved less often if that takes more than
	// a saveShare of a processor.
	saveInterval = time.Second
	saveShare    = 50
)

// saveNext saves the oldest state, and returns the time until the next.
func (r *Routers) saveNext() time.Duration {
	r.reconciling.Lock()
	defer r.reconciling.Unlock()
	r.mu.Lock()
	count, oldest := len(r.domains), figures.Domain{}
	var next *domain
	for key, d := range r.domains {
		if d.instance != nil && (next == nil || d.saved < next.saved) {
			oldest, next = key, d
		}
	}
	r.mu.Unlock()
	if next == nil {
		return saveInterval
	}
	began := time.Now()
	r.save(oldest, next)
	return max(saveShare*time.Since(began), saveInterval/time.Duration(count))
}

// save saves a router's state for the next worker.
func (r *Routers) save(key figures.Domain, d *domain) {
	now := clock.Realtime()
	d.saved = now
	state, err := d.instance.State()
	if err == nil {
		err = r.Folder.Put(domainFiles, fileOf(key), savedDomain{key.PodUID, key.Protocol, now, state})
	}
	if err != nil {
		r.Log.Warn("save the state of routing", "pod", key.PodUID, "error", err)
	}
}

// Serves reports whether a node routes. Its sockets then keep its namespace alive.
func (r *Routers) Serves(podUID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.domains {
		if key.PodUID == podUID {
			return true
		}
	}
	return false
}

// Includes reports whether a process is a routing daemon in a pod's namespace. It must not keep that of a node that has
// gone.
func (r *Routers) Includes(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.domains {
		if d.instance != nil && d.instance.Process() == pid {
			return true
		}
	}
	return false
}

// Trouble returns the routing errors of a network's nodes, or nil.
func (r *Routers) Trouble(networkUID string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed []string
	givenUp := false
	for _, d := range r.domains {
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
		return refusal.Of(err)
	}
	return err
}
