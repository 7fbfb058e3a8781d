package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func (s *step) count() {
	counts := v1alpha1.RunCounts{Total: int32(len(s.status.Runs))}
	for i := range s.status.Runs {
		switch run := &s.status.Runs[i]; {
		case run.Phase == v1alpha1.RunPending:
			counts.Pending++
		case run.Phase == v1alpha1.RunSucceeded:
			counts.Succeeded++
		case run.Phase == v1alpha1.RunSkipped:
			counts.Skipped++
		case isFailed(run):
			counts.Failed++
		default:
			counts.Running++
		}
	}
	if counts.Total > 0 {
		counts.Summary = fmt.Sprintf("%d/%d", counts.Succeeded+counts.Failed+counts.Skipped, counts.Total)
	}
	s.status.Counts = counts
}

// describe sets the campaign's phase and message.
func (s *step) describe() {
	status, counts := s.status, s.status.Counts
	switch {
	case status.Round == 0 && !s.accepted:
		status.Phase = v1alpha1.CampaignPending // the message describes the problems
	case s.spec.Suspend && !s.isRoundFinished():
		status.Phase, status.Message = v1alpha1.CampaignSuspended, "suspended: no run is started"
		switch {
		case counts.Running == 1:
			status.Message += "; 1 active run continues to its end"
		case counts.Running > 1:
			status.Message += fmt.Sprintf("; %d active runs continue to their end", counts.Running)
		}
	case status.Round == 0:
		status.Phase, status.Message = v1alpha1.CampaignScheduled, "waiting for the first round"
	case status.RoundCompletionTime == nil:
		status.Phase = v1alpha1.CampaignRunning
		status.Message = fmt.Sprintf("%s runs are done, %d active", counts.Summary, counts.Running)
		if counts.Failed > 0 {
			status.Message += fmt.Sprintf(", %d failed: %s", counts.Failed, s.firstFailure())
		}
		status.Message += s.firstWaiting()
	case !s.isRoundFinished():
		status.Phase, status.Message = v1alpha1.CampaignReporting, "the runs are being compared"
	case s.spec.Schedule != nil:
		status.Phase = v1alpha1.CampaignScheduled
		status.Message = fmt.Sprintf("round %d %s: %s", status.Round, strings.ToLower(string(status.Rounds[0].Phase)), status.Rounds[0].Message)
		if s.spec.Suspend {
			status.Phase, status.Message = v1alpha1.CampaignSuspended, "suspended: no round is started; "+status.Message
		}
	default:
		status.Phase, status.Message = status.Rounds[0].Phase, status.Rounds[0].Message
	}
	status.Message = wording.Shorten(status.Message, 1000)
}

// firstWaiting says why an active run does not go on, such as a quota or a missing waveform. It is empty if each does.
func (s *step) firstWaiting() string {
	for i := range s.status.Runs {
		if run := &s.status.Runs[i]; IsActive(run) && run.Message != "" {
			return "; " + run.Name + ": " + run.Message
		}
	}
	return ""
}

// estimate sets the expected end of the round, but only if the status has changed otherwise, so that time alone causes no
// write.
func (s *step) estimate(before *v1alpha1.CampaignStatus) {
	status := s.status
	if status.Phase != v1alpha1.CampaignRunning || !s.accepted {
		status.EstimatedCompletionTime = nil
		return
	}
	if status.EstimatedCompletionTime != nil && equality.Semantic.DeepEqual(before, status) {
		return
	}
	plan, err := s.plan()
	if err != nil {
		return
	}
	status.EstimatedCompletionTime = &metav1.Time{Time: s.now.Add(s.remainingTime(plan)).Truncate(time.Second)}
}

// defaultOverhead is the assumed time of a run beyond its planned duration, before any has finished.
const defaultOverhead = time.Minute

// remainingTime is the remaining time of a round. Each run takes its planned duration and the mean overhead of finished runs,
// and starts as soon as the limit of parallel runs allows.
func (s *step) remainingTime(plan *matrix.Plan) time.Duration {
	planned := map[string]time.Duration{}
	for _, point := range plan.Points {
		planned[matrix.Key(point.Name, point.Levels, point.Included)] = point.Duration(&s.spec.Template.Spec)
	}
	beyond := s.overhead(planned)
	slots := make([]time.Duration, max(1, s.spec.Parallelism))
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		takes := max(0, planned[key(run)]+beyond)
		if IsActive(run) {
			takes = max(0, takes-s.now.Sub(run.StartTime.Time))
		} else if run.Phase != v1alpha1.RunPending {
			continue
		}
		slots[slices.Index(slots, slices.Min(slots))] += takes
	}
	return slices.Max(slots)
}

// overhead is the mean time that succeeded runs took beyond their planned duration.
func (s *step) overhead(planned map[string]time.Duration) time.Duration {
	sum, count := time.Duration(0), time.Duration(0)
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		if own, known := planned[key(run)]; known && run.Phase == v1alpha1.RunSucceeded && run.CompletionTime != nil {
			sum, count = sum+run.CompletionTime.Sub(run.StartTime.Time)-own, count+1
		}
	}
	if count == 0 {
		return defaultOverhead
	}
	return sum / count
}
