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
)

// keepRadioApart moves radiod into a control group of its own, for processor time only, whenever it has been started. Clusters
// on machines of their own have less company, and real-time scheduling. Version 2 control groups cannot be split by
// controller: there it returns at once.
func (c Config) keepRadioApart(h cgroup.Hierarchies) {
	if h.Unified {
		return
	}
	seen := map[string]seenContainer{}
	repeat("control group of the radio", radioInterval, func() error { return c.moveRadio(h, seen) })
}

// seenContainer is one that was there before: since when, and whether it need not be looked at again.
type seenContainer struct {
	since   time.Time
	settled bool
}

// moveRadio looks at the containers that are not settled yet.
func (c Config) moveRadio(h cgroup.Hierarchies, seen map[string]seenContainer) error {
	containers, err := c.containers(h)
	problems := []error{err}
	existing := map[string]bool{}
	for _, container := range containers {
		existing[container] = true
		s, before := seen[container]
		if s.settled {
			continue
		}
		if !before {
			s.since = time.Now()
		}
		moved, err := moveProgram(h, container, c.radioGroup())
		problems = append(problems, err)
		s.settled = moved || time.Since(s.since) > radioPatience
		seen[container] = s
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

// moveProgram moves those of a container's processes that run the radio's program, if there are any.
func moveProgram(h cgroup.Hierarchies, container, to string) (moved bool, err error) {
	processes, err := h.Processes(container)
	if err != nil {
		return false, err
	}
	for _, process := range processes {
		name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process), "comm"))
		if err != nil || strings.TrimSpace(string(name)) != radioProgram {
			continue // it has ended, or is another
		}
		if err := h.EnterCPU(to, process); err != nil {
			return moved, err
		}
		moved = true
	}
	return moved, nil
}
