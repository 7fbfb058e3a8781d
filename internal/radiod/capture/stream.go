package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/radiod/framering"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/wholefile"
)

// Archive takes captures; a *client.Client is one.
type Archive interface {
	AppendCapture(ctx context.Context, host, uid string, which client.Capture, offset int64, content io.Reader) (runapi.LogPosition, error)
}

const (
	segmentBytes = 1 << 20
	// idleSegmentBytes is the size above which an archived segment is deleted before it is full.
	idleSegmentBytes = 64 << 10

	segmentSuffix = ".pcapng"
	recordFile    = "stream.json"
)

// The reasons why frames are dropped, and why captures end.
const (
	ringFull  = "ringFull"
	spoolFull = "spoolFull"
	byLimit   = "limit"
	// refusedByArchive are frames of a run that the archive closed before it received them.
	refusedByArchive = "archiveClosed"
	// byQuota are frames for which the run or its team has no room in the archive.
	byQuota = "quota"

	// EndStopped, EndDetached and EndLimit are the reasons why captures end.
	EndStopped  = "stopped"
	EndDetached = "detached"
	EndLimit    = byLimit
)

// stream is one capture of one node on one network: its counters, and its content that the archive may lack.
// The content lies on the host in segments, each named after its offset. Offsets are the stream's own: the
// archive's file may begin with an earlier stream's content, from before a restart of the host.
type stream struct {
	key       client.Capture
	uid       string
	directory string
	spool     *budget

	mu          sync.Mutex
	record      streamRecord
	segments    []segment
	file        *os.File // of the last segment, while it is being written
	pending     []byte   // complete blocks that are not in the file yet
	needsHeader bool     // the next block must begin a section
	end         int64    // offset after the last segment
	shipped     int64    // offset up to which the archive has the content
	users       int      // taps that feed it
	closed      string   // the reason why the archive takes no more; empty while it does
	dirty       bool     // the record has changed since it was written
	reported    runapi.CaptureSample
}

type segment struct{ start, size int64 }

// streamRecord is the state that outlives the worker.
type streamRecord struct {
	// Origin is the offset in the archive's file at which the stream begins. It is known once the archive was
	// asked.
	Origin      int64 `json:"origin"`
	OriginKnown bool  `json:"originKnown"`
	// Counted is the offset up to which Frames and Bytes count.
	Counted int64             `json:"counted"`
	Frames  uint64            `json:"frames"`
	Bytes   uint64            `json:"bytes"`
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	// RingFull are the frames without room in a ring that Dropped counts, by the tap's name.
	RingFull map[string]uint64 `json:"ringFull,omitempty"`
	Ended    string            `json:"ended,omitempty"`
	// Limited reports whether the capture's limit is reached.
	Limited bool `json:"limited,omitempty"`
}

// budget is the space of all streams on the host, and what each run uses of it.
type budget struct {
	mu         sync.Mutex
	limit, use int64
	byRun      map[string]int64
}

// reserve counts n bytes of a run if there is room. A run may use as much as it leaves free, so none takes all.
func (b *budget) reserve(uid string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byRun[uid]+n > b.limit-b.use-n {
		return false
	}
	b.change(uid, n)
	return true
}

// add counts existing bytes, whether there is room or not.
func (b *budget) add(uid string, n int64) { b.release(uid, -n) }

func (b *budget) release(uid string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change(uid, -n)
}

// change is for callers with the lock.
func (b *budget) change(uid string, n int64) {
	b.use += n
	if b.byRun[uid] += n; b.byRun[uid] == 0 {
		delete(b.byRun, uid)
	}
}

