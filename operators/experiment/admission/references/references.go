// Package references compiles the spec of an experiment and reads the objects that it names. Their errors
// become findings, for which the experiment is not accepted.
package references

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/checks"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/configmaps"
	"vignette.dev/vignette/operators/experiment/kueue"
	"vignette.dev/vignette/operators/experiment/scenarios"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Resolver reads what an experiment names, and finds why it cannot be accepted.
type Resolver struct {
	// Client reads from caches, Live from the API server.
	Client    client.Client
	Live      client.Reader
	Workloads *kueue.Workloads
	Clock     clock.PassiveClock
	// Namespace of the platform.
	Namespace string
	// ClusterCIDRs are address ranges of the cluster that the Kubernetes API does not report.
	ClusterCIDRs []netip.Prefix

	// Scenarios has the compiled scenarios; nil leaves distances between nodes that move unknown.
	Scenarios scenarios.Store

	specs             experimentCache
	distances         distances
	serviceRangeCache serviceRangeCache
}

// Resolve reads the objects that the experiment names. Existing radio networks hold the waveforms and the
// scenario's digest, so a later change of a Waveform has no effect on the run.
func (r *Resolver) Resolve(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Phase() != "" && s.Phase() != v1alpha1.PhaseQueued && s.Phase() != v1alpha1.PhaseProvisioning {
		return false, nil
	}
	s.Waveforms = map[string]v1alpha1.WaveformSpec{}
	for i, network := range s.Experiment.Spec.Networks {
		path := field.NewPath("spec", "networks").Index(i)
		if err := r.resolveWaveform(ctx, s, network, path); err != nil {
			return true, err
		}
	}
	if err := r.checkKueueInstalled(s); err != nil {
		return true, err
	}
	if err := errors.Join(r.checkVMs(ctx, s), r.checkNodeResources(ctx, s)); err != nil {
		return true, err
	}
	if err := r.resolveConfigMaps(ctx, s); err != nil {
		return true, err
	}
	if err := errors.Join(r.checkSecretsAndClaims(ctx, s), r.checkOpenManagement(ctx, s)); err != nil {
		return true, err
	}
	if wait, err := r.resolveScenario(ctx, s); wait || err != nil {
		return true, err
	}
	if r.measureDistances(ctx, s) {
		return true, nil
	}
	for _, err := range render.CheckEngine(&s.Experiment.Spec, s.Options) {
		s.AddFinding(scope.ReasonEngineMissing, err)
	}
	if s.Valid {
		addFindings(s, checks.References(&checks.Subject{Input: s.RenderInput(), Refused: len(s.Findings) > 0}))
	}
	return false, nil
}

// resolveScenario reads the experiment's compiled scenario. It returns true if the experiment must wait until it is compiled.
func (r *Resolver) resolveScenario(ctx context.Context, s *scope.Scope) (wait bool, err error) {
	reference := s.Experiment.Spec.Scenario
	if reference == nil {
		return false, nil
	}
	path := field.NewPath("spec", "scenario", "ref")
	var scenario v1alpha1.Scenario
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: s.Experiment.Namespace, Name: reference.Ref}, &scenario)
	if apierrors.IsNotFound(err) {
		s.AddFinding(scope.ReasonScenarioNotFound, field.NotFound(path, reference.Ref))
		return false, nil
	}
	if err != nil {
		return false, err
	}
	why, passes := whyNotReady(&scenario)
	switch {
	case passes && s.Phase() == v1alpha1.PhaseProvisioning:
		return false, nil // the provisioner waits for it
	case passes && len(s.Findings) == 0 && !s.Experiment.Spec.Stop:
		waitForScenario(s, scope.ReasonScenarioNotReady, fmt.Sprintf("waiting until scenario %s is ready: %s", reference.Ref, why))
		return true, nil
	case why != "":
		s.AddFinding(scope.ReasonScenarioNotReady, field.Invalid(path, reference.Ref, "the scenario is not ready: "+why))
		return false, nil
	}
	s.Scenario = &render.Scenario{Name: reference.Ref, Digest: scenario.Status.Digest, Synthetic: scenario.Spec.Format == v1alpha1.ScenarioSynthetic, Frequency: scenario.Spec.PathlossFrequency()}
	if scenario.Status.Statistics != nil {
		s.Scenario.Statistics = *scenario.Status.Statistics
	}
	return false, r.checkScenarioUnchanged(ctx, s, path)
}

