package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// coalition has two nations with two units each, whose positions are those of platforms.
const coalition = `
metadata: {name: coalition}
spec:
  scenario: {ref: tracks}
  networks:
  - {name: wan, link: {}, subnet: 198.18.9.0/24}
  apps:
  - {name: broker, mosquitto: {}}
  - {name: units, instances: 2, publisher: {protocol: mqtt, to: broker, payload: geojson, period: 2s, platforms: "101-103,107"}}
  nodes:
  - {name: nor, networks: [wan], apps: [broker, units]}
  - {name: prt, networks: [wan], apps: [units]}
`

// tracksScenario has the platforms of coalition.
func tracksScenario() *Scenario {
	return &Scenario{Name: "tracks", Statistics: v1alpha1.ScenarioStatistics{Positions: true, PlatformNumbers: "101-108"}}
}

func TestInstancesReportThePlatformsInTheOrderOfNodes(t *testing.T) {
	in := companyOf(t, coalition)
	in.Scenario = tracksScenario()
	if errs := append(CheckPlatforms(&in.Experiment.Spec, in.Topology), CheckScenarioPlatforms(&in.Experiment.Spec, in.Scenario)...); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for _, node := range Plan(in, nil, nil).Nodes {
		want := map[string][]int{"nor": {101, 102}, "prt": {103, 107}}[node.Name]
		units := node.Apps[len(node.Apps)-1]
		if !slices.Equal(units.Platforms, want) {
			t.Errorf("the plan has platforms %v for %s; want %v", units.Platforms, node.Name, want)
		}
	}
	for _, node := range in.Topology.Nodes {
		for _, site := range MakeSites(in)[node.Name] {
			for i, instance := range KindOf(site.App).Render(site).Instances {
				if site.App.Name == "units" && instance.Platform != site.Platforms[i] {
					t.Errorf("the agent has platform %d for %s; want %d", instance.Platform, instance.Name, site.Platforms[i])
				}
			}
		}
	}
	if warnings := madeUpPositions(in.Topology, &in.Experiment.Spec, in.Scenario); len(warnings) > 0 {
		t.Errorf("warnings %v; want none, as all positions are of the scenario", warnings)
	}
}

func TestPlatformsThatCannotBeReportedAreRefused(t *testing.T) {
	const field = "spec.apps[1].publisher.platforms: "
	for name, c := range map[string]struct{ old, now, want string }{
		"too few":            {`"101-103,107"`, `"101-103"`, field + `Invalid value: "101-103": has 3 platforms, and units has 2 instances on 2 nodes, 4 in all: want one platform for each`},
		"no ranges":          {`"101-103,107"`, `"107,101-103"`, field + `Invalid value: "107,101-103": must be ascending numbers of platforms and ranges of them, such as 1-8,17`},
		"no scenario":        {"scenario: {ref: tracks}", "seed: 1", field + `Invalid value: "101-103,107": platforms are those of a scenario: name one in spec.scenario, or leave out platforms`},
		"no position":        {"payload: geojson", `payload: "bytes:100"`, field + "Forbidden: platforms are for messages that report a position"},
		"a pattern":          {"payload: geojson, period: 2s", `pattern: {mgen: "0.0 ON 1 PERIODIC [1 100]"}`, field + "Forbidden: platforms are for messages that report a position"},
		"a platform of none": {`"101-103,107"`, `"101-103,109"`, field + `Invalid value: "101-103,109": scenario tracks has the platforms 101-108, and not 109`},
	} {
		t.Run(name, func(t *testing.T) {
			in := companyOf(t, strings.Replace(coalition, c.old, c.now, 1))
			errs := append(CheckPlatforms(&in.Experiment.Spec, in.Topology), CheckScenarioPlatforms(&in.Experiment.Spec, tracksScenario())...)
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want) {
				t.Errorf("%v; want %s", errs.ToAggregate(), c.want)
			}
		})
	}
}

func TestAScenarioWithoutPositionsHasNoneToReport(t *testing.T) {
	in := companyOf(t, coalition)
	scenario := tracksScenario()
	scenario.Statistics.Positions = false
	errs := CheckScenarioPlatforms(&in.Experiment.Spec, scenario)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "scenario tracks has no positions: take one with positions, or leave out platforms") {
		t.Errorf("%v; want that the scenario has no positions", errs.ToAggregate())
	}
	if errs := CheckScenarioPlatforms(&in.Experiment.Spec, nil); len(errs) > 0 {
		t.Errorf("%v for a scenario that is not known; want nothing", errs.ToAggregate())
	}
}

func TestGuestsKnowTheirPositionsAsPodsDo(t *testing.T) {
	in := companyOf(t, `
metadata: {name: carried}
spec:
  scenario: {ref: tracks}
  networks:
  - {name: wan, link: {}, subnet: 198.18.9.0/24}
  apps:
  - {name: broker, mosquitto: {}}
  - {name: tracker, command: [/opt/tracker]}
  nodes:
  - {name: hq, runtime: vm, networks: [wan], apps: [broker, tracker], position: {latitude: "58.19", longitude: "7.98", altitude: 20m}}
  - {name: veh, runtime: vm, platform: "103", networks: [wan], apps: [tracker]}
  - {name: idle, runtime: vm, platform: "104", networks: [wan]}
`)
	in.Scenario = tracksScenario()
	fixed := agentconfig.Position{LatitudeDegrees: 58.19, LongitudeDegrees: 7.98, AltitudeMetres: 20}
	logged, told := fixed, fixed
	logged.Log, told.File = true, true
	want := map[string]*agentconfig.Position{"hq/broker": &logged, "hq/tracker": &told, "veh/tracker": {Platform: 103, File: true, Log: true}, "idle/" + IdleApp: {Platform: 104, Log: true}}
	got, sites := map[string]*agentconfig.Position{}, MakeSites(in)
	for _, node := range in.Topology.Nodes {
		for _, app := range Guest(in, node, sites[node.Name], nil).Apps {
			got[node.Name+"/"+app.Agent.App] = app.Agent.Position
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
