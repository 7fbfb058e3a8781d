package run

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/experiment/run/argo"
	"vignette.dev/vignette/operators/experiment/scope"
)

const (
	// t0Timeout is the time from the workflow's creation after which T0 is not moved any more.
	t0Timeout = 10 * time.Minute
	// maxPostponement is the most by which T0 is moved at a time.
	maxPostponement = 2 * time.Minute
)

// needsT0 reports whether T0 is not set yet or is too near for every agent to receive it. In a slow cluster, writing T0
// may take as long as the lead. Agents read T0 from the server's plan, so it may change until that plan has it.
func (r *Runner) needsT0(s *scope.Scope, state runapi.State, workflow *unstructured.Unstructured) bool {
	if s.Experiment.Status.T0 == nil {
		return true
	}
	return state.Plan.T0 == nil && s.Elapsed() > -r.t0Lead(s)/2 && argo.AgeOf(s, workflow) < t0Timeout
}

// A cluster that started the nodes slowly also distributes T0 slowly. The lead is therefore a fraction of the start time.
const (
	leadFraction = 4
	maxLead      = 30 * time.Second
)

// t0Lead is the time from now to T0, in which every agent must receive T0.
func (r *Runner) t0Lead(s *scope.Scope) time.Duration {
	startTime := s.Now.Sub(s.FirstNodeCreated())
	return max(r.StartLead, min(startTime/leadFraction, maxLead))
}

// setT0 sets T0 far enough ahead for every agent to receive it. A second T0 has a longer lead, by the time spent so far.
func (r *Runner) setT0(s *scope.Scope, workflow *unstructured.Unstructured) {
	lead, event, message := r.t0Lead(s), "Started", "T0 is set"
	if s.Experiment.Status.T0 != nil {
		lead, event, message = max(lead, min(argo.AgeOf(s, workflow), maxPostponement)), "Postponed", "T0 is postponed: it was too near to reach every agent in time"
	}
	t0 := metav1.NewMicroTime(s.Now.Add(lead).Truncate(time.Microsecond))
	s.Experiment.Status.T0 = &t0
	s.Experiment.Status.Message = message
	s.NormalEvent(event, "T0 is %s", t0.UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
	s.RequeueAfter(0)
}
