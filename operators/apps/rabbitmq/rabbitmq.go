// Package rabbitmq renders RabbitMQ.
package rabbitmq

import (
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders RabbitMQ.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "rabbitmq" }

// Render one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	return apps.Rendering{
		Image: site.Images.RabbitMQ, StopGraceSeconds: 3,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/bin/false"}}},
	}
}
