package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/experiment/timeline"
	"vignette.dev/vignette/operators/experiment/topology"
)

// Reasons of Accepted.
const (
	ReasonAccepted          = "Accepted"
	ReasonInvalid           = "Invalid"
	ReasonWaveformNotFound  = "WaveformNotFound"
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	ReasonSecretNotFound    = "SecretNotFound"
	ReasonSecretNotAllowed  = "SecretNotAllowed"
	ReasonOpenNotAllowed    = "ManagementNetworkNotAllowed"
	ReasonKeyNotFound       = "KeyNotFound"
	ReasonScenarioNotFound  = "ScenarioNotFound"
	ReasonScenarioNotReady  = "ScenarioNotReady"
	ReasonSubnetOverlap     = "SubnetOverlap"
	ReasonBaseMismatch      = "BaseMismatch"
	ReasonScenarioChanged   = "ScenarioChanged"
	ReasonRadioMismatch     = "RadioMismatch"
	ReasonEngineMissing     = "EngineNotInstalled"
	ReasonScriptInvalid     = "ScriptInvalid"
	ReasonPayloadTooLarge   = "PayloadTooLarge"
)

// finding is an error for which an experiment is not accepted.
type finding struct {
	reason, message string
}

func (s *scope) addFinding(reason string, err *field.Error) {
	s.findings = append(s.findings, finding{reason, err.Error()})
}

// compiledSpec is what follows from the spec alone. It is immutable.
type compiledSpec struct {
	spec     v1alpha1.ExperimentSpec
	topology *topology.Topology
	timeline *timeline.Timeline
	findings []finding
}

// maxCompiledSpecs limits the cache. Active experiments are reconciled every few seconds, and their specs rarely change.
const maxCompiledSpecs = 2000

// specCache holds compiled specs by their experiments' UIDs.
type specCache struct {
	once  sync.Once
	specs *lru.Cache
}

func (m *specCache) entries() *lru.Cache {
	m.once.Do(func() { m.specs = lru.New(maxCompiledSpecs) })
	return m.specs
}

// compileSpec compiles the spec. The API server has rejected most errors before.
func (r *Reconciler) compileSpec(_ context.Context, s *scope) (bool, error) {
	uid, specs := s.experiment.UID, r.specs.entries()
	if finished(s.phase()) {
		specs.Remove(uid)
		return false, nil
	}
	known, _ := specs.Get(uid)
	c, ok := known.(*compiledSpec)
	if !ok || !equality.Semantic.DeepEqual(c.spec, s.experiment.Spec) {
		c = s.compileSpec()
		specs.Add(uid, c)
	}
	s.topology, s.timeline, s.findings = c.topology, c.timeline, slices.Clone(c.findings)
	return false, nil
}

func (s *scope) compileSpec() *compiledSpec {
	spec := s.experiment.Spec.DeepCopy()
	t, errs := topology.Expand(spec)
	errs = append(errs, render.Check(spec)...)
	if len(errs) == 0 {
		errs = append(errs, t.CheckReferences(spec)...)
		errs = append(errs, render.CheckRadio(spec, t)...)
		errs = append(errs, render.CheckMessaging(spec, t)...)
		errs = append(errs, render.CheckEncodings(spec)...)
	}
	times, timelineErrs := timeline.Compile(spec, t)
	errs = append(errs, timelineErrs...)
	s.topology, s.timeline = t, times
	if len(errs) == 0 {
		errs = render.CheckSize(render.Pods(s.renderInput()), spec)
	}
	c := &compiledSpec{spec: *spec, topology: t, timeline: times}
	for _, err := range errs {
		c.findings = append(c.findings, finding{ReasonInvalid, err.Error()})
	}
	return c
}

// resolveReferences reads the objects that the experiment names. Existing radio networks hold the waveforms and the
// scenario's digest, so a later change of a Waveform has no effect on the run.
func (r *Reconciler) resolveReferences(ctx context.Context, s *scope) (bool, error) {
	if s.phase() != "" && s.phase() != v1alpha1.PhaseQueued && s.phase() != v1alpha1.PhaseProvisioning {
		return false, nil
	}
	s.waveforms = map[string]v1alpha1.WaveformSpec{}
	for i, network := range s.experiment.Spec.Networks {
		path := field.NewPath("spec", "networks").Index(i)
		if err := r.resolveWaveform(ctx, s, network, path); err != nil {
			return true, err
		}
	}
	if err := r.checkKueueInstalled(s); err != nil {
		return true, err
	}
	if err := r.checkVMs(ctx, s); err != nil {
		return true, err
	}
	if err := r.resolveConfigMaps(ctx, s); err != nil {
		return true, err
	}
	if err := errors.Join(r.checkSecretsAndClaims(ctx, s), r.checkOpenManagement(ctx, s)); err != nil {
		return true, err
	}
	if err := r.resolveScenario(ctx, s); err != nil {
		return true, err
	}
	s.checkScripts()
	s.checkRadios()
	s.checkGuests()
	return false, nil
}

