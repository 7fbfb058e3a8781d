package samples

import (
	"bytes"
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
	"sync"
	"sync/atomic"
	"time"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

const (
	// spoolLimit of bytes that wait for the server, per run: several hours of a large network.
	spoolLimit = 64 << 20
	// spoolsLimit of all runs' spools on the host, which are in memory. A run may use as much as it leaves free.
	spoolsLimit = 256 << 20
	// compactAbove bytes that the server has, the spool's file is rewritten without them.
	compactAbove = 4 << 20
	// chunk is the most bytes of one request; with a digest the server takes no more.
	chunk = runapi.MaxCheckedBytes
	// chunksPerRound bounds the rate, with one round a second. A backlog must not take the host's processors
	// and network from the radios.
	chunksPerRound = 4
)

// Archive takes radio samples; a *client.Client is one.
type Archive interface {
	AppendRadio(ctx context.Context, host, uid string, offset int64, content io.Reader) (runapi.LogPosition, error)
}

// spool is the part of one run's radio log that the server may not have yet. The file's name has the offset
// in the log at which it starts: UID.OFFSET.jsonl.
type spool struct {
	directory, uid string
	// all is the size of all runs' spools.
	all *atomic.Int64

	mu      sync.Mutex
	file    *os.File
	base    int64 // offset of the file's first byte in the log
	end     int64 // offset after the file's last byte
	shipped int64 // offset up to which the server has the log
	refused int64 // bytes that found the spool full
	// refusedFrom is the time of the first of them, Unix nanoseconds.
	refusedFrom int64
	// noQuota is set while the server has no room for the run: samples are gaps instead of waiting.
	noQuota bool
	sealed  bool
	// resumed is set once lines are taken again after a gap.
	resumed bool
}

func spoolName(uid string, base int64) string {
	return uid + "." + strconv.FormatInt(base, 10) + ".jsonl"
}

func parseSpoolName(name string) (uid string, base int64, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 3 || parts[2] != "jsonl" {
		return "", 0, false
	}
	base, err := strconv.ParseInt(parts[1], 10, 64)
	return parts[0], base, err == nil && base >= 0
}

// openSpool opens or creates a run's spool, and adds its size to all.
func openSpool(directory, uid string, all *atomic.Int64) (s *spool, err error) {
	s = &spool{directory: directory, uid: uid, all: all}
	if s.base, err = findSpool(directory, uid); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	s.file, err = os.OpenFile(filepath.Join(directory, spoolName(uid, s.base)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	size, err := cutTornLine(s.file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("spool: %w", err), s.file.Close())
	}
	s.shipped, s.end = s.base, s.base+size
	all.Add(size)
	return s, nil
}

// findSpool returns the base of a run's spool, 0 if there is none. There are two if a worker died while compacting. The
// later one is whole if it reaches the other's end. The other one is removed.
func findSpool(directory, uid string) (base int64, err error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return 0, err
	}
	type spoolFile struct{ base, end int64 }
	var best spoolFile
	var all []spoolFile
	for _, entry := range entries {
		owner, base, ok := parseSpoolName(entry.Name())
		if !ok || owner != uid {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return 0, err
		}
		all = append(all, spoolFile{base, base + info.Size()})
	}
	for i, f := range all {
		if i == 0 || f.end > best.end || f.end == best.end && f.base > best.base {
			best = f
		}
	}
	for _, f := range all {
		if f != best {
			_ = os.Remove(filepath.Join(directory, spoolName(uid, f.base)))
		}
	}
	return best.base, nil
}

// cutTornLine cuts off a line that a killed worker was writing, and returns the size of the rest.
func cutTornLine(file *os.File) (size int64, err error) {
	written, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	block, whole := make([]byte, 64<<10), written
	for whole > 0 {
		from := max(whole-int64(len(block)), 0)
		n, err := file.ReadAt(block[:whole-from], from)
		if err != nil {
			return 0, err
		}
		if end := bytes.LastIndexByte(block[:n], '\n'); end >= 0 {
			whole = from + int64(end) + 1
			break
		}
		whole = from
	}
	if whole == written {
		return whole, nil
	}
	return whole, file.Truncate(whole)
}

// spoolGap is a line in place of samples that found no room.
type spoolGap struct {
	TimeNanoseconds int64  `json:"ts"`
	Gap             string `json:"gap"`
	// FromNanoseconds is the time of the first of them; they end at the line's time.
	FromNanoseconds int64 `json:"fromTs"`
	Bytes           int64 `json:"bytes"`
}

// append adds complete lines. If the spool or its volume is full they are refused. The next lines that fit
// follow a line that reports the gap.
func (s *spool) append(timeNanoseconds int64, lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return nil
	}
	own := int64(len(lines))
	if waits := s.end - s.shipped + own; s.noQuota || waits > spoolLimit || waits > spoolsLimit-s.all.Load()-own {
		s.refuse(timeNanoseconds, own)
		return nil
	}
	if s.refused > 0 {
		gap, err := json.Marshal(spoolGap{timeNanoseconds, "spoolFull", s.refusedFrom, s.refused})
		if err != nil {
			return err
		}
		lines = append(append(gap, '\n'), lines...)
	}
	n, err := s.file.WriteAt(lines, s.end-s.base)
	if err != nil {
		s.refuse(timeNanoseconds, own)
		err = errors.Join(err, s.file.Truncate(s.end-s.base)) // without the beginning that was written
		return fmt.Errorf("spool of run %s: %d of %d bytes written: %w", s.uid, n, len(lines), err)
	}
	s.resumed = s.resumed || s.refused > 0
	s.refused = 0
	s.end += int64(n)
	s.all.Add(int64(n))
	return nil
}

