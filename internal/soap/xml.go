package soap

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a document. Within opaque elements there may be any number of elements, as none of them are kept.
const (
	maxDepth        = 64
	maxElements     = 10_000
	maxAttributes   = 64 // declarations of namespaces do not count
	maxDeclarations = 128
)

// Element of a document.
type Element struct {
	// Name with its namespace.
	Name xml.Name
	// Attr has no namespace declarations.
	Attr []xml.Attr
	// Text is the text directly in the element.
	Text     string
	Children []*Element
	raw      []byte
	// outer has the declarations around the element, inner those valid in it.
	outer, inner *scope
}

// scope is a namespace declaration and those before it.
type scope struct {
	before      *scope
	prefix, uri string
	count       int
}

func (s *scope) lookup(prefix string) (string, bool) {
	for ; s != nil; s = s.before {
		if s.prefix == prefix {
			return s.uri, true
		}
	}
	return "", prefix == ""
}

// Child returns the first child of a name; nil for none.
func (e *Element) Child(space, local string) *Element {
	if e == nil {
		return nil
	}
	for _, c := range e.Children {
		if c.Name.Space == space && c.Name.Local == local {
			return c
		}
	}
	return nil
}

// Attribute returns an attribute without a namespace; empty for none.
func (e *Element) Attribute(local string) string {
	for _, a := range e.Attr {
		if a.Name.Space == "" && a.Name.Local == local {
			return a.Value
		}
	}
	return ""
}

// Is reports whether an element, which may be nil, has a name.
func (e *Element) Is(space, local string) bool {
	return e != nil && e.Name.Space == space && e.Name.Local == local
}

// Prefixes returns the namespaces of the prefixes that a text in the element uses, such as a:b.
func (e *Element) Prefixes(text string) (used map[string]string) {
	for s := e.inner; s != nil && strings.Contains(text, ":"); s = s.before {
		if _, seen := used[s.prefix]; !seen && s.prefix != "" && strings.Contains(text, s.prefix+":") {
			if used == nil {
				used = map[string]string{}
			}
			used[s.prefix] = s.uri
		}
	}
	return used
}

// IsNil reports whether the element is xsi:nil.
func (e *Element) IsNil() bool {
	for _, a := range e.Attr {
		if a.Name.Space == "http://www.w3.org/2001/XMLSchema-instance" && a.Name.Local == "nil" {
			return a.Value == "true" || a.Value == "1"
		}
	}
	return false
}

// Standalone returns the element as written in its document, byte by byte. Namespace declarations from around it
// are added to its start tag.
func (e *Element) Standalone() []byte {
	var missing []byte
	seen := map[string]bool{"xml": true}
	for s := e.inner; s != e.outer; s = s.before {
		seen[s.prefix] = true
	}
	for s := e.outer; s != nil; s = s.before {
		if seen[s.prefix] {
			continue
		}
		seen[s.prefix] = true
		switch {
		case s.prefix == "" && s.uri != "":
			missing = append(missing, ` xmlns="`+Escape(s.uri)+`"`...)
		case s.prefix != "" && bytes.Contains(e.raw, []byte(s.prefix+":")):
			missing = append(missing, ` xmlns:`+s.prefix+`="`+Escape(s.uri)+`"`...)
		}
	}
	if len(missing) == 0 {
		return e.raw
	}
	name := bytes.IndexAny(e.raw, " \t\r\n/>")
	return bytes.Join([][]byte{e.raw[:name], missing, e.raw[name:]}, nil)
}

// errorf returns an error of a document, with the position in bytes.
func errorf(at int64, format string, args ...any) error {
	return fmt.Errorf("XML at byte %d: %w", at, fmt.Errorf(format, args...))
}

