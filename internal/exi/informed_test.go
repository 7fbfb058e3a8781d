package exi

import (
	"math/rand/v2"
	"strings"
	"testing"
)

const xsdStart = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t">`

func TestSchemasBeyondTheSubsetAreRefused(t *testing.T) {
	for content, want := range map[string]string{
		`<xs:import namespace="urn:u"/>`:                                                  "schema  has import, which is not supported",
		`<xs:element name="a"/>`:                                                          "element a: want one type",
		`<xs:element name="a" type="t:B"/>`:                                               "element a: type {urn:t}B is not defined",
		`<xs:element name="a" type="xs:dateTime"/>`:                                       "type {http://www.w3.org/2001/XMLSchema}dateTime is not supported",
		`<xs:element name="a" type="xs:string" nillable="true"/>`:                         "nillable, form, substitutionGroup",
		`<xs:element name="a"><xs:complexType><xs:choice/></xs:complexType></xs:element>`: "has choice, which is not supported",
		`<xs:element name="a"><xs:complexType mixed="true"/></xs:element>`:                "mixed and abstract types are not supported",
		`<xs:element name="a"><xs:simpleType><xs:list/></xs:simpleType></xs:element>`:     "want a restriction",
		sequenceOf(`<xs:element name="b" type="xs:string" maxOccurs="3"/>`):               `maxOccurs "3": want 1 or unbounded`,
		sequenceOf(`<xs:element name="b" type="xs:string" minOccurs="x"/>`):               `minOccurs "x": want a number up to maxOccurs`,
		sequenceOf(`<xs:any/>`):                                                           "has any, which is not supported",
		`<xs:element name="a" type="t:A"/><xs:complexType name="A"><xs:sequence><xs:element name="a" type="t:A"/></xs:sequence></xs:complexType>`: "or holds itself",
		restrictionOf("xs:boolean", `<xs:pattern value="true"/>`):                                                                                 "want a restriction of numbers",
		restrictionOf("xs:decimal", `<xs:enumeration value="1"/>`):                                                                                "want a restriction of strings",
		restrictionOf("xs:string", `<xs:whiteSpace value="collapse"/>`):                                                                           "whiteSpace is not supported",
		restrictionOf("xs:int", `<xs:minInclusive value="x"/>`):                                                                                   `minInclusive "x": want an integer`,
		restrictionOf("xs:string", `<xs:pattern value="[a-z-[b]]"/>`):                                                                             "subtraction of classes is not supported",
		restrictionOf("xs:string", `<xs:pattern value="[a"/>`):                                                                                    "a class has no end",
		restrictionOf("xs:string", `<xs:pattern value="[z-a]"/>`):                                                                                 "z-a is not a range",
		restrictionOf("xs:string", `<xs:pattern value="\p{L}"/>`):                                                                                 `escape \p is not supported`,
		`<xs:element name="a"><xs:complexType><xs:attribute name="b"/></xs:complexType></xs:element>`:                                             "attribute b: want a named type",
	} {
		if _, err := ParseSchema([]byte(xsdStart + content + `</xs:schema>`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", content, err, want)
		}
	}
	if _, err := ParseSchema([]byte("<a/>")); err == nil || !strings.Contains(err.Error(), "want an XML schema") {
		t.Errorf("%v; want a refusal", err)
	}
}

func sequenceOf(element string) string {
	return `<xs:element name="a"><xs:complexType><xs:sequence>` + element + `</xs:sequence></xs:complexType></xs:element>`
}

func restrictionOf(base, facet string) string {
	return `<xs:element name="a"><xs:simpleType><xs:restriction base="` + base + `">` + facet + `</xs:restriction></xs:simpleType></xs:element>`
}

func TestCharactersOfPatternsAreCollected(t *testing.T) {
	for pattern, want := range map[string]string{
		"[0-9]{4}(0[1-9]|1[0-2])Z?": "0123456789Z", `[A-C*\-]{3}`: "*-ABC", `a.b`: "", `\d+`: "", "[^a]": "", `\.\\[\]]`: `.\]`, "[a-]": "-a", "a|bc|": "abc", `\s`: "\t\n\r ",
		"[\u0100-\u0300]": "",
	} {
		if got, err := charactersOf([]string{pattern}); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", pattern, string(got), err, want)
		}
	}
}

func TestDocumentsThatAreNotOfTheSchemaAreRefused(t *testing.T) {
	o := parsed(t, everything)
	const start, end = `<report xmlns="urn:t" a="red">`, `</report>`
	const good = `<any/><any/>`
	for document, want := range map[string]string{
		`<other xmlns="urn:t"/>`:                                "element {urn:t}other: want {urn:t}alive or {urn:t}note or {urn:t}report",
		`<report xmlns="urn:t"/>`:                               "element {urn:t}report ends: want a",
		`<report xmlns="urn:t" a="blue"/>`:                      `a "blue": want one of red, light blue, green`,
		start + "<any/>" + end:                                  "element {urn:t}report ends: want {urn:t}any",
		start + "text" + end:                                    `text "text" in element {urn:t}report`,
		start + good + "<octet>256</octet>" + end:               `{urn:t}octet "256": want an integer from 0 to 255`,
		start + good + "<degree/>" + end:                        `{urn:t}degree "": want an integer from -180 to 180`,
		start + good + "<count>-1</count>" + end:                `{urn:t}count "-1": want an integer from 0`,
		start + good + "<good>yes</good>" + end:                 `{urn:t}good "yes": want true or false`,
		start + good + "<good>1</good><metre>1e3</metre>" + end: `{urn:t}metre "1e3": want a decimal`,
		start + good + "<good>1</good><metre>.</metre>" + end:   `{urn:t}metre ".": want a decimal`,
		start + good + "<good>1</good><word>x</word>" + end:     "{urn:t}word in element {urn:t}report: want {urn:t}metre or {urn:t}code or its end",
		start + "<any><b/></any>" + end:                         "b in element {urn:t}any: want text",
	} {
		if _, err := Encode(nil, []byte(document), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", document, err, want)
		}
	}
}

func TestStreamsThatAreNotOfTheSchemaAreRefused(t *testing.T) {
	o := parsed(t, everything)
	for want, data := range map[string][]byte{
		"another outermost element than {urn:t}alive or": {Header, 0xc0},
		"xsi:type in element {urn:t}note":                {Header, 0x60},
		"EXI stream ends before the document does":       {Header},
		"want an end after":                              {Header, 0x20, 0x00},
	} {
		if out, err := Decode(nil, data, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v, %s; want %s", data, err, out, want)
		}
	}
}

// FuzzDecodeInformed is FuzzDecode with a schema.
func FuzzDecodeInformed(f *testing.F) {
	o, random := parsed(f, everything), rand.New(rand.NewPCG(11, 12))
	for range 20 {
		f.Add(encoded(f, report(random), o))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if document, err := Decode(nil, data, o); err == nil {
			comesBack(t, string(document), o)
		}
	})
}

// FuzzParseSchema: whatever comes is read or refused.
func FuzzParseSchema(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte(xsdStart + restrictionOf("xs:string", `<xs:pattern value="[a-z]"/>`) + `</xs:schema>`))
	f.Fuzz(func(_ *testing.T, schema []byte) {
		_, _ = ParseSchema(schema)
	})
}
