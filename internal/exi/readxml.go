package exi

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// xmlReader turns a document into events, and checks what namespaces and well-formedness ask for.
type xmlReader struct {
	events []event
	// text that has not ended yet.
	text []byte
	open []openTag
}

type openTag struct {
	tag      xml.Name // as written
	name     name
	bindings map[string]string
	// preserve says that xml:space is preserve.
	preserve bool
}

func readXML(document []byte) ([]event, error) {
	decoder := xml.NewDecoder(bytes.NewReader(document))
	r := &xmlReader{}
	for {
		token, err := decoder.RawToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			line, column := decoder.InputPos()
			return nil, fmt.Errorf("XML document, line %d, column %d: want well-formed XML in UTF-8 without entities of its own", line, column)
		}
		if err := r.token(token); err != nil {
			line, _ := decoder.InputPos()
			return nil, fmt.Errorf("XML document, line %d: %w", line, err)
		}
	}
	if len(r.open) > 0 || len(r.events) == 0 {
		return nil, fmt.Errorf("XML document: want one element with an end")
	}
	return r.events, nil
}

func (r *xmlReader) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return r.start(t)
	case xml.EndElement:
		return r.end(t)
	case xml.CharData:
		if len(r.open) > 0 {
			r.text = append(r.text, t...)
		} else if strings.Trim(string(t), " \t\r\n\ufeff") != "" {
			return fmt.Errorf("text %.20q outside of the element", t)
		}
	}
	return nil
}

func (r *xmlReader) start(t xml.StartElement) error {
	switch {
	case len(r.open) == 0 && len(r.events) > 0:
		return fmt.Errorf("element %s follows the outermost one: want one element", t.Name.Local)
	case len(r.open) == MaxDepth:
		return fmt.Errorf("element %s: want at most %d elements in each other", t.Name.Local, MaxDepth)
	}
	r.flush(startElement)
	tag := openTag{tag: t.Name, preserve: len(r.open) > 0 && r.open[len(r.open)-1].preserve}
	for _, a := range t.Attr {
		if err := tag.bind(a); err != nil {
			return err
		}
	}
	r.open = append(r.open, tag)
	element, err := r.resolve(t.Name, true)
	if err != nil {
		return err
	}
	top := &r.open[len(r.open)-1]
	top.name = element
	r.events = append(r.events, event{kind: startElement, name: element})
	return r.attributes(t.Attr, top)
}

// bind takes a namespace declaration.
func (t *openTag) bind(a xml.Attr) error {
	prefix := a.Name.Local
	switch {
	case a.Name.Space == "" && prefix == "xmlns":
		prefix = ""
	case a.Name.Space != "xmlns":
		return nil
	case !isName(prefix) || a.Value == "" || prefix == "xmlns" || a.Value == xmlnsURI || (prefix == "xml") != (a.Value == xmlURI):
		return fmt.Errorf("namespace prefix %s cannot stand for %q", prefix, a.Value)
	}
	if a.Value == xmlnsURI || prefix == "" && a.Value == xmlURI {
		return fmt.Errorf("namespace %s cannot be the default", a.Value)
	}
	if t.bindings == nil {
		t.bindings = map[string]string{}
	}
	if _, twice := t.bindings[prefix]; twice {
		return fmt.Errorf("namespace prefix %q is declared twice in element %s", prefix, t.tag.Local)
	}
	t.bindings[prefix] = a.Value
	return nil
}

// resolve returns the name that stands for a prefix and a local name.
func (r *xmlReader) resolve(n xml.Name, useDefault bool) (name, error) {
	if !isName(n.Local) || n.Space != "" && !isName(n.Space) {
		return name{}, fmt.Errorf("name %s: want at most one colon, between two names", strings.TrimPrefix(n.Space+":"+n.Local, ":"))
	}
	if n.Space == "xml" {
		return name{xmlURI, n.Local}, nil
	}
	if n.Space == "" && !useDefault {
		return name{"", n.Local}, nil
	}
	for i := len(r.open) - 1; i >= 0; i-- {
		if uri, found := r.open[i].bindings[n.Space]; found {
			return name{uri, n.Local}, nil
		}
	}
	if n.Space != "" {
		return name{}, fmt.Errorf("namespace prefix %s of %s is not declared", n.Space, n.Local)
	}
	return name{"", n.Local}, nil
}

// attributes adds those of an element: xsi:type first, as EXI asks for, then xsi:nil, then the others in order.
func (r *xmlReader) attributes(all []xml.Attr, tag *openTag) error {
	if len(all) > maxAttributes {
		return fmt.Errorf("element %s has %d attributes: want at most %d", tag.name, len(all), maxAttributes)
	}
	var first, second, others []event
	seen := map[name]bool{}
	for _, a := range all {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			continue
		}
		n, err := r.resolve(a.Name, false)
		if err != nil {
			return err
		}
		if seen[n] {
			return fmt.Errorf("attribute %s stands twice in element %s", n, tag.name)
		}
		seen[n] = true
		switch e := (event{kind: attribute, name: n, value: a.Value}); {
		case n == xsiType:
			if e.qname, err = r.resolveValue(a.Value); err != nil {
				return err
			}
			first = append(first, e)
		case n == name{xsiURI, "nil"}:
			second = append(second, e)
		case n == name{xsiURI, "schemaLocation"} || n == name{xsiURI, "noNamespaceSchemaLocation"}:
		default:
			others = append(others, e)
		}
		if n == xmlSpace {
			tag.preserve = a.Value == "preserve"
		}
	}
	r.events = append(append(append(r.events, first...), second...), others...)
	return nil
}

// resolveValue returns the qualified name in the value of xsi:type.
func (r *xmlReader) resolveValue(value string) (name, error) {
	prefix, local, found := strings.Cut(strings.TrimSpace(value), ":")
	if !found {
		prefix, local = "", prefix
	}
	if !isName(local) || found && !isName(prefix) {
		return name{}, fmt.Errorf("xsi:type %q: want a name", value)
	}
	return r.resolve(xml.Name{Space: prefix, Local: local}, true)
}

func (r *xmlReader) end(t xml.EndElement) error {
	if len(r.open) == 0 || r.open[len(r.open)-1].tag != t.Name {
		return fmt.Errorf("element %s ends where it is not open", t.Name.Local)
	}
	r.flush(endElement)
	top := len(r.open) - 1
	r.events = append(r.events, event{kind: endElement, name: r.open[top].name})
	r.open = r.open[:top]
	return nil
}

// flush adds the text before an event. White space is content only in an element without others.
func (r *xmlReader) flush(next kind) {
	if len(r.text) == 0 {
		return
	}
	text := string(r.text)
	r.text = r.text[:0]
	last := r.events[len(r.events)-1].kind
	simple := (last == startElement || last == attribute) && next == endElement
	blank := strings.Trim(text, " \t\r\n") == ""
	r.events = append(r.events, event{kind: characters, value: text, ignorable: blank && !simple && !r.open[len(r.open)-1].preserve})
}

// isName reports whether a text is a name without a colon, as the reader of XML takes it.
func isName(s string) bool {
	if s == "" || strings.ContainsAny(s, " \t\r\n:<>/='\"&") {
		return false
	}
	ascii := true
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '-' && c != '.' && (c < '0' || c > '9')) {
			ascii = false
		}
	}
	if ascii {
		return true
	}
	token, err := xml.NewDecoder(strings.NewReader("<" + s + "/>")).RawToken()
	start, ok := token.(xml.StartElement)
	return err == nil && ok && start.Name.Local == s
}
