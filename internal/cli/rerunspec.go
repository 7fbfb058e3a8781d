package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/fieldpath"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/digests"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// buildExperiment builds the experiment of the record, and checks its inputs.
func (r *rerun) buildExperiment(ctx context.Context) error {
	e := &v1alpha1.Experiment{}
	e.Namespace, e.Spec = r.namespace, *r.record.Spec.DeepCopy()
	r.experiment = e
	if err := putWaveforms(&e.Spec, r.record.Waveforms); err != nil {
		return fmt.Errorf("%s: %w", r.source, err)
	}
	for _, network := range e.Spec.Networks {
		if network.Waveform != "" {
			r.note("network %s takes waveform %s as the cluster has it: it has settings of EMANE's own, which no experiment may have in place", network.Name, network.Waveform)
		}
	}
	if r.options.images == imagesByDigest {
		r.pinImages(e.Spec.Apps)
	}
	if err := r.restoreScenario(ctx); err != nil {
		return err
	}
	if err := r.checkConfigMaps(ctx); err != nil {
		return err
	}
	r.repeatLiveChanges()
	r.noteManualChanges()
	r.noteContents()
	var err error
	e.Name, err = r.newName(ctx)
	return err
}

// putWaveforms in place of their names, but for those with settings of EMANE's own, which only a Waveform has.
func putWaveforms(spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec) error {
	for i, network := range spec.Networks {
		if network.Waveform == "" {
			continue
		}
		waveform, known := waveforms[network.Waveform]
		if !known {
			return fmt.Errorf("the record has no waveform %s of network %s: the run ended before its references were resolved", network.Waveform, network.Name)
		}
		if waveform.EMANE == nil {
			spec.Networks[i] = render.WithWaveform(network, waveform)
		}
	}
	return nil
}

// pinImages names apps' own images by the digests that ran.
func (r *rerun) pinImages(apps []v1alpha1.App) {
	for i := range apps {
		app := &apps[i]
		if app.Image == "" || strings.Contains(app.Image, "@") {
			continue
		}
		switch ran := r.digestsOf(app.Name); {
		case len(ran) > 1:
			r.note("app %s stays with image %s: %d different ones ran under that name, %s", app.Name, app.Image, len(ran), strings.Join(ran, ", "))
		case len(ran) == 0:
			r.note("app %s stays with image %s: the record has no digest of it by which hosts could pull it", app.Name, app.Image)
		default:
			app.Image = withoutTag(app.Image) + "@" + ran[0]
		}
	}
}

// digestsOf the images that ran for an app; none if one of them has none.
func (r *rerun) digestsOf(app string) (ran []string) {
	if r.record.Environment == nil {
		return nil
	}
	for _, image := range r.record.Environment.Images {
		if image.Node == "" || image.Container != app {
			continue
		}
		digest, known := image.Digest()
		if !known {
			return nil
		}
		if !slices.Contains(ran, digest) {
			ran = append(ran, digest)
		}
	}
	return ran
}

// withoutTag of an image's name; a colon before the last slash is a registry's port.
func withoutTag(image string) string {
	if at := strings.LastIndexByte(image, ':'); at > strings.LastIndexByte(image, '/') {
		return image[:at]
	}
	return image
}

// restoreScenario uses the Scenario that the record names, if it is still compiled to the same digest, else a new one of the archive's
// compiled scenario.
func (r *rerun) restoreScenario(ctx context.Context) error {
	reference, recorded := r.experiment.Spec.Scenario, r.record.Scenario
	if reference == nil {
		return nil
	}
	if recorded == nil {
		return fmt.Errorf("%s: the record has no digest of scenario %s: the run ended before it was resolved", r.source, reference.Ref)
	}
	if err := digests.Check(recorded.Digest); err != nil {
		return fmt.Errorf("%s: scenario %s: %w", r.source, recorded.Name, err)
	}
	now, digest, err := r.scenarioNow(ctx, reference.Ref)
	if err != nil || digest == recorded.Digest {
		return err
	}
	kept, err := r.archive.HasScenario(ctx, recorded.Digest)
	if err != nil {
		return err
	}
	if kept {
		r.scenario = recordedScenario(r.namespace, *recorded)
		reference.Ref = r.scenario.Name
		r.note("scenario %s is %s; the rerun has Scenario %s, made of the recorded one, which the archive keeps", recorded.Name, now, r.scenario.Name)
		return nil
	}
	if digest != "" && r.allows(inputScenario) {
		r.addDifference("scenario "+recorded.Name, recorded.Digest, digest)
		return nil
	}
	remedy := "to run with it as it is: --allow-different " + inputScenario
	if digest == "" {
		remedy = "make it, as it was then"
	}
	return fmt.Errorf("scenario %s was %s, which the archive keeps no longer, and is %s: %s", recorded.Name, recorded.Digest, now, remedy)
}

