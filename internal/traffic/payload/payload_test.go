package payload_test

import (
	stdbytes "bytes"
	"compress/flate"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/payload/track"
)

var (
	prt = payload.Sender{Country: "PRT", Unit: "PRT-UNIT001", Entity: "PRT-S003"}
	at  = time.UnixMilli(1588759108433)
)

func maker(t testing.TB, kind string, s payload.Sender, seed int64) payload.Maker {
	t.Helper()
	m, err := payload.New(kind, s, seed)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEveryKindComesBackWithItsIdAndTime(t *testing.T) {
	for _, kind := range []string{"geojson", "geojson-ids", "nffi", "nffi-long", "nffi:20", "gps", "image:1024", "image:200000", "bytes:32", "bytes:100", "bytes:100000", "file:" + someFile(t)} {
		m := maker(t, kind, prt, 7)
		for _, id := range []string{"PRT-S003_1", "PRT-S003_28", "PRT-S003_999999"} {
			content := m.Append(nil, id, at)
			got, made := payload.Parse(content)
			if got != id {
				t.Errorf("%s: id %q; want %q", kind, got, id)
			}
			if kind != "bytes:32" && !made.Equal(at) {
				t.Errorf("%s: made at %v; want %v", kind, made, at)
			}
		}
	}
}

func TestAKindReportsAPositionIfItsMakerCanFollowATrack(t *testing.T) {
	for _, kind := range []string{"geojson", "geojson-ids", "nffi", "nffi-long", "nffi:20", "gps", "image:1024", "bytes:100", "file:" + someFile(t)} {
		_, follows := maker(t, kind, prt, 7).(interface{ Follow(track.Track) })
		if payload.ReportsPosition(kind) != follows {
			t.Errorf("%s: reports a position %v, and its maker follows a track %v; want the same", kind, !follows, follows)
		}
	}
}

func TestEveryEncodingOfAKindComesBackWithItsIdAndTime(t *testing.T) {
	for _, kind := range []string{"geojson", "nffi"} {
		plain := len(maker(t, kind, prt, 7).Append(nil, "PRT-S003_1", at))
		for _, name := range encoding.Encodings(kind) {
			for _, compression := range encoding.Compressions() {
				m, err := payload.NewEncoded(kind, name, compression, prt, 7)
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range []string{"PRT-S003_1", "PRT-S003_999999"} {
					content := m.Append(nil, id, at)
					got, made := payload.Parse(content)
					if own := name == encoding.Encodings(kind)[0] && compression == encoding.None; got != id || !made.Equal(at) || !own && len(content) >= plain {
						t.Errorf("%s in %s, %s: id %q at %v in %d bytes; want %q at %v in less than %d", kind, name, compression, got, made, len(content), id, at, plain)
					}
				}
			}
		}
	}
}

func TestEveryEncodingCarriesAnyName(t *testing.T) {
	for _, name := range []string{"", "A&B<>", "\"'", "\x01\xff", "Ünit 日本", "\t\r\n", "\U0001F6A9", strings.Repeat("x", 5000)} {
		for _, kind := range []string{"geojson", "nffi"} {
			for _, encodingName := range encoding.Encodings(kind) {
				m, err := payload.NewEncoded(kind, encodingName, encoding.Gzip, payload.Sender{Country: name, Unit: name, Entity: name}, 7)
				if err != nil {
					t.Fatal(err)
				}
				if id, made := payload.Parse(m.Append(nil, name+"_1", at)); !strings.HasSuffix(id, "_1") || !made.Equal(at) {
					t.Errorf("%s in %s of %q: id %q at %v", kind, encodingName, name, id, made)
				}
			}
		}
	}
}

func TestAnEncodingThatAKindCannotHaveIsRefused(t *testing.T) {
	for _, c := range [][3]string{{"bytes:100", "cbor", ""}, {"geojson", "xml", ""}, {"nffi", "json", ""}, {"nffi", "", "zip"}, {"gps", "", ""}} {
		if _, err := payload.NewEncoded(c[0], c[1], c[2], prt, 7); err == nil {
			t.Errorf("%v: want an error", c)
		}
	}
}

func TestGeoJSONHasThePublishedForm(t *testing.T) {
	content := string(maker(t, "geojson", prt, 7).Append(nil, "PRT-S003_28", at))
	form := regexp.MustCompile(`^\{"type": "Feature", "geometry": \{"type": "Point", "coordinates": \[38\.\d{1,6}, -9\.\d{1,6}, 0\]\}, ` +
		`"properties": \{"country": "PRT", "unit": "PRT-UNIT001", "node_id": "PRT-S003", "msg_id": "PRT-S003_28", "timestamp": 1588759108433\}\}$`)
	if !form.MatchString(content) {
		t.Errorf("content %s\nwant   %s", content, form)
	}
	if !json.Valid([]byte(content)) {
		t.Error("content is not JSON")
	}
}

func TestGeoJSONOfE3HasItsNamesOfProperties(t *testing.T) {
	own, ids := maker(t, "geojson", prt, 7).Append(nil, "PRT-S003_28", at), maker(t, "geojson-ids", prt, 7).Append(nil, "PRT-S003_28", at)
	want := strings.NewReplacer(`"country"`, `"country-Id"`, `"unit"`, `"unit-Id"`, `"node_id"`, `"entity-Id"`).Replace(string(own))
	if string(ids) != want {
		t.Errorf("content %s\nwant   %s", ids, want)
	}
}

func TestGeoJSONHasTheLengthOfTheExample(t *testing.T) {
	const example = 224
	least, most := 1000, 0
	m := maker(t, "geojson", prt, 7)
	for i := range 1000 {
		n := len(m.Append(nil, fmt.Sprintf("PRT-S003_%d", 1+i%600), at.Add(time.Duration(i)*2*time.Second)))
		least, most = min(least, n), max(most, n)
	}
	if least < example-6 || most > example+3 {
		t.Errorf("%d to %d characters; want those of the example, %d, less six digits of coordinates or one of three more", least, most, example)
	}
}

func TestGeoJSONStaysWithin255Characters(t *testing.T) {
	m := maker(t, "geojson", payload.Sender{Country: "PRT", Unit: "PRT-UNIT001", Entity: "PRT-S003"}, 7)
	for i := range 10000 {
		if n := len(m.Append(nil, fmt.Sprintf("PRT-S003_%d", 999999-i), at.Add(time.Duration(i)*10*time.Second))); n > 255 {
			t.Fatalf("message %d has %d characters; want at most 255", i, n)
		}
	}
}

func TestNFFIHasThePublishedSizeForAnyId(t *testing.T) {
	for _, s := range []payload.Sender{prt, {Country: "NOR", Unit: "NOR-UNIT012", Entity: "NOR-S123"}, {Country: "V", Unit: "V1", Entity: "V-1"},
		{Country: "MECHANISEDBATTALION", Unit: "MECHANISEDBATTALION-UNIT001", Entity: "MECHANISEDBATTALION-S001"}} {
		m, long := maker(t, "nffi", s, -7), maker(t, "nffi-long", s, -7)
		for number := 1; number <= 999999; number = number*10 + 9 {
			for range 50 {
				id := fmt.Sprintf("%s_%d", s.Entity, number)
				if n := len(m.Append(nil, id, at)); n < 880 || n > 894 {
					t.Fatalf("message %d of %s has %d bytes; want 880 to 894", number, s.Entity, n)
				}
				if n := len(long.Append(nil, id, at)); n != 909 {
					t.Fatalf("message %d of %s has %d bytes in the long form; want 909", number, s.Entity, n)
				}
			}
		}
	}
}

func TestNFFIIsWellFormedInTheSchemasOrder(t *testing.T) {
	content := maker(t, "nffi", payload.Sender{Country: "A&B", Unit: "<unit>", Entity: "e"}, 7).Append(nil, "a&b_1", at)
	var order []string
	decoder := xml.NewDecoder(stdbytes.NewReader(content))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, content)
		}
		if start, ok := token.(xml.StartElement); ok {
			order = append(order, start.Name.Local)
			if start.Name.Space != "urn:nato:fft:protocols:nffi13" {
				t.Errorf("element %s is in namespace %q", start.Name.Local, start.Name.Space)
			}
		}
	}
	want := "NFFIMessage track positionalData trackSource sourceSystem country system transponderId dateTime coordinates latitude longitude " +
		"altitude bearing speed identificationData unitSymbol unitShortName operStatusData statusCode deviceSpecificData additionalId " +
		"specialUserDefined remarks"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("elements %s\nwant     %s", got, want)
	}
	if id, _ := payload.Parse(content); id != "a&b_1" {
		t.Errorf("id %q; want a&b_1", id)
	}
}

