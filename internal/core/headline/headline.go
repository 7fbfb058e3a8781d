// Package headline summarises the results of a run for its status.
package headline

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Of summarises the results for the status.
func Of(r *runapi.Results) *v1alpha1.ResultsSummary {
	group := r.HeadlineGroup()
	m := group.Messages
	triggered, offered := m.Counted()
	summary := &v1alpha1.ResultsSummary{Group: group.Name, Triggered: triggered, Sent: m.Sent, Offered: offered, Expected: m.Expected, Received: m.Received,
		Lost: m.Lost, Gaps: int32(len(r.Gaps)), Warnings: int32(len(r.Warnings))}
	if offered > 0 {
		percent := strconv.FormatFloat(100*float64(m.Received)/float64(offered), 'f', 2, 64)
		switch { // a single loss or arrival must stay visible
		case m.Received < offered && percent == "100.00":
			percent = "99.99"
		case m.Received > 0 && percent == "0.00":
			percent = "0.01"
		}
		summary.DeliveredPercent = strings.TrimSuffix(strings.TrimRight(percent, "0"), ".")
	}
	if group.DelaySeconds != nil {
		summary.MedianDelay = humanDelay(group.DelaySeconds.Median)
	}
	if r.Verdict != nil {
		kept := r.Verdict.KeptUp
		summary.KeptUp, summary.OffByAtMost = &kept, r.HeadlineBounds().String()
	}
	return summary
}

// maxNamedWarnings limits the warnings in a message, because campaigns keep the message of each run.
const maxNamedWarnings = 2

// Message is the message of a run with results.
func Message(summary *v1alpha1.ResultsSummary, warnings []runapi.Gap) string {
	message := "the results are complete"
	if len(warnings) > 0 {
		message = "no delivery was offered"
	}
	if summary.DeliveredPercent != "" {
		message = fmt.Sprintf("%s %% of %d offered deliveries arrived", summary.DeliveredPercent, summary.Offered)
	}
	if unsent := summary.Offered - summary.Expected; unsent > 0 {
		message += fmt.Sprintf(", %d were never sent", unsent)
	}
	for i, warning := range warnings {
		if i == maxNamedWarnings {
			return message + fmt.Sprintf("; %d more warnings", len(warnings)-i)
		}
		message += "; WARNING: " + warning.What
	}
	return message
}

// humanDelay has three digits or more: the median of a fast network is not 0.
func humanDelay(seconds float64) string {
	switch magnitude := math.Abs(seconds); {
	case magnitude < 0.01:
		return strconv.FormatFloat(seconds*1000, 'f', 3, 64) + "ms"
	case magnitude < 1:
		return strconv.FormatFloat(seconds*1000, 'f', 1, 64) + "ms"
	}
	return strconv.FormatFloat(seconds, 'f', 2, 64) + "s"
}