// checkScripts finds errors in scripts, scripts too large for a pod, and messages too large for their protocols.
func (s *scope) checkScripts() {
	if len(s.findings) > 0 { // the checks need a valid topology
		return
	}
	for _, err := range render.CheckPayloads(s.renderInput()) {
		s.addFinding(ReasonPayloadTooLarge, err)
	}
	errs := render.CheckScripts(s.renderInput())
	if len(errs) == 0 && len(s.scripts) > 0 {
		errs = render.CheckSize(render.Pods(s.renderInput()), &s.experiment.Spec)
	}
	for _, err := range errs {
		s.addFinding(ReasonScriptInvalid, err)
	}
}

// checkGuests finds what virtual machines do not support.
func (s *scope) checkGuests() {
	if len(s.findings) > 0 {
		return
	}
	for _, err := range render.CheckVMs(s.renderInput()) {
		s.addFinding(ReasonInvalid, err)
	}
}

// acceptedMessage is the message about an accepted experiment, with warnings about what is probably unintended.
func (s *scope) acceptedMessage() string {
	message := "every reference is valid"
	for _, warning := range render.SpecWarnings(s.renderInput(), s.waveforms, s.scenario) {
		message += "; " + warning.Error()
	}
	return message
}

// checkRadios finds radios that do not fit the waveforms, the scenario or the installed engines.
func (s *scope) checkRadios() {
	spec := &s.experiment.Spec
	for _, err := range render.CheckEngine(spec, s.options) {
		s.addFinding(ReasonEngineMissing, err)
	}
	for _, err := range render.CheckBase(spec, s.waveforms) {
		s.addFinding(ReasonBaseMismatch, err)
	}
	for _, err := range render.CheckRadioModels(spec, s.topology, s.waveforms, s.scenario) {
		s.addFinding(ReasonRadioMismatch, err)
	}
}

// resolveScenario reads the experiment's compiled scenario.
func (r *Reconciler) resolveScenario(ctx context.Context, s *scope) error {
	reference := s.experiment.Spec.Scenario
	if reference == nil {
		return nil
	}
	path := field.NewPath("spec", "scenario", "ref")
	var scenario v1alpha1.Scenario
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.experiment.Namespace, Name: reference.Ref}, &scenario)
	if apierrors.IsNotFound(err) {
		s.addFinding(ReasonScenarioNotFound, field.NotFound(path, reference.Ref))
		return nil
	}
	if err != nil {
		return err
	}
	if why := whyNotReady(&scenario); why != "" {
		s.addFinding(ReasonScenarioNotReady, field.Invalid(path, reference.Ref, "the scenario is not ready: "+why))
		return nil
	}
	s.scenario = &render.Scenario{Name: reference.Ref, Digest: scenario.Status.Digest, Synthetic: scenario.Spec.Format == v1alpha1.ScenarioSynthetic}
	if scenario.Status.Statistics != nil {
		s.scenario.Statistics = *scenario.Status.Statistics
	}
	return r.checkScenarioUnchanged(ctx, s, path)
}

// whyNotReady says why a scenario is not ready, if so. A status of an earlier spec does not count.
func whyNotReady(scenario *v1alpha1.Scenario) string {
	ready := meta.FindStatusCondition(scenario.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration != scenario.Generation:
		return "it has not been compiled yet"
	case ready.Status != metav1.ConditionTrue || scenario.Status.Digest == "":
		return ready.Message
	}
	return ""
}

