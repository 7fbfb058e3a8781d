package encoding

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/exi/exificient"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/traffic/payload/nffi"
	"vignette.dev/vignette/internal/traffic/payload/operational"
	"vignette.dev/vignette/internal/traffic/payload/track"
)

// allSchemas brings the schemas together, as EXIficient reads one file. Its own namespace has nothing in it.
const allSchemas = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:all">
  <xs:import schemaLocation="military.xsd"/>
  <xs:import namespace="urn:vignette:operational" schemaLocation="operational.xsd"/>
  <xs:import namespace="urn:nato:fft:protocols:nffi13" schemaLocation="nffi.xsd"/>
</xs:schema>`

func writeSchemas(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string][]byte{"military.xsd": military.Schema, "operational.xsd": operational.Schema, "nffi.xsd": nffi.Schema, "all.xsd": []byte(allSchemas)} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "all.xsd")
}

// random returns a message of a model with content that varies.
func random(r *rand.Rand, model string) Message {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	unit := func() string { return pick("a", "b", "hq", "Ü&<", "PRT-UNIT00") + fmt.Sprint(r.IntN(20)) }
	m := Message{ID: fmt.Sprintf("%s/chat_%d", unit(), r.IntN(1_000_000)), Made: time.UnixMilli(r.Int64N(4_000_000_000_000))}
	m.Text = strings.Repeat(pick("", " ", "in position, ", "Müller & Söhne <x> \"y\"\n", "\U0001F6A9", "a1"), r.IntN(8))
	switch model {
	case Military:
		m.From, m.To, m.Type = unit(), []string{unit()}, pick("TEXT", "", "ORDER", "a1")
	case Operational:
		m.From, m.Precedence, m.Classification = unit(), pick("ROUTINE", "PRIORITY", "IMMEDIATE", "FLASH"), pick("UNCLASSIFIED", "RESTRICTED", "CONFIDENTIAL", "SECRET")
		for range 1 + r.IntN(4) {
			m.To = append(m.To, unit())
		}
	default:
		m.Country, m.Unit, m.Entity = pick("PRT", "A&B", "NOR"), unit(), unit()
		m.Position = track.Position{LatitudeDegrees: r.Float64()*180 - 90, LongitudeDegrees: r.Float64()*360 - 180, BearingDegrees: r.Float64() * 360,
			SpeedKilometresPerHour: r.Float64() * 90, AltitudeMetres: r.Float64()*900 - 100}
	}
	return m
}

func TestEXIOfEveryModelIsThatOfExificient(t *testing.T) {
	const each = 200
	for _, encoding := range []string{EXI, EXISchemaless} {
		t.Run(encoding, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var documents, ours [][]byte
			var readers []*Codec
			for _, model := range []string{Military, Operational, NFFI} {
				plain, coded := codec(t, model, XML), codec(t, model, encoding)
				for range each {
					m := random(r, model)
					documents, ours, readers = append(documents, encoded(t, plain, m)), append(ours, encoded(t, coded, m)), append(readers, plain)
				}
			}
			path := ""
			if encoding == EXI {
				path = writeSchemas(t)
			}
			theirs, read := exificient.Run(t, documents, ours, path)
			for i := range documents {
				if !bytes.Equal(ours[i], theirs[i]) {
					t.Errorf("%s\nours   %x\ntheirs %x", documents[i], ours[i], theirs[i])
				}
				sameMessage(t, readers[i], documents[i], read[i])
			}
		})
	}
}

func codec(t testing.TB, model, encoding string) *Codec {
	t.Helper()
	c, err := New(model, encoding, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sameMessage(t *testing.T, c *Codec, want, got []byte) {
	t.Helper()
	wanted, err := c.Decode(want)
	if err != nil {
		t.Fatal(err)
	}
	message, err := c.Decode(got)
	if err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if diff := cmp.Diff(wanted, message); diff != "" {
		t.Errorf("%s came back from EXIficient as %s:\n%s", want, got, diff)
	}
}

func TestNoStreamIsTakenForAnotherMessage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		for _, model := range Models() {
			m := random(r, model)
			for _, encoding := range Encodings(model) {
				content := encoded(t, codec(t, model, encoding), m)
				if id, at, ok := Identify(content); !ok || id != m.ID || !at.Equal(m.Made) {
					t.Fatalf("%s %s: %q at %v, %v; want %q at %v in %x", model, encoding, id, at, ok, m.ID, m.Made, content)
				}
			}
		}
	}
}
