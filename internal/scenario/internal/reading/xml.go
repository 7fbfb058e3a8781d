package reading

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/utf8text"
)

// XML reads a file of elements as a stream.
type XML struct {
	decoder *xml.Decoder
	name    string
	// encoding is why the declared encoding cannot be read.
	encoding error
}

// NewXML reads a file with this name, in the encoding that it declares.
func NewXML(r io.Reader, name string) *XML {
	x := &XML{decoder: xml.NewDecoder(utf8text.NewReader(r)), name: name}
	x.decoder.Entity = xml.HTMLEntity
	x.decoder.CharsetReader = func(label string, text io.Reader) (io.Reader, error) {
		decoded, err := utf8text.Declared(label, text)
		x.encoding = err
		return decoded, err
	}
	return x
}

// Line returns the number of the last read line.
func (x *XML) Line() int {
	line, _ := x.decoder.InputPos()
	return line
}

// Errorf returns an error about a line.
func (x *XML) Errorf(line int, format string, args ...any) error {
	return &scenario.SyntaxError{File: x.name, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// File reads a file whose root element has one of these names. It calls do for each child, and comment, if not nil, for each comment.
func (x *XML) File(root []string, do func(xml.StartElement) error, comment func(string)) error {
	begun := false
	for {
		token, err := x.decoder.Token()
		if errors.Is(err, io.EOF) {
			if begun {
				return nil
			}
			return x.Errorf(x.Line(), "the file is empty: want %s", root[0])
		}
		if err != nil {
			return x.fault(err)
		}
		switch e := token.(type) {
		case xml.Comment:
			if comment != nil {
				comment(string(e))
			}
		case xml.StartElement:
			switch {
			case begun:
				err = do(e)
			case !slices.Contains(root, e.Name.Local):
				err = x.Errorf(x.Line(), "the file is an element %s: want %s", Short([]byte(e.Name.Local)), root[0])
			}
			begun = true
		}
		if err != nil {
			return err
		}
	}
}

// Elements calls do for each child of the current element. Each must be read or skipped.
func (x *XML) Elements(do func(xml.StartElement) error) error {
	for {
		token, err := x.decoder.Token()
		if err != nil {
			return x.fault(err)
		}
		switch e := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if err := do(e); err != nil {
				return err
			}
		}
	}
}

// Skip skips the current element.
func (x *XML) Skip() error {
	if err := x.decoder.Skip(); err != nil {
		return x.fault(err)
	}
	return nil
}

// Decode decodes the current element into a value whose fields are strings.
func (x *XML) Decode(value any, start xml.StartElement) error {
	if err := x.decoder.DecodeElement(value, &start); err != nil {
		return x.fault(err)
	}
	return nil
}

// fault returns an error of the decoder with its line.
func (x *XML) fault(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case x.encoding != nil:
		return x.Errorf(x.Line(), "%s", x.encoding)
	case errors.As(err, &syntax) && syntax.Msg == "invalid UTF-8":
		return x.Errorf(syntax.Line, "the text is not in UTF-8: want a first line that names its encoding, such as <?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>")
	case errors.As(err, &syntax) && syntax.Msg == "unexpected EOF", errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return x.Errorf(x.Line(), "the file ends too early")
	case strings.Contains(err.Error(), "unsupported version"):
		return x.Errorf(x.Line(), "the file is of another version of XML: want version=\"1.0\" in its first line")
	case errors.As(err, &syntax):
		return x.Errorf(syntax.Line, "the file is not well-formed XML: %s", syntax.Msg)
	}
	return x.Errorf(x.Line(), "the file cannot be read as XML: %s", strings.TrimPrefix(err.Error(), "xml: "))
}
