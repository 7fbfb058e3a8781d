package exi

import "fmt"

// production is a learned production of a built-in grammar (EXI 1.0, section 8.4).
type production struct {
	kind kind
	name name
}

// productions of one state of an element, the newest of which has the least code.
type productions struct {
	learned []production
	// ids are the places in learned; only encoders ask for them.
	ids map[production]int
	// once are the productions that are not learned again.
	once [3]bool
}

func (p *productions) learn(new production) {
	if again := p.learnsOnce(new); again != nil {
		if *again {
			return
		}
		*again = true
	}
	if p.ids != nil {
		p.ids[new] = len(p.learned)
	}
	p.learned = append(p.learned, new)
}

// learnsOnce returns whether a production was learned, of those that are learned only once.
func (p *productions) learnsOnce(new production) *bool {
	switch {
	case new.kind == endElement:
		return &p.once[0]
	case new.kind == characters:
		return &p.once[1]
	case new == production{attribute, xsiType}:
		return &p.once[2]
	}
	return nil
}

// find returns the place of a production in learned.
func (p *productions) find(wanted production) (int, bool) {
	if p.ids == nil {
		p.ids = make(map[production]int, len(p.learned))
		for i, l := range p.learned {
			p.ids[l] = i
		}
	}
	id, found := p.ids[wanted]
	return id, found
}

// grammar is that of all elements of a name.
type grammar struct{ start, content productions }

func newGrammar() *grammar {
	g := &grammar{}
	g.content.learn(production{kind: endElement})
	return g
}

// The codes of what a state has not learned yet.
var (
	startCodes   = []kind{endElement, attribute, startElement, characters}
	contentCodes = []kind{startElement, characters}
)

// builtIn is the state of a stream without a schema. Encoder and decoder change it in the same way.
type builtIn struct {
	names    *names
	values   *values
	grammars map[name]*grammar
	open     []openElement
}

type openElement struct {
	name    name
	grammar *grammar
	// content: something has followed the attributes.
	content bool
}

func newBuiltIn() *builtIn {
	return &builtIn{names: newNames(), values: newValues(), grammars: map[name]*grammar{}}
}

// state returns the productions that count next, and the kinds that have codes beside them.
func (b *builtIn) state() (*productions, []kind) {
	if len(b.open) == 0 {
		return nil, nil
	}
	if top := &b.open[len(b.open)-1]; top.content {
		return &top.grammar.content, contentCodes
	}
	return &b.open[len(b.open)-1].grammar.start, startCodes
}

// move goes on after a production.
func (b *builtIn) move(p production) {
	if top := len(b.open) - 1; top >= 0 {
		b.open[top].content = b.open[top].content || p.kind != attribute
	}
	switch p.kind {
	case startElement:
		g, known := b.grammars[p.name]
		if !known {
			g = newGrammar()
			b.grammars[p.name] = g
		}
		b.open = append(b.open, openElement{name: p.name, grammar: g})
	case endElement:
		b.open = b.open[:len(b.open)-1]
	}
}

// owner is whose table a value of a production belongs to.
func (b *builtIn) owner(p production) name {
	if p.kind == attribute {
		return p.name
	}
	return b.open[len(b.open)-1].name
}

func encodeSchemaless(w *bitWriter, events []event) error {
	b := newBuiltIn()
	for _, e := range events {
		if e.ignorable {
			continue
		}
		p := production{e.kind, e.name}
		if e.kind == endElement || e.kind == characters {
			p.name = name{}
		}
		b.writeCode(w, p)
		switch {
		case e.kind == attribute && e.name == xsiType:
			b.names.write(w, e.qname)
		case e.kind == attribute || e.kind == characters:
			b.values.write(w, b.owner(p), e.value, w.text)
		}
		b.move(p)
	}
	if b.names.full() {
		return fmt.Errorf("XML document: want at most %d names", maxNames)
	}
	return nil
}

// writeCode writes the code of a production, and its name if that is new here.
func (b *builtIn) writeCode(w *bitWriter, p production) {
	state, codes := b.state()
	if state == nil {
		b.names.write(w, p.name)
		return
	}
	learned := len(state.learned)
	if id, known := state.find(p); known {
		w.code(learned-1-id, learned+1)
		return
	}
	w.code(learned, learned+1)
	for code, kind := range codes {
		if kind == p.kind {
			w.code(code, len(codes))
		}
	}
	if p.kind == startElement || p.kind == attribute {
		b.names.write(w, p.name)
	}
	state.learn(p)
}

func decodeSchemaless(r *bitReader, w *xmlWriter) {
	b := newBuiltIn()
	for {
		p := b.readCode(r)
		e := event{kind: p.kind, name: p.name}
		switch {
		case r.err != nil:
		case p.kind == attribute && p.name == xsiType:
			e.qname = b.names.read(r)
		case p.kind == attribute || p.kind == characters:
			e.value = b.values.read(r, b.owner(p), r.text)
		}
		if r.err != nil || !w.write(e) {
			return
		}
		if b.move(p); len(b.open) == 0 {
			return
		}
	}
}

// readCode reads what writeCode wrote.
func (b *builtIn) readCode(r *bitReader) (p production) {
	state, codes := b.state()
	if state == nil {
		return production{startElement, b.names.read(r)}
	}
	learned := len(state.learned)
	if code := r.code(learned+1, "event"); code < learned {
		return state.learned[learned-1-code]
	}
	p.kind = codes[r.code(len(codes), "event")]
	if p.kind == startElement || p.kind == attribute {
		p.name = b.names.read(r)
	}
	state.learn(p)
	return p
}
