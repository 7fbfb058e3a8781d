// Package messagelog is the log that every application of an experiment keeps of its messages:
// JSON Lines, one record per event. It is the one thing that an app of any kind shares with the
// analysis, so its form is a stable contract.
package messagelog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// Status is a measuring point in the life of a message.
type Status string

// The four measuring points: the application decided to send; the message was handed to the socket
// or client library; it came out of the socket or client library; the application is done with it.
const (
	Triggered Status = "triggered"
	Sent      Status = "sent"
	Received  Status = "received"
	Processed Status = "processed"
)

// EnvPath is the environment variable that tells an app where to append its message log.
const EnvPath = "VIGNETTE_MESSAGE_LOG"

// Record is one event of one message at one instance of an app.
type Record struct {
	// TimeNanoseconds since the Unix epoch, by the host's real-time clock.
	TimeNanoseconds int64 `json:"ts"`
	// Instance that saw the event: node/app, or node/app/i for the i-th of several instances (from 1).
	Instance string `json:"instance"`
	// Status is the measuring point.
	Status Status `json:"status"`
	// ID maps a received message to the sent one; unique within the experiment.
	ID string `json:"id"`
	// Topic of the message, if the protocol has topics.
	Topic string `json:"topic,omitempty"`
	// Bytes of application content.
	Bytes int `json:"bytes,omitempty"`
}

// Validate says what is wrong with a record, if anything.
func (r Record) Validate() error {
	switch {
	case r.TimeNanoseconds <= 0:
		return fmt.Errorf("ts is %d: want nanoseconds since the Unix epoch", r.TimeNanoseconds)
	case r.Instance == "":
		return fmt.Errorf("instance is empty: want node/app or node/app/number")
	case r.ID == "":
		return fmt.Errorf("id is empty: want the message's identifier")
	}
	switch r.Status {
	case Triggered, Sent, Received, Processed:
		return nil
	}
	return fmt.Errorf("status is %q: want triggered, sent, received or processed", r.Status)
}

// Writer appends records; safe for use by several goroutines. What is written together is one write
// of whole lines, so that a killed process leaves at most one torn line.
type Writer struct {
	mu  sync.Mutex
	out *Backlog
	buf []byte
}

// maxWaiting is what a Writer keeps of records while the disk is full: some 10 000 of them.
const maxWaiting = 1 << 20

// NewWriter writes records to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: NewBacklog(out, maxWaiting)} }

// Open appends to the file that the environment variable VIGNETTE_MESSAGE_LOG names, or to
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
	return NewWriter(f), nil
}

// Write appends records. While the disk is full they wait in memory; the error is that of records that are lost.
func (w *Writer) Write(records ...Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = w.buf[:0]
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		w.buf = append(append(w.buf, line...), '\n')
	}
	_, err := w.out.Write(w.buf)
	return err
}

// Flush writes what waits, if it can now.
func (w *Writer) Flush() error { return w.out.Flush() }

// maxLine bounds a line: longer ones are not records.
const maxLine = 1 << 20

// Read calls fn for every whole, valid record and returns how many lines were not: torn, not JSON
// or incomplete. It reads on after a bad line.
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
