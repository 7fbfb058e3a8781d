package render

import (
	"fmt"

	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps/messaging"
)

// scriptedContents checks what a messaging service's scripted messages carry.
type scriptedContents struct {
	settings messagingconfig.Config
	codec    *encoding.Codec
}

// newScriptedContents returns nil if the app is no messaging service, or another check refuses its encoding.
func newScriptedContents(app v1alpha1.App) *scriptedContents {
	if app.Messaging == nil {
		return nil
	}
	settings := messaging.Settings(app)
	codec, err := settings.Codec(settings.Model)
	if err != nil {
		return nil
	}
	return &scriptedContents{settings, codec}
}

// check returns what is wrong with a message, if anything.
func (c *scriptedContents) check(m v1alpha1.ScriptedMessage) error {
	if err := c.codec.CheckText(m.Text); err != nil {
		return fmt.Errorf("text %w%s", err, c.otherEncodings())
	}
	return nil
}

// otherEncodings names those that carry every character, if the service can have them.
func (c *scriptedContents) otherEncodings() string {
	if c.settings.Model != encoding.Military || c.settings.Transport == messagingconfig.SOAP || c.settings.Transport == messagingconfig.SOAPUDP {
		return ""
	}
	return ", or encoding json or cbor"
}
