package exi

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Schema is the structure of documents, read from XML schemas.
type Schema struct {
	// roots are the elements that a document may have outermost, in the order of their codes.
	roots []*declaration
}

// declaration is that of an element.
type declaration struct {
	name name
	typ  *typeDefinition
}

// typeDefinition is a type as the states that its elements go through.
type typeDefinition struct {
	// states begin with the first one.
	states []state
	// castable types have named types derived from them, so that xsi:type could name one.
	castable bool
	simple   *datatype
	// attributes and particles of a complex type.
	attributes []attributeUse
	particles  []particle
}

type attributeUse struct {
	name     name
	required bool
	simple   *datatype
}

type particle struct {
	element *declaration
	// min is how often it occurs at least; unbounded, whether it may occur more often than once.
	min       int
	unbounded bool
}

// state has what may come next, in the order of its codes.
type state struct{ next []transition }

type transition struct {
	kind    kind
	name    name
	element *declaration // of a start
	simple  *datatype    // of an attribute or text
	to      int
}

const xsdURI = "http://www.w3.org/2001/XMLSchema"

// maxOccurrences bounds minOccurs, as each occurrence is a state.
const maxOccurrences = 64

// node is an element of a schema document.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []node     `xml:",any"`
}

func (n *node) attr(local string) string {
	for _, a := range n.Attrs {
		if a.Name.Space == "" && a.Name.Local == local {
			return a.Value
		}
	}
	return ""
}

// is reports whether the node is of XML schema and has a name.
func (n *node) is(local string) bool { return n.XMLName == xml.Name{Space: xsdURI, Local: local} }

// only returns an error if the node has children of other names.
func (n *node) only(locals ...string) error {
	for _, c := range n.Children {
		if c.XMLName.Space != xsdURI || !slices.Contains(locals, c.XMLName.Local) {
			return fmt.Errorf("%s %s has %s, which is not supported: want %s", n.XMLName.Local, n.attr("name"), c.XMLName.Local, strings.Join(locals, ", "))
		}
	}
	return nil
}

// schemaReader reads schema documents that know the same types.
type schemaReader struct {
	// defined are the named types that are not read yet, by name; types are those that are.
	defined map[name]definition
	types   map[name]*typeDefinition
	// reading are the named types that are being read, which may not hold themselves.
	reading map[name]bool
	// bases are the names that named simple types restrict.
	bases map[name]bool
}

// definition is a named type, with the schema document that it is in.
type definition struct {
	node *node
	in   *document
}

type document struct {
	node      node
	target    string
	qualified bool
	prefixes  map[string]string
}

// ParseSchema reads XML schemas: elements with sequences of elements, attributes, and simple types that restrict strings and numbers. Facets that do
// not change an encoding, such as lengths, are not checked.
func ParseSchema(schemas ...[]byte) (*Schema, error) {
	r := &schemaReader{map[name]definition{}, map[name]*typeDefinition{}, map[name]bool{}, map[name]bool{}}
	documents := make([]*document, 0, len(schemas))
	for i, text := range schemas {
		d, err := r.define(text)
		if err != nil {
			return nil, fmt.Errorf("schema %d: %w", i+1, err)
		}
		documents = append(documents, d)
	}
	s := &Schema{}
	for i, d := range documents {
		for j := range d.node.Children {
			if n := &d.node.Children[j]; n.is("element") {
				element, err := r.element(n, d, true)
				if err != nil {
					return nil, fmt.Errorf("schema %d: %w", i+1, err)
				}
				s.roots = append(s.roots, element)
			}
		}
	}
	slices.SortFunc(s.roots, func(a, b *declaration) int { return compareNames(a.name, b.name) })
	return s, nil
}

// compareNames orders names as EXI does.
func compareNames(a, b name) int {
	return cmp.Or(strings.Compare(a.local, b.local), strings.Compare(a.uri, b.uri))
}

