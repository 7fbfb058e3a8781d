package archive

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/digests"
)

// scenariosDir holds compiled scenarios by the hexadecimal digits of their digests. Its name begins with a dot, so it is
// no namespace of runs.
const scenariosDir = ".scenarios"

// Errors of scenarios.
var (
	// ErrDigest tells that a scenario's bytes do not have the digest that it was to be stored by.
	ErrDigest = errors.New("the scenario has another digest")
	// ErrScenarioQuota tells that there is no room for one more scenario.
	ErrScenarioQuota = errors.New("the room for scenarios is used up")
)

// Scenarios are the compiled scenarios of an archive. Each is written once and never changes, as its name is its digest.
type Scenarios struct {
	root *os.Root
	mu   sync.Mutex
	// used bytes of all that are there and that are being written.
	used int64
}

// Scenarios opens the archive's scenarios, and removes what a Put left that was killed. There must be one at a time.
func (s *Store) Scenarios() (*Scenarios, error) {
	if err := s.root.MkdirAll(scenariosDir, 0o750); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	root, err := s.root.OpenRoot(scenariosDir)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	found := &Scenarios{root: root}
	return found, found.each(func(name string, info fs.FileInfo) error {
		if strings.HasPrefix(name, temporaryPrefix) {
			return root.Remove(name)
		}
		found.used += info.Size()
		return nil
	})
}

// Close releases the folder.
func (s *Scenarios) Close() error { return s.root.Close() }

// Used is the number of bytes of all scenarios.
func (s *Scenarios) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *Scenarios) each(do func(name string, info fs.FileInfo) error) error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().IsRegular() {
			err = do(entry.Name(), info)
		}
		if err != nil {
			return fmt.Errorf("archive: scenario %s: %w", entry.Name(), err)
		}
	}
	return nil
}

// Put stores the scenario with a digest; one that is there already is left as it is, and its content is only checked. quota
// bounds the bytes of all scenarios together; 0 is no bound. A restart at any moment finds all of the scenario or nothing.
func (s *Scenarios) Put(digest string, content io.Reader, quota int64) (size int64, err error) {
	if err := digests.Check(digest); err != nil {
		return 0, err
	}
	sum := sha256.New()
	content = io.TeeReader(content, sum)
	if s.Has(digest) {
		if _, err := io.Copy(io.Discard, content); err != nil {
			return 0, err
		}
		return 0, checkDigest(digest, sum)
	}
	temporary := temporaryPrefix + rand.Text()
	room := &quotaReservation{scenarios: s, quota: quota}
	err = s.write(temporary, io.TeeReader(content, room))
	if err == nil {
		err = checkDigest(digest, sum)
	}
	if err == nil {
		err = s.commit(temporary, digest, room.bytes)
	}
	if err == nil {
		return room.bytes, nil
	}
	room.release()
	_ = s.root.Remove(temporary)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return 0, fmt.Errorf("%w: %w", ErrFull, err)
	}
	return 0, err
}

func checkDigest(want string, sum hash.Hash) error {
	if has := digests.Of(sum); has != want {
		return fmt.Errorf("%w: it is %s, not %s", ErrDigest, has, want)
	}
	return nil
}

func (s *Scenarios) write(name string, content io.Reader) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	_, err = io.Copy(f, content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// commit gives a file that was written its name. Of two at once the second replaces equal bytes, which count once.
func (s *Scenarios) commit(temporary, digest string, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.root.Lstat(digests.File(digest)); err == nil {
		s.used -= size
	}
	if err := s.root.Rename(temporary, digests.File(digest)); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	d, err := s.root.Open(".")
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// quotaReservation counts what is written against the quota before it is written.
type quotaReservation struct {
	scenarios *Scenarios
	quota     int64
	bytes     int64
}

func (r *quotaReservation) Write(p []byte) (int, error) {
	r.scenarios.mu.Lock()
	defer r.scenarios.mu.Unlock()
	n := int64(len(p))
	if r.quota > 0 && r.scenarios.used+n > r.quota {
		return 0, fmt.Errorf("%w: %d bytes are allowed for all of them, %d are taken", ErrScenarioQuota, r.quota, r.scenarios.used)
	}
	r.scenarios.used += n
	r.bytes += n
	return len(p), nil
}

func (r *quotaReservation) release() {
	r.scenarios.mu.Lock()
	defer r.scenarios.mu.Unlock()
	r.scenarios.used -= r.bytes
}

// Has tells whether the scenario with a digest is there, and counts as a use of it.
func (s *Scenarios) Has(digest string) bool {
	if digests.Check(digest) != nil {
		return false
	}
	now := time.Now()
	return s.root.Chtimes(digests.File(digest), now, now) == nil
}

// Open opens the scenario with a digest, which counts as a use of it; the error is fs.ErrNotExist where there is none.
func (s *Scenarios) Open(digest string) (*os.File, error) {
	if err := digests.Check(digest); err != nil {
		return nil, err
	}
	s.Has(digest)
	return s.root.Open(digests.File(digest))
}

// Expire deletes the scenarios that nobody has used since a moment, and names their digests. Who still needs one stores
// it again: it is made from its sources at any time.
func (s *Scenarios) Expire(since time.Time) (deleted []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.each(func(name string, info fs.FileInfo) error {
		digest, whole := digests.OfFile(name)
		if !whole || !info.ModTime().Before(since) {
			return nil
		}
		if err := s.root.Remove(name); err != nil {
			return err
		}
		s.used -= info.Size()
		deleted = append(deleted, digest)
		return nil
	})
	return deleted, err
}