// hasResumed reports, once for each gap, whether lines are taken again after it.
func (s *spool) hasResumed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	resumed := s.resumed
	s.resumed = false
	return resumed
}

// refuse counts lines that found no room; the lock is held.
func (s *spool) refuse(timeNanoseconds, bytes int64) {
	if s.refused == 0 {
		s.refusedFrom = timeNanoseconds
	}
	s.refused += bytes
}

// ship sends what the server lacks, up to the limit of a round; done reports whether nothing is left to send.
func (s *spool) ship(ctx context.Context, archive Archive, host string) (done bool, err error) {
	for range chunksPerRound {
		content, offset, err := s.next()
		if err != nil || content == nil {
			return err == nil, err
		}
		position, err := archive.AppendRadio(ctx, host, s.uid, offset, bytes.NewReader(content))
		if err == nil {
			s.setArchivedSize(position.Size)
			continue
		}
		var answer *client.Error
		switch {
		case !errors.As(err, &answer):
			return false, err
		case answer.Status == http.StatusGone:
			s.seal()
			return true, nil
		case answer.Quota:
			return false, errors.Join(err, s.dropWaiting())
		case answer.Size == nil:
			return false, err
		default:
			s.setArchivedSize(*answer.Size)
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	content, _, err := s.next()
	return err == nil && content == nil, err
}

func (s *spool) next() (content []byte, offset int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed || s.shipped == s.end {
		return nil, 0, nil
	}
	content = make([]byte, min(chunk, s.end-s.shipped))
	if _, err := s.file.ReadAt(content, s.shipped-s.base); err != nil {
		return nil, 0, fmt.Errorf("spool of run %s: %w", s.uid, err)
	}
	return content, s.shipped, nil
}

// dropWaiting makes a gap of what waits for a server without room for the run. The first line stays: the server
// may have its beginning, and it is offered until there is room again.
func (s *spool) dropWaiting() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := make([]byte, s.end-s.shipped)
	if _, err := s.file.ReadAt(waiting, s.shipped-s.base); err != nil {
		return fmt.Errorf("spool of run %s: %w", s.uid, err)
	}
	s.noQuota = true
	dropped := waiting[bytes.IndexByte(waiting, '\n')+1:]
	if len(dropped) == 0 {
		return nil
	}
	var first struct {
		TimeNanoseconds int64 `json:"ts"`
	}
	if line, _, _ := bytes.Cut(dropped, []byte{'\n'}); json.Unmarshal(line, &first) != nil {
		first.TimeNanoseconds = time.Now().UnixNano()
	}
	n := int64(len(dropped))
	if err := s.file.Truncate(s.end - n - s.base); err != nil {
		return fmt.Errorf("spool of run %s: %w", s.uid, err)
	}
	s.end -= n
	s.all.Add(-n)
	s.refuse(first.TimeNanoseconds, n)
	s.refusedFrom = min(s.refusedFrom, first.TimeNanoseconds)
	return nil
}

// setArchivedSize sets the archived size that the server reported. A size outside the spool means that one side lost
// its copy. The spool is then appended to the server's file.
func (s *spool) setArchivedSize(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noQuota = false
	if size < s.base || size > s.end {
		shift := size - s.shipped
		s.base, s.end, s.shipped = s.base+shift, s.end+shift, size
		return
	}
	s.all.Add(s.shipped - size)
	s.shipped = size
	if s.shipped-s.base > compactAbove {
		_ = s.compact() // tried again after the next chunk
	}
}

// compact rewrites the file without archived content; the lock is held.
func (s *spool) compact() error {
	rest := make([]byte, s.end-s.shipped)
	if _, err := s.file.ReadAt(rest, s.shipped-s.base); err != nil && len(rest) > 0 {
		return err
	}
	file, err := os.OpenFile(filepath.Join(s.directory, spoolName(s.uid, s.shipped)), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.Write(rest); err != nil {
		return errors.Join(err, os.Remove(file.Name()), file.Close())
	}
	old := s.file
	s.file, s.base = file, s.shipped
	return errors.Join(old.Close(), os.Remove(old.Name()))
}

// seal discards the content, because the server takes no more of this run.
func (s *spool) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discard()
}

// discard subtracts the content from all; the lock is held.
func (s *spool) discard() {
	s.all.Add(s.shipped - s.end)
	s.shipped, s.sealed = s.end, true
}

// remove deletes the spool.
func (s *spool) remove() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discard()
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