// define notes the named types of a schema document.
func (r *schemaReader) define(text []byte) (*document, error) {
	d := &document{prefixes: map[string]string{}}
	if xml.NewDecoder(bytes.NewReader(text)).Decode(&d.node) != nil || !d.node.is("schema") {
		return nil, fmt.Errorf("want an XML schema")
	}
	if err := d.node.only("element", "complexType", "simpleType"); err != nil {
		return nil, err
	}
	d.target, d.qualified = d.node.attr("targetNamespace"), d.node.attr("elementFormDefault") == "qualified"
	for _, a := range d.node.Attrs {
		if a.Name.Space == "xmlns" {
			d.prefixes[a.Name.Local] = a.Value
		} else if a.Name.Space == "" && a.Name.Local == "xmlns" {
			d.prefixes[""] = a.Value
		}
	}
	for i := range d.node.Children {
		n := &d.node.Children[i]
		if n.is("element") {
			continue
		}
		r.defined[name{d.target, n.attr("name")}] = definition{n, d}
		for _, c := range n.Children {
			if c.is("restriction") {
				r.bases[d.qname(c.attr("base"))] = true
			}
		}
	}
	return d, nil
}

// qname resolves a name with a prefix.
func (d *document) qname(value string) name {
	prefix, local, found := strings.Cut(value, ":")
	if !found {
		prefix, local = "", value
	}
	return name{d.prefixes[prefix], local}
}

// element reads the declaration of an element.
func (r *schemaReader) element(n *node, d *document, global bool) (*declaration, error) {
	e := &declaration{name: name{"", n.attr("name")}}
	if global || d.qualified {
		e.name.uri = d.target
	}
	if n.attr("ref") != "" || n.attr("nillable") != "" || n.attr("form") != "" || n.attr("substitutionGroup") != "" || n.attr("abstract") != "" {
		return nil, fmt.Errorf("element %s%s: ref, nillable, form, substitutionGroup and abstract are not supported", e.name.local, n.attr("ref"))
	}
	if err := n.only("complexType", "simpleType"); err != nil {
		return nil, err
	}
	var err error
	switch {
	case n.attr("type") != "" && len(n.Children) == 0:
		e.typ, err = r.typeOf(d.qname(n.attr("type")))
	case len(n.Children) == 1:
		e.typ, err = r.read(&n.Children[0], d, name{})
	default:
		err = fmt.Errorf("want one type")
	}
	if err != nil {
		return nil, fmt.Errorf("element %s: %w", e.name.local, err)
	}
	return e, nil
}

// typeOf returns a named type.
func (r *schemaReader) typeOf(n name) (*typeDefinition, error) {
	if t, found := r.types[n]; found {
		return t, nil
	}
	if n.uri == xsdURI {
		b, found := builtIns[n.local]
		if !found {
			return nil, fmt.Errorf("type %s is not supported", n)
		}
		r.types[n] = simpleType(b.datatype, b.derived || r.bases[n])
		return r.types[n], nil
	}
	def, found := r.defined[n]
	if !found || r.reading[n] {
		return nil, fmt.Errorf("type %s is not defined, or holds itself", n)
	}
	r.reading[n] = true
	t, err := r.read(def.node, def.in, n)
	delete(r.reading, n)
	if err != nil {
		return nil, fmt.Errorf("type %s: %w", n.local, err)
	}
	r.types[n] = t
	return t, nil
}

