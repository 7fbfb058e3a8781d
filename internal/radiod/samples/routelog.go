package samples

import (
	"encoding/json"
	"errors"
	"slices"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/runapi"
)

// routesKey is a domain, and the number of a topology in it.
type routesKey struct {
	domain   figures.Domain
	topology int
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
func (l *routeLog) lines(now int64, nodes []figures.Routes) (lines []runapi.RadioRoutes) {
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
func (l *routeLog) line(now int64, n *figures.Routes) *runapi.RadioRoutes {
	l.found = slices.DeleteFunc(n.Finder.AppendRoutes(l.found[:0]), func(r olsr.Route) bool { return r.Topology != n.Number })
	key := routesKey{n.Domain, n.Number}
	before, known := l.written[key]
	if !known {
		before = &writtenRoutes{}
		l.written[key] = before
	}
	line := &runapi.RadioRoutes{TimeNanoseconds: now, Node: n.Node, Routing: string(n.Domain.Protocol), Topology: n.Topology, Complete: !known}
	before.compare(l.found, n.Networks, line)
	before.routes, before.networks = append(before.routes[:0], l.found...), n.Networks
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
	byRun := map[string][]figures.Routes{}
	for _, n := range s.Source.Routes() {
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
