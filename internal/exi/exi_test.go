package exi

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// significant lists a document's content without white space between elements, which EXI does not keep.
func significant(t testing.TB, document string) []event {
	t.Helper()
	events, err := readXML([]byte(document))
	if err != nil {
		t.Fatalf("%v in %q", err, document)
	}
	events = slices.DeleteFunc(events, func(e event) bool { return e.ignorable })
	for i := range events {
		if events[i].name == xsiType {
			events[i].value = "" // its prefix is not kept
		}
	}
	return events
}

func sameContent(t testing.TB, want, got string) {
	t.Helper()
	if diff := cmp.Diff(significant(t, want), significant(t, got), cmp.AllowUnexported(event{}, name{})); diff != "" {
		t.Errorf("%q came back as %q:\n%s", want, got, diff)
	}
}

func TestADocumentComesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	documents := []string{
		soap("urn:uuid:1", `<m:message xmlns:m="urn:m">Ü &lt; &#13;&#10;</m:message>`),
		`<p:a xmlns:p="urn:p" xmlns:xsi="` + xsiURI + `" xsi:type="local" p:b="&#9;&#10;&quot;"/>`,
		`<a xmlns:xs="urn:xs" xmlns:xsi="` + xsiURI + `" xsi:type="xs:string" xml:lang="de"/>`,
		`<xml:a/>`,
	}
	for range 200 {
		documents = append(documents, generated(random))
	}
	for _, document := range documents {
		sameContent(t, document, decoded(t, encoded(t, document, Options{}), Options{}))
	}
}

func TestWhatIsNoDocumentIsRefused(t *testing.T) {
	for document, want := range map[string]string{
		"":                 "want one element with an end",
		"<a>":              "want one element with an end",
		"<a></b>":          "element b ends where it is not open",
		"<a/><b/>":         "element b follows the outermost one",
		"text<a/>":         `text "text" outside of the element`,
		"<p:a/>":           "namespace prefix p of a is not declared",
		"<a p:b='1'/>":     "namespace prefix p of b is not declared",
		"<a b='1' b='2'/>": "attribute b stands twice in element a",
		"<a>&unknown;</a>": "want well-formed XML",
		"<a>\x01</a>":      "want well-formed XML",
		"<:a/>":            "want at most one colon",
		"<a xmlns:p=''/>":  `namespace prefix p cannot stand for ""`,
		"<a xmlns:p='urn:p' xmlns:xsi='" + xsiURI + "' xsi:type='q:b'/>": "namespace prefix q of b is not declared",
		"<a xmlns:xsi='" + xsiURI + "' xsi:type='1'/>":                   `xsi:type "1": want a name`,
		"<a" + manyAttributes() + "/>":                                   "element a has 129 attributes: want at most 128",
		strings.Repeat("<a>", 129) + strings.Repeat("</a>", 129):         "want at most 128 elements in each other",
		"<a>" + strings.Repeat(" ", MaxBytes) + "</a>":                   "want at most 4194304",
	} {
		if _, err := Encode(nil, []byte(document), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v; want %s", document, err, want)
		}
	}
}

func manyAttributes() string {
	var out strings.Builder
	for i := range maxAttributes + 1 {
		fmt.Fprintf(&out, ` a%d=""`, i)
	}
	return out.String()
}

// stream writes what no encoder does.
func stream(write func(w *bitWriter, n *names)) []byte {
	w := &bitWriter{out: []byte{Header}}
	write(w, newNames())
	return w.bytes()
}

func TestWhatIsNoStreamIsRefused(t *testing.T) {
	good := encoded(t, soap("urn:uuid:1", "text"), Options{})
	root := func(w *bitWriter, n *names) { n.write(w, name{"", "a"}) }
	for want, data := range map[string][]byte{
		"want version 1 without options":           {0xa0},
		"EXI stream ends before the document does": good[:len(good)-1],
		"want an end after":                        append(slices.Clone(good), 0),
		"want a name":                              stream(func(w *bitWriter, n *names) { n.write(w, name{"", "a b"}) }),
		"refers to a name without one":             stream(func(w *bitWriter, _ *names) { w.code(1, 4); w.unsigned(0) }),
		"refers to a value without one":            stream(func(w *bitWriter, n *names) { root(w, n); w.code(3, 4); w.unsigned(1) }),
		"more than 63 bits":                        stream(func(w *bitWriter, _ *names) { w.code(1, 4); w.out = append(w.out, bytes.Repeat([]byte{0xff}, 20)...) }),
		"string of 1000000 characters":             stream(func(w *bitWriter, _ *names) { w.code(1, 4); w.unsigned(1_000_001) }),
		"character 0x1:":                           stream(func(w *bitWriter, n *names) { root(w, n); w.code(3, 4); w.text("\x01", 2) }),
		"character 0xD800:":                        stream(func(w *bitWriter, n *names) { root(w, n); w.code(3, 4); w.unsigned(3); w.unsigned(0xd800) }),
		"attribute b twice": stream(func(w *bitWriter, n *names) {
			root(w, n)
			w.code(1, 4)
			n.write(w, name{"", "b"})
			w.text("", 2)
			w.code(0, 2)
			w.text("", 2)
		}),
	} {
		if _, err := Decode(nil, data, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v; want %s", data, err, want)
		}
	}
	if out, err := Decode(nil, append([]byte("$EXI"), good...), Options{}); err != nil || !strings.Contains(string(out), "urn:uuid:1") {
		t.Errorf("with a cookie: %v, %s", err, out)
	}
}

