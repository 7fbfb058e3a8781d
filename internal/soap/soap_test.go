package soap

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var versions = []Version{SOAP11, SOAP12}

func TestEnvelopesAreReadAsTheyWereWritten(t *testing.T) {
	want := Header{Action: "urn:a<b>", MessageID: NewMessageID(), RelatesTo: "urn:r", To: EPR{Address: "http://nor:8080/?a&b"}, ReplyTo: None}
	for _, v := range versions {
		m, err := ParseMessage(Envelope(v, want, ` xmlns:x="urn:x"`, `<x:track>1</x:track>`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, m.Header); diff != "" || m.SOAP != v || m.Fault != nil {
			t.Errorf("SOAP %d: %+v\n%s", v, m, diff)
		}
		if got := string(m.Body.Standalone()); got != `<x:track xmlns:x="urn:x">1</x:track>` {
			t.Errorf("the body has %s", got)
		}
	}
}

func TestFaultsAreReadInBothVersions(t *testing.T) {
	for _, v := range versions {
		for _, want := range []*Fault{{Code: Sender, Reason: "no <track>"}, {Code: Receiver, Reason: "full"}, {Code: MustUnderstand, Reason: "what"}} {
			for _, opaque := range [][]xml.Name{nil, {{Space: v.Namespace(), Local: "Body"}}} {
				m, err := ParseMessage(FaultEnvelope(v, Header{Action: ActionFault}, "", want, ` xmlns:d="urn:d"><d:why>7</d:why>`), opaque...)
				if err != nil {
					t.Fatal(err)
				}
				if m.Fault == nil || m.Fault.Code != want.Code || m.Fault.Reason != want.Reason || !m.Fault.Detail.Is("urn:d", "why") {
					t.Errorf("SOAP %d: %+v; want %+v", v, m.Fault, want)
				}
			}
		}
	}
}

func TestAnOpaqueElementHasAnyNumberOfElements(t *testing.T) {
	body := "<a>" + strings.Repeat("<b/>", 2*maxElements) + "</a>"
	m, err := ParseMessage(Envelope(SOAP12, Header{}, "", body), xml.Name{Space: NSSOAP12, Local: "Body"})
	if err != nil || string(m.Body.Standalone()) != body || len(m.Body.Children) > 0 {
		t.Errorf("%v; want the body as it is, and nothing of it kept", err)
	}
}

func TestARefusalRelatesToItsMessageWhereverTheRefusedHeaderStands(t *testing.T) {
	want := Header{Action: "urn:a", MessageID: "urn:m", ReplyTo: None}
	for _, v := range versions {
		unknown := `<soap:Header><x:a xmlns:x="urn:x" soap:mustUnderstand="1"/>`
		envelope := bytes.Replace(Envelope(v, want, "", ""), []byte("<soap:Header>"), []byte(unknown), 1)
		m, err := ParseMessage(envelope)
		if fault, ok := errors.AsType[*Fault](err); !ok || fault.Code != MustUnderstand {
			t.Fatalf("SOAP %d: %v; want a header that is not understood", v, err)
		}
		if diff := cmp.Diff(want, m.Header); diff != "" {
			t.Errorf("SOAP %d: the other headers are not known:\n%s", v, diff)
		}
	}
}

func TestContentInAnEnvelopeGrowsByAThirdAtMost(t *testing.T) {
	for name, content := range map[string]string{"text with a few signs": strings.Repeat("position & time, ", 100), "signs alone": strings.Repeat("<&>", 1000), "bytes": strings.Repeat("\x00", 3000)} {
		element := Embed([]byte(content))
		if most := len(content)*4/3 + 100; len(element) > most {
			t.Errorf("%s: %d bytes take %d; want %d at most", name, len(content), len(element), most)
		}
		parsed, err := Extract(element)
		if err != nil || string(parsed) != content {
			t.Errorf("%s: came back as %.40q, %v", name, parsed, err)
		}
	}
}

func TestWrappedContentKeepsItsAttributes(t *testing.T) {
	for _, content := range [][]byte{[]byte(`{"a": "<&>"}`), {0, 1, 0xff}, []byte("<a/>"), {}, []byte(" ")} {
		element := Wrap(content, "contentType", `a/b; c="d"`)
		got, wrapper, err := Unwrap(element)
		if err != nil || !bytes.Equal(got, content) || wrapper.Attribute("contentType") != `a/b; c="d"` {
			t.Errorf("%q became %s, and %q (%v)", content, element, got, err)
		}
	}
	if got, wrapper, err := Unwrap([]byte("<a/>")); err != nil || wrapper != nil || string(got) != "<a/>" {
		t.Errorf("another element: %s, %v, %v; want itself", got, wrapper, err)
	}
}

func TestAnElementWithAllItsNamespacesIsPassedOn(t *testing.T) {
	document := fmt.Sprintf(`<s:Envelope xmlns:s="%s"%s><s:Body><a%s>p0:a p99:a</a></s:Body></s:Envelope>`, NSSOAP12, prefixes(100), attributes(64))
	for range 2 {
		m, err := ParseMessage([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		document = string(Envelope(SOAP12, Header{}, "", string(m.Body.Standalone())))
	}
	if !strings.Contains(document, `xmlns:p99="urn:p"`) {
		t.Errorf("passed on: %.300s", document)
	}
}

func TestDocumentsThatAreNoneAreRefused(t *testing.T) {
	envelope := func(inner string) string {
		return `<s:Envelope xmlns:s="` + NSSOAP11 + `">` + inner + `</s:Envelope>`
	}
	for name, document := range map[string]string{
		"empty":                  "",
		"text":                   "hello",
		"an entity bomb":         `<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]>` + envelope("<s:Body>&c;</s:Body>"),
		"an unknown entity":      envelope("<s:Body>&c;</s:Body>"),
		"a processing":           envelope("<?php a?><s:Body/>"),
		"an undeclared prefix":   envelope("<s:Body><x:a/></s:Body>"),
		"a wrong end":            envelope("<s:Body></s:Envelope>"),
		"an attribute twice":     envelope(`<s:Body a="1" a="1"/>`),
		"attributes of one name": envelope(`<s:Body xmlns:p="urn:p" xmlns:q="urn:p" p:a="1" q:a="1"/>`),
		"two bodies of elements": envelope(`<s:Body><a/><b/></s:Body>`),
		"no body":                envelope(``),
		"deep":                   envelope("<s:Body>" + strings.Repeat("<a>", 100) + strings.Repeat("</a>", 100) + "</s:Body>"),
		"many elements":          envelope("<s:Body><a>" + strings.Repeat("<b/>", maxElements) + "</a></s:Body>"),
		"many attributes":        envelope("<s:Body" + attributes(65) + "/>"),
		"many declarations":      envelope("<s:Body" + prefixes(200) + "/>"),
		"another root":           "<a/>",
		"another encoding":       "<?xml version='1.0' encoding='ISO-8859-1'?>" + envelope("<s:Body>\xe9</s:Body>"),
		"what must be known":     envelope(`<s:Header><x:a xmlns:x="urn:x" s:mustUnderstand="1"/></s:Header><s:Body/>`),
		"prefix undone":          envelope(`<s:Body xmlns:s=""/>`),
	} {
		if m, err := ParseMessage([]byte(document)); err == nil {
			t.Errorf("%s: read as %+v", name, m)
		}
	}
}

func attributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ` a%d=""`, i)
	}
	return b.String()
}

