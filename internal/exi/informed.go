package exi

import (
	"fmt"
	"slices"
	"strings"
)

// openDeclared is an element of a schema that has not ended, and the state that it is in.
type openDeclared struct {
	*declaration
	state int
}

// codes returns what may come next, and how many codes there are. In the first state one more stands for xsi:type, if a type could be named.
func (o *openDeclared) codes() (next []transition, count int) {
	next = o.typ.states[o.state].next
	return next, len(next) + flag(o.state == 0 && o.typ.castable)
}

// informedEncoder writes a document by a schema, in strict mode.
type informedEncoder struct {
	w      *bitWriter
	values *values
	open   []openDeclared
}

func encodeInformed(w *bitWriter, events []event, s *Schema) error {
	e := &informedEncoder{w: w, values: newValues()}
	for code, root := range s.roots {
		if root.name == events[0].name {
			w.code(code, len(s.roots)+1)
			e.open = append(e.open, openDeclared{declaration: root})
		}
	}
	if len(e.open) == 0 {
		return fmt.Errorf("element %s: want %s", events[0].name, s.rootNames())
	}
	sortAttributes(events)
	for _, next := range events[1:] {
		if err := e.event(next); err != nil {
			return err
		}
	}
	return nil
}

// sortAttributes puts the attributes of each element into the order of their codes.
func sortAttributes(events []event) {
	for from := 0; from < len(events); from++ {
		to := from
		for to < len(events) && events[to].kind == attribute {
			to++
		}
		slices.SortFunc(events[from:to], func(a, b event) int { return compareNames(a.name, b.name) })
		from = max(from, to-1)
	}
}

func (s *Schema) rootNames() string {
	names := make([]string, 0, len(s.roots))
	for _, root := range s.roots {
		names = append(names, root.name.String())
	}
	return strings.Join(names, " or ")
}

func (e *informedEncoder) event(next event) error {
	top := &e.open[len(e.open)-1]
	first := top.typ.states[top.state].next[0]
	switch {
	case next.kind == characters && first.kind != characters:
		if strings.Trim(next.value, whiteSpace) == "" {
			return nil
		}
		return fmt.Errorf("text %.20q in element %s: want %s", next.value, top.name, top.wants())
	case next.kind == endElement && first.kind == characters:
		// There is no event for empty text.
		if err := e.event(event{kind: characters}); err != nil {
			return err
		}
	}
	codes, count := top.codes()
	for code, t := range codes {
		if t.kind == next.kind && (t.kind == endElement || t.kind == characters || t.name == next.name) {
			e.w.code(code, count)
			return e.take(t, next)
		}
	}
	if next.kind == endElement {
		return fmt.Errorf("element %s ends: want %s", top.name, top.wants())
	}
	return fmt.Errorf("%s in element %s: want %s", next.name, top.name, top.wants())
}

// wants names what may come next.
func (o *openDeclared) wants() string {
	codes, _ := o.codes()
	words := make([]string, 0, len(codes))
	for _, t := range codes {
		switch t.kind {
		case startElement, attribute:
			words = append(words, t.name.String())
		case characters:
			words = append(words, "text")
		default:
			words = append(words, "its end")
		}
	}
	return strings.Join(words, " or ")
}

func (e *informedEncoder) take(t transition, next event) error {
	top := &e.open[len(e.open)-1]
	top.state = t.to
	switch t.kind {
	case startElement:
		e.open = append(e.open, openDeclared{declaration: t.element})
	case endElement:
		e.open = e.open[:len(e.open)-1]
	case attribute:
		return t.simple.encode(e.w, e.values, t.name, next.value)
	case characters:
		return t.simple.encode(e.w, e.values, top.name, next.value)
	}
	return nil
}

func decodeInformed(r *bitReader, w *xmlWriter, s *Schema) {
	code := r.code(len(s.roots)+1, "event")
	if code == len(s.roots) {
		r.fail("EXI stream has another outermost element than %s", s.rootNames())
	}
	if r.err != nil {
		return
	}
	all := newValues()
	open := []openDeclared{{declaration: s.roots[code]}}
	w.write(event{kind: startElement, name: open[0].name})
	for len(open) > 0 && r.err == nil && w.err == nil {
		top := &open[len(open)-1]
		codes, count := top.codes()
		code := r.code(count, "event")
		if code == len(codes) {
			r.fail("EXI stream has xsi:type in element %s, which is not supported", top.name)
			return
		}
		t := codes[code]
		e := event{kind: t.kind, name: t.name}
		top.state = t.to
		switch t.kind {
		case startElement:
			open = append(open, openDeclared{declaration: t.element})
		case attribute:
			e.value = t.simple.decode(r, all, t.name)
		case characters:
			e.value = t.simple.decode(r, all, top.name)
		case endElement:
			open = open[:len(open)-1]
		}
		if r.err == nil {
			w.write(e)
		}
	}
}
