package objects

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// migrationLabel is on the pods to which KubeVirt migrates a machine, which those of experiments do not support.
const migrationLabel = kubevirtv1.MigrationJobLabel

// LoadNodes finds the pods of the experiment and its virtual machines by their owners' UIDs. Users can set the labels.
func (o *Objects) LoadNodes(ctx context.Context, s *scope.Scope) error {
	s.Pods = map[string]*corev1.Pod{}
	if err := o.loadVMs(ctx, s); err != nil {
		return err
	}
	var list corev1.PodList
	err := o.Client.List(ctx, &list, SelectOwnedBy(s.Experiment, s.Experiment.Namespace)...)
	for i := range list.Items {
		if node, ok := nodeOf(s, &list.Items[i]); ok {
			s.Pods[node] = &list.Items[i]
		}
	}
	return err
}

// loadVMs finds the experiment's virtual machines by their owner's UID. They are not cached, because a cluster without
// KubeVirt does not have the kind to watch.
func (o *Objects) loadVMs(ctx context.Context, s *scope.Scope) error {
	s.VMs = nil
	if !s.UsesVMs() {
		return nil
	}
	s.VMs = map[string]*kubevirtv1.VirtualMachineInstance{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kubevirtv1.VirtualMachineInstanceGroupVersionKind)
	err := o.Live.List(ctx, list, client.InNamespace(s.Experiment.Namespace), client.MatchingLabels{v1alpha1.LabelExperimentUID: string(s.Experiment.UID)})
	if meta.IsNoMatchError(err) {
		return nil // without KubeVirt there are no machines
	}
	for i := range list.Items {
		vm := &kubevirtv1.VirtualMachineInstance{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, vm); err != nil {
			return fmt.Errorf("VirtualMachineInstance %s: %w", list.Items[i].GetName(), err)
		}
		if metav1.IsControlledBy(vm, s.Experiment) {
			s.VMs[vm.Labels[v1alpha1.LabelNode]] = vm
		}
	}
	return err
}

// UnstructuredVM converts a machine by JSON, because the runtime's converter does not support unsigned numbers.
func UnstructuredVM(vm *kubevirtv1.VirtualMachineInstance) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(vm)
	u := &unstructured.Unstructured{}
	if err == nil {
		err = u.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("VirtualMachineInstance %s: %w", vm.Name, err)
	}
	return u, nil
}

// nodeOf returns the node of a pod that the experiment owns, directly or by its virtual machine. It does not trust labels
// without the owner, because users can set them.
func nodeOf(s *scope.Scope, pod *corev1.Pod) (node string, ok bool) {
	if metav1.IsControlledBy(pod, s.Experiment) {
		return pod.Labels[v1alpha1.LabelNode], true
	}
	for node, vm := range s.VMs {
		if metav1.IsControlledBy(pod, vm) && pod.Labels[migrationLabel] == "" {
			return node, true
		}
	}
	return "", false
}

// FindMissing asks the API server for pods that the cache does not show, before they are recorded as lost. It skips some nodes.
func (o *Objects) FindMissing(ctx context.Context, s *scope.Scope, skip func(node string) bool) error {
	for _, node := range s.Topology.Nodes {
		if s.Pods[node.Name] != nil || skip(node.Name) {
			continue
		}
		if node.IsVM() {
			if err := o.findLauncher(ctx, s, node.Name); err != nil {
				return err
			}
			continue
		}
		var pod corev1.Pod
		key := types.NamespacedName{Namespace: s.Experiment.Namespace, Name: render.PodName(s.Experiment.Name, node.Name)}
		err := o.Live.Get(ctx, key, &pod)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && metav1.IsControlledBy(&pod, s.Experiment) {
			s.Pods[node.Name] = &pod
		}
	}
	return nil
}

// findLauncher asks the API server for the launcher of a virtual machine.
func (o *Objects) findLauncher(ctx context.Context, s *scope.Scope, node string) error {
	vm := s.VMs[node]
	if vm == nil {
		return nil
	}
	var list corev1.PodList
	if err := o.Live.List(ctx, &list, client.InNamespace(vm.Namespace), client.MatchingLabels{kubevirtv1.CreatedByLabel: string(vm.UID)}); err != nil {
		return err
	}
	for i := range list.Items {
		if of, ok := nodeOf(s, &list.Items[i]); ok && of == node {
			s.Pods[node] = &list.Items[i]
		}
	}
	return nil
}

// DeleteNodes deletes pods and virtual machines, and returns what is left. KubeVirt deletes a launcher with its machine.
func (o *Objects) DeleteNodes(ctx context.Context, s *scope.Scope) (left []string, err error) {
	for _, node := range scope.SortedKeys(s.VMs) {
		left = append(left, "VirtualMachineInstance "+s.VMs[node].Name)
		vm, err := UnstructuredVM(s.VMs[node])
		if err == nil {
			err = o.Delete(ctx, vm)
		}
		if err != nil {
			return left, err
		}
	}
	for _, node := range scope.SortedKeys(s.Pods) {
		left = append(left, "pod "+s.Pods[node].Name)
		if s.VMs[node] != nil {
			continue
		}
		if err := o.Delete(ctx, s.Pods[node]); err != nil {
			return left, err
		}
	}
	return left, nil
}
