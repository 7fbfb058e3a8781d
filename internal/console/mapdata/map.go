package mapdata

import (
	"context"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Map of a run. Times are seconds after T0.
type Map struct {
	// T0 is null before it is set.
	T0 *time.Time `json:"t0"`
	// DurationSeconds is null for a live cluster that goes on.
	DurationSeconds *float64 `json:"durationSeconds"`
	// Positions reports whether any node has a place.
	Positions bool      `json:"positions"`
	Nodes     []Node    `json:"nodes"`
	Networks  []Network `json:"networks"`
	// Terrain is null where none is known.
	Terrain  *Terrain    `json:"terrain"`
	Jammers  []Jammer    `json:"jammers"`
	Silences []Silence   `json:"silences"`
	Happened []Happening `json:"happened"`
	// Missing says what the map lacks, and why.
	Missing []string `json:"missing"`
}

// Node on the map.
type Node struct {
	Name  string `json:"name"`
	Group string `json:"group"`
	// Platform that carries the node; null for none.
	Platform *int32 `json:"platform"`
	// Networks in the node's order.
	Networks []string `json:"networks"`
	// Broker reports whether apps of the run have a broker here.
	Broker bool `json:"broker"`
	// Track has one point for a node that stands, none for one without a place. Between two points it moves evenly.
	Track []Point `json:"track"`
	// Reported are the freshest positions that a subscriber on another node has received from the node. Each holds until the next.
	Reported []Point `json:"reported"`
}

// Network of the run.
type Network struct {
	Name string `json:"name"`
	// Model is link, rfpipe or tdma.
	Model string `json:"model"`
	// Links reports whether the radios report links, so that the archive has their SINR.
	Links bool `json:"links"`
}

// Map makes the map of a run.
func (m *Maps) Map(ctx context.Context, s Source, uid string) (*Map, error) {
	r, err := read(ctx, s, uid)
	if err != nil {
		return nil, err
	}
	made := &Map{T0: r.plan.T0, Nodes: []Node{}, Networks: []Network{}, Missing: []string{}}
	if end := r.end(); end > 0 {
		seconds := end.Seconds()
		made.DurationSeconds = &seconds
	}
	for i := range r.networks {
		waveform := &r.networks[i].Waveform
		made.Networks = append(made.Networks, Network{r.networks[i].Network, waveform.Model(), waveform.PHY() != nil})
	}
	tracks, err := m.tracksOfRun(ctx, s, r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		made.Missing = append(made.Missing, "movement: "+err.Error())
	}
	reports, err := reported(ctx, s, r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		made.Missing = append(made.Missing, "reported positions: "+err.Error())
	}
	brokers := r.brokers()
	for _, node := range r.topology.Nodes {
		made.Nodes = append(made.Nodes, r.node(node, tracks, brokers[node.Name]))
		if points := reports[node.Name]; points != nil {
			made.Nodes[len(made.Nodes)-1].Reported = points
		}
		made.Positions = made.Positions || len(made.Nodes[len(made.Nodes)-1].Track) > 0
	}
	made.Jammers, made.Silences, made.Happened = r.changes()
	if made.Terrain, err = m.terrainOf(ctx, s, r, made); err != nil {
		made.Missing = append(made.Missing, "terrain: "+err.Error())
	}
	return made, ctx.Err()
}

// tracksOfRun are the points of the scenario's platforms, by their numbers.
func (m *Maps) tracksOfRun(ctx context.Context, s Source, r *run) (map[int32][]Point, error) {
	if r.scenario == nil {
		return nil, nil
	}
	until := r.end()
	if until == 0 {
		until = time.Duration(1<<63 - 1)
	}
	tracks, err := m.tracksUntil(ctx, s, r.scenario.Digest, until)
	if err != nil {
		return nil, err
	}
	byPlatform := map[int32][]Point{}
	for _, one := range tracks {
		byPlatform[int32(one.platform)] = one.points //nolint:gosec // at most scenario.MaxPlatform
	}
	return byPlatform, nil
}

// tracksUntil a time of a scenario, unless they are kept.
func (m *Maps) tracksUntil(ctx context.Context, s Source, digest string, until time.Duration) ([]track, error) {
	key := fmt.Sprint(digest, until)
	if tracks, known := m.tracks.get(key); known {
		return tracks, nil
	}
	done, err := m.work(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if tracks, known := m.tracks.get(key); known { // by the one before in the line
		return tracks, nil
	}
	compiled, err := m.scenario(ctx, s, digest)
	if err != nil {
		return nil, err
	}
	tracks, err := tracksOf(ctx, compiled, until)
	if err != nil {
		return nil, errorOf(err)
	}
	m.tracks.put(key, tracks)
	return tracks, nil
}

func (r *run) node(node topology.Node, tracks map[int32][]Point, broker bool) Node {
	made := Node{Name: node.Name, Group: node.Group, Platform: r.scenario.PlatformOf(node), Networks: []string{}, Broker: broker, Track: []Point{}, Reported: []Point{}}
	for _, attachment := range node.Attachments {
		made.Networks = append(made.Networks, attachment.Network)
	}
	switch {
	case node.Position != nil:
		made.Track = append(made.Track, pointOf(*node.Position))
	case made.Platform != nil && len(tracks[*made.Platform]) > 0:
		made.Track = tracks[*made.Platform]
	}
	return made
}

func pointOf(p v1alpha1.Position) Point {
	return Point{0, p.Latitude.Float(), p.Longitude.Float(), p.Altitude.Float()}
}
