package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/runapi"
)

const (
	sampleInterval = time.Second
	// keepFinished is how long the rest of a finished run's samples is offered to a server that does not take it.
	keepFinished = 2 * time.Minute
	shipTimeout  = 20 * time.Second
)

// Sampler writes what every node's radio counted, every second, and ships it to the archive.
type Sampler struct {
	Manager *Manager
	Archive Archive
	// Host is the Kubernetes node's name.
	Host string
	// Directory of the spools.
	Directory string
	Log       *slog.Logger
	// Captures whose course is written down; nil for none.
	Captures *capture.Recorder

	mu   sync.Mutex
	runs map[string]*run
}

// run is one experiment with attachments on this host, or lately so.
type run struct {
	spool *spool
	// carried is what earlier workers counted, by network and node, and last the newest samples with it.
	carried, last map[string]runapi.RadioSample
	finished      time.Time // zero while there are attachments
	capturesOver  bool      // all captures have ended, and the log says so
}

// header is a line before samples: where and under which settings they were made.
type header struct {
	TimeNanoseconds int64  `json:"ts"`
	Host            string `json:"host"`
	Kernel          string `json:"kernel"`
	// Restarted: an earlier worker wrote what comes before; frames it had under way are lost.
	Restarted bool              `json:"restarted,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"`
}

// Run samples and ships until ctx ends.
func (s *Sampler) Run(ctx context.Context) error {
	if err := os.MkdirAll(s.Directory, 0o700); err != nil {
		return fmt.Errorf("spool folder: %w", err)
	}
	s.runs = map[string]*run{}
	if err := s.openLeftOver(); err != nil {
		s.Log.Error("spools of earlier workers", "error", err)
	}
	var wait sync.WaitGroup
	wait.Go(func() { s.shipAll(ctx) })
	defer wait.Wait()
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.Manager.ReadRings()
			if err := s.sample(clock.Realtime(), s.Manager.Counters(true)); err != nil {
				s.Log.Error("write radio samples", "error", err)
			}
			if err := s.sampleCaptures(clock.Realtime()); err != nil {
				s.Log.Error("write samples of captures", "error", err)
			}
		}
	}
}

// openLeftOver takes up the spools of earlier workers, so that their rest is shipped too.
func (s *Sampler) openLeftOver() error {
	entries, err := os.ReadDir(s.Directory)
	for _, entry := range entries {
		if uid, _, ok := parseSpoolName(entry.Name()); ok {
			_, openErr := s.run(uid, nil)
			err = errors.Join(err, openErr)
		}
	}
	return err
}

