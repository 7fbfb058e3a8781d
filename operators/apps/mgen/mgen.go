// Package mgen renders apps that run an MGEN script.
package mgen

import (
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/mgenapp"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders scripts.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "mgen" }

// Render renders one process, which has a name for each flow in the message log.
func (Kind) Render(site apps.Site) apps.Rendering {
	name, path := site.Instances[0], apps.RunFile("mgen.json")
	r := apps.Rendering{
		Image: site.Images.MGEN, StopGraceSeconds: 2, DrainOnStop: true,
		Instances: []agentconfig.Instance{{Name: name, Command: []string{"/mgen-app", "--config", path}}},
	}
	config := mgenapp.Config{Instance: name, Node: site.Node}
	if flows := site.Flows; flows != nil { // otherwise the script is invalid or not known yet, which a check reports
		config.Script, config.Nodes = flows.Script.String(), flows.Nodes
		if received := flows.Script.Receives(flows.Topics, flows.Own); len(received) > 0 {
			r.Subscriptions = [][]string{received}
		}
		topics := flows.Script.Destinations()
		r.Topics = map[string][]string{}
		for _, flow := range flows.Script.Flows() {
			sender := mgenapp.Sender(name, flow)
			r.Senders, r.Topics[sender] = append(r.Senders, sender), topics[flow]
		}
	}
	r.Files = []agentconfig.File{{Path: path, Content: apps.JSON(config)}}
	return r
}
