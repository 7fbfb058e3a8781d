//go:build long

package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

// The verdict's thresholds, which are those of analysis/README.md.
const (
	worstRelease     = 10 * time.Millisecond
	lateReleaseShare = 0.01
	worstStep        = 100 * time.Millisecond
	longestSilence   = 5 * time.Second
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
func (b *airBed) sample(t *testing.T) (log *radioLog, end func()) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "radio.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	log = &radioLog{file: file}
	s := &Sampler{Manager: b.Manager, Archive: log, Host: "host", Directory: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
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

// judged is what a verdict makes of the samples of one node.
type judged struct {
	first, last runapi.RadioSample
	releases    uint64 // over 2 ms late
	late        []runapi.RadioSample
	silence     int64 // nanoseconds
}

// verdict reads the log's lines between two times, and tells what the analysis would call late, and of how many samples.
func (l *radioLog) verdict(t *testing.T, from, to time.Time) (late []string, samples int) {
	t.Helper()
	file, err := os.Open(l.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	nodes, stops := map[string]*judged{}, stillness{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		switch line := lines.Bytes(); {
		case bytes.Contains(line, []byte(`"framesSent"`)):
			var s runapi.RadioSample
			err = json.Unmarshal(line, &s)
			if inside(s.TimeNanoseconds, from, to) {
				note(nodes, &s)
				samples++
			}
		case bytes.Contains(line, []byte(`"worstStepLatenessSeconds"`)):
			var s runapi.RadioSteps
			err = json.Unmarshal(line, &s)
			if inside(s.TimeNanoseconds, from, to) && s.WorstStepLatenessSeconds > worstStep.Seconds() {
				late = append(late, fmt.Sprintf("positions and pathloss came %.3f s late", s.WorstStepLatenessSeconds))
			}
		case bytes.Contains(line, []byte(`"stillSeconds"`)):
			var s runapi.RadioStill
			if err = json.Unmarshal(line, &s); inside(s.TimeNanoseconds, from, to) {
				stops.host = append(stops.host, s)
			}
		case bytes.Contains(line, []byte(`"processorStillSeconds"`)):
			var s runapi.RadioProcessorStill
			if err = json.Unmarshal(line, &s); inside(s.TimeNanoseconds, from, to) {
				stops.processors = append(stops.processors, s)
			}
		}
		if err != nil {
			t.Fatalf("%v in %s", err, lines.Bytes())
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for node, j := range nodes {
		late = append(late, j.lateReleases(t, node, stops, from)...)
		late = append(late, j.otherwiseLate(node, from, to)...)
	}
	stops.print(t, from)
	slices.Sort(late)
	return late, samples
}

// stillness is when the host and its processors stood still.
type stillness struct {
	host       []runapi.RadioStill
	processors []runapi.RadioProcessorStill
}

func (s *stillness) print(t *testing.T, from time.Time) {
	t.Helper()
	for _, stop := range s.host {
		t.Logf("the host stood still for %.1f ms, %.3f s after the load began", 1000*stop.StillSeconds, time.Unix(0, stop.TimeNanoseconds).Sub(from).Seconds())
	}
	longer := map[int]int{}
	for _, stop := range s.processors {
		longer[int(1000*stop.StillSeconds)]++
	}
	t.Logf("stops of processors by whole milliseconds: %v", longer)
}

// mayDelay tells whether a stop that ended at a time may have made a frame of a sample late. As in the analysis (hypervisor.py), the frame was due in the second before
// the sample at most by as much earlier as it was late, and the sample's time is from shortly before its counters.
func mayDelay(sample *runapi.RadioSample, ended int64, seconds float64) bool {
	const after = int64(10 * time.Millisecond)
	began := ended - int64(seconds*1e9)
	due := sample.TimeNanoseconds - int64(sampleInterval) - int64(sample.WorstLatenessSeconds*1e9)
	return ended > due && began < sample.TimeNanoseconds+after
}

// during the second of a sample; the times are seconds after the load began.
func (s *stillness) during(sample *runapi.RadioSample, from time.Time) (said string) {
	for _, stop := range s.processors {
		if mayDelay(sample, stop.TimeNanoseconds, stop.StillSeconds) {
			until := time.Unix(0, stop.TimeNanoseconds).Sub(from).Seconds()
			said += fmt.Sprintf(", as processor %d stood still from %.4f to %.4f", stop.Processor, until-stop.StillSeconds, until)
		}
	}
	return said
}

func inside(at int64, from, to time.Time) bool { return at > from.UnixNano() && at <= to.UnixNano() }

func note(nodes map[string]*judged, s *runapi.RadioSample) {
	j := nodes[s.Node]
	if j == nil {
		j = &judged{first: *s, last: *s}
		nodes[s.Node] = j
	}
	j.silence = max(j.silence, s.TimeNanoseconds-j.last.TimeNanoseconds)
	j.last = *s
	j.releases += s.LateReleases
	if s.WorstLatenessSeconds > worstRelease.Seconds() {
		j.late = append(j.late, *s)
	}
}

// lateReleases but those that would not have been too late without a stop of the whole host in that second, which are logged: while a hypervisor
// stops the machine nothing in it can be punctual.
func (j *judged) lateReleases(t *testing.T, node string, stops stillness, from time.Time) (late []string) {
	t.Helper()
	for i := range j.late {
		s := &j.late[i]
		what := fmt.Sprintf("%s: a frame was released %.1f ms late, %v after the load began", node, 1000*s.WorstLatenessSeconds,
			time.Unix(0, s.TimeNanoseconds).Sub(from).Round(time.Second))
		explained := slices.ContainsFunc(stops.host, func(stop runapi.RadioStill) bool {
			return mayDelay(s, stop.TimeNanoseconds, stop.StillSeconds) && s.WorstLatenessSeconds-stop.StillSeconds <= worstRelease.Seconds()
		})
		if explained {
			t.Logf("as the host stood still: %s", what)
		} else {
			late = append(late, what+stops.during(s, from))
		}
	}
	return late
}

func (j *judged) otherwiseLate(node string, from, to time.Time) (late []string) {
	say := func(format string, a ...any) { late = append(late, node+": "+fmt.Sprintf(format, a...)) }
	frames := float64(j.last.FramesSent - j.first.FramesSent)
	mean := lateReleaseShare * frames
	if float64(j.releases) > mean+3*math.Sqrt(mean*(1-lateReleaseShare)) {
		say("%d of %.0f frames released over 2 ms late", j.releases, frames)
	}
	for _, reason := range []string{ringReason, routerReason} {
		if frames := j.last.Drops[reason] - j.first.Drops[reason]; frames > 0 {
			say("%d frames dropped: %s", frames, reason)
		}
	}
	silence := max(j.silence, j.first.TimeNanoseconds-from.UnixNano(), to.UnixNano()-j.last.TimeNanoseconds)
	if silence > longestSilence.Nanoseconds() {
		say("no sample for %v", time.Duration(silence))
	}
	return late
}
