package routing

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// RouteProtocol marks the routes of this package in the kernel (rtm_protocol; `ip route show proto 86`). rtnetlink.h and
// iproute2 give the number to nobody else.
const RouteProtocol = 86

// priorities (metrics) of the kernel's routes, one for each protocol so that none replaces another's. A node's own routes, which
// have 0 unless told otherwise, come first.
var priorities = map[v1alpha1.RoutingProtocol]int{v1alpha1.RoutingStatic: 20, v1alpha1.RoutingOLSRv2: 30, v1alpha1.RoutingOLSRv1: 31}

type route = netip.Prefix

// hop is where a route leads: an interface, and a neighbour there unless the destination is one.
type hop struct {
	index int
	via   netip.Addr
}

// kernel has one domain's routes in a namespace.
type kernel struct {
	priority int

	mu      sync.Mutex
	handle  *netlink.Handle // nil when closed
	wanted  map[route]hop
	written map[route]hop
	// keepUntil then routes that are not wanted stay.
	keepUntil time.Time
	err       error
}

// openKernel reads the domain's routes that are there: those of this package through the domain's interfaces.
func openKernel(namespace *os.File, c *Config) (*kernel, error) {
	k := &kernel{priority: priorities[c.Protocol], written: map[route]hop{}}
	err := netns.Do(namespace, func() (err error) {
		k.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	routes, err := k.handle.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: RouteProtocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		k.handle.Close()
		return nil, fmt.Errorf("kernel's routes: %w", err)
	}
	ours := map[int]bool{}
	for n := range c.Interfaces {
		ours[c.Interfaces[n].Index] = true
	}
	for n := range routes {
		if r := &routes[n]; ours[r.LinkIndex] {
			if err := k.take(r); err != nil {
				k.handle.Close()
				return nil, err
			}
		}
	}
	return k, nil
}

// take notes a route that is there; one of another protocol that the network had before goes.
func (k *kernel) take(r *netlink.Route) error {
	if r.Priority != k.priority {
		if err := k.handle.RouteDel(r); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove route to %v: %w", r.Dst, err)
		}
		return nil
	}
	if r.Dst == nil {
		r.Dst = &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	}
	ones, _ := r.Dst.Mask.Size()
	to, ok := netip.AddrFromSlice(r.Dst.IP)
	if !ok {
		return nil
	}
	h := hop{index: r.LinkIndex}
	if via, ok := netip.AddrFromSlice(r.Gw); ok {
		h.via = via.Unmap()
	}
	k.written[netip.PrefixFrom(to.Unmap(), ones)] = h
	return nil
}

func (k *kernel) want(wanted map[route]hop) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted = wanted
}

func (k *kernel) trouble() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// write makes the kernel have what is wanted. New ways come before old ones go.
func (k *kernel) write() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = nil
	if k.handle == nil {
		return nil
	}
	for to, h := range k.wanted {
		if before, there := k.written[to]; there && before == h {
			continue
		}
		if err := k.handle.RouteReplace(k.route(to, h)); err != nil {
			k.err = fmt.Errorf("route to %v via %v: %w", to, h.via, err)
			continue
		}
		k.written[to] = h
	}
	if time.Now().Before(k.keepUntil) {
		return k.err
	}
	for to, h := range k.written {
		if _, wanted := k.wanted[to]; wanted {
			continue
		}
		// Routes go with their interface.
		if err := k.handle.RouteDel(k.route(to, h)); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENODEV) {
			k.err = fmt.Errorf("remove route to %v: %w", to, err)
			continue
		}
		delete(k.written, to)
	}
	return k.err
}

func (k *kernel) route(to route, h hop) *netlink.Route {
	r := &netlink.Route{Dst: &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), to.Addr().BitLen())}, LinkIndex: h.index,
		Protocol: RouteProtocol, Priority: k.priority, Scope: netlink.SCOPE_LINK}
	if h.via.IsValid() {
		// The neighbour has been heard on the link, whatever the kernel's routes say of it.
		r.Gw, r.Scope, r.Flags = h.via.AsSlice(), netlink.SCOPE_UNIVERSE, int(netlink.FLAG_ONLINK)
	}
	return r
}

// again is when write has to be called again though nothing else is wanted; zero for never.
func (k *kernel) again(now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.handle == nil:
		return 0
	case k.err != nil:
		return retryInterval
	case now.Before(k.keepUntil):
		return k.keepUntil.Sub(now)
	}
	return 0
}

func (k *kernel) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.handle != nil {
		k.handle.Close()
		k.handle = nil
	}
	return nil
}

// staticRoutes of a node.
func staticRoutes(c *Config) map[route]hop {
	hops := map[route]hop{}
	for n := range c.Interfaces {
		for _, r := range c.Interfaces[n].Routes {
			hops[r.To] = hop{index: c.Interfaces[n].Index, via: r.Via}
		}
	}
	return hops
}

const retryInterval = time.Second

// writer writes routes, one node's after the other's: while pods come and go, the kernel may keep it waiting for long, which
// the routers' thread cannot afford.
type writer struct {
	mu     sync.Mutex
	queue  []*kernel
	queued map[*kernel]bool
	wake   chan struct{}
	ended  chan struct{}
}

func newWriter() *writer {
	w := &writer{queued: map[*kernel]bool{}, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.run()
	return w
}

func (w *writer) add(k *kernel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queued == nil || w.queued[k] {
		return
	}
	w.queued[k] = true
	w.queue = append(w.queue, k)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *writer) next() (*kernel, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, w.queued != nil
	}
	k := w.queue[0]
	w.queue = w.queue[1:]
	delete(w.queued, k)
	return k, true
}

func (w *writer) run() {
	defer close(w.ended)
	for {
		k, open := w.next()
		switch {
		case !open:
			return
		case k == nil:
			<-w.wake
			continue
		}
		_ = k.write() // kept in trouble
		if wait := k.again(time.Now()); wait > 0 {
			time.AfterFunc(wait, func() { w.add(k) })
		}
	}
}

func (w *writer) close() {
	w.mu.Lock()
	w.queue, w.queued = nil, nil
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	<-w.ended
}
