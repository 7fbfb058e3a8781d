package mapdata

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"time"

	"vignette.dev/vignette/internal/runapi"
)

const (
	// maxKeptLogs of hosts' radio logs, of which only the last part that was asked for is kept.
	maxKeptLogs = 64
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

// radioLog has the links of a part of a host's radio log.
type radioLog struct {
	mu sync.Mutex
	// from and to are the part's offsets: it has whole lines.
	from, to int64
	// first is the time of the part's first line.
	first int64
	links []runapi.RadioLinks
}

// until returns the links of the shareWindow before a time, or before the log's end if that is earlier. The log has size bytes.
func (l *radioLog) until(ctx context.Context, read reader, size, at int64) ([]runapi.RadioLinks, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end, err := offsetOf(ctx, read, size, at)
	if err != nil {
		return nil, err
	}
	from := at - int64(shareWindow)
	if !l.reaches(from, end) {
		err = l.readBack(ctx, read, end, from)
	} else if end > l.to {
		err = l.readOn(ctx, read, end)
	}
	if err != nil {
		l.from, l.to, l.links = 0, 0, nil
		return nil, err
	}
	found := []runapi.RadioLinks{}
	for i := range l.links {
		if ts := l.links[i].TimeNanoseconds; ts >= from && ts <= at {
			found = append(found, l.links[i])
		}
	}
	l.forget(from)
	return found, nil
}

// reaches reports whether the part begins early enough, and ends near the wanted end or after it.
func (l *radioLog) reaches(from, end int64) bool {
	return l.to > l.from && (l.from == 0 || l.first <= from) && end-l.to <= maxReadOnBytes
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
		l.from, l.to, l.first, l.links = start, start, math.MaxInt64, nil
		l.add(text)
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
		if !bytes.Contains(line, []byte(`"receiver":`)) {
			continue
		}
		var links runapi.RadioLinks
		if json.Unmarshal(line, &links) == nil && links.Receiver != "" {
			l.links = append(l.links, links)
		}
	}
}

// forget links that are older than a time, once there are many.
func (l *radioLog) forget(before int64) {
	kept := 0
	for kept < len(l.links) && l.links[kept].TimeNanoseconds < before {
		kept++
	}
	if kept > len(l.links)/2 {
		l.links = append([]runapi.RadioLinks(nil), l.links[kept:]...)
		l.first = before
	}
}

// offsetOf the first line after a time, within searchBytes.
func offsetOf(ctx context.Context, read reader, size, at int64) (int64, error) {
	low, high := int64(0), size
	// A live map asks for the end: one look at it is enough.
	if tail := max(size-searchBytes, 0); tail > 0 {
		if ts, known, err := timeAt(ctx, read, tail); err != nil {
			return 0, err
		} else if known && ts <= at {
			return size, nil
		}
	}
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
	return ts, err == nil
}
