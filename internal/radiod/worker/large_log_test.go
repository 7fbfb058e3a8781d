//go:build long

package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

// radioLog is an archive that keeps a host's radio log in a file, as the server does.
type radioLog struct {
	mu   sync.Mutex
	file *os.File
	size int64
}

func (l *radioLog) AppendRadio(_ context.Context, _, _ string, _ int64, content io.Reader) (runapi.LogPosition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := io.Copy(l.file, content)
	l.size += n
	return runapi.LogPosition{Size: l.size}, err
}

// sample writes the nodes' radio log as radiod does, until end is called.
func (b *physicalBed) sample(t *testing.T) (log *radioLog, end func()) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "radio.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	log = &radioLog{file: file}
	s := newSampler(t, b.Manager)
	s.Archive = log
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return log, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// late is how long the host's loop was late between two times, by the log's lines with lateSeconds.
func (l *radioLog) late(t *testing.T, from, to time.Time) (late time.Duration) {
	t.Helper()
	file, err := os.Open(l.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s runapi.RadioLateTime
		if !bytes.Contains(lines.Bytes(), []byte(`"lateSeconds"`)) {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%v in %s", err, lines.Bytes())
		}
		if s.TimeNanoseconds > from.UnixNano() && s.TimeNanoseconds <= to.UnixNano() {
			late += time.Duration(s.TimeNanoseconds - s.FromNanoseconds)
		}
	}
	return late
}