// openStream opens a stream, and continues one that an earlier worker left.
func openStream(directory, uid string, key client.Capture, spool *budget) (*stream, error) {
	s := &stream{key: key, uid: uid, directory: directory, spool: spool, record: streamRecord{Dropped: map[string]uint64{}}}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("capture spool: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(directory, recordFile))
	if err == nil {
		err = json.Unmarshal(text, &s.record)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		// Without the record only counters are lost; the archive knows where its file ends.
		s.record = streamRecord{}
	}
	if s.record.Dropped == nil {
		s.record.Dropped = map[string]uint64{}
	}
	if err := s.findSegments(); err != nil {
		return nil, err
	}
	s.shipped, s.end = s.record.Counted, s.record.Counted
	if len(s.segments) > 0 {
		last := s.segments[len(s.segments)-1]
		s.shipped, s.end = s.segments[0].start, last.start+last.size
	}
	s.record.Counted = s.end
	return s, nil
}

// findSegments lists the segments. It cuts off a block that a killed worker was writing, and counts frames
// that are not in the record.
func (s *stream) findSegments() error {
	entries, err := os.ReadDir(s.directory)
	if err != nil {
		return fmt.Errorf("capture spool: %w", err)
	}
	for _, entry := range entries { // ordered by name, and so by offset
		name, ok := strings.CutSuffix(entry.Name(), segmentSuffix)
		start, err := strconv.ParseInt(name, 10, 64)
		if !ok || err != nil {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("capture spool: %w", err)
		}
		size := info.Size()
		// Up to what the record counts, blocks are complete; reading them again would take too long.
		if start+size > s.record.Counted {
			whole, err := s.repair(start)
			if err != nil {
				return err
			}
			size = whole.Bytes
		}
		if size == 0 {
			_ = os.Remove(s.path(start))
			continue
		}
		s.segments = append(s.segments, segment{start, size})
		s.spool.add(s.uid, size)
	}
	return nil
}

// repair cuts off an incomplete block, and counts frames that are not in the record.
func (s *stream) repair(start int64) (whole pcapng.BlockScanner, err error) {
	content, err := os.ReadFile(s.path(start))
	if err != nil {
		return whole, fmt.Errorf("capture spool: %w", err)
	}
	if _, err := whole.Write(content); err != nil || whole.Incomplete() {
		if err := os.Truncate(s.path(start), whole.Bytes); err != nil {
			return whole, fmt.Errorf("capture spool: %w", err)
		}
	}
	if counted := s.record.Counted - start; counted < whole.Bytes {
		var fresh pcapng.BlockScanner
		_, _ = fresh.Write(content[max(counted, 0):whole.Bytes])
		s.record.Frames += fresh.Frames
		s.record.Bytes += fresh.FrameBytes
	}
	return whole, nil
}

func (s *stream) path(start int64) string {
	return filepath.Join(s.directory, fmt.Sprintf("%020d%s", start, segmentSuffix))
}

// begin starts a section for the frames of a new tap.
func (s *stream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	if !s.record.Limited {
		s.record.Ended = ""
	}
	s.needsHeader, s.dirty = true, true
	s.header()
}

// header begins a section if needed, and reports whether there was room. The lock is held.
func (s *stream) header() bool {
	if !s.needsHeader {
		return true
	}
	header := pcapng.AppendSection(nil, s.key.Network, fmt.Sprintf("radio of node %s on network %s", s.key.Node, s.key.Network))
	if !s.spool.reserve(s.uid, int64(len(header))) {
		return false
	}
	s.pending = append(s.pending, header...)
	s.needsHeader = false
	return true
}

// finish ends the use by a tap.
func (s *stream) finish(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if s.users == 0 && s.record.Ended == "" {
		s.record.Ended = reason
	}
	s.flush()
	s.dirty = true
}

// write adds a frame. The caller flushes.
func (s *stream) write(stamp int64, d framering.Frame, to *sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := min(len(d.Data), to.Keep)
	size := pcapng.PacketSize(keep)
	position := s.record.Origin + s.end + int64(len(s.pending))
	s.dirty = true
	switch {
	case s.record.Limited || to.Limit > 0 && position+size > to.Limit:
		s.record.Limited, s.record.Ended = true, EndLimit
		s.record.Dropped[byLimit]++
	case s.closed != "":
		s.record.Dropped[s.closed]++
	case !s.header() || !s.spool.reserve(s.uid, size):
		s.record.Dropped[spoolFull]++
	default:
		s.pending = pcapng.AppendPacket(s.pending, stamp, d.Out, d.WireLength, d.Data[:keep])
		s.record.Frames++
		s.record.Bytes += uint64(keep)
	}
}

// flush writes pending blocks, or drops them if that fails; the lock is held.
func (s *stream) flush() {
	if len(s.pending) == 0 {
		return
	}
	err := s.append(s.pending)
	if err != nil {
		s.spool.release(s.uid, int64(len(s.pending)))
		s.countLost(s.pending, spoolFull)
		s.needsHeader = true // a header may have been among it
	}
	s.pending = s.pending[:0]
}

// countLost counts the frames in blocks that are lost as dropped; the lock is held.
func (s *stream) countLost(blocks []byte, reason string) {
	var lost pcapng.BlockScanner
	_, _ = lost.Write(blocks)
	if lost.Frames == 0 {
		return
	}
	s.record.Frames -= lost.Frames
	s.record.Bytes -= lost.FrameBytes
	s.record.Dropped[reason] += lost.Frames
}

func (s *stream) append(blocks []byte) error {
	if s.file == nil || s.segments[len(s.segments)-1].size >= segmentBytes {
		s.closeFile()
		file, err := os.OpenFile(s.path(s.end), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("capture spool: %w", err)
		}
		s.file = file
		s.segments = append(s.segments, segment{start: s.end})
	}
	last := &s.segments[len(s.segments)-1]
	if _, err := s.file.WriteAt(blocks, last.size); err != nil {
		return errors.Join(fmt.Errorf("capture spool: %w", err), s.file.Truncate(last.size))
	}
	last.size += int64(len(blocks))
	s.end += int64(len(blocks))
	return nil
}

func (s *stream) closeFile() {
	if s.file != nil {
		_ = s.file.Close() // nothing is buffered
		s.file = nil
	}
}

// countRingFull counts the frames of a tap that found no room, of which there are full since it began. The record has
// both numbers, so no kill makes the next worker count a frame twice.
func (s *stream) countRingFull(tap string, full uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.record.RingFull[tap]
	if full == before {
		return
	}
	if s.record.RingFull == nil {
		s.record.RingFull = map[string]uint64{}
	}
	s.record.Dropped[ringFull] += full - before
	s.record.RingFull[tap] = full
	s.dirty = true
}

func (s *stream) forgetTap(tap string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.record.RingFull[tap]; known {
		delete(s.record.RingFull, tap)
		s.dirty = true
	}
}

// save writes what a new worker needs to disk, if it has changed.
func (s *stream) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	if !s.dirty {
		return nil
	}
	return s.writeRecord()
}

