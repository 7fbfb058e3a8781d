package archive

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/pcapng"
)

// Errors of appends.
var (
	ErrSealed = errors.New("the run is sealed: its logs no longer grow")
	ErrQuota  = errors.New("the run's quota is used up")
	ErrFull   = errors.New("the archive's volume is full")
	// ErrTeamQuota is about all runs of a namespace.
	ErrTeamQuota = errors.New("the team's room in the archive is used up")
	ErrDeleted   = errors.New("the run is deleted")
)

// OffsetError means that bytes do not belong at their offset.
type OffsetError struct {
	Path string
	// Offset of the request, and Size of the file.
	Offset, Size int64
	// Differ is set if the archive has other bytes at Offset.
	Differ bool
}

func (e *OffsetError) Error() string {
	if e.Differ {
		return fmt.Sprintf("%s: the archive has other bytes at offset %d: continue at its size, %d", e.Path, e.Offset, e.Size)
	}
	return fmt.Sprintf("%s: offset is %d, want the archived size %d", e.Path, e.Offset, e.Size)
}

// File is one archived file.
type File struct {
	// Path below the run.
	Path string
	Size int64
}

// Sealed is a log at its seal.
type Sealed struct {
	File
	SHA256 string
	// Torn is set if the last line is incomplete, or if a capture's incomplete last frame was cut off.
	Torn bool
}

// Run is one run's folder.
type Run struct {
	key     Key
	root    *os.Root
	open    *openLogs
	space   *volumeSpace
	quota   int64
	team    *team
	maxLogs int
	// OnAppend, if set before the first append, gets every archived piece of a log in the log's order, and all of them again
	// from Replay after a restart. It must not call the Run.
	OnAppend func(path string, piece []byte)

	// logBytes are those of logs, recordBytes those of records and results.
	logBytes, recordBytes atomic.Int64
	counting              sync.Mutex // of those together with the team's
	replacing             sync.Mutex // of files, as each counts the one before

	sealed atomic.Bool
	closed atomic.Bool

	mu         sync.Mutex
	files      map[string]*logFile
	maxResults int
	results    map[string]int64 // sizes by path
	// resultBytes are those of results, also of those being written.
	resultBytes int64
}

// logFile is a growing log. Its size is that of the file, to which only the Run writes.
type logFile struct {
	mu     sync.Mutex
	size   int64
	synced time.Time
	// file is set while the log is kept open; grown is when it last grew.
	file  *os.File
	grown time.Time
}

// Folders of logs, which grow and count against the quota.
const (
	LogsDir     = "logs"
	RadioDir    = "radio"
	CapturesDir = "captures"
	ResultsDir  = "results"
)

// EventsFile is a log beside those folders.
const EventsFile = "events.jsonl"

// capturesShare of the quota is the most for captures: without message logs there are no results.
const capturesShare = 0.75

// IsLog reports whether a path is a log's.
func IsLog(p string) bool {
	return p == EventsFile || strings.HasPrefix(p, LogsDir+"/") || strings.HasPrefix(p, RadioDir+"/") || IsCapture(p)
}

// IsCapture reports whether a path is a capture's; a capture grows like a log.
func IsCapture(p string) bool { return strings.HasPrefix(p, CapturesDir+"/") }

// Key of the run.
func (r *Run) Key() Key { return r.key }

// Used returns the number of bytes of all logs.
func (r *Run) Used() int64 { return r.logBytes.Load() }

// Size returns the number of bytes of all files.
func (r *Run) Size() int64 { return r.logBytes.Load() + r.recordBytes.Load() }

