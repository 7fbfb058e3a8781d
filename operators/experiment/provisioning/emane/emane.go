// Package emane creates a pod of EMANE for each network with that engine and host of its members.
package emane

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

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scenarios"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Pods of EMANE.
type Pods struct {
	Objects *objects.Objects
	// Scenarios returns compiled scenarios, whose antenna profiles EMANE needs as files.
	Scenarios scenarios.Store
}

// Ensure creates an EMANE pod for each host of a network's members, once all members are scheduled. It passes the
// pods' UIDs to radiod.
func (p *Pods) Ensure(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.UsesEMANE() {
		return false, nil
	}
	networks, err := p.Objects.RadioNetworks(ctx, s)
	if err != nil {
		return true, err
	}
	for i := range networks {
		network := &networks[i]
		hosts := membersByHost(network, s.Pods)
		if network.Spec.Engine != v1alpha1.EngineEMANE || hosts == nil {
			continue
		}
		pods := []v1alpha1.EMANEPod{}
		// All hosts of a network share them, and a scenario may be large. Where all pods exist nothing is fetched.
		antennas := sync.OnceValues(func() (*emane.Antennas, error) { return p.antennasOf(ctx, s, network) })
		for _, host := range scope.SortedKeys(hosts) {
			uid, err := p.ensurePod(ctx, s, network, host, hosts[host], antennas)
			if err != nil || s.JustFailed || s.Setback != nil {
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
		err := client.IgnoreAlreadyExists(p.Objects.Create(ctx, render.EMANEBudget(network, len(pods))))
		if stop, err := objects.HandleCreation(s, err, scope.ReasonPodRefused, "the PodDisruptionBudget of EMANE of network "+network.Spec.Network); stop || err != nil {
			return true, err
		}
		before := network.DeepCopy()
		network.Spec.EMANE = pods
		if err := p.Objects.Client.Patch(ctx, network, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
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

// ensurePod returns the UID of a network's pod on a host, empty while it must wait for it. It calls antennasOf only if it
// creates the pod.
func (p *Pods) ensurePod(ctx context.Context, s *scope.Scope, network *v1alpha1.RadioNetwork, host string, members []v1alpha1.Member,
	antennasOf func() (*emane.Antennas, error)) (types.UID, error) {
	var existing corev1.Pod
	key := types.NamespacedName{Namespace: network.Namespace, Name: render.EMANEPodName(network.Name, host)}
	err := p.Objects.Client.Get(ctx, key, &existing)
	if apierrors.IsNotFound(err) {
		err = p.Objects.Live.Get(ctx, key, &existing) // the cache may be behind
	}
	if err == nil && !metav1.IsControlledBy(&existing, network) {
		s.Experiment.Status.Message = fmt.Sprintf("waiting for the deletion of pod %s of an earlier network", existing.Name)
		s.RequeueAfter(scope.PollInterval)
		return "", nil
	}
	if err == nil || !apierrors.IsNotFound(err) {
		return existing.UID, err
	}
	antennas, err := antennasOf()
	if err != nil {
		s.Experiment.Status.Message = fmt.Sprintf("cannot read the antenna profiles of scenario %s, which EMANE needs, from the server; trying again", s.Scenario.Name)
		return "", err
	}
	pod, files, err := render.EMANEPod(network, host, members, antennas, s.Options)
	if err != nil {
		s.Fail(scope.ReasonPodRefused, "EMANE of network %s: %v", network.Spec.Network, err)
		return "", nil
	}
	for _, object := range []client.Object{files, pod} {
		err := client.IgnoreAlreadyExists(p.Objects.Create(ctx, object))
		if stop, err := objects.HandleCreation(s, err, scope.ReasonPodRefused, fmt.Sprintf("EMANE of network %s on host %s", network.Spec.Network, host)); stop || err != nil {
			return "", err
		}
	}
	return pod.UID, nil
}

// Check fails an experiment with an EMANE pod that cannot become ready, or sets it back.
func (p *Pods) Check(ctx context.Context, s *scope.Scope) error {
	if !s.UsesEMANE() {
		return nil
	}
	networks, err := p.Objects.RadioNetworks(ctx, s)
	if err != nil {
		return err
	}
	pods, err := p.Objects.EMANEPods(ctx, s, networks)
	for _, name := range scope.SortedKeys(pods) {
		pod := pods[name]
		trouble := nodes.PodTrouble(pod, pod.CreationTimestamp.Time, s.Now)
		if trouble == nil || s.Failure() != nil {
			continue
		}
		why := fmt.Errorf("EMANE of network %s on host %s: %s", pod.Labels[v1alpha1.LabelNetwork], pod.Spec.NodeName, strings.TrimPrefix(trouble.Message, "app emane: "))
		if trouble.Passes {
			s.Setback = &scope.Setback{Reason: trouble.Reason, Err: why}
		} else {
			s.Fail(trouble.Reason, "%v", why)
		}
	}
	return err
}

// Progress describes how many EMANE pods of each network run, by network.
func Progress(networks []v1alpha1.RadioNetwork, pods map[string]*corev1.Pod) map[string]string {
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

// antennasOf are the antennas of a network's members, from its compiled scenario, which radiod replays too. It returns nil if
// there are no antenna profiles.
func (p *Pods) antennasOf(ctx context.Context, s *scope.Scope, network *v1alpha1.RadioNetwork) (antennas *emane.Antennas, err error) {
	if network.Spec.Scenario == "" || s.Scenario == nil || s.Scenario.Statistics.AntennaProfiles == "" {
		return nil, nil
	}
	err = scenarios.Use(ctx, p.Scenarios, network.Spec.Scenario, func(compiled *scenario.Scenario) error {
		antennas = emane.NewAntennas(&network.Spec, compiled)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("antenna profiles of scenario %s: %w", s.Scenario.Name, err)
	}
	return antennas, nil
}
