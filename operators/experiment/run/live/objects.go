// Package live makes an experiment the owner of the LiveChanges and Captures that name it, adds them to its radios and
// plan, and then sets their status.
package live

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
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/checks"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/kstatus"
)

// Live applies LiveChanges and Captures to a run.
type Live struct {
	Objects *objects.Objects
	Clock   clock.PassiveClock
	// ChangeLead is the time from a manual change to its effect, in which every radio must receive it.
	ChangeLead time.Duration
}

// ExperimentField indexes LiveChanges and Captures by the experiment that they name.
const ExperimentField = "spec.experiment"

// NamedExperiment is the experiment that a LiveChange or Capture names.
func NamedExperiment(object client.Object) string {
	switch o := object.(type) {
	case *v1alpha1.LiveChange:
		return o.Spec.Experiment
	case *v1alpha1.Capture:
		return o.Spec.Experiment
	}
	return ""
}

// objectsOf are an experiment's LiveChanges and Captures, oldest first.
type objectsOf struct {
	changes  []*v1alpha1.LiveChange
	captures []*v1alpha1.Capture
}

// list finds the LiveChanges and Captures that name an experiment.
func (l *Live) list(ctx context.Context, experiment types.NamespacedName) (found objectsOf, err error) {
	options := []client.ListOption{client.InNamespace(experiment.Namespace), client.MatchingFields{ExperimentField: experiment.Name}}
	var changes v1alpha1.LiveChangeList
	if err := l.Objects.Client.List(ctx, &changes, options...); err != nil {
		return found, err
	}
	var captures v1alpha1.CaptureList
	if err := l.Objects.Client.List(ctx, &captures, options...); err != nil {
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

// ReportMissingExperiment sets the status of changes and captures whose experiment does not exist. Those with an owner
// are deleted with it.
func (l *Live) ReportMissingExperiment(ctx context.Context, experiment types.NamespacedName) error {
	found, err := l.list(ctx, experiment)
	if err != nil {
		return err
	}
	v := outcome{metav1.ConditionFalse, scope.ReasonExperimentNotFound, fmt.Sprintf("there is no experiment %s in namespace %s", experiment.Name, experiment.Namespace)}
	for _, c := range found.changes {
		if OwningExperiment(c) == nil {
			if err := l.writeChangeStatus(ctx, c, v); err != nil {
				return err
			}
		}
	}
	for _, c := range found.captures {
		if OwningExperiment(c) == nil {
			if err := l.writeCaptureStatus(ctx, c, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// OwningExperiment is the experiment that owns an object, nil for none yet.
func OwningExperiment(object client.Object) *metav1.OwnerReference {
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == "Experiment" && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
			return &owner
		}
	}
	return nil
}

// takeOwnership makes the experiment the owner of an object that names it, so that the object never applies to a later
// experiment of that name. It reports whether the experiment owns the object.
func (l *Live) takeOwnership(ctx context.Context, e *v1alpha1.Experiment, object client.Object) (bool, error) {
	if owner := OwningExperiment(object); owner != nil {
		return owner.UID == e.UID, nil
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	before := object.DeepCopyObject().(client.Object)
	object.SetOwnerReferences(append(object.GetOwnerReferences(), render.SharedOwner(e)))
	err := l.Objects.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return err == nil, client.IgnoreNotFound(err)
}

// takeOwnershipOfAll returns the objects that the experiment owns.
func takeOwnershipOfAll[T client.Object](ctx context.Context, l *Live, e *v1alpha1.Experiment, objects []T) (ownedObjects []T, err error) {
	for _, object := range objects {
		owned, err := l.takeOwnership(ctx, e, object)
		if err != nil {
			return nil, err
		}
		if owned {
			ownedObjects = append(ownedObjects, object)
		}
	}
	return ownedObjects, nil
}

// Sync finds the experiment's LiveChanges and Captures, and sets the status of those that cannot apply now.
func (l *Live) Sync(ctx context.Context, s *scope.Scope) (bool, error) {
	found, err := l.list(ctx, client.ObjectKeyFromObject(s.Experiment))
	if err != nil {
		return true, err
	}
	if s.LiveChanges, err = takeOwnershipOfAll(ctx, l, s.Experiment, found.changes); err != nil {
		return true, err
	}
	if s.Captures, err = takeOwnershipOfAll(ctx, l, s.Experiment, found.captures); err != nil {
		return true, err
	}
	if err := l.loadNetworkSpecs(ctx, s); err != nil {
		return true, err
	}
	return false, l.reportWaiting(ctx, s)
}

// loadNetworkSpecs loads the radio networks to check LiveChanges against, if there are any.
func (l *Live) loadNetworkSpecs(ctx context.Context, s *scope.Scope) error {
	if len(s.LiveChanges) == 0 {
		return nil
	}
	networks, err := l.Objects.RadioNetworks(ctx, s)
	s.NetworkSpecs = map[string]*v1alpha1.RadioNetworkSpec{}
	for i := range networks {
		s.NetworkSpecs[networks[i].Spec.Network] = &networks[i].Spec
	}
	return err
}

// reportWaiting sets the status of changes and captures that wait for the run, are invalid or came too late.
func (l *Live) reportWaiting(ctx context.Context, s *scope.Scope) error {
	for _, c := range s.LiveChanges {
		if isApplied(c) {
			continue
		}
		if v := checkChange(s, c); v.reason != "" {
			if err := l.writeChangeStatus(ctx, c, v); err != nil {
				return err
			}
		}
	}
	for _, c := range s.Captures {
		if v := checkCapture(s, c); v.reason != "" && c.Status.EndedAt == nil {
			if err := l.writeCaptureStatus(ctx, c, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcome is the outcome of a change or capture. Without a reason it can apply now.
type outcome struct {
	status          metav1.ConditionStatus
	reason, message string
}

func checkChange(s *scope.Scope, c *v1alpha1.LiveChange) outcome {
	return checkLiveObject(s, takesChanges(s), func() (errs field.ErrorList) {
		for i, change := range c.Spec.Changes {
			path := field.NewPath("spec", "changes").Index(i)
			errs = append(errs, render.CheckChange(s.Topology, change, path)...)
		}
		if len(errs) > 0 {
			return errs
		}
		return misfits(c, earliestTime(s, c), func(name string) *v1alpha1.RadioNetworkSpec { return s.NetworkSpecs[name] })
	})
}

// earliestTime after T0 from which a change may apply.
func earliestTime(s *scope.Scope, c *v1alpha1.LiveChange) time.Duration {
	switch t0 := s.Experiment.Status.T0; {
	case t0 == nil:
		return 0
	case c.Status.AppliesAt != nil:
		return c.Status.AppliesAt.Sub(t0.Time)
	default:
		return max(s.Elapsed(), 0)
	}
}

// misfits returns what radiod would refuse of the networks' changes, in order of time, only because of a change from a
// time after T0. It also returns schedules that shorten EMANE's reach.
func misfits(c *v1alpha1.LiveChange, at time.Duration, network func(name string) *v1alpha1.RadioNetworkSpec) (errs field.ErrorList) {
	path := func(change v1alpha1.TimedRadioChange) *field.Path {
		own := slices.IndexFunc(c.Spec.Changes, func(own v1alpha1.RadioChange) bool { return equality.Semantic.DeepEqual(own, change.RadioChange) })
		if own >= 0 && change.AtNanoseconds == int64(at) {
			return field.NewPath("spec", "changes").Index(own)
		}
		return field.NewPath("changes").Key(time.Duration(change.AtNanoseconds).String())
	}
	more := missingChanges(c, at, network)
	for _, name := range scope.SortedKeys(more) {
		before := network(name)
		known, with := render.CheckChanges(before, path), *before
		with.Changes = render.AddChanges(with.Changes, more[name]...)
		errs = append(errs, slices.DeleteFunc(render.CheckChanges(&with, path), func(e *field.Error) bool {
			return slices.ContainsFunc(known, func(k *field.Error) bool { return k.Error() == e.Error() })
		})...)
		errs = append(errs, render.CheckReachKept(before, &with, field.NewPath("spec", "changes"))...)
	}
	return errs
}

func checkCapture(s *scope.Scope, c *v1alpha1.Capture) outcome {
	return checkLiveObject(s, s.IsRunning(), func() field.ErrorList { return render.CheckCapture(s.Topology, &c.Spec) })
}

// checkLiveObject checks whether an object is too late, invalid or too early. Only a valid spec has a topology to check
// against.
func checkLiveObject(s *scope.Scope, now bool, check func() field.ErrorList) outcome {
	if s.Failure() != nil || scope.Finished(s.Phase()) || s.Phase() == v1alpha1.PhaseCollecting || s.Phase() == v1alpha1.PhaseAnalysing {
		return runOver(s)
	}
	if s.Topology != nil && len(s.Findings) == 0 {
		if errs := check(); len(errs) > 0 {
			return invalid(errs)
		}
	}
	if !now {
		return outcome{metav1.ConditionUnknown, scope.ReasonWaitingForStart, "waiting for experiment " + s.Experiment.Name + " to run"}
	}
	return outcome{}
}

func invalid(errs field.ErrorList) outcome {
	return outcome{metav1.ConditionFalse, checks.ReasonInvalid, scope.Shorten(errs.ToAggregate().Error())}
}

func runOver(s *scope.Scope) outcome {
	return outcome{metav1.ConditionFalse, scope.ReasonExperimentFinished, "the run of experiment " + s.Experiment.Name + " is over"}
}

// takesChanges reports whether T0 is over, because the times of changes count from T0.
func takesChanges(s *scope.Scope) bool {
	return s.IsRunning() && s.Experiment.Status.T0 != nil && s.Elapsed() >= 0
}

func isApplied(c *v1alpha1.LiveChange) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionApplied)
}

// state is the kstatus of the object.
func (v outcome) state() kstatus.State {
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
func (v outcome) setConditions(conditions *[]metav1.Condition, kind string, state kstatus.State, generation int64, now time.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	})
	kstatus.Set(conditions, state, v.reason, v.message, generation, now)
}

func (l *Live) writeChangeStatus(ctx context.Context, c *v1alpha1.LiveChange, v outcome) error {
	before := c.DeepCopy()
	c.Status.ObservedGeneration = c.Generation
	v.setConditions(&c.Status.Conditions, v1alpha1.ConditionApplied, v.state(), c.Generation, l.Clock.Now())
	return l.patchStatus(ctx, before, c)
}

// writeCaptureStatus also sets when the capture started and ended.
func (l *Live) writeCaptureStatus(ctx context.Context, c *v1alpha1.Capture, v outcome) error {
	before := c.DeepCopy()
	now := ptr.To(metav1.NewMicroTime(l.Clock.Now().Truncate(time.Microsecond)))
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
	v.setConditions(&c.Status.Conditions, v1alpha1.ConditionCapturing, state, c.Generation, l.Clock.Now())
	return l.patchStatus(ctx, before, c)
}

// patchStatus writes a changed status, unless somebody else has changed the object.
func (l *Live) patchStatus(ctx context.Context, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(l.Objects.Client.Status().Patch(ctx, after, patch))
}

// ExperimentIndex is the value of ExperimentField.
func ExperimentIndex(object client.Object) []string { return []string{NamedExperiment(object)} }
