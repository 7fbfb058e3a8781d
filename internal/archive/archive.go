// Package archive keeps runs on a file system, in one folder per run below namespace/name/UID: a reused name never
// overwrites a result. Logs grow by appends at given offsets; records are replaced as complete files.
// The kernel resolves every path inside the archive's root (os.Root), so that no name and no symbolic link leads out of it.
package archive

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"sort"
	"strings"
	"sync"
)

// Key of a run.
type Key struct {
	Namespace, Name, UID string
}

func (k Key) String() string { return k.Namespace + "/" + k.Name + "/" + k.UID }

var (
	labelPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	uidPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)
	filePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// Validate returns what is wrong with a key.
func (k Key) Validate() error {
	if err := ValidateLabel("namespace", k.Namespace); err != nil {
		return err
	}
	if err := ValidateLabel("name", k.Name); err != nil {
		return err
	}
	if !uidPattern.MatchString(k.UID) {
		return fmt.Errorf("uid %q: want 1 to 64 letters, digits and hyphens", k.UID)
	}
	return nil
}

// ValidateLabel checks the name of a namespace, experiment, node, app or host; field names it in the error.
func ValidateLabel(field, name string) error {
	if !labelPattern.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%s %q: want a DNS name of lower-case letters, digits, hyphens and dots", field, name)
	}
	return nil
}

// ValidateFile checks the name of a file. Names that begin with a dot are reserved for the archive.
func ValidateFile(name string) error {
	if !filePattern.MatchString(name) {
		return fmt.Errorf("file name %q: want at most 128 letters, digits, dots, hyphens and underscores, the first no dot", name)
	}
	return nil
}

// ValidatePath checks a path below a run: file names joined by slashes.
func ValidatePath(p string) error {
	parts := strings.Split(p, "/")
	if len(parts) > 8 {
		return fmt.Errorf("path %q: want at most 8 parts", p)
	}
	for _, part := range parts {
		if err := ValidateFile(part); err != nil {
			return fmt.Errorf("path %q: %w", p, err)
		}
	}
	return nil
}

// deletedPrefix begins the names of discarded runs.
const deletedPrefix = ".deleted-"

// Store is an archive in one folder.
type Store struct {
	root  *os.Root
	open  *openLogs
	space *volumeSpace
	// TeamQuota, if set before the first run is opened, bounds the bytes of all runs of a namespace; 0 means no limit.
	TeamQuota func(namespace string) int64

	// mu keeps the removal of empty folders apart from the creation of runs, and guards teams.
	mu    sync.Mutex
	teams map[string]*team
}

// Open opens the archive in dir, which must exist, and completes interrupted deletions.
func Open(dir string) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	s := &Store{root: root, open: newOpenLogs(), space: &volumeSpace{dir: dir}, teams: map[string]*team{}}
	entries, err := s.readDir(".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), deletedPrefix) {
			if err := s.Erase(entry.Name()); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// Close releases the archive's folder.
func (s *Store) Close() error { return s.root.Close() }

func (s *Store) readDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.root.FS(), name)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return entries, nil
}

// Keys lists the runs in the archive, in order of their keys.
func (s *Store) Keys() ([]Key, error) {
	var keys []Key
	matches, err := fs.Glob(s.root.FS(), "*/*/*")
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	for _, match := range matches {
		parts := strings.Split(match, "/")
		key := Key{Namespace: parts[0], Name: parts[1], UID: parts[2]}
		if info, err := s.root.Lstat(match); err == nil && info.IsDir() && key.Validate() == nil {
			keys = append(keys, key)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	return keys, nil
}

// Run opens a run's folder, and makes it if necessary. A key must have at most one open Run.
// quota bounds the bytes of its logs; 0 means no limit.
func (s *Store) Run(key Key, quota int64) (*Run, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.root.MkdirAll(key.String(), 0o750); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	root, err := s.root.OpenRoot(key.String())
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	r := &Run{key: key, root: root, open: s.open, space: s.space, quota: quota, team: s.team(key.Namespace), maxLogs: defaultMaxLogs, maxResults: defaultMaxResults, files: map[string]*logFile{},
		results: map[string]int64{}}
	if err := r.load(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return r, nil
}

// Discard takes a run out of the archive at once, and returns the name by which Erase deletes its files. A run with the same key
// may begin before that. The next Open erases what was not.
func (s *Store) Discard(key Key) (discarded string, err error) {
	if err := key.Validate(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	discarded = deletedPrefix + key.UID + "-" + rand.Text()
	err = s.root.Rename(key.String(), discarded)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("archive: %w", err)
	}
	// Only empty folders are removed; those that other runs use stay.
	_ = s.root.Remove(path.Join(key.Namespace, key.Name))
	_ = s.root.Remove(key.Namespace)
	return discarded, nil
}

// Erase deletes the files of a discarded run, which may take minutes. Nothing waits for it.
func (s *Store) Erase(discarded string) error {
	if err := s.root.RemoveAll(discarded); err != nil {
		return fmt.Errorf("archive: delete %s: %w", discarded, err)
	}
	return nil
}
