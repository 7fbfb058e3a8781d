// Package prosody renders Prosody, an XMPP server.
package prosody

import (
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/operators/apps"
)

// Kind renders Prosody, an XMPP server.
type Kind struct{}

// Name of the kind.
func (Kind) Name() string { return "prosody" }

// Render one process.
func (Kind) Render(site apps.Site) apps.Rendering {
	return apps.Rendering{
		Image: site.Images.Prosody, StopGraceSeconds: 3,
		Instances: []agentconfig.Instance{{Name: site.Instances[0], Command: []string{"/bin/false"}}},
	}
}