// scenarioNow describes a Scenario's present state, and returns its digest if it is compiled.
func (r *rerun) scenarioNow(ctx context.Context, name string) (words, digest string, err error) {
	var scenario v1alpha1.Scenario
	err = r.kube.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &scenario)
	switch {
	case apierrors.IsNotFound(err):
		return "not in namespace " + r.namespace, "", nil
	case err != nil:
		return "", "", explain(err)
	}
	ready := meta.FindStatusCondition(scenario.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != scenario.Generation || scenario.Status.Digest == "" {
		return "not compiled", "", nil
	}
	return scenario.Status.Digest + " now", scenario.Status.Digest, nil
}

const (
	maxScenarioName = 63
	// Twelve digits of a digest, after sha256:, name a Scenario.
	digestFrom, digestTo = 7, 19
)

// recordedScenario is a Scenario of the archive's compiled one. Its format means nothing: it is not compiled again.
func recordedScenario(namespace string, recorded runapi.PlannedScenario) *v1alpha1.Scenario {
	s := &v1alpha1.Scenario{}
	suffix := "-" + recorded.Digest[digestFrom:digestTo]
	s.Namespace, s.Name = namespace, recorded.Name[:min(len(recorded.Name), maxScenarioName-len(suffix))]+suffix
	s.Spec = v1alpha1.ScenarioSpec{
		Description: "Scenario " + recorded.Name + " as a recorded run had it, for its reruns.", Format: v1alpha1.ScenarioEEL, Compiled: recorded.Digest,
	}
	return s
}

