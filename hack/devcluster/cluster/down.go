package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"vignette.dev/vignette/hack/devcluster/cgroup"
	"vignette.dev/vignette/hack/devcluster/network"
	"vignette.dev/vignette/hack/devcluster/progress"
)

// DownSteps returns the steps that end the cluster; with purge they delete its data too.
func (c *Cluster) DownSteps(purge bool) []progress.Step {
	unlock := func() {}
	steps := []progress.Step{
		{Label: "stop the nodes of cluster " + c.Name, Do: func(ctx context.Context, h *progress.Handle) (err error) {
			unlock, err = c.lock(ctx, func() { h.Detail("waiting: another process works on this cluster") })
			if err != nil {
				return err
			}
			if err := c.reload(); err != nil {
				return err
			}
			if c.state.Nodes == 0 {
				h.Result("there is no such cluster")
				return nil
			}
			return c.stopNodes(h)
		}},
		{Label: "remove interfaces and control groups", Expect: time.Second, Do: func(context.Context, *progress.Handle) error {
			if c.state.Nodes == 0 {
				return nil
			}
			return errors.Join(c.host().Down(), cgroup.Remove(c.cgroup()))
		}},
	}
	last := progress.Step{Label: "keep its data (down --purge removes it)", Do: func(context.Context, *progress.Handle) error {
		unlock()
		return nil
	}}
	if purge {
		last = progress.Step{Label: "remove its data", Do: func(context.Context, *progress.Handle) error {
			defer unlock()
			return c.Purge()
		}}
	}
	return append(steps, last)
}

// stopNodes kills PID 1 of each node. The kernel then ends all processes in its PID
// namespace, and with the last one its mounts and interfaces.
func (c *Cluster) stopNodes(h *progress.Handle) error {
	var problems []error
	stopped := 0
	for n := 1; n <= network.MaxNodes; n++ {
		p, err := readProcess(c.processFile(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if p.alive() {
			h.Detail("%s", network.NodeName(n))
			stopped++
		}
		if err := p.kill(); err != nil {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, os.Remove(c.processFile(n)))
	}
	h.Result("%d stopped", stopped)
	return errors.Join(problems...)
}

// NodeLogs is the folder with the logs of a node's programs.
func (c *Cluster) NodeLogs(node int) string {
	return filepath.Join(c.nodeDir(node), "var/log/devcluster")
}