// checkScenarioUnchanged adds a finding if the scenario changed after the first radio network was created. Otherwise
// the networks of one run would have different scenarios.
func (r *Reconciler) checkScenarioUnchanged(ctx context.Context, s *scope, path *field.Path) error {
	for _, network := range s.experiment.Spec.Networks {
		var existing v1alpha1.RadioNetwork
		key := types.NamespacedName{Namespace: r.Options.Render.Namespace, Name: render.RadioNetworkName(s.experiment, network.Name)}
		if err := r.Client.Get(ctx, key, &existing); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if digest := existing.Spec.Scenario; digest != "" && digest != s.scenario.Digest {
			s.addFinding(ReasonScenarioChanged, field.Invalid(path, s.scenario.Name,
				fmt.Sprintf("the scenario changed while the nodes were being created: it was %s and is %s", digest, s.scenario.Digest)))
			return nil
		}
	}
	return nil
}

func (r *Reconciler) resolveWaveform(ctx context.Context, s *scope, network v1alpha1.Network, path *field.Path) error {
	if inPlace, ok := render.InPlace(network); ok {
		s.waveforms[network.Name] = inPlace
		return nil
	}
	var existing v1alpha1.RadioNetwork
	key := types.NamespacedName{Namespace: r.Options.Render.Namespace, Name: render.RadioNetworkName(s.experiment, network.Name)}
	if err := r.Client.Get(ctx, key, &existing); err == nil {
		s.waveforms[network.Name] = existing.Spec.Waveform
		return nil
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	var waveform v1alpha1.Waveform
	err := r.Client.Get(ctx, types.NamespacedName{Name: network.Waveform}, &waveform)
	if apierrors.IsNotFound(err) {
		s.addFinding(ReasonWaveformNotFound, field.NotFound(path.Child("waveform"), network.Waveform))
		return nil
	}
	if err == nil {
		s.waveforms[network.Name] = waveform.Spec
	}
	return err
}

// accept sets the Accepted condition. Until it is true, nothing is created.
func (r *Reconciler) accept(ctx context.Context, s *scope) (bool, error) {
	status := &s.experiment.Status
	switch s.phase() {
	case "":
		status.Phase = v1alpha1.PhaseQueued
		s.normalEvent(string(v1alpha1.PhaseQueued), "waiting to be admitted")
		if s.experiment.Spec.Stop {
			s.requeueAfter(0)
			return true, nil
		}
	case v1alpha1.PhaseQueued:
		if s.experiment.Spec.Stop { // a stop does not wait for references
			s.fail(ReasonStoppedBeforeStart, "spec.stop was set before the experiment started: nothing was measured")
			s.finish(v1alpha1.PhaseFailed, s.failure().Message)
			return true, nil
		}
	case v1alpha1.PhaseProvisioning:
		if len(s.findings) > 0 {
			s.fail(ReasonReferenceLost, "%s", describeFindings(s.findings))
		}
		return s.justFailed, nil
	default:
		return false, nil
	}
	if err := r.checkSubnets(ctx, s); err != nil {
		return true, err
	}
	s.setNodes(0, len(s.topology.Nodes))
	if len(s.findings) == 0 {
		s.setCondition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, ReasonAccepted, s.acceptedMessage())
		return false, nil
	}
	status.Message = describeFindings(s.findings)
	if s.setCondition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, s.findings[0].reason, status.Message) {
		s.warningEvent("NotAccepted", "%s", status.Message)
	}
	s.requeueAfter(time.Minute) // cluster ranges are not watched
	notWatched := []string{ReasonConfigMapNotFound, ReasonKeyNotFound, ReasonScriptInvalid, ReasonPayloadTooLarge,
		ReasonSecretNotFound, ReasonSecretNotAllowed, ReasonDiskNotFound, ReasonDiskNotAllowed, ReasonOpenNotAllowed}
	if slices.Contains(notWatched, s.findings[0].reason) {
		s.requeueAfter(recheckInterval)
	}
	return true, nil
}

func describeFindings(findings []finding) string {
	messages := make([]string, len(findings))
	for i, f := range findings {
		messages[i] = f.message
	}
	return shorten(strings.Join(messages, "; "))
}

func (r *Reconciler) checkSubnets(ctx context.Context, s *scope) error {
	ranges, err := r.clusterRanges(ctx)
	if err != nil {
		return err
	}
	for i, network := range s.experiment.Spec.Networks {
		subnet := s.topology.Subnets[network.Name]
		for _, taken := range ranges {
			if subnet.IsValid() && subnet.Overlaps(taken.prefix) {
				s.addFinding(ReasonSubnetOverlap, field.Invalid(field.NewPath("spec", "networks").Index(i).Child("subnet"), network.Subnet,
					fmt.Sprintf("overlaps %s, %s: use a part of 198.18.0.0/15", taken.prefix, taken.what)))
				break
			}
		}
	}
	return nil
}
