package capture

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/capturefilter"
	"vignette.dev/vignette/internal/radiod/framering"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/wholefile"
)

// networkRing is the ring of one network, whose frames come from one thread. Its directory has the ring and a file for each
// tap, by which the next worker knows whose frames are left.
type networkRing struct {
	*framering.Ring
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
	filter *capturefilter.Filter
}

// tapRecord is the file of a tap.
type tapRecord struct {
	Name  string
	Sinks []sinkRecord
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
	filter, err := capturefilter.Parse(of.Filter)
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
	t, err := n.newTap(sinks)
	if n.tapsInUse == 0 {
		err = errors.Join(err, r.removeRing(networkUID, n))
	}
	return t, err
}

// newTap begins a tap of a ring.
func (n *networkRing) newTap(sinks []sink) (*Tap, error) {
	id := slices.Index(n.taps, nil)
	if id < 0 {
		id = len(n.taps)
	}
	if id == framering.MaxTaps {
		return nil, fmt.Errorf("captures of a network at more than %d nodes on one host", framering.MaxTaps)
	}
	t := &Tap{Tap: framering.Tap{Path: n.Path, ID: uint32(id)}, ring: n.Ring, name: rand.Text(), sinks: sinks} //nolint:gosec // bounded
	for _, s := range sinks {
		t.Keep = max(t.Keep, s.Keep)
		if s.filter != nil {
			t.Keep = max(t.Keep, capturefilter.Depth)
		}
	}
	state := t.state() // reset before the file is there, by which the next worker would count it
	state.Full.Store(0)
	state.Written.Store(0)
	if err := n.writeTap(t); err != nil {
		return nil, fmt.Errorf("captures: cannot write their record on the host: %w", err)
	}
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
	// The name is a new one, because a ring of an earlier worker may be kept.
	directory, err := os.MkdirTemp(r.Directory, networkUID+"-*"+ringSuffix)
	if err != nil {
		return nil, err
	}
	n := &networkRing{directory: directory}
	if n.Ring, err = framering.New(filepath.Join(n.directory, ringFile), r.RingBytes); err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.directory))
	}
	n.Offset.Store(r.EpochOffset())
	r.rings[networkUID] = n
	return n, nil
}

func (n *networkRing) tapFile(id uint32) string {
	return filepath.Join(n.directory, strconv.Itoa(int(id))+tapSuffix)
}

func (n *networkRing) writeTap(t *Tap) error {
	record := tapRecord{t.name, make([]sinkRecord, len(t.sinks))}
	for i := range t.sinks {
		record.Sinks[i] = t.sinks[i].sinkRecord
	}
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return wholefile.Write(n.tapFile(t.ID), text, 0o600)
}

// removeRing removes a ring that no tap uses; the lock is held.
func (r *Recorder) removeRing(networkUID string, n *networkRing) error {
	delete(r.rings, networkUID)
	return os.RemoveAll(n.directory)
}

// batchBytes of a ring are written and freed at a time.
const batchBytes = 128 << 10

// drainRing writes the frames that are in a ring now. After an error in the ring it frees the rest.
func (r *Recorder) drainRing(n *networkRing) (err error) {
	for head := n.Head.Load(); n.Read != head; {
		if err = r.drainBatch(n, head); err != nil {
			n.Read = head
			n.Free()
		}
	}
	for _, t := range r.tapsOf(n) {
		if t != nil {
			t.countDropped()
		}
	}
	return err
}

// drainBatch writes frames before the position head. Streams write them to their files at its end only, so only a kill
// between that and the note of it in the ring makes the next worker write them twice.
func (r *Recorder) drainBatch(n *networkRing, head uint64) error {
	taps, touched := r.tapsOf(n), map[*Tap]bool{}
	err := n.Drain(head, batchBytes, func(d framering.Frame) {
		if int(d.Tap) >= len(taps) || taps[d.Tap] == nil {
			taps = r.tapsOf(n) // the tap is new
		}
		if int(d.Tap) >= len(taps) || taps[d.Tap] == nil {
			return // its file could not be read, which was logged
		}
		t := taps[d.Tap]
		if d.Position < t.state().Written.Load() {
			return
		}
		touched[t] = true
		for i := range t.sinks {
			if s := &t.sinks[i]; s.filter.Match(d.Data, d.WireLength) {
				s.stream.write(d.Stamp+n.Offset.Load(), d, s)
			}
		}
	})
	for t := range touched {
		t.flush(n.Read)
	}
	n.Free()
	return err
}

