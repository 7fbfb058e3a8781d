package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// step is a phase and its cost.
type step struct {
	name     string
	from, to int
	applying time.Duration
	usage    usage
}

func (s step) count() float64 { return float64(s.to - s.from) }

// report is a benchmark's report.
type report struct {
	starts, stops, rests []step
	peak                 int64
}

func (r *report) print(w io.Writer, o options) {
	fmt.Fprintf(w, "experiments of %d nodes in %d namespaces; per experiment of each step, and as a multiple of the first step's\n\n", o.nodes, o.teams)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "step\texperiments/s\tAPI calls\twrites\tCPU s\treconciliations\tarchive calls\tRSS MiB\tcalls ×\tCPU ×\t")
	for _, phase := range []struct {
		name  string
		steps []step
	}{{"start", r.starts}, {"stop", r.stops}} {
		for _, s := range phase.steps {
			u, first, n := s.usage, phase.steps[0], s.count()
			calls, cpu := float64(u.calls.total())/n, u.cpu.Seconds()/n
			fmt.Fprintf(t, "%s %d to %d\t%.2f\t%.1f\t%.1f\t%.3f\t%.1f\t%.1f\t%d\t%.2f\t%.2f\t\n", phase.name, s.from, s.to, n/u.wall.Seconds(), calls, float64(u.calls.writes())/n,
				cpu, float64(u.reconciles)/n, float64(u.archive.total())/n, u.rss>>20,
				calls/(float64(first.usage.calls.total())/first.count()), cpu/(first.usage.cpu.Seconds()/first.count()))
		}
	}
	_ = t.Flush()
	fmt.Fprintf(w, "\npeak memory of the operator: %d MiB\n\nat rest, per minute\n", r.peak>>20)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "all\texperiments\twrites to the API server\twrites to the archive\treads from the API server\treads from the archive\tCPU s\tRSS MiB\t")
	for _, s := range r.rests {
		m := s.usage.wall.Minutes()
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%d\t\n", s.name, s.to, float64(s.usage.calls.writes())/m, float64(s.usage.archive.writes())/m,
			float64(s.usage.calls.total()-s.usage.calls.writes())/m, float64(s.usage.archive.total()-s.usage.archive.writes())/m, s.usage.cpu.Seconds()/m, s.usage.rss>>20)
	}
	_ = t.Flush()
	r.detail(w, "start", r.starts)
	r.detail(w, "stop", r.stops)
}

// detail lists the calls, in the first step and in the last, and the processor time by program.
func (r *report) detail(w io.Writer, name string, steps []step) {
	if len(steps) == 0 {
		return
	}
	first, last := steps[0], steps[len(steps)-1]
	fmt.Fprintf(w, "\n%s: API calls per experiment, first step and last\n", name)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	kinds := slices.Collect(maps.Keys(last.usage.calls))
	slices.SortFunc(kinds, func(a, b string) int {
		return cmp.Or(cmp.Compare(last.usage.calls[b], last.usage.calls[a]), strings.Compare(a, b))
	})
	for _, kind := range kinds {
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t\n", kind, float64(first.usage.calls[kind])/first.count(), float64(last.usage.calls[kind])/last.count())
	}
	_ = t.Flush()
	fmt.Fprintf(w, "processors in the last step:")
	for _, program := range slices.Sorted(maps.Keys(last.usage.programs)) {
		fmt.Fprintf(w, " %s %.0f %%", program, 100*last.usage.programs[program].Seconds()/last.usage.wall.Seconds())
	}
	fmt.Fprintln(w)
}

// silent returns an error for any write at rest.
func (r *report) silent() (err error) {
	for _, s := range r.rests {
		if n := s.usage.calls.writes() + s.usage.archive.writes(); n > 0 {
			err = errors.Join(err, fmt.Errorf("%d writes with all %s and nothing to do: %v %v", n, s.name, s.usage.calls, s.usage.archive))
		}
	}
	return err
}
