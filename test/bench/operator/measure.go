package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"vignette.dev/vignette/internal/metricreaders"
)

// calls counts calls by kind, such as "create pods".
type calls map[string]int

func (c calls) total() (sum int) {
	for _, n := range c {
		sum += n
	}
	return sum
}

func (c calls) writes() (sum int) {
	for kind, n := range c {
		if verb, _, _ := strings.Cut(kind, " "); verb != "get" && verb != "list" && verb != "watch" {
			sum += n
		}
	}
	return sum
}

func (c calls) since(before calls) calls {
	difference := calls{}
	for kind, n := range c {
		if n > before[kind] {
			difference[kind] = n - before[kind]
		}
	}
	return difference
}

func (c calls) copy() calls { return c.since(nil) }

// sample has all counters at a time.
type sample struct {
	at         time.Time
	cpu        time.Duration
	rss        int64
	calls      calls
	archive    calls
	reconciles int
	programs   map[string]time.Duration
}

// usage returns the differences of two samples.
type usage struct {
	wall, cpu  time.Duration
	rss        int64
	calls      calls
	archive    calls
	reconciles int
	programs   map[string]time.Duration
}

func (s sample) since(before sample) usage {
	u := usage{wall: s.at.Sub(before.at), cpu: s.cpu - before.cpu, rss: s.rss, calls: s.calls.since(before.calls), archive: s.archive.since(before.archive),
		reconciles: s.reconciles - before.reconciles, programs: map[string]time.Duration{}}
	for name, cpu := range s.programs {
		u.programs[name] = cpu - before.programs[name]
	}
	return u
}

func (b *bed) sample() (s sample, err error) {
	s = sample{at: time.Now(), rss: b.operator.memory().now, archive: b.archive.counted(), programs: programs()}
	s.cpu = s.programs["operator"]
	if s.calls, err = b.audit.read(); err != nil {
		return s, err
	}
	s.reconciles, err = b.operator.reconciles()
	return s, err
}

// auditLog is the API server's, with the operator's requests only.
type auditLog struct {
	path   string
	offset int64
	calls  calls
}

// read reads its new lines. It does not count watches, which end and begin again every few minutes.
func (l *auditLog) read() (calls, error) {
	file, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return calls{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	reader := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // the rest of the line is not written yet
			return l.calls.copy(), nil
		}
		if err != nil {
			return nil, err
		}
		l.offset += int64(len(line))
		if err := l.take(line); err != nil {
			return nil, err
		}
	}
}

func (l *auditLog) take(line []byte) error {
	var event struct {
		Verb      string `json:"verb"`
		ObjectRef struct {
			Resource    string `json:"resource"`
			Subresource string `json:"subresource"`
		} `json:"objectRef"`
		ResponseStatus struct {
			Code int `json:"code"`
		} `json:"responseStatus"`
		RequestURI string `json:"requestURI"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	if event.Verb == "watch" {
		return nil
	}
	kind := event.Verb + " " + event.ObjectRef.Resource
	if event.ObjectRef.Resource == "" {
		kind = event.Verb + " " + event.RequestURI
	}
	if event.ObjectRef.Subresource != "" {
		kind += "/" + event.ObjectRef.Subresource
	}
	if event.ResponseStatus.Code == http.StatusConflict || event.ResponseStatus.Code == http.StatusNotFound {
		kind += " " + strconv.Itoa(event.ResponseStatus.Code)
	}
	l.calls[kind]++
	return nil
}

// programs returns this program and those it has started, by name, with their processor time.
func programs() map[string]time.Duration {
	found := map[string]time.Duration{}
	all, _ := procfs.AllProcs()
	self := os.Getpid()
	for _, process := range all {
		stat, err := process.Stat()
		if err != nil {
			continue // it has ended
		}
		cpu := time.Duration(stat.CPUTime() * float64(time.Second))
		switch self {
		case stat.PID:
			found["played"] = cpu
		case stat.PPID:
			found[stat.Comm] += cpu
		}
	}
	return found
}

// memory returns a process's memory in bytes.
type memory struct{ now, peak int64 }

func (o *operator) memory() (m memory) {
	process, err := procfs.NewProc(o.process.Pid)
	if err != nil {
		return m
	}
	status, err := process.NewStatus()
	if err != nil {
		return m
	}
	return memory{now: int64(status.VmRSS), peak: int64(status.VmHWM)}
}

// reconciles returns the number of reconciliations of experiments, by the operator's metrics.
func (o *operator) reconciles() (sum int, err error) {
	request, err := http.NewRequest(http.MethodGet, "http://"+o.metrics+metricreaders.Path, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+o.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("metrics: %s", response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), `controller_runtime_reconcile_total{controller="experiment"`) {
			value, err := strconv.ParseFloat(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], 64)
			if err != nil {
				return 0, err
			}
			sum += int(value)
		}
	}
	return sum, lines.Err()
}

// profileFor is the longest part of a phase in a processor profile.
const profileFor = 30 * time.Second

// profile starts a profile of the operator, if wanted, and returns a function that ends it.
func (b *bed) profile(ctx context.Context, name string) (end func()) {
	if b.profiles == "" {
		return func() {}
	}
	done := make(chan error, 1)
	go func() {
		done <- save(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", b.operator.pprof, int(profileFor.Seconds())), filepath.Join(b.profiles, name+".cpu"))
	}()
	return func() {
		heap := save(ctx, "http://"+b.operator.pprof+"/debug/pprof/heap", filepath.Join(b.profiles, name+".heap"))
		if err := errors.Join(<-done, heap); err != nil {
			fmt.Fprintf(os.Stderr, "profile of %s: %v\n", name, err)
		}
	}
}

func save(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}
