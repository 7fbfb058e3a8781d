package render

import (
	"encoding/json"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/origin"
	"vignette.dev/vignette/internal/core/streams"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// Plan is the run's first plan, before T0 is set and any action is armed.
func Plan(in Input, waveforms map[string]v1alpha1.WaveformSpec, pods map[string]types.UID) runapi.Plan {
	e := in.Experiment
	sites := MakeSites(in)
	rerunOf, basedOn := origin.Of(e)
	plan := runapi.Plan{
		Namespace: e.Namespace, Name: e.Name, UID: string(e.UID), Spec: resolvedSpec(in),
		Waveforms: namedWaveforms(e, waveforms), Phase: v1alpha1.PhaseProvisioning,
		Scenario: plannedScenario(in), Nodes: make([]runapi.PlannedNode, len(in.Topology.Nodes)),
		RerunOf: rerunOf, BasedOn: basedOn, Campaign: campaign(e), Reference: reference(e), Passages: plannedPassages(in, sites),
	}
	var clients []streams.Client
	for i, node := range in.Topology.Nodes {
		plan.Nodes[i] = plannedNode(in, node, pods[node.Name])
		for _, site := range sites[node.Name] {
			app, own := plannedApp(site)
			plan.Nodes[i].Apps, clients = append(plan.Nodes[i].Apps, app), append(clients, own...)
		}
	}
	plan.Streams = streams.Table(clients, plan.Passages)
	for _, network := range e.Spec.Networks {
		plan.Captures = append(plan.Captures, PlanCaptures(in.Topology, network.Name, captures(in, network.Name)...)...)
	}
	return plan
}

// resolvedSpec is the spec with the contents of templates instead of their names, so that a repeated run has the same
// machines.
func resolvedSpec(in Input) v1alpha1.ExperimentSpec {
	spec := *in.Experiment.Spec.DeepCopy()
	for i := range spec.Nodes {
		if vm := spec.Nodes[i].VM; vm != nil {
			if template, known := in.Templates[vm.Template]; known {
				spec.Nodes[i].VM = vm.Over(&template)
			}
		}
	}
	return spec
}

// campaign is the campaign of an experiment by its labels. It ignores values that the operator cannot have written.
func campaign(e *v1alpha1.Experiment) *runapi.PlannedCampaign {
	round, err := strconv.ParseInt(e.Labels[v1alpha1.LabelCampaignRound], 10, 64)
	name, uid := e.Labels[v1alpha1.LabelCampaign], e.Labels[v1alpha1.LabelCampaignUID]
	if err != nil || name == "" || uid == "" {
		return nil
	}
	planned := &runapi.PlannedCampaign{Name: name, UID: uid, Round: round, Point: e.Labels[v1alpha1.LabelCampaignPoint],
		SpecDigest: e.Annotations[v1alpha1.AnnotationSpecDigest]}
	if json.Unmarshal([]byte(e.Annotations[v1alpha1.AnnotationLevels]), &planned.Levels) != nil {
		planned.Levels = nil
	}
	return planned
}

// reference is the reference figures of a campaign's experiment, by its annotation.
func reference(e *v1alpha1.Experiment) *runapi.Reference {
	var of runapi.Reference
	if campaign(e) == nil || json.Unmarshal([]byte(e.Annotations[v1alpha1.AnnotationReference]), &of) != nil || of.Name == "" || len(of.Figures) == 0 {
		return nil
	}
	return &of
}

// namedWaveforms are the waveforms that networks name, by name.
func namedWaveforms(e *v1alpha1.Experiment, byNetwork map[string]v1alpha1.WaveformSpec) map[string]v1alpha1.WaveformSpec {
	named := map[string]v1alpha1.WaveformSpec{}
	for _, network := range e.Spec.Networks {
		if network.Waveform != "" {
			named[network.Waveform] = byNetwork[network.Name]
		}
	}
	if len(named) == 0 {
		return nil
	}
	return named
}

func plannedNode(in Input, node topology.Node, pod types.UID) runapi.PlannedNode {
	planned := runapi.PlannedNode{
		Name: node.Name, Group: node.Group, NEM: node.NEM, PodUID: string(pod), Pod: PodName(in.Experiment.Name, node.Name),
		Platform:       in.Scenario.PlatformOf(node),
		OpenManagement: node.OpenManagement, Apps: []runapi.PlannedApp{},
	}
	for _, a := range node.Attachments {
		if planned.Addresses == nil {
			planned.Addresses = map[string]string{}
		}
		planned.Addresses[a.Network] = a.Address.Addr().String()
	}
	return planned
}

// plannedApp returns an app, and its instances and senders as clients of brokers.
func plannedApp(site apps.Site) (runapi.PlannedApp, []streams.Client) {
	kind := KindOf(site.App)
	r := kind.Render(site)
	app := runapi.PlannedApp{
		Name: site.App.Name, Kind: kind.Name(), Instances: site.Instances, Publishes: r.Publishes, Subscribes: len(r.Subscriptions) > 0, Senders: r.Senders,
		Protocol: protocolOf(site.App), Brokers: brokersOf(site), BrokerNode: site.Broker.Node, Platforms: site.Platforms,
	}
	var clients []streams.Client
	for i, name := range slices.Concat(app.Instances, app.Senders) {
		c := streams.Client{Name: name, Protocol: app.Protocol, Brokers: app.Brokers, Topics: r.Topics[name], AnyTopic: site.App.Own()}
		if i < len(r.Subscriptions) {
			c.Filters = r.Subscriptions[i]
		}
		clients = append(clients, c)
	}
	return app, clients
}

// protocolOf is the protocol by which an app sends and receives; empty if it is not known.
func protocolOf(app v1alpha1.App) string {
	switch {
	case app.Publisher != nil:
		return string(app.Publisher.Protocol)
	case app.Subscriber != nil:
		return string(app.Subscriber.Protocol)
	case app.Script != nil:
		return string(app.Script.Protocol)
	case app.MGEN != nil:
		return "mgen"
	case app.Messaging != nil:
		return string(app.Messaging.Transport)
	}
	return app.Protocol
}

// AgentsOf lists every agent of an experiment: one for each app of a node, or the idle one. A guest without agent has none.
func AgentsOf(t *topology.Topology) []runapi.Target {
	var agents []runapi.Target
	for _, node := range t.Nodes {
		for _, app := range node.Apps {
			agents = append(agents, runapi.Target{Node: node.Name, App: app})
		}
		if len(node.Apps) == 0 && node.HasAgent() {
			agents = append(agents, runapi.Target{Node: node.Name, App: IdleApp})
		}
	}
	return agents
}
