package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
)

// maxEventLine bounds a line that may be a message event, and so what the splitter holds in memory.
const maxEventLine = 64 << 10

// maxWaitingMessages are the bytes of message events that wait for a full disk.
const maxWaitingMessages = 1 << 20

// splitter takes an app's standard output apart: lines that are message events go to the message log, all
// others on to the output, each as it is. A line that may yet become an event is held back until its end.
type splitter struct {
	instance         string
	messages, output io.Writer
	now              func() int64
	// tell logs an event of the agent.
	tell func(runapi.AgentEvent)

	mu sync.Mutex
	// line is what has come of a line that may be an event; of any other it goes on at once, and plain is set until its end.
	line  []byte
	plain bool
	// What has been told of already, once for all.
	toldStamped, toldRefused, toldFull bool
}

// newSplitter splits the standard output of an instance.
func (a *Agent) newSplitter(instance string, messages, output io.Writer) *splitter {
	return &splitter{instance: instance, messages: messages, output: output, now: clock.Realtime, tell: a.events.add}
}

// Write takes everything: neither a full spool nor a line of any length must stop the app.
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
			events, others = s.sort(events, others)
		default:
			others = append(others, s.line...)
		}
		s.line, s.plain = s.line[:0], !ended
	}
	s.pass(events, others)
	return len(p), nil
}

// flush ends the last line, which a process may have left without its end.
func (s *splitter) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, others := s.sort(nil, nil)
	s.line, s.plain = nil, false
	s.pass(events, others)
}

func (s *splitter) pass(events, others []byte) {
	if len(others) > 0 {
		_, _ = s.output.Write(others) // a tee takes everything
	}
	if len(events) == 0 {
		return
	}
	if _, err := s.messages.Write(events); err != nil && !s.toldFull {
		s.toldFull = true
		s.tell(runapi.AgentEvent{Event: eventSpoolFull, Instance: s.instance, Message: fmt.Sprintf("the message log is cut off here: %v", err)})
	}
}

// sort adds the held line to the one or the other.
func (s *splitter) sort(events, others []byte) (newEvents, newOthers []byte) {
	if len(s.line) == 0 {
		return events, others
	}
	record, err := s.record(s.line)
	if err != nil {
		if looksLikeEvent(s.line) && !s.toldRefused {
			s.toldRefused = true
			s.tell(runapi.AgentEvent{Event: eventNoMessage, Instance: s.instance,
				Message: fmt.Sprintf("a line of standard output looks like a message event and is none, and so may be others: %v: %s", err, excerpt(s.line))})
		}
		return events, append(others, s.line...)
	}
	return append(events, record...), others
}

// record makes the line of the message log, with what the app may leave out.
func (s *splitter) record(line []byte) ([]byte, error) {
	var r messagelog.Record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	if r.Instance == "" {
		r.Instance = s.instance
	}
	stamped := r.TimeNanoseconds == 0
	if stamped {
		r.TimeNanoseconds = s.now()
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if stamped && !s.toldStamped {
		s.toldStamped = true
		s.tell(runapi.AgentEvent{Event: eventStamped, Instance: s.instance,
			Message: "message events come without ts: they have the time at which the agent read them"})
	}
	text, err := json.Marshal(r)
	return append(text, '\n'), err
}

// mayBeEvent tells whether the beginning of a line leaves it open that it is an event.
func mayBeEvent(line []byte) bool {
	trimmed := bytes.TrimLeft(line, " \t\r\n")
	return len(line) <= maxEventLine && (len(trimmed) == 0 && len(line) < 16 || len(trimmed) > 0 && trimmed[0] == '{')
}

// looksLikeEvent tells whether somebody most likely meant a line as an event.
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
	const most = 200
	line = bytes.TrimSpace(line)
	if len(line) > most {
		return string(bytes.ToValidUTF8(line[:most], nil)) + " …"
	}
	return string(line)
}
