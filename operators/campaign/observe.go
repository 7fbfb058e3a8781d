package campaign

import (
	"context"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/decide"
	"vignette.dev/vignette/internal/core/headline"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// stateTimeout is the longest time in which the server says what it has of a run.
const stateTimeout = 15 * time.Second

// observe observes the campaign's experiments. It asks the API server for those that the cache does not show.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	c := s.campaign
	var list v1alpha1.ExperimentList
	labels := client.MatchingLabels{v1alpha1.LabelCampaignUID: string(c.UID)}
	if err := r.Client.List(ctx, &list, client.InNamespace(c.Namespace), labels); err != nil {
		return err
	}
	s.observed = decide.Observed{}
	for i := range list.Items {
		if e := &list.Items[i]; metav1.IsControlledBy(e, c) {
			s.observed[e.Name] = observationOf(e, c)
		}
	}
	for i := range c.Status.Runs {
		run := &c.Status.Runs[i]
		seen, found := s.observed[run.Name]
		if !decide.IsActive(run) || found && (run.UID == "" || run.UID == seen.UID) {
			continue
		}
		if err := r.findUncached(ctx, s, run); err != nil {
			return err
		}
	}
	return nil
}

// findUncached asks the API server for a run's experiment and, if it is deleted, the archive for its result.
func (r *Reconciler) findUncached(ctx context.Context, s *scope, run *v1alpha1.CampaignRun) error {
	var e v1alpha1.Experiment
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.campaign.Namespace, Name: run.Name}, &e)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	delete(s.observed, run.Name)
	switch {
	case err == nil && (run.UID == "" || run.UID == e.UID):
		s.observed[run.Name] = observationOf(&e, s.campaign)
		return nil
	case run.UID == "":
		return nil // it has not been created yet
	}
	gone := decide.ObservedExperiment{Name: run.Name, UID: run.UID, Gone: true, Owned: true}
	limited, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	state, err := r.Archive.State(limited, string(run.UID))
	if err != nil && !runs.IsNotFound(err) {
		return err
	}
	if err == nil {
		gone.Phase, gone.Message = state.Plan.Phase, state.Plan.Message
		if state.Results != nil {
			gone.Results = headline.Of(state.Results)
		}
	}
	s.observed[run.Name] = gone
	return nil
}

// observationOf is the observation of an existing experiment.
func observationOf(e *v1alpha1.Experiment, c *v1alpha1.Campaign) decide.ObservedExperiment {
	round, _ := strconv.ParseInt(e.Labels[v1alpha1.LabelCampaignRound], 10, 64) // the operator's own label
	return decide.ObservedExperiment{
		Name: e.Name, UID: e.UID, Phase: e.Status.Phase, Owned: metav1.IsControlledBy(e, c), Round: round,
		Deleting:       !e.DeletionTimestamp.IsZero() || isOfDeletedCampaign(e, c),
		CompletionTime: e.Status.CompletionTime, Results: e.Status.Results, Message: e.Status.Message,
		Stalled: meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionStalled),
	}
}

// isOfDeletedCampaign reports whether an experiment's campaign was deleted, and created again as c.
func isOfDeletedCampaign(e *v1alpha1.Experiment, c *v1alpha1.Campaign) bool {
	owner := metav1.GetControllerOfNoCopy(e)
	return owner != nil && owner.Kind == "Campaign" && owner.Name == c.Name && owner.UID != c.UID
}