func TestBytesHaveExactlyTheirSizeAndDoNotRepeat(t *testing.T) {
	m := maker(t, "bytes:64", prt, 7)
	first, second := m.Append(nil, "PRT-S003_1", at), m.Append(nil, "PRT-S003_2", at)
	if len(first) != 64 || len(second) != 64 {
		t.Fatalf("sizes %d, %d; want 64", len(first), len(second))
	}
	if stdbytes.Equal(first[30:], second[30:]) {
		t.Error("two messages have the same random bytes")
	}
}

func TestTheSameSeedGivesTheSameContentAndAnotherDoesNot(t *testing.T) {
	for _, kind := range []string{"geojson", "nffi", "gps", "image:2000", "bytes:100"} {
		a := maker(t, kind, prt, 7).Append(nil, "PRT-S003_1", at)
		b := maker(t, kind, prt, 7).Append(nil, "PRT-S003_1", at)
		c := maker(t, kind, prt, 8).Append(nil, "PRT-S003_1", at)
		if !stdbytes.Equal(a, b) || stdbytes.Equal(a, c) {
			t.Errorf("%s: same seed equal %v, other seed equal %v; want true, false", kind, stdbytes.Equal(a, b), stdbytes.Equal(a, c))
		}
	}
}

func TestKindsThatMakeNoSenseAreRefusedByName(t *testing.T) {
	for _, kind := range []string{"", "GeoJSON", "bytes:", "bytes:-1", "bytes:31", "bytes:x", "bytes:999999999", "gps:1", "nffi:", "nffi:0", "nffi:1001", "image:", "image:1023", "image:16777217",
		"file:", "file:/no/such/file"} {
		if _, err := payload.New(kind, prt, 1); err == nil || !strings.Contains(err.Error(), kind) {
			t.Errorf("kind %q: %v; want an error that names it", kind, err)
		}
	}
	if _, err := payload.New("bytes:32", payload.Sender{Entity: strings.Repeat("x", 30)}, 1); err == nil {
		t.Error("bytes:32 with an entity of 30 characters: want an error, as ids do not fit")
	}
}

