package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// history of an experiment's figures, one sample for each update.
type history struct {
	samples []sample
}

// sample of an experiment's figures. Unknown ones are NaN.
type sample struct {
	at             time.Time
	sent, received int64
	// deliveredPercent of the offered deliveries so far, delays in seconds, waiting frames, and messages a second since the previous sample.
	deliveredPercent, median, p95, queue float64
	sentPerSecond, receivedPerSecond     float64
}

// keptSamples exceed the width of any terminal.
const keptSamples = 300

// add the server's present figures.
func (h *history) add(state *runapi.State, now time.Time) {
	if state == nil {
		return
	}
	nan := math.NaN()
	s := sample{at: now, sent: state.Counters.Sent, received: state.Counters.Received, deliveredPercent: nan, median: nan, p95: nan, queue: nan,
		sentPerSecond: nan, receivedPerSecond: nan}
	if f := state.Live; f != nil {
		s.queue = float64(f.QueueFrames)
		if percent := deliveredPercent(f.Received, f.Offered); percent != nil {
			s.deliveredPercent = *percent
		}
		if f.DelaySeconds != nil {
			s.median, s.p95 = f.DelaySeconds.Median, f.DelaySeconds.P95
		}
	}
	if n := len(h.samples); n > 0 {
		before := h.samples[n-1]
		if seconds := now.Sub(before.at).Seconds(); seconds > 0 {
			s.sentPerSecond = float64(max(0, s.sent-before.sent)) / seconds
			s.receivedPerSecond = float64(max(0, s.received-before.received)) / seconds
		}
	}
	h.samples = append(h.samples[max(0, len(h.samples)-keptSamples+1):], s)
}

// series of one figure.
func (h *history) series(figure func(sample) float64) []float64 {
	values := make([]float64, len(h.samples))
	for i, s := range h.samples {
		values[i] = figure(s)
	}
	return values
}

