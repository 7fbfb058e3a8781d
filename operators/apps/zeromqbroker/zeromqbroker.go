// Package zeromqbroker renders brokers of ZeroMQ messages.
package zeromqbroker

import (
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders brokers of ZeroMQ messages.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "zeromqbroker" }

// Render one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	return apps.Rendering{
		Image: site.Images.ZeroMQ, StopGraceSeconds: 3,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/bin/false"}}},
	}
}
