package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	// chunkBytes of logs bound one request, and so the memory that shipping takes.
	chunkBytes = 512 << 10
	// bytesPerRound bounds the rate: 4 MiB/s, so that a backlog does not crowd out the experiment.
	bytesPerRound = 4 << 20
	shipTimeout   = 30 * time.Second
	maxShipPause  = 5 * time.Second
)

// Errors that trying again does not mend.
var (
	// errSealed tells that the archive takes no more of this run, or has none of it.
	errSealed = errors.New("the archive of this run is closed")
	// errNoRoom tells that the archive's quota or volume is used up. The archive names it as a gap.
	errNoRoom = errors.New("the archive has no room")
	// errUnwanted tells that the archive will never take this log, such as for its name.
	errUnwanted = errors.New("the archive does not take this log")
)

// errResumed tells that the archive's copy ends elsewhere than was thought: the next round goes on from there. It is
// not this one, as a server that is never satisfied would be asked without a pause.
var errResumed = errors.New("the archive has another part of this log")

// errRequest tells that a request failed for all logs alike.
var errRequest = errors.New("shipping logs")

// patience with an archive without room, once everything else is shipped.
const patience = 10 * time.Second

// shipper copies the logs to the archive, each from where the archive's copy ends. One request carries what is new of all
// of them: a run has hundreds of logs that grow all the time, and a request costs more than the bytes in it.
type shipper struct {
	dir, app  string
	server    server
	events    *eventLog
	positions map[string]int64
	// resumedAt is where a log was last taken up again, so that it is told once.
	resumedAt map[string]int64
	// created are the logs that the archive has, be it empty.
	created map[string]bool
	// unwanted are files that the archive will never take.
	unwanted map[string]bool
	chunk    []byte
	// now is the clock of wholeUntil, which hears at which time the archive had everything.
	now        func() int64
	wholeUntil func(nanoseconds int64)
	// confirmed is what the archive had of each log some time ago, and released what the disk was given back of it.
	confirmed map[string]confirmation
	released  map[string]int64
	// budget of output gets back what is released of it.
	budget *spoolBudget
}

// confirmation is how far the archive had a log, at a time.
type confirmation struct {
	position int64
	at       time.Time
}

func newShipper(dir, app string, s server, events *eventLog) *shipper {
	return &shipper{dir: dir, app: app, server: s, events: events, positions: map[string]int64{}, resumedAt: map[string]int64{}, created: map[string]bool{},
		unwanted: map[string]bool{}, chunk: make([]byte, chunkBytes), now: clock.Realtime, wholeUntil: func(int64) {},
		confirmed: map[string]confirmation{}, released: map[string]int64{}, budget: &spoolBudget{}}
}

// run ships every lookPeriod until ctx ends. While the server does not answer it tries less often.
func (s *shipper) run(ctx context.Context) {
	tick := time.NewTicker(lookPeriod)
	defer tick.Stop()
	for skipped, every := 0, 1; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if skipped++; skipped < every {
			continue
		}
		skipped = 0
		if _, err := s.round(ctx, bytesPerRound, false); err == nil {
			every = 1
		} else {
			every = min(2*every, int(maxShipPause/lookPeriod))
		}
	}
}

