package mapdata

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Links of a network at a time.
type Links struct {
	Network string `json:"network"`
	// AtSeconds after T0.
	AtSeconds float64 `json:"atSeconds"`
	// Links on which something was received within the last 10 s, from the radio logs, and expected ones if they were asked for. A network
	// without radios has those of all pairs of its nodes.
	Links []Link `json:"links"`
	// LeftOut links have a lower SINR than those above, because there are too many.
	LeftOut int `json:"leftOut"`
	// HopsFrom is the node from which hops are counted; empty if the network has none.
	HopsFrom string `json:"hopsFrom"`
	// HopsByRoutes reports whether they are those of the node's OLSR routes. Else they are counted over the links with receptions.
	HopsByRoutes bool `json:"hopsByRoutes"`
	// Hops to the nodes that can be reached.
	Hops []Hop `json:"hops"`
}

// Link from one node's radio to another's.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
	// SINR in dB of the last transmission above the receiver's sensitivity; null if it is not known.
	SINR *float64 `json:"sinr"`
	// Delivered share of the transmissions of the last 30 s, 0 to 1; null for a single one. In a network without radios it is the share of
	// all frames of the sender that its links did not lose.
	Delivered *float64 `json:"delivered"`
	// Pathloss in dB; null if it is not known.
	Pathloss *float64 `json:"pathloss"`
	// Expected is set if nothing was received lately, but the link budget would do. Its SINR is without interference and jammers.
	Expected bool `json:"expected"`
}

// Hop to a node.
type Hop struct {
	From string `json:"from"`
	To   string `json:"to"`
	Hops int    `json:"hops"`
}

const (
	// linkHold is how long a link lasts after its last received transmission, as in the report: HELLOs are 2 s apart.
	linkHold = 10 * time.Second
	// maxLinks of an answer.
	maxLinks = 20_000
)

// LinksQuery says which links are wanted.
type LinksQuery struct {
	Network string
	// At is the time after T0; nil for now.
	At *time.Duration
	// HopsFrom is a node; empty for one with a broker, or the first of the network.
	HopsFrom string
	// Expected asks also for the links that the link budget allows. Without a T0 there are no others.
	Expected bool
}

// Links of a run's network.
func (m *Maps) Links(ctx context.Context, s Source, uid string, query LinksQuery) (*Links, error) {
	manifest, err := s.Archive.Files(ctx, uid) // also checks the user's rights
	if err != nil {
		return nil, explain(err, "run "+uid)
	}
	r, err := m.recentRun(ctx, s, uid)
	if err != nil {
		return nil, err
	}
	spec, err := r.network(query.Network)
	if err != nil {
		return nil, err
	}
	made := &Links{Network: query.Network, Links: []Link{}, HopsFrom: query.HopsFrom}
	if made.HopsFrom == "" {
		made.HopsFrom = r.centre(spec)
	} else if !slices.ContainsFunc(spec.Members, func(m v1alpha1.Member) bool { return m.Node == made.HopsFrom }) {
		return nil, errorf(http.StatusBadRequest, "hopsFrom %q: network %s has no such node", query.HopsFrom, query.Network)
	}
	done, err := m.work(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	at, err := m.heard(ctx, s, r, manifest.Files, query, made)
	if err != nil {
		return nil, err
	}
	made.AtSeconds, made.Hops = round(at.Seconds(), 1e3), hopsFrom(made.HopsFrom, made.Links)
	if err := m.byRoutes(ctx, s, r, manifest.Files, spec, at, made); err != nil {
		return nil, err
	}
	if query.Expected {
		expected, err := m.expected(ctx, s, spec, at)
		if err != nil {
			return nil, err
		}
		made.Links = withExpected(made.Links, expected)
	}
	made.LeftOut = max(len(made.Links)-maxLinks, 0)
	made.Links = strongest(made.Links)
	return made, nil
}

// heard adds the links of the radio logs, and returns their time after T0.
func (m *Maps) heard(ctx context.Context, s Source, r *run, files []runapi.ManifestFile, query LinksQuery, made *Links) (time.Duration, error) {
	if r.plan.T0 == nil {
		if query.Expected {
			return 0, nil
		}
		return 0, errorf(http.StatusConflict, "run %s has no T0 yet: its radios carry nothing that counts", r.plan.Name)
	}
	logged, at, err := m.logged(ctx, s, r, files, r.momentOf(query))
	if err != nil {
		return 0, err
	}
	if spec, err := r.network(query.Network); err == nil && spec.Waveform.PHY() == nil {
		made.Links = linksWithoutRadios(spec, logged.samples)
	} else {
		made.Links = linksOf(logged.links, query.Network, at)
	}
	return max(time.Duration(at-r.plan.T0.UnixNano()), 0), nil
}

// momentOf a query, Unix epoch in nanoseconds; newest for the end of logs that grow. The page's clock may be wrong, so it does not count.
func (r *run) momentOf(query LinksQuery) int64 {
	switch {
	case query.At != nil:
		return r.plan.T0.Add(*query.At).UnixNano()
	case r.sealed && r.end() > 0:
		return r.plan.T0.Add(r.end()).UnixNano()
	}
	return newest
}

// network of a run, by its name.
func (r *run) network(name string) (*v1alpha1.RadioNetworkSpec, error) {
	var names []string
	for i := range r.networks {
		if r.networks[i].Network == name {
			return &r.networks[i], nil
		}
		names = append(names, r.networks[i].Network)
	}
	return nil, errorf(http.StatusBadRequest, "network %q: run %s has %s", name, r.plan.Name, strings.Join(names, ", "))
}

// centre is the first member with a broker, or the first member.
func (r *run) centre(spec *v1alpha1.RadioNetworkSpec) string {
	brokers := r.brokers()
	if i := slices.IndexFunc(spec.Members, func(m v1alpha1.Member) bool { return brokers[m.Node] }); i >= 0 {
		return spec.Members[i].Node
	}
	if len(spec.Members) == 0 {
		return ""
	}
	return spec.Members[0].Node
}

// logged are the records of all hosts' radio logs of the shareWindow before a time, which is also returned: it is T0 or later for newest.
func (m *Maps) logged(ctx context.Context, s Source, r *run, files []runapi.ManifestFile, at int64) (all records, until int64, err error) {
	until = at
	if at == newest {
		until = 0
	}
	for _, file := range files {
		if path.Dir(file.Path) != archive.RadioDir {
			continue
		}
		found, last, err := m.log(r, file.Path).until(ctx, s.reader(r.plan.UID, file.Path), file.Bytes, at)
		if err != nil {
			return records{}, 0, explain(err, file.Path)
		}
		all.links, all.samples, until = append(all.links, found.links...), append(all.samples, found.samples...), max(until, last)
		m.logs.trim(maxKeptLogBytes, func(l *radioLog) int64 { return l.bytes.Load() })
	}
	slices.SortStableFunc(all.links, func(a, b runapi.RadioLinks) int { return cmp.Compare(a.TimeNanoseconds, b.TimeNanoseconds) })
	slices.SortStableFunc(all.samples, func(a, b runapi.RadioSample) int { return cmp.Compare(a.TimeNanoseconds, b.TimeNanoseconds) })
	return all, until, nil
}

// log of a host with nodes of a run, by its path.
func (m *Maps) log(r *run, path string) *radioLog {
	return m.logs.getOrMake(r.plan.UID+"/"+path, func() *radioLog { return &radioLog{unheard: r.withoutRadios()} })
}

// pair of nodes, from a sender to a receiver.
type pair struct{ from, to string }

// tally of a link's samples.
type tally struct {
	link Link
	// heard and missed by the first sample, and those that were added since.
	heard, missed         uint64
	newlyHeard, newlyLost uint64
	samples               int
	// lastHeard is when the last sample with a received transmission was written.
	lastHeard int64
}

// linksOf a network by samples in order of time.
func linksOf(samples []runapi.RadioLinks, network string, at int64) []Link {
	tallies := map[pair]*tally{}
	for i := range samples {
		if samples[i].Network != network {
			continue
		}
		for k := range samples[i].From {
			sample := &samples[i].From[k]
			key := pair{sample.Node, samples[i].Receiver}
			if tallies[key] == nil {
				tallies[key] = &tally{link: Link{From: key.from, To: key.to}}
			}
			tallies[key].add(sample, samples[i].TimeNanoseconds)
		}
	}
	links := []Link{}
	for _, t := range tallies {
		if t.lastHeard > 0 && at-t.lastHeard <= int64(linkHold) {
			links = append(links, t.done())
		}
	}
	slices.SortFunc(links, byNodes)
	return links
}

func byNodes(a, b Link) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) }

