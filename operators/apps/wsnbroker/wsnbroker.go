// Package wsnbroker renders WS-Notification brokers.
package wsnbroker

import (
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders WS-Notification brokers.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "wsnbroker" }

// Render one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	return apps.Rendering{
		Image: site.Images.Traffic, StopGraceSeconds: 3,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/bin/false"}}},
	}
}
