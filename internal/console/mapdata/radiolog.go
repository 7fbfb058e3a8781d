package mapdata

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

const (
	// maxKeptLogs of hosts' radio logs, of which only the last part that was asked for is kept.
	maxKeptLogs = 64
	// maxKeptLogBytes of memory for all kept logs, and linkBytes about that of one link.
	maxKeptLogBytes, linkBytes = 128 << 20, 256
	// firstReadBytes of a part, which is doubled until it reaches back far enough, at most maxReadBytes.
	firstReadBytes, maxReadBytes = 512 << 10, 8 << 20
	// maxReadOnBytes after a part; beyond them another part is read.
	maxReadOnBytes = 1 << 20
	// searchBytes is how close the search for a time in a log comes, and lineBytes the longest line that it expects.
	searchBytes, lineBytes = 256 << 10, 64 << 10
)

// shareWindow is how far back a delivered share reaches, as in the report of a run.
const shareWindow = 30 * time.Second

// reader reads bytes of a log.
type reader func(ctx context.Context, offset, bytes int64) ([]byte, error)

// reader of a file of a run.
func (s Source) reader(uid, path string) reader {
	return func(ctx context.Context, offset, bytes int64) ([]byte, error) {
		return s.Archive.FileRange(ctx, uid, path, offset, bytes)
	}
}

// records of a radio log.
type records struct {
	links []runapi.RadioLinks
	// samples of networks without radios, whose links are known by nothing else.
	samples []runapi.RadioSample
}

// within returns the records of a time from one moment to another.
func (r *records) within(from, to int64) (found records) {
	for i := range r.links {
		if ts := r.links[i].TimeNanoseconds; ts >= from && ts <= to {
			found.links = append(found.links, r.links[i])
		}
	}
	for i := range r.samples {
		if ts := r.samples[i].TimeNanoseconds; ts >= from && ts <= to {
			found.samples = append(found.samples, r.samples[i])
		}
	}
	return found
}

func (r *records) count() int { return len(r.links) + len(r.samples) }

// countBefore is the number of the records from before a time.
func (r *records) countBefore(at int64) (count int) {
	for i := range r.links {
		if r.links[i].TimeNanoseconds < at {
			count++
		}
	}
	for i := range r.samples {
		if r.samples[i].TimeNanoseconds < at {
			count++
		}
	}
	return count
}

// radioLog has the records of a part of a host's radio log.
type radioLog struct {
	// unheard are the networks without radios.
	unheard map[string]bool

	mu sync.Mutex
	// from and to are the part's offsets: it has whole lines.
	from, to int64
	// first is the time from which the part has all records.
	first int64
	records
	// bytes of memory, about.
	bytes atomic.Int64
}

// newest is the time of a log's last line.
const newest = math.MaxInt64

// until returns the records of the shareWindow before a time, and that time. The log has size bytes.
func (l *radioLog) until(ctx context.Context, read reader, size, at int64) (found records, last int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := size
	if at == newest {
		at, err = lastTime(ctx, read, size)
	} else {
		end, err = offsetOf(ctx, read, size, at)
	}
	if err != nil {
		return records{}, 0, err
	}
	from := at - int64(shareWindow)
	if !l.reaches(from, end) {
		err = l.readBack(ctx, read, end, from)
	} else if end > l.to {
		err = l.readOn(ctx, read, end)
	}
	if err != nil {
		l.from, l.to, l.records = 0, 0, records{}
		return records{}, 0, err
	}
	found = l.within(from, at)
	l.forget(from)
	l.bytes.Store(l.size())
	return found, at, nil
}

// size in memory, about.
func (l *radioLog) size() (all int64) {
	for i := range l.links {
		all += linkBytes * int64(1+len(l.links[i].From))
	}
	return all + linkBytes*int64(len(l.samples))
}

// reaches reports whether the part begins early enough, and ends near the wanted end or after it.
func (l *radioLog) reaches(from, end int64) bool {
	return l.to > l.from && l.first <= from && end-l.to <= maxReadOnBytes
}

