package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
)

// +kubebuilder:rbac:groups="",namespace=vignette-system,resources=configmaps,verbs=list;create;delete

// incidentEMANEFailed is for a network that has lost an EMANE pod.
const incidentEMANEFailed = "EMANEFailed"

// usesEMANE reports whether a network of the experiment uses EMANE.
func (s *scope) usesEMANE() bool {
	return slices.ContainsFunc(s.experiment.Spec.Networks, func(n v1alpha1.Network) bool { return n.Engine == v1alpha1.EngineEMANE })
}

// emanePods are the EMANE pods of the experiment's networks, by name, found by the UIDs of their owners.
func (r *Reconciler) emanePods(ctx context.Context, s *scope, networks []v1alpha1.RadioNetwork) (map[string]*corev1.Pod, error) {
	if !s.usesEMANE() {
		return nil, nil
	}
	var list corev1.PodList
	err := r.Client.List(ctx, &list, selectOwnedBy(s.experiment, r.Options.Render.Namespace)...)
	found := map[string]*corev1.Pod{}
	for i := range list.Items {
		if pod := &list.Items[i]; ownedByAny(pod, networks) {
			found[pod.Name] = pod
		}
	}
	return found, err
}

func ownedByAny(object metav1.Object, networks []v1alpha1.RadioNetwork) bool {
	return slices.ContainsFunc(networks, func(n v1alpha1.RadioNetwork) bool { return metav1.IsControlledBy(object, &n) })
}

// ensureEMANE creates an EMANE pod for each host of a network's members, once all members are scheduled. It passes the
// pods' UIDs to radiod.
func (r *Reconciler) ensureEMANE(ctx context.Context, s *scope) (bool, error) {
	if !s.usesEMANE() {
		return false, nil
	}
	networks, err := r.radioNetworks(ctx, s)
	if err != nil {
		return true, err
	}
	for i := range networks {
		network := &networks[i]
		hosts := membersByHost(network, s.pods)
		if network.Spec.Engine != v1alpha1.EngineEMANE || hosts == nil {
			continue
		}
		pods := []v1alpha1.EMANEPod{}
		// All hosts of a network share them, and a scenario may be large. Where all pods exist nothing is fetched.
		antennas := sync.OnceValues(func() (*emane.Antennas, error) { return r.antennasOf(ctx, s, network) })
		for _, host := range sortedKeys(hosts) {
			uid, err := r.ensureEMANEPod(ctx, s, network, host, hosts[host], antennas)
			if err != nil || s.justFailed {
				return true, err
			}
			if uid == "" {
				return false, nil // the pod is still to come
			}
			pods = append(pods, v1alpha1.EMANEPod{Host: host, PodUID: uid})
		}
		if slices.Equal(network.Spec.EMANE, pods) {
			continue
		}
		before := network.DeepCopy()
		network.Spec.EMANE = pods
		if err := r.Client.Patch(ctx, network, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return true, err
		}
	}
	return false, nil
}

// membersByHost are a network's members by host, nil while a pod of them is not scheduled.
func membersByHost(network *v1alpha1.RadioNetwork, pods map[string]*corev1.Pod) map[string][]v1alpha1.Member {
	hosts := map[string][]v1alpha1.Member{}
	for _, member := range network.Spec.Members {
		pod := pods[member.Node]
		if pod == nil || pod.UID != member.PodUID || pod.Spec.NodeName == "" {
			return nil
		}
		hosts[pod.Spec.NodeName] = append(hosts[pod.Spec.NodeName], member)
	}
	return hosts
}

// ensureEMANEPod returns the UID of a network's pod on a host, empty while it must wait for it. It calls antennasOf only if it
// creates the pod.
func (r *Reconciler) ensureEMANEPod(ctx context.Context, s *scope, network *v1alpha1.RadioNetwork, host string, members []v1alpha1.Member,
	antennasOf func() (*emane.Antennas, error)) (types.UID, error) {
	var existing corev1.Pod
	key := types.NamespacedName{Namespace: network.Namespace, Name: render.EMANEPodName(network.Name, host)}
	err := r.Client.Get(ctx, key, &existing)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, &existing) // the cache may be behind
	}
	if err == nil && !metav1.IsControlledBy(&existing, network) {
		s.experiment.Status.Message = fmt.Sprintf("waiting for the deletion of pod %s of an earlier network", existing.Name)
		s.requeueAfter(pollInterval)
		return "", nil
	}
	if err == nil || !apierrors.IsNotFound(err) {
		return existing.UID, err
	}
	antennas, err := antennasOf()
	if err != nil {
		s.experiment.Status.Message = fmt.Sprintf("cannot read the antenna profiles of scenario %s, which EMANE needs, from the server; trying again", s.scenario.Name)
		return "", err
	}
	pod, files, err := render.EMANEPod(network, host, members, antennas, r.Options.Render)
	if err != nil {
		s.fail(ReasonPodRefused, "EMANE of network %s: %v", network.Spec.Network, err)
		return "", nil
	}
	for _, object := range []client.Object{files, pod} {
		err := r.Client.Create(ctx, object)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			s.fail(ReasonPodRefused, "the cluster refuses EMANE of network %s on host %s: %v", network.Spec.Network, host, err)
			return "", nil
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return "", err
		}
	}
	return pod.UID, nil
}

