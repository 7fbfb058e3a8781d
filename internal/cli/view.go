package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/safetext"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// view shows an experiment's progress: one line that is rewritten on a terminal; elsewhere a line for each step, and one every
// plainInterval.
type view struct {
	out io.Writer
	// width of the terminal in characters; 0 if out is none.
	width func() int
	// drawn is set if the terminal's line must be ended before other output.
	drawn bool
	// stage and since are those of the last plain line.
	stage string
	since time.Time
	noted string
}

const plainInterval = 15 * time.Second

func newView(out io.Writer) *view {
	v := &view{out: safetext.Unwrap(out), width: func() int { return 0 }}
	if terminal := descriptor(out); terminal >= 0 {
		v.width = func() int {
			width, _, err := term.GetSize(terminal)
			if err != nil {
				return 80
			}
			return width
		}
	}
	return v
}

// show the experiment's present state.
func (v *view) show(e *v1alpha1.Experiment, counters *runapi.Counters, now time.Time) {
	v.line(progressLine(e, counters, now, v.width() > 0), stage(e), now)
}

// line to show from now on. Without a terminal it is written when the stage changes, and every plainInterval.
func (v *view) line(line, stage string, now time.Time) {
	v.noted = ""
	if width := v.width(); width > 0 {
		fmt.Fprint(v.out, "\r\x1b[K"+truncateLine(terminalLine(line), width-1))
		v.drawn = true
		return
	}
	if stage != v.stage || now.Sub(v.since) >= plainInterval {
		v.stage, v.since = stage, now
		v.print(line)
	}
}

// note something once, such as a lost connection.
func (v *view) note(text string) {
	if text != v.noted {
		v.noted = text
		v.close()
		v.print(text)
	}
}

func (v *view) close() {
	if v.drawn {
		fmt.Fprintln(v.out)
	}
	v.drawn = false
}

func (v *view) print(line string) { fmt.Fprintln(v.out, safetext.Terminal(line)) }

// stage is the phase, and the step of a run under way.
func stage(e *v1alpha1.Experiment) string {
	switch {
	case e.Status.Phase == "":
		return "Submitted"
	case e.Status.Phase != v1alpha1.PhaseRunning:
		return string(e.Status.Phase)
	case e.Status.Step == v1alpha1.StepStop && e.Spec.Stop:
		return "Stopping"
	case e.Status.Step == v1alpha1.StepDrain:
		return "Draining"
	}
	return string(e.Status.Phase) // the steps start and stop last as long as the run
}

// progressLine describes an experiment in one line.
func progressLine(e *v1alpha1.Experiment, counters *runapi.Counters, now time.Time, bar bool) string {
	parts := []string{fmt.Sprintf("%s  %-14s", e.Name, stage(e))}
	if bar && !hasNoDuration(e) {
		parts = append(parts, progressBar(percent(e.Status.Progress), 20))
	}
	if e.Status.Progress != "" && !hasNoDuration(e) {
		parts = append(parts, fmt.Sprintf("%4s", e.Status.Progress))
	}
	if e.Status.T0 != nil && isTimelineUnderWay(e) {
		parts = append(parts, clock(elapsed(e, now))+durationSuffix(e, " / ", ""))
	}
	if e.Status.Nodes.Total > 0 {
		parts = append(parts, fmt.Sprintf("nodes %d/%d", e.Status.Nodes.Ready, e.Status.Nodes.Total))
	}
	if counters != nil {
		parts = append(parts, fmt.Sprintf("sent %d  received %d", counters.Sent, counters.Received))
	}
	if e.Status.Message != "" {
		parts = append(parts, oneLine(e.Status.Message))
	}
	return strings.Join(parts, "  ")
}

// isTimelineUnderWay reports whether the timeline or the drain is under way: later the time since T0 means nothing.
func isTimelineUnderWay(e *v1alpha1.Experiment) bool {
	return e.Status.Phase == v1alpha1.PhaseRunning
}

// hasNoDuration reports whether the experiment is up until it is stopped.
func hasNoDuration(e *v1alpha1.Experiment) bool { return e.Spec.Duration == "" }

// durationSuffix follows an elapsed time: the duration, or a text for a live cluster.
func durationSuffix(e *v1alpha1.Experiment, of, without string) string {
	if hasNoDuration(e) {
		return without
	}
	return of + clock(e.Spec.Duration.Std())
}

// elapsed time since T0, at most the duration, which excludes the drain.
func elapsed(e *v1alpha1.Experiment, now time.Time) time.Duration {
	if hasNoDuration(e) {
		return now.Sub(e.Status.T0.Time)
	}
	return min(now.Sub(e.Status.T0.Time), e.Spec.Duration.Std())
}

// percent reads status.progress, such as 42%.
func percent(text string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil {
		return 0 // not set yet
	}
	return max(0, min(100, n))
}

func progressBar(percent, width int) string {
	full := percent * width / 100
	return "[" + strings.Repeat("█", full) + strings.Repeat("░", width-full) + "]"
}

// clock shows a time as m:ss, negative before T0.
func clock(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	seconds := int(d.Truncate(time.Second).Seconds())
	if seconds >= 3600 {
		return fmt.Sprintf("%s%d:%02d:%02d", sign, seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%s%d:%02d", sign, seconds/60, seconds%60)
}

// truncateLine cuts a line to a width on a terminal.
func truncateLine(line string, width int) string {
	if width < 1 || cells(line) <= width {
		return line
	}
	used := 0
	for i, r := range line {
		if used += cellsOf(r); used >= width {
			return line[:i] + "…"
		}
	}
	return line
}
