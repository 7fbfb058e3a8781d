// Package store keeps requests and responses in files of one folder. Neither a killed process nor a loss of power loses them.
//
// A record is a file whose name has its id, its deadline and what it is. It is written under another name, flushed to the disk, and then
// renamed, which happens wholly or not at all. Files were chosen over an embedded database for three reasons. Bodies go to the disk
// while they come, and are never in memory as a whole. A full disk is noticed by the request that does not fit. And nothing has to be compacted.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/proxy/frame"
)

// State says what a record is.
type State string

// States.
const (
	// Request was accepted from a client.
	Request State = "request"
	// Started: the service was called, or is about to be. The record is empty.
	Started State = "started"
	// Response of a service, or of a proxy in its stead.
	Response State = "response"
	// Acknowledged: the near proxy has the response. The record is empty, and keeps a late copy of the request from running.
	Acknowledged State = "acknowledged"
)

// Record names one file.
type Record struct {
	ID       frame.ID
	Deadline time.Time
	State    State
}

func (r Record) name() string {
	return fmt.Sprintf("%s.%d.%s", r.ID, r.Deadline.UnixMilli(), r.State)
}

func parse(name string) (r Record, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return r, false
	}
	id, err := frame.ParseID(parts[0])
	milliseconds, err2 := strconv.ParseInt(parts[1], 10, 64)
	r = Record{ID: id, Deadline: time.UnixMilli(milliseconds), State: State(parts[2])}
	return r, err == nil && err2 == nil && slices.Contains([]State{Request, Started, Response, Acknowledged}, r.State)
}

// temporary ends the names of files that are being written.
const temporary = ".new"

// ErrFull is the error of a record for which the disk, or the folder's limit, has no room.
var ErrFull = errors.New("no room on the disk")

// Store is a folder with records. It is safe for use by several goroutines.
type Store struct {
	folder string
	limit  int64
	used   atomic.Int64
	// written numbers files that are being written.
	written atomic.Int64
	lock    *os.File
	// names is the folder itself, to flush the names in it.
	names *os.File
	// flushing bounds the flushes at a time, as each takes a thread.
	flushing chan struct{}
}

// maxFlushing is how many records are flushed at a time.
const maxFlushing = 32

// Open opens a folder, makes it if need be, and returns the records in it, the oldest first. Its files may take up to limit bytes together, in whole blocks.
func Open(folder string, limit int64) (*Store, []Record, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, explain(folder, err)
	}
	lock, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, explain(folder, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, nil, fmt.Errorf("folder %s is in use by another proxy: want a folder for each", folder)
	}
	names, err := os.Open(folder)
	if err != nil {
		lock.Close()
		return nil, nil, explain(folder, err)
	}
	s := &Store{folder: folder, limit: limit, lock: lock, names: names, flushing: make(chan struct{}, maxFlushing)}
	records, err := s.list()
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, records, nil
}

// Close ends the use of the folder.
func (s *Store) Close() {
	s.names.Close()
	s.lock.Close()
}

// list returns the records, and removes what was not written to its end.
func (s *Store) list() ([]Record, error) {
	files, err := os.ReadDir(s.folder)
	if err != nil {
		return nil, explain(s.folder, err)
	}
	type aged struct {
		Record
		at time.Time
	}
	var records []aged
	for _, file := range files {
		if strings.HasSuffix(file.Name(), temporary) {
			if err := os.Remove(filepath.Join(s.folder, file.Name())); err != nil {
				return nil, explain(s.folder, err)
			}
			continue
		}
		r, ok := parse(file.Name())
		info, err := file.Info()
		if !ok || err != nil {
			continue
		}
		s.used.Add(onDisk(info.Size()))
		records = append(records, aged{r, info.ModTime()})
	}
	slices.SortStableFunc(records, func(a, b aged) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	sorted := make([]Record, len(records))
	for i, r := range records {
		sorted[i] = r.Record
	}
	return sorted, nil
}

func (s *Store) path(r Record) string { return filepath.Join(s.folder, r.name()) }

// Writer writes one record, which exists from Commit on.
type Writer struct {
	store  *Store
	record Record
	file   *os.File
	size   int64
	err    error
}

// Create begins a record.
func (s *Store) Create(r Record) (*Writer, error) {
	path := fmt.Sprintf("%s.%d%s", s.path(r), s.written.Add(1), temporary)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, explain(s.folder, err)
	}
	return &Writer{store: s, record: r, file: file}, nil
}

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	more := onDisk(w.size+int64(len(b))) - onDisk(w.size)
	w.size += int64(len(b))
	if w.store.used.Add(more) > w.store.limit {
		w.err = ErrFull
		return 0, w.err
	}
	n, err := w.file.Write(b)
	if err != nil {
		w.err = explain(w.store.folder, err)
	}
	return n, w.err
}

