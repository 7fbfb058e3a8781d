package exi

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exificientJars is the folder with EXIficient; the test is skipped without it.
func exificientJars(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		t.Skip("javac is not installed (Debian package openjdk-17-jdk-headless)")
	}
	out, err := exec.Command("../../hack/jars", "testdata/pom.xml").Output()
	if err != nil {
		t.Skipf("the jars of EXIficient cannot be fetched (hack/jars): %v", err)
	}
	return strings.TrimSpace(string(out))
}

// holdAgainstExificient fails unless EXIficient makes the same bytes of each document, reads ours, and we read its.
func holdAgainstExificient(t *testing.T, documents []string, schemaPath string, o Options) {
	t.Helper()
	jars, folder := exificientJars(t), t.TempDir()
	for i, document := range documents {
		write(t, folder, i, "xml", []byte(document))
		write(t, folder, i, "ours", encoded(t, document, o))
	}
	arguments := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", filepath.Join(jars, "lib", "*"), "testdata/Exificient.java", folder}
	if schemaPath != "" {
		arguments = append(arguments, schemaPath)
	}
	if out, err := exec.Command("java", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("EXIficient: %v\n%s", err, out)
	}
	for i, document := range documents {
		ours, theirs := encoded(t, document, o), read(t, folder, i, "theirs")
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%s\nours   %x\ntheirs %x", document, ours, theirs)
			continue
		}
		want := content(t, decoded(t, theirs, o))
		if diff := cmp.Diff(want, content(t, string(read(t, folder, i, "decoded")))); diff != "" {
			t.Errorf("%s\nis not what EXIficient reads:\n%s", document, diff)
		}
	}
}

func write(t *testing.T, folder string, i int, extension string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.%s", i, extension)), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, folder string, i int, extension string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("%d.%s", i, extension)))
	if err != nil {
		t.Fatal(err)
	}
	return data
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
