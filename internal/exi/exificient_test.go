package exi

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/exi/exificient"
)

// holdAgainstExificient fails unless EXIficient makes the same bytes of each document, reads ours, and we read its.
func holdAgainstExificient(t *testing.T, documents []string, schemaPath string, o Options) {
	t.Helper()
	inputs, ours := make([][]byte, len(documents)), make([][]byte, len(documents))
	for i, document := range documents {
		inputs[i], ours[i] = []byte(document), encoded(t, document, o)
	}
	theirs, read := exificient.Run(t, inputs, ours, schemaPath)
	for i, document := range documents {
		if !bytes.Equal(ours[i], theirs[i]) {
			t.Errorf("%s\nours   %x\ntheirs %x", document, ours[i], theirs[i])
			continue
		}
		if diff := cmp.Diff(content(t, decoded(t, theirs[i], o)), content(t, string(read[i]))); diff != "" {
			t.Errorf("%s\nis not what EXIficient reads:\n%s", document, diff)
		}
	}
}

// content lists what is in a document, whatever prefixes it has.
func content(t *testing.T, document string) (lines []string) {
	t.Helper()
	events, err := readXML([]byte(document))
	if err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	for _, e := range events {
		value := e.value
		if e.name == xsiType {
			value = e.qname.String()
		}
		lines = append(lines, fmt.Sprintf("%d %s %q", e.kind, e.name, value))
	}
	return lines
}

// words of generated documents, some of which repeat.
var words = []string{"a", "unit", "text", "Ünit", "x-1", "b.c", "_d", "sender", "Body", "日本"}

// generated returns a document of random structure.
func generated(random *rand.Rand) string {
	var out strings.Builder
	appendElement(&out, random, 0)
	return out.String()
}

func appendElement(out *strings.Builder, random *rand.Rand, depth int) {
	prefix, local := []string{"", "p:", "q:"}[random.IntN(3)], words[random.IntN(len(words))]
	fmt.Fprintf(out, `<%s%s`, prefix, local)
	if depth == 0 {
		out.WriteString(` xmlns:p="urn:p" xmlns:q="http://q.example/ü" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`)
	}
	if random.IntN(4) == 0 {
		out.WriteString([]string{` xmlns="urn:default"`, ` xmlns=""`}[random.IntN(2)])
	}
	if depth > 0 && random.IntN(10) == 0 {
		out.WriteString(` xsi:nil="true"`)
	}
	for _, i := range random.Perm(len(words))[:random.IntN(3)] {
		fmt.Fprintf(out, ` %s%s="%s"`, []string{"", "p:", "xml:"}[random.IntN(3)], words[i], someText(random))
	}
	out.WriteString(">")
	for range random.IntN(5) {
		switch {
		case depth < 6 && random.IntN(2) == 0:
			appendElement(out, random, depth+1)
		case random.IntN(3) == 0:
			out.WriteString([]string{" ", "\n  ", "<!-- comment -->", "<?instruction?>", "<![CDATA[<&]]>"}[random.IntN(5)])
		default:
			out.WriteString(someText(random))
		}
	}
	fmt.Fprintf(out, `</%s%s>`, prefix, local)
}

func someText(random *rand.Rand) string {
	return []string{"", " ", "1", "true", "hold at PL RED", "Müller &amp; &lt;co&gt;", "\U0001F6A9 here", fmt.Sprint(random.IntN(1000)), strings.Repeat("long ", 60)}[random.IntN(9)]
}

// soap is an envelope with addressing, as it goes over UDP.
func soap(id, body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<env:Envelope xmlns:env="http://www.w3.org/2003/05/soap-envelope" xmlns:wsa="http://www.w3.org/2005/08/addressing">
  <env:Header>
    <wsa:Action env:mustUnderstand="true">urn:vignette:messages/Send</wsa:Action>
    <wsa:MessageID>` + id + `</wsa:MessageID>
    <wsa:To>soap.udp://198.18.0.2:8080/messages</wsa:To>
  </env:Header>
  <env:Body>` + body + `</env:Body>
</env:Envelope>`
}

func TestSchemalessStreamsAreThoseOfExificient(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	documents := []string{"<a/>", "<a></a>", "<a> </a>", "<a><b/> <b/></a>", `<a xml:space="preserve"> <b xml:space="default"> <c/> </b> <b/></a>`, "<a>x<b/>y</a>",
		"\ufeff<?xml version=\"1.0\"?><!DOCTYPE a><a>\r\nx\r</a>", `<a xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="a.xsd"/>`}
	for i := range 100 {
		documents = append(documents, soap(fmt.Sprintf("urn:uuid:%d", i), `<m:message xmlns:m="urn:m"><m:id>`+fmt.Sprint(i)+`</m:id></m:message>`))
	}
	for range 400 {
		documents = append(documents, generated(random))
	}
	holdAgainstExificient(t, documents, "", Options{})
}

func TestTypesOfInstancesAreThoseOfExificient(t *testing.T) {
	const xsi = ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xs="http://www.w3.org/2001/XMLSchema"`
	holdAgainstExificient(t, []string{`<a` + xsi + ` b="1" xsi:type="xs:string">x</a>`, `<p:a xmlns:p="urn:p"` + xsi + ` xsi:type="local"/>`,
		`<a` + xsi + `><b xsi:type="xs:int">1</b><b>2</b><b xsi:type="xs:int">3</b></a>`}, "", Options{})
}

