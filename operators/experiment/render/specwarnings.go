package render

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/timeline"
	"vignette.dev/vignette/operators/experiment/topology"
)

// SpecWarnings about a sound experiment: what its author hardly wants. scenario is that of the experiment, nil where there is none or where it is not
// known.
func SpecWarnings(t *topology.Topology, spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec, scenario *Scenario) field.ErrorList {
	doubts := append(twoRayWarnings(t, spec, waveforms), leadWarnings(t, spec)...)
	doubts = append(doubts, routingDomainWarnings(t, spec)...)
	return append(doubts, scenarioWarnings(spec, scenario)...)
}

// leadWarnings are publishers that are stopped before their first message.
func leadWarnings(t *topology.Topology, spec *v1alpha1.ExperimentSpec) (doubts field.ErrorList) {
	compiled, errs := timeline.Compile(spec, t)
	if len(errs) > 0 {
		return nil // said elsewhere
	}
	longest := longestRunTimes(compiled)
	for i, app := range spec.Apps {
		if app.Publisher == nil || app.Publisher.Lead.Std() <= 0 {
			continue
		}
		if runs, known := longest[app.Name]; known && app.Publisher.Lead.Std() >= runs {
			doubts = append(doubts, field.Invalid(field.NewPath("spec", "apps").Index(i).Child("publisher", "lead"), app.Publisher.Lead,
				fmt.Sprintf("the app runs for %s at most: it publishes nothing", runs)))
		}
	}
	return doubts
}

// longestRunTimes of the apps that are started and stopped, on any node.
func longestRunTimes(t *timeline.Timeline) map[string]time.Duration {
	longest, started := map[string]time.Duration{}, map[runapi.Target]time.Duration{}
	for _, action := range t.Actions {
		at := time.Duration(action.AtNanoseconds)
		for _, target := range action.Targets {
			since, runs := started[target]
			switch {
			case action.Verb == runapi.VerbStart && !runs:
				started[target] = at
			case action.Verb == runapi.VerbStop && runs:
				longest[target.App] = max(longest[target.App], at-since)
				delete(started, target)
			}
		}
	}
	for target := range started { // nobody knows how long these run
		delete(longest, target.App)
	}
	return longest
}

// scenarioWarnings are about a scenario that is longer or shorter than the run.
func scenarioWarnings(spec *v1alpha1.ExperimentSpec, scenario *Scenario) field.ErrorList {
	if scenario == nil || spec.Duration == "" {
		return nil
	}
	has, runs := scenario.Statistics.Duration.Std(), spec.Duration.Std()
	message := ""
	switch {
	case has > runs && !scenario.Synthetic:
		message = fmt.Sprintf("the scenario goes on until %s, and the experiment ends at %s: what comes later does not take place", has, runs)
	case has > 0 && has < runs:
		message = fmt.Sprintf("the scenario ends at %s, and the experiment at %s: from then on nothing moves", has, runs)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "scenario", "ref"), spec.Scenario.Ref, message)}
}
