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
	"time"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

const (
	shipPeriod = 500 * time.Millisecond
	// chunkBytes bounds one request, and so the memory that shipping takes.
	chunkBytes = 512 << 10
	// bytesPerRound bounds the rate: 4 MiB/s, so that a backlog does not crowd out the experiment.
	bytesPerRound = 2 << 20
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

// patience with an archive without room, once everything else is shipped.
const patience = 10 * time.Second

// shipper copies the logs to the archive, each from where the archive's copy ends.
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
}

func newShipper(dir, app string, s server, events *eventLog) *shipper {
	return &shipper{dir: dir, app: app, server: s, events: events, positions: map[string]int64{}, resumedAt: map[string]int64{}, created: map[string]bool{},
		unwanted: map[string]bool{}, chunk: make([]byte, chunkBytes)}
}

// run ships every half second until ctx ends. While the server does not answer it tries less often.
func (s *shipper) run(ctx context.Context) {
	pause := shipPeriod
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if _, err := s.round(ctx, bytesPerRound, false); err == nil {
			pause = shipPeriod
		} else {
			pause = min(2*pause, maxShipPause)
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
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return false, err
	}
	whole = true
	for _, entry := range entries {
		name := entry.Name()
		if !entry.Type().IsRegular() || strings.HasPrefix(name, ".") || s.unwanted[name] {
			continue
		}
		shipped, end, failed := s.file(ctx, name, budget, last)
		if errors.Is(failed, errUnwanted) {
			s.unwanted[name] = true
			s.events.add(runapi.AgentEvent{Event: eventNotArchived, Message: failed.Error()})
			failed, end = nil, false // the event is still to be shipped
		}
		if failed != nil && !errors.Is(failed, errNoRoom) {
			return false, failed // of the server or the way to it: other logs would fare no better
		}
		err = errors.Join(err, failed)
		budget -= shipped
		whole = whole && end
	}
	return whole, err
}

// file ships what is new of one log and tells how much that was and whether it was all.
func (s *shipper) file(ctx context.Context, name string, budget int64, last bool) (shipped int64, end bool, err error) {
	f, err := os.Open(filepath.Join(s.dir, name))
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	for {
		if budget <= shipped {
			return shipped, false, nil
		}
		room := min(int64(len(s.chunk)), budget-shipped)
		n, err := f.ReadAt(s.chunk[:room], s.positions[name])
		if err != nil && err != io.EOF {
			return shipped, false, err
		}
		part := s.chunk[:n]
		if !last {
			part = wholeLines(part)
		}
		if len(part) == 0 && (!last || s.created[name]) {
			cut := int64(n) == room // by the budget, in the middle of a line
			return shipped, !cut, nil
		}
		err = s.send(ctx, f, name, part)
		if errors.Is(err, errResumed) {
			return shipped + int64(len(part)), false, nil
		}
		if err != nil {
			return shipped, false, err
		}
		shipped += int64(len(part))
	}
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

// send ships one piece. Where the archive has less or more than we thought, it goes on from there.
func (s *shipper) send(ctx context.Context, f *os.File, name string, part []byte) error {
	ctx, cancel := context.WithTimeout(ctx, shipTimeout)
	defer cancel()
	offset := s.positions[name]
	position, err := s.server.AppendLog(ctx, s.app, name, offset, bytes.NewReader(part))
	if err == nil {
		s.positions[name], s.created[name] = offset+int64(len(part)), true
		if position.Size != s.positions[name] {
			return s.resume(f, name, position.Size)
		}
		return nil
	}
	return s.refused(f, name, err)
}

// refused judges an append that failed.
func (s *shipper) refused(f *os.File, name string, err error) error {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return err
	}
	switch {
	case answer.Size != nil:
		return s.resume(f, name, *answer.Size)
	case answer.Status == http.StatusGone, answer.Status == http.StatusConflict, answer.Status == http.StatusNotFound:
		return fmt.Errorf("%w: %w", errSealed, err)
	case answer.Status == http.StatusBadRequest: // an app may call a file in the log folder whatever it likes
		return fmt.Errorf("%w: %s: %w", errUnwanted, name, err)
	case answer.Status == http.StatusInsufficientStorage, answer.Status == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w for %s: %w", errNoRoom, name, err)
	}
	return err
}

// resume has the next round go on at the archive's size.
func (s *shipper) resume(f *os.File, name string, archived int64) error {
	before := s.positions[name]
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if archived < 0 {
		return fmt.Errorf("%s: the archive says that it has %d bytes: want 0 or more", name, archived)
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

// spooled is the size of all logs together.
func spooled(dir string) (total int64) {
	entries, _ := os.ReadDir(dir) // an unreadable folder shows elsewhere
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
	}
	return total
}
