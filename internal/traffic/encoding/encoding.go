// Package encoding encodes the messages of a message model, and reads them again: as JSON, CBOR, XML or EXI, compressed or not.
package encoding

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"vignette.dev/vignette/internal/gz"
	"vignette.dev/vignette/internal/traffic/payload/track"
	"vignette.dev/vignette/internal/wording"
)

// Message has the content of every model. A model takes those fields that it names.
type Message struct {
	// ID identifies the message; Made is when it was made, to the millisecond. Every model has both.
	ID   string
	Made time.Time
	// From and To are the names of units, of models military (one addressee or group) and operational.
	From string
	To   []string
	// Text is free; model nffi has it as remarks.
	Text string
	// Type is model military's msgType.
	Type string
	// Precedence and Classification are model operational's.
	Precedence, Classification string
	// Country, Unit, Entity and Position are those of models nffi and geojson.
	Country, Unit, Entity string
	Position              track.Position
}

// The encodings and compressions. EXI is schema-informed.
const (
	JSON          = "json"
	CBOR          = "cbor"
	XML           = "xml"
	EXI           = "exi"
	EXISchemaless = "exi-schemaless"
	Gzip          = "gzip"
	None          = "none"
)

// Models returns the names of all message models.
func Models() []string {
	names := make([]string, 0, len(models))
	for _, m := range models {
		names = append(names, m.name)
	}
	return names
}

// Encodings returns the encodings of a model, the published one first; none for a name of no model.
func Encodings(modelName string) []string {
	if m := find(modelName); m != nil {
		return slices.Clone(m.encodings)
	}
	return nil
}

// Compressions returns all compressions.
func Compressions() []string { return []string{None, Gzip} }

// Check returns an error if a model cannot be had in an encoding and a compression, which is none if empty.
func Check(modelName, encoding, compression string) error {
	m := find(modelName)
	switch {
	case m == nil:
		return fmt.Errorf("message model %q: want %s", modelName, wording.Or(Models()))
	case !slices.Contains(m.encodings, encoding):
		return fmt.Errorf("encoding %q: message model %s %s: want %s", encoding, m.name, m.reason, wording.Or(m.encodings))
	case compression != "" && !slices.Contains(Compressions(), compression):
		return fmt.Errorf("compression %q: want %s", compression, wording.Or(Compressions()))
	}
	return nil
}

func find(modelName string) *model {
	for i := range models {
		if models[i].name == modelName {
			return &models[i]
		}
	}
	return nil
}

// Codec encodes and decodes the messages of a model. It may be used from several goroutines.
type Codec struct {
	model      *model
	encoding   string
	compressed bool
}

// New returns the codec of a model in an encoding and a compression, which is none if empty.
func New(modelName, encoding, compression string) (*Codec, error) {
	if err := Check(modelName, encoding, compression); err != nil {
		return nil, err
	}
	return &Codec{find(modelName), encoding, compression == Gzip}, nil
}

// ContentType returns the media type of the codec's content.
func (c *Codec) ContentType() string {
	if c.encoding == JSON {
		return c.model.jsonType
	}
	return forms[c.encoding].contentType
}

// ContentEncoding returns the content coding, gzip or empty.
func (c *Codec) ContentEncoding() string {
	if c.compressed {
		return Gzip
	}
	return ""
}

// Append appends an encoded message to dst. The error names a field that the model cannot have.
func (c *Codec) Append(dst []byte, m Message) ([]byte, error) {
	if m.ID == "" {
		return dst, fmt.Errorf("message id is empty: want one")
	}
	for _, field := range m.texts() {
		if err := c.CheckText(field.value); err != nil {
			return dst, fmt.Errorf("%s %w", field.name, err)
		}
	}
	plain, err := c.model.append(nil, m, c.encoding)
	if err != nil {
		return dst, fmt.Errorf("message %s: %w", m.ID, err)
	}
	return c.AppendPlain(dst, plain)
}

type text struct{ name, value string }

func (m Message) texts() []text {
	all := []text{{"message id", m.ID}, {"from", m.From}, {"text", m.Text}, {"type", m.Type}, {"country", m.Country}, {"unit", m.Unit}, {"entity", m.Entity}}
	for _, to := range m.To {
		all = append(all, text{"to", to})
	}
	return all
}

// CheckText returns an error if a text has a character that the encoding cannot carry. All of EXI's content is XML.
func (c *Codec) CheckText(s string) error {
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return fmt.Errorf("has byte 0x%02X at %d: want text in UTF-8", s[i], i)
		case !forms[c.encoding].isJSON && !inXML(r):
			return fmt.Errorf("has character U+%04X at %d, which XML 1.0 has not: want text without control characters", r, i)
		}
	}
	return nil
}

// inXML reports whether XML 1.0 has a character (section 2.2).
func inXML(r rune) bool {
	return r >= ' ' && r != 0xFFFE && r != 0xFFFF || r == '\t' || r == '\n' || r == '\r'
}

// AppendPlain appends a message to dst that is the model's JSON or XML already: JSON for encodings json and cbor, XML for the others.
func (c *Codec) AppendPlain(dst, plain []byte) ([]byte, error) {
	if !c.compressed {
		return c.appendForm(dst, plain)
	}
	content, err := c.appendForm(nil, plain)
	if err != nil {
		return dst, err
	}
	return gz.Append(dst, content), nil
}

func (c *Codec) appendForm(dst, plain []byte) ([]byte, error) {
	return forms[c.encoding].encode(dst, plain, c.model)
}

// Decode returns the message that a codec of the same model, encoding and compression encoded.
func (c *Codec) Decode(content []byte) (Message, error) {
	m, ok := c.decode(content)
	if !ok {
		return Message{}, fmt.Errorf("content of %d bytes: want a %s message in %s", len(content), c.model.name, c.name())
	}
	return m, nil
}

func (c *Codec) name() string {
	if c.compressed {
		return c.encoding + ", compressed by gzip"
	}
	return c.encoding
}

func (c *Codec) decode(content []byte) (m Message, ok bool) {
	if c.compressed {
		var err error
		if content, err = gz.Expand(content, maxBytes); err != nil {
			return m, false
		}
	}
	plain, ok := forms[c.encoding].decode(content, c.model)
	if !ok {
		return m, false
	}
	return c.model.read(plain, c.encoding)
}
