// Package mediator renders mediators between protocols.
package mediator

import (
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders mediators between protocols.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "mediator" }

// Render one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	return apps.Rendering{
		Image: site.Images.Traffic, StopGraceSeconds: 3,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/bin/false"}}},
	}
}
