package decide

import (
	"fmt"
	"math"
	"strings"
	"time"

	"vignette.dev/vignette/internal/confidence"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// applyStopConditions skips the runs that the stop conditions make needless.
func (s *step) applyStopConditions() {
	if s.replaces() {
		s.skip("the next round is due, and replaces this one", func(*v1alpha1.CampaignRun) bool { return true })
	}
	if most := s.spec.StopWhen.Failures; most != nil {
		count := int32(0)
		for i := range s.status.Runs {
			if isFailed(&s.status.Runs[i]) {
				count++
			}
		}
		if count >= *most {
			s.skip(fmt.Sprintf("%d runs have failed: stopWhen.failures is %d", count, *most), func(*v1alpha1.CampaignRun) bool { return true })
		}
	}
	if c := s.spec.StopWhen.Confidence; c != nil {
		known := s.confidentPoints(c)
		for point, why := range known {
			s.skip(why, func(run *v1alpha1.CampaignRun) bool { return key(run) == point })
		}
	}
}

func (s *step) skip(why string, which func(*v1alpha1.CampaignRun) bool) {
	for i := range s.status.Runs {
		if run := &s.status.Runs[i]; run.Phase == v1alpha1.RunPending && which(run) {
			run.Phase, run.Message = v1alpha1.RunSkipped, why
		}
	}
}

// confidentPoints are the points whose figure is known precisely enough, with a message. Only repeats of the last spec count.
func (s *step) confidentPoints(c *v1alpha1.Confidence) map[string]string {
	digests, repeats := map[string]string{}, map[string][]*v1alpha1.ResultsSummary{}
	for i := range s.status.Runs {
		if run := &s.status.Runs[i]; isStarted(run) {
			digests[key(run)] = run.SpecDigest
		}
	}
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		if run.Phase == v1alpha1.RunSucceeded && run.SpecDigest == digests[key(run)] && run.Results != nil {
			repeats[key(run)] = append(repeats[key(run)], run.Results)
		}
	}
	known := map[string]string{}
	for point, of := range repeats {
		estimate := medianDelay
		if c.Figure == v1alpha1.FigureDeliveredPercent {
			estimate = deliveredPercent
		}
		n, mean, halfWidth := estimate(of)
		if n >= int(max(2, c.MinRepeats)) && halfWidth <= c.HalfWidth.Fraction()*math.Abs(mean) {
			known[point] = fmt.Sprintf("%s is known as %.4g ± %.2g after %d repeats: stopWhen.confidence is %s", c.Figure, mean, halfWidth, n, c.HalfWidth)
		}
	}
	return known
}

// deliveredPercent is that of all repeats, and the wider side of its confidence interval.
func deliveredPercent(repeats []*v1alpha1.ResultsSummary) (n int, percent, halfWidth float64) {
	var counts []confidence.Counts
	for _, r := range repeats {
		// Older runs have no offered deliveries.
		if offered := max(r.Offered, r.Expected); offered > 0 {
			counts = append(counts, confidence.Counts{Received: r.Received, Offered: offered, Messages: max(r.Triggered, r.Sent)})
		}
	}
	share, low, high := confidence.Share(counts)
	return len(counts), 100 * share, 100 * max(share-low, high-share)
}

// medianDelay is the mean of the repeats' median delays in seconds. halfWidth includes the rounding in the status.
func medianDelay(repeats []*v1alpha1.ResultsSummary) (n int, mean, halfWidth float64) {
	var values []float64
	grain := 0.0
	for _, r := range repeats {
		delay, err := time.ParseDuration(r.MedianDelay)
		if err != nil {
			continue
		}
		values = append(values, delay.Seconds())
		number, isMilliseconds := strings.CutSuffix(r.MedianDelay, "ms")
		if !isMilliseconds {
			number = strings.TrimSuffix(number, "s")
		}
		_, decimals, _ := strings.Cut(number, ".")
		rounded := 0.5 * math.Pow10(-len(decimals)) // half a unit of the last digit
		if isMilliseconds {
			rounded /= 1000
		}
		grain = max(grain, rounded)
	}
	mean, halfWidth = confidence.Mean(values)
	return len(values), mean, halfWidth + grain
}
