package soap

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Content in an element of a message, and back, byte by byte. A standalone XML element goes in unchanged;
// other text becomes the text of an element in vignette's namespace, unless base64 is shorter.
// Anything else becomes such an element in base64.

// nsContent has the name of the service that it was made for first.
const nsContent = "https://vignette.dev/wsn"

// Embed returns the element for any content.
func Embed(content []byte) []byte {
	if embeddable(content) {
		return content
	}
	return Wrap(content)
}

// Wrap returns an element of vignette's namespace for any content. The attributes are names, each followed by its value.
func Wrap(content []byte, attributes ...string) []byte {
	// Implementations change text of white space alone. Limits of payloads allow for the size of base64, not for more.
	name, text := "Text", string(content)
	isText := IsXMLText(text) && strings.TrimSpace(text) != ""
	if isText {
		text = textEscaper.Replace(text)
	}
	if !isText || len(text) > base64.StdEncoding.EncodedLen(len(content)) {
		name, text = "Base64", base64.StdEncoding.EncodeToString(content)
	}
	var declared strings.Builder
	for i := 0; i+1 < len(attributes); i += 2 {
		fmt.Fprintf(&declared, ` %s="%s"`, attributes[i], Escape(attributes[i+1]))
	}
	return fmt.Appendf(nil, `<v:%s xmlns:v="%s"%s>%s</v:%[1]s>`, name, nsContent, declared.String(), text)
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
	e, err := ParseRoot(content)
	return err == nil && len(e.raw) == len(content) && e.Name.Space != nsContent
}

// ParseRoot reads an element as the reader of a message around it does, without keeping its content: there may be any number of elements in it.
func ParseRoot(content []byte) (*Element, error) {
	r := newReader(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	r.keepNone, r.depth = true, maxEmbeddedDepth
	return r.read()
}

// Extract returns the content of an element.
func Extract(element []byte) ([]byte, error) {
	content, _, err := Unwrap(element)
	return content, err
}

// Unwrap returns the content of an element, and the element if Wrap made it; nil if the element itself is the content.
func Unwrap(element []byte) (content []byte, wrapper *Element, err error) {
	e, err := ParseRoot(element)
	if err != nil {
		return nil, nil, err
	}
	if e.Name.Space != nsContent {
		return element, nil, nil
	}
	if e, err = ParseXML(element); err != nil {
		return nil, nil, err
	}
	switch {
	case len(e.Children) > 0:
	case e.Name.Local == "Text":
		return []byte(e.Text), e, nil
	case e.Name.Local == "Base64":
		content, err := base64.StdEncoding.DecodeString(strings.TrimSpace(e.Text))
		if err != nil {
			return nil, nil, errors.New("content in base64 has other characters, or an odd length")
		}
		return content, e, nil
	}
	return nil, nil, fmt.Errorf("content is {%s}%s: want Text or Base64, with text only", nsContent, e.Name.Local)
}