// reader builds a tree of elements from raw tokens, and handles names, nesting and namespaces itself. Tokens of encoding/xml
// lose prefixes, allow undeclared ones and have no limits. XML's own five entities are the only ones, as there is no DTD.
type reader struct {
	data    []byte
	decoder *xml.Decoder
	root    *Element
	// The open elements, and the names of all open ones with their prefixes.
	open     []*Element
	names    []xml.Name
	scopes   []*scope
	starts   []int64
	elements int
	// Of the children of opaqueIn's elements the content is not kept. opaque is the depth of the one that is open; 0 for none.
	opaqueIn []xml.Name
	opaque   int
	text     []*strings.Builder
	// depth is the limit of nesting; keepNone keeps the outermost element only.
	depth    int
	keepNone bool
}

func newReader(data []byte) *reader {
	return &reader{data: data, decoder: xml.NewDecoder(bytes.NewReader(data)), depth: maxDepth}
}

// ParseXML reads one element, bounded in depth and number of elements, in UTF-8 without a DTD and without processing instructions. Of what
// stands in the elements named opaque only the outermost elements are kept.
func ParseXML(data []byte, opaque ...xml.Name) (*Element, error) {
	r := newReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	r.opaqueIn = opaque
	return r.read()
}

func (r *reader) read() (*Element, error) {
	if !utf8.Valid(r.data) {
		return nil, errors.New("XML is not UTF-8, the only encoding that is read")
	}
	for {
		before := r.decoder.InputOffset()
		token, err := r.decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errorf(r.decoder.InputOffset(), "not well-formed")
		}
		if err := r.token(before, token); err != nil {
			return nil, errorf(before, "%w", err)
		}
	}
	if r.root == nil || len(r.names) > 0 {
		return nil, errorf(int64(len(r.data)), "ends within an element, or has none")
	}
	return r.root, nil
}

func (r *reader) token(at int64, token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return r.start(at, t)
	case xml.EndElement:
		return r.end(t)
	case xml.CharData:
		if len(r.names) == 0 && len(bytes.TrimSpace(t)) > 0 {
			return errors.New("text outside of the document's element")
		}
		if r.opaque == 0 && len(r.open) > 0 {
			r.text[len(r.text)-1].Write(t)
		}
	case xml.Directive:
		return errors.New("a document type declaration: SOAP has none")
	case xml.ProcInst:
		if t.Target != "xml" || at != 0 {
			return fmt.Errorf("processing instruction %q: SOAP has none", t.Target)
		}
	}
	return nil
}

func (r *reader) current() *scope {
	if len(r.scopes) == 0 {
		return nil
	}
	return r.scopes[len(r.scopes)-1]
}

func (r *reader) start(at int64, t xml.StartElement) error {
	switch {
	case len(r.names) == 0 && r.root != nil:
		return errors.New("a second element after the document's one")
	case len(r.names) >= r.depth:
		return fmt.Errorf("elements are nested more than %d deep", r.depth)
	}
	declared, outer := declarations(t.Attr), r.current()
	if n := len(t.Attr) - declared; n > maxAttributes || declared > maxDeclarations {
		return fmt.Errorf("element %s has %d attributes and %d namespace declarations: want at most %d and %d", t.Name.Local, n, declared, maxAttributes, maxDeclarations)
	}
	inner, err := declare(outer, t.Attr)
	if err != nil {
		return err
	}
	name, err := resolve(inner, t.Name, true)
	if err != nil {
		return err
	}
	attributes, err := resolveAttributes(inner, t.Attr)
	if err != nil {
		return err
	}
	r.names, r.scopes, r.starts = append(r.names, t.Name), append(r.scopes, inner), append(r.starts, at)
	if r.opaque > 0 {
		return nil
	}
	if r.elements++; r.elements > maxElements {
		return fmt.Errorf("more than %d elements", maxElements)
	}
	e := &Element{Name: name, Attr: attributes, outer: outer, inner: inner}
	if len(r.open) > 0 {
		parent := r.open[len(r.open)-1]
		parent.Children = append(parent.Children, e)
		if slices.Contains(r.opaqueIn, parent.Name) {
			r.opaque = len(r.names)
		}
	} else if r.root = e; r.keepNone {
		r.opaque = 1
	}
	r.open, r.text = append(r.open, e), append(r.text, &strings.Builder{})
	return nil
}