func TestForeignMessagesGetAnIdFromTheirContent(t *testing.T) {
	for _, content := range []string{"", "21.5", `{"temperature": 3}`, "<NFFIMessage/>", "not an id\nx", "{", "<additionalId>", `\t:PRT-S003_1,c:1*00\`,
		"\x89PNG\r\n\x1a\n"} {
		id, made := payload.Parse([]byte(content))
		again, _ := payload.Parse([]byte(content))
		other, _ := payload.Parse([]byte(content + "."))
		if !strings.HasPrefix(id, payload.Unknown) || id != again || id == other || !made.IsZero() {
			t.Errorf("%q: id %q, again %q, other %q; want unknown:HASH, the same again, another for another", content, id, again, other)
		}
	}
}

// someFile whose content is a message of another kind.
func someFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report")
	if err := os.WriteFile(path, []byte(`{"properties": {"msg_id": "other_1"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFileFollowsItsLine(t *testing.T) {
	got := string(maker(t, "file:"+someFile(t), prt, 1).Append([]byte("before "), "PRT-S003_1", at))
	if want := "before PRT-S003_1 1588759108433\n" + `{"properties": {"msg_id": "other_1"}}` + "\n"; got != want {
		t.Errorf("content %q; want %q", got, want)
	}
}

func TestAPositionRecordIsAsDocumented(t *testing.T) {
	m := maker(t, "gps", prt, 7)
	form := regexp.MustCompile(`^\\t:PRT-S003_28,c:1588759108433\*([0-9A-F]{2})\\\$(GPRMC,095828\.433,A,38[0-5]\d\.\d{4},N,009[0-5]\d\.\d{4},W,\d\d\.\d\d,\d{3}\.\d,060520,,,A)\*([0-9A-F]{2})\r\n$`)
	for range 100 {
		content := string(m.Append(nil, "PRT-S003_28", at))
		if !form.MatchString(content) || len(content) > 120 {
			t.Fatalf("content %q has %d bytes; want up to 120, as %s", content, len(content), form)
		}
	}
}

func TestImagesAreWholeOfExactSizeAndCannotBeCompressed(t *testing.T) {
	sizes := []int{1024, 1025, 1100, 65535, 66600, 131600}
	for n := 65500; n < 65800; n += 37 { // where a second block begins
		sizes = append(sizes, n)
	}
	for _, size := range sizes {
		content := maker(t, fmt.Sprintf("image:%d", size), prt, 7).Append(nil, "PRT-S003_28", at)
		decoded, err := png.Decode(stdbytes.NewReader(content))
		if len(content) != size || err != nil {
			t.Fatalf("image:%d has %d bytes: %v; want a whole image of that size", size, len(content), err)
		}
		var packed stdbytes.Buffer
		w, _ := flate.NewWriter(&packed, flate.DefaultCompression)
		_, _ = w.Write(content)
		w.Close()
		b := decoded.Bounds()
		if packed.Len() < size*9/10 || b.Dx()*b.Dy() < size*8/10-500 || b.Dx() > 2*b.Dy() || b.Dy() > 2*b.Dx() {
			t.Errorf("image:%d is %v and %d bytes compressed; want most of its bytes in pixels, and 90 %% of the size", size, b, packed.Len())
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, kind := range []string{"geojson", "nffi", "nffi:20", "gps", "image:1024", "bytes:64"} {
		f.Add(maker(f, kind, prt, 1).Append(nil, "PRT-S003_1", at))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if id, _ := payload.Parse(content); id == "" {
			t.Errorf("no id for %q", content)
		}
	})
}