// load counts what the run has, and removes the temporary files of a killed Replace.
func (r *Run) load() error {
	files, err := r.walk(func(p string) error {
		if strings.HasPrefix(path.Base(p), temporaryPrefix) {
			return r.root.Remove(p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, file := range files {
		if IsLog(file.Path) {
			r.files[file.Path] = &logFile{size: file.Size}
			r.logBytes.Add(file.Size)
		} else {
			r.recordBytes.Add(file.Size)
		}
		if isResult(file.Path) {
			r.noteResult(file.Path, file.Size)
		}
	}
	r.team.used.Add(r.logBytes.Load() + r.recordBytes.Load())
	return nil
}

// temporaryPrefix begins the names of files that are being written.
const temporaryPrefix = ".new-"

// Files lists all archived files, in order of path.
func (r *Run) Files() ([]File, error) {
	return r.walk(func(string) error { return nil })
}

// walk lists all archived files, in order of path, and passes the paths of reserved names to reserved.
func (r *Run) walk(reserved func(p string) error) ([]File, error) {
	var files []File
	err := fs.WalkDir(r.root.FS(), ".", func(p string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // replaced or deleted meanwhile
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if strings.HasPrefix(path.Base(p), ".") {
			return reserved(p)
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		files = append(files, File{Path: p, Size: info.Size()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("archive: list %s: %w", r.key, err)
	}
	return files, nil
}

// Open opens an archived file for reading.
func (r *Run) Open(p string) (*os.File, error) {
	if err := ValidatePath(p); err != nil {
		return nil, err
	}
	f, err := r.root.Open(p)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%s is below a file: %w", p, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file: %w", p, fs.ErrNotExist)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Append archives piece as the bytes of a log from offset on, and returns the log's size. Bytes that are archived already
// are compared and not written again, so that a repeated request is harmless.
func (r *Run) Append(p string, offset int64, piece []byte) (int64, error) {
	if err := ValidatePath(p); err != nil {
		return 0, err
	}
	if !IsLog(p) || offset < 0 {
		return 0, fmt.Errorf("append to %s at %d: want %s or a path below %s, %s or %s and an offset of 0 or more", p, offset, EventsFile, LogsDir, RadioDir, CapturesDir)
	}
	if r.closed.Load() {
		return 0, ErrDeleted
	}
	lf := r.logFile(p)
	if lf == nil {
		return 0, fmt.Errorf("%w: it has %d logs, the limit", ErrQuota, r.maxLogs)
	}
	lf.mu.Lock()
	defer lf.mu.Unlock()
	if offset > lf.size {
		return lf.size, &OffsetError{Path: p, Offset: offset, Size: lf.size}
	}
	known := min(lf.size-offset, int64(len(piece)))
	if err := r.compareExisting(p, lf.size, offset, piece[:known]); err != nil {
		return lf.size, err
	}
	fresh := piece[known:]
	if len(fresh) == 0 && (lf.size > 0 || len(piece) > 0) {
		return lf.size, nil
	}
	if r.sealed.Load() {
		return lf.size, ErrSealed
	}
	if err := r.reserve(p, int64(len(fresh))); err != nil {
		return lf.size, err
	}
	return r.write(p, lf, fresh)
}

// defaultMaxLogs of a run: empty logs need no quota, but inodes of the volume and memory of the server.
const defaultMaxLogs = 200_000

// logFile returns a log, or a new one; nil if there may be no more.
func (r *Run) logFile(p string) *logFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	lf := r.files[p]
	if lf == nil && len(r.files) >= r.maxLogs {
		return nil
	}
	if lf == nil {
		lf = &logFile{}
		r.files[p] = lf
	}
	return lf
}

func (r *Run) compareExisting(p string, size, offset int64, want []byte) error {
	if len(want) == 0 {
		return nil
	}
	f, err := r.root.Open(p)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer f.Close()
	have := make([]byte, len(want))
	if _, err := f.ReadAt(have, offset); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if !bytes.Equal(have, want) {
		return &OffsetError{Path: p, Offset: offset, Size: size, Differ: true}
	}
	return nil
}

// syncEvery bounds what a power failure of the host can take from a log. Agents keep their last 45 s and continue where the
// archive's copy ends. Syncing hundreds of logs each second would occupy the disk and a quarter of the server's processor time.
const syncEvery = 10 * time.Second

// write appends bytes to a locked log. A failed write is cut off again.
func (r *Run) write(p string, lf *logFile, fresh []byte) (int64, error) {
	if err := r.writeAt(p, lf, fresh); err != nil {
		r.release(int64(len(fresh)))
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return lf.size, fmt.Errorf("%w: %w", ErrFull, err)
		}
		return lf.size, fmt.Errorf("archive: %w", err)
	}
	lf.size += int64(len(fresh))
	if r.OnAppend != nil {
		r.OnAppend(p, fresh)
	}
	return lf.size, nil
}

func (r *Run) writeAt(p string, lf *logFile, fresh []byte) error {
	f := lf.file
	if f == nil {
		var err error
		if f, err = r.openForAppend(p); err != nil {
			return err
		}
		if !r.open.keepOpen(lf, f) {
			defer f.Close()
		}
	}
	lf.grown = time.Now()
	_, err := f.WriteAt(fresh, lf.size)
	if err == nil && lf.grown.Sub(lf.synced) > syncEvery {
		err, lf.synced = f.Sync(), time.Now()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(lf.size))
		r.open.release(lf) // a network file system may have lost it: the next append opens it anew
	}
	return err
}

func (r *Run) openForAppend(p string) (*os.File, error) {
	f, err := r.root.OpenFile(p, os.O_WRONLY|os.O_CREATE, 0o640)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := r.root.MkdirAll(path.Dir(p), 0o750); err != nil {
		return nil, err
	}
	return r.root.OpenFile(p, os.O_WRONLY|os.O_CREATE, 0o640)
}

// Replay passes all logs except captures to OnAppend, after a restart and before the first append.
func (r *Run) Replay() error {
	buf := make([]byte, 256<<10)
	for p, lf := range r.files {
		if IsCapture(p) {
			continue
		}
		f, err := r.root.Open(p)
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		_, err = io.CopyBuffer(writerFunc(func(piece []byte) { r.OnAppend(p, piece) }), io.LimitReader(f, lf.size), buf)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("archive: read %s: %w", p, err)
		}
	}
	return nil
}

type writerFunc func([]byte)

func (w writerFunc) Write(p []byte) (int, error) { w(p); return len(p), nil }

// Seal ends the growth of all logs and returns their checksums, in order of path.
func (r *Run) Seal() ([]Sealed, error) {
	r.sealed.Store(true)
	r.CloseLogs() // waits for appends that began before, which may make a log
	files, err := r.Files()
	if err != nil {
		return nil, err
	}
	var sealed []Sealed
	for _, file := range files {
		if !IsLog(file.Path) {
			continue
		}
		s, err := r.sealFile(file.Path)
		if err != nil {
			return nil, fmt.Errorf("archive: seal %s: %w", file.Path, err)
		}
		sealed = append(sealed, s)
	}
	return sealed, nil
}

// MarkSealed refuses appends to a run that was sealed before a restart.
func (r *Run) MarkSealed() { r.sealed.Store(true) }

func (r *Run) sealFile(p string) (Sealed, error) {
	lf := r.logFile(p)
	if lf == nil {
		return Sealed{}, fmt.Errorf("there are more than %d logs", r.maxLogs)
	}
	lf.mu.Lock()
	defer lf.mu.Unlock()
	f, err := r.root.OpenFile(p, os.O_RDWR, 0)
	if err != nil {
		return Sealed{}, err
	}
	defer f.Close()
	cut := false
	if IsCapture(p) {
		if cut, err = truncateCapture(f); err != nil {
			return Sealed{}, err
		}
	}
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return Sealed{}, err
	}
	lf.size = size
	if IsCapture(p) {
		return Sealed{File: File{Path: p, Size: size}, SHA256: hex.EncodeToString(sum.Sum(nil)), Torn: cut}, f.Sync()
	}
	last := []byte{'\n'}
	if size > 0 {
		if _, err := f.ReadAt(last, size-1); err != nil {
			return Sealed{}, err
		}
	}
	sealed := Sealed{File: File{Path: p, Size: size}, SHA256: hex.EncodeToString(sum.Sum(nil)), Torn: last[0] != '\n'}
	return sealed, f.Sync()
}

// truncateCapture removes an incomplete block at the end of a capture, so that every reader can read it.
func truncateCapture(f *os.File) (cut bool, err error) {
	var whole pcapng.BlockScanner
	// Data that is no block also ends the complete ones.
	if _, err := io.Copy(&whole, f); err != nil && !whole.Incomplete() {
		return false, err
	}
	if whole.Incomplete() {
		if err := f.Truncate(whole.Bytes); err != nil {
			return true, err
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return whole.Incomplete(), err
}

// Quarantine renames a record that cannot be read, so that the run can continue without it.
func (r *Run) Quarantine(p string) error {
	if err := ValidatePath(p); err != nil {
		return err
	}
	if err := r.root.Rename(p, p+DamagedSuffix); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return r.syncDir(path.Dir(p))
}

// DamagedSuffix is added to the names of such records.
const DamagedSuffix = ".damaged"

// Closed reports whether the run is deleted or closed.
func (r *Run) Closed() bool { return r.closed.Load() }

// Replace writes a complete file atomically: a reader, or a restart at any moment, finds the old or the new one.
// It returns the number of bytes.
func (r *Run) Replace(p string, content io.Reader) (int64, error) {
	if err := ValidatePath(p); err != nil {
		return 0, err
	}
	if IsLog(p) {
		return 0, fmt.Errorf("path %q: logs grow by appends and are never replaced", p)
	}
	if r.closed.Load() {
		return 0, ErrDeleted
	}
	dir := path.Dir(p)
	if err := r.root.MkdirAll(dir, 0o750); err != nil {
		return 0, fmt.Errorf("archive: %w", err)
	}
	temporary := path.Join(dir, temporaryPrefix+rand.Text())
	size, err := r.writeSynced(temporary, content)
	if err == nil {
		err = r.putInPlace(temporary, p, size)
	}
	if err != nil {
		_ = r.root.Remove(temporary)
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return 0, fmt.Errorf("%w: %w", ErrFull, err)
		}
		return 0, fmt.Errorf("archive: write %s: %w", p, err)
	}
	return size, r.syncDir(dir)
}

// putInPlace renames a written file to p, and counts it in place of the one before.
func (r *Run) putInPlace(temporary, p string, size int64) error {
	r.replacing.Lock()
	defer r.replacing.Unlock()
	before := r.sizeOf(p)
	if err := r.root.Rename(temporary, p); err != nil {
		return err
	}
	r.count(&r.recordBytes, size-before)
	if isResult(p) {
		r.noteResult(p, size)
	}
	return nil
}

// sizeOf a file; 0 if it does not exist.
func (r *Run) sizeOf(p string) int64 {
	info, err := r.root.Stat(p)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (r *Run) writeSynced(p string, content io.Reader) (int64, error) {
	f, err := r.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(f, content)
	if err == nil {
		err = f.Sync()
	}
	return size, errors.Join(err, f.Close())
}

func (r *Run) syncDir(dir string) error {
	d, err := r.root.Open(dir)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// ReplaceJSON writes a value as a JSON file, like Replace.
func (r *Run) ReplaceJSON(p string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	_, err = r.Replace(p, bytes.NewReader(append(text, '\n')))
	return err
}

// ReadJSON reads a JSON file into value; the error is fs.ErrNotExist if there is none.
func (r *Run) ReadJSON(p string, value any) error {
	text, err := r.root.ReadFile(p)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("archive: %s of %s: %w", p, r.key, err)
	}
	return nil
}

// Close refuses further writes and releases the folder.
func (r *Run) Close() error {
	r.leaveTeam()
	err := r.root.Close() // first, so that no append reopens a log
	r.CloseLogs()
	return err
}

// CloseLogs closes logs that are kept open; the next append reopens its log. On network file systems folders with open
// files cannot be deleted.
func (r *Run) CloseLogs() {
	r.mu.Lock()
	logs := slices.Collect(maps.Values(r.files))
	r.mu.Unlock()
	for _, lf := range logs {
		lf.mu.Lock()
		r.open.release(lf)
		lf.mu.Unlock()
	}
}
