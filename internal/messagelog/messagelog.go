// Package messagelog is the log of messages that every application of an experiment writes:
// JSON Lines, one record per event. It is the only interface between an app of any kind and the
// analysis, so its format is a stable contract.
package messagelog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"vignette.dev/vignette/internal/quietio"
)

// Status is a measuring point in the life of a message.
type Status string

// The four measuring points: the application decided to send; the message was passed to the socket
// or client library; it left the socket or client library; the application has processed it.
const (
	Triggered Status = "triggered"
	Sent      Status = "sent"
	Received  Status = "received"
	Processed Status = "processed"
)

// Events of a request at the instance that sent it, with the request's id. Its response came, with its size. The protocol
// sent the request again. It failed for the reason in the text: a word such as timeout, then a colon and details if there are any.
const (
	Receipt       Status = "receipt"
	Retransmitted Status = "retransmitted"
	Failed        Status = "failed"
)

// Events of the instance itself. Its connection to the broker in the id (host:port) began, or ended
// for the reason in the text. The broker granted the subscription to the filter in the id, or refused it for the reason in the text.
// The time between two messages changes to the duration in the id, such as 4s.
const (
	Connected    Status = "connected"
	Disconnected Status = "disconnected"
	Subscribed   Status = "subscribed"
	Refused      Status = "refused"
	Period       Status = "period"
)

// EnvPath is the environment variable that tells an app where to append its message log.
const EnvPath = "VIGNETTE_MESSAGE_LOG"

// Record is one event of one message at one instance of an app.
type Record struct {
	// TimeNanoseconds since the Unix epoch, by the host's real-time clock.
	TimeNanoseconds int64 `json:"ts"`
	// Instance of the event: node/app, or node/app/i for the i-th of several instances (from 1).
	Instance string `json:"instance"`
	// Status is the measuring point.
	Status Status `json:"status"`
	// ID identifies a message in the experiment, as sent and as received. For events of the instance see the status.
	ID string `json:"id"`
	// Topic of the message, if the protocol has topics.
	Topic string `json:"topic,omitempty"`
	// Bytes of application content.
	Bytes int `json:"bytes,omitempty"`
	// Text is the reason, for people.
	Text string `json:"text,omitempty"`
	// Position that the message reports as its sender's, at triggered or sent: latitude and longitude in degrees, altitude in
	// metres (WGS 84).
	Position *[3]float64 `json:"position,omitempty"`
}

// OfMessage reports whether an event concerns a message, not the instance.
func (s Status) OfMessage() bool {
	switch s {
	case Triggered, Sent, Received, Processed, Receipt, Retransmitted, Failed:
		return true
	}
	return false
}

// ofInstance reports whether an event is the instance's own.
func (s Status) ofInstance() bool {
	switch s {
	case Connected, Disconnected, Subscribed, Refused, Period:
		return true
	}
	return false
}

// append adds the record as JSON, like json.Marshal at a fraction of its cost.
func (r Record) append(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"ts":`...), r.TimeNanoseconds, 10)
	dst = appendString(append(dst, `,"instance":`...), r.Instance)
	dst = appendString(append(dst, `,"status":`...), string(r.Status))
	dst = appendString(append(dst, `,"id":`...), r.ID)
	if r.Topic != "" {
		dst = appendString(append(dst, `,"topic":`...), r.Topic)
	}
	if r.Bytes != 0 {
		dst = strconv.AppendInt(append(dst, `,"bytes":`...), int64(r.Bytes), 10)
	}
	if r.Text != "" {
		dst = appendString(append(dst, `,"text":`...), r.Text)
	}
	if p := r.Position; p != nil {
		dst = appendNumber(append(dst, `,"position":[`...), p[0])
		dst = appendNumber(append(dst, ','), p[1])
		dst = append(appendNumber(append(dst, ','), p[2]), ']')
	}
	return append(dst, '}')
}

// appendNumber writes a finite number without an exponent.
func appendNumber(dst []byte, v float64) []byte { return strconv.AppendFloat(dst, v, 'f', -1, 64) }

func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // a string always encodes
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// earliest time of a record, in 2001. One in seconds, milliseconds or microseconds is less. The analysis has it as LEAST_TS.
const earliest = 1e18

// Validate returns an error for an invalid record.
func (r Record) Validate() error {
	switch {
	case r.TimeNanoseconds < earliest:
		return fmt.Errorf("ts is %d: want nanoseconds since the Unix epoch", r.TimeNanoseconds)
	case r.Instance == "":
		return fmt.Errorf("instance is empty: want node/app or node/app/number")
	case r.ID == "":
		return fmt.Errorf("id is empty: want the message's identifier")
	}
	if r.Status.OfMessage() || r.Status.ofInstance() {
		return nil
	}
	return fmt.Errorf("status is %q: want triggered, sent, received or processed; of a request also receipt, retransmitted or failed; "+
		"of the app itself connected, disconnected, subscribed, refused or period", r.Status)
}

// Writer appends records. It is safe for use by several goroutines. Each call is one write
// of complete lines, so that a killed process leaves at most one torn line.
//
// Records in quick succession are gathered for up to 5 ms, as a write for each would cost more than all else of a message. A killed process
// loses these. A record later than 5 ms after the last write is written at once.
type Writer struct {
	out *Backlog

	mu   sync.Mutex
	buf  []byte
	last time.Time
	// later writes gathered records; armed while it is scheduled.
	later *time.Timer
	armed bool
	// lost is the error of a delayed write.
	lost error
}

const (
	// maxWaiting is the most bytes that a Writer keeps while the disk is full: about 10 000 records.
	maxWaiting = 1 << 20
	// gather is how long records wait for others; maxGathered bounds their bytes.
	gather      = 5 * time.Millisecond
	maxGathered = 32 << 10
)

// NewWriter returns a Writer of records to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: NewBacklog(out, maxWaiting)} }

// Open returns a Writer that appends to the file in the environment variable VIGNETTE_MESSAGE_LOG, or to
// standard output without it.
func Open() (*Writer, error) {
	path := os.Getenv(EnvPath)
	if path == "" {
		return NewWriter(os.Stdout), nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("message log: %w", err)
	}
	return NewWriter(quietio.NewFile(f)), nil
}

// Write appends records. While the disk is full they wait in memory. The error reports lost records, these or earlier ones.
func (w *Writer) Write(records ...Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range records {
		w.buf = append(r.append(w.buf), '\n')
	}
	if now := time.Now(); now.Sub(w.last) >= gather || len(w.buf) >= maxGathered {
		w.write(now)
	} else if !w.armed {
		w.arm()
	}
	err := w.lost
	w.lost = nil
	return err
}

func (w *Writer) arm() {
	w.armed = true
	if w.later != nil {
		w.later.Reset(gather)
		return
	}
	w.later = time.AfterFunc(gather, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.armed = false
		w.write(time.Now())
	})
}

func (w *Writer) write(now time.Time) {
	if len(w.buf) == 0 {
		return
	}
	if _, err := w.out.Write(w.buf); err != nil {
		w.lost = err
	}
	w.buf, w.last = w.buf[:0], now
}

// Flush tries to write waiting records.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(time.Now())
	err := errors.Join(w.lost, w.out.Flush())
	w.lost = nil
	return err
}

// maxLine is the longest record in bytes.
const maxLine = 1 << 20

// Read calls fn for every complete, valid record and returns the number of other lines: torn, not JSON
// or incomplete. It continues after a bad line.
func Read(in io.Reader, fn func(Record)) (bad int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var r Record
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Validate() != nil {
			bad++
			continue
		}
		fn(r)
	}
	return bad, lines.Err()
}
