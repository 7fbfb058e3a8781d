package render

import (
	"fmt"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/messaging/content"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/request"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps/messaging"
)

// scriptedContents checks what a messaging service's scripted messages carry.
type scriptedContents struct {
	app      v1alpha1.App
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
	return &scriptedContents{app, settings, codec}
}

// check returns what is wrong with a message, if anything.
func (c *scriptedContents) check(m v1alpha1.ScriptedMessage) error {
	if err := c.codec.CheckText(m.Text); err != nil {
		return fmt.Errorf("text %w%s", err, c.otherEncodings())
	}
	return c.checkSize(m)
}

// otherEncodings names those that carry every character, if the service can have them.
func (c *scriptedContents) otherEncodings() string {
	if c.settings.Model != encoding.Military || c.settings.BySOAP() {
		return ""
	}
	return ", or encoding json or cbor"
}

const (
	// metadataBytes are more than a message has beside its text, and an envelope beside its body.
	metadataBytes = 2 << 10
	// escapedBytes are the most that one byte of text becomes.
	escapedBytes = 6
	// compressedDifference is by how much the sizes of compressed messages with other ids may differ.
	compressedDifference = 64
)

// checkSize encodes a message to see whether the transport can carry it. Those that are far too small to matter are not encoded.
func (c *scriptedContents) checkSize(m v1alpha1.ScriptedMessage) error {
	most := c.settings.MaxBytes(c.app.Messaging.Multicast, c.app.Messaging.Via != "")
	if atMost := (int(m.Bytes)+escapedBytes*len(m.Text)+metadataBytes)*4/3 + metadataBytes; atMost <= most {
		return nil
	}
	if c.settings.SOAP.Envelope == request.EnvelopeGzip || c.codec.ContentEncoding() != "" {
		most -= compressedDifference
	}
	id := messagelog.MessageID(m.From+"/"+c.app.Name, longestNumber)
	size, err := content.ScriptedBytes(c.settings, messaging.Message(m), id)
	if err != nil || size <= most {
		return err
	}
	if m.Bytes != 0 {
		return fmt.Errorf("bytes %d: the message has %d bytes with model %s and encoding %s, and %s carries %d: use less", m.Bytes, size, c.settings.Model, c.settings.EncodingOf(c.settings.Model), carrier(c.app.Messaging), most)
	}
	return fmt.Errorf("text of %d bytes: the message has %d bytes with model %s and encoding %s, and %s carries %d: use a shorter text", len(m.Text), size, c.settings.Model, c.settings.EncodingOf(c.settings.Model), carrier(c.app.Messaging), most)
}

// longestNumber of a message in its id that sizes leave room for.
const longestNumber = 999_999