// readBack reads a part that ends at an offset and reaches back to a time, as far as there is room.
func (l *radioLog) readBack(ctx context.Context, read reader, end, from int64) error {
	for size := int64(firstReadBytes); ; size *= 2 {
		start := max(end-size, 0)
		text, err := read(ctx, start, end-start)
		if err != nil {
			return err
		}
		if start > 0 {
			cut := bytes.IndexByte(text, '\n') + 1
			text, start = text[cut:], start+int64(cut)
		}
		l.from, l.to, l.first, l.records = start, start, math.MaxInt64, records{}
		l.add(text)
		if start == 0 {
			l.first = math.MinInt64 // there is nothing before
		}
		if start == 0 || l.first <= from || size >= maxReadBytes {
			return nil
		}
	}
}

// readOn reads what follows the part.
func (l *radioLog) readOn(ctx context.Context, read reader, end int64) error {
	text, err := read(ctx, l.to, end-l.to)
	if err == nil {
		l.add(text)
	}
	return err
}

// add the whole lines of a text to the part.
func (l *radioLog) add(text []byte) {
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	l.to += int64(len(text))
	for line := range bytes.Lines(text) {
		if at, ok := timeOf(line); ok {
			l.first = min(l.first, at)
		}
		switch {
		case bytes.Contains(line, []byte(`"receiver":`)):
			var links runapi.RadioLinks
			if json.Unmarshal(line, &links) == nil && links.Receiver != "" {
				l.links = append(l.links, links)
			}
		case len(l.unheard) > 0 && bytes.Contains(line, []byte(`"framesSent":`)):
			var sample runapi.RadioSample
			if json.Unmarshal(line, &sample) == nil && l.unheard[sample.Network] {
				l.samples = append(l.samples, sample)
			}
		}
	}
}

// forget records that are older than a time, once there are many.
func (l *radioLog) forget(before int64) {
	if l.countBefore(before) > l.count()/2 {
		l.records, l.first = l.within(before, math.MaxInt64), before
	}
}

// offsetOf the first line after a time, within searchBytes.
func offsetOf(ctx context.Context, read reader, size, at int64) (int64, error) {
	low, high := int64(0), size
	for high-low > searchBytes {
		middle := low + (high-low)/2
		ts, known, err := timeAt(ctx, read, middle)
		if err != nil {
			return 0, err
		}
		if known && ts <= at {
			low = middle
		} else {
			high = middle
		}
	}
	return high, nil
}

// lastTime is that of the last whole line; 0 without lines.
func lastTime(ctx context.Context, read reader, size int64) (int64, error) {
	text, err := read(ctx, max(size-lineBytes, 0), min(size, lineBytes))
	if err != nil {
		return 0, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for len(text) > 0 {
		begin := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		if ts, known := timeOf(text[begin:]); known {
			return ts, nil
		}
		text = text[:begin]
	}
	return 0, nil
}

// timeAt is the time of the first whole line after an offset.
func timeAt(ctx context.Context, read reader, offset int64) (ts int64, known bool, err error) {
	text, err := read(ctx, offset, lineBytes)
	if err != nil {
		return 0, false, err
	}
	for line := range bytes.Lines(text[bytes.IndexByte(text, '\n')+1:]) {
		if ts, known = timeOf(line); known {
			return ts, true, nil
		}
	}
	return 0, false, nil
}

// timeOf a line, which begins with it.
func timeOf(line []byte) (ts int64, ok bool) {
	digits, found := bytes.CutPrefix(line, []byte(`{"ts":`))
	if !found {
		return 0, false
	}
	end := bytes.IndexByte(digits, ',')
	if end < 0 {
		return 0, false
	}
	ts, err := strconv.ParseInt(string(digits[:end]), 10, 64)
	if err != nil {
		return 0, false
	}
	return ts, true
}
