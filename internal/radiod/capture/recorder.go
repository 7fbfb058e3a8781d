package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Options of a Recorder.
type Options struct {
	// Directory of the spools.
	Directory string
	// SpoolBytes that all captures on the host may keep for the archive; those of one run get half of it.
	SpoolBytes int64
	// RingBytes between the radio engine and the recorder, per captured network; 4 MiB if 0.
	RingBytes int
	// Archive to which captures are shipped, as coming from Host; nil for none.
	Archive Archive
	Host    string
	// EpochOffset from the monotonic to the real-time clock, in nanoseconds.
	EpochOffset func() int64
	Log         *slog.Logger
}

const (
	defaultRingBytes = 4 << 20
	// drainInterval is how long a frame stays in the ring, which holds several times what a network carries
	// in it.
	drainInterval = 20 * time.Millisecond
	saveInterval  = time.Second
	// shipInterval between two requests for the same stream, and shipPause between any two, because the
	// server bounds a caller's rate.
	shipInterval = 250 * time.Millisecond
	shipPause    = 8 * time.Millisecond
	shipTimeout  = 20 * time.Second
	// clockTolerance in nanoseconds of reading two clocks one after the other.
	clockTolerance = 20e3
)

// Place identifies a port.
type Place struct {
	// RunUID is the experiment's UID, NetworkUID the RadioNetwork's.
	RunUID, NetworkUID string
	Network, Node      string
}

// Recorder owns the captures of one host.
type Recorder struct {
	Options
	spool  *budget
	offset int64 // from the monotonic to the real-time clock

	mu      sync.Mutex
	streams map[string]*stream // by directory
	rings   map[string]*networkRing
	retired []retirement
	// left are rings of earlier workers, into which frames may go until Run.
	left []*networkRing
}

// retirement of a tap: its captures end after its last frame, except those that the next tap continues. Without one, next is nil.
type retirement struct {
	tap, next          *Tap
	networkUID, reason string
}

// Open continues captures that earlier workers left. Before Run, each port that they captured gets its new tap.
func Open(options Options) (*Recorder, error) {
	if options.RingBytes == 0 {
		options.RingBytes = defaultRingBytes
	}
	r := &Recorder{Options: options, spool: &budget{limit: options.SpoolBytes, byRun: map[string]int64{}}, streams: map[string]*stream{}, rings: map[string]*networkRing{}}
	r.offset = r.EpochOffset()
	if err := os.MkdirAll(options.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("capture spool: %w", err)
	}
	records, err := filepath.Glob(filepath.Join(options.Directory, "*", "*", "*", "*"))
	if err != nil {
		return nil, fmt.Errorf("capture spool: %w", err)
	}
	for _, directory := range records {
		node, rest := filepath.Base(directory), filepath.Dir(directory)
		network, rest := filepath.Base(rest), filepath.Dir(rest)
		key := client.Capture{Name: filepath.Base(rest), Network: network, Node: node}
		if _, err := r.stream(filepath.Base(filepath.Dir(rest)), key); err != nil {
			options.Log.Error("capture of an earlier worker", "directory", directory, "error", err)
		}
	}
	return r, r.recoverRings()
}

// stream returns a stream, and opens it the first time. The lock is held, or nobody else has the Recorder.
func (r *Recorder) stream(uid string, key client.Capture) (*stream, error) {
	directory := filepath.Join(r.Directory, uid, key.Name, key.Network, key.Node)
	if s := r.streams[directory]; s != nil {
		return s, nil
	}
	s, err := openStream(directory, uid, key, r.spool)
	if err != nil {
		return nil, err
	}
	r.streams[directory] = s
	return s, nil
}

// SetCaptures sets the captures at a port whose tap was before; nil means none. install sets the new tap on
// the port and returns when the old one is not called any more. reason says why removed captures end. The
// error names captures that could not begin; the others have begun. Where a new tap cannot be had the old one stays.
func (r *Recorder) SetCaptures(before *Tap, at Place, captures []v1alpha1.RadioCapture, reason string, install func(*Tap) error) (*Tap, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sinks, err := r.sinks(at, captures)
	var tap *Tap
	if len(sinks) > 0 {
		var ringErr error
		if tap, ringErr = r.newTap(at.NetworkUID, sinks); ringErr != nil {
			for i := range sinks {
				sinks[i].stream.endIfUnused()
			}
			return before, errors.Join(err, ringErr)
		}
	}
	if before == nil && tap == nil {
		return nil, err
	}
	for _, s := range sinks {
		if !before.feeds(s.stream) {
			s.stream.begin()
		}
	}
	old, current := before, tap
	if installErr := install(tap); installErr != nil {
		err = errors.Join(err, fmt.Errorf("captures at node %s: %w", at.Node, installErr))
		old, current = tap, before
	}
	if old != nil {
		r.retired = append(r.retired, retirement{old, current, at.NetworkUID, reason})
	}
	return current, err
}

// sinks of the captures at a port. The error names those that could not begin.
func (r *Recorder) sinks(at Place, captures []v1alpha1.RadioCapture) (sinks []sink, failed error) {
	for _, c := range captures {
		if !c.Takes(at.Node) {
			continue
		}
		keep := int(c.SnapLengthBytes)
		if keep <= 0 {
			keep = pcapng.SnapLength
		}
		s, err := r.sink(sinkRecord{RunUID: at.RunUID, Key: client.Capture{Name: c.Name, Network: at.Network, Node: at.Node}, Filter: c.Filter, Keep: keep, Limit: c.LimitBytes})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("capture %s: %w", c.Name, err))
			continue
		}
		sinks = append(sinks, s)
	}
	return sinks, failed
}

