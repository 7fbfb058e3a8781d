package mapdata

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// maxRouteLogBytes of one host's radio log that is read for routes: only the whole log tells them, as it has their changes.
	maxRouteLogBytes = 256 << 20
	// routeReadBytes of one read.
	routeReadBytes = 4 << 20
	// maxKeptRouteLogs, and maxKeptRouteBytes of memory for all of them; routeBytes and changeBytes about those of a route and a change.
	maxKeptRouteLogs, maxKeptRouteBytes = 32, 128 << 20
	routeBytes, changeBytes             = 8, 80
)

// routeLog has the changes of routes from the beginning of a host's radio log.
type routeLog struct {
	mu sync.Mutex
	// to is the offset up to which the log was read.
	to int64
	// routers by node and protocol.
	routers map[router][]routeChange
	// numbers of the destinations.
	numbers map[string]int32
	// bytes of memory, about.
	bytes atomic.Int64
}

// router is a node's routing by one protocol.
type router struct{ node, protocol string }

// routeChange is a line of the log.
type routeChange struct {
	at int64
	// complete changes have all routes.
	complete bool
	routes   []hopsTo
}

// hopsTo a destination; 0 if the route is gone.
type hopsTo struct{ destination, hops int32 }

// readTo the size of a log.
func (l *routeLog) readTo(ctx context.Context, read reader, size int64) error {
	for l.to < size {
		text, err := read(ctx, l.to, min(size-l.to, routeReadBytes))
		if err != nil {
			return err
		}
		whole := bytes.LastIndexByte(text, '\n') + 1
		if whole == 0 {
			return nil // the line is still being written
		}
		for line := range bytes.Lines(text[:whole]) {
			l.add(line)
		}
		l.to += int64(whole)
	}
	return nil
}

func (l *routeLog) add(line []byte) {
	var routes runapi.RadioRoutes
	if !bytes.Contains(line, []byte(`"routing":`)) || json.Unmarshal(line, &routes) != nil || routes.Routing == "" || routes.Topology != "" {
		return
	}
	change := routeChange{at: routes.TimeNanoseconds, complete: routes.Complete}
	for i := range routes.Routes {
		change.routes = append(change.routes, hopsTo{l.number(routes.Routes[i].To), int32(routes.Routes[i].Hops)}) //nolint:gosec // at most 255
	}
	for _, gone := range routes.Gone {
		change.routes = append(change.routes, hopsTo{l.number(gone), 0})
	}
	if l.routers == nil {
		l.routers = map[router][]routeChange{}
	}
	key := router{routes.Node, routes.Routing}
	l.routers[key] = append(l.routers[key], change)
	l.bytes.Add(changeBytes + routeBytes*int64(len(change.routes)))
}

// number of a destination.
func (l *routeLog) number(destination string) int32 {
	if l.numbers == nil {
		l.numbers = map[string]int32{}
	}
	number, known := l.numbers[destination]
	if !known {
		number = int32(len(l.numbers)) //nolint:gosec // there are fewer addresses
		l.numbers[destination] = number
	}
	return number
}

// hopsOf a router's routes at a time, by destination. It reports false for a node without routing by the protocol. A node
// may route by another protocol in another network.
func (l *routeLog) hopsOf(of router, at int64) (hops map[string]int, routes bool) {
	byNumber := map[int32]int32{}
	changes := l.routers[of]
	for i := range changes {
		if changes[i].at > at {
			break
		}
		routes = true
		if changes[i].complete {
			clear(byNumber)
		}
		for _, to := range changes[i].routes {
			byNumber[to.destination] = to.hops
		}
	}
	hops = map[string]int{}
	for destination, number := range l.numbers {
		if count := byNumber[number]; count > 0 {
			hops[destination] = int(count)
		}
	}
	return hops, routes
}

// byRoutes replaces the hops by those of the routes, where the record has them.
func (m *Maps) byRoutes(ctx context.Context, s Source, r *run, files []runapi.ManifestFile, spec *v1alpha1.RadioNetworkSpec, at time.Duration, made *Links) error {
	if r.plan.T0 == nil {
		return nil
	}
	hops, known, err := m.routed(ctx, s, r, files, spec, made.HopsFrom, r.plan.T0.Add(at).UnixNano())
	if known {
		made.Hops, made.HopsByRoutes = hops, true
	}
	return err
}

// routed are the hops from a node to the other members of a network by the node's routes at a time. They are the routes of the network's
// own protocol. It reports false where the record has none: without routing by OLSR, or in a log that is too long.
func (m *Maps) routed(ctx context.Context, s Source, r *run, files []runapi.ManifestFile, spec *v1alpha1.RadioNetworkSpec, from string, at int64) (hops []Hop, known bool, err error) {
	if !isRouted(spec) {
		return nil, false, nil
	}
	all := map[string]int{}
	for _, file := range files {
		if path.Dir(file.Path) != archive.RadioDir {
			continue
		}
		if file.Bytes > maxRouteLogBytes {
			return nil, false, nil
		}
		found, routes, err := m.routesIn(ctx, s, r, file, router{from, string(spec.Routing.Protocol)}, at)
		if err != nil {
			return nil, false, explain(err, file.Path)
		}
		known = known || routes
		for destination, count := range found {
			all[destination] = count
		}
	}
	hops = []Hop{}
	for i := range spec.Members {
		if prefix, err := netip.ParsePrefix(spec.Members[i].Address); err == nil && spec.Members[i].Node != from {
			if count := all[netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen()).String()]; count > 0 {
				hops = append(hops, Hop{from, spec.Members[i].Node, count})
			}
		}
	}
	slices.SortStableFunc(hops, func(a, b Hop) int { return cmp.Compare(a.Hops, b.Hops) })
	return hops, known, nil
}

func (m *Maps) routesIn(ctx context.Context, s Source, r *run, file runapi.ManifestFile, of router, at int64) (hops map[string]int, routes bool, err error) {
	log := m.routes.getOrMake(r.plan.UID+"/"+file.Path, func() *routeLog { return &routeLog{} })
	log.mu.Lock()
	defer log.mu.Unlock()
	if err := log.readTo(ctx, s.reader(r.plan.UID, file.Path), file.Bytes); err != nil {
		return nil, false, err
	}
	hops, routes = log.hopsOf(of, at)
	m.routes.trim(maxKeptRouteBytes, func(l *routeLog) int64 { return l.bytes.Load() })
	return hops, routes, nil
}

// isRouted reports whether radiod finds the routes of a network, and so logs them.
func isRouted(spec *v1alpha1.RadioNetworkSpec) bool {
	return spec.Routing != nil && (spec.Routing.Protocol == v1alpha1.RoutingOLSRv2 || spec.Routing.Protocol == v1alpha1.RoutingOLSRv1)
}
