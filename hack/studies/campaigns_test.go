package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/matrix"
	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// last returns the last document of a file.
func last(text string) string {
	documents := strings.Split(text, "\n---\n")
	return documents[len(documents)-1]
}

func TestThePointsOfACampaignAreTheStudysRuns(t *testing.T) {
	for _, c := range campaigns() {
		t.Run(c.Name, func(t *testing.T) {
			var made v1alpha1.Campaign
			if err := yaml.UnmarshalStrict([]byte(last(All()[c.path()])), &made); err != nil {
				t.Fatal(err)
			}
			plan, errs := matrix.Expand(made.Name, 0, &made.Spec)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if len(plan.Points) != c.Points {
				t.Errorf("%d points; want %d", len(plan.Points), c.Points)
			}
			if c.run == nil {
				return
			}
			files := map[string]bool{}
			for _, run := range plan.Runs {
				levels := map[string]string{}
				for axis, level := range run.Point.Levels {
					levels[axis] = string(level)
				}
				path := c.run(levels)
				files[path] = true
				samePoint(t, path, run, &made.Spec.Template.Spec)
			}
			if len(files) != c.Points {
				t.Errorf("the points are %d files; want %d", len(files), c.Points)
			}
		})
	}
}

// samePoint compares a run's spec with a file's.
func samePoint(t *testing.T, path string, run matrix.Run, template *v1alpha1.ExperimentSpec) {
	t.Helper()
	text, known := runs()[path]
	if !known {
		t.Errorf("point %s would be %s, which is no run of the study", run.Point.Name, path)
		return
	}
	var want v1alpha1.Experiment
	if err := yaml.UnmarshalStrict([]byte(last(text)), &want); err != nil {
		t.Fatal(err)
	}
	got, err := run.Point.Spec(template, run.Seed)
	if err != nil {
		t.Errorf("point %s: %v", run.Point.Name, err)
		return
	}
	if diff := cmp.Diff(want.Spec, got.Typed); diff != "" {
		t.Errorf("point %s is not %s (-file +point):\n%s", run.Point.Name, path, diff)
	}
}

// Every point is checked as an experiment: not all of them have files of their own.
func TestTheStudiesCampaignsAreValid(t *testing.T) {
	all := All()
	for _, c := range campaigns() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			report := validate.Text(c.path(), []byte(all[c.path()]))
			for _, finding := range report.Findings {
				tracks := strings.HasPrefix(finding.Message, "ConfigMap of v1 is not an object of vignette")                                         // E3 and E4 have them beside them
				declared := strings.HasPrefix(c.Name, "e6-") && strings.Contains(finding.Message, "pathloss of 300MHz, and the network is at 60MHz") // E6's README says so
				if !tracks && !declared {
					t.Error(finding)
				}
			}
			if points := report.Expansions["Campaign/"+c.Name].Points; points != c.Points {
				t.Errorf("%d points were checked; want %d", points, c.Points)
			}
		})
	}
}
