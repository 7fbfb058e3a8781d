package render

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/runapi"
	kinds "vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps/messaging"
)

// SpecWarnings are about a valid experiment with probably unintended settings. scenario is that of the experiment, nil if
// there is none or it is not known.
func SpecWarnings(in Input, waveforms map[string]v1alpha1.WaveformSpec, scenario *Scenario) field.ErrorList {
	t, spec := in.Topology, &in.Experiment.Spec
	compiled, errs := timeline.Compile(spec, t)
	if len(errs) > 0 {
		compiled = nil // another check reports it
	}
	warnings := append(twoRayWarnings(t, spec, waveforms), runTimeWarnings(in, compiled)...)
	warnings = append(warnings, slotReachWarnings(spec, t, waveforms, scenario)...)
	warnings = append(warnings, fadingWarnings(spec, waveforms, scenario)...)
	warnings = append(warnings, frequencyWarnings(spec, waveforms, scenario)...)
	warnings = append(warnings, routingDomainWarnings(t, spec)...)
	warnings = append(warnings, dutyCycleWarnings(spec, waveforms)...)
	warnings = append(warnings, linkWarnings(spec, waveforms)...)
	warnings = append(warnings, jammerWarnings(spec)...)
	warnings = append(warnings, requestWarnings(in)...)
	warnings = append(warnings, openRequestWarnings(in, compiled)...)
	warnings = append(warnings, brokerWarnings(in)...)
	warnings = append(warnings, bridgeWarnings(in)...)
	warnings = append(warnings, muteWarnings(in, waveforms)...)
	warnings = append(warnings, deafWarnings(in)...)
	warnings = append(warnings, gatewayWarnings(in)...)
	warnings = append(warnings, madeUpPositions(t, spec, scenario)...)
	return append(warnings, scenarioWarnings(spec, scenario)...)
}

// jammerWarnings are about ends of jammers that no entry of the timeline starts by then: a misspelt one would go on.
func jammerWarnings(spec *v1alpha1.ExperimentSpec) (warnings field.ErrorList) {
	for i, entry := range spec.Timeline {
		for j, change := range entry.Set {
			if change.Jammer == nil || !change.Jammer.Ended() {
				continue
			}
			if started := jammersBy(spec, change.Network, entry.At); !slices.Contains(started, change.Jammer.Name) {
				warnings = append(warnings, field.Invalid(field.NewPath("spec", "timeline").Index(i).Child("set").Index(j).Child("jammer", "name"), change.Jammer.Name,
					fmt.Sprintf("network %s has no jammer of this name by %s%s", change.Network, entry.At, wording.DidYouMean(change.Jammer.Name, started))))
			}
		}
	}
	return warnings
}

// jammersBy a moment are those that the timeline has started on a network, by name.
func jammersBy(spec *v1alpha1.ExperimentSpec, network string, at v1alpha1.Duration) (names []string) {
	for _, entry := range spec.Timeline {
		for _, change := range entry.Set {
			if j := change.Jammer; j != nil && !j.Ended() && change.Network == network && entry.At.Std() <= at.Std() && !slices.Contains(names, j.Name) {
				names = append(names, j.Name)
			}
		}
	}
	return names
}

// fadingWarnings are about networks whose engine has no fading, although the scenario does.
func fadingWarnings(spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec, scenario *Scenario) (warnings field.ErrorList) {
	if scenario == nil || !scenario.Statistics.FadingSelections {
		return nil
	}
	for i, network := range spec.Networks {
		waveform := waveforms[network.Name]
		if waveform.PHY() != nil && network.Engine != v1alpha1.EngineEMANE {
			warnings = append(warnings, field.Invalid(field.NewPath("spec", "networks").Index(i).Child("engine"), cmp.Or(network.Engine, v1alpha1.EngineNative),
				fmt.Sprintf("scenario %s has fading selections, which only engine emane applies", scenario.Name)))
		}
	}
	return warnings
}

// sameFrequency is the greatest ratio of two frequencies whose pathlosses hardly differ: 1 dB by free space.
const sameFrequency = 1.12

// frequencyWarnings are about networks at another frequency than the pathloss of their scenario, which is taken as it is.
func frequencyWarnings(spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec, scenario *Scenario) (warnings field.ErrorList) {
	if scenario == nil || scenario.Frequency == "" {
		return nil
	}
	for i, network := range spec.Networks {
		waveform := waveforms[network.Name]
		phy := waveform.PHY()
		if phy == nil || phy.PathlossFrom() != v1alpha1.PathlossScenario {
			continue
		}
		for _, frequency := range frequenciesOf(&waveform) {
			if ratio := frequency.Hertz() / scenario.Frequency.Hertz(); ratio < 1/sameFrequency || ratio > sameFrequency {
				warnings = append(warnings, field.Invalid(field.NewPath("spec", "networks").Index(i), network.Name, fmt.Sprintf(
					"scenario %s has the pathloss of %s, and the network is at %s: it is not converted", scenario.Name, scenario.Frequency, frequency)))
				break
			}
		}
	}
	return warnings
}

// frequenciesOf a waveform at which nodes send: those of its schedule, if it has one.
func frequenciesOf(w *v1alpha1.WaveformSpec) (all []v1alpha1.Frequency) {
	if w.TDMA == nil || w.TDMA.Schedule == "" {
		return slices.DeleteFunc([]v1alpha1.Frequency{w.PHY().Frequency}, func(f v1alpha1.Frequency) bool { return f == "" })
	}
	schedule, err := tdma.ParseSchedule([]byte(w.TDMA.Schedule), nil)
	if err != nil {
		return nil // another check reports it
	}
	for _, nem := range schedule.NEMs() {
		for _, hertz := range schedule.Frequencies(nem, tdma.Transmit) {
			all = append(all, v1alpha1.Frequency(fmt.Sprintf("%gMHz", float64(hertz)/1e6)))
		}
	}
	return all
}

