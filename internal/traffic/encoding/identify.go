package encoding

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/exi"
	"vignette.dev/vignette/internal/gz"
	"vignette.dev/vignette/internal/traffic/payload/geojson"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
)

// gzipMagic begins what gzip compressed.
var gzipMagic = []byte{0x1f, 0x8b, 0x08}

// Identify returns the id of a message in any model, encoding and compression, and the time it was made (zero if absent). A SOAP envelope around
// the message is no obstacle.
func Identify(content []byte) (id string, made time.Time, ok bool) {
	if bytes.HasPrefix(content, gzipMagic) {
		var err error
		if content, err = gz.Expand(content, maxBytes); err != nil {
			return "", made, false
		}
	}
	if trimmed := bytes.TrimLeft(content, " \t\r\n"); len(trimmed) > 0 {
		switch first := trimmed[0]; {
		case first == '{':
			return identifyJSON(content)
		case first == '<':
			return identifyXML(content)
		}
	}
	switch {
	case len(content) == 0:
	case content[0]>>5 == cborMap:
		return identifyCBOR(content)
	case content[0] == exi.Header, bytes.HasPrefix(content, exi.Cookie):
		return identifyEXI(content)
	}
	return "", made, false
}

func identifyJSON(content []byte) (id string, made time.Time, ok bool) {
	if id, made, ok = geojson.Parse(content); ok {
		return id, made, true
	}
	return military.Parse(content)
}

// xmlIDs are the elements with the id and the time of a model's XML.
var xmlIDs = []struct{ id, made string }{{"additionalId", "specialUserDefined"}, {"messageId", "sendingTime"}, {"msgId", "sendingTime"}}

func identifyXML(content []byte) (id string, made time.Time, ok bool) {
	if id, made, ok = nffi.Parse(content); ok {
		return id, made, true
	}
	for _, names := range xmlIDs {
		if id = element(content, names.id); id != "" {
			if ms, err := strconv.ParseInt(element(content, names.made), 10, 64); err == nil {
				made = milliseconds(ms)
			}
			return id, made, true
		}
	}
	return "", made, false
}

// element returns the text of the first element of a local name that has a text. Receivers identify every message, and a parser would cost them
// far more.
func element(content []byte, name string) string {
	for {
		before, after, found := bytes.Cut(content, []byte(name+">"))
		if !found {
			return ""
		}
		content = after
		if !beginsTag(before) {
			continue
		}
		text, _, found := bytes.Cut(after, []byte("<"))
		if found && len(text) > 0 {
			return html.UnescapeString(strings.TrimSpace(string(text)))
		}
	}
}

// maxPrefix is the longest namespace prefix that is looked for.
const maxPrefix = 32

// beginsTag reports whether text ends with a start tag's "<" or "<prefix:".
func beginsTag(text []byte) bool {
	if bytes.HasSuffix(text, []byte("<")) {
		return true
	}
	prefix, found := bytes.CutSuffix(text[max(0, len(text)-maxPrefix):], []byte(":"))
	if !found {
		return false
	}
	open := bytes.LastIndexByte(prefix, '<')
	return open >= 0 && !bytes.ContainsAny(prefix[open:], ":/> \t\r\n\"'")
}

// identifyEXI reads a stream without the schema first: only then are the names of the elements in the stream itself, so that no other can be taken
// for it.
func identifyEXI(content []byte) (id string, made time.Time, ok bool) {
	for _, o := range []exi.Options{{}, {Schema: schema}} {
		if document, err := exi.Decode(nil, content, o); err == nil {
			if id, made, ok = identifyXML(document); ok {
				return id, made, true
			}
		}
	}
	return "", made, false
}

// cborMap is the major type of a map.
const cborMap = 5

func identifyCBOR(content []byte) (id string, made time.Time, ok bool) {
	var ids struct {
		ID      string `cbor:"msgId"`
		Made    int64  `cbor:"sendingTime"`
		Feature struct {
			ID   string `cbor:"msg_id"`
			Made int64  `cbor:"timestamp"`
		} `cbor:"properties"`
	}
	if cborDecoding.Unmarshal(content, &ids) != nil {
		return "", made, false
	}
	if ids.ID != "" {
		return ids.ID, milliseconds(ids.Made), true
	}
	return ids.Feature.ID, milliseconds(ids.Feature.Made), ids.Feature.ID != ""
}
