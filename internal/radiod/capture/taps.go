package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/runapi/client"
)

// networkRing is the ring of one network, whose frames come from one thread. Its directory has the ring and a file for each
// tap, by which the next worker knows whose frames are left.
type networkRing struct {
	*ring
	directory string
	taps      []*Tap // by id; nil for none
	tapsInUse int
}

const (
	ringSuffix = ".ring"
	ringFile   = "frames"
	tapSuffix  = ".json"
)

// sink is a capture that a tap feeds.
type sink struct {
	sinkRecord
	stream *stream
	filter *Filter
}

// sinkRecord is a sink in the file of a tap.
type sinkRecord struct {
	RunUID string
	Key    client.Capture
	Filter string
	Keep   int
	Limit  int64
}

// sink opens the stream of a capture.
func (r *Recorder) sink(of sinkRecord) (sink, error) {
	filter, err := ParseFilter(of.Filter)
	if err != nil {
		return sink{}, err
	}
	s, err := r.stream(of.RunUID, of.Key)
	if err != nil {
		return sink{}, fmt.Errorf("cannot open its files on the host: %w", err)
	}
	return sink{of, s, filter}, nil
}

func (r *Recorder) newTap(networkUID string, sinks []sink) (*Tap, error) {
	n, err := r.ringOf(networkUID)
	if err != nil {
		return nil, fmt.Errorf("captures: cannot open their ring on the host: %w", err)
	}
	id := slices.Index(n.taps, nil)
	if id < 0 {
		id = len(n.taps)
	}
	if id == maxTaps {
		return nil, fmt.Errorf("captures of a network at more than %d nodes on one host", maxTaps)
	}
	t := &Tap{ring: n.ring, id: uint32(id), monotonic: r.Monotonic, sinks: sinks} //nolint:gosec // bounded
	for _, s := range sinks {
		t.keep = max(t.keep, s.Keep)
		if s.filter != nil {
			t.keep = max(t.keep, filterDepth)
		}
	}
	if err := n.writeTap(t); err != nil {
		return nil, fmt.Errorf("captures: cannot write their record on the host: %w", err)
	}
	state := t.state()
	state.full.Store(0)
	state.counted.Store(0)
	state.written.Store(0)
	if id == len(n.taps) {
		n.taps = append(n.taps, nil)
	}
	n.taps[id] = t
	n.tapsInUse++
	return t, nil
}

// ringOf returns a network's ring, and makes it the first time.
func (r *Recorder) ringOf(networkUID string) (*networkRing, error) {
	if n := r.rings[networkUID]; n != nil {
		return n, nil
	}
	n := &networkRing{directory: filepath.Join(r.Directory, networkUID+ringSuffix)}
	if err := os.MkdirAll(n.directory, 0o700); err != nil {
		return nil, err
	}
	var err error
	if n.ring, err = newRing(filepath.Join(n.directory, ringFile), r.RingBytes); err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.directory))
	}
	n.offset.Store(r.clockOffset())
	r.rings[networkUID] = n
	return n, nil
}

func (n *networkRing) tapFile(id uint32) string {
	return filepath.Join(n.directory, strconv.Itoa(int(id))+tapSuffix)
}

func (n *networkRing) writeTap(t *Tap) error {
	records := make([]sinkRecord, len(t.sinks))
	for i := range t.sinks {
		records[i] = t.sinks[i].sinkRecord
	}
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	return os.WriteFile(n.tapFile(t.id), text, 0o600)
}

// drainRing writes the frames of a ring.
func (r *Recorder) drainRing(n *networkRing) {
	var taps []*Tap
	known := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		taps = slices.Clone(n.taps)
	}
	known()
	touched := map[*Tap]bool{}
	n.drain(func(d ringFrame) {
		if int(d.tap) >= len(taps) || taps[d.tap] == nil {
			known() // the tap is new
		}
		t := taps[d.tap]
		if d.position < t.state().written.Load() {
			return
		}
		touched[t] = true
		for i := range t.sinks {
			if s := &t.sinks[i]; s.filter.Match(d.data, d.wireLength) {
				s.stream.write(d.stamp+n.offset.Load(), d, s)
			}
		}
	})
	for t := range touched {
		t.flush(n.read)
	}
	n.free()
	for _, t := range taps {
		if t != nil {
			t.countDropped()
		}
	}
}

// retire ends a tap after its last frame.
func (r *Recorder) retire(one retirement) {
	one.tap.countDropped()
	for i := range one.tap.sinks {
		if s := one.tap.sinks[i].stream; !slices.Contains(one.continued, s) {
			s.finish(one.reason)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.rings[one.networkUID]
	n.taps[one.tap.id] = nil
	_ = os.Remove(n.tapFile(one.tap.id))
	if n.tapsInUse--; n.tapsInUse == 0 {
		delete(r.rings, one.networkUID)
		_ = os.RemoveAll(n.directory)
	}
}

// recoverRings writes what killed workers left in rings. Nobody else has the Recorder.
func (r *Recorder) recoverRings() error {
	left, err := filepath.Glob(filepath.Join(r.Directory, "*"+ringSuffix))
	if err != nil {
		return fmt.Errorf("capture rings: %w", err)
	}
	for _, directory := range left {
		if err := r.recoverRing(directory); err != nil {
			r.Log.Error("frames that an earlier worker left to capture are lost", "ring", directory, "error", err)
		}
		if err := os.RemoveAll(directory); err != nil {
			return fmt.Errorf("capture rings: %w", err)
		}
	}
	return nil
}

func (r *Recorder) recoverRing(directory string) error {
	old, err := reopenRing(filepath.Join(directory, ringFile))
	if err != nil {
		return err
	}
	n := &networkRing{ring: old, directory: directory, taps: make([]*Tap, maxTaps)}
	files, err := filepath.Glob(filepath.Join(directory, "*"+tapSuffix))
	for _, path := range files {
		err = errors.Join(err, r.recoverTap(n, path))
	}
	for i, t := range n.taps {
		if t == nil { // its frames have no captures
			n.taps[i] = &Tap{ring: old, id: uint32(i)} //nolint:gosec // bounded
		}
	}
	r.drainRing(n)
	r.save() // before the ring is removed
	return err
}

func (r *Recorder) recoverTap(n *networkRing, path string) error {
	id, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), tapSuffix), 10, 32)
	if err != nil || id >= maxTaps {
		return fmt.Errorf("%s: want the number of a tap", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var records []sinkRecord
	if err := json.Unmarshal(text, &records); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	t := &Tap{ring: n.ring, id: uint32(id), counted: n.ring.taps[id].counted.Load()}
	for _, record := range records {
		s, err := r.sink(record)
		if err != nil {
			return fmt.Errorf("capture %s: %w", record.Key.Name, err)
		}
		s.stream.needsHeader = true
		t.sinks = append(t.sinks, s)
	}
	n.taps[id] = t
	return nil
}
