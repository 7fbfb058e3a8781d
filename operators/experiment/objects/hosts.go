package objects

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/experiment/scope"
)

// UnreadyHosts names the hosts of the experiment's nodes that Kubernetes does not call ready, and their nodes. It is empty
// if there are none. Agents on such a host are silent because of it.
func (o *Objects) UnreadyHosts(ctx context.Context, s *scope.Scope) (string, error) {
	const shownNodes = 3
	byHost := map[string][]string{}
	for _, node := range scope.SortedKeys(s.Pods) {
		if name := s.Pods[node].Spec.NodeName; name != "" {
			byHost[name] = append(byHost[name], node)
		}
	}
	var found []string
	for _, name := range scope.SortedKeys(byHost) {
		var host corev1.Node
		switch err := o.Client.Get(ctx, client.ObjectKey{Name: name}, &host); {
		case client.IgnoreNotFound(err) != nil:
			return "", err
		case err != nil:
			found = append(found, fmt.Sprintf("host %s of nodes %s is not in the cluster", name, wording.Some(byHost[name], shownNodes)))
		default:
			if ready := queue.ReadyCondition(&host); ready != nil && ready.Status != corev1.ConditionTrue {
				found = append(found, fmt.Sprintf("host %s of nodes %s has not been ready since %s", name, wording.Some(byHost[name], shownNodes),
					ready.LastTransitionTime.UTC().Format(time.RFC3339)))
			}
		}
	}
	return strings.Join(found, "; "), nil
}
