package client

import (
	"bytes"
	"encoding/xml"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"
)

// viaXML returns an attribute's value as another program's parser reads it from our output.
func viaXML(t *testing.T, name string) string {
	t.Helper()
	text, err := xml.Marshal(node{Node: name})
	if err != nil {
		t.Fatal(err)
	}
	var n node
	if err := xml.Unmarshal(text, &n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n.Node
}

func TestEveryTopicComesBackFromItsNode(t *testing.T) {
	t.Parallel()
	same := func(topic string) bool {
		name := nodeOf(topic)
		return utf8.ValidString(name) && topicOf(viaXML(t, name)) == topic && name != announcements
	}
	for _, topic := range []string{"/PRT/PRT-UNIT001/PRT-S003/location", "a", "/", "a//b", "100%", "%25", "%nodes", "%", "ä/ö €", "a\tb\n\r\x00", "\xff\xfe", "\ufffd\ufffe", "<&\"'>", " a "} {
		if !same(topic) {
			t.Errorf("topic %q is node %q, which is topic %q", topic, nodeOf(topic), topicOf(nodeOf(topic)))
		}
	}
	if err := quick.Check(func(topic string) bool { return same(topic) }, nil); err != nil {
		t.Error(err)
	}
	if err := quick.Check(func(topic []byte) bool { return same(string(topic)) }, nil); err != nil {
		t.Error(err)
	}
}

func TestOrdinaryTopicsAreTheNamesOfTheirNodes(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"/PRT/PRT-UNIT001/PRT-S003/location", "a b/ü"} {
		if nodeOf(topic) != topic {
			t.Errorf("topic %q is node %q", topic, nodeOf(topic))
		}
	}
	if topicOf("50%/100%x") != "50%/100%x" {
		t.Errorf("somebody else's node 50%%/100%%x is topic %q", topicOf("50%/100%x"))
	}
}

// notice returns the event that a server makes of a published item.
func notice(name string, r request) []byte {
	element, err := xml.Marshal(publish{Item: r.PubSub.Publish.Item})
	if err != nil {
		panic(err)
	}
	_, inner, _ := strings.Cut(string(element), "<item>")
	inner, _, _ = strings.Cut(inner, "</item>")
	var escaped bytes.Buffer
	_ = xml.EscapeText(&escaped, []byte(name))
	return []byte(`<message xmlns="jabber:client" type="headline"><event xmlns="http://jabber.org/protocol/pubsub#event"><items node="` +
		escaped.String() + `"><item id="1">` + inner + `</item></items></event></message>`)
}

func contents() map[string][]byte {
	random := make([]byte, 5000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.UintN(256))
	}
	return map[string][]byte{
		"empty": {}, "text": []byte("hello"), "spaces": []byte("  \n\t a  "), "markup": []byte(`<a b="c">&amp;]]></a>`), "quotes": []byte(`{"a": 'b'}`),
		"ampersands": bytes.Repeat([]byte("&"), 100), "carriage return": []byte("a\r\nb"), "control": {0, 1, 2}, "latin1": {0xe4, 0xf6}, "umlauts": []byte("äöü €😀"),
		"no character": []byte("a\uffffb"), "replacement": []byte("\ufffd"), "delete and C1": []byte("\x7f\u0085\u2028"), "random": random, "large text": bytes.Repeat([]byte("0123456789\n"), 30000),
	}
}

func TestEveryContentComesBackByteForByte(t *testing.T) {
	t.Parallel()
	same := func(content []byte) bool {
		var n notification
		if err := xml.Unmarshal(notice("t", publishRequest("t", content)), &n); err != nil {
			t.Log(err)
			return false
		}
		i := n.Events[0].Items[0].Items[0]
		return i.found && bytes.Equal(i.content, content)
	}
	for name, content := range contents() {
		if !same(content) {
			t.Errorf("%s: %.40q changed", name, content)
		}
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
	if err := quick.Check(func(content string) bool { return same([]byte(content)) }, nil); err != nil {
		t.Error(err)
	}
}

func TestTextIsSentAsTextUnlessBase64IsShorter(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"text": "", "quotes": "", "umlauts": "", "ampersands": base64Encoding, "carriage return": base64Encoding, "latin1": base64Encoding} {
		if p := payloadOf(contents()[name]); p.Encoding != want {
			t.Errorf("%s: encoding %q; want %q", name, p.Encoding, want)
		}
	}
}

func TestForeignPayloadsAreTheirXML(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ item, want string }{
		"Atom":              {`<entry xmlns="http://www.w3.org/2005/Atom"><title a="1">x &amp; y</title></entry>`, `<entry xmlns="http://www.w3.org/2005/Atom"><title xmlns="http://www.w3.org/2005/Atom" a="1">x &amp; y</title></entry>`},
		"the first of two":  {`<a xmlns="b">1</a><c/>`, `<a xmlns="b">1</a>`},
		"no base64":         {`<message xmlns="urn:vignette:payload" encoding="base64">?</message>`, `?`},
		"markup in ours":    {`<message xmlns="urn:vignette:payload">a<b>c</b>d</message>`, `acd`},
		"an other encoding": {`<message xmlns="urn:vignette:payload" encoding="x">eA==</message>`, `eA==`},
	} {
		text := `<message><event xmlns="http://jabber.org/protocol/pubsub#event"><items node="t"><item>` + c.item + `</item></items></event></message>`
		var n notification
		if err := xml.Unmarshal([]byte(text), &n); err != nil || string(n.Events[0].Items[0].Items[0].content) != c.want {
			t.Errorf("%s: %v, %q; want %q", name, err, n.Events[0].Items[0].Items[0].content, c.want)
		}
	}
}

func FuzzNotification(f *testing.F) {
	f.Add(notice("t", publishRequest("t", []byte("hello"))))
	f.Add(notice("t", publishRequest("t", []byte{0})))
	f.Add(notice(announcements, announceRequest("a/b")))
	f.Add([]byte(`<message><event xmlns="http://jabber.org/protocol/pubsub#event"><delete node="t"/><items node="t"><item/><retract id="1"/></items></event></message>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var n notification
		if xml.Unmarshal(text, &n) != nil {
			return
		}
		for _, event := range n.Events {
			for _, items := range event.Items {
				for _, i := range items.Items {
					if !i.found && len(i.content) > 0 || len(i.content) > 20*len(text)+100 {
						t.Errorf("%d bytes of content from %d", len(i.content), len(text))
					}
				}
			}
		}
	})
}
