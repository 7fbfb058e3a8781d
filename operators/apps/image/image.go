// Package image renders programs of the user's own.
package image

import (
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders images with a command.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "image" }

// Render renders an image's command, once for each instance.
func (Kind) Render(site apps.Site) apps.Rendering {
	instances := make([]agentconfig.Instance, len(site.Instances))
	for i, name := range site.Instances {
		instances[i] = agentconfig.Instance{Name: name, Command: site.App.Command}
	}
	return apps.Rendering{Image: site.App.Image, Instances: instances, Env: site.App.Env, StopGraceSeconds: 3, Subscriptions: site.App.Subscribes}
}