func prefixes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ` xmlns:p%d="urn:p"`, i)
	}
	return b.String()
}

func FuzzMessage(f *testing.F) {
	for _, v := range versions {
		f.Add(Envelope(v, Header{Action: "urn:a", MessageID: "urn:m", To: EPR{Address: "urn:t"}}, ` xmlns:x="urn:x"`, `<x:a><x:b c="d"/></x:a>`))
		f.Add(FaultEnvelope(v, Header{}, "", &Fault{Code: Sender, Reason: "why"}, "><a/>"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMessage(data, xml.Name{Space: NSSOAP12, Local: "Body"})
		if err != nil || m.Body == nil {
			return
		}
		// Content passed on in another envelope stays the same.
		again, err := ParseMessage(Envelope(m.SOAP, m.Header, "", string(m.Body.Standalone())))
		if err != nil {
			// With its children kept, there may be too many.
			again, err = ParseMessage(Envelope(SOAP12, m.Header, "", string(m.Body.Standalone())), xml.Name{Space: NSSOAP12, Local: "Body"})
		}
		if err != nil {
			t.Fatalf("passed on: %v\n%s", err, data)
		}
		if again.Body == nil || again.Body.Name != m.Body.Name {
			t.Fatalf("passed on: %+v\n%s", again.Body, data)
		}
	})
}