// read reads a type, whose name is empty if it has none.
func (r *schemaReader) read(n *node, d *document, named name) (*typeDefinition, error) {
	if n.is("simpleType") {
		simple, err := r.restriction(n, d)
		if err != nil {
			return nil, err
		}
		return simpleType(*simple, named != name{} && r.bases[named]), nil
	}
	if n.attr("mixed") != "" || n.attr("abstract") != "" {
		return nil, fmt.Errorf("mixed and abstract types are not supported")
	}
	if err := n.only("sequence", "attribute"); err != nil {
		return nil, err
	}
	t := &typeDefinition{}
	for i := range n.Children {
		var err error
		if c := &n.Children[i]; c.is("sequence") {
			err = r.sequence(t, c, d)
		} else {
			err = r.attribute(t, c, d)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(t.attributes, func(a, b attributeUse) int { return compareNames(a.name, b.name) })
	t.compile()
	return t, nil
}

func (r *schemaReader) sequence(t *typeDefinition, n *node, d *document) error {
	if n.attr("minOccurs") != "" || n.attr("maxOccurs") != "" {
		return fmt.Errorf("minOccurs and maxOccurs of a sequence are not supported")
	}
	if err := n.only("element"); err != nil {
		return err
	}
	for i := range n.Children {
		c := &n.Children[i]
		element, err := r.element(c, d, false)
		if err != nil {
			return err
		}
		p, err := occurs(c, element)
		if err != nil {
			return err
		}
		t.particles = append(t.particles, p)
	}
	return nil
}

// occurs reads how often an element may occur. A maxOccurs in between is refused, as encoders differ in how they see it.
func occurs(n *node, element *declaration) (particle, error) {
	p := particle{element, 1, n.attr("maxOccurs") == "unbounded"}
	if value := n.attr("maxOccurs"); value != "" && value != "1" && !p.unbounded {
		return p, fmt.Errorf("element %s: maxOccurs %q: want 1 or unbounded", element.name.local, value)
	}
	if value := n.attr("minOccurs"); value != "" {
		count, err := strconv.Atoi(value)
		if err != nil || count < 0 || count > maxOccurrences || count > 1 && !p.unbounded {
			return p, fmt.Errorf("element %s: minOccurs %q: want a number up to maxOccurs, and to %d", element.name.local, value, maxOccurrences)
		}
		p.min = count
	}
	return p, nil
}

func (r *schemaReader) attribute(t *typeDefinition, n *node, d *document) error {
	use := attributeUse{name: name{"", n.attr("name")}, required: n.attr("use") == "required"}
	if n.attr("type") == "" || len(n.Children) > 0 || n.attr("form") != "" || n.attr("use") == "prohibited" {
		return fmt.Errorf("attribute %s: want a named type, and neither ref nor form", use.name.local)
	}
	simple, err := r.typeOf(d.qname(n.attr("type")))
	if err == nil && simple.simple == nil {
		err = fmt.Errorf("want a simple type")
	}
	if err != nil {
		return fmt.Errorf("attribute %s: %w", use.name.local, err)
	}
	use.simple = simple.simple
	t.attributes = append(t.attributes, use)
	return nil
}

// simpleType returns the type of an element with text only.
func simpleType(d datatype, castable bool) *typeDefinition {
	return &typeDefinition{simple: &d, castable: castable, states: []state{
		{[]transition{{kind: characters, simple: &d, to: 1}}},
		{[]transition{{kind: endElement}}},
	}}
}

// position is where an element with a complex type is: at an attribute, then at a particle of which some have come.
type position struct{ attribute, particle, count int }

// compile makes the states of a complex type.
func (t *typeDefinition) compile() {
	ids, todo := map[position]int{{}: 0}, []position{{}}
	id := func(p position) int {
		known, found := ids[p]
		if !found {
			known = len(todo)
			ids[p] = known
			todo = append(todo, p)
		}
		return known
	}
	for i := 0; i < len(todo); i++ {
		t.states = append(t.states, state{t.transitions(todo[i], id)})
	}
}

// transitions returns what may come at a position: attributes by name, elements in the schema's order, the end.
func (t *typeDefinition) transitions(at position, id func(position) int) (next []transition) {
	for i := at.attribute; i < len(t.attributes); i++ {
		use := t.attributes[i]
		next = append(next, transition{kind: attribute, name: use.name, simple: use.simple, to: id(position{attribute: i + 1})})
		if use.required {
			return next
		}
	}
	count := at.count
	for i := at.particle; i < len(t.particles); i++ {
		p := t.particles[i]
		if p.unbounded || count == 0 {
			next = append(next, transition{kind: startElement, name: p.element.name, element: p.element, to: id(t.after(i, count))})
		}
		if count < p.min {
			return next
		}
		count = 0
	}
	return append(next, transition{kind: endElement})
}

// after returns the position after one more occurrence of a particle.
func (t *typeDefinition) after(i, count int) position {
	return position{len(t.attributes), i, min(count+1, max(t.particles[i].min, 1))}
}