func TestADocumentOfManyNamesIsRefused(t *testing.T) {
	var document strings.Builder
	for i := range maxNames + 1 {
		fmt.Fprintf(&document, "<a%d/>", i)
	}
	text := "<a>" + document.String() + "</a>"
	if _, err := Encode(nil, []byte(text), Options{}); err == nil || !strings.Contains(err.Error(), "want at most 8192 names") {
		t.Errorf("%v; want a refusal", err)
	}
	events, err := readXML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w := &bitWriter{out: []byte{Header}}
	_ = encodeSchemaless(w, events)
	if _, err := Decode(nil, w.bytes(), Options{}); err == nil || !strings.Contains(err.Error(), "want at most 8192 names") {
		t.Errorf("%v; want a refusal", err)
	}
}

func TestASmallStreamCannotMakeALargeDocument(t *testing.T) {
	text := strings.Repeat("x", 10_000)
	bomb := stream(func(w *bitWriter, n *names) {
		n.write(w, name{"", "a"})
		w.bits(3, 2)
		w.text(text, 2)
		w.bits(1, 1) // something that is not learned yet
		w.bits(1, 1) // text
		w.unsigned(0)
		for range 10_000 {
			w.bits(0, 2) // text again
			w.unsigned(0)
		}
	})
	if _, err := Decode(nil, bomb, Options{}); err == nil || !strings.Contains(err.Error(), "want an XML document of at most 4194304 bytes") {
		t.Errorf("%d bytes: %v; want a refusal", len(bomb), err)
	}
}

func TestElementsDoNotNestWithoutEnd(t *testing.T) {
	deep := stream(func(w *bitWriter, n *names) {
		n.write(w, name{"", "a"})
		w.bits(2, 2)
		n.write(w, name{"", "a"})
		w.bits(0, 8*1000) // the learned element, again and again
	})
	if _, err := Decode(nil, deep, Options{}); err == nil || !strings.Contains(err.Error(), "want at most 128 elements in each other") {
		t.Errorf("%v; want a refusal", err)
	}
}

func TestManyLongAttributesTakeNoMoreMemoryThanADocumentMay(t *testing.T) {
	long := strings.Repeat("x", 1<<18) // which the stream has once
	events := []event{{kind: startElement, name: name{local: "a"}}}
	for i := range maxAttributes {
		events = append(events, event{kind: attribute, name: name{local: fmt.Sprintf("b%d", i)}, value: long})
	}
	w := &bitWriter{out: []byte{Header}}
	if err := encodeSchemaless(w, append(events, event{kind: endElement})); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(nil, w.bytes(), Options{})
	runtime.ReadMemStats(&after)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || used > 64 {
		t.Errorf("%v, after %d MiB; want a refusal, and at most 64", err, used)
	}
}

// FuzzDecode: input is decoded or refused; a decoded document can be encoded and decoded to the same.
func FuzzDecode(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		f.Add(encoded(f, generated(random), Options{}))
	}
	f.Add(encoded(f, soap("urn:uuid:1", "text"), Options{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		document, err := Decode(nil, data, Options{})
		if err != nil {
			return
		}
		comesBack(t, string(document), Options{})
	})
}

// comesBack fails unless a decoded document comes back from another encoding.
func comesBack(t *testing.T, document string, o Options) {
	t.Helper()
	again, err := Encode(nil, []byte(document), o)
	if err != nil {
		t.Fatalf("%q: %v", document, err)
	}
	back, err := Decode(nil, again, o)
	if err != nil {
		t.Fatalf("%q: %v", document, err)
	}
	sameContent(t, document, string(back))
	if third, err := Encode(nil, back, o); err != nil || !bytes.Equal(third, again) {
		t.Errorf("%q: %v; %x, then %x", document, err, again, third)
	}
}

// FuzzEncode: whatever comes is encoded or refused; what is encoded comes back.
func FuzzEncode(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		f.Add(generated(random))
	}
	f.Add(soap("urn:uuid:1", "text"))
	f.Fuzz(func(t *testing.T, document string) {
		data, err := Encode(nil, []byte(document), Options{})
		if err != nil {
			return
		}
		back, err := Decode(nil, data, Options{})
		if err != nil {
			if strings.Contains(err.Error(), "want at most") {
				return // more attributes or namespaces than are decoded
			}
			t.Fatalf("%q: %v", document, err)
		}
		sameContent(t, document, string(back))
	})
}

func BenchmarkEncodeSOAP(b *testing.B) {
	document := []byte(soap("urn:uuid:1", `<m:message xmlns:m="urn:m">text</m:message>`))
	for b.Loop() {
		if _, err := Encode(nil, document, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeSOAP(b *testing.B) {
	data := encoded(b, soap("urn:uuid:1", `<m:message xmlns:m="urn:m">text</m:message>`), Options{})
	for b.Loop() {
		if _, err := Decode(nil, data, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
