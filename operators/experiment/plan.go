package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

// putPlan tells the server a plan, unless it has that very plan.
func (r *Reconciler) putPlan(ctx context.Context, plan runapi.Plan) error {
	state, err := r.Runs.State(ctx, plan.UID)
	if err != nil && !client.IsNotFound(err) {
		return err
	}
	if err == nil && samePlan(state.Plan, plan) {
		return nil
	}
	_, err = r.Runs.PutPlan(ctx, plan)
	return err
}

// samePlan compares what would travel: nil and empty are the same where JSON leaves both out.
func samePlan(a, b runapi.Plan) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// environment is the rest of the run record: where each node ran, on what, and which images.
func (r *Reconciler) environment(ctx context.Context, s *scope, known map[string]string) (map[string]string, error) {
	var hosts corev1.NodeList
	if err := r.Client.List(ctx, &hosts); err != nil {
		return nil, err
	}
	environment := map[string]string{"operator": r.Options.Version}
	used := map[string]bool{}
	for node, pod := range s.pods {
		environment["host/"+node] = pod.Spec.NodeName
		used[pod.Spec.NodeName] = true
		for _, status := range pod.Status.ContainerStatuses {
			environment[fmt.Sprintf("image/%s/%s", node, status.Name)] = status.Image + " " + status.ImageID
		}
	}
	for _, host := range hosts.Items {
		if used[host.Name] {
			info := host.Status.NodeInfo
			environment["kernel/"+host.Name] = info.KernelVersion
			environment["kubelet/"+host.Name] = info.KubeletVersion
			environment["runtime/"+host.Name] = info.ContainerRuntimeVersion
		}
	}
	// What was true at the start stays: pods that ended since tell less.
	maps.Copy(environment, known)
	return environment, nil
}
