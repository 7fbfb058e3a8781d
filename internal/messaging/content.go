package messaging

import (
	"strings"
	"time"

	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/payload/military"
)

// content makes the bodies of messages, one after the other.
type content interface {
	// append appends the body of the message with an id, made at a time.
	append(dst []byte, id string, at time.Time) ([]byte, error)
	// media returns the content type, and the content encoding or an empty string.
	media() (contentType, contentEncoding string)
}

// scriptedContent is one message of a script.
type scriptedContent struct {
	*encoding.Codec
	message encoding.Message
	bytes   int
}

func newScriptedContent(config messagingconfig.Config, m messagingconfig.Message) (content, error) {
	codec, err := config.Codec(config.Model)
	return scriptedContent{Codec: codec, bytes: m.Bytes, message: encoding.Message{
		Type: m.Type, From: m.From, To: []string{m.Addressed}, Text: m.Text,
	}}, err
}

func (c scriptedContent) append(dst []byte, id string, at time.Time) ([]byte, error) {
	m := c.message
	m.ID, m.Made = id, at
	plain := military.Append(nil, military.Message{Type: m.Type, From: m.From, To: m.To[0], Text: m.Text}, id, at, 0)
	m.Text += strings.Repeat(" ", max(0, c.bytes-len(plain)))
	return c.Append(dst, m)
}

func (c scriptedContent) media() (string, string) { return c.ContentType(), c.ContentEncoding() }

// madeContent is that of a periodic message, or of a response.
type madeContent struct {
	payload.Maker
	contentType, contentEncoding string
}

// newMadeContent returns the content of a kind of payload, of a sender's messages.
func newMadeContent(config messagingconfig.Config, sender, kind string) (content, error) {
	unit := payload.Sender{Country: config.Country, Unit: config.Unit, Entity: config.Entity}
	if !messagingconfig.IsModel(kind) {
		unit.Entity = sender
		maker, err := payload.New(kind, unit, config.Seed)
		return madeContent{Maker: maker, contentType: contentTypeOf(kind)}, err
	}
	codec, err := config.Codec(kind)
	if err != nil {
		return nil, err
	}
	maker, err := payload.NewEncoded(kind, config.EncodingOf(kind), config.Compression, unit, config.Seed)
	return madeContent{Maker: maker, contentType: codec.ContentType(), contentEncoding: codec.ContentEncoding()}, err
}

func (c madeContent) append(dst []byte, id string, at time.Time) ([]byte, error) {
	return c.Append(dst, id, at), nil
}

func (c madeContent) media() (string, string) { return c.contentType, c.contentEncoding }

// contentTypeOf a payload that is of no message model.
func contentTypeOf(kind string) string {
	switch word, _, _ := strings.Cut(kind, ":"); word {
	case "gps":
		return "text/plain"
	case "image":
		return "image/png"
	case encoding.NFFI:
		return "application/xml"
	}
	return "application/octet-stream"
}

// replySender is the sender of a service's responses in their ids, which no message log has.
func replySender(instance string) string { return instance + "-reply" }
