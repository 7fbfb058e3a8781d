package encoding

import (
	"encoding/json"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"vignette.dev/vignette/internal/exi"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
	"vignette.dev/vignette/internal/traffic/payload/operational"
)

// form is how an encoding makes its content of a model's JSON or XML.
type form struct {
	contentType string
	// isJSON says that the plain form is JSON; otherwise it is XML.
	isJSON bool
	encode func(dst, plain []byte, m *model) ([]byte, error)
	decode func(content []byte, m *model) (plain []byte, ok bool)
}

var forms map[string]form

func init() { // forms and models refer to each other
	forms = map[string]form{
		JSON:          {isJSON: true, encode: same, decode: unchanged},
		CBOR:          {isJSON: true, contentType: "application/cbor", encode: encodeCBOR, decode: decodeCBOR},
		XML:           {contentType: "application/xml", encode: same, decode: unchanged},
		EXI:           exiForm(exi.Options{Schema: schema}),
		EXISchemaless: exiForm(exi.Options{}),
	}
}

func same(dst, plain []byte, _ *model) ([]byte, error) { return append(dst, plain...), nil }

func unchanged(content []byte, _ *model) ([]byte, bool) { return content, true }

var (
	cborEncoding = must(cbor.CoreDetEncOptions().EncMode())
	cborDecoding = must(cbor.DecOptions{MaxNestedLevels: 16, MaxArrayElements: 4096, MaxMapPairs: 4096}.DecMode())
)

func must[T any](mode T, err error) T {
	if err != nil {
		panic(err)
	}
	return mode
}

// encodeCBOR encodes the members of the JSON in the deterministic form of RFC 8949, section 4.2.
func encodeCBOR(dst, plain []byte, m *model) ([]byte, error) {
	value := m.value()
	if err := json.Unmarshal(plain, value); err != nil {
		return dst, errNotPlain(m, "JSON")
	}
	content, err := cborEncoding.Marshal(value)
	if err != nil {
		return dst, errNotPlain(m, "JSON")
	}
	return append(dst, content...), nil
}

func decodeCBOR(content []byte, m *model) ([]byte, bool) {
	value := m.value()
	if cborDecoding.Unmarshal(content, value) != nil {
		return nil, false
	}
	plain, err := json.Marshal(value)
	return plain, err == nil
}

// schema has the structure of all models' XML, so that a stream itself says of which model it is.
var schema = must(exi.ParseSchema(military.Schema, operational.Schema, nffi.Schema))

func exiForm(o exi.Options) form {
	return form{
		contentType: "application/exi",
		encode:      func(dst, plain []byte, _ *model) ([]byte, error) { return exi.Encode(dst, plain, o) },
		decode: func(content []byte, _ *model) ([]byte, bool) {
			plain, err := exi.Decode(nil, content, o)
			return plain, err == nil
		},
	}
}

// maxBytes bounds what a compressed message may grow to.
const maxBytes = 1 << 20

// errNotPlain says that what should be encoded is not of the model.
func errNotPlain(m *model, form string) error {
	return fmt.Errorf("content: want a %s message in %s", m.name, form)
}