func (s *stream) writeRecord() error {
	s.record.Counted = s.end
	text, err := json.Marshal(s.record)
	if err != nil {
		return err
	}
	if err := wholefile.Write(filepath.Join(s.directory, recordFile), text, 0o600); err != nil {
		return fmt.Errorf("capture spool: %w", err)
	}
	s.dirty = false
	return nil
}

// sample returns the capture's state, and whether it has changed since the last sample. The end is only
// reported once the archive has everything.
func (s *stream) sample(now int64, archived bool) (sample runapi.CaptureSample, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sample = runapi.CaptureSample{Capture: s.key.Name, Network: s.key.Network, Node: s.key.Node,
		Frames: s.record.Frames, Bytes: s.record.Bytes, Dropped: maps.Clone(s.record.Dropped)}
	if s.record.Ended != "" && (!archived || s.isArchived()) {
		sample.Ended = s.record.Ended
	}
	old := s.reported
	changed = sample.Capture != old.Capture || sample.Frames != old.Frames || sample.Ended != old.Ended || !maps.Equal(sample.Dropped, old.Dropped)
	s.reported = sample
	sample.TimeNanoseconds = now
	return sample, changed
}

// isArchived reports whether the archive has everything, or takes no more; the lock is held.
func (s *stream) isArchived() bool { return len(s.pending) == 0 && s.isShipped() }

// isShipped reports whether no segment waits for the archive; the lock is held. A stream that never had room has none.
func (s *stream) isShipped() bool {
	return s.closed != "" || len(s.segments) == 0 || s.shipped == s.end && s.record.OriginKnown
}

// isCompleted reports whether no tap feeds the stream, nothing is left to ship, and a sample has reported the end.
func (s *stream) isCompleted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users == 0 && s.isArchived() && s.reported.Ended != ""
}

func (s *stream) nothingToShip() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isShipped()
}

// endIfUnused ends a stream that no tap of this worker feeds: an earlier worker's, or one without room for a tap.
func (s *stream) endIfUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 && s.record.Ended == "" {
		s.record.Ended, s.dirty = EndDetached, true
	}
}

// remove deletes the spool.
func (s *stream) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discard(refusedByArchive)
	return os.RemoveAll(s.directory)
}

// discard discards all content: the archive has it, or takes no more of it.
func (s *stream) discard(reason string) {
	s.closeFile()
	for _, g := range s.segments {
		s.spool.release(s.uid, g.size)
		_ = os.Remove(s.path(g.start))
	}
	s.spool.release(s.uid, int64(len(s.pending)))
	s.segments, s.pending, s.closed, s.shipped = nil, nil, reason, s.end
}

// endRefused ends a capture for which the archive has no room, and counts what it lacks as dropped.
func (s *stream) endRefused(reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	for _, g := range s.segments {
		content, err := os.ReadFile(s.path(g.start))
		if err != nil {
			return fmt.Errorf("capture spool: %w", err)
		}
		s.countLost(content[min(max(s.shipped-g.start, 0), int64(len(content))):], reason)
	}
	s.discard(reason)
	s.record.Ended, s.record.Limited = reason, s.record.Limited || reason == byLimit
	s.record.OriginKnown = true // for the next worker, too, nothing is left to ship
	return s.writeRecord()
}

