// Package netns finds network namespaces and works inside them.
package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Identity of a namespace. Its path is not enough, because another namespace may take its place.
type Identity struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// Of returns the identity of an open namespace.
func Of(file *os.File) (Identity, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return Identity{}, fmt.Errorf("network namespace %s: %w", file.Name(), err)
	}
	return Identity{stat.Dev, stat.Ino}, nil
}

// ErrGone means that no process and no mount has the namespace any more.
var ErrGone = errors.New("network namespace is gone")

// Finder looks for namespaces; the zero value looks in /proc.
type Finder struct {
	// Proc is the proc file system of the host's processes, /proc by default.
	Proc string
	// Except reports whether Find ignores a process; nil ignores none. Such a process does not keep a node.
	Except func(pid int) bool
}

// Find opens the namespace with the given identity. It looks at path on the host, where the runtime mounted
// it, and at processes. This process is ignored because its threads change namespaces. The open file keeps
// the namespace alive.
func (f Finder) Find(path string, want Identity) (*os.File, error) {
	proc := f.proc()
	if file := f.At(path, want); file != nil {
		return file, nil
	}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("look for network namespace %d: %w", want.Inode, err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		file := openIf(filepath.Join(proc, entry.Name(), "ns/net"), want)
		if file == nil {
			continue
		}
		if f.Except == nil || !f.Except(pid) {
			return file, nil
		}
		_ = file.Close()
	}
	return nil, fmt.Errorf("%w: inode %d, once at %s", ErrGone, want.Inode, path)
}

// At opens the namespace if it is at path on the host; nil if it is not.
func (f Finder) At(path string, want Identity) *os.File {
	if path == "" {
		return nil
	}
	// The host's first process (hostPID) sees the host's mounts, which this container does not.
	for _, candidate := range []string{filepath.Join(f.proc(), "1/root", path), path} {
		if file := openIf(candidate, want); file != nil {
			return file
		}
	}
	return nil
}

// All opens every namespace that a process has, once each. The caller closes them.
func (f Finder) All() (map[Identity]*os.File, error) {
	entries, err := os.ReadDir(f.proc())
	if err != nil {
		return nil, fmt.Errorf("network namespaces: %w", err)
	}
	all := map[Identity]*os.File{}
	for _, entry := range entries {
		if name := entry.Name(); name[0] < '1' || name[0] > '9' {
			continue
		}
		path := filepath.Join(f.proc(), entry.Name(), "ns/net")
		var stat unix.Stat_t
		if unix.Stat(path, &stat) != nil {
			continue // the process has ended
		}
		identity := Identity{stat.Dev, stat.Ino}
		if all[identity] == nil {
			if file := openIf(path, identity); file != nil {
				all[identity] = file
			}
		}
	}
	return all, nil
}

// OfPod opens the network namespace of a pod's processes, found by the control group that the kubelet made
// for the pod's UID. A pod cannot write there. The first process is the sandbox's, which starts before any
// container. The error is ErrGone if there is none.
func (f Finder) OfPod(uid string) (*os.File, error) {
	if uid == "" {
		return nil, fmt.Errorf("%w: no pod's UID", ErrGone)
	}
	entries, err := os.ReadDir(f.proc())
	if err != nil {
		return nil, fmt.Errorf("look for pod %s: %w", uid, err)
	}
	names := []string{"pod" + uid, "pod" + strings.ReplaceAll(uid, "-", "_")} // of cgroupfs, of systemd
	for _, entry := range entries {
		if name := entry.Name(); name[0] < '1' || name[0] > '9' {
			continue
		}
		groups, err := os.ReadFile(filepath.Join(f.proc(), entry.Name(), "cgroup"))
		if err != nil || !slices.ContainsFunc(names, func(name string) bool { return inGroup(string(groups), name) }) {
			continue
		}
		if file, err := os.Open(filepath.Join(f.proc(), entry.Name(), "ns/net")); err == nil {
			if !f.isHosts(file) {
				return file, nil
			}
			_ = file.Close()
		}
	}
	return nil, fmt.Errorf("%w: no process of pod %s", ErrGone, uid)
}

// isHosts reports whether a namespace is the host's. A container's first process still has it when it enters
// the pod's control group.
func (f Finder) isHosts(file *os.File) bool {
	identity, err := Of(file)
	if err != nil {
		return true
	}
	for _, path := range []string{filepath.Join(f.proc(), "1/ns/net"), "/proc/self/ns/net"} {
		var stat unix.Stat_t
		if unix.Stat(path, &stat) == nil && identity == (Identity{stat.Dev, stat.Ino}) {
			return true
		}
	}
	return false
}

// inGroup reports whether one of a process's control groups is in a pod's: an element of its path, maybe with
// systemd's prefix and suffix.
func inGroup(groups, pod string) bool {
	for line := range strings.Lines(groups) {
		for element := range strings.SplitSeq(strings.TrimSpace(line), "/") {
			if element == pod || strings.HasSuffix(element, "-"+pod+".slice") {
				return true
			}
		}
	}
	return false
}

func (f Finder) proc() string {
	if f.Proc == "" {
		return "/proc"
	}
	return f.Proc
}

func openIf(path string, want Identity) *os.File {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil || (Identity{stat.Dev, stat.Ino}) != want {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	if got, err := Of(file); err != nil || got != want {
		_ = file.Close()
		return nil
	}
	return file
}

// Do runs f on a thread in the namespace. f must not start goroutines that rely on it.
func Do(namespace *os.File, f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err, restored := inside(namespace, f)
		if restored {
			runtime.UnlockOSThread()
		} // else the thread ends with this goroutine
		result <- err
	}()
	return <-result
}

// Get is Do for what f makes or finds in the namespace.
func Get[T any](namespace *os.File, f func() (T, error)) (result T, err error) {
	err = Do(namespace, func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}

func inside(namespace *os.File, f func() error) (err error, restored bool) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("own network namespace: %w", err), true
	}
	defer own.Close()
	if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", namespace.Name(), err), true
	}
	err = f()
	return err, unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil
}
