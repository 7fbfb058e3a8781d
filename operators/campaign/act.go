package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/decide"
	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// refusedRecheck is the time until another try to create an experiment that a quota forbids.
const refusedRecheck = 15 * time.Second

// execute executes the actions of a status that has been written.
func (r *Reconciler) execute(ctx context.Context, s *scope, actions decide.Actions) error {
	var errs []error
	for _, name := range actions.Create {
		errs = append(errs, r.create(ctx, s, name))
	}
	for _, seen := range actions.Stop {
		errs = append(errs, r.stop(ctx, s, seen))
	}
	for _, seen := range actions.Delete {
		errs = append(errs, r.delete(ctx, s, seen))
	}
	if actions.Compare {
		r.compare(s)
	}
	return errors.Join(errs...)
}

// create creates the experiment of a run that is recorded as started. Its name is fixed, so that there is at most one.
func (r *Reconciler) create(ctx context.Context, s *scope, name string) error {
	run := s.run(name)
	spec, err := s.specOf(run)
	if err == nil {
		object := render(s.campaign, run, spec)
		s.addReference(object, run.Point)
		if err = r.Client.Create(ctx, object); err == nil {
			run.UID, run.SpecDigest, run.Message = object.GetUID(), spec.Digest, ""
			return nil
		}
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		s.requeueAfter(0) // the next reconciliation finds out whose it is
		return nil
	case apierrors.IsForbidden(err), apierrors.IsBadRequest(err): // a quota, a policy, or the namespace is being deleted
		run.Message = joinProblems([]string{"cannot be created: " + err.Error()})
		s.requeueAfter(refusedRecheck)
		return nil
	case apierrors.IsInvalid(err) || errors.As(err, &specError{}):
		now := metav1.NewTime(s.now)
		run.Phase, run.CompletionTime, run.Message = v1alpha1.RunFailed, &now, joinProblems([]string{err.Error()})
		return nil
	}
	return err
}

// specError means that a point has no valid spec any more.
type specError struct{ error }

func (s *scope) run(name string) *v1alpha1.CampaignRun {
	for i := range s.campaign.Status.Runs {
		if s.campaign.Status.Runs[i].Name == name {
			return &s.campaign.Status.Runs[i]
		}
	}
	return nil
}

// specOf is the spec of a run by the current campaign.
func (s *scope) specOf(run *v1alpha1.CampaignRun) (*matrix.Spec, error) {
	if s.plan == nil {
		plan, errs := matrix.Expand(s.campaign.Name, 0, &s.campaign.Spec)
		if len(errs) > 0 {
			return nil, specError{errs.ToAggregate()}
		}
		s.plan = plan
	}
	wanted := matrix.Key(run.Point, run.Levels, run.Included)
	for _, point := range s.plan.Points {
		if matrix.Key(point.Name, point.Levels, point.Included) == wanted {
			spec, err := point.Spec(&s.campaign.Spec.Template.Spec, run.Seed)
			if err != nil {
				return nil, specError{err}
			}
			return spec, nil
		}
	}
	return nil, specError{fmt.Errorf("its point is no longer in the matrix: the campaign was edited before its experiment was created")}
}

// render renders the experiment of a run.
func render(c *v1alpha1.Campaign, run *v1alpha1.CampaignRun, spec *matrix.Spec) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec.Object}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Experiment"))
	object.SetNamespace(c.Namespace)
	object.SetName(run.Name)
	labels := map[string]string{}
	for key, value := range c.Spec.Template.Metadata.Labels {
		labels[key] = string(value)
	}
	maps.Copy(labels, map[string]string{
		v1alpha1.LabelCampaign: c.Name, v1alpha1.LabelCampaignUID: string(c.UID),
		v1alpha1.LabelCampaignRound: strconv.FormatInt(c.Status.Round, 10), v1alpha1.LabelCampaignPoint: run.Point,
	})
	object.SetLabels(labels)
	annotations := map[string]string{}
	for key, value := range c.Spec.Template.Metadata.Annotations {
		annotations[key] = string(value)
	}
	if levels, err := json.Marshal(run.Levels); err == nil && len(run.Levels) > 0 {
		annotations[v1alpha1.AnnotationLevels] = string(levels)
	}
	annotations[v1alpha1.AnnotationSpecDigest] = spec.Digest
	object.SetAnnotations(annotations)
	owner := metav1.NewControllerRef(c, v1alpha1.GroupVersion.WithKind("Campaign"))
	object.SetOwnerReferences([]metav1.OwnerReference{*owner})
	return object
}

// stop stops an experiment early. Its measurements are still analysed.
func (r *Reconciler) stop(ctx context.Context, s *scope, seen decide.ObservedExperiment) error {
	var e v1alpha1.Experiment
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.campaign.Namespace, Name: seen.Name}, &e)
	if err != nil || e.UID != seen.UID || e.Spec.Stop {
		return client.IgnoreNotFound(err)
	}
	stopped := e.DeepCopy()
	stopped.Spec.Stop = true
	err = r.Client.Patch(ctx, stopped, client.MergeFromWithOptions(&e, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		s.requeueAfter(time.Second)
		return nil
	}
	return client.IgnoreNotFound(err)
}

func (r *Reconciler) delete(ctx context.Context, s *scope, seen decide.ObservedExperiment) error {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: s.campaign.Namespace, Name: seen.Name}}
	err := r.Client.Delete(ctx, e, client.Preconditions{UID: &seen.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsConflict(err) { // another experiment has the name now
		return nil
	}
	return client.IgnoreNotFound(err)
}
