// Package exi encodes XML documents in the W3C's Efficient XML Interchange (EXI) 1.0, second edition, and decodes them.
package exi

import (
	"bytes"
	"errors"
	"fmt"
)

const (
	// MaxBytes is the largest XML document, and the largest EXI stream.
	MaxBytes = 4 << 20
	// MaxDepth is how deep elements nest.
	MaxDepth = 128
)

// Options of a stream. Encoder and decoder need the same ones, as the stream does not carry them.
type Options struct {
	// Schema makes the stream schema-informed and strict. Without one it is schemaless.
	Schema *Schema
}

// Header is the first byte of what Encode makes. It says that EXI 1.0 follows, without options.
const Header = 0x80

// Cookie may stand before the header.
var Cookie = []byte("$EXI")

// name is a qualified name.
type name struct{ uri, local string }

func (n name) String() string {
	if n.uri == "" {
		return n.local
	}
	return "{" + n.uri + "}" + n.local
}

const (
	xmlURI   = "http://www.w3.org/XML/1998/namespace"
	xmlnsURI = "http://www.w3.org/2000/xmlns/"
	xsiURI   = "http://www.w3.org/2001/XMLSchema-instance"
)

var (
	xsiType  = name{xsiURI, "type"}
	xmlSpace = name{xmlURI, "space"}
)

// kind of an event.
type kind uint8

const (
	startElement kind = iota
	attribute
	characters
	endElement
)

// event is one item of a document's content, in order.
type event struct {
	kind kind
	name name
	// value of an attribute, or text.
	value string
	// qname is the value of xsi:type.
	qname name
	// ignorable text is white space between elements.
	ignorable bool
}

// Encode appends an XML document as EXI to dst. Comments, processing instructions, namespace prefixes, xsi:schemaLocation and white space between
// elements are not kept.
func Encode(dst, xml []byte, o Options) ([]byte, error) {
	if len(xml) > MaxBytes {
		return dst, fmt.Errorf("XML document of %d bytes: want at most %d", len(xml), MaxBytes)
	}
	events, err := readXML(xml)
	if err != nil {
		return dst, err
	}
	w := &bitWriter{out: append(dst, Header)}
	if o.Schema != nil {
		err = encodeInformed(w, events, o.Schema)
	} else {
		err = encodeSchemaless(w, events)
	}
	if err != nil {
		return dst, err
	}
	return w.bytes(), nil
}

// errTruncated and errOptions are what streams are refused for; others name what is wrong.
var (
	errTruncated = errors.New("EXI stream ends before the document does")
	errOptions   = errors.New("EXI header: want version 1 without options")
)

// Decode appends the XML document in an EXI stream to dst.
func Decode(dst, exi []byte, o Options) ([]byte, error) {
	if len(exi) > MaxBytes {
		return dst, fmt.Errorf("EXI stream of %d bytes: want at most %d", len(exi), MaxBytes)
	}
	body, err := cutHeader(exi)
	if err != nil {
		return dst, err
	}
	r, w := &bitReader{data: body}, &xmlWriter{out: dst, start: len(dst)}
	if o.Schema != nil {
		decodeInformed(r, w, o.Schema)
	} else {
		decodeSchemaless(r, w)
	}
	switch {
	case r.err != nil:
		return dst, r.err
	case w.err != nil:
		return dst, w.err
	case !r.ended():
		return dst, fmt.Errorf("EXI stream of %d bytes: want an end after %d", len(exi), len(exi)-len(body)+(r.at+7)/8)
	}
	return w.out, nil
}

func cutHeader(exi []byte) (body []byte, err error) {
	exi = bytes.TrimPrefix(exi, Cookie)
	if len(exi) == 0 || exi[0] != Header {
		return nil, errOptions
	}
	return exi[1:], nil
}
