package node

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/hack/devcluster/cgroup"
)

const (
	radioInterval = 2 * time.Second
	// radioProgram transports the frames of the emulated radios.
	radioProgram = "radiod"
	// radioStartTimeout is how long a new container may take to start its program.
	radioStartTimeout = 2 * time.Minute
	// radioWeight is the weight beside all the rest of the node, which shares a small machine's two processors. Among
	// the pods, the release of a frame waited up to 130 ms for a burst of the API server, at any niceness of
	// radiod: the kernel first serves control groups that had less than their share.
	radioWeight = 10000
	// workerWeight gives most of a processor to radiod's worker, whose routers need their packets in time, but not all of it:
	// with hundreds of them agents waited up to 80 ms at a start.
	workerWeight = 200
)

// keepRadioApart moves radiod's processes into their own control groups, for processor time only, after each start.
// Clusters on their own machines have less load, and real-time scheduling. Version 2 control groups cannot be split by
// controller: there it returns at once.
func (c Config) keepRadioApart(h cgroup.Hierarchies) {
	if h.Unified {
		return
	}
	seen := map[string]*seenContainer{}
	repeat("control group of the radio", radioInterval, func() error { return c.moveRadio(h, seen) })
}

// seenContainer is a known container: since when, and whether it is radiod's.
type seenContainer struct {
	since time.Time
	radio bool
}

// moveRadio checks radiod's containers, and those that may become it: radiod starts processes at any time.
func (c Config) moveRadio(h cgroup.Hierarchies, seen map[string]*seenContainer) error {
	containers, err := c.containers(h)
	_, workerErr := c.movePrograms(h, c.radioGroup()) // a worker that the parent in it started
	problems := []error{err, workerErr}
	existing := map[string]bool{}
	for _, container := range containers {
		existing[container] = true
		s := seen[container]
		if s == nil {
			s = &seenContainer{since: time.Now()}
			seen[container] = s
		}
		if !s.radio && time.Since(s.since) > radioStartTimeout {
			continue
		}
		found, err := c.movePrograms(h, container)
		problems = append(problems, err)
		s.radio = s.radio || found
	}
	for container := range seen {
		if !existing[container] {
			delete(seen, container)
		}
	}
	return errors.Join(problems...)
}

// containers returns all pods' containers: kubepods/[burstable/|besteffort/]podUID/ID.
func (c Config) containers(h cgroup.Hierarchies) (containers []string, err error) {
	groups := []string{filepath.Join(c.group(), "kubepods")}
	for len(groups) > 0 {
		children, childErr := h.Children(groups[0])
		err = errors.Join(err, childErr)
		if strings.HasPrefix(filepath.Base(groups[0]), "pod") {
			containers = append(containers, children...)
			children = nil
		}
		groups = append(groups[1:], children...)
	}
	return containers, err
}

// movePrograms moves radiod's processes of a group to their groups, and reports whether there are any.
func (c Config) movePrograms(h cgroup.Hierarchies, group string) (found bool, err error) {
	processes, err := h.Processes(group)
	for _, process := range processes {
		commandLine, readErr := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process), "cmdline"))
		to, ok := c.groupOf(strings.Split(string(commandLine), "\x00"))
		if readErr != nil || !ok {
			continue // it has ended, or is another process
		}
		found = true
		if to != group {
			err = errors.Join(err, h.EnterCPU(to, process))
		}
	}
	return found, err
}

// groupOf returns the group of a radiod process by its command line. The first process starts the data plane and the worker, which routes.
func (c Config) groupOf(arguments []string) (group string, ok bool) {
	if program := filepath.Base(arguments[0]); len(arguments) < 2 || program != radioProgram {
		return "", false
	}
	switch arguments[1] {
	case "hold", "plane":
		return c.radioGroup(), true
	case "worker":
		return c.workerGroup(), true
	}
	return "", false
}
