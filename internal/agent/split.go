package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/wording"
)

// maxEventLine bounds a line that may be a message event, and so the splitter's memory.
const maxEventLine = 64 << 10

// maxWaitingMessages are the bytes of message events that wait for a full disk.
const maxWaitingMessages = 1 << 20

// splitter splits an app's standard output: message events go to the message log, all other lines unchanged to the output. A line
// that may become an event is kept until its end.
type splitter struct {
	instance         string
	messages, output io.Writer
	now              func() int64
	// report logs an event of the agent.
	report func(runapi.AgentEvent)

	mu sync.Mutex
	// line is the beginning of a line that may be an event. Other lines are forwarded at once, and plain is set until their end.
	line  []byte
	plain bool
	// Reports that were made already; each is made once.
	reportedStamped, reportedInvalid, reportedFull bool
}

// newSplitter splits the standard output of an instance.
func (a *Agent) newSplitter(instance string, messages, output io.Writer) *splitter {
	return &splitter{instance: instance, messages: messages, output: output, now: clock.Realtime, report: a.events.add}
}

// Write never blocks: neither a full spool nor a long line must stop the app.
func (s *splitter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events, others []byte
	for rest := p; len(rest) > 0; {
		part, ended := rest, false
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			part, ended = rest[:end+1], true
		}
		rest = rest[len(part):]
		if s.plain {
			others = append(others, part...)
			s.plain = !ended
			continue
		}
		s.line = append(s.line, part...)
		switch {
		case !ended && mayBeEvent(s.line):
			continue
		case ended && mayBeEvent(s.line):
			events, others = s.assignLine(events, others)
		default:
			if len(s.line) > maxEventLine && looksLikeEvent(s.line) {
				s.reportInvalid(fmt.Errorf("it has more than %d KiB", maxEventLine>>10))
			}
			others = append(others, s.line...)
		}
		s.line, s.plain = s.line[:0], !ended
	}
	s.forward(events, others)
	return len(p), nil
}

// flush ends the last line, which a process may have left incomplete.
func (s *splitter) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, others := s.assignLine(nil, nil)
	s.line, s.plain = nil, false
	s.forward(events, others)
}

func (s *splitter) forward(events, others []byte) {
	if len(others) > 0 {
		_, _ = s.output.Write(others) // a tee accepts everything
	}
	if len(events) == 0 {
		return
	}
	if _, err := s.messages.Write(events); err != nil && !s.reportedFull {
		s.reportedFull = true
		s.report(runapi.AgentEvent{Event: eventSpoolFull, Instance: s.instance, Message: fmt.Sprintf("the message log is cut off here: %v", err)})
	}
}

// assignLine adds the kept line to events or to others.
func (s *splitter) assignLine(events, others []byte) (newEvents, newOthers []byte) {
	if len(s.line) == 0 {
		return events, others
	}
	record, err := s.record(s.line)
	if err != nil {
		if looksLikeEvent(s.line) {
			s.reportInvalid(err)
		}
		return events, append(others, s.line...)
	}
	return append(events, record...), others
}

// reportInvalid reports the kept line, if it is the first that was meant as an event and is none.
func (s *splitter) reportInvalid(err error) {
	if s.reportedInvalid {
		return
	}
	s.reportedInvalid = true
	s.report(runapi.AgentEvent{Event: eventNoMessage, Instance: s.instance,
		Message: fmt.Sprintf("a line of standard output looks like a message event and is invalid, as others may be: %v: %s", err, excerpt(s.line))})
}

// event is a record whose position is kept as the app wrote it, as the altitude may be missing.
type event struct {
	messagelog.Record
	Position []*float64 `json:"position,omitempty"`
}

// record makes a line of the message log, and adds what the app may omit.
func (s *splitter) record(line []byte) ([]byte, error) {
	var r event
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, inWords(err)
	}
	r.Instance = cmp.Or(r.Instance, s.instance)
	stamped := r.TimeNanoseconds == 0
	if stamped {
		r.TimeNanoseconds = s.now()
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if stamped && !s.reportedStamped {
		s.reportedStamped = true
		s.report(runapi.AgentEvent{Event: eventStamped, Instance: s.instance,
			Message: "message events have no ts: they get the time at which the agent read them"})
	}
	text, err := json.Marshal(r)
	return append(text, '\n'), err
}

// inWords says why a line is no record, and what would be right.
func inWords(err error) error {
	field, words := wording.JSONFault(err)
	want := "a text"
	switch field {
	case "":
		return errors.New(cmp.Or(words, err.Error()))
	case "ts":
		want = "nanoseconds since the Unix epoch, an integer"
	case "bytes":
		want = "an integer"
	case "position":
		want = "numbers: latitude, longitude and, if it is known, altitude"
	}
	return fmt.Errorf("%s: want %s", words, want)
}

// mayBeEvent reports whether a line that begins so may be an event.
func mayBeEvent(line []byte) bool {
	trimmed := bytes.TrimLeft(line, " \t\r\n")
	return len(line) <= maxEventLine && (len(trimmed) == 0 && len(line) < 16 || len(trimmed) > 0 && trimmed[0] == '{')
}

// looksLikeEvent reports whether a line was most likely meant as an event.
func looksLikeEvent(line []byte) bool {
	if !json.Valid(line) {
		return bytes.Contains(line, []byte(`"status"`)) && bytes.Contains(line, []byte(`"id"`))
	}
	var fields struct{ Status any }
	_ = json.Unmarshal(line, &fields)
	switch status, _ := fields.Status.(string); messagelog.Status(status) {
	case messagelog.Triggered, messagelog.Sent, messagelog.Received, messagelog.Processed:
		return true
	}
	return false
}

func excerpt(line []byte) string {
	const limit = 200
	line = bytes.TrimSpace(line)
	if len(line) > limit {
		return string(bytes.ToValidUTF8(line[:limit], nil)) + " …"
	}
	return string(line)
}