// run gives the run with that UID, opening its spool at first.
func (s *Sampler) run(uid string, settings map[string]string) (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[uid]; r != nil {
		return r, nil
	}
	sp, existed, err := openSpool(s.Directory, uid)
	if err != nil {
		return nil, err
	}
	now := clock.Realtime()
	r := &run{spool: sp, carried: s.loadCarried(uid), finished: time.Unix(0, now)}
	line, err := json.Marshal(header{now, s.Host, kernelRelease(), existed, settings})
	if err != nil {
		return nil, err
	}
	s.runs[uid] = r
	return r, sp.append(now, append(line, '\n'))
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// sample writes one line per node and network.
func (s *Sampler) sample(now int64, networks []NetworkCounters) error {
	var failed error
	lines := map[string]*bytes.Buffer{}
	active := map[string]*run{}
	for _, n := range networks {
		uid := string(n.Experiment.UID)
		r, err := s.run(uid, n.Settings)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if active[uid] == nil {
			active[uid], lines[uid] = r, &bytes.Buffer{}
			r.last = map[string]runapi.RadioSample{}
		}
		encoder := json.NewEncoder(lines[uid])
		for i := range n.Nodes {
			sample := r.total(sampleOf(now, n.Network, &n.Nodes[i]))
			failed = errors.Join(failed, encoder.Encode(sample))
		}
	}
	s.markFinished(active)
	for uid, r := range active {
		failed = errors.Join(failed, r.spool.append(now, lines[uid].Bytes()), s.storeCarried(uid, r.last))
	}
	return failed
}

func (s *Sampler) markFinished(active map[string]*run) {
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

func sampleOf(now int64, network string, n *NodeCounters) runapi.RadioSample {
	sample := runapi.RadioSample{TimeNanoseconds: now, Network: network, Node: n.Node,
		FramesSent: n.FramesSent, BytesSent: n.BytesSent, FramesReceived: n.FramesReceived, BytesReceived: n.BytesReceived,
		QueueDepth: n.InFlight, WorstLatenessSeconds: time.Duration(n.WorstLateness).Seconds(), LateReleases: n.LateReleases}
	n.eachDrop(func(reason string, frames uint64) {
		if sample.Drops == nil {
			sample.Drops = map[string]uint64{}
		}
		sample.Drops[reason] = frames
	})
	return sample
}

// ringReason names drops in the TAP's own ring, in front of the model.
const ringReason = "tapRing"

func (n *NodeCounters) eachDrop(f func(reason string, frames uint64)) {
	n.Dropped(f)
	if n.RingDrops > 0 {
		f(ringReason, n.RingDrops)
	}
}

// total adds what earlier workers counted, so that a restart does not look like a counter going back.
func (r *run) total(sample runapi.RadioSample) runapi.RadioSample {
	key := sample.Network + "/" + sample.Node
	if before, ok := r.carried[key]; ok {
		sample.FramesSent += before.FramesSent
		sample.BytesSent += before.BytesSent
		sample.FramesReceived += before.FramesReceived
		sample.BytesReceived += before.BytesReceived
		drops := maps.Clone(before.Drops)
		if drops == nil {
			drops = map[string]uint64{}
		}
		for reason, frames := range sample.Drops {
			if reason == ringReason { // the kernel's count goes on
				drops[reason] = max(drops[reason], frames)
				continue
			}
			drops[reason] += frames
		}
		sample.Drops = drops
	}
	r.last[key] = sample
	return sample
}

// carriedReason of frames that a worker had under way when it ended.
const carriedReason = "inFlightAtEnd"

func (s *Sampler) carriedPath(uid string) string { return filepath.Join(s.Directory, uid+".counters") }

func (s *Sampler) loadCarried(uid string) map[string]runapi.RadioSample {
	text, err := os.ReadFile(s.carriedPath(uid))
	if err != nil {
		return nil // a new run
	}
	var carried map[string]runapi.RadioSample
	if err := json.Unmarshal(text, &carried); err != nil {
		s.Log.Warn("counters of the earlier worker are lost", "run", uid, "error", err)
		return nil
	}
	for key, sample := range carried {
		if sample.QueueDepth > 0 {
			if sample.Drops == nil {
				sample.Drops = map[string]uint64{}
			}
			sample.Drops[carriedReason] += uint64(sample.QueueDepth)
			carried[key] = sample
		}
	}
	return carried
}

func (s *Sampler) storeCarried(uid string, last map[string]runapi.RadioSample) error {
	text, err := json.Marshal(last)
	if err != nil {
		return err
	}
	path := s.carriedPath(uid)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("counters of run %s: %w", uid, err)
	}
	return os.Rename(path+".new", path)
}

// shipAll sends every run's samples about once a second, and forgets runs that are over.
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
			if s.over(r, done) {
				delete(trouble, uid)
				s.forget(uid, r)
			}
		}
		pause(ctx, sampleInterval)
	}
}

func (s *Sampler) ship(ctx context.Context, r *run) (done bool, err error) {
	if s.Archive == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, shipTimeout)
	defer cancel()
	return r.spool.ship(ctx, s.Archive, s.Host)
}

// over tells that a run has no attachments any more and its rest is shipped, or nobody takes it.
func (s *Sampler) over(r *run, shipped bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.finished.IsZero() {
		return false
	}
	age := time.Since(r.finished)
	return age > keepFinished || shipped && s.capturesOver(r) && age > 5*sampleInterval
}

func (s *Sampler) forget(uid string, r *run) {
	s.mu.Lock()
	delete(s.runs, uid)
	s.mu.Unlock()
	if err := errors.Join(r.spool.remove(), removeIfThere(s.carriedPath(uid)), s.forgetCaptures(uid)); err != nil {
		s.Log.Warn("remove a spool", "run", strings.TrimSpace(uid), "error", err)
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