// checkConfigMaps refuses contents without the recorded digests.
func (r *rerun) checkConfigMaps(ctx context.Context) error {
	var wrong []string
	for _, recorded := range r.record.ConfigMaps {
		what := fmt.Sprintf("key %s of ConfigMap %s", recorded.Key, recorded.Name)
		digest, err := r.configMapNow(ctx, recorded.Name, recorded.Key)
		switch {
		case err != nil:
			return err
		case digest == "":
			return fmt.Errorf("%s is not in namespace %s: make it, with the content whose SHA-256 is %s", what, r.namespace, recorded.SHA256)
		case digest == recorded.SHA256:
		case r.allows(inputConfigMaps):
			r.addDifference(what, "sha256:"+recorded.SHA256, "sha256:"+digest)
		default:
			wrong = append(wrong, fmt.Sprintf("%s (SHA-256 %s, and was %s)", what, digest, recorded.SHA256))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("contents for apps differ from the record: %s: restore the recorded ones, or use --allow-different %s",
			strings.Join(wrong, "; "), inputConfigMaps)
	}
	return nil
}

// configMapNow is the SHA-256 of a key's content; empty if it does not exist.
func (r *rerun) configMapNow(ctx context.Context, name, key string) (string, error) {
	var object corev1.ConfigMap
	err := r.kube.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &object)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", explain(err)
	}
	content, known := object.BinaryData[key]
	if text, isText := object.Data[key]; isText {
		content, known = []byte(text), true
	}
	if !known {
		return "", nil
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// repeatLiveChanges adds the changes of networks by hand to the timeline.
func (r *rerun) repeatLiveChanges() {
	spec, repeated := &r.experiment.Spec, 0
	schema := fieldpath.Experiment().Properties["timeline"]
	maxTimeline, maxSet := int(*schema.MaxItems), int(*schema.Items.Schema.Properties["set"].MaxItems)
	for _, live := range r.record.LiveChanges {
		at := time.Duration(live.AtNanoseconds)
		parts := slices.Collect(slices.Chunk(live.Changes, maxSet))
		if len(spec.Timeline)+len(parts) > maxTimeline || !hasNoDuration(r.experiment) && at > spec.Duration.Std() {
			continue
		}
		repeated++
		for _, part := range parts {
			moment := v1alpha1.Duration(strconv.FormatFloat(at.Seconds(), 'f', -1, 64) + "s")
			spec.Timeline = append(spec.Timeline, v1alpha1.TimelineEntry{At: moment, Set: part})
		}
	}
	if repeated > 0 {
		r.note("changes of networks by hand while it ran are in the timeline: %d", repeated)
	}
	if left := len(r.record.LiveChanges) - repeated; left > 0 {
		r.note("not repeated: changes of networks by hand, %d, which came after the duration or have no room in a timeline of %d entries", left, maxTimeline)
	}
}

// noteManualChanges of the run, which a rerun does not repeat.
func (r *rerun) noteManualChanges() {
	r.experiment.Spec.Stop = false
	stopped := slices.ContainsFunc(r.record.Armed, func(a runapi.Action) bool { return a.ID == timeline.EarlyStopID })
	if stopped && r.record.Spec.Duration != "" { // a live cluster ends no other way
		r.note("the run was stopped by hand; the rerun continues to its end")
	}
	var captures []string
	for _, capture := range r.record.Captures {
		if capture.Name != render.RunCapture && !slices.Contains(captures, capture.Name) {
			captures = append(captures, capture.Name)
		}
	}
	if len(captures) > 0 {
		r.note("not repeated: captures that were begun by hand while it ran, %s", strings.Join(captures, ", "))
	}
}

// noteContents that no record has: of Secrets, and of machines' disks that are named without a digest.
func (r *rerun) noteContents() {
	var secrets, disks []string
	add := func(all *[]string, name string) {
		if !slices.Contains(*all, name) {
			*all = append(*all, name)
		}
	}
	for _, app := range r.experiment.Spec.Apps {
		for _, variable := range app.Env {
			if variable.Secret != nil {
				add(&secrets, variable.Secret.Name)
			}
		}
	}
	for _, node := range r.experiment.Spec.Nodes {
		vm := node.VM
		if vm != nil && vm.CloudInit != nil && vm.CloudInit.Secret != "" {
			add(&secrets, vm.CloudInit.Secret)
		}
		if vm.OwnDisk() && !strings.Contains(vm.Image, "@") {
			add(&disks, cmp.Or(vm.Image, vm.PersistentVolumeClaim))
		}
	}
	if len(secrets) > 0 {
		r.note("Secrets are taken as they are now: %s", strings.Join(secrets, ", "))
	}
	if len(disks) > 0 {
		r.note("virtual machines boot from their disks as they are now: %s", strings.Join(disks, ", "))
	}
}

// maxExperimentName is the API server's limit.
const maxExperimentName = 40

var rerunSuffix = regexp.MustCompile(`-rerun-[0-9]+$`)

// newName is the requested one, or the next NAME-rerun-N that neither the cluster nor the archive has.
func (r *rerun) newName(ctx context.Context) (string, error) {
	if r.options.name != "" {
		return r.options.name, nil
	}
	archived, err := r.archive.Runs(ctx, r.namespace, "")
	if err != nil {
		return "", err
	}
	var list v1alpha1.ExperimentList
	if err := r.kube.List(ctx, &list, client.InNamespace(r.namespace)); err != nil {
		return "", explain(err)
	}
	taken := map[string]bool{}
	for _, run := range archived {
		taken[run.Name] = true
	}
	for i := range list.Items {
		taken[list.Items[i].Name] = true
	}
	base := rerunSuffix.ReplaceAllString(r.record.Name, "")
	for n := 1; ; n++ {
		suffix := fmt.Sprintf("-rerun-%d", n)
		name := strings.TrimRight(base[:min(len(base), maxExperimentName-len(suffix))], "-") + suffix
		if !taken[name] {
			return name, nil
		}
	}
}