// all ships until nothing is left, or ctx ends, or the archive takes no more.
func (s *shipper) all(ctx context.Context) error {
	pause, noRoomSince := 100*time.Millisecond, time.Time{}
	for {
		whole, err := s.round(ctx, 1<<40, true)
		if (whole && err == nil) || errors.Is(err, errSealed) {
			return err
		}
		if !errors.Is(err, errNoRoom) {
			noRoomSince = time.Time{}
		} else if noRoomSince.IsZero() {
			noRoomSince = time.Now()
		} else if time.Since(noRoomSince) > patience {
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

// round ships up to budget bytes and tells whether everything there was has been shipped. The last
// round also ships lines that have no end, and logs that are empty.
func (s *shipper) round(ctx context.Context, budget int64, last bool) (whole bool, err error) {
	began := s.now()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return false, err
	}
	r := &round{shipper: s, budget: budget, last: last, whole: true, stopped: map[string]bool{}}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.Type().IsRegular() || strings.HasPrefix(name, ".") || s.unwanted[name] {
			continue
		}
		info, failed := entry.Info()
		if failed == nil && r.hasNews(name, info.Size()) {
			failed = r.file(ctx, name)
		}
		if errors.Is(failed, errRequest) {
			return false, errors.Join(err, failed) // of the server or the way to it: other logs would fare no better
		}
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, r.send(ctx))
	err = errors.Join(err, r.noRoom)
	if r.whole && err == nil {
		s.wholeUntil(began)
	}
	return r.whole && err == nil, err
}

// round is what one round has shipped, and the request that it is about to send.
type round struct {
	*shipper
	budget int64
	last   bool
	whole  bool
	// parts of the next request, at most one of each log; their contents fill the first bytes of chunk.
	parts []client.LogPart
	bytes int
	// stopped are logs of which the archive took no more in this round.
	stopped map[string]bool
	noRoom  error
}

// hasNews spares a log that has not grown from being opened.
func (r *round) hasNews(name string, size int64) bool {
	return size > r.positions[name] || (r.last && !r.created[name])
}

// file puts what is new of one log into requests, and sends those that are full.
func (r *round) file(ctx context.Context, name string) error {
	f, err := os.Open(filepath.Join(r.dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	for !r.stopped[name] {
		more, err := r.take(f, name)
		if err != nil || !more {
			return err
		}
		if err := r.send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// take puts the next piece of a log into the request. More of it may follow once that is sent.
func (r *round) take(f *os.File, name string) (more bool, err error) {
	if r.budget <= 0 {
		r.whole = false
		return false, nil
	}
	free := r.chunk[r.bytes:]
	room := min(int64(len(free)), r.budget)
	n, err := f.ReadAt(free[:room], r.positions[name])
	if err != nil && err != io.EOF {
		return false, err
	}
	part, cut := free[:n], int64(n) == room // perhaps in the middle of a line
	if !r.last {
		part = wholeLines(part)
	}
	if len(part) == 0 && (!r.last || r.created[name] || room == 0) {
		if cut && len(r.parts) > 0 {
			return true, nil // for the want of room beside the other parts
		}
		r.whole = r.whole && !cut
		return false, nil
	}
	r.parts = append(r.parts, client.LogPart{File: name, Offset: r.positions[name], Content: part})
	r.bytes += len(part)
	r.budget -= int64(len(part))
	return cut || len(r.parts) == runapi.MaxLogParts, nil
}

// wholeLines leaves out a line that is still being written. A line as long as the chunk goes in pieces.
func wholeLines(part []byte) []byte {
	if end := bytes.LastIndexByte(part, '\n'); end >= 0 {
		return part[:end+1]
	}
	if len(part) < chunkBytes {
		return nil
	}
	return part
}

// send ships the request, if there is anything to ship.
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
		return fmt.Errorf("%w: %w", errRequest, lasting(err))
	}
	var failed error
	for i, part := range parts {
		failed = errors.Join(failed, r.judge(part, appended[i]))
	}
	if failed != nil {
		return fmt.Errorf("%w: %w", errRequest, failed)
	}
	return nil
}

// judge takes the answer to one part. An error tells that other logs would fare no better.
func (r *round) judge(part client.LogPart, answer client.LogResult) error {
	err := r.settle(part, answer)
	if err == nil {
		return nil
	}
	r.whole, r.stopped[part.File] = false, true
	switch {
	case errors.Is(err, errResumed):
		return nil
	case errors.Is(err, errUnwanted):
		r.unwanted[part.File] = true
		r.events.add(runapi.AgentEvent{Event: eventNotArchived, Message: err.Error()}) // it is still to be shipped
		return nil
	case errors.Is(err, errNoRoom):
		r.noRoom = errors.Join(r.noRoom, err)
		return nil
	}
	return err
}

// settle notes how far the archive has a log. Where that is less or more than was thought, it goes on from there.
func (s *shipper) settle(part client.LogPart, answer client.LogResult) error {
	name := part.File
	if answer.Err == nil {
		s.positions[name], s.created[name] = part.Offset+int64(len(part.Content)), true
		if answer.Size != s.positions[name] {
			return s.resume(name, answer.Size)
		}
		s.release(name)
		return nil
	}
	var refusal *client.Error
	if !errors.As(answer.Err, &refusal) {
		return answer.Err
	}
	switch {
	case refusal.Size != nil:
		return s.resume(name, *refusal.Size)
	case refusal.Status == http.StatusBadRequest: // an app may call a file in the log folder whatever it likes
		return fmt.Errorf("%w: %s: %w", errUnwanted, name, refusal)
	}
	return fmt.Errorf("log %s: %w", name, lasting(refusal))
}

// lasting tells which answers trying again does not mend.
func lasting(err error) error {
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

// resume has the next round go on at the archive's size.
func (s *shipper) resume(name string, archived int64) error {
	before := s.positions[name]
	info, err := os.Stat(filepath.Join(s.dir, name))
	if err != nil {
		return err
	}
	if archived < 0 {
		return fmt.Errorf("%s: the archive says that it has %d bytes: want 0 or more", name, archived)
	}
	if gone := s.released[name]; archived < gone {
		return fmt.Errorf("%w: %s: the archive has lost bytes %d to %d, which it had confirmed and the node has no more", errUnwanted, name, archived, gone)
	}
	s.positions[name], s.created[name] = archived, true
	if at, told := s.resumedAt[name]; told && at == archived {
		return errResumed
	}
	s.resumedAt[name] = archived
	message := fmt.Sprintf("%s: the archive has %d bytes, %d were thought to be there", name, archived, before)
	if archived > info.Size() {
		// Bytes of an earlier life of this log: what is written from now on would be lost below them.
		message += fmt.Sprintf("; the log itself only %d: nothing of it is shipped until it is longer", info.Size())
	}
	s.events.add(runapi.AgentEvent{Event: eventResumed, Message: message})
	return errResumed
}

const (
	// releaseAfter so long what the archive has confirmed is on its disk: it syncs a log that grows every 10 s, and its host writes back after 30.
	releaseAfter = time.Minute
	// releaseLeast bytes are worth the call.
	releaseLeast = 1 << 20
	// diskBlock divides those of all common file systems' blocks.
	diskBlock = 64 << 10
)

// release gives back to the disk what the archive has of a log, so that a run of days needs no more room than an hour's: a hole takes its
// place, and offsets stay what they are. Where the file system makes no holes, or the app owns its log alone, everything stays.
func (s *shipper) release(name string) {
	sure, now := s.confirmed[name], time.Now()
	if now.Sub(sure.at) < releaseAfter {
		return
	}
	s.confirmed[name] = confirmation{s.positions[name], now}
	from, to := s.released[name], sure.position/diskBlock*diskBlock
	if sure.at.IsZero() || to-from < releaseLeast {
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
	s.released[name] = to
	if isOutput(name) {
		s.budget.give(to - from)
	}
}

// isOutput tells the logs that newInstance makes of an app's output.
func isOutput(name string) bool {
	return strings.HasPrefix(name, "stdout-") || strings.HasPrefix(name, "stderr-")
}

// spooled is the room that all logs together take on the disk.
func spooled(dir string) (total int64) {
	entries, _ := os.ReadDir(dir) // an unreadable folder shows elsewhere
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
