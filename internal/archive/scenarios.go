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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/digests"
)

// scenariosDir has the compiled scenarios by the hexadecimal digits of their digests. A namespace cannot begin with a dot.
const scenariosDir = ".scenarios"

// Errors of scenarios.
var (
	// ErrDigest means that a scenario's bytes do not have the digest of its name.
	ErrDigest = errors.New("the scenario has a different digest")
	// ErrScenarioQuota means that there is no space for another scenario.
	ErrScenarioQuota = errors.New("the quota for scenarios is used up")
)

// Scenarios are the compiled scenarios of an archive. Each is written once and never changes, as its name is its digest.
type Scenarios struct {
	// OnDelete is called for each scenario that Put deletes for a new one. It must not call the Scenarios. Set it before the first Put.
	OnDelete func(digest string)

	root  *os.Root
	space *volumeSpace
	mu    sync.Mutex
	// used bytes of all scenarios, also of those being written.
	used int64
}

// Scenarios opens the archive's scenarios, and removes the temporary files of a killed Put. Only one may be open.
func (s *Store) Scenarios() (*Scenarios, error) {
	if err := s.root.MkdirAll(scenariosDir, 0o750); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	root, err := s.root.OpenRoot(scenariosDir)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	found := &Scenarios{root: root, space: s.space, OnDelete: func(string) {}}
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

// Spare are the scenarios that may be deleted for a new one: those that were last used before a time, except the needed ones.
type Spare struct {
	Before time.Time
	// Needed digests.
	Needed map[string]bool
}

// storedScenario is a scenario in its file.
type storedScenario struct {
	name, digest string
	size         int64
	used         time.Time
}

// spare scenarios, those first that are unused for longest. The caller has the lock.
func (s *Scenarios) spare(which Spare) (found []storedScenario, err error) {
	err = s.each(func(name string, info fs.FileInfo) error {
		digest, whole := digests.OfFile(name)
		if whole && info.ModTime().Before(which.Before) && !which.Needed[digest] {
			found = append(found, storedScenario{name, digest, info.Size(), info.ModTime()})
		}
		return nil
	})
	slices.SortFunc(found, func(a, b storedScenario) int { return a.used.Compare(b.used) })
	return found, err
}

// delete a scenario. The caller has the lock.
func (s *Scenarios) delete(one storedScenario) error {
	if err := s.root.Remove(one.name); err != nil {
		return fmt.Errorf("archive: delete scenario %s: %w", one.digest, err)
	}
	s.used -= one.size
	s.space.free(one.size)
	return nil
}

// fits reports whether n more bytes fit the quota. The caller has the lock.
func (s *Scenarios) fits(n, quota int64) bool { return quota <= 0 || s.used+n <= quota }

// makeRoom deletes spare scenarios until n more bytes fit the quota and the volume. The caller has the lock.
func (s *Scenarios) makeRoom(n, quota int64, which Spare) error {
	if s.fits(n, quota) && s.space.has(n) {
		return nil
	}
	found, err := s.spare(which)
	if err != nil {
		return err
	}
	for _, one := range found {
		if err := s.delete(one); err != nil {
			return err
		}
		s.OnDelete(one.digest)
		if s.fits(n, quota) && s.space.has(n) {
			return nil
		}
	}
	if s.fits(n, quota) {
		return ErrFull
	}
	return fmt.Errorf("%w: %d bytes are allowed for all of them, %d are used", ErrScenarioQuota, quota, s.used)
}

// CheckRoom returns an error if a scenario of n bytes cannot be stored, even if all spare ones are deleted for it.
func (s *Scenarios) CheckRoom(n, quota int64, which Spare) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fits(n, quota) && s.space.has(n) {
		return nil
	}
	found, err := s.spare(which)
	if err != nil {
		return err
	}
	spare := int64(0)
	for _, one := range found {
		spare += one.size
	}
	if !s.space.has(n - spare) {
		return ErrFull
	}
	if !s.fits(n-spare, quota) {
		return fmt.Errorf("%w: %d bytes are allowed for all of them, %d are needed", ErrScenarioQuota, quota, s.used-spare)
	}
	return nil
}

// Put stores the scenario with a digest. If it exists, only the content is checked. quota bounds the bytes of all scenarios;
// 0 means no limit. Beyond it, or on a full volume, spare ones are deleted. After a restart at any moment the scenario is complete or absent.
func (s *Scenarios) Put(digest string, content io.Reader, quota int64, spare Spare) (size int64, err error) {
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
	room := &quotaReservation{scenarios: s, quota: quota, spare: spare}
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

// commit renames a written file to its digest. If two put the same scenario, the second replaces equal bytes, which count once.
func (s *Scenarios) commit(temporary, digest string, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, absent := s.root.Lstat(digests.File(digest))
	if err := s.root.Rename(temporary, digests.File(digest)); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if absent == nil {
		s.used -= size
	}
	d, err := s.root.Open(".")
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// quotaReservation counts bytes against the quota before they are written.
type quotaReservation struct {
	scenarios *Scenarios
	quota     int64
	spare     Spare
	bytes     int64
}

func (r *quotaReservation) Write(p []byte) (int, error) {
	r.scenarios.mu.Lock()
	defer r.scenarios.mu.Unlock()
	n := int64(len(p))
	if err := r.scenarios.makeRoom(n, r.quota, r.spare); err != nil {
		return 0, err
	}
	if !r.scenarios.space.reserve(n) { // logs have taken it meanwhile
		return 0, ErrFull
	}
	r.scenarios.used += n
	r.bytes += n
	return len(p), nil
}

func (r *quotaReservation) release() {
	r.scenarios.mu.Lock()
	defer r.scenarios.mu.Unlock()
	r.scenarios.used -= r.bytes
	r.scenarios.space.free(r.bytes)
}

// Has reports whether the scenario with a digest exists, and counts as a use of it.
func (s *Scenarios) Has(digest string) bool {
	if digests.Check(digest) != nil {
		return false
	}
	now := time.Now()
	return s.root.Chtimes(digests.File(digest), now, now) == nil
}

// Size of the scenario with a digest; 0 if there is none.
func (s *Scenarios) Size(digest string) int64 {
	if digests.Check(digest) != nil {
		return 0
	}
	info, err := s.root.Stat(digests.File(digest))
	if err != nil {
		return 0
	}
	return info.Size()
}

// Open opens the scenario with a digest, which counts as a use; the error is fs.ErrNotExist if there is none.
func (s *Scenarios) Open(digest string) (*os.File, error) {
	if err := digests.Check(digest); err != nil {
		return nil, err
	}
	s.Has(digest)
	return s.root.Open(digests.File(digest))
}

// Expire deletes all spare scenarios, and returns their digests. They can be stored again from their sources.
func (s *Scenarios) Expire(which Spare) (deleted []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.spare(which)
	if err != nil {
		return nil, err
	}
	for _, one := range found {
		if err := s.delete(one); err != nil {
			return deleted, err
		}
		deleted = append(deleted, one.digest)
	}
	return deleted, nil
}
