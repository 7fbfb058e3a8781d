package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// RoutingCounters are a node's routing counters on one network.
type RoutingCounters struct {
	routing.Counters
	// Routes of the first topology that lead through the network, and Neighbours on it to which they lead.
	Routes, Neighbours int
}

// countRouting returns the counters of all attachments that route, as of refreshRouting.
func (m *Manager) countRouting() map[memberKey]*RoutingCounters {
	m.routers.mu.Lock()
	defer m.routers.mu.Unlock()
	all := map[memberKey]*RoutingCounters{}
	for key, d := range m.routers.domains {
		if d.instance == nil || !key.isBuiltIn() {
			continue
		}
		counters := make([]*RoutingCounters, len(d.attachments))
		for i, a := range d.attachments {
			counters[i] = &RoutingCounters{Counters: d.instance.Counters(i)}
			all[a.key()] = counters[i]
		}
		m.routers.scratch = d.instance.AppendRoutes(m.routers.scratch[:0])
		for i := range m.routers.scratch {
			r := &m.routers.scratch[i]
			if r.Topology > 0 {
				break // they are ordered by topology
			}
			c := counters[r.Interface]
			c.Routes++
			if r.Hops == 1 && r.Destination.Addr() == r.NextHop {
				c.Neighbours++
			}
		}
	}
	return all
}

// isBuiltIn reports whether radiod's own routers find the domain's routes, and so know them and count packets.
func (k domainKey) isBuiltIn() bool {
	return k.protocol == v1alpha1.RoutingOLSRv2 || k.protocol == v1alpha1.RoutingOLSRv1
}

var (
	routingPacketsSent     = nodeMetric("routing_packets_sent_total", "Packets that the routing protocol sent.")
	routingBytesSent       = nodeMetric("routing_bytes_sent_total", "Bytes of the frames that the routing protocol sent, Ethernet header included.")
	routingPacketsReceived = nodeMetric("routing_packets_received_total", "Packets that the routing protocol received.")
	routingBytesReceived   = nodeMetric("routing_bytes_received_total", "Bytes of the frames that the routing protocol received, Ethernet header included.")
	routingSendErrors      = nodeMetric("routing_send_errors_total", "Packets of the routing protocol that the node's kernel did not accept.")
	routingRoutes          = nodeMetric("routing_routes", "Routes of the node that lead through the network.")
	routingNeighbours      = nodeMetric("routing_neighbours", "Neighbours on the network to which the node has routes.")
	routingMetrics         = []*prometheus.Desc{routingPacketsSent, routingBytesSent, routingPacketsReceived, routingBytesReceived, routingSendErrors,
		routingRoutes, routingNeighbours}
)

func (c *RoutingCounters) collect(to chan<- prometheus.Metric, labels []string) {
	if c == nil {
		return
	}
	for desc, value := range map[*prometheus.Desc]uint64{routingPacketsSent: c.PacketsSent, routingBytesSent: c.BytesSent,
		routingPacketsReceived: c.PacketsReceived, routingBytesReceived: c.BytesReceived, routingSendErrors: c.SendErrors} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	to <- prometheus.MustNewConstMetric(routingRoutes, prometheus.GaugeValue, float64(c.Routes), labels...)
	to <- prometheus.MustNewConstMetric(routingNeighbours, prometheus.GaugeValue, float64(c.Neighbours), labels...)
}

// NodeRoutes are the routes of one node's domain in a topology, which has no name if it is the first.
type NodeRoutes struct {
	RunUID, Node, Protocol, Topology string
	key                              routesKey
	networks                         []string // by interface
	finder                           interface {
		AppendRoutes(to []olsr.Route) []olsr.Route
	}
}

// routesKey is a domain, and the number of a topology in it.
type routesKey struct {
	domainKey
	topology int
}

// Routes returns the routes of all nodes with built-in routing, sorted by node, as of refreshRouting.
func (m *Manager) Routes() (all []NodeRoutes) {
	m.routers.mu.Lock()
	defer m.routers.mu.Unlock()
	for key, d := range m.routers.domains {
		if d.instance == nil || !key.isBuiltIn() {
			continue
		}
		n := NodeRoutes{RunUID: d.attachments[0].RunUID, Node: d.attachments[0].Member.Node, Protocol: string(key.protocol), key: routesKey{key, 0}, finder: d.instance}
		for _, a := range d.attachments {
			n.networks = append(n.networks, a.Network)
		}
		all = append(all, n)
		for k, t := range d.config.Topologies {
			n.Topology, n.key.topology = t.Name, 1+k
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b NodeRoutes) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.key.topology, b.key.topology))
	})
	return all
}

