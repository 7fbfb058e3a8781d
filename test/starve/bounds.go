package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"vignette.dev/vignette/internal/runapi"
)

const (
	wantCovered = 0.95
	mostWidth   = 5
	// level of significance at which a coverage of wantCovered is rejected.
	level = 0.05
)

// analysis computes the results of runs' folders, without plots.
const analysis = `
import json, pathlib, sys
from vignette_analysis import analyse
for run in sys.argv[1:]:
    pathlib.Path(run, "results.json").write_text(json.dumps(analyse(run).results))
`

func analyse(runs []*run) error {
	arguments := []string{"-c", analysis}
	for _, r := range runs {
		arguments = append(arguments, r.directory)
	}
	if output, err := exec.Command("hack/python", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("analysis: %w\n%s", err, output)
	}
	for _, r := range runs {
		text, err := os.ReadFile(filepath.Join(r.directory, "results.json"))
		if err == nil {
			err = json.Unmarshal(text, &r.results)
		}
		if err == nil {
			err = r.readFigures()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.directory, err)
		}
	}
	return nil
}

// figure of the headline, with its bound and tolerance.
type figure struct {
	value, tolerance float64
	runapi.Interval
}

var figureNames = [...]string{"median", "p95", "delivered"}

type figures [len(figureNames)]figure

func (r *run) readFigures() error {
	v := r.results.Verdict
	i := slices.IndexFunc(r.results.Groups, func(g runapi.GroupResult) bool { return g.Name == r.results.Headline })
	if i < 0 || v == nil || v.Bounds == nil || v.Bounds.DeliveredPercent == nil || r.results.Groups[i].DelaySeconds == nil {
		return fmt.Errorf("the results have no bounds of a headline: %+v", r.results.Gaps)
	}
	g, t := r.results.Groups[i], v.Tolerances
	middle, p95 := g.DelaySeconds.Median, *g.DelaySeconds.P95
	r.figures = figures{{middle, max(middle*t.MedianPercent/100, t.LeastSeconds), v.Bounds.DelaySeconds["median"]},
		{p95, max(p95*t.P95Percent/100, t.LeastSeconds), v.Bounds.DelaySeconds["p95"]},
		{*g.Messages.DeliveredPercent, t.DeliveredPoints, *v.Bounds.DeliveredPercent}}
	return nil
}

// comparison of a starved run's figure with those of the unstarved runs of its seed, from least to most.
type comparison struct {
	figure
	least, most float64
	// noise is the largest difference of two unstarved runs of one seed, among all runs of the case.
	noise *float64
}

// difference from the unstarved runs.
func (c *comparison) difference() float64 { return max(0, c.value-c.most, c.least-c.value) }

// covered reports whether the bound includes the unstarved runs' figures, up to noise and rounding.
func (c *comparison) covered() bool { return max(c.Low-c.most, c.least-c.High) <= *c.noise+1e-9 }

// width of the bound relative to what it should cover: the difference, or the tolerance if that is more. It
// is NaN if bound and difference are within the tolerance.
func (c *comparison) width() float64 {
	if c.High-c.Low <= c.tolerance && c.difference() <= c.tolerance {
		return math.NaN()
	}
	return (c.High - c.Low) / max(c.tolerance, c.difference())
}

// pair is a starved run beside unstarved ones of its case and seed.
type pair struct {
	*run
	compared [len(figureNames)]comparison
}

// pairsOf returns the pairs of all starved runs.
func pairsOf(runs []*run) (pairs []*pair) {
	noise := map[*netCase]*[len(figureNames)]float64{}
	for _, r := range runs {
		if r.kind == unstarved {
			continue
		}
		if noise[r.netCase] == nil {
			noise[r.netCase] = &[len(figureNames)]float64{}
		}
		p := &pair{run: r}
		for i := range p.compared {
			least, most := math.Inf(1), math.Inf(-1)
			for _, other := range runs {
				if other.kind == unstarved && other.seed == r.seed && other.netCase == r.netCase {
					least, most = min(least, other.figures[i].value), max(most, other.figures[i].value)
				}
			}
			n := &noise[r.netCase][i]
			*n = max(*n, most-least)
			p.compared[i] = comparison{r.figures[i], least, most, n}
		}
		pairs = append(pairs, p)
	}
	return pairs
}

func checkBounds(runs []*run) error {
	if err := analyse(runs); err != nil {
		return err
	}
	pairs := pairsOf(runs)
	printPairs(pairs)
	kept := 0
	for _, r := range runs {
		if r.kind == unstarved && r.results.Verdict.KeptUp {
			kept++
		}
	}
	fmt.Printf("%d of %d unstarved runs kept up: on a busy machine they do not\n", kept, len(runs)-len(pairs))
	if *tcp {
		return nil
	}
	return errors.Join(checkCoverage(pairs), checkWidths(pairs))
}

func checkCoverage(pairs []*pair) (err error) {
	missed := 0
	for _, p := range pairs {
		if slices.ContainsFunc(p.compared[:], func(c comparison) bool { return !c.covered() }) {
			missed++
		}
		for i, c := range p.compared {
			if p.results.Verdict.KeptUp && c.difference() > c.tolerance+*c.noise {
				err = errors.Join(err, fmt.Errorf("%s: keptUp is true, and the %s is off by more than its tolerance", p.directory, figureNames[i]))
			}
		}
	}
	fmt.Printf("bounds cover %d of %d runs; less than %.0f %% is rejected at a level of %.0f %%\n", len(pairs)-missed, len(pairs), 100*wantCovered, 100*level)
	if atLeast(missed, len(pairs), 1-wantCovered) < level {
		err = errors.Join(err, fmt.Errorf("bounds do not cover %d of %d runs", missed, len(pairs)))
	}
	return err
}

func checkWidths(pairs []*pair) error {
	var all []float64
	for i, name := range figureNames {
		var widths []float64
		for _, p := range pairs {
			if w := p.compared[i].width(); !math.IsNaN(w) {
				widths = append(widths, w)
			}
		}
		fmt.Printf("bounds of the %s: %.1f times as wide as needed, the median of %d runs in which it is off or may be\n", name, median(widths), len(widths))
		all = append(all, widths...)
	}
	if median(all) > mostWidth {
		return fmt.Errorf("bounds are %.1f times as wide as needed, in the median; want at most %d", median(all), mostWidth)
	}
	return nil
}

// median of values; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// atLeast is the probability of at least count of all, each with the same probability.
func atLeast(count, all int, probability float64) (sum float64) {
	term := math.Pow(1-probability, float64(all))
	for k := range all + 1 {
		if k >= count {
			sum += term
		}
		term *= float64(all-k) / float64(k+1) * probability / (1 - probability)
	}
	return sum
}

func printPairs(pairs []*pair) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "seed\tcase\tstarved by\tfigure\tunstarved\tnoise\tstarved\tbound\tcovered\twidth\tkeptUp")
	for _, p := range pairs {
		for i, name := range figureNames {
			c := &p.compared[i]
			show := func(v float64) string {
				if name == "delivered" {
					return fmt.Sprintf("%.2f %%", v)
				}
				return fmt.Sprintf("%.1f ms", 1000*v)
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s to %s\t%v\t%.1f\t%v\n", p.seed, p.netCase.name, p.kind.name, name, show((c.least+c.most)/2), show(*c.noise),
				show(c.value), show(c.Low), show(c.High), c.covered(), c.width(), p.results.Verdict.KeptUp)
		}
	}
	_ = w.Flush()
}
