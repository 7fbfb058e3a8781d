package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

const (
	// chunkBytes of logs are the limit of one request, and so of the memory for shipping.
	chunkBytes = 512 << 10
	// bytesPerRound limits the rate to 4 MiB/s, so that a backlog does not disturb the experiment.
	bytesPerRound = 4 << 20
	shipTimeout   = 30 * time.Second
	maxShipPause  = 5 * time.Second
)

// Errors that a retry does not solve.
var (
	// errSealed: the archive accepts no more of this run, or does not have it.
	errSealed = errors.New("the archive of this run is closed")
	// errNoRoom: the archive's quota or volume is used up. The archive names it as a gap.
	errNoRoom = errors.New("the archive has no room")
	// errRefused: the archive will never accept this log, for example because of its name.
	errRefused = errors.New("the archive does not accept this log")
)

// errResumed: the archive's copy ends elsewhere than expected, and the next round continues from there. Not this round: a faulty
// server would be asked without a pause.
var errResumed = errors.New("the archive's copy of this log ends elsewhere")

// errRequest: a request failed for all logs.
var errRequest = errors.New("shipping logs")

// noRoomTimeout is how long to retry after everything else is shipped.
const noRoomTimeout = 10 * time.Second

// shipper copies the logs to the archive, each from where the archive's copy ends. One request carries the new bytes of all logs:
// a run has hundreds of growing logs, and a request costs more than its bytes.
type shipper struct {
	dir, app  string
	server    server
	events    *eventLog
	positions map[string]int64
	// resumedAt is the position at which a log was last resumed, so that this is reported once.
	resumedAt map[string]int64
	// shorterAt is the position below which a log was last found to end, so that this is reported once.
	shorterAt map[string]int64
	// inodes of the logs; 0 once it is reported that the app put another file in a log's place.
	inodes map[string]uint64
	// created are the logs that exist in the archive, also empty ones.
	created map[string]bool
	// refusedFiles will never be accepted by the archive.
	refusedFiles map[string]bool
	// leftOut are logs that could not be read, and folders, so that each is reported once.
	leftOut map[string]bool
	chunk   []byte
	// now is the clock; onArchivedUntil gets the time at which the archive had everything.
	now             func() int64
	onArchivedUntil func(nanoseconds int64)
	// confirmed is how much of each log the archive had, at times up to punchAfter ago. punchedTo is how much was released from the disk.
	confirmed map[string][]confirmedSize
	punchedTo map[string]int64
	// budget of output regains what is released.
	budget *spoolBudget
}

// confirmedSize of a log in the archive, at a time.
type confirmedSize struct {
	position int64
	at       time.Time
}

func newShipper(dir, app string, s server, events *eventLog) *shipper {
	return &shipper{dir: dir, app: app, server: s, events: events, positions: map[string]int64{}, resumedAt: map[string]int64{}, shorterAt: map[string]int64{}, inodes: map[string]uint64{}, created: map[string]bool{},
		refusedFiles: map[string]bool{}, leftOut: map[string]bool{}, chunk: make([]byte, chunkBytes), now: clock.Realtime, onArchivedUntil: func(int64) {},
		confirmed: map[string][]confirmedSize{}, punchedTo: map[string]int64{}, budget: &spoolBudget{}}
}

// run ships every checkPeriod until ctx ends. If the server does not answer, it tries less often.
func (s *shipper) run(ctx context.Context) {
	skipped, every := 0, 1
	clock.Every(ctx, checkPeriod, func() {
		if skipped++; skipped < every {
			return
		}
		skipped = 0
		if _, err := s.shipRound(ctx, bytesPerRound, false); err == nil {
			every = 1
		} else {
			every = min(2*every, int(maxShipPause/checkPeriod))
		}
	})
}

