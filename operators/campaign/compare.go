package campaign

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// comparisonTime is more than the server's own limit.
	comparisonTime = 6 * time.Minute
	// comparisonRetryFor is how long after a round's end the operator retries after a temporary error.
	comparisonRetryFor = 5 * time.Minute
	comparisonRetry    = 15 * time.Second
)

// compare tries whether the round's runs can be compared. The server makes the comparison again for each request, which
// may take minutes. If it fails, the status says why, and the round's result stays.
func (r *Reconciler) compare(s *scope) {
	status := &s.campaign.Status
	uids := comparableRuns(status.Runs)
	result := &v1alpha1.ComparisonStatus{Round: status.Round, Runs: int32(len(uids))}
	if len(uids) < 2 {
		result.Message = "there are not two runs with results to compare"
		status.Comparison = result
		return
	}
	query := url.Values{"run": uids}
	name, of := client.ObjectKeyFromObject(s.campaign), fmt.Sprintf("%s round %d: %s", s.campaign.UID, status.Round, query.Encode())
	failure, finished := r.comparisons.Result(name, of)
	switch {
	case !finished: // its end reconciles the campaign
		r.comparisons.Begin(name, of, func(ctx context.Context) error { return r.requestComparison(ctx, uids) })
		return
	case failure != nil && isTemporary(failure) && s.now.Sub(status.RoundCompletionTime.Time) < comparisonRetryFor:
		r.comparisons.Forget(name)
		s.requeueAfter(comparisonRetry)
		return
	case failure != nil:
		result.Message = joinProblems([]string{"the runs could not be compared: " + failure.Error()})
	default:
		result.Path = "/v1/compare?" + query.Encode()
	}
	status.Comparison = result
}

func (r *Reconciler) requestComparison(ctx context.Context, uids []string) error {
	ctx, cancel := context.WithTimeout(ctx, comparisonTime)
	defer cancel()
	body, err := r.Archive.Compare(ctx, uids, runs.Comparison{Format: "json"})
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}

// isTemporary reports whether the server may answer differently later.
func isTemporary(err error) bool {
	for _, status := range []int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusNotImplemented, http.StatusUnprocessableEntity,
		http.StatusInsufficientStorage,
	} {
		if runs.HasStatus(err, status) {
			return false
		}
	}
	return true
}

// comparableRuns returns the runs of a comparison, which may have as many as a round.
func comparableRuns(all []v1alpha1.CampaignRun) (uids []string) {
	for _, run := range all {
		if run.Phase == v1alpha1.RunSucceeded && run.Results != nil {
			uids = append(uids, string(run.UID))
		}
	}
	return uids
}
