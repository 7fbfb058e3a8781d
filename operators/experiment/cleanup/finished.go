package cleanup

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

// DeleteFinished deletes what a finished experiment does not need. Its workflow and results stay.
func (c *Cleaner) DeleteFinished(ctx context.Context, s *scope.Scope) (bool, error) {
	if !scope.Finished(s.Phase()) {
		return false, nil
	}
	left, err := c.deleteChildren(ctx, s)
	if err == nil && len(left) > 0 {
		s.RequeueAfter(scope.PollInterval)
	} else if err == nil {
		err = c.Workloads.Leave(ctx, s.Experiment)
	}
	return false, err
}

// DeleteExpired deletes a finished experiment after its time to live.
func (c *Cleaner) DeleteExpired(ctx context.Context, s *scope.Scope) (bool, error) {
	ttl, completed := s.Experiment.Spec.TTLAfterFinished, s.Experiment.Status.CompletionTime
	if !scope.Finished(s.Phase()) || ttl == nil || completed == nil {
		return false, nil
	}
	if left := ttl.Std() - s.Now.Sub(completed.Time); left > 0 {
		s.RequeueAfter(left)
		return false, nil
	}
	// The time to live may just have been extended: the precondition deletes only the version that was read.
	s.RequeueAfter(0) // to handle the deletion at once
	seen := client.Preconditions{UID: &s.Experiment.UID, ResourceVersion: &s.Experiment.ResourceVersion}
	return true, client.IgnoreNotFound(c.Objects.Client.Delete(ctx, s.Experiment, seen))
}

// deleteChildren deletes pods and virtual machines, and then what their network teardown may still read. It returns what
// is left. Each delete has the UID of the object that was read as a precondition.
func (c *Cleaner) deleteChildren(ctx context.Context, s *scope.Scope) (left []string, err error) {
	if err := c.Objects.LoadNodes(ctx, s); err != nil {
		return nil, err
	}
	if left, err := c.Objects.DeleteNodes(ctx, s); err != nil || len(left) > 0 {
		return left, err
	}
	return c.deleteNetworks(ctx, s)
}

func (c *Cleaner) deleteNetworks(ctx context.Context, s *scope.Scope) (left []string, err error) {
	attachments, err := c.Objects.Attachments(ctx, s)
	if err != nil {
		return nil, err
	}
	networks, err := c.Objects.RadioNetworks(ctx, s)
	if err != nil {
		return nil, err
	}
	if left, err := c.deleteEMANE(ctx, s, networks); err != nil || len(left) > 0 {
		return left, err // its owners still need the rest
	}
	for i := range networks {
		left = append(left, "RadioNetwork "+networks[i].Name)
		if err := c.Objects.Delete(ctx, &networks[i]); err != nil {
			return left, err
		}
	}
	for i := range attachments {
		left = append(left, "NetworkAttachmentDefinition "+attachments[i].Name)
		if err := c.Objects.Delete(ctx, &attachments[i]); err != nil {
			return left, err
		}
	}
	budget := render.Budget(s.Experiment, 0)
	err = c.Objects.Client.Get(ctx, client.ObjectKeyFromObject(budget), budget)
	if err != nil {
		return left, client.IgnoreNotFound(err)
	}
	return append(left, "PodDisruptionBudget "+budget.Name), c.Objects.Delete(ctx, budget)
}

// deleteEMANE deletes the pods and files of networks with engine EMANE, and returns what is left.
func (c *Cleaner) deleteEMANE(ctx context.Context, s *scope.Scope, networks []v1alpha1.RadioNetwork) (left []string, err error) {
	if !s.UsesEMANE() {
		return nil, nil
	}
	pods, err := c.Objects.EMANEPods(ctx, s, networks)
	if err != nil {
		return nil, err
	}
	for _, name := range scope.SortedKeys(pods) {
		left = append(left, "pod "+name)
		if err := c.Objects.Delete(ctx, pods[name]); err != nil {
			return left, err
		}
	}
	// A cache would have to hold all ConfigMaps of the cluster.
	var files corev1.ConfigMapList
	err = c.Objects.Live.List(ctx, &files, client.InNamespace(c.Objects.Namespace), client.MatchingLabels{v1alpha1.LabelExperimentUID: string(s.Experiment.UID)})
	if err != nil {
		return left, err
	}
	for i := range files.Items {
		if !objects.OwnedByAny(&files.Items[i], networks) {
			continue
		}
		left = append(left, "ConfigMap "+files.Items[i].Name)
		if err := c.Objects.Delete(ctx, &files.Items[i]); err != nil {
			return left, err
		}
	}
	return left, nil
}

// slowDeletion is the time after which a queued experiment says what it waits for, such as pods on a host that is away.
const slowDeletion = 30 * time.Second

// DeleteLeftovers deletes what is left from Provisioning, which put the experiment back into the queue. It comes before references
// are resolved, as those of a next start may differ. A stop does not wait for it.
func (c *Cleaner) DeleteLeftovers(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Phase() != v1alpha1.PhaseQueued || s.Failure() != nil || s.Experiment.Spec.Stop {
		return false, nil
	}
	left, err := c.deleteChildren(ctx, s)
	if admitted := meta.FindStatusCondition(s.Experiment.Status.Conditions, v1alpha1.ConditionAdmitted); len(left) > 0 && admitted != nil &&
		s.Now.Sub(admitted.LastTransitionTime.Time) > slowDeletion {
		s.Experiment.Status.Message = scope.Shorten("waiting for the deletion of " + scope.SomeOf(left, "objects"))
	}
	if err != nil || len(left) > 0 {
		s.RequeueAfter(scope.PollInterval)
	}
	return err != nil || len(left) > 0, err
}
