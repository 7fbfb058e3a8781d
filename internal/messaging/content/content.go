// Package content makes the bodies of a messaging service's messages.
package content

import (
	"cmp"
	"strings"
	"time"

	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/traffic/payload/track"
	"vignette.dev/vignette/internal/traffic/request"
	soapreq "vignette.dev/vignette/internal/traffic/soap/client"
)

// BasePath is the path of messages to a node. Those to a multicast group have its name after it.
const BasePath = "/messages"

// PathOf a service's messages to a node.
func PathOf(config messagingconfig.Config) string { return cmp.Or(config.Path, BasePath) }

// Content makes the bodies of messages, one after the other.
type Content interface {
	// Append appends the body of the message with an id, made at a time.
	Append(dst []byte, id string, at time.Time) ([]byte, error)
	// Media returns the content type, and the content encoding or an empty string.
	Media() (contentType, contentEncoding string)
}

// scripted is the content of one message of a script.
type scripted struct {
	codec   *encoding.Codec
	message encoding.Message
	bytes   int
}

// Scripted returns the content of a message of a script.
func Scripted(config messagingconfig.Config, m messagingconfig.Message) (Content, error) {
	codec, err := config.Codec(config.Model)
	return scripted{codec: codec, bytes: m.Bytes, message: encoding.Message{
		Type: m.Type, From: m.From, To: []string{m.To}, Text: m.Text,
	}}, err
}

// Append implements Content.
func (c scripted) Append(dst []byte, id string, at time.Time) ([]byte, error) {
	m := c.message
	m.ID, m.Made = id, at
	plain := military.Append(nil, military.Message{Type: m.Type, From: m.From, To: m.To[0], Text: m.Text}, id, at, 0)
	m.Text += strings.Repeat(" ", max(0, c.bytes-len(plain)))
	return c.codec.Append(dst, m)
}

// Media implements Content.
func (c scripted) Media() (string, string) { return c.codec.ContentType(), c.codec.ContentEncoding() }

// longestAddressee is a host:port than which none is longer.
const longestAddressee = "255.255.255.255:65535"

// future is a time whose forms are as long as those of any other.
var future = time.UnixMilli(9_999_999_999_999)

// ScriptedBytes returns how many bytes the transport has to carry for a scripted message with an id.
func ScriptedBytes(config messagingconfig.Config, m messagingconfig.Message, id string) (int, error) {
	c, err := Scripted(config, m)
	if err != nil {
		return 0, err
	}
	r := request.Request{Path: PathOf(config) + "/" + m.To}
	r.ContentType, r.ContentEncoding = c.Media()
	if r.Body, err = c.Append(nil, id, future); err != nil || !config.BySOAP() {
		return len(r.Body), err
	}
	return soapreq.RequestBytes(longestAddressee, r, config.Receipt, config.SOAP.Envelope)
}

// made is the content of a periodic message, or of a response.
type made struct {
	maker                        payload.Maker
	contentType, contentEncoding string
	// platform that the messages report; nil for none.
	platform *track.Platform
}

// OfKind returns the content of a kind of payload, of a sender's messages.
func OfKind(config messagingconfig.Config, sender, kind string) (Content, error) {
	unit := payload.Sender{Country: config.Country, Unit: config.Unit, Entity: config.Entity}
	unit, platform, err := unit.OnNode(kind)
	if err != nil {
		return nil, err
	}
	if !messagingconfig.IsModel(kind) {
		unit.Entity = sender
		maker, err := payload.New(kind, unit, config.Seed)
		return made{maker: maker, contentType: payload.MediaType(kind), platform: platform}, err
	}
	codec, err := config.Codec(kind)
	if err != nil {
		return nil, err
	}
	maker, err := payload.NewEncoded(kind, config.EncodingOf(kind), config.Compression, unit, config.Seed)
	return made{maker: maker, contentType: codec.ContentType(), contentEncoding: codec.ContentEncoding(), platform: platform}, err
}

// Reported is the sender's position in a message made at a time; nil for content without one.
func Reported(c Content, at time.Time) *[3]float64 {
	if m, ok := c.(made); ok && m.platform != nil {
		return m.platform.Reported(at)
	}
	return nil
}

// Append implements Content.
func (c made) Append(dst []byte, id string, at time.Time) ([]byte, error) {
	return c.maker.Append(dst, id, at), nil
}

// Media implements Content.
func (c made) Media() (string, string) { return c.contentType, c.contentEncoding }

// ReplySender is the sender of a service's responses in their ids, which no message log has.
func ReplySender(instance string) string { return instance + "-reply" }
