package server

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"sync"

	"vignette.dev/vignette/internal/archive"
	"vignette.dev/vignette/internal/live"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
)

// tally counts message events and follows radio samples while logs grow. A line counts once it is complete.
type tally struct {
	mu       sync.Mutex
	counters runapi.Counters
	// messageLogs are the paths of the plan's message logs; apps may write others of such names.
	messageLogs map[string]bool
	// partial is the beginning of each log's last line, until the rest arrives; partialBytes are those of message logs.
	partial      map[string][]byte
	partialBytes int
	// radioUntil is the time of each radio log's newest line that is not of a capture, Unix nanoseconds.
	radioUntil map[string]int64
	// sampled is set once a radio log has a sample of a radio.
	sampled bool
	// captures has the newest sample of each capture, by its path.
	captures map[string]runapi.CaptureSample
	// events by UID; eventLines and eventBytes are those of their file.
	events     map[string]seenEvent
	eventLines int
	eventBytes int64
	// live has the deliveries that the logs show so far; nil when no longer needed. It has its own lock.
	live *live.Tally
	// positions are the newest of the nodes: latitude, longitude, altitude.
	positions map[string][3]float64
	// radios has the state of radios by network and node.
	radios map[[2]string]radioTally
}

// radioTally is the state of a radio by its samples.
type radioTally struct {
	newest                    int64
	queue                     int
	lateReleases, slotsMissed uint64
	worstSeconds              float64
	carried, carriedBefore    carried
}

// carried are counters of a radio since its attachment. They begin again at 0 when a node is attached again.
type carried struct {
	FramesSent     uint64 `json:"framesSent"`
	BytesSent      uint64 `json:"bytesSent"`
	FramesReceived uint64 `json:"framesReceived"`
	BytesReceived  uint64 `json:"bytesReceived"`
}

func (c carried) plus(o carried) carried {
	return carried{c.FramesSent + o.FramesSent, c.BytesSent + o.BytesSent, c.FramesReceived + o.FramesReceived, c.BytesReceived + o.BytesReceived}
}

// carries takes the counters of a newer sample.
func (r *radioTally) carries(now carried) {
	if now.FramesSent < r.carried.FramesSent || now.FramesReceived < r.carried.FramesReceived {
		r.carriedBefore = r.carriedBefore.plus(r.carried)
	}
	r.carried = now
}

// maxLine bounds what is kept of an unfinished line: longer ones are no records.
const maxLine = 1 << 20

// maxPartialBytes bounds what is kept of the unfinished lines of a run's message logs.
const maxPartialBytes = 16 << 20

func newTally() *tally {
	return &tally{partial: map[string][]byte{}, radioUntil: map[string]int64{}, captures: map[string]runapi.CaptureSample{}, events: map[string]seenEvent{},
		live: live.New(), positions: map[string][3]float64{}, radios: map[[2]string]radioTally{}}
}

// add processes the next piece of a log; it is archive.Run.OnAppend.
func (t *tally) add(p string, piece []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var count func(line []byte)
	switch {
	case t.messageLogs[p]:
		count = func(line []byte) { t.countMessage(p, line) }
	case strings.HasPrefix(p, archive.RadioDir+"/"):
		count = func(line []byte) { t.countRadio(p, line) }
	case p == archive.EventsFile:
		count = t.countEvent
	default:
		return
	}
	if p == archive.EventsFile {
		t.eventBytes += int64(len(piece))
	}
	for {
		line, rest, whole := bytes.Cut(piece, []byte{'\n'})
		if !whole {
			t.keep(p, line)
			return
		}
		if begun := t.take(p); len(begun) > 0 {
			line = append(begun, line...)
		}
		count(line)
		piece = rest
	}
}

// keep keeps the beginning of a line, unless it or all of them are too long; the lock is held.
func (t *tally) keep(p string, line []byte) {
	of, isMessage := len(t.partial[p])+len(line), t.messageLogs[p]
	if of > maxLine || isMessage && t.partialBytes+len(line) > maxPartialBytes {
		return
	}
	if isMessage {
		t.partialBytes += len(line)
	}
	t.partial[p] = append(t.partial[p], line...)
}

