package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
	"vignette.dev/vignette/operators/kstatus"
)

// Reasons of Applied and of Capturing, beside Invalid.
const (
	ReasonApplied            = "Applied"
	ReasonCapturing          = "Capturing"
	ReasonWaitingForStart    = "WaitingForStart"
	ReasonExperimentNotFound = "ExperimentNotFound"
	ReasonExperimentFinished = "ExperimentFinished"
	ReasonTooLarge           = "TooLarge"
	ReasonDurationOver       = "DurationOver"
	ReasonNameUsed           = "NameUsed"
)

// experimentField indexes LiveChanges and Captures by the experiment that they name.
const experimentField = "spec.experiment"

// namedExperiment is the experiment that a LiveChange or Capture names.
func namedExperiment(object client.Object) string {
	switch o := object.(type) {
	case *v1alpha1.LiveChange:
		return o.Spec.Experiment
	case *v1alpha1.Capture:
		return o.Spec.Experiment
	}
	return ""
}

// liveObjects are an experiment's LiveChanges and Captures, oldest first.
type liveObjects struct {
	changes  []*v1alpha1.LiveChange
	captures []*v1alpha1.Capture
}

// listLiveObjects finds the LiveChanges and Captures that name an experiment.
func (r *Reconciler) listLiveObjects(ctx context.Context, experiment types.NamespacedName) (found liveObjects, err error) {
	options := []client.ListOption{client.InNamespace(experiment.Namespace), client.MatchingFields{experimentField: experiment.Name}}
	var changes v1alpha1.LiveChangeList
	if err := r.Client.List(ctx, &changes, options...); err != nil {
		return found, err
	}
	var captures v1alpha1.CaptureList
	if err := r.Client.List(ctx, &captures, options...); err != nil {
		return found, err
	}
	for i := range changes.Items {
		if changes.Items[i].Spec.Experiment == experiment.Name {
			found.changes = append(found.changes, &changes.Items[i])
		}
	}
	for i := range captures.Items {
		if captures.Items[i].Spec.Experiment == experiment.Name {
			found.captures = append(found.captures, &captures.Items[i])
		}
	}
	slices.SortFunc(found.changes, oldestFirst)
	slices.SortFunc(found.captures, oldestFirst)
	return found, nil
}

func oldestFirst[T client.Object](a, b T) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
}

