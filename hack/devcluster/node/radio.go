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
	// radioProgram carries the frames of the emulated radios.
	radioProgram = "radiod"
	// radioPatience with a new container whose program has not started yet.
	radioPatience = 2 * time.Minute
	// radioWeight beside that of all the rest of the node, which shares the two processors of a small machine with it. Among
	// the pods a release of a frame was seen to wait up to 130 ms for a burst of the API server's, whatever radiod's
	// niceness: the kernel first lets control groups that had less than their share catch up.
	radioWeight = 10000
	// routersWeight leaves most of a processor to radiod's routers, which are to come to their packets in time, and not all of it: with
	// hundreds of them agents waited up to 80 ms for their turn at a start.
	routersWeight = 200
)

// keepRadioApart moves radiod's processes into control groups of their own, for processor time only, whenever they have been started.
// Clusters on machines of their own have less company, and real-time scheduling. Version 2 control groups cannot be split by
// controller: there it returns at once.
func (c Config) keepRadioApart(h cgroup.Hierarchies) {
	if h.Unified {
		return
	}
	seen := map[string]*seenContainer{}
	repeat("control group of the radio", radioInterval, func() error { return c.moveRadio(h, seen) })
}

// seenContainer is one that was there before: since when, and whether it has been found to be radiod's.
type seenContainer struct {
	since time.Time
	radio bool
}

// moveRadio looks at radiod's containers, and at those that may become it: radiod starts processes at any time.
func (c Config) moveRadio(h cgroup.Hierarchies, seen map[string]*seenContainer) error {
	containers, err := c.containers(h)
	_, routersErr := c.movePrograms(h, c.radioGroup()) // which a worker in it has started
	problems := []error{err, routersErr}
	existing := map[string]bool{}
	for _, container := range containers {
		existing[container] = true
		s := seen[container]
		if s == nil {
			s = &seenContainer{since: time.Now()}
			seen[container] = s
		}
		if !s.radio && time.Since(s.since) > radioPatience {
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

// containers of all pods: kubepods/[burstable/|besteffort/]podUID/ID.
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

// movePrograms moves those of a group's processes that are radiod's to where they belong, and tells whether there are any.
func (c Config) movePrograms(h cgroup.Hierarchies, group string) (found bool, err error) {
	processes, err := h.Processes(group)
	for _, process := range processes {
		commandLine, readErr := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process), "cmdline"))
		to, ok := c.groupOf(strings.Split(string(commandLine), "\x00"))
		if readErr != nil || !ok {
			continue // it has ended, or is another
		}
		found = true
		if to != group {
			err = errors.Join(err, h.EnterCPU(to, process))
		}
	}
	return found, err
}

// groupOf a process of radiod's, by its command line: its first one starts the worker, which carries the frames and starts the routers.
func (c Config) groupOf(arguments []string) (group string, ok bool) {
	if program := filepath.Base(arguments[0]); len(arguments) < 2 || program != radioProgram && program != "exe" {
		return "", false
	}
	switch arguments[1] {
	case "hold", "worker":
		return c.radioGroup(), true
	case "routers":
		return c.routersGroup(), true
	}
	return "", false
}
