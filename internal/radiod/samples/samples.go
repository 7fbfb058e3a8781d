// Package samples writes what a host counts of its radios into the runs' radio logs, once a second, and ships them to the
// archive. The logs outlive the process in spools.
package samples

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/runapi"
)

// Interval of the samples.
const Interval = time.Second

const (
	// keepFinished is how long a finished run's samples are offered to a server that does not take them.
	keepFinished = 2 * time.Minute
	shipTimeout  = 20 * time.Second
)

// Source is what is sampled.
type Source interface {
	// ReadRings updates the counters that the kernel keeps in pods' namespaces.
	ReadRings()
	// Counters of all networks with attachments here. With reset, values since the last reset start again.
	Counters(reset bool) []figures.Network
	// Routes of all nodes with built-in routing, sorted by node.
	Routes() []figures.Routes
	// LateIntervals are the times in which the engine's loops were late since the last ForgetLateIntervals, by loop.
	LateIntervals() [][]radio.Interval
	ForgetLateIntervals()
}

// Sampler writes the counters of every node's radio each second, and ships them to the archive.
type Sampler struct {
	Source  Source
	Archive Archive
	// Host is the Kubernetes node's name.
	Host string
	// Directory of the spools.
	Directory string
	Log       *slog.Logger
	// Captures whose state is sampled; nil for none.
	Captures *capture.Recorder

	// waiting bytes in the spools of all runs.
	waiting atomic.Int64
	load    hostLoad

	mu   sync.Mutex
	runs map[string]*runLog
}

// runLog is the radio log of one experiment that has, or had lately, attachments on this host.
type runLog struct {
	spool *spool
	// described are the nodes, by network and node, whose settings are written.
	described   map[string]bool
	networkLogs map[string]*networkLog // by network
	routes      routeLog
	lines       bytes.Buffer // of the current sample
	finished    time.Time    // zero while there are attachments
	loops       []int        // that served it at the last sample
	// capturesCompleted reports whether all captures have ended, and the log says so.
	capturesCompleted bool
}

// Open continues spools of earlier workers. It comes before everything else.
func (s *Sampler) Open() error {
	if err := os.MkdirAll(s.Directory, 0o700); err != nil {
		return fmt.Errorf("spool folder: %w", err)
	}
	s.runs = map[string]*runLog{}
	proc, err := procfs.NewFS(ProcDirectory)
	if err != nil {
		return fmt.Errorf("load of the host: %w", err)
	}
	s.load = hostLoad{proc: proc, now: time.Now}
	if err := s.openLeftOver(); err != nil {
		s.Log.Error("spools of earlier workers", "error", err)
	}
	return nil
}

// Run samples and ships until ctx ends.
func (s *Sampler) Run(ctx context.Context) error {
	var wait sync.WaitGroup
	wait.Go(func() { s.shipAll(ctx) })
	defer wait.Wait()
	clock.Every(ctx, Interval, s.Sample)
	return nil
}

// Sample writes everything that is written once a second.
func (s *Sampler) Sample() {
	s.repeatAfterGaps()
	s.Source.ReadRings()
	counted, now := s.Source.Counters(true), clock.Realtime()
	for what, err := range map[string]error{
		"radio samples": s.sample(now, counted), "lateness of the radio": s.sampleLate(now, counted, s.Source.LateIntervals()),
		"samples of captures": s.sampleCaptures(now), "nodes' routes": s.sampleRoutes(now), "the host's load": s.sampleLoad(now),
	} {
		if err != nil {
			s.Log.Error("write "+what, "error", err)
		}
	}
	s.Source.ForgetLateIntervals() // even if a log could not take them: the other logs would have them twice
}

// repeatAfterGaps forgets what was written into logs with a new gap: lines that write only changes would build on lines that
// are not there.
func (s *Sampler) repeatAfterGaps() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, r := range s.runs {
		if !r.spool.hasResumed() {
			continue
		}
		r.described, r.networkLogs, r.routes = map[string]bool{}, map[string]*networkLog{}, routeLog{}
		if s.Captures != nil {
			s.Captures.Repeat(uid)
		}
	}
}

// openLeftOver opens the spools of earlier workers, so that their rest is shipped too.
func (s *Sampler) openLeftOver() error {
	entries, err := os.ReadDir(s.Directory)
	for _, entry := range entries {
		if uid, _, ok := parseSpoolName(entry.Name()); ok {
			_, openErr := s.openRunLog(uid)
			err = errors.Join(err, openErr)
		}
	}
	return err
}

