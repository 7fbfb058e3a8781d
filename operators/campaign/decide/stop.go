package decide

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/confidence"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// stop what the stop conditions make needless.
func (s *step) stop() {
	if s.status.DueTime != nil {
		s.skip("the next round is due, and replaces this one", func(*v1alpha1.CampaignRun) bool { return true })
	}
	if most := s.spec.StopWhen.Failures; most != nil {
		count := int32(0)
		for i := range s.status.Runs {
			if failed(&s.status.Runs[i]) {
				count++
			}
		}
		if count >= *most {
			s.skip(fmt.Sprintf("%d runs have failed: stopWhen.failures is %d", count, *most), func(*v1alpha1.CampaignRun) bool { return true })
		}
	}
	if c := s.spec.StopWhen.Confidence; c != nil {
		known := s.known(c)
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

// known are the points whose figure is known well enough, with the words for it. Only repeats of one spec count, those of the last one.
func (s *step) known(c *v1alpha1.Confidence) map[string]string {
	digests, values, grains := map[string]string{}, map[string][]float64{}, map[string]float64{}
	for i := range s.status.Runs {
		if run := &s.status.Runs[i]; started(run) {
			digests[key(run)] = run.SpecDigest
		}
	}
	for i := range s.status.Runs {
		run := &s.status.Runs[i]
		if run.Phase != v1alpha1.RunSucceeded || run.SpecDigest != digests[key(run)] {
			continue
		}
		if value, grain, ok := figure(run.Results, c.Figure); ok {
			values[key(run)], grains[key(run)] = append(values[key(run)], value), max(grain, grains[key(run)])
		}
	}
	known := map[string]string{}
	for point, of := range values {
		mean, halfWidth := confidence.Mean(of)
		// The status has figures rounded: by so much the mean may be off beside.
		halfWidth += grains[point]
		if len(of) >= int(max(2, c.MinRepeats)) && halfWidth <= c.HalfWidth.Fraction()*math.Abs(mean) {
			known[point] = fmt.Sprintf("%s is known as %.4g ± %.2g after %d repeats: stopWhen.confidence is %s", c.Figure, mean, halfWidth, len(of), c.HalfWidth)
		}
	}
	return known
}

// figure of a run's results, and by how much its text may be rounded.
func figure(results *v1alpha1.ResultsSummary, which v1alpha1.Figure) (value, grain float64, ok bool) {
	if results == nil {
		return 0, 0, false
	}
	if which == v1alpha1.FigureDeliveredPercent {
		const rounded = 0.005 // two places
		value, err := strconv.ParseFloat(results.DeliveredPercent, 64)
		if results.DeliveredPercent == "100" || results.DeliveredPercent == "0" {
			return value, 0, err == nil
		}
		return value, rounded, err == nil
	}
	delay, err := time.ParseDuration(results.MedianDelay)
	grain = (50 * time.Microsecond).Seconds() // one place of milliseconds
	if !strings.HasSuffix(results.MedianDelay, "ms") {
		grain = (5 * time.Millisecond).Seconds() // two places of seconds
	}
	return delay.Seconds(), grain, err == nil
}