// checkEMANE fails an experiment with an EMANE pod that cannot become ready.
func (r *Reconciler) checkEMANE(ctx context.Context, s *scope) error {
	if !s.usesEMANE() {
		return nil
	}
	networks, err := r.radioNetworks(ctx, s)
	if err != nil {
		return err
	}
	pods, err := r.emanePods(ctx, s, networks)
	for _, name := range sortedKeys(pods) {
		pod := pods[name]
		if reason, message := podTrouble(pod, s.now); reason != "" {
			s.fail(reason, "EMANE of network %s on host %s: %s", pod.Labels[v1alpha1.LabelNetwork], pod.Spec.NodeName, strings.TrimPrefix(message, "app emane: "))
		}
	}
	return err
}

// emaneProgress describes how many EMANE pods of each network run, by network.
func emaneProgress(networks []v1alpha1.RadioNetwork, pods map[string]*corev1.Pod) map[string]string {
	notes := map[string]string{}
	for i := range networks {
		spec := &networks[i].Spec
		if spec.Engine != v1alpha1.EngineEMANE {
			continue
		}
		running := 0
		for _, entry := range spec.EMANE {
			pod := pods[render.EMANEPodName(networks[i].Name, entry.Host)]
			if pod != nil && pod.UID == entry.PodUID && pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		notes[spec.Network] = fmt.Sprintf("; %d of %d EMANE pods run", running, len(spec.EMANE))
	}
	return notes
}

// recordEMANELosses records lost EMANE pods, each once. Before T0 the run fails, later it continues without the network.
func (r *Reconciler) recordEMANELosses(ctx context.Context, s *scope, incidents []runapi.Incident) error {
	if !s.usesEMANE() {
		return nil
	}
	networks, err := r.radioNetworks(ctx, s)
	if err != nil {
		return err
	}
	pods, err := r.emanePods(ctx, s, networks)
	if err != nil {
		return err
	}
	for i := range networks {
		for _, entry := range networks[i].Spec.EMANE {
			pod := pods[render.EMANEPodName(networks[i].Name, entry.Host)]
			l := nodeLoss(entry.Host, pod)
			if l == nil {
				continue
			}
			reason := fmt.Sprintf("EMANE of network %s on host %s: %s", networks[i].Spec.Network, entry.Host, l.reason)
			if s.experiment.Status.T0 == nil || s.elapsed() < 0 {
				s.fail(ReasonNodeFailed, "before T0: %s", reason)
				return nil
			}
			if slices.ContainsFunc(incidents, func(i runapi.Incident) bool { return i.What == incidentEMANEFailed && i.Reason == reason }) {
				continue
			}
			incident := runapi.Incident{What: incidentEMANEFailed, FromSeconds: s.secondsAfterT0(l.at), Reason: reason}
			if err := r.Runs.Incident(ctx, string(s.experiment.UID), incident); err != nil {
				return err
			}
			s.warningEvent(incidentEMANEFailed, "%.1f s after T0: %s; the network does not work there any more", incident.FromSeconds, reason)
		}
	}
	return nil
}

// deleteEMANE deletes the pods and files of networks with engine EMANE, and returns what is left.
func (r *Reconciler) deleteEMANE(ctx context.Context, s *scope, networks []v1alpha1.RadioNetwork) (left []string, err error) {
	if !s.usesEMANE() {
		return nil, nil
	}
	pods, err := r.emanePods(ctx, s, networks)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(pods) {
		left = append(left, "pod "+name)
		if err := r.deleteOne(ctx, pods[name]); err != nil {
			return left, err
		}
	}
	// A cache would have to hold all ConfigMaps of the cluster.
	var files corev1.ConfigMapList
	err = r.Live.List(ctx, &files, client.InNamespace(r.Options.Render.Namespace), client.MatchingLabels{v1alpha1.LabelExperimentUID: string(s.experiment.UID)})
	if err != nil {
		return left, err
	}
	for i := range files.Items {
		if !ownedByAny(&files.Items[i], networks) {
			continue
		}
		left = append(left, "ConfigMap "+files.Items[i].Name)
		if err := r.deleteOne(ctx, &files.Items[i]); err != nil {
			return left, err
		}
	}
	return left, nil
}

// experimentOfEMANEPod is the experiment of an EMANE pod, by labels that the operator has set.
func experimentOfEMANEPod(_ context.Context, object client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "RadioNetwork" {
		return nil
	}
	labels := object.GetLabels()
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: labels[v1alpha1.LabelExperimentNamespace], Name: labels[v1alpha1.LabelExperiment]}}}
}
