package wsn

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Content in the element of a wsnt:Message, and back, byte by byte. A standalone XML element goes in unchanged;
// other text becomes the text of an element in vignette's namespace.
// Anything else becomes such an element in base64.

// Embed returns the element for any content.
func Embed(content []byte) []byte {
	if embeddable(content) {
		return content
	}
	// Implementations change text of white space alone.
	if text := string(content); isXMLText(text) && strings.TrimSpace(text) != "" {
		return fmt.Appendf(nil, `<v:Text xmlns:v="%s">%s</v:Text>`, nsContent, textEscaper.Replace(text))
	}
	return fmt.Appendf(nil, `<v:Base64 xmlns:v="%s">%s</v:Base64>`, nsContent, base64.StdEncoding.EncodeToString(content))
}

// textEscaper escapes only what text requires, to keep messages short.
var textEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")

// maxEmbeddedDepth leaves room for the elements around the content.
const maxEmbeddedDepth = maxDepth - 8

// embeddable reports whether content is one standalone element without anything around it, and not an element that
// Embed makes.
func embeddable(content []byte) bool {
	if len(content) < 4 || content[0] != '<' || content[1] == '?' || content[1] == '!' || content[len(content)-1] != '>' {
		return false
	}
	e, err := parseContent(content)
	return err == nil && len(e.raw) == len(content) && e.Name.Space != nsContent
}

// parseContent reads an element as a message's reader does: without keeping its content.
func parseContent(content []byte) (*Element, error) {
	r := newReader(content)
	r.keepNone, r.depth = true, maxEmbeddedDepth
	return r.read()
}

// Extract returns the content of a wsnt:Message's element.
func Extract(element []byte) ([]byte, error) {
	e, err := parseContent(element)
	if err != nil {
		return nil, err
	}
	if e.Name.Space != nsContent {
		return element, nil
	}
	if e, err = ParseXML(element); err != nil {
		return nil, err
	}
	switch {
	case len(e.Children) > 0:
	case e.Name.Local == "Text":
		return []byte(e.Text), nil
	case e.Name.Local == "Base64":
		content, err := base64.StdEncoding.DecodeString(strings.TrimSpace(e.Text))
		if err != nil {
			return nil, fmt.Errorf("content in base64: %w", err)
		}
		return content, nil
	}
	return nil, fmt.Errorf("content is {%s}%s: want Text or Base64, with text only", nsContent, e.Name.Local)
}
