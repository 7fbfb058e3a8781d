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
	r := apps.Rendering{Image: site.App.Image, Env: site.App.Env, StopGraceSeconds: 3}
	for _, name := range site.Instances {
		r.Instances = append(r.Instances, agentconfig.Instance{Name: name, Command: site.App.Command})
		if len(site.App.Subscribes) > 0 {
			r.Subscriptions = append(r.Subscriptions, site.App.Subscribes)
		}
	}
	return r
}
