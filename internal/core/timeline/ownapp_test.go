package timeline

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestAUsersAppThatTheTimelineStopsCountsAsAPublisher(t *testing.T) {
	own := func(name string) v1alpha1.App {
		return v1alpha1.App{Name: name, Image: "i", Command: []string{"x"}}
	}
	spec := &v1alpha1.ExperimentSpec{
		Duration: "60s", Timeline: []v1alpha1.TimelineEntry{entry("5s", "sender", ""), entry("50s", "", "sender")},
		Apps:  []v1alpha1.App{own("sender"), own("receiver")},
		Nodes: []v1alpha1.Node{{Name: "nor", Apps: []string{"sender", "receiver"}}},
	}
	expanded, errs := topology.Expand(spec)
	compiled, more := Compile(spec, expanded)
	if errs = append(errs, more...); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if got := compiled.MeasureStart(); got != 5*time.Second {
		t.Errorf("the measuring window starts at %s, want 5s", got)
	}
	stopped := describeActions(compiled.StopEarly(10 * time.Second))
	if got, want := stopped[len(stopped)-1], "12s stop nor/sender"; got != want {
		t.Errorf("an early stop is %q, want %q: receivers run until the end of the drain", got, want)
	}
}