// Run writes and ships until ctx ends. Frames not shipped stay on the host's disk for the next worker.
func (r *Recorder) Run(ctx context.Context) error {
	if err := r.endLeft(); err != nil {
		return err
	}
	for _, s := range r.streamsOf("") {
		s.endIfUnused()
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	if r.Archive != nil {
		wait.Go(func() { r.shipAll(ctx) })
	}
	ticker := time.NewTicker(drainInterval)
	defer ticker.Stop()
	var saved time.Time
	for {
		r.drain()
		if now := time.Now(); now.Sub(saved) >= saveInterval || ctx.Err() != nil {
			saved = now
			_ = r.save() // it is tried again
		}
		select {
		case <-ctx.Done():
			r.drain()
			_ = r.save() // the next worker has the rings
			return nil
		case <-ticker.C:
		}
	}
}

// streamsOf returns the streams of a run, or of every run, in order.
func (r *Recorder) streamsOf(uid string) []*stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	var some []*stream
	for _, directory := range slices.Sorted(maps.Keys(r.streams)) {
		if s := r.streams[directory]; uid == "" || s.uid == uid {
			some = append(some, s)
		}
	}
	return some
}

// save writes the records.
func (r *Recorder) save() (failed error) {
	for _, s := range r.streamsOf("") {
		if err := s.save(); err != nil {
			failed = errors.Join(failed, err)
			r.Log.Error("save a capture", "run", s.uid, "capture", s.key, "error", err)
		}
	}
	return failed
}

// drain writes all frames in the rings. Taps that were replaced before it began are ended after their last
// frame.
func (r *Recorder) drain() {
	r.mu.Lock()
	retired := r.retired
	r.retired = nil
	rings := maps.Clone(r.rings)
	r.mu.Unlock()
	r.followClock()
	for _, n := range rings {
		n.Offset.Store(r.offset)
		if err := r.drainRing(n); err != nil {
			r.Log.Error("frames to capture are lost, how many is not known", "ring", n.directory, "error", err)
		}
	}
	for _, one := range retired {
		r.retire(one)
	}
}

// followClock follows steps of the real-time clock only. Smaller changes would put the frames' timestamps out
// of order.
func (r *Recorder) followClock() {
	if offset := r.EpochOffset(); offset-r.offset > clockTolerance || r.offset-offset > clockTolerance {
		r.offset = offset
	}
}

func (r *Recorder) shipAll(ctx context.Context) {
	trouble := map[*stream]bool{} // streams whose trouble has been logged
	for ctx.Err() == nil {
		for _, s := range r.streamsOf("") {
			if ctx.Err() != nil {
				return
			}
			err := r.ship(ctx, s)
			if (err != nil) != trouble[s] && ctx.Err() == nil {
				trouble[s] = err != nil
				r.Log.Info("shipping of a capture", "run", s.uid, "capture", s.key, "error", err)
			}
		}
		clock.Pause(ctx, shipInterval)
	}
}

func (r *Recorder) ship(ctx context.Context, s *stream) error {
	for requests := 0; requests < 8; requests++ {
		if s.nothingToShip() {
			return nil
		}
		attempt, cancel := context.WithTimeout(ctx, shipTimeout)
		more, err := s.ship(attempt, r.Archive, r.Host)
		cancel()
		clock.Pause(ctx, shipPause)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// Runs with captures on this host.
func (r *Recorder) Runs() []string {
	uids := map[string]bool{}
	for _, s := range r.streamsOf("") {
		uids[s.uid] = true
	}
	return slices.Sorted(maps.Keys(uids))
}

// Samples returns the state of a run's captures that have changed since the last call.
func (r *Recorder) Samples(uid string, now int64) (samples []runapi.CaptureSample) {
	for _, s := range r.streamsOf(uid) {
		if sample, changed := s.sample(now, r.Archive != nil); changed {
			samples = append(samples, sample)
		}
	}
	slices.SortFunc(samples, func(a, b runapi.CaptureSample) int {
		return cmp.Or(cmp.Compare(a.Capture, b.Capture), cmp.Compare(a.Network, b.Network), cmp.Compare(a.Node, b.Node))
	})
	return samples
}

// Repeat has the next Samples of a run report all its captures, as earlier reports were lost.
func (r *Recorder) Repeat(uid string) {
	for _, s := range r.streamsOf(uid) {
		s.mu.Lock()
		s.reported = runapi.CaptureSample{}
		s.mu.Unlock()
	}
}

// Completed reports whether every capture of a run has ended, is archived, and was reported as ended.
func (r *Recorder) Completed(uid string) bool {
	for _, s := range r.streamsOf(uid) {
		if r.Archive != nil && !s.isCompleted() {
			return false
		}
	}
	return true
}

// Forget removes the files of a run's captures.
func (r *Recorder) Forget(uid string) error {
	var err error
	for _, s := range r.streamsOf(uid) {
		err = errors.Join(err, s.remove())
		r.mu.Lock()
		delete(r.streams, s.directory)
		r.mu.Unlock()
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(r.Directory, uid)))
}