// routeLog remembers what has been written of nodes' routes.
type routeLog struct {
	written  map[routesKey]*writtenRoutes
	nextNode int
	found    []olsr.Route // scratch
}

// writtenRoutes are a node's routes as last written.
type writtenRoutes struct {
	routes   []olsr.Route
	networks []string // by interface
}

// lines returns the changes of nodes' routes, up to runapi.MaxRadioRoutes, in rotation of the nodes.
func (l *routeLog) lines(now int64, nodes []NodeRoutes) (lines []runapi.RadioRoutes) {
	if l.written == nil {
		l.written = map[routesKey]*writtenRoutes{}
	}
	if len(nodes) == 0 {
		return nil
	}
	first, room := l.nextNode%len(nodes), runapi.MaxRadioRoutes
	for k := range nodes {
		n := &nodes[(first+k)%len(nodes)]
		if room <= 0 {
			l.nextNode = (first + k) % len(nodes)
			return lines
		}
		if line := l.line(now, n); line != nil {
			room -= len(line.Routes) + len(line.Gone)
			lines = append(lines, *line)
		}
	}
	return lines
}

// line returns the changes of one node's routes, or nil.
func (l *routeLog) line(now int64, n *NodeRoutes) *runapi.RadioRoutes {
	l.found = slices.DeleteFunc(n.finder.AppendRoutes(l.found[:0]), func(r olsr.Route) bool { return r.Topology != n.key.topology })
	before, known := l.written[n.key]
	if !known {
		before = &writtenRoutes{}
		l.written[n.key] = before
	}
	line := &runapi.RadioRoutes{TimeNanoseconds: now, Node: n.Node, Routing: n.Protocol, Topology: n.Topology, Complete: !known}
	before.compare(l.found, n.networks, line)
	before.routes, before.networks = append(before.routes[:0], l.found...), n.networks
	if known && len(line.Routes)+len(line.Gone) == 0 {
		return nil
	}
	return line
}

// compare adds to a line the changes from the written routes to the found ones, both sorted by destination.
func (w *writtenRoutes) compare(found []olsr.Route, networks []string, line *runapi.RadioRoutes) {
	before := w.routes
	for i := range found {
		r := &found[i]
		for len(before) > 0 && olsr.CompareDestinations(&before[0], r) < 0 {
			line.Gone = append(line.Gone, before[0].Destination.String())
			before = before[1:]
		}
		if len(before) > 0 && before[0].Destination == r.Destination {
			was := &before[0]
			before = before[1:]
			if *was == *r && w.networks[was.Interface] == networks[r.Interface] {
				continue
			}
		}
		line.Routes = append(line.Routes, written(r, networks))
	}
	for i := range before {
		line.Gone = append(line.Gone, before[i].Destination.String())
	}
}

// written returns a route as it is written.
func written(r *olsr.Route, networks []string) runapi.RadioRoute {
	w := runapi.RadioRoute{To: r.Destination.String(), Network: networks[r.Interface], Hops: r.Hops, Metric: r.Metric}
	if r.NextHop != r.Destination.Addr() {
		w.Via = r.NextHop.String()
	}
	return w
}

// sampleRoutes writes the changes of nodes' routes into their runs' logs.
func (s *Sampler) sampleRoutes(now int64) (failed error) {
	byRun := map[string][]NodeRoutes{}
	for _, n := range s.Manager.Routes() {
		byRun[n.RunUID] = append(byRun[n.RunUID], n)
	}
	for uid, nodes := range byRun {
		r, err := s.openRunLog(uid)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		r.lines.Reset()
		encoder := json.NewEncoder(&r.lines)
		for _, line := range r.routes.lines(now, nodes) {
			failed = errors.Join(failed, encoder.Encode(line))
		}
		if r.lines.Len() > 0 {
			failed = errors.Join(failed, r.spool.append(now, r.lines.Bytes()))
		}
	}
	return failed
}
