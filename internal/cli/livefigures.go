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

// history of what an experiment's figures were, one sample at each look.
type history struct {
	samples []sample
}

// sample of an experiment's figures. What is not known is NaN.
type sample struct {
	at             time.Time
	sent, received int64
	// deliveredPercent of what was offered so far, delays in seconds, frames that wait, and messages a second since the sample before.
	deliveredPercent, median, p95, queue float64
	sentPerSecond, receivedPerSecond     float64
}

// kept samples: more than any terminal is wide.
const keptSamples = 300

// add what the server tells now.
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

// recent mean of a rate over the last seconds; NaN where there is none. Logs reach the archive in pieces, so that single rates jump.
func (h *history) recent(figure func(sample) float64) float64 {
	const over = 5
	sum, n := 0.0, 0
	for _, v := range h.series(figure)[max(0, len(h.samples)-over):] {
		if v == v {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}

// liveState asks the server how a run is getting on; nil where it has nothing of it (yet).
func (c *cluster) liveState(ctx context.Context, e *v1alpha1.Experiment) *runapi.State {
	if e.Status.T0 == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*refresh)
	defer cancel()
	state, err := c.archive.LiveState(ctx, string(e.UID))
	if err != nil {
		return nil // as in counters
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

// events of an experiment, the newest last; none where the user may not read them.
func (c *cluster) events(ctx context.Context, e *v1alpha1.Experiment) (events []event) {
	var list corev1.EventList
	if c.kube.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingFields{"involvedObject.uid": string(e.UID)}) != nil {
		return nil // the view does without
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

// experimentView is everything that is shown of an experiment.
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

// head is the line on the experiment's way.
func (v experimentView) head(now time.Time) string {
	e := v.experiment
	bare := e.DeepCopy()
	bare.Name, bare.Status.Message = e.Namespace+"/"+e.Name, ""
	if nodes := e.Status.Nodes; runs(e) && nodes.Ready == nodes.Total {
		bare.Status.Nodes.Total = 0 // of which there is nothing to say then
	}
	line := progressLine(bare, nil, now, true)
	if runs(e) && e.Status.T0 != nil && !live(e) {
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

// row of a figure: its name, its value, how it went, and a note.
func figureRow(width int, label, value string, series []float64, low, high float64, note string) string {
	line := pad(label, labelWidth) + pad(value, valueWidth)
	spark := min(60, width-labelWidth-valueWidth-noteWidth)
	if spark < 10 { // no room for a note
		spark, note = min(60, width-labelWidth-valueWidth-1), ""
	}
	if series != nil {
		line += sparkline(series, low, high, spark) + "  "
	}
	return line + note
}

// figures so far, as the dashboard Experiment live has them.
func (v experimentView) figures(width int) []string {
	last := v.history.samples[len(v.history.samples)-1]
	var lines []string
	if f := liveOf(v.state); f != nil {
		delivered := "-"
		if percent := deliveredPercent(f.Received, f.Offered); percent != nil {
			delivered = percentText(*percent) + " %"
		}
		series := v.history.series(func(s sample) float64 { return s.deliveredPercent })
		low, _ := bounds(series)
		lines = append(lines, figureRow(width, "delivered", delivered, series, min(low, 90), 100, arrived(f)))
		medians, p95s := v.history.series(func(s sample) float64 { return s.median }), v.history.series(func(s sample) float64 { return s.p95 })
		_, high := bounds(p95s)
		note := ""
		if f.DelaySeconds != nil {
			note = "at most " + seconds(f.DelaySeconds.Max)
		}
		lines = append(lines, figureRow(width, "median delay", known(last.median, seconds), medians, 0, high, "same scale as p95"),
			figureRow(width, "p95 delay", known(last.p95, seconds), p95s, 0, high, note))
	}
	lines = append(lines, v.rate(width, "sent/s", func(s sample) float64 { return s.sentPerSecond }, last.sent),
		v.rate(width, "received/s", func(s sample) float64 { return s.receivedPerSecond }, last.received))
	if f := liveOf(v.state); f != nil {
		queue := v.history.series(func(s sample) float64 { return s.queue })
		_, high := bounds(queue)
		note := ""
		if f.DeepestFrames > 0 {
			note = fmt.Sprintf("%d at %s", f.DeepestFrames, f.DeepestQueue)
		}
		lines = append(lines, figureRow(width, "queue", fmt.Sprintf("%d frames", f.QueueFrames), queue, 0, max(high, 1), note),
			pad("emulation", labelWidth)+lateness(f))
	}
	return lines
}

func (v experimentView) rate(width int, label string, figure func(sample) float64, total int64) string {
	series := v.history.series(figure)
	_, high := bounds(series)
	return figureRow(width, label, known(v.history.recent(figure), significant), series, 0, high, fmt.Sprintf("%d in all", total))
}

// arrived of what was offered, short.
func arrived(f *runapi.LiveFigures) string {
	if f.Offered == f.Expected {
		return fmt.Sprintf("%d of %d offered", f.Received, f.Offered)
	}
	return fmt.Sprintf("%d of %d", f.Received, f.Offered) + unsent(f.Offered-f.Expected)
}

// unsent deliveries, of which nothing is said where there are none.
func unsent(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d never sent", n)
}

// bounds of the values that are known; 0, 0 of none.
func bounds(values []float64) (low, high float64) {
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

// known writes a value, or a dash where it is not known.
func known(v float64, write func(float64) string) string {
	if math.IsNaN(v) {
		return "-"
	}
	return write(v)
}

// lateness of the emulation so far; the verdict in the results is what counts.
func lateness(f *runapi.LiveFigures) string {
	if f.LateReleases == 0 && f.SlotsMissed == 0 {
		return "no frame late so far"
	}
	text := fmt.Sprintf("%d frames released over 2 ms late", f.LateReleases)
	if f.SlotsMissed > 0 {
		text += fmt.Sprintf(", %d slots missed", f.SlotsMissed)
	}
	return text + ", worst " + seconds(f.WorstLatenessSeconds)
}

// plain is the line for where there is no terminal, with the stage that it speaks of.
func (v experimentView) plain(now time.Time) (line, at string) {
	var counters *runapi.Counters
	if v.state != nil {
		counters = &v.state.Counters
	}
	line = progressLine(v.experiment, counters, now, false)
	if f := liveOf(v.state); f != nil {
		if percent := deliveredPercent(f.Received, f.Offered); percent != nil {
			line += fmt.Sprintf("  delivered %s %%", percentText(*percent)) + unsent(f.Offered-f.Expected)
		}
		if d := f.DelaySeconds; d != nil {
			line += fmt.Sprintf("  median %s  p95 %s", seconds(d.Median), seconds(d.P95))
		}
		line += fmt.Sprintf("  queue %d  %s", f.QueueFrames, lateness(f))
	}
	return line, cmp.Or(stage(v.experiment), "-")
}

// liveOf a state are its figures so far; nil of none.
func liveOf(state *runapi.State) *runapi.LiveFigures {
	if state == nil {
		return nil
	}
	return state.Live
}