// shipAll ships until nothing is left, ctx ends, or the archive accepts no more.
func (s *shipper) shipAll(ctx context.Context) error {
	pause, noRoomSince := 100*time.Millisecond, time.Time{}
	for {
		whole, err := s.shipRound(ctx, 1<<40, true)
		if (whole && err == nil) || errors.Is(err, errSealed) {
			return err
		}
		if !errors.Is(err, errNoRoom) {
			noRoomSince = time.Time{}
		} else if noRoomSince.IsZero() {
			noRoomSince = time.Now()
		} else if time.Since(noRoomSince) > noRoomTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
			pause = min(2*pause, maxShipPause)
		}
	}
}

// shipRound ships up to budget bytes, and reports whether all logs have been shipped. The last round also ships incomplete lines
// and empty logs.
func (s *shipper) shipRound(ctx context.Context, budget int64, last bool) (whole bool, err error) {
	began := s.now()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return false, err
	}
	r := &round{shipper: s, budget: budget, last: last, complete: true, stopped: map[string]bool{}}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() && !strings.HasPrefix(name, ".") {
			r.noteLeftOut(name, "is a folder: files are archived only from the log folder itself")
		}
		if !entry.Type().IsRegular() || strings.HasPrefix(name, ".") || s.refusedFiles[name] {
			continue
		}
		info, failed := entry.Info()
		if failed == nil {
			s.noteShorter(name, info.Size())
			s.noteReplaced(name, info)
		}
		if failed == nil && r.hasNewBytes(name, info.Size()) {
			failed = r.addFile(ctx, name)
		}
		if errors.Is(failed, errRequest) {
			return false, errors.Join(err, failed) // other logs would fail too
		}
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, r.send(ctx))
	err = errors.Join(err, r.noRoom)
	if r.complete && err == nil {
		s.onArchivedUntil(began)
	}
	return r.complete && err == nil, err
}

// round is the state of one round, with the request that it is about to send.
type round struct {
	*shipper
	budget   int64
	last     bool
	complete bool
	// parts of the next request, at most one of each log; their contents are in the first bytes of chunk.
	parts []client.LogPart
	bytes int
	// stopped are logs of which the archive accepted no more in this round.
	stopped map[string]bool
	noRoom  error
}

// hasNewBytes saves opening a log that has not grown.
func (r *round) hasNewBytes(name string, size int64) bool {
	return size > r.positions[name] || (r.last && !r.created[name])
}