// Err returns the error of a Write that failed: the disk's, not that of where the content came from.
func (w *Writer) Err() error { return w.err }

// Commit makes the record, after which it outlives a crash. After an error there is none.
func (w *Writer) Commit() error {
	// The file is closed first, as thousands may wait for their flush.
	err := errors.Join(w.err, w.file.Close())
	if err == nil {
		w.store.flushing <- struct{}{}
		err = w.store.flush(w.file.Name(), w.store.path(w.record))
		<-w.store.flushing
	}
	if err != nil {
		w.Discard()
		return explain(w.store.folder, err)
	}
	return nil
}

// flush writes a file, and then its final name, to the disk.
func (s *Store) flush(written, final string) error {
	file, err := os.OpenFile(written, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(written, final); err != nil {
		return err
	}
	if err := s.names.Sync(); err != nil {
		return errors.Join(err, os.Remove(final)) // the caller says that there is no record
	}
	return nil
}

// Discard gives the record up.
func (w *Writer) Discard() {
	w.file.Close()
	_ = os.Remove(w.file.Name())
	w.store.used.Add(-onDisk(w.size))
}

// Put makes a record with a content.
func (s *Store) Put(r Record, content []byte) error {
	w, err := s.Create(r)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		w.Discard()
		return err
	}
	return w.Commit()
}

// Open reads a record.
func (s *Store) Open(r Record) (io.ReadCloser, error) { return os.Open(s.path(r)) }

// Size returns a record's bytes.
func (s *Store) Size(r Record) int64 {
	info, err := os.Stat(s.path(r))
	if err != nil {
		return 0
	}
	return info.Size()
}

// Remove ends a record. One that is not there is no error.
func (s *Store) Remove(r Record) {
	size := s.Size(r)
	if os.Remove(s.path(r)) == nil {
		s.used.Add(-onDisk(size))
	}
}

// Acknowledge turns a response into the record that it was acknowledged, and frees its room. It need not be flushed: after a loss of power
// the response may be there again.
func (s *Store) Acknowledge(r Record) error {
	size, acknowledged := s.Size(r), r
	acknowledged.State = Acknowledged
	if err := os.Rename(s.path(r), s.path(acknowledged)); err != nil {
		return explain(s.folder, err)
	}
	_ = os.Truncate(s.path(acknowledged), 0) // if it fails, the content counts until it is removed
	s.used.Add(onDisk(s.Size(acknowledged)) - onDisk(size))
	return nil
}

// blockBytes is what file systems allocate at a time. Kubernetes counts blocks too.
const blockBytes = 4096

// onDisk returns how many bytes a file of a size takes.
func onDisk(size int64) int64 { return (size + blockBytes - 1) / blockBytes * blockBytes }

// Used returns the bytes that all records take on the disk.
func (s *Store) Used() int64 { return s.used.Load() }

// explain returns an error of the system for people: ErrFull if it is that.
func explain(folder string, err error) error {
	if errors.Is(err, ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return ErrFull
	}
	return fmt.Errorf("folder %s cannot be read or written: want a folder that the proxy may change, on a disk that works", folder)
}