// openRunLog returns the run with that UID, and opens its spool the first time.
func (s *Sampler) openRunLog(uid string) (*runLog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[uid]; r != nil {
		return r, nil
	}
	sp, err := openSpool(s.Directory, uid, &s.waiting)
	if err != nil {
		return nil, err
	}
	r := &runLog{spool: sp, described: map[string]bool{}, networkLogs: map[string]*networkLog{}, finished: time.Now()}
	s.runs[uid] = r
	return r, nil
}

// headers describe nodes that have not been described yet; nodes with equal settings share one.
func (s *Sampler) headers(now int64, r *runLog, networks []figures.Network) (headers []runapi.RadioHeader) {
	for _, n := range networks {
		first := len(headers)
		for i := range n.Nodes {
			node := &n.Nodes[i]
			key := n.Network + "/" + node.Node
			if r.described[key] {
				continue
			}
			r.described[key] = true
			same := slices.IndexFunc(headers[first:], func(h runapi.RadioHeader) bool { return maps.Equal(h.Settings, node.Settings) })
			if same < 0 {
				same = len(headers) - first
				headers = append(headers, runapi.RadioHeader{TimeNanoseconds: now, Host: s.Host, Kernel: kernelRelease(), Settings: node.Settings})
			}
			headers[first+same].Nodes = append(headers[first+same].Nodes, node.Node)
		}
	}
	return headers
}

// Append adds complete lines to a run's log.
func (s *Sampler) Append(uid string, now int64, lines []byte) error {
	r, err := s.openRunLog(uid)
	if err != nil {
		return err
	}
	return r.spool.append(now, lines)
}

// Record writes gaps and last counters of a run to a spool that outlives the worker.
func (s *Sampler) Record(uid string, gaps []runapi.RadioGap, last []figures.Network) error {
	r, err := s.openRunLog(uid)
	if err != nil {
		return err
	}
	now := clock.Realtime()
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for i := range gaps {
		err = errors.Join(err, encoder.Encode(&gaps[i]))
	}
	return errors.Join(err, encodeSamples(encoder, now, last), r.spool.append(now, lines.Bytes()))
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// sample writes one line per node and network.
func (s *Sampler) sample(now int64, networks []figures.Network) error {
	var failed error
	byRun := map[string][]figures.Network{}
	for _, n := range networks {
		byRun[string(n.Experiment.UID)] = append(byRun[string(n.Experiment.UID)], n)
	}
	active := map[string]*runLog{}
	for uid, counted := range byRun {
		r, err := s.openRunLog(uid)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		active[uid] = r
		failed = errors.Join(failed, s.sampleRun(now, r, counted))
	}
	s.markFinished(active)
	return failed
}

func (s *Sampler) sampleRun(now int64, r *runLog, networks []figures.Network) error {
	r.lines.Reset()
	encoder := json.NewEncoder(&r.lines)
	var failed error
	for _, header := range s.headers(now, r, networks) {
		failed = errors.Join(failed, encoder.Encode(header))
	}
	failed = errors.Join(failed, encodeSamples(encoder, now, networks))
	for i := range networks {
		c := r.networkLogs[networks[i].Network]
		if c == nil {
			c = &networkLog{}
			r.networkLogs[networks[i].Network] = c
		}
		failed = errors.Join(failed, c.sample(encoder, now, &networks[i]))
	}
	return errors.Join(failed, r.spool.append(now, r.lines.Bytes()))
}

func encodeSamples(encoder *json.Encoder, now int64, networks []figures.Network) (failed error) {
	toRealtime := clock.EpochOffset()
	for _, n := range networks {
		for i := range n.Nodes {
			node := &n.Nodes[i]
			failed = errors.Join(failed, encoder.Encode(sampleOf(now, n.Network, node)))
			for _, missed := range node.Slots.MissedIn {
				failed = errors.Join(failed, encoder.Encode(runapi.RadioMissedSlots{TimeNanoseconds: toRealtime + missed.To,
					FromNanoseconds: toRealtime + missed.From, Network: n.Network, Node: node.Node, Slots: missed.Count}))
			}
		}
		for _, late := range n.LateChanges {
			failed = errors.Join(failed, encoder.Encode(runapi.RadioLateChange{TimeNanoseconds: late.To, FromNanoseconds: late.From, Network: n.Network}))
		}
	}
	return failed
}

// sampleLate writes when the engine's loops were late into the logs of the runs that they serve, or served at
// the previous sample.
func (s *Sampler) sampleLate(now int64, networks []figures.Network, byLoop [][]radio.Interval) (failed error) {
	serve, ofEMANE := map[string][]int{}, map[string][]radio.Interval{}
	for i := range networks {
		ofEMANE[string(networks[i].Experiment.UID)] = append(ofEMANE[string(networks[i].Experiment.UID)], networks[i].Late...)
		if uid, loop := string(networks[i].Experiment.UID), networks[i].Loop; loop != figures.NoLoop {
			serve[uid] = append(serve[uid], loop)
		}
	}
	s.mu.Lock()
	runs := maps.Clone(s.runs)
	s.mu.Unlock()
	toRealtime := clock.EpochOffset()
	for uid, r := range runs {
		loops := append(r.loops, serve[uid]...)
		r.loops = serve[uid]
		r.lines.Reset()
		encoder := json.NewEncoder(&r.lines)
		for loop, intervals := range append(byLoop[:len(byLoop):len(byLoop)], ofEMANE[uid]) {
			if loop < len(byLoop) && !slices.Contains(loops, loop) {
				continue
			}
			for _, late := range intervals {
				failed = errors.Join(failed, encoder.Encode(runapi.RadioLateTime{TimeNanoseconds: toRealtime + late.To,
					FromNanoseconds: toRealtime + late.From, LateSeconds: time.Duration(late.Worst).Seconds()}))
			}
		}
		if r.lines.Len() > 0 {
			failed = errors.Join(failed, r.spool.append(now, r.lines.Bytes()))
		}
	}
	return failed
}

// active returns the runs with attachments on this host.
func (s *Sampler) active() (active []*runLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.finished.IsZero() {
			active = append(active, r)
		}
	}
	return active
}

