package runapi

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// HeadlineBounds are the most by which the headline group's figures may be off because the emulation was late. Unknown ones are nil.
type HeadlineBounds struct {
	MedianSeconds, P95Seconds, DeliveredPoints *float64
}

// HeadlineGroup returns the headline group; in older results that of all deliveries.
func (r *Results) HeadlineGroup() GroupResult {
	for _, g := range r.Groups {
		if g.Name == r.Headline {
			return g
		}
	}
	return GroupResult{Name: "all", Messages: r.Messages, DelaySeconds: r.DelaySeconds}
}

// HeadlineBounds of the results; empty for older results.
func (r *Results) HeadlineBounds() (bounds HeadlineBounds) {
	g := r.HeadlineGroup()
	if g.Bounds == nil {
		return bounds
	}
	if q := g.DelaySeconds; q != nil {
		bounds.MedianSeconds = largestError(g.Bounds.DelaySeconds, "median", &q.Median)
		bounds.P95Seconds = largestError(g.Bounds.DelaySeconds, "p95", q.P95)
	}
	if delivered, measured := g.Bounds.DeliveredPercent, g.Messages.DeliveredPercent; delivered != nil && measured != nil {
		bounds.DeliveredPoints = delivered.maxDistance(*measured)
	}
	return bounds
}

func largestError(bounds map[string]Interval, name string, measured *float64) *float64 {
	bound, known := bounds[name]
	if !known || measured == nil {
		return nil
	}
	return bound.maxDistance(*measured)
}

func (i Interval) maxDistance(v float64) *float64 {
	off := math.Max(0, math.Max(i.High-v, v-i.Low))
	return &off
}

// String such as "0.3 ms of the median, 1.2 ms of p95, 0.02 points of delivered"; empty if nothing is known.
func (o HeadlineBounds) String() string {
	var said []string
	if o.MedianSeconds != nil {
		said = append(said, twoDigits(*o.MedianSeconds*1e3)+" ms of the median")
	}
	if o.P95Seconds != nil {
		said = append(said, twoDigits(*o.P95Seconds*1e3)+" ms of p95")
	}
	if o.DeliveredPoints != nil {
		said = append(said, twoDigits(*o.DeliveredPoints)+" points of delivered")
	}
	return strings.Join(said, ", ")
}

// WorstBounds of several runs, figure by figure, from what String says of each; empty if it says nothing of one.
func WorstBounds(runs []string) string {
	var figures []string
	worst := map[string]float64{}
	for _, run := range runs {
		for said := range strings.SplitSeq(run, ", ") {
			number, figure, _ := strings.Cut(said, " ")
			off, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return ""
			}
			if _, known := worst[figure]; !known {
				figures = append(figures, figure)
			}
			worst[figure] = max(worst[figure], off)
		}
	}
	for i, figure := range figures {
		figures[i] = twoDigits(worst[figure]) + " " + figure
	}
	return strings.Join(figures, ", ")
}

// twoDigits has two significant digits, or more before the decimal point.
func twoDigits(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 2, 64), 64)
	if err != nil {
		return "?"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
