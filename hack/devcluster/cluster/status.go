package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"vignette.dev/vignette/hack/devcluster/network"
)

const statusTimeout = 5 * time.Second

// Status describes the cluster for people. The error says that it is not up.
func (c *Cluster) Status(ctx context.Context) (string, error) {
	var b strings.Builder
	if err := c.mustExist(); err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "cluster    %s (%s)\nAPI server %s\n", c.Name, c.Dir, c.plan().APIServer())
	down := 0
	for n := 1; n <= c.state.Nodes; n++ {
		p, alive := c.running(n)
		text := fmt.Sprintf("runs, process %d", p.PID)
		if !alive {
			text = "is down"
			down++
		}
		fmt.Fprintf(&b, "node %-5s %s, address %s, logs in %s\n", network.NodeName(n), text, c.plan().NodeAddress(n).Addr(), c.NodeLogs(n))
	}
	if down > 0 {
		return b.String(), fmt.Errorf("%d of %d nodes are down: hack/cluster up --name %s starts them", down, c.state.Nodes, c.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	pods, err := c.kubectl(ctx, "get", "nodes,pods", "-A", "--request-timeout=4s")
	b.WriteString("\n" + pods)
	return b.String(), err
}
