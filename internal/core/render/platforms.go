package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// reportedPlatforms are those whose positions the instances of a publishing app report on a node, nil for the node's own.
func reportedPlatforms(site apps.Site) []int {
	all, err := v1alpha1.ParsePlatforms(site.App.Publisher.Platforms)
	if err != nil || len(all) != site.TotalInstances {
		return nil
	}
	return all[site.FirstIndex : site.FirstIndex+len(site.Instances)]
}

// forPlatforms calls a check for each app whose publisher has platforms, with the app's path, and returns what it finds.
func forPlatforms(spec *v1alpha1.ExperimentSpec, check func(app v1alpha1.App, path *field.Path) *field.Error) (errs field.ErrorList) {
	for i, app := range spec.Apps {
		if app.Publisher == nil || app.Publisher.Platforms == "" {
			continue
		}
		if err := check(app, field.NewPath("spec", "apps").Index(i)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// CheckPlatforms finds publishers whose platforms are not one for each instance, or that report no position.
func CheckPlatforms(spec *v1alpha1.ExperimentSpec, t *topology.Topology) field.ErrorList {
	return forPlatforms(spec, func(app v1alpha1.App, path *field.Path) *field.Error { return checkPlatforms(app, path, spec, t) })
}

func checkPlatforms(app v1alpha1.App, path *field.Path, spec *v1alpha1.ExperimentSpec, t *topology.Topology) *field.Error {
	value, at := app.Publisher.Platforms, path.Child("publisher", "platforms")
	numbers, err := v1alpha1.ParsePlatforms(value)
	nodes, each := len(t.NodesRunning(app.Name)), max(int(app.Instances), 1)
	payload, _ := reportedPayload(app, path)
	switch {
	case err != nil:
		return field.Invalid(at, value, "must be ascending numbers of platforms and ranges of them, such as 1-8,17")
	case payload == "":
		return field.Forbidden(at, fmt.Sprintf("platforms are for messages that report a position: use payload geojson, geojson-ids, nffi, nffi-long or gps, or leave out platforms of %s", app.Name))
	case spec.Scenario == nil:
		return field.Invalid(at, value, "platforms are those of a scenario: name one in spec.scenario, or leave out platforms")
	case len(numbers) != nodes*each:
		return field.Invalid(at, value, fmt.Sprintf("has %d platforms, and %s has %d instances on %d nodes, %d in all: want one platform for each",
			len(numbers), app.Name, each, nodes, nodes*each))
	}
	return nil
}

// CheckScenarioPlatforms finds publishers whose platforms the scenario does not have. It overlooks a scenario that is not known.
func CheckScenarioPlatforms(spec *v1alpha1.ExperimentSpec, scenario *Scenario) field.ErrorList {
	if scenario == nil {
		return nil
	}
	return forPlatforms(spec, func(app v1alpha1.App, path *field.Path) *field.Error {
		if message := scenario.whyNotReported(app.Publisher.Platforms); message != "" {
			return field.Invalid(path.Child("publisher", "platforms"), app.Publisher.Platforms, message)
		}
		return nil
	})
}

// whyNotReported explains why positions of some platforms cannot be reported; empty if they can.
func (s *Scenario) whyNotReported(platforms string) string {
	if !s.Statistics.Positions {
		return fmt.Sprintf("scenario %s has no positions: take one with positions, or leave out platforms", s.Name)
	}
	numbers, err := v1alpha1.ParsePlatforms(platforms)
	if err != nil {
		return "" // another check reports it
	}
	for _, number := range numbers {
		if !s.Statistics.HasPlatform(number) {
			return fmt.Sprintf("scenario %s has the platforms %s, and not %d", s.Name, s.Statistics.PlatformNumbers, number)
		}
	}
	return ""
}