// take returns the beginning of a line that was kept, and forgets it; the lock is held.
func (t *tally) take(p string) []byte {
	begun := t.partial[p]
	if t.messageLogs[p] {
		t.partialBytes -= len(begun)
	}
	delete(t.partial, p)
	return begun
}

func (t *tally) countMessage(p string, line []byte) {
	var r messagelog.Record
	if json.Unmarshal(line, &r) != nil || r.Validate() != nil {
		return
	}
	if t.live != nil {
		t.live.Add(p, &r)
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
	var sample struct {
		runapi.CaptureSample
		carried
		QueueDepth               int                   `json:"queueDepth"`
		LateReleases             uint64                `json:"lateReleases"`
		SlotsMissed              uint64                `json:"slotsMissed"`
		WorstLatenessSeconds     float64               `json:"worstLatenessSeconds"`
		WorstSlotLatenessSeconds float64               `json:"worstSlotLatenessSeconds"`
		Positions                map[string][3]float64 `json:"positions"`
		LateSeconds              float64               `json:"lateSeconds"`
		LateFrom                 int64                 `json:"fromTs"`
		MissedFrom               int64                 `json:"slotsMissedFrom"`
	}
	if json.Unmarshal(line, &sample) != nil {
		return
	}
	maps.Copy(t.positions, sample.Positions)
	if sample.Capture != "" {
		t.captures[capturePath(sample.Capture, sample.Network, sample.Node)] = sample.CaptureSample
	} else {
		t.radioUntil[p] = max(t.radioUntil[p], sample.TimeNanoseconds)
		t.sampled = t.sampled || sample.Network != "" && sample.Node != "" && sample.MissedFrom == 0
	}
	if t.live != nil && sample.LateSeconds > 0 {
		t.live.Late("", "", sample.LateFrom, sample.TimeNanoseconds)
	}
	if t.live != nil && sample.MissedFrom > 0 {
		t.live.Late(sample.Network, sample.Node, sample.MissedFrom, sample.TimeNanoseconds)
		return
	}
	if sample.Capture != "" || sample.Node == "" || t.live == nil {
		return
	}
	key := [2]string{sample.Network, sample.Node}
	radio := t.radios[key]
	if sample.Network != "" && sample.TimeNanoseconds >= radio.newest {
		radio.carries(sample.carried)
	}
	if sample.TimeNanoseconds >= radio.newest {
		radio.newest, radio.queue, radio.slotsMissed = sample.TimeNanoseconds, sample.QueueDepth, sample.SlotsMissed
	}
	radio.lateReleases += sample.LateReleases
	radio.worstSeconds = max(radio.worstSeconds, sample.WorstLatenessSeconds, sample.WorstSlotLatenessSeconds)
	t.radios[key] = radio
}

func (t *tally) snapshot() runapi.Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counters
}

// capture returns the newest sample of a capture.
func (t *tally) capture(p string) (sample runapi.CaptureSample, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sample, known = t.captures[p]
	return sample, known
}

// radio returns the time of the newest line of every radio log, and reports whether any has a sample of a radio.
func (t *tally) radio() (until map[string]int64, sampled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.radioUntil), t.sampled
}

// plan updates what is expected of later messages.
func (t *tally) plan(plan runapi.Plan) {
	logs := map[string]bool{}
	for _, node := range plan.Nodes {
		for _, app := range node.Apps {
			for _, p := range messageLogs(node.Name, app) {
				logs[p] = true
			}
		}
	}
	t.mu.Lock()
	t.messageLogs = logs
	t.mu.Unlock()
	if now := t.liveFigures(); now != nil {
		now.Plan(plan)
	}
}

// liveFigures returns nil after they were dropped.
func (t *tally) liveFigures() *live.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// forgetPartial frees the beginnings of lines: a sealed run's logs grow no more.
func (t *tally) forgetPartial() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partial, t.partialBytes = map[string][]byte{}, 0
}

func (t *tally) forgetLive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live = nil
}

// nodePositions returns the newest positions of nodes.
func (t *tally) nodePositions() map[string][3]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.positions)
}