func (t *tally) add(sample *runapi.RadioLink, at int64) {
	missed := uint64(0)
	for n := range maps.Values(sample.Missed) {
		missed += n
	}
	switch {
	case t.samples > 0 && sample.Received >= t.heard && missed >= t.missed:
		t.newlyHeard += sample.Received - t.heard
		t.newlyLost += missed - t.missed
		if sample.Received > t.heard {
			t.lastHeard = at
		}
	case sample.Received > 0: // the first sample, or the first one after another attachment
		t.lastHeard = at
	}
	t.heard, t.missed = sample.Received, missed
	t.samples++
	if sample.SINRDecibels != nil {
		t.link.SINR = sample.SINRDecibels
	}
	if sample.PathlossDecibels != nil {
		t.link.Pathloss = sample.PathlossDecibels
	}
}

func (t *tally) done() Link {
	if all := t.newlyHeard + t.newlyLost; all > 0 {
		share := round(float64(t.newlyHeard)/float64(all), 1e3)
		t.link.Delivered = &share
	}
	return t.link
}

// hopsFrom a node to the others over links, breadth first.
func hopsFrom(node string, links []Link) []Hop {
	next := map[string][]string{}
	for i := range links {
		next[links[i].From] = append(next[links[i].From], links[i].To)
	}
	hops := []Hop{}
	seen := map[string]bool{node: true}
	for front, count := []string{node}, 1; len(front) > 0; count++ {
		var reached []string
		for _, from := range front {
			for _, to := range next[from] {
				if !seen[to] {
					seen[to] = true
					reached = append(reached, to)
					hops = append(hops, Hop{node, to, count})
				}
			}
		}
		front = reached
	}
	return hops
}

// strongest are at most maxLinks, in the order of the nodes.
func strongest(links []Link) []Link {
	if len(links) <= maxLinks {
		return links
	}
	sinr := func(l Link) float64 {
		if l.SINR == nil {
			return -1000
		}
		return *l.SINR
	}
	kept := slices.SortedStableFunc(slices.Values(links), func(a, b Link) int { return cmp.Compare(sinr(b), sinr(a)) })[:maxLinks]
	slices.SortFunc(kept, byNodes)
	return kept
}
