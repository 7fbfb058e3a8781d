package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kind is a way of starving the carriers of several networks, at random moments.
type kind struct {
	name   string
	starve func(beds []*bed, seed int64, t0 time.Time) error
}

var unstarved = &kind{"unstarved", func([]*bed, int64, time.Time) error { return nil }}

// kindsHere returns the kinds that this machine supports.
func kindsHere() []*kind {
	kinds := []*kind{{"stop 50 ms", stops(6, 50*time.Millisecond)}, {"stop 500 ms", stops(2, 500*time.Millisecond)}, {"stop 5 s", stops(1, 5*time.Second)}}
	if root, _ := groupRoot(); root == "" {
		fmt.Println("quota and load are left out: this machine has no control groups for processor time")
		return kinds
	}
	return append(kinds, &kind{"quota", quota}, &kind{"load", load})
}

// moments returns the beginnings of count intervals that end before the last message.
func moments(seed int64, stream, count int, length time.Duration) (all []time.Duration) {
	random := rand.New(rand.NewPCG(uint64(seed), uint64(stream))) //nolint:gosec // no secret
	for range count {
		all = append(all, time.Duration(random.Int64N(int64(*duration-length))))
	}
	slices.Sort(all)
	return all
}

// stops each carrier count times.
func stops(count int, length time.Duration) func([]*bed, int64, time.Time) error {
	return func(beds []*bed, seed int64, t0 time.Time) error {
		var wait sync.WaitGroup
		for i, b := range beds {
			wait.Go(func() {
				for _, at := range moments(seed, i, count, length) {
					time.Sleep(time.Until(t0.Add(at)))
					_ = b.carrier.Process.Signal(unix.SIGSTOP)
					time.Sleep(length)
					_ = b.carrier.Process.Signal(unix.SIGCONT)
				}
			})
		}
		wait.Wait()
		return nil
	}
}

// starvedShare: a run is starved for one part in that many.
const starvedShare = 5

// setting of a control group, as both versions of control groups have it.
type setting struct{ v1, value1, v2, value2 string }

var (
	// onePercent of a processor is less than a carrier needs.
	onePercent = setting{"cpu.cfs_quota_us", "1000", "cpu.max", "1000 100000"}
	// smallWeight lets clients go before a group.
	smallWeight = setting{"cpu.shares", "100", "cpu.weight", "10"}
)

// quota gives each carrier 1 % of a processor for a part of the run.
func quota(beds []*bed, seed int64, t0 time.Time) error {
	return inGroup(beds, seed, t0, onePercent, func(*group) error { return nil })
}

// load makes programs in each carrier's group, with better priority than it, use every processor for a part
// of the run.
func load(beds []*bed, seed int64, t0 time.Time) error {
	var burners []*exec.Cmd
	err := inGroup(beds, seed, t0, smallWeight, func(g *group) (err error) {
		for range runtime.NumCPU() {
			burner := exec.Command("sh", "-c", "while :; do :; done")
			if err := burner.Start(); err != nil {
				return err
			}
			burners = append(burners, burner)
			err = errors.Join(err, g.write("cgroup.procs", strconv.Itoa(burner.Process.Pid)))
		}
		return errors.Join(err, lowerPriority(g.pid))
	})
	for _, burner := range burners {
		_ = burner.Process.Kill()
		_ = burner.Wait()
	}
	return err
}

// lowerPriority gives all threads of a process the lowest priority.
func lowerPriority(pid int) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		err = errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, id, 19))
	}
	return err
}

// group is the control group of a carrier.
type group struct {
	root, path string
	pid        int
}

// groupRoot is where control groups with processor time are, of either version.
func groupRoot() (root string, v2 bool) {
	if text, err := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control"); err == nil && slices.Contains(strings.Fields(string(text)), "cpu") {
		return "/sys/fs/cgroup", true
	}
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); err == nil {
		return "/sys/fs/cgroup/cpu", false
	}
	return "", false
}

// inGroup puts each carrier into its own group for a part of the run that begins at a random moment.
func inGroup(beds []*bed, seed int64, t0 time.Time, s setting, begin func(*group) error) (err error) {
	length := *duration / starvedShare
	time.Sleep(time.Until(t0.Add(moments(seed, 0, 1, length)[0])))
	root, v2 := groupRoot()
	name, value := s.v1, s.value1
	if v2 {
		name, value = s.v2, s.value2
	}
	var groups []*group
	for i, b := range beds {
		g := &group{root: root, path: filepath.Join(root, fmt.Sprintf("starve-%d-%d", os.Getpid(), i)), pid: b.carrier.Process.Pid}
		groups = append(groups, g)
		err = errors.Join(err, os.Mkdir(g.path, 0o755), g.write(name, value), g.write("cgroup.procs", strconv.Itoa(g.pid)), begin(g)) //nolint:gosec // no secret
	}
	time.Sleep(length)
	for _, g := range groups {
		err = errors.Join(err, g.release())
	}
	return err
}

func (g *group) write(name, value string) error {
	return os.WriteFile(filepath.Join(g.path, name), []byte(value), 0o644) //nolint:gosec // the kernel's file
}

// release returns the group's processes to the root, and removes it.
func (g *group) release() error {
	text, err := os.ReadFile(filepath.Join(g.path, "cgroup.procs"))
	for _, pid := range strings.Fields(string(text)) {
		err = errors.Join(err, os.WriteFile(filepath.Join(g.root, "cgroup.procs"), []byte(pid), 0o644)) //nolint:gosec // the kernel's file
	}
	return errors.Join(err, os.Remove(g.path))
}