func (s *Sampler) markFinished(active map[string]*runLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, r := range s.runs {
		switch {
		case active[uid] != nil:
			r.finished = time.Time{}
		case r.finished.IsZero():
			r.finished = time.Now()
		}
	}
}

func sampleOf(now int64, network string, n *figures.Node) runapi.RadioSample {
	sample := runapi.RadioSample{TimeNanoseconds: now, Network: network, Node: n.Node,
		FramesSent: n.FramesSent, BytesSent: n.BytesSent, FramesReceived: n.FramesReceived, BytesReceived: n.BytesReceived, FramesCorrupted: n.Corrupted, LateInterference: n.LateInterference,
		QueueDepth: n.InFlight, WorstLatenessSeconds: time.Duration(n.WorstLateness).Seconds(), LateReleases: n.LateReleases,
		SlotsUsed: n.Slots.Used, SlotsMissed: n.Slots.Missed, WorstSlotLatenessSeconds: time.Duration(n.Slots.WorstLateness).Seconds()}
	used := len(n.Lateness.Buckets)
	for used > 0 && n.Lateness.Buckets[used-1] == 0 {
		used--
	}
	sample.LatenessCounts = slices.Clone(n.Lateness.Buckets[:used])
	n.EachDrop(func(reason string, frames uint64) {
		if sample.Drops == nil {
			sample.Drops = map[string]uint64{}
		}
		sample.Drops[reason] = frames
	})
	if r := n.Routing; r != nil {
		sample.RoutingPacketsSent, sample.RoutingBytesSent = &r.PacketsSent, &r.BytesSent
		sample.RoutingPacketsReceived, sample.RoutingBytesReceived = &r.PacketsReceived, &r.BytesReceived
	}
	return sample
}

// shipAll ships every run's samples about once a second, and removes runs that are finished.
func (s *Sampler) shipAll(ctx context.Context) {
	trouble := map[string]bool{} // runs whose trouble has been logged
	for ctx.Err() == nil {
		s.mu.Lock()
		runs := maps.Clone(s.runs)
		s.mu.Unlock()
		for uid, r := range runs {
			done, err := s.ship(ctx, r)
			if (err != nil) != trouble[uid] {
				trouble[uid] = err != nil
				s.Log.Info("shipping of radio samples", "run", uid, "error", err)
			}
			if s.isDone(r, done) {
				delete(trouble, uid)
				s.forget(uid, r)
			}
		}
		clock.Pause(ctx, Interval)
	}
}

func (s *Sampler) ship(ctx context.Context, r *runLog) (done bool, err error) {
	if s.Archive == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, shipTimeout)
	defer cancel()
	return r.spool.ship(ctx, s.Archive, s.Host)
}

// isDone reports whether a run has no attachments any more and its rest is shipped, or was not taken for too
// long.
func (s *Sampler) isDone(r *runLog, shipped bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.finished.IsZero() {
		return false
	}
	age := time.Since(r.finished)
	return age > keepFinished || shipped && s.capturesCompleted(r) && age > 5*Interval
}

func (s *Sampler) forget(uid string, r *runLog) {
	s.mu.Lock()
	delete(s.runs, uid)
	s.mu.Unlock()
	err := r.spool.remove()
	if s.Captures != nil {
		err = errors.Join(err, s.Captures.Forget(uid))
	}
	if err != nil {
		s.Log.Warn("remove a spool", "run", uid, "error", err)
	}
}
