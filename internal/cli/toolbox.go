package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	to "k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// toolboxName begins the names of ephemeral toolbox containers: an ended one stays in the pod, and the next has another number.
const toolboxName = "toolbox-"

const toolboxPoll = 500 * time.Millisecond

// toolboxTimeout for the image to arrive.
const toolboxTimeout = 5 * time.Minute

// toolbox adds the toolbox to a node's pod, unless it runs there, and returns the container's name.
func (c *cluster) toolbox(ctx context.Context, pod *corev1.Pod, s *expandedExperiment, node topology.Node, streams streams) (string, error) {
	if name := runningToolbox(pod); name != "" {
		return name, nil
	}
	image := pod.Annotations[v1alpha1.AnnotationToolbox]
	if image == "" {
		return "", fmt.Errorf("node %[1]s of experiment %[2]s knows no toolbox, as its operator is older than this command: kubectl debug -n %[3]s -it %[4]s --profile=restricted --image=IMAGE brings an image of yours",
			node.Name, s.Name, s.Namespace, pod.Name)
	}
	name := ""
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the kubelet writes the pod's status at any time
		if err := c.kube.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		name = toolboxName + fmt.Sprint(len(pod.Spec.EphemeralContainers)+1)
		before := pod.DeepCopy()
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, toolboxContainer(name, image))
		return c.kube.SubResource("ephemeralcontainers").Patch(ctx, pod, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{}))
	})
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "PodSecurity"):
		return "", fmt.Errorf("the namespace's Pod Security refuses the toolbox: %w", err)
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("%w: --toolbox needs the right to patch pods/ephemeralcontainers, which the role vignette-experimenter has", err)
	case err != nil:
		return "", explain(err)
	}
	fmt.Fprintf(streams.err, "Adding the toolbox to node %s ...\n", node.Name)
	return name, c.awaitToolbox(ctx, client.ObjectKeyFromObject(pod), name, image)
}

// toolboxContainer sleeps until the pod ends; shells run in it. It satisfies Pod Security `restricted`.
func toolboxContainer(name, image string) corev1.EphemeralContainer {
	return corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/bin/sleep", "infinity"},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: to.To(false), RunAsNonRoot: to.To(true),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}}
}

// runningToolbox is the name of a toolbox that runs in the pod; empty for none.
func runningToolbox(pod *corev1.Pod) string {
	at := slices.IndexFunc(pod.Status.EphemeralContainerStatuses, func(s corev1.ContainerStatus) bool {
		return strings.HasPrefix(s.Name, toolboxName) && s.State.Running != nil
	})
	if at < 0 {
		return ""
	}
	return pod.Status.EphemeralContainerStatuses[at].Name
}

// awaitToolbox waits until the container runs.
func (c *cluster) awaitToolbox(ctx context.Context, key client.ObjectKey, name, image string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, toolboxTimeout, fmt.Errorf("the toolbox does not start within %s: kubectl -n %s describe pod %s tells why", toolboxTimeout, key.Namespace, key.Name))
	defer cancel()
	for {
		pod := &corev1.Pod{}
		if err := c.kube.Get(ctx, key, pod); err != nil {
			return explain(err)
		}
		for _, status := range pod.Status.EphemeralContainerStatuses {
			if status.Name != name {
				continue
			}
			if status.State.Running != nil {
				return nil
			}
			if err := toolboxFailure(status.State, image, key); err != nil {
				return err
			}
		}
		if pause(ctx, toolboxPoll) != nil {
			return context.Cause(ctx)
		}
	}
}

// toolboxFailure explains why a container will not run, if that is certain.
func toolboxFailure(state corev1.ContainerState, image string, key client.ObjectKey) error {
	switch {
	case state.Terminated != nil:
		return fmt.Errorf("the toolbox ended at once (%s): is %s the toolbox's image? %s", state.Terminated.Reason, image, oneLine(state.Terminated.Message))
	case state.Waiting == nil:
		return nil
	case slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}, state.Waiting.Reason):
		return fmt.Errorf("the cluster cannot get the toolbox's image %s (%s): have it put into the registry, or name another one by the chart's images.toolbox. %s",
			image, state.Waiting.Reason, oneLine(state.Waiting.Message))
	case strings.HasPrefix(state.Waiting.Reason, "Create"), state.Waiting.Reason == "RunContainerError":
		return fmt.Errorf("the toolbox cannot start (%s): %s; kubectl -n %s describe pod %s tells more", state.Waiting.Reason, oneLine(state.Waiting.Message), key.Namespace, key.Name)
	}
	return nil
}
