package validate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/decide"
	"vignette.dev/vignette/internal/core/matrix"
	figures "vignette.dev/vignette/internal/reference"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Expansion is the result of a campaign's matrix.
type Expansion struct {
	Points, Runs int
	// Duration is the total of all runs by their specs, with the longest drain times, without start and analysis.
	Duration time.Duration
	// Longest is that of the longest run.
	Longest time.Duration
	// Parallelism is the most simultaneous runs.
	Parallelism int
}

// Takes is how long all runs take, as many at a time as the campaign allows.
func (e Expansion) Takes() time.Duration {
	return max(e.Longest, e.Duration/time.Duration(max(1, min(e.Parallelism, e.Runs))))
}

// template is the path of the spec of a campaign's experiments.
const template = "spec.template.spec"

// expand checks every point of a campaign as an experiment.
func (d *document) expand(known surroundings) (*Expansion, []Finding) {
	var c v1alpha1.Campaign
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &c); err != nil {
		return nil, []Finding{d.finding("", err.Error())}
	}
	var round int64 // of a campaign without a schedule
	if c.Spec.Schedule != nil {
		round = 1
		if _, err := decide.ParseSchedule(c.Spec.Schedule); err != nil {
			path, message, _ := strings.Cut(err.Error(), ": ")
			return nil, []Finding{d.finding(path, message)}
		}
	}
	plan, errs := matrix.Expand(c.Name, round, &c.Spec)
	if len(errs) > 0 {
		return nil, d.refused(errs)
	}
	expansion := &Expansion{Points: len(plan.Points), Runs: len(plan.Runs), Parallelism: int(max(1, c.Spec.Parallelism))}
	firsts, lasts := map[*matrix.Point]matrix.Run{}, map[*matrix.Point]time.Duration{}
	for _, run := range plan.Runs {
		if _, seen := firsts[run.Point]; !seen {
			firsts[run.Point], lasts[run.Point] = run, run.Point.Duration(&c.Spec.Template.Spec)
		}
		expansion.Duration += lasts[run.Point]
		expansion.Longest = max(expansion.Longest, lasts[run.Point])
	}
	var found pointFindings
	for _, point := range plan.Points {
		run := firsts[point]
		spec, err := point.Spec(&c.Spec.Template.Spec, run.Seed)
		if err != nil {
			found.add(point.Name, d.finding("spec.matrix", err.Error()))
			continue
		}
		for _, f := range d.experiment(run.Name, spec).check(known) {
			f.Path = strings.Replace(f.Path, "spec", template, 1)
			f.Line = d.line(f.Path)
			found.add(point.Name, f)
		}
	}
	return expansion, append(found.list(len(plan.Points)), d.badReference(c.Spec.Reference, plan.Points, known)...)
}

// badReference reports what is wrong with reference figures, if the files have their ConfigMap.
func (d *document) badReference(of *v1alpha1.ReferenceFigures, points []*matrix.Point, known surroundings) []Finding {
	if of == nil {
		return nil
	}
	keys := known.contents["ConfigMap"][of.Ref]
	if keys == nil || of.Key != "" && !keys[of.Key] {
		return nil // missingContents says so
	}
	contents := map[string][]byte{}
	for key := range keys {
		contents[key] = []byte(known.scripts[v1alpha1.KeyReference{Name: of.Ref, Key: key}])
	}
	var names []string
	for _, point := range points {
		names = append(names, point.Name)
	}
	if _, err := figures.OfConfigMap(of.Ref, of.Key, contents, names); err != nil {
		return []Finding{d.finding("spec.reference", err.Error())}
	}
	return nil
}

// refused turns errors of the matrix into findings.
func (d *document) refused(errs field.ErrorList) (findings []Finding) {
	for _, e := range errs {
		findings = append(findings, d.finding(e.Field, describe(e)))
	}
	return findings
}

// experiment returns a point's experiment as a document of its own.
func (d *document) experiment(name string, spec *matrix.Spec) *document {
	metadata := map[string]any{"name": name}
	if of, ok := d.object["metadata"].(map[string]any); ok && of["namespace"] != nil {
		metadata["namespace"] = of["namespace"]
	}
	object := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Experiment", "metadata": metadata, "spec": runtime.DeepCopyJSON(spec.Object)}
	return &document{file: d.file, root: d.root, object: object, kind: "Experiment", name: name}
}

// pointFindings are findings about points. A problem of several points is reported once.
type pointFindings struct {
	order  []Finding
	points map[Finding][]string
}

func (p *pointFindings) add(point string, f Finding) {
	if p.points == nil {
		p.points = map[Finding][]string{}
	}
	if _, seen := p.points[f]; !seen {
		p.order = append(p.order, f)
	}
	if !slices.Contains(p.points[f], point) {
		p.points[f] = append(p.points[f], point)
	}
}

// shownPoints is how many points a finding names.
const shownPoints = 4

func (p *pointFindings) list(total int) (findings []Finding) {
	for _, f := range p.order {
		points := p.points[f]
		switch {
		case len(points) == total && total > 1:
			f.Message = fmt.Sprintf("in all %d points: %s", total, f.Message)
		case len(points) > 1:
			f.Message = fmt.Sprintf("in points %s: %s", wording.Some(points, shownPoints), f.Message)
		default:
			f.Message = fmt.Sprintf("in point %s: %s", points[0], f.Message)
		}
		findings = append(findings, f)
	}
	return findings
}