func (r *reader) end(t xml.EndElement) error {
	depth := len(r.names)
	if depth == 0 || r.names[depth-1] != t.Name {
		return fmt.Errorf("end of %s, which is not what is open", t.Name.Local)
	}
	start := r.starts[depth-1]
	r.names, r.scopes, r.starts = r.names[:depth-1], r.scopes[:depth-1], r.starts[:depth-1]
	if r.opaque > 0 && depth > r.opaque {
		return nil
	}
	r.opaque = 0
	last := len(r.open) - 1
	r.open[last].raw = r.data[start:r.decoder.InputOffset()]
	r.open[last].Text = r.text[last].String()
	r.open, r.text = r.open[:last], r.text[:last]
	return nil
}

func isDeclaration(a xml.Attr) bool {
	return a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns"
}

func declarations(attributes []xml.Attr) (count int) {
	for _, a := range attributes {
		if isDeclaration(a) {
			count++
		}
	}
	return count
}

// declare adds an element's namespace declarations.
func declare(s *scope, attributes []xml.Attr) (*scope, error) {
	for _, a := range attributes {
		var prefix string
		switch {
		case a.Name.Space == "" && a.Name.Local == "xmlns":
		case a.Name.Space == "xmlns":
			if prefix = a.Name.Local; a.Value == "" || prefix == "xmlns" || (prefix == "xml") != (a.Value == nsXML) {
				return nil, fmt.Errorf("declaration of prefix %q as %q", prefix, a.Value)
			}
		default:
			continue
		}
		count := 1
		if s != nil {
			count += s.count
		}
		if count > maxDeclarations {
			return nil, fmt.Errorf("more than %d namespace declarations", maxDeclarations)
		}
		s = &scope{before: s, prefix: prefix, uri: a.Value, count: count}
	}
	return s, nil
}

func resolve(s *scope, name xml.Name, element bool) (xml.Name, error) {
	if name.Local == "" || strings.Contains(name.Local, ":") {
		return name, fmt.Errorf("name %q: want prefix:name or name", name.Local)
	}
	if name.Space == "" && !element {
		return name, nil
	}
	if name.Space == "xml" {
		return xml.Name{Space: nsXML, Local: name.Local}, nil
	}
	uri, ok := s.lookup(name.Space)
	if !ok {
		return name, fmt.Errorf("prefix %q of %s is not declared", name.Space, name.Local)
	}
	return xml.Name{Space: uri, Local: name.Local}, nil
}

func resolveAttributes(s *scope, attributes []xml.Attr) ([]xml.Attr, error) {
	var resolved []xml.Attr
	for _, a := range attributes {
		if isDeclaration(a) {
			a.Name.Space = "xmlns"
		} else {
			name, err := resolve(s, a.Name, false)
			if err != nil {
				return nil, err
			}
			a.Name = name
		}
		for _, other := range resolved {
			if other.Name == a.Name {
				return nil, fmt.Errorf("attribute %s stands twice", a.Name.Local)
			}
		}
		resolved = append(resolved, a)
	}
	kept := resolved[:0]
	for _, a := range resolved {
		if a.Name.Space != "xmlns" {
			kept = append(kept, a)
		}
	}
	return kept, nil
}

// escaper is for text and for attribute values in double quotes. A reader would turn carriage returns into line feeds, and other white space
// in attributes into spaces.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\r", "&#13;", "\n", "&#10;", "\t", "&#9;")

// Escape makes a text safe in elements and in attributes in double quotes.
func Escape(s string) string { return escaper.Replace(s) }

// IsXMLText reports whether XML 1.0 allows all characters (its production Char).
func IsXMLText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, c := range s {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' || c == 0xfffe || c == 0xffff {
			return false
		}
	}
	return true
}
