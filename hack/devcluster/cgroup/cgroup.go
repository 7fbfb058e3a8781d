// Package cgroup makes, fills and removes a cluster's control groups, on
// cgroup v1 (also beside a v2 tree without controllers, "hybrid") and on v2.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	root          = "/sys/fs/cgroup"
	removalWindow = 10 * time.Second
)

// v2Controllers are those that the kubelet needs of a v2 tree.
var v2Controllers = []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids"}

// Hierarchies are the mounted trees in which a control group must exist.
type Hierarchies struct {
	Unified bool
	Mounts  []string
	// cpu is the mount point of the hierarchy with the cpu controller.
	cpu string
}

// Detect finds the machine's hierarchies.
func Detect() (Hierarchies, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(root, &stat); err != nil {
		return Hierarchies{}, fmt.Errorf("%s: %w", root, err)
	}
	if stat.Type == unix.CGROUP2_SUPER_MAGIC {
		return Hierarchies{Unified: true, Mounts: []string{root}, cpu: root}, nil
	}
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		return Hierarchies{}, err
	}
	defer mounts.Close()
	h := Hierarchies{cpu: root}
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 2 && fields[2] == "cgroup" {
			h.Mounts = append(h.Mounts, fields[1])
			if _, err := os.Stat(filepath.Join(fields[1], "cpu.shares")); err == nil {
				h.cpu = fields[1]
			}
		}
	}
	if len(h.Mounts) == 0 {
		return h, fmt.Errorf("no control group hierarchy is mounted below %s", root)
	}
	return h, nil
}

// Create makes the group (a path like "/vignette-default-0/n1") and its
// parents, with every controller usable in it.
func (h Hierarchies) Create(group string) error {
	for _, mount := range h.Mounts {
		path := mount
		for part := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
			if h.Unified {
				if err := enableControllers(path); err != nil {
					return err
				}
			}
			parent := path
			path = filepath.Join(path, part)
			if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if !h.Unified {
				if err := inheritCPUSet(parent, path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// inheritCPUSet fills in values that v1 leaves empty, as it refuses tasks without them.
func inheritCPUSet(parent, path string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(path, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func enableControllers(path string) error {
	available, err := os.ReadFile(filepath.Join(path, "cgroup.controllers"))
	if err != nil {
		return err
	}
	var wanted []string
	for _, controller := range v2Controllers {
		if slices.Contains(strings.Fields(string(available)), controller) {
			wanted = append(wanted, "+"+controller)
		}
	}
	control := filepath.Join(path, "cgroup.subtree_control")
	if err := os.WriteFile(control, []byte(strings.Join(wanted, " ")), 0o644); err != nil {
		return fmt.Errorf("%s: %w (a v2 group that holds processes cannot pass controllers on)", control, err)
	}
	return nil
}

// Weigh sets the group's share of a busy processor: from 1 to 10000, and 100 by default, as in cpu.weight of cgroup v2.
func (h Hierarchies) Weigh(group string, weight int) error {
	const sharesOfWeight100 = 1024
	if h.Unified {
		return os.WriteFile(filepath.Join(root, group, "cpu.weight"), []byte(strconv.Itoa(weight)), 0o644)
	}
	return os.WriteFile(filepath.Join(h.cpu, group, "cpu.shares"), []byte(strconv.Itoa(weight*sharesOfWeight100/100)), 0o644)
}

// EnterCPU moves a process into the group for processor time only, which only cgroup v1 supports.
func (h Hierarchies) EnterCPU(group string, pid int) error {
	return enter(h.cpu, group, pid)
}

// Children lists a group's direct children in the cpu controller's hierarchy; none for a missing group.
func (h Hierarchies) Children(group string) (children []string, err error) {
	entries, err := os.ReadDir(filepath.Join(h.cpu, group))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
		return nil, err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			children = append(children, filepath.Join(group, entry.Name()))
		}
	}
	return children, nil
}

// Processes lists a group's processes; none for a missing group.
func (h Hierarchies) Processes(group string) (ids []int, err error) {
	text, err := os.ReadFile(filepath.Join(h.cpu, group, "cgroup.procs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
		return nil, err
	}
	for field := range strings.FieldsSeq(string(text)) {
		id, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Enter moves a process into the group.
func (h Hierarchies) Enter(group string, pid int) error {
	for _, mount := range h.Mounts {
		if err := enter(mount, group, pid); err != nil {
			return err
		}
	}
	return nil
}

func enter(mount, group string, pid int) error {
	file := filepath.Join(mount, group, "cgroup.procs")
	if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("move process %d: %w", pid, err)
	}
	return nil
}

// Remove removes the group and its descendants, in every hierarchy. It waits
// briefly for its last processes to end.
func Remove(group string) error {
	deadline := time.Now().Add(removalWindow)
	for {
		left, err := removeOnce(group)
		if err == nil && len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(err, fmt.Errorf("control groups still in use: %s", strings.Join(left, ", ")))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func removeOnce(group string) (left []string, err error) {
	// With v2 the group lies in the root itself; with v1, and in the v2
	// tree beside it, in a folder of the root.
	tops := []string{filepath.Join(root, group)}
	hierarchies, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		return nil, err
	}
	for _, hierarchy := range hierarchies {
		if info, err := os.Lstat(hierarchy); err == nil && info.IsDir() {
			tops = append(tops, filepath.Join(hierarchy, group))
		}
	}
	for _, top := range tops {
		var folders []string
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return left, err
		}
		for _, folder := range slices.Backward(folders) {
			if err := unix.Rmdir(folder); err != nil && !errors.Is(err, unix.ENOENT) {
				left = append(left, folder)
			}
		}
	}
	return left, nil
}