// ship sends one request's worth of what the archive lacks; more reports whether there is more.
func (s *stream) ship(ctx context.Context, archive Archive, host string) (more bool, err error) {
	content, offset, err := s.nextContent()
	if err != nil || content == nil {
		return false, err
	}
	position, err := archive.AppendCapture(ctx, host, s.uid, s.key, offset, bytes.NewReader(content))
	var answer *client.Error
	switch {
	case err == nil:
		return s.setArchiveSize(position.Size, false)
	case !errors.As(err, &answer):
		return false, err
	case answer.Status == http.StatusGone:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.discard(refusedByArchive)
		return false, nil
	case answer.Quota:
		return false, s.endRefused(byQuota)
	case answer.Status == http.StatusRequestEntityTooLarge:
		return false, s.endRefused(byLimit)
	case answer.Size == nil:
		return false, err
	}
	// A size beyond the offset means that the archive has other bytes there.
	return s.setArchiveSize(*answer.Size, *answer.Size > offset)
}

// nextContent returns complete blocks for the archive. No content at offset 0 asks for its size.
func (s *stream) nextContent() (content []byte, offset int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != "" || len(s.segments) == 0 {
		return nil, 0, nil
	}
	if !s.record.OriginKnown {
		return []byte{}, 0, nil
	}
	i := slices.IndexFunc(s.segments, func(g segment) bool { return s.shipped < g.start+g.size })
	if i < 0 {
		return nil, 0, nil
	}
	g := s.segments[i]
	file, err := os.Open(s.path(g.start))
	if err != nil {
		return nil, 0, fmt.Errorf("capture spool: %w", err)
	}
	defer file.Close()
	content = make([]byte, g.start+g.size-s.shipped)
	if _, err := file.ReadAt(content, s.shipped-g.start); err != nil {
		return nil, 0, fmt.Errorf("capture spool: %w", err)
	}
	return content, s.record.Origin + s.shipped, nil
}

// setArchiveSize sets the archive's size. A size outside the stream, or other content, means that one side lost its
// copy. The rest is then appended to the archive's file as a section of its own.
func (s *stream) setArchiveSize(size int64, other bool) (more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) == 0 {
		return false, nil
	}
	local := size - s.record.Origin
	if !s.record.OriginKnown || other || local < s.segments[0].start || local > s.end {
		if err := s.continueAt(size); err != nil {
			return false, err
		}
		local = s.shipped
	}
	s.shipped = local
	return s.shipped < s.end, s.removeArchived()
}

// continueAt continues the stream at the archive's size.
func (s *stream) continueAt(size int64) error {
	s.dirty = true
	first := s.segments[0]
	if s.shipped > first.start {
		// The segment's beginning, with its section header, is already shipped.
		content, err := os.ReadFile(s.path(first.start))
		if err != nil {
			return fmt.Errorf("capture spool: %w", err)
		}
		rest := content[min(s.shipped-first.start, int64(len(content))):]
		header := pcapng.AppendSection(nil, s.key.Network, "continued after the archive or the host lost what came before")
		start := s.shipped - int64(len(header))
		s.closeFile()
		if err := os.WriteFile(s.path(start), append(header, rest...), 0o600); err != nil {
			return fmt.Errorf("capture spool: %w", err)
		}
		if start != first.start {
			_ = os.Remove(s.path(first.start))
		}
		s.spool.release(s.uid, first.size-int64(len(header)+len(rest)))
		s.segments[0] = segment{start, int64(len(header) + len(rest))}
	}
	s.shipped = s.segments[0].start
	s.record.Origin, s.record.OriginKnown = size-s.shipped, true
	return s.writeRecord()
}

// removeArchived deletes segments that are archived.
func (s *stream) removeArchived() error {
	var gone []segment
	for i, g := range s.segments {
		last := i == len(s.segments)-1
		if s.shipped < g.start+g.size || last && s.users > 0 && g.size < idleSegmentBytes {
			break
		}
		gone = append(gone, g)
	}
	if len(gone) == 0 {
		return nil
	}
	// The record is written before the segments are gone, because it then is the only one with their counts.
	// On a full volume only they make room for it.
	written := s.writeRecord()
	if len(gone) == len(s.segments) {
		s.closeFile()
	}
	s.segments = s.segments[len(gone):]
	for _, g := range gone {
		s.spool.release(s.uid, g.size)
		if err := os.Remove(s.path(g.start)); err != nil {
			return fmt.Errorf("capture spool: %w", err)
		}
	}
	if written != nil {
		return s.writeRecord()
	}
	return nil
}