// gatewayWarnings are about gateways of MQTT-SN with more clients than they serve.
func gatewayWarnings(in Input) (warnings field.ErrorList) {
	isGateway := func(app v1alpha1.App) bool { return app.MQTTSNGateway != nil }
	if !slices.ContainsFunc(in.Experiment.Spec.Apps, isGateway) {
		return nil
	}
	clients := map[string]int{}
	for _, sites := range MakeSites(in) {
		for _, site := range sites {
			connects := site.App.Subscriber != nil || site.App.Publisher != nil && site.App.Publisher.QoS >= 0
			if connects && isGateway(site.Broker.App) {
				clients[brokerName(site.Broker.Node, site.Broker.App.Name)] += len(site.Instances)
			}
		}
	}
	for i, app := range in.Experiment.Spec.Apps {
		for _, node := range in.Topology.NodesRunning(app.Name) {
			if n := clients[brokerName(node.Name, app.Name)]; isGateway(app) && n > int(cmp.Or(app.MQTTSNGateway.MaxClients, defaultMaxClients)) {
				warnings = append(warnings, field.Invalid(field.NewPath("spec", "apps").Index(i).Child("mqttsnGateway", "maxClients"), app.MQTTSNGateway.MaxClients,
					fmt.Sprintf("the gateway on node %s has %d clients, and refuses those beyond: want %[2]d or more", node.Name, n)))
			}
		}
	}
	return warnings
}

// defaultMaxClients is that of the schema.
const defaultMaxClients = 256

// madeUpPositions are apps that report positions from nodes to which the scenario gives none.
func madeUpPositions(t *topology.Topology, spec *v1alpha1.ExperimentSpec, scenario *Scenario) (warnings field.ErrorList) {
	if scenario == nil {
		return nil
	}
	for i, app := range spec.Apps {
		payload, path := reportedPayload(app, field.NewPath("spec", "apps").Index(i))
		if payload == "" || app.Publisher != nil && app.Publisher.Platforms != "" {
			continue
		}
		members := membersOf(t, topology.Node{}, servingApp(app))
		nodes := slices.DeleteFunc(t.NodesRunning(app.Name), func(node topology.Node) bool {
			serves := app.Messaging != nil && !pushes(app.Messaging.Push, member(node), members)
			return serves || hasPosition(scenario, node)
		})
		if len(nodes) == 0 {
			continue
		}
		why := scenario.missingPlatform(nodes[0])
		if !scenario.Statistics.Positions {
			why = fmt.Sprintf("scenario %s has no positions", scenario.Name)
		}
		warnings = append(warnings, field.Invalid(path, payload, fmt.Sprintf("%s reports made-up positions from %d of its nodes, such as %s: %s", app.Name, len(nodes), nodes[0].Name, why)))
	}
	return warnings
}

// reportedPayload is an app's payload with positions, and its path; empty for other apps.
func reportedPayload(app v1alpha1.App, path *field.Path) (string, *field.Path) {
	payload := ""
	switch {
	case app.Publisher != nil && app.Publisher.Pattern == nil:
		payload, path = cmp.Or(app.Publisher.Payload, "geojson"), path.Child("publisher", "payload")
	case app.Messaging != nil && app.Messaging.Push != nil:
		payload, path = messaging.PayloadOf(app.Messaging.Push), path.Child("messaging", "push", "payload")
	}
	if !kinds.ReportsPosition(payload) {
		return "", path
	}
	return payload, path
}

// runTimeWarnings are about apps that are stopped before all of their messages are due.
func runTimeWarnings(in Input, compiled *timeline.Timeline) (warnings field.ErrorList) {
	if compiled == nil {
		return nil
	}
	longest, s := longestRunTimes(compiled), &scripts{in: in}
	for i, app := range in.Experiment.Spec.Apps {
		if runs, known := longest[app.Name]; known {
			path := field.NewPath("spec", "apps").Index(i)
			warnings = append(append(warnings, leadWarnings(app, path, runs)...), s.lateWarnings(app, path, runs)...)
		}
	}
	return warnings
}

// leadWarnings are about a publisher that is stopped before its first message.
func leadWarnings(app v1alpha1.App, path *field.Path, runs time.Duration) field.ErrorList {
	lead, path := leadOf(app, path)
	if lead.Std() == 0 || lead.Std() < runs {
		return nil
	}
	return field.ErrorList{field.Invalid(path, lead, fmt.Sprintf("the app runs for %s at most: it publishes nothing", wording.Time(runs)))}
}

func leadOf(app v1alpha1.App, path *field.Path) (v1alpha1.Duration, *field.Path) {
	switch {
	case app.Publisher != nil:
		return app.Publisher.Lead, path.Child("publisher", "lead")
	case app.Messaging != nil && app.Messaging.Push != nil:
		return app.Messaging.Push.Lead, path.Child("messaging", "push", "lead")
	}
	return "", path
}

// longestRunTimes are the longest times between start and stop of apps, on any node.
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
	for target := range started { // these are not stopped
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
		message = fmt.Sprintf("the scenario lasts until %s, and the experiment ends at %s: the rest of the scenario is not used", wording.Time(has), wording.Time(runs))
	case has > 0 && has < runs:
		message = fmt.Sprintf("the scenario ends at %s, and the experiment at %s: nothing moves in between", wording.Time(has), wording.Time(runs))
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "scenario", "ref"), spec.Scenario.Ref, message)}
}