// tapsOf returns a ring's taps, by id.
func (r *Recorder) tapsOf(n *networkRing) []*Tap {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(n.taps)
}

// retire ends a tap after its last frame.
func (r *Recorder) retire(one retirement) {
	one.tap.countDropped()
	var failed error
	for i := range one.tap.sinks {
		s := one.tap.sinks[i].stream
		failed = errors.Join(failed, s.save())
		if !one.next.feeds(s) {
			s.finish(one.reason)
		}
	}
	if failed != nil {
		r.Log.Error("save a capture that ends: its ring stays for the next worker", "network", one.networkUID, "error", failed)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.rings[one.networkUID]
	n.taps[one.tap.ID] = nil
	err := os.Remove(n.tapFile(one.tap.ID))
	one.tap.forget()
	if n.tapsInUse--; n.tapsInUse == 0 {
		err = errors.Join(err, r.removeRing(one.networkUID, n))
	}
	if err != nil {
		r.Log.Error("remove the ring of captures that ended", "network", one.networkUID, "error", err)
	}
}

// recoverRings writes what earlier workers left in rings. Nobody else has the Recorder.
func (r *Recorder) recoverRings() error {
	left, err := filepath.Glob(filepath.Join(r.Directory, "*"+ringSuffix))
	if err != nil {
		return fmt.Errorf("capture rings: %w", err)
	}
	for _, directory := range left {
		n, err := r.recoverRing(directory)
		if err != nil {
			r.Log.Error("frames that an earlier worker left to capture are lost, how many is not known", "ring", directory, "error", err)
		}
		r.left = append(r.left, n)
	}
	return nil
}

// endLeft writes what has come into the rings of earlier workers since, and removes them.
func (r *Recorder) endLeft() error {
	for _, one := range r.left {
		if one.Ring != nil {
			if err := r.drainRing(one); err != nil {
				r.Log.Error("frames to capture are lost, how many is not known", "ring", one.directory, "error", err)
			}
		}
		if r.save() != nil {
			continue // only the ring has what the records do not have
		}
		if err := os.RemoveAll(one.directory); err != nil {
			return fmt.Errorf("capture rings: %w", err)
		}
		for _, t := range one.taps {
			if t != nil {
				t.forget()
			}
		}
	}
	r.left = nil
	return nil
}

// recoverRing writes what is left in a ring, and returns it, without a Ring if it could not be read. The error names what
// could not be written.
func (r *Recorder) recoverRing(directory string) (n *networkRing, err error) {
	n = &networkRing{directory: directory}
	if n.Ring, err = framering.Open(filepath.Join(directory, ringFile)); err != nil {
		return n, err
	}
	n.taps = make([]*Tap, framering.MaxTaps)
	files, err := filepath.Glob(filepath.Join(directory, "*"+tapSuffix))
	for _, path := range files {
		err = errors.Join(err, r.recoverTap(n, path))
	}
	return n, errors.Join(err, r.drainRing(n))
}

// recoverTap continues a tap's captures. The error names those that it could not.
func (r *Recorder) recoverTap(n *networkRing, path string) (failed error) {
	id, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), tapSuffix), 10, 32)
	if err != nil || id >= framering.MaxTaps {
		return fmt.Errorf("%s: want the number of a tap", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var record tapRecord
	if err := json.Unmarshal(text, &record); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	t := &Tap{Tap: framering.Tap{Path: n.Path, ID: uint32(id)}, ring: n.Ring, name: record.Name}
	for _, of := range record.Sinks {
		s, err := r.sink(of)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("capture %s: %w", of.Key.Name, err))
			continue
		}
		s.stream.needsHeader = true
		t.sinks = append(t.sinks, s)
	}
	n.taps[id] = t
	return failed
}