// whyNotReady says why a scenario is not ready, if so, and whether that passes by itself. A status of an earlier spec does not count.
func whyNotReady(scenario *v1alpha1.Scenario) (why string, passes bool) {
	ready := meta.FindStatusCondition(scenario.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration != scenario.Generation:
		return "it has not been compiled yet", true
	case ready.Status != metav1.ConditionTrue || scenario.Status.Digest == "":
		return ready.Message, ready.Status == metav1.ConditionUnknown
	}
	return "", false
}

// checkScenarioUnchanged adds a finding if the scenario changed after the first radio network was created. Otherwise
// the networks of one run would have different scenarios.
func (r *Resolver) checkScenarioUnchanged(ctx context.Context, s *scope.Scope, path *field.Path) error {
	for _, network := range s.Experiment.Spec.Networks {
		var existing v1alpha1.RadioNetwork
		key := types.NamespacedName{Namespace: r.Namespace, Name: render.RadioNetworkName(s.Experiment, network.Name)}
		if err := r.Client.Get(ctx, key, &existing); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if digest := existing.Spec.Scenario; digest != "" && digest != s.Scenario.Digest {
			s.AddFinding(scope.ReasonScenarioChanged, field.Invalid(path, s.Scenario.Name,
				fmt.Sprintf("the scenario changed while the nodes were being created: it was %s and is %s", digest, s.Scenario.Digest)))
			return nil
		}
	}
	return nil
}

func (r *Resolver) resolveWaveform(ctx context.Context, s *scope.Scope, network v1alpha1.Network, path *field.Path) error {
	if inPlace, ok := render.InPlace(network); ok {
		s.Waveforms[network.Name] = inPlace
		return nil
	}
	var existing v1alpha1.RadioNetwork
	key := types.NamespacedName{Namespace: r.Namespace, Name: render.RadioNetworkName(s.Experiment, network.Name)}
	if err := r.Client.Get(ctx, key, &existing); err == nil {
		s.Waveforms[network.Name] = existing.Spec.Waveform
		return nil
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	var waveform v1alpha1.Waveform
	err := r.Client.Get(ctx, types.NamespacedName{Name: network.Waveform}, &waveform)
	if apierrors.IsNotFound(err) {
		var all v1alpha1.WaveformList
		if err := r.Client.List(ctx, &all); err != nil {
			return err
		}
		names := make([]string, len(all.Items))
		for i := range all.Items {
			names[i] = all.Items[i].Name
		}
		missing := field.NotFound(path.Child("waveform"), network.Waveform)
		missing.Detail = strings.TrimPrefix(wording.DidYouMean(network.Waveform, names), ": ")
		s.AddFinding(scope.ReasonWaveformNotFound, missing)
		return nil
	}
	if err == nil {
		s.Waveforms[network.Name] = waveform.Spec
	}
	return err
}

// resolveConfigMaps reads the content that apps use from ConfigMaps. Only the kubelet reads Secrets.
func (r *Resolver) resolveConfigMaps(ctx context.Context, s *scope.Scope) error {
	s.Scripts, s.FileBytes = map[v1alpha1.KeyReference]string{}, map[v1alpha1.KeyReference]int{}
	if s.UsesVMs() {
		s.Contents = map[v1alpha1.KeyReference][]byte{}
	}
	found, err := configmaps.Read(ctx, r.Live, s, s.AddFinding)
	s.ConfigMaps = found
	return err
}

// checkKueueInstalled adds a finding if an experiment names a Kueue queue in a cluster without Kueue.
func (r *Resolver) checkKueueInstalled(s *scope.Scope) error {
	name := s.Experiment.Spec.QueueName
	if name == "" || s.Phase() == v1alpha1.PhaseProvisioning { // it has been admitted
		return nil
	}
	_, err := r.Workloads.Kind()
	if meta.IsNoMatchError(err) {
		s.AddFinding(scope.ReasonKueueMissing, field.Invalid(field.NewPath("spec", "queueName"), name,
			"Kueue is not installed in this cluster: install it, or leave this out to use vignette's own queue"))
		return nil
	}
	return err
}
