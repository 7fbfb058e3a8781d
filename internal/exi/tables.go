package exi

// names are the string tables of URIs and local names (EXI 1.0, section 7.3.1). Both sides of a stream fill them alike.
type names struct {
	uris     []string
	uriID    map[string]int
	locals   [][]string
	localIDs map[name]int
}

// maxNames bounds the names of a document, each of which has a grammar.
const maxNames = 8192

// full reports whether there are more names than that.
func (n *names) full() bool { return len(n.localIDs) > maxNames }

func newNames() *names {
	n := &names{uriID: map[string]int{}, localIDs: map[name]int{}}
	n.add("")
	n.add(xmlURI, "base", "id", "lang", "space")
	n.add(xsiURI, "nil", "type")
	return n
}

func (n *names) add(uri string, locals ...string) {
	n.uriID[uri] = len(n.uris)
	n.uris = append(n.uris, uri)
	n.locals = append(n.locals, nil)
	for _, local := range locals {
		n.addLocal(uri, local)
	}
}

func (n *names) addLocal(uri, local string) {
	id := n.uriID[uri]
	n.localIDs[name{uri, local}] = len(n.locals[id])
	n.locals[id] = append(n.locals[id], local)
}

func (n *names) write(w *bitWriter, q name) {
	id, found := n.uriID[q.uri]
	if found {
		w.code(id+1, len(n.uris)+1)
	} else {
		w.code(0, len(n.uris)+1)
		w.text(q.uri, 0)
		n.add(q.uri)
	}
	if local, found := n.localIDs[q]; found {
		w.unsigned(0)
		w.code(local, len(n.locals[id]))
		return
	}
	w.text(q.local, 1)
	n.addLocal(q.uri, q.local)
}

func (n *names) read(r *bitReader) (q name) {
	id := r.code(len(n.uris)+1, "URI") - 1
	if id < 0 {
		q.uri = r.text(r.unsigned())
		if _, known := n.uriID[q.uri]; known {
			r.fail("EXI stream has URI %q twice", q.uri)
		}
		n.add(q.uri)
		id = len(n.uris) - 1
	}
	q.uri = n.uris[id]
	if length := r.unsigned(); length > 0 {
		q.local = r.text(length - 1)
		if _, known := n.localIDs[q]; known {
			r.fail("EXI stream has name %s twice", q)
		}
		if n.addLocal(q.uri, q.local); n.full() {
			r.fail("EXI stream: want at most %d names", maxNames)
		}
	} else if known := n.locals[id]; len(known) > 0 {
		q.local = known[r.code(len(known), "name")]
	} else {
		r.fail("EXI stream refers to a name without one")
	}
	return q
}

// values are the string tables of values (section 7.3.3): one for each qualified name, and one of all.
type values struct {
	// ids are the places of values; only encoders ask for them, and have no value twice.
	ids    map[string]valueID
	global []string
	local  map[name][]string
}

type valueID struct {
	owner         name
	global, local int
}

func newValues() *values {
	return &values{local: map[name][]string{}}
}

func (v *values) add(owner name, s string) {
	if v.ids != nil {
		v.ids[s] = valueID{owner, len(v.global), len(v.local[owner])}
	}
	v.global = append(v.global, s)
	v.local[owner] = append(v.local[owner], s)
}

// write writes a value of an element or attribute. The characters of a new one are written by literal.
func (v *values) write(w *bitWriter, owner name, s string, literal func(s string, offset int)) {
	if v.ids == nil {
		v.ids = map[string]valueID{}
	}
	id, found := v.ids[s]
	switch {
	case found && id.owner == owner:
		w.unsigned(0)
		w.code(id.local, len(v.local[owner]))
	case found:
		w.unsigned(1)
		w.code(id.global, len(v.global))
	default:
		literal(s, 2)
		if s != "" {
			v.add(owner, s)
		}
	}
}

// read reads a value of an element or attribute. The characters of a new one are read by literal.
func (v *values) read(r *bitReader, owner name, literal func(length uint64) string) string {
	switch length := r.unsigned(); {
	case r.err != nil:
		return ""
	case length == 0:
		return known(r, v.local[owner])
	case length == 1:
		return known(r, v.global)
	case length == 2:
		return ""
	default:
		s := literal(length - 2)
		if r.err == nil {
			v.add(owner, s)
		}
		return s
	}
}

func known(r *bitReader, all []string) string {
	if len(all) == 0 {
		r.fail("EXI stream refers to a value without one")
		return ""
	}
	return all[r.code(len(all), "value")]
}