// addFile puts the new bytes of one log into requests, and sends full ones.
func (r *round) addFile(ctx context.Context, name string) error {
	f, err := os.Open(filepath.Join(r.dir, name))
	if errors.Is(err, fs.ErrPermission) {
		r.noteLeftOut(name, fmt.Sprintf("cannot be read by user id %d: nothing of it is archived until its mode allows it", os.Getuid()))
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for !r.stopped[name] {
		more, err := r.addPiece(f, name)
		if err != nil || !more {
			return err
		}
		if err := r.send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// noteLeftOut reports a name in the log folder of which nothing is archived, once. Another round ships the event.
// Later rounds try to read a log again.
func (r *round) noteLeftOut(name, why string) {
	if r.leftOut[name] {
		return
	}
	r.leftOut[name], r.complete = true, false
	r.events.add(runapi.AgentEvent{Event: eventNotArchived, Message: name + " " + why})
}

// addPiece puts the next piece of a log into the request. More of it may follow after sending.
func (r *round) addPiece(f *os.File, name string) (more bool, err error) {
	if r.budget <= 0 {
		r.complete = false
		return false, nil
	}
	free := r.chunk[r.bytes:]
	room := min(int64(len(free)), r.budget)
	n, err := f.ReadAt(free[:room], r.positions[name])
	if err != nil && err != io.EOF {
		return false, err
	}
	part, cut := free[:n], int64(n) == room // possibly within a line
	if !r.last {
		part = completeLines(part)
	}
	if len(part) == 0 && (!r.last || r.created[name] || room == 0) {
		if cut && len(r.parts) > 0 {
			return true, nil // no room left beside the other parts
		}
		r.complete = r.complete && !cut
		return false, nil
	}
	r.parts = append(r.parts, client.LogPart{File: name, Offset: r.positions[name], Content: part})
	r.bytes += len(part)
	r.budget -= int64(len(part))
	return cut || len(r.parts) == runapi.MaxLogParts, nil
}

// completeLines omits a line that is still being written. A line as long as the chunk is sent in pieces.
func completeLines(part []byte) []byte {
	if end := bytes.LastIndexByte(part, '\n'); end >= 0 {
		return part[:end+1]
	}
	if len(part) < chunkBytes {
		return nil
	}
	return part
}

// send ships the request, if it is not empty.
func (r *round) send(ctx context.Context) error {
	parts := r.parts
	if len(parts) == 0 {
		return nil
	}
	r.parts, r.bytes = r.parts[:0], 0
	ctx, cancel := context.WithTimeout(ctx, shipTimeout)
	defer cancel()
	appended, err := r.server.AppendLogs(ctx, r.app, parts)
	if err != nil {
		return fmt.Errorf("%w: %w", errRequest, classifyRefusal(err))
	}
	var failed error
	for i, part := range parts {
		failed = errors.Join(failed, r.handleAnswer(part, appended[i]))
	}
	if failed != nil {
		return fmt.Errorf("%w: %w", errRequest, failed)
	}
	return nil
}

// handleAnswer handles the result of one part. An error means that other logs would fail too.
func (r *round) handleAnswer(part client.LogPart, answer client.LogResult) error {
	err := r.notePosition(part, answer)
	if err == nil {
		return nil
	}
	r.complete, r.stopped[part.File] = false, true
	switch {
	case errors.Is(err, errResumed):
		return nil
	case errors.Is(err, errRefused):
		r.refusedFiles[part.File] = true
		r.events.add(runapi.AgentEvent{Event: eventNotArchived, Message: err.Error()}) // this event is shipped too
		return nil
	case errors.Is(err, errNoRoom):
		r.noRoom = errors.Join(r.noRoom, err)
		return nil
	}
	return err
}

// notePosition records how much of a log the archive has. If it is less or more than expected, it continues from there.
func (s *shipper) notePosition(part client.LogPart, answer client.LogResult) error {
	name := part.File
	if answer.Err == nil {
		s.positions[name], s.created[name] = part.Offset+int64(len(part.Content)), true
		if answer.Size != s.positions[name] {
			return s.resume(name, answer.Size)
		}
		s.punchHole(name)
		return nil
	}
	var refusal *client.Error
	if !errors.As(answer.Err, &refusal) {
		return answer.Err
	}
	switch {
	case refusal.Size != nil:
		return s.resume(name, *refusal.Size)
	case refusal.Status == http.StatusBadRequest: // the app chooses the names of its files
		return fmt.Errorf("%w: %s: %w", errRefused, name, refusal)
	}
	return fmt.Errorf("log %s: %w", name, classifyRefusal(refusal))
}

// classifyRefusal marks refusals that a retry does not solve.
func classifyRefusal(err error) error {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Status {
	case http.StatusGone, http.StatusConflict, http.StatusNotFound:
		return fmt.Errorf("%w: %w", errSealed, err)
	case http.StatusInsufficientStorage, http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	return err
}

// resume makes the next round continue at the archive's size.
func (s *shipper) resume(name string, archived int64) error {
	before := s.positions[name]
	info, err := os.Stat(filepath.Join(s.dir, name))
	if err != nil {
		return err
	}
	if archived < 0 {
		return fmt.Errorf("%s: the archive reports %d bytes: want 0 or more", name, archived)
	}
	if punched := s.punchedTo[name]; archived < punched {
		return fmt.Errorf("%w: %s: the archive has lost bytes %d to %d, which it had confirmed and the node no longer has", errRefused, name, archived, punched)
	}
	s.positions[name], s.created[name] = archived, true
	delete(s.confirmed, name) // what the archive has lost must not be released
	if at, reported := s.resumedAt[name]; reported && at == archived {
		return errResumed
	}
	s.resumedAt[name] = archived
	message := fmt.Sprintf("%s: the archive has %d bytes, %d were expected", name, archived, before)
	if archived > info.Size() {
		s.shorterAt[name] = archived
		// The archive has bytes of an earlier log of this name: new ones would be lost below them.
		message += fmt.Sprintf("; the log itself has only %d: nothing of it is shipped until it is longer", info.Size())
	}
	s.events.add(runapi.AgentEvent{Event: eventResumed, Message: message})
	return errResumed
}

// noteShorter reports a log of which the archive has more than there is: what the app writes below that never comes there.
func (s *shipper) noteShorter(name string, size int64) {
	position := s.positions[name]
	if at, reported := s.shorterAt[name]; size >= position || reported && at == position {
		return
	}
	s.shorterAt[name] = position
	s.events.add(runapi.AgentEvent{Event: eventNotArchived, Message: fmt.Sprintf("%s was made shorter by the app, from %d to %d bytes: nothing of it is archived until it is longer", name, position, size)})
}

// noteReplaced reports another file in a log's place: the archive gets its end after the bytes of the file before.
func (s *shipper) noteReplaced(name string, info fs.FileInfo) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	before, known := s.inodes[name]
	if !ok || known && before == 0 {
		return
	}
	s.inodes[name] = stat.Ino
	position := s.positions[name]
	if !known || before == stat.Ino || position == 0 || info.Size() < position {
		return
	}
	s.inodes[name] = 0
	s.events.add(runapi.AgentEvent{Event: eventNotArchived, Message: fmt.Sprintf("%s was replaced by the app with another file: its first %d bytes are not archived, as the archive has those of the file before", name, position)})
}

const (
	// punchAfter this time archived bytes are on the archive's disk: it syncs a growing log every 10 s, and its host writes back after 30 s.
	// A log that grows as fast as it is shipped needs less than the spool until then.
	punchAfter = 45 * time.Second
	// confirmStep is the shortest time between two confirmed sizes.
	confirmStep = 5 * time.Second
	// minPunchBytes are worth the system call.
	minPunchBytes = 1 << 20
	// diskBlock is a multiple of the block size of all common file systems.
	diskBlock = 64 << 10
)

// punchHole releases archived bytes from the disk, so that a run of days needs no more space than one of an hour. A hole replaces
// them, so that offsets stay. If the file system has no holes, or only the app may write the log, the bytes stay.
func (s *shipper) punchHole(name string) {
	known, sure, now := s.confirmed[name], int64(0), time.Now()
	if n := len(known); n == 0 || now.Sub(known[n-1].at) >= confirmStep {
		known = append(known, confirmedSize{s.positions[name], now})
	}
	for now.Sub(known[0].at) >= punchAfter {
		sure, known = known[0].position, known[1:]
	}
	s.confirmed[name] = known
	from, to := s.punchedTo[name], sure/diskBlock*diskBlock
	if to-from < minPunchBytes {
		return
	}
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from) != nil {
		return
	}
	s.punchedTo[name] = to
	if isOutput(name) {
		s.budget.giveBack(to - from)
	}
}

// isOutput reports whether newInstance made this log for an app's output.
func isOutput(name string) bool {
	return strings.HasPrefix(name, "stdout-") || strings.HasPrefix(name, "stderr-")
}

// spoolBytes is how much of the disk all logs use.
func spoolBytes(dir string) (total int64) {
	entries, _ := os.ReadDir(dir) // shipping reports an unreadable folder
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue
		}
		size := info.Size()
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			size = min(size, stat.Blocks*512) // stat(2): in units of 512 bytes
		}
		total += size
	}
	return total
}