// reportMissingExperiment sets the status of changes and captures whose experiment does not exist. Those with an owner
// are deleted with it.
func (r *Reconciler) reportMissingExperiment(ctx context.Context, experiment types.NamespacedName) error {
	found, err := r.listLiveObjects(ctx, experiment)
	if err != nil {
		return err
	}
	v := liveOutcome{metav1.ConditionFalse, ReasonExperimentNotFound, fmt.Sprintf("there is no experiment %s in namespace %s", experiment.Name, experiment.Namespace)}
	for _, c := range found.changes {
		if owningExperiment(c) == nil {
			if err := r.writeChangeStatus(ctx, c, v); err != nil {
				return err
			}
		}
	}
	for _, c := range found.captures {
		if owningExperiment(c) == nil {
			if err := r.writeCaptureStatus(ctx, c, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// owningExperiment is the experiment that owns an object, nil for none yet.
func owningExperiment(object client.Object) *metav1.OwnerReference {
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == "Experiment" && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
			return &owner
		}
	}
	return nil
}

// takeOwnership makes the experiment the owner of an object that names it, so that the object never applies to a later
// experiment of that name. It reports whether the experiment owns the object.
func (r *Reconciler) takeOwnership(ctx context.Context, e *v1alpha1.Experiment, object client.Object) (bool, error) {
	if owner := owningExperiment(object); owner != nil {
		return owner.UID == e.UID, nil
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	before := object.DeepCopyObject().(client.Object)
	object.SetOwnerReferences(append(object.GetOwnerReferences(), render.SharedOwner(e)))
	err := r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return err == nil, client.IgnoreNotFound(err)
}

// takeOwnershipOfAll returns the objects that the experiment owns.
func takeOwnershipOfAll[T client.Object](ctx context.Context, r *Reconciler, e *v1alpha1.Experiment, objects []T) (ownedObjects []T, err error) {
	for _, object := range objects {
		owned, err := r.takeOwnership(ctx, e, object)
		if err != nil {
			return nil, err
		}
		if owned {
			ownedObjects = append(ownedObjects, object)
		}
	}
	return ownedObjects, nil
}

// syncLiveObjects finds the experiment's LiveChanges and Captures, and sets the status of those that cannot apply now.
func (r *Reconciler) syncLiveObjects(ctx context.Context, s *scope) (bool, error) {
	found, err := r.listLiveObjects(ctx, client.ObjectKeyFromObject(s.experiment))
	if err != nil {
		return true, err
	}
	if s.live.changes, err = takeOwnershipOfAll(ctx, r, s.experiment, found.changes); err != nil {
		return true, err
	}
	if s.live.captures, err = takeOwnershipOfAll(ctx, r, s.experiment, found.captures); err != nil {
		return true, err
	}
	if err := r.loadNetworkSpecs(ctx, s); err != nil {
		return true, err
	}
	return false, r.reportWaiting(ctx, s)
}

// loadNetworkSpecs loads the radio networks to check LiveChanges against, if there are any.
func (r *Reconciler) loadNetworkSpecs(ctx context.Context, s *scope) error {
	if len(s.live.changes) == 0 {
		return nil
	}
	networks, err := r.radioNetworks(ctx, s)
	s.networkSpecs = map[string]*v1alpha1.RadioNetworkSpec{}
	for i := range networks {
		s.networkSpecs[networks[i].Spec.Network] = &networks[i].Spec
	}
	return err
}

// reportWaiting sets the status of changes and captures that wait for the run, are invalid or came too late.
func (r *Reconciler) reportWaiting(ctx context.Context, s *scope) error {
	for _, c := range s.live.changes {
		if v := s.checkChange(c); v.reason != "" && !isApplied(c) {
			if err := r.writeChangeStatus(ctx, c, v); err != nil {
				return err
			}
		}
	}
	for _, c := range s.live.captures {
		if v := s.checkCapture(c); v.reason != "" && c.Status.EndedAt == nil {
			if err := r.writeCaptureStatus(ctx, c, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// liveOutcome is the outcome of a change or capture. Without a reason it can apply now.
type liveOutcome struct {
	status          metav1.ConditionStatus
	reason, message string
}

func (s *scope) checkChange(c *v1alpha1.LiveChange) liveOutcome {
	return s.checkLiveObject(s.takesChanges(), func() (errs field.ErrorList) {
		for i, change := range c.Spec.Changes {
			path := field.NewPath("spec", "changes").Index(i)
			wrong := render.CheckChange(s.topology, change, path)
			if radio := s.networkSpecs[change.Network]; radio != nil && len(wrong) == 0 {
				wrong = render.AfterChanges(radio).Change(change, path)
			}
			errs = append(errs, wrong...)
		}
		return errs
	})
}

func (s *scope) checkCapture(c *v1alpha1.Capture) liveOutcome {
	return s.checkLiveObject(s.isRunning(), func() field.ErrorList { return render.CheckCapture(&s.experiment.Spec, s.topology, &c.Spec) })
}

// checkLiveObject checks whether an object is too late, invalid or too early. Only a valid spec has a topology to check
// against.
func (s *scope) checkLiveObject(now bool, check func() field.ErrorList) liveOutcome {
	if s.failure() != nil || finished(s.phase()) || s.phase() == v1alpha1.PhaseCollecting || s.phase() == v1alpha1.PhaseAnalysing {
		return s.runOver()
	}
	if s.topology != nil && len(s.findings) == 0 {
		if errs := check(); len(errs) > 0 {
			return liveOutcome{metav1.ConditionFalse, ReasonInvalid, shorten(errs.ToAggregate().Error())}
		}
	}
	if !now {
		return liveOutcome{metav1.ConditionUnknown, ReasonWaitingForStart, "waiting for experiment " + s.experiment.Name + " to run"}
	}
	return liveOutcome{}
}

func (s *scope) runOver() liveOutcome {
	return liveOutcome{metav1.ConditionFalse, ReasonExperimentFinished, "the run of experiment " + s.experiment.Name + " is over"}
}

// isRunning reports whether the experiment has its radios and has not failed.
func (s *scope) isRunning() bool { return s.phase() == v1alpha1.PhaseRunning && s.failure() == nil }

// takesChanges reports whether T0 is over, because the times of changes count from T0.
func (s *scope) takesChanges() bool {
	return s.isRunning() && s.experiment.Status.T0 != nil && s.elapsed() >= 0
}

func isApplied(c *v1alpha1.LiveChange) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionApplied)
}

// state is the kstatus of the object.
func (v liveOutcome) state() kstatus.State {
	switch v.status {
	case metav1.ConditionTrue:
		return kstatus.Current
	case metav1.ConditionFalse:
		return kstatus.Failed
	default:
		return kstatus.InProgress
	}
}

// setConditions sets the condition of the given kind and those of kstatus.
func (v liveOutcome) setConditions(conditions *[]metav1.Condition, kind string, state kstatus.State, generation int64, now time.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	})
	kstatus.Set(conditions, state, v.reason, v.message, generation, now)
}

func (r *Reconciler) writeChangeStatus(ctx context.Context, c *v1alpha1.LiveChange, v liveOutcome) error {
	before := c.DeepCopy()
	c.Status.ObservedGeneration = c.Generation
	v.setConditions(&c.Status.Conditions, v1alpha1.ConditionApplied, v.state(), c.Generation, r.Clock.Now())
	return r.patchStatus(ctx, before, c)
}

// writeCaptureStatus also sets when the capture started and ended.
func (r *Reconciler) writeCaptureStatus(ctx context.Context, c *v1alpha1.Capture, v liveOutcome) error {
	before := c.DeepCopy()
	now := ptr.To(metav1.NewMicroTime(r.Clock.Now().Truncate(time.Microsecond)))
	switch {
	case v.status == metav1.ConditionTrue && c.Status.StartedAt == nil:
		c.Status.StartedAt = now
	case v.status == metav1.ConditionFalse && c.Status.StartedAt != nil:
		c.Status.EndedAt = now
	}
	state := v.state()
	if c.Status.EndedAt != nil {
		state = kstatus.Current // it is complete
	}
	c.Status.ObservedGeneration = c.Generation
	v.setConditions(&c.Status.Conditions, v1alpha1.ConditionCapturing, state, c.Generation, r.Clock.Now())
	return r.patchStatus(ctx, before, c)
}

// patchStatus writes a changed status, unless somebody else has changed the object.
func (r *Reconciler) patchStatus(ctx context.Context, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, after, patch))
}
