package render

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/mgen"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// muteWarnings are about nodes that have something to send on a tdma network, and no slot to send in by any of its schedules.
func muteWarnings(in Input, waveforms map[string]v1alpha1.WaveformSpec) (warnings field.ErrorList) {
	for i, network := range in.Experiment.Spec.Networks {
		waveform := waveforms[network.Name]
		if waveform.TDMA == nil || waveform.TDMA.Schedule == "" {
			continue
		}
		mute := muteNEMs(waveform.TDMA.Schedule, Changes(in.Experiment, network.Name), nemsOn(in.Topology, network.Name))
		senders, what := in.sendersAmong(network, mute)
		if len(senders) == 0 {
			continue
		}
		at := modelPath{network: network, path: field.NewPath("spec", "networks").Index(i).Child("tdma"), networkPath: field.NewPath("spec", "networks").Index(i)}
		warnings = append(warnings, at.invalid("schedule", fmt.Errorf("network %s has no slot to send in for %s: what %s sends is lost. Want slots with these NEM ids",
			network.Name, wording.Some(senders, 3), what)))
	}
	return warnings
}

// muteNEMs are those without a slot to send in by a schedule, and by each that the timeline sets. There are none if one is invalid.
func muteNEMs(text string, changes []v1alpha1.TimedRadioChange, nems []int) []int {
	schedule, err := tdma.ParseSchedule([]byte(text), nil)
	if err != nil {
		return nil // another check reports it
	}
	mute := schedule.WithoutSendSlots(nems)
	for _, change := range changes {
		if change.Schedule == "" {
			continue
		}
		if schedule, err = tdma.ParseSchedule([]byte(change.Schedule), schedule); err != nil {
			return nil
		}
		mute = schedule.WithoutSendSlots(mute)
	}
	return mute
}

// sendersAmong are the nodes of the given NEM ids that send on a network, with these ids, and what sends on the first of them.
func (in Input) sendersAmong(network v1alpha1.Network, nems []int) (senders []string, what string) {
	if len(nems) == 0 {
		return nil, ""
	}
	sites := MakeSites(in)
	for _, node := range attached(in.Topology, network.Name, everyNode) {
		if !slices.Contains(nems, int(node.NEM)) {
			continue
		}
		if part := sendingPart(network, node, sites[node.Name]); part != "" {
			senders, what = append(senders, fmt.Sprintf("%s (NEM id %d)", node.Name, node.NEM)), cmp.Or(what, part)
		}
	}
	return senders, what
}

// sendingPart is what certainly sends on a network of a node; empty if nothing does.
func sendingPart(network v1alpha1.Network, node topology.Node, sites []apps.Site) string {
	for _, site := range sites {
		if sendsOn(network.Name, node, site) {
			return "app " + site.App.Name
		}
	}
	if r := network.Routing; r.SetsRoutes() && r.Protocol != v1alpha1.RoutingStatic {
		return "routing"
	}
	return ""
}

// sendsOn reports whether an app certainly sends on a network. Which network it uses is certain for broadcasts, and on a node's only one.
func sendsOn(network string, node topology.Node, site apps.Site) bool {
	app := site.App
	switch scripted := site.Scripted != nil && len(site.Scripted.Messages) > 0; {
	case site.Broadcast != "":
		return site.Interface == network && (app.Publisher != nil || scripted)
	case len(node.Attachments) > 1:
		return false
	case app.MGEN != nil:
		return site.Flows != nil && slices.ContainsFunc(site.Flows.Script.Events, func(e mgen.Event) bool { return e.Type == mgen.On })
	}
	return app.Image == ""
}