// recentMean of a rate over the last seconds; NaN without samples. Logs reach the archive in pieces, so single rates vary.
func (h *history) recentMean(figure func(sample) float64) float64 {
	const over = 5
	sum, n := 0.0, 0
	for _, v := range h.series(figure)[max(0, len(h.samples)-over):] {
		if v == v {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}

// liveState reads a run's live state; nil if the server does not have it yet.
func (c *cluster) liveState(ctx context.Context, e *v1alpha1.Experiment) *runapi.State {
	if e.Status.T0 == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*refreshInterval)
	defer cancel()
	state, err := c.archive.LiveState(ctx, string(e.UID))
	if err != nil {
		return nil // like counters
	}
	return &state
}

// event of an experiment.
type event struct {
	at           time.Time
	reason, text string
}

// shownEvents of an experiment.
const shownEvents = 5

// events of an experiment, the newest last; none if the user may not read them.
func (c *cluster) events(ctx context.Context, e *v1alpha1.Experiment) (events []event) {
	var list corev1.EventList
	if c.kube.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingFields{"involvedObject.uid": string(e.UID)}) != nil {
		return nil // the view omits them
	}
	for _, one := range list.Items {
		at := one.LastTimestamp.Time
		if at.IsZero() {
			at = one.EventTime.Time
		}
		events = append(events, event{at, one.Reason, one.Message})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	return events[max(0, len(events)-shownEvents):]
}

// experimentView is what is shown of an experiment.
type experimentView struct {
	experiment *v1alpha1.Experiment
	state      *runapi.State
	history    *history
	events     []event
}

// frame for a terminal of a width.
func (v experimentView) frame(now time.Time, width int) []string {
	e := v.experiment
	lines := []string{v.head(now)}
	if e.Status.Message != "" {
		lines = append(lines, oneLine(e.Status.Message))
	}
	if of := campaignOf(e); of != "" {
		lines = append(lines, "campaign "+of)
	}
	if len(v.history.samples) > 0 {
		lines = append(lines, "")
		lines = append(lines, v.figures(width)...)
	}
	if e.Status.Results != nil {
		lines = append(lines, pad("results", labelWidth)+headline(e.Status.Results)[len(": "):])
	}
	if len(v.events) > 0 {
		lines = append(lines, "")
	}
	for _, one := range v.events {
		lines = append(lines, fmt.Sprintf("%s  %s: %s", one.at.UTC().Format("15:04:05Z"), one.reason, oneLine(one.text)))
	}
	return lines
}

// head is the line with the experiment's progress.
func (v experimentView) head(now time.Time) string {
	e := v.experiment
	bare := e.DeepCopy()
	bare.Name, bare.Status.Message = e.Namespace+"/"+e.Name, ""
	if nodes := e.Status.Nodes; isTimelineUnderWay(e) && nodes.Ready == nodes.Total {
		bare.Status.Nodes.Total = 0 // of which there is nothing to say then
	}
	line := progressLine(bare, nil, now, true)
	if isTimelineUnderWay(e) && e.Status.T0 != nil && !hasNoDuration(e) {
		if rest := e.Spec.Duration.Std() - now.Sub(e.Status.T0.Time); rest > 0 {
			line += "  " + clock(rest) + " left"
		} else {
			line += "  draining"
		}
	}
	return line
}

const (
	labelWidth = 13
	valueWidth = 11
	noteWidth  = 30
)

// figureRow has the name of a figure, its value, its history, and a note.
func figureRow(width int, label, value string, series []float64, low, high float64, note string) string {
	line := pad(label, labelWidth) + pad(value, valueWidth)
	spark := min(60, width-labelWidth-valueWidth-noteWidth)
	if spark < 10 { // too narrow for a note
		spark, note = min(60, width-labelWidth-valueWidth-1), ""
	}
	if series != nil {
		line += sparkline(series, low, high, spark) + "  "
	}
	return line + note
}

// figures so far, as in the dashboard Experiment live.
func (v experimentView) figures(width int) []string {
	last := v.history.samples[len(v.history.samples)-1]
	var lines []string
	if f := liveFiguresOf(v.state); f != nil {
		delivered := "-"
		if percent := deliveredPercent(f.Received, f.Offered); percent != nil {
			delivered = percentText(*percent) + " %"
		}
		series := v.history.series(func(s sample) float64 { return s.deliveredPercent })
		low, _ := valueRange(series)
		lines = append(lines, figureRow(width, "delivered", delivered, series, min(low, 90), 100, arrivedText(f)))
		medians, p95s := v.history.series(func(s sample) float64 { return s.median }), v.history.series(func(s sample) float64 { return s.p95 })
		_, high := valueRange(p95s)
		note := ""
		if f.DelaySeconds != nil {
			note = "at most " + seconds(f.DelaySeconds.Max)
		}
		lines = append(lines, figureRow(width, "median delay", valueOrDash(last.median, seconds), medians, 0, high, "same scale as p95"),
			figureRow(width, "p95 delay", valueOrDash(last.p95, seconds), p95s, 0, high, note))
	}
	lines = append(lines, v.rate(width, "sent/s", func(s sample) float64 { return s.sentPerSecond }, last.sent),
		v.rate(width, "received/s", func(s sample) float64 { return s.receivedPerSecond }, last.received))
	if f := liveFiguresOf(v.state); f != nil {
		queue := v.history.series(func(s sample) float64 { return s.queue })
		_, high := valueRange(queue)
		note := ""
		if f.DeepestFrames > 0 {
			note = fmt.Sprintf("%d at %s", f.DeepestFrames, f.DeepestQueue)
		}
		lines = append(lines, figureRow(width, "queue", fmt.Sprintf("%d frames", f.QueueFrames), queue, 0, max(high, 1), note),
			pad("emulation", labelWidth)+latenessText(f))
	}
	return lines
}

func (v experimentView) rate(width int, label string, figure func(sample) float64, total int64) string {
	series := v.history.series(figure)
	_, high := valueRange(series)
	return figureRow(width, label, valueOrDash(v.history.recentMean(figure), significant), series, 0, high, fmt.Sprintf("%d in all", total))
}

// arrivedText counts arrived deliveries.
func arrivedText(f *runapi.LiveFigures) string {
	if f.Offered == f.Expected {
		return fmt.Sprintf("%d of %d offered", f.Received, f.Offered)
	}
	return fmt.Sprintf("%d of %d", f.Received, f.Offered) + unsentText(f.Offered-f.Expected)
}

// unsentText counts unsent deliveries; empty for none.
func unsentText(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d never sent", n)
}

// valueRange of the known values; 0, 0 without any.
func valueRange(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v == v {
			low, high = min(low, v), max(high, v)
		}
	}
	if high < low {
		return 0, 0
	}
	return low, high
}

// valueOrDash writes a value, or a dash if it is unknown.
func valueOrDash(v float64, write func(float64) string) string {
	if math.IsNaN(v) {
		return "-"
	}
	return write(v)
}

// latenessText describes the emulation's lateness so far; the results have the verdict.
func latenessText(f *runapi.LiveFigures) string {
	if f.LateReleases == 0 && f.SlotsMissed == 0 {
		return "no frame late so far"
	}
	text := fmt.Sprintf("%d frames released over 2 ms late", f.LateReleases)
	if f.SlotsMissed > 0 {
		text += fmt.Sprintf(", %d slots missed", f.SlotsMissed)
	}
	return text + ", worst " + seconds(f.WorstLatenessSeconds)
}

// plainLine is the line without a terminal, with its stage.
func (v experimentView) plainLine(now time.Time) (line, at string) {
	var counters *runapi.Counters
	if v.state != nil {
		counters = &v.state.Counters
	}
	line = progressLine(v.experiment, counters, now, false)
	if f := liveFiguresOf(v.state); f != nil {
		if percent := deliveredPercent(f.Received, f.Offered); percent != nil {
			line += fmt.Sprintf("  delivered %s %%", percentText(*percent)) + unsentText(f.Offered-f.Expected)
		}
		if d := f.DelaySeconds; d != nil {
			line += fmt.Sprintf("  median %s  p95 %s", seconds(d.Median), seconds(d.P95))
		}
		line += fmt.Sprintf("  queue %d  %s", f.QueueFrames, latenessText(f))
	}
	return line, cmp.Or(stage(v.experiment), "-")
}

// liveFiguresOf a state; nil if it has none.
func liveFiguresOf(state *runapi.State) *runapi.LiveFigures {
	if state == nil {
		return nil
	}
	return state.Live
}
