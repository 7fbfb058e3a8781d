package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"vignette.dev/vignette/hack/devcluster/network"
	"vignette.dev/vignette/hack/devcluster/progress"
)

const readyWindow = 3 * time.Minute

// ownDeployments are the cluster's own parts that run as pods.
var ownDeployments = []struct{ namespace, name string }{{"kube-system", "coredns"}, {"argo", "workflow-controller"}}

// waitUntilReady waits for every node and every own deployment of the
// cluster. State in the API server from before a node's start does not count.
func (c *Cluster) waitUntilReady(ctx context.Context, h *progress.Handle) error {
	for n := 1; n <= c.state.Nodes; n++ {
		h.Detail("node %s", network.NodeName(n))
		if err := c.wait(ctx, readyWindow, n, func() bool { return c.nodeReady(ctx, n) }); err != nil {
			return fmt.Errorf("node %s: %w", network.NodeName(n), err)
		}
	}
	if _, err := c.kubectl(ctx, "label", "node", network.NodeName(1), "node-role.kubernetes.io/control-plane=", "--overwrite"); err != nil {
		return err
	}
	for _, d := range ownDeployments {
		h.Detail("%s", d.name)
		_, err := c.kubectl(ctx, "-n", d.namespace, "rollout", "status", "deployment/"+d.name, "--timeout="+readyWindow.String())
		if err == nil {
			err = c.wait(ctx, readyWindow, 1, func() bool { return c.podsReady(ctx, d.namespace) })
		}
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", d.name, err, c.describePods(ctx, d.namespace))
		}
	}
	return nil
}

// nodeReady checks that the kubelet renews its lease, which it does every few seconds.
func (c *Cluster) nodeReady(ctx context.Context, number int) bool {
	name := network.NodeName(number)
	var lease struct {
		Spec struct{ RenewTime time.Time }
	}
	if c.get(ctx, &lease, "-n", "kube-node-lease", "lease", name) != nil || !c.sinceStart(name, lease.Spec.RenewTime) {
		return false
	}
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if c.get(ctx, &node, "node", name) != nil {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True"
		}
	}
	return false
}

// pods has the fields of a list of pods that readiness needs.
type pods struct {
	Items []struct {
		Metadata struct{ DeletionTimestamp *time.Time }
		Spec     struct{ NodeName string }
		Status   struct {
			ContainerStatuses []struct {
				Ready bool
				State struct {
					Running *struct{ StartedAt time.Time }
				}
			}
		}
	}
}

// podsReady checks that every container is ready, and was started after its node.
func (c *Cluster) podsReady(ctx context.Context, namespace string) bool {
	var list pods
	if c.get(ctx, &list, "-n", namespace, "pods") != nil {
		return false
	}
	return list.ready(c.sinceStart)
}

func (l pods) ready(sinceStart func(node string, t time.Time) bool) bool {
	ready := 0
	for _, pod := range l.Items {
		if pod.Metadata.DeletionTimestamp != nil {
			continue
		}
		for _, container := range pod.Status.ContainerStatuses {
			if !container.Ready || container.State.Running == nil || !sinceStart(pod.Spec.NodeName, container.State.Running.StartedAt) {
				return false
			}
			ready++
		}
	}
	return ready > 0
}

// sinceStart reports whether t is after a node's start; the API
// server writes whole seconds.
func (c *Cluster) sinceStart(nodeName string, t time.Time) bool {
	for n := 1; n <= c.state.Nodes; n++ {
		if network.NodeName(n) == nodeName {
			p, alive := c.running(n)
			return alive && !t.Before(p.Started.Truncate(time.Second))
		}
	}
	return false
}

// get decodes the output of "kubectl get": an object or a list.
func (c *Cluster) get(ctx context.Context, into any, args ...string) error {
	out, err := c.kubectl(ctx, append([]string{"get", "-o", "json"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

func (c *Cluster) describePods(ctx context.Context, namespace string) string {
	pods, err := c.kubectl(ctx, "-n", namespace, "get", "pods,events")
	if err != nil {
		return err.Error()
	}
	return pods
}
