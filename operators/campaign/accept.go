package campaign

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/checks"
	"vignette.dev/vignette/internal/core/decide"
	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Reasons of Accepted.
const (
	ReasonAccepted         = "Accepted"
	ReasonInvalid          = "Invalid"
	ReasonInvalidReference = "InvalidReference"
)

const (
	// dryRuns is the number of parallel dry runs.
	dryRuns = 8
	// recheckInterval is for campaigns that were not accepted, because a definition or an admission policy may have changed.
	recheckInterval = 10 * time.Minute
	// maxProblems limits the problems in a message.
	maxProblems = 5
)

// accept checks every point of the campaign, once for each generation, before anything is created. Reference figures are
// read each time, as their ConfigMap may change.
func (r *Reconciler) accept(ctx context.Context, s *scope) (bool, error) {
	c := s.campaign
	if problem, err := r.readReference(ctx, s); err != nil {
		return false, err
	} else if problem != "" {
		s.reject(ReasonInvalidReference, problem)
		s.requeueAfter(recheckInterval)
		return false, nil
	}
	judged := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAccepted)
	if judged != nil && judged.ObservedGeneration == c.Generation && judged.Status == metav1.ConditionTrue {
		return true, nil
	}
	if judged != nil && judged.ObservedGeneration == c.Generation && judged.Reason != ReasonInvalidReference {
		last := judged.LastTransitionTime.Time
		if at := r.checks.of(c); at.After(last) {
			last = at
		}
		if left := recheckInterval - s.now.Sub(last); left > 0 {
			s.requeueAfter(left)
			return false, nil
		}
	}
	problems, err := r.checkAllPoints(ctx, c)
	if err != nil {
		return false, err
	}
	r.checks.note(c, s.now)
	if len(problems) > 0 {
		s.reject(ReasonInvalid, joinProblems(problems))
		s.requeueAfter(recheckInterval)
		return false, nil
	}
	s.setCondition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, ReasonAccepted, "every point is a valid experiment")
	return true, nil
}

func (s *scope) reject(reason, message string) {
	if s.setCondition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, reason, message) {
		s.events = append(s.events, decide.Event{Warning: true, Reason: "NotAccepted", Message: message})
	}
	s.campaign.Status.Message = message
}

func joinProblems(problems []string) string {
	message := strings.Join(problems[:min(len(problems), maxProblems)], "; ")
	if more := len(problems) - maxProblems; more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return wording.Shorten(message, 1000)
}

// checkAllPoints finds the problems of a campaign's matrix, its schedule, and each point that has not been started.
func (r *Reconciler) checkAllPoints(ctx context.Context, c *v1alpha1.Campaign) (problems []string, err error) {
	if c.Spec.Schedule != nil {
		if _, err := decide.ParseSchedule(c.Spec.Schedule); err != nil {
			problems = append(problems, err.Error())
		}
	}
	plan, errs := matrix.Expand(c.Name, 1, &c.Spec)
	for _, err := range errs {
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return problems, nil
	}
	found := make([]string, len(plan.Points))
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dryRuns)
	for i, point := range plan.Points {
		group.Go(func() error {
			problem, err := r.checkPoint(ctx, c, point)
			mu.Lock()
			defer mu.Unlock()
			found[i] = problem
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return groupProblems(plan.Points, found), nil
}

// groupProblems joins equal problems of several points, and names the first of them.
func groupProblems(points []*matrix.Point, found []string) (problems []string) {
	count := map[string]int{}
	for _, problem := range found {
		count[problem]++
	}
	for i, problem := range found {
		n := count[problem]
		if problem == "" || n == 0 {
			continue
		}
		count[problem] = 0
		where := "point " + points[i].Name
		if n > 1 {
			where += fmt.Sprintf(" (and %d more)", n-1)
		}
		problems = append(problems, where+": "+problem)
	}
	return problems
}

// checkPoint returns the problem of a point, as the API server and the experiments' controller would.
func (r *Reconciler) checkPoint(ctx context.Context, c *v1alpha1.Campaign, point *matrix.Point) (string, error) {
	spec, err := point.Spec(&c.Spec.Template.Spec, 1)
	if err != nil {
		return err.Error(), nil
	}
	object := render(c, &v1alpha1.CampaignRun{Point: point.Name, Levels: point.Levels}, spec)
	object.SetName("")
	object.SetGenerateName(c.Name + "-")
	err = r.Client.Create(ctx, object, client.DryRunAll)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return describeAPIError(err), nil
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "exceeded quota"):
		return err.Error(), nil
	case err != nil && !apierrors.IsForbidden(err):
		return "", err
	}
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace}, Spec: spec.Typed}
	if problems := checks.Alone(e); len(problems) > 0 {
		return problems.ToAggregate().Error(), nil
	}
	return "", nil
}

// describeAPIError is the message of an API server's error, without the generated name of the refused object.
func describeAPIError(err error) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return err.Error()
	}
	var all []string
	for _, cause := range status.Status().Details.Causes {
		field := strings.TrimPrefix(cause.Field, "<nil>")
		all = append(all, strings.TrimPrefix(field+": "+cause.Message, ": ")) // a policy names no field
	}
	return strings.Join(all, "; ")
}
