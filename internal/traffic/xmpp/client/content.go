package client

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// payloadNamespace is the namespace of the element with a message's content.
const payloadNamespace = "urn:vignette:payload"

// base64Encoding is the value of the attribute encoding for content that is not text.
const base64Encoding = "base64"

// MaxBytes is the largest content of a message. It keeps each stanza below xmpp.StanzaBytes.
const MaxBytes = 16 << 20

// payload is the element <message xmlns="urn:vignette:payload">. Text is its character data as is;
// other content, or content that is shorter in it, is base64 (RFC 4648) with encoding="base64".
type payload struct {
	XMLName  xml.Name `xml:"urn:vignette:payload message"`
	Encoding string   `xml:"encoding,attr,omitempty"`
	Text     string   `xml:",innerxml"`
}

// escape escapes character data by RFC 6120. Quotation marks stay: encoding/xml would make five bytes of each.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func payloadOf(content []byte) payload {
	if isText(content) {
		if text := escape.Replace(string(content)); len(text) <= base64.StdEncoding.EncodedLen(len(content)) {
			return payload{Text: text}
		}
	}
	return payload{Encoding: base64Encoding, Text: base64.StdEncoding.EncodeToString(content)}
}

// isText reports whether XML parsers return the content unchanged. They refuse most control characters,
// and turn a carriage return into a line feed (XML 1.0, 2.11), as some servers do not escape it.
func isText(content []byte) bool {
	for len(content) > 0 {
		r, size := utf8.DecodeRune(content)
		if r == utf8.RuneError && size == 1 || r == '\r' || !inXML(r) {
			return false
		}
		content = content[size:]
	}
	return true
}

// item is a published item as a subscriber reads it.
type item struct {
	// found: the item has a payload. Retractions and some notifications have none.
	found   bool
	content []byte
	// announced is the node that an announcement names.
	announced string
}

// UnmarshalXML takes the first element of an item. An element in another namespace is the content, as XML.
func (i *item) UnmarshalXML(d *xml.Decoder, _ xml.StartElement) error {
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			content, err := readPayload(d, t)
			if err != nil {
				return err
			}
			if !i.found {
				i.found, i.content, i.announced = true, content, announcedBy(t)
			}
		}
	}
}

func readPayload(d *xml.Decoder, start xml.StartElement) ([]byte, error) {
	if start.Name != (xml.Name{Space: payloadNamespace, Local: "message"}) {
		return foreign(d, start)
	}
	text, err := characters(d)
	if err != nil {
		return nil, err
	}
	for _, a := range start.Attr {
		if a.Name == (xml.Name{Local: "encoding"}) && a.Value == base64Encoding {
			content, err := base64.StdEncoding.DecodeString(string(text))
			if err != nil {
				return text, nil // a foreign encoding: the element's text is the content
			}
			return content, nil
		}
	}
	return text, nil
}

// characters returns the text of an element after its start tag.
func characters(d *xml.Decoder) (text []byte, err error) {
	for depth := 1; depth > 0; {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.CharData:
			text = append(text, t...)
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	return text, nil
}

// foreign returns an element of another namespace as XML, after its start tag.
func foreign(d *xml.Decoder, start xml.StartElement) ([]byte, error) {
	var b strings.Builder
	e := xml.NewEncoder(&b)
	var token xml.Token = start
	for depth := 0; ; {
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			t.Attr = withoutNamespaces(t.Attr)
			token = t
		case xml.EndElement:
			depth--
		}
		if err := e.EncodeToken(token); err != nil {
			return nil, fmt.Errorf("payload %s: %w", start.Name.Local, err)
		}
		if depth == 0 {
			break
		}
		var err error
		if token, err = d.Token(); err != nil {
			return nil, err
		}
	}
	if err := e.Flush(); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

// withoutNamespaces leaves out namespace declarations, as the encoder adds them again from the names.
func withoutNamespaces(attributes []xml.Attr) (kept []xml.Attr) {
	for _, a := range attributes {
		if a.Name.Space != "xmlns" && a.Name != (xml.Name{Local: "xmlns"}) {
			kept = append(kept, a)
		}
	}
	return kept
}

func announcedBy(start xml.StartElement) string {
	if start.Name == (xml.Name{Space: "urn:vignette:nodes", Local: "node"}) {
		for _, a := range start.Attr {
			if a.Name == (xml.Name{Local: "name"}) {
				return a.Value
			}
		}
	}
	return ""
}