// everything is a schema with all that schemas may have.
const everything = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t" elementFormDefault="qualified">
  <xs:element name="report" type="t:Report"/>
  <xs:element name="alive" type="xs:boolean"/>
  <xs:element name="note" type="t:Word"/>
  <xs:complexType name="Report">
    <xs:sequence>
      <xs:element name="word" type="t:Word" minOccurs="0"/>
      <xs:element name="short" type="t:Short" minOccurs="0" maxOccurs="unbounded"/>
      <xs:element name="any" type="xs:string" minOccurs="2" maxOccurs="unbounded"/>
      <xs:element name="colour" type="t:Colour" minOccurs="0"/>
      <xs:element name="octet" type="xs:unsignedByte" minOccurs="0"/>
      <xs:element name="degree" minOccurs="0">
        <xs:simpleType><xs:restriction base="xs:integer"><xs:minInclusive value="-180"/><xs:maxInclusive value="180"/></xs:restriction></xs:simpleType>
      </xs:element>
      <xs:element name="number" type="xs:long" minOccurs="0"/>
      <xs:element name="count" type="xs:nonNegativeInteger" minOccurs="0"/>
      <xs:element name="part" type="t:Part" minOccurs="0" maxOccurs="unbounded"/>
      <xs:element name="good" type="xs:boolean"/>
      <xs:element name="metre" type="xs:decimal" minOccurs="0" maxOccurs="unbounded"/>
      <xs:element name="code" type="t:Code" minOccurs="0"/>
    </xs:sequence>
    <xs:attribute name="z" type="xs:string"/>
    <xs:attribute name="a" type="t:Colour" use="required"/>
    <xs:attribute name="m" type="xs:int"/>
  </xs:complexType>
  <xs:complexType name="Part"><xs:sequence/><xs:attribute name="id" type="xs:unsignedShort" use="required"/></xs:complexType>
  <xs:simpleType name="Word"><xs:restriction base="xs:string"><xs:minLength value="1"/></xs:restriction></xs:simpleType>
  <xs:simpleType name="Short"><xs:restriction base="t:Word"><xs:maxLength value="5"/></xs:restriction></xs:simpleType>
  <xs:simpleType name="Code"><xs:restriction base="xs:string"><xs:pattern value="[A-C\-x]{2}(\.|\\)+\s?"/><xs:pattern value="q*"/></xs:restriction></xs:simpleType>
  <xs:simpleType name="Colour"><xs:restriction base="xs:string">
    <xs:enumeration value="red"/><xs:enumeration value="light blue"/><xs:enumeration value="green"/>
  </xs:restriction></xs:simpleType>
</xs:schema>`

func parsed(t testing.TB, schemas ...string) Options {
	t.Helper()
	var texts [][]byte
	for _, s := range schemas {
		texts = append(texts, []byte(s))
	}
	s, err := ParseSchema(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Schema: s}
}

// report returns a document of the schema everything.
func report(random *rand.Rand) string {
	var out strings.Builder
	some := func(format string, most int, value func() any) {
		for range random.IntN(most + 1) {
			fmt.Fprintf(&out, format, value())
		}
	}
	text := func() any { return []string{"x", "x y", "Ü", "&lt;", "x"}[random.IntN(5)] }
	out.WriteString(`<report xmlns="urn:t"`)
	some(` z="%s"`, 1, text)
	some(` m="%d"`, 1, func() any { return int32(random.Uint32()) })
	out.WriteString(` a="light blue">`)
	some("<word>%s</word>", 1, text)
	some("<short>%s</short>\n", 3, text)
	some("<any>%s</any><any/>", 1, text)
	out.WriteString("<any> </any><any>x</any>")
	some("<colour>%s</colour>", 1, func() any { return []string{"red", "green", "light blue"}[random.IntN(3)] })
	some("<octet>%d</octet>", 1, func() any { return random.IntN(256) })
	some("<degree> %d </degree>", 1, func() any { return random.IntN(361) - 180 })
	some("<number>%d</number>", 1, func() any { return random.Int64N(1<<62) - random.Int64() })
	some("<count>%d</count>", 1, func() any { return random.Int64() >> random.IntN(60) })
	some(`<part id="%d"/>`, 3, func() any { return random.IntN(65536) })
	fmt.Fprintf(&out, "<good>%s</good>", []string{"true", "false", "1", "0"}[random.IntN(4)])
	some("<metre>%s</metre>", 4, func() any {
		return []string{"0", "-0.0", "+1.50", "-012.0034", ".5", "7", fmt.Sprintf("%011.6f", random.Float64()*360-180)}[random.IntN(7)]
	})
	some("<code>%s</code>", 1, func() any { return []string{"AB.", "-x\\ ", "qqq", "other"}[random.IntN(4)] })
	out.WriteString("</report>")
	return out.String()
}

func TestSchemaInformedStreamsAreThoseOfExificient(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	documents := []string{`<alive xmlns="urn:t">true</alive>`, `<p:note xmlns:p="urn:t">x</p:note>`}
	for range 300 {
		documents = append(documents, report(random))
	}
	path := filepath.Join(t.TempDir(), "everything.xsd")
	if err := os.WriteFile(path, []byte(everything), 0o600); err != nil {
		t.Fatal(err)
	}
	holdAgainstExificient(t, documents, path, parsed(t, everything))
}

func encoded(t testing.TB, document string, o Options) []byte {
	t.Helper()
	out, err := Encode([]byte("before"), []byte(document), o)
	if err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	return slices.Clone(out[len("before"):])
}

func decoded(t testing.TB, stream []byte, o Options) string {
	t.Helper()
	out, err := Decode([]byte("before"), stream, o)
	if err != nil {
		t.Fatalf("%v: %x", err, stream)
	}
	return string(out[len("before"):])
}
