package server

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"
	"sync"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
)

// tally counts message events and follows radio samples while logs grow. A line counts once it is whole.
type tally struct {
	mu       sync.Mutex
	counters runapi.Counters
	// partial is the beginning of each log's last line, until its end arrives.
	partial map[string][]byte
	// radioUntil is the time of each radio log's newest sample, Unix nanoseconds.
	radioUntil map[string]int64
	// captures has the newest sample of each capture, by its path.
	captures map[string]runapi.CaptureSample
	// events by UID; eventLines and eventBytes are those of their file.
	events     map[string]seenEvent
	eventLines int
	eventBytes int64
}

// maxLine bounds what is kept of a line without an end: longer ones are no records.
const maxLine = 1 << 20

func newTally() *tally {
	return &tally{partial: map[string][]byte{}, radioUntil: map[string]int64{}, captures: map[string]runapi.CaptureSample{}, events: map[string]seenEvent{}}
}

// add takes the next piece of a log; it is archive.Run.OnAppend.
func (t *tally) add(p string, piece []byte) {
	var count func(line []byte)
	switch {
	case isMessageLog(p):
		count = t.countMessage
	case strings.HasPrefix(p, archive.RadioDir+"/"):
		count = func(line []byte) { t.countRadio(p, line) }
	case p == archive.EventsFile:
		count = t.countEvent
	default:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p == archive.EventsFile {
		t.eventBytes += int64(len(piece))
	}
	for {
		line, rest, whole := bytes.Cut(piece, []byte{'\n'})
		if !whole {
			if len(t.partial[p])+len(line) <= maxLine {
				t.partial[p] = append(t.partial[p], line...)
			}
			return
		}
		if before := t.partial[p]; len(before) > 0 {
			line = append(before, line...)
			t.partial[p] = before[:0]
		}
		count(line)
		piece = rest
	}
}

func isMessageLog(p string) bool {
	return strings.HasPrefix(p, archive.LogsDir+"/") && strings.HasPrefix(path.Base(p), "messages-")
}

func (t *tally) countMessage(line []byte) {
	var r messagelog.Record
	if json.Unmarshal(line, &r) != nil || r.Validate() != nil {
		return
	}
	switch r.Status {
	case messagelog.Triggered:
		t.counters.Triggered++
	case messagelog.Sent:
		t.counters.Sent++
	case messagelog.Received:
		t.counters.Received++
		t.counters.LastReceivedNanoseconds = max(t.counters.LastReceivedNanoseconds, r.TimeNanoseconds)
	case messagelog.Processed:
		t.counters.Processed++
	}
}

func (t *tally) countRadio(p string, line []byte) {
	var sample runapi.CaptureSample
	if json.Unmarshal(line, &sample) != nil {
		return
	}
	if sample.Capture != "" {
		t.captures[capturePath(sample.Capture, sample.Network, sample.Node)] = sample
	} else {
		t.radioUntil[p] = max(t.radioUntil[p], sample.TimeNanoseconds)
	}
}

func (t *tally) snapshot() runapi.Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counters
}

// capture gives the newest sample of a capture.
func (t *tally) capture(p string) (sample runapi.CaptureSample, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sample, known = t.captures[p]
	return sample, known
}

// radio gives the time of the newest sample of every radio log.
func (t *tally) radio() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	until := make(map[string]int64, len(t.radioUntil))
	for p, ts := range t.radioUntil {
		until[p] = ts
	}
	return until
}
