package exi

import (
	"fmt"
	"strconv"
)

// xmlWriter writes events as a document. Elements take the default namespace, attributes prefixes.
type xmlWriter struct {
	out   []byte
	start int
	open  []writtenTag
	// tag waits for its attributes.
	tag        name
	attributes []event
	waiting    bool
	// prefixes in scope, by namespace.
	prefixes []prefix
	err      error
}

type prefix struct{ uri, prefix string }

type writtenTag struct {
	tag        string
	defaultURI string
	// prefixes in scope outside of the element.
	prefixes int
}

func (w *xmlWriter) fail(format string, values ...any) bool {
	if w.err == nil {
		w.err = fmt.Errorf(format, values...)
	}
	return false
}

// write reports whether an event could be written.
func (w *xmlWriter) write(e event) bool {
	if e.kind == attribute {
		return w.attribute(e)
	}
	if w.flush(); w.err != nil {
		return false
	}
	switch e.kind {
	case startElement:
		if !isName(e.name.local) || e.name.uri == xmlnsURI {
			return w.fail("EXI stream has an element %q: want a name", e.name)
		}
		if len(w.open) == MaxDepth {
			return w.fail("EXI stream: want at most %d elements in each other", MaxDepth)
		}
		w.tag, w.waiting, w.attributes = e.name, true, w.attributes[:0]
	case characters:
		w.out = escape(w.out, e.value, false)
	case endElement:
		top := w.open[len(w.open)-1]
		w.out = append(append(append(w.out, "</"...), top.tag...), '>')
		w.prefixes = w.prefixes[:top.prefixes]
		w.open = w.open[:len(w.open)-1]
	}
	return w.fits(len(w.out) - w.start)
}

// fits reports whether a document may have so many bytes.
func (w *xmlWriter) fits(size int) bool {
	return size <= MaxBytes || w.fail("EXI stream: want an XML document of at most %d bytes", MaxBytes)
}

func (w *xmlWriter) attribute(e event) bool {
	if !isName(e.name.local) || e.name.uri == xmlnsURI || e.name.uri == "" && e.name.local == "xmlns" {
		return w.fail("EXI stream has an attribute %q: want a name", e.name)
	}
	for _, other := range w.attributes {
		if other.name == e.name {
			return w.fail("EXI stream has attribute %s twice in an element", e.name)
		}
	}
	if len(w.attributes) == maxAttributes {
		return w.fail("EXI stream: want at most %d attributes of an element", maxAttributes)
	}
	if e.name == xsiType && (!isName(e.qname.local) || e.qname.uri == xmlnsURI) {
		return w.fail("EXI stream has xsi:type %q: want a name", e.qname)
	}
	w.attributes = append(w.attributes, e)
	return true
}

// maxAttributes and maxPrefixes bound what is searched through.
const (
	maxAttributes = 128
	maxPrefixes   = 256
)

// flush writes the start tag that waits for its attributes.
func (w *xmlWriter) flush() {
	if !w.waiting {
		return
	}
	w.waiting = false
	outside, inScope := "", len(w.prefixes)
	if len(w.open) > 0 {
		outside = w.open[len(w.open)-1].defaultURI
	}
	top := writtenTag{defaultURI: w.tag.uri, prefixes: inScope}
	prefixed := w.tag.uri == xmlURI || w.tag.uri != "" && w.namesTypeWithoutNamespace()
	if top.tag = w.tag.local; prefixed {
		top.tag = w.prefix(w.tag.uri) + ":" + w.tag.local
		top.defaultURI = ""
	}
	attributes := make([]byte, 0, 64)
	for _, a := range w.attributes {
		if attributes = w.appendAttribute(attributes, a); !w.fits(len(attributes)) {
			return
		}
	}
	w.out = append(append(w.out, '<'), top.tag...)
	if top.defaultURI != outside {
		w.out = append(escape(append(w.out, ` xmlns="`...), top.defaultURI, true), '"')
	}
	for _, p := range w.prefixes[inScope:] {
		w.out = append(append(append(w.out, " xmlns:"...), p.prefix...), `="`...)
		w.out = append(escape(w.out, p.uri, true), '"')
	}
	w.out = append(append(w.out, attributes...), '>')
	w.open = append(w.open, top)
}

// namesTypeWithoutNamespace reports whether xsi:type has a name that a default namespace would change.
func (w *xmlWriter) namesTypeWithoutNamespace() bool {
	for _, a := range w.attributes {
		if a.name == xsiType && a.qname.uri == "" {
			return true
		}
	}
	return false
}

func (w *xmlWriter) appendAttribute(out []byte, a event) []byte {
	out = append(out, ' ')
	out = append(w.qualified(out, a.name), `="`...)
	if a.name == xsiType {
		out = w.qualified(out, a.qname)
	} else {
		out = escape(out, a.value, true)
	}
	return append(out, '"')
}

func (w *xmlWriter) qualified(out []byte, n name) []byte {
	if n.uri != "" {
		out = append(append(out, w.prefix(n.uri)...), ':')
	}
	return append(out, n.local...)
}

// prefix returns the prefix of a namespace, which it declares if need be.
func (w *xmlWriter) prefix(uri string) string {
	if uri == xmlURI {
		return "xml"
	}
	for _, p := range w.prefixes {
		if p.uri == uri {
			return p.prefix
		}
	}
	if len(w.prefixes) == maxPrefixes {
		w.fail("EXI stream: want at most %d namespaces of attributes at a time", maxPrefixes)
		return ""
	}
	p := prefix{uri, "xsi"}
	if uri != xsiURI {
		p.prefix = "ns" + strconv.Itoa(len(w.prefixes)+1)
	}
	w.prefixes = append(w.prefixes, p)
	return p.prefix
}

// escape appends text so that a reader of XML gets the same again.
func escape(out []byte, text string, inAttribute bool) []byte {
	from := 0
	for i := range len(text) {
		var reference string
		switch c := text[i]; {
		case c == '&':
			reference = "&amp;"
		case c == '<':
			reference = "&lt;"
		case c == '>':
			reference = "&gt;"
		case c == '\r':
			reference = "&#xD;"
		case c == '"' && inAttribute:
			reference = "&quot;"
		case c == '\t' && inAttribute:
			reference = "&#x9;"
		case c == '\n' && inAttribute:
			reference = "&#xA;"
		default:
			continue
		}
		out = append(append(out, text[from:i]...), reference...)
		from = i + 1
	}
	return append(out, text[from:]...)
}
