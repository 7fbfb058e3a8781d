package frame

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"vignette.dev/vignette/internal/proxy/message"
	"vignette.dev/vignette/internal/proxyconfig"
)

var compressions = []string{proxyconfig.CompressionNone, proxyconfig.CompressionGzip, proxyconfig.CompressionZstd}

const limit = 1 << 20

func content(t testing.TB, h message.Head, body string, trailer ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := WriteContent(&out, h, iotest.HalfReader(strings.NewReader(body)), func() []string { return trailer })
	if err != nil || n != int64(len(body)) {
		t.Fatal(n, err)
	}
	return out.Bytes()
}

func TestContentIsReadAsItWasWritten(t *testing.T) {
	h := message.Head{Start: "POST http://far/ HTTP/1.1", Fields: []string{"Host: far", "b:\t2 "}}
	for _, size := range []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 5 * pieceBytes} {
		body := strings.Repeat("x", size)
		c, err := ReadContent(iotest.OneByteReader(bytes.NewReader(content(t, h, body, "Sum: 1"))))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		if err != nil || string(got) != body || !slices.Equal(c.Head.Fields, h.Fields) || c.Head.Start != h.Start || !slices.Equal(c.Trailer, []string{"Sum: 1"}) {
			t.Errorf("%d bytes: %d bytes, %v, %+v, trailer %q", size, len(got), err, c.Head, c.Trailer)
		}
	}
}

func TestABodyWhoseSenderIsLostIsNoContent(t *testing.T) {
	for _, size := range []int{0, 5, pieceBytes, pieceBytes + 5} {
		lost := io.MultiReader(strings.NewReader(strings.Repeat("x", size)), iotest.ErrReader(io.ErrUnexpectedEOF))
		if _, err := WriteContent(io.Discard, message.Head{Start: "x"}, lost, func() []string { return nil }); err == nil {
			t.Errorf("a connection lost after %d bytes gave content", size)
		}
	}
}

func same(a, b Frame) bool {
	return a.Kind == b.Kind && a.ID == b.ID && a.Deadline.Equal(b.Deadline) && bytes.Equal(a.Content, b.Content) && slices.Equal(a.Acknowledged, b.Acknowledged) && a.Reason == b.Reason && a.Text == b.Text
}

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	random := make([]byte, 3000)
	for i := range random {
		random[i] = byte(rand.UintN(256))
	}
	id := ID{1, 2, 3}
	for _, f := range []Frame{
		{Kind: Request, ID: id, Deadline: time.UnixMilli(1234567890123), Content: []byte(strings.Repeat("position ", 500))},
		{Kind: Request, ID: id, Deadline: time.UnixMilli(1), Content: random}, {Kind: Query, ID: id, Deadline: time.UnixMilli(2), Acknowledged: make([]ID, MaxAcknowledged)},
		{Kind: Request, ID: id, Deadline: time.UnixMilli(3), Acknowledged: []ID{{7}}},
		{Kind: Response, ID: id, Content: []byte("x")}, {Kind: Failure, ID: id, Reason: "timeout", Content: []byte(strings.Repeat("y", 100))},
		{Kind: Unknown, ID: id}, {Kind: Busy, ID: id, Text: "the disk is full"},
	} {
		for _, compression := range compressions {
			b := f.Append(nil, compression)
			got, err := Parse(b, limit)
			if err != nil || !same(got, f) {
				t.Errorf("%s: %.300v, %v; want %.300v", compression, got, err, f)
			}
			if overhead := len(b) - len(f.Content); overhead > 40 && f.Content != nil {
				t.Errorf("%s: %d bytes of %d bytes of content", compression, len(b), len(f.Content))
			}
		}
	}
}

func TestRepeatedTextIsCompressed(t *testing.T) {
	for _, compression := range compressions[1:] {
		b := Frame{Kind: Response, Content: []byte(strings.Repeat("position ", 500))}.Append(nil, compression)
		if len(b) > 200 {
			t.Errorf("%s: %d bytes; want fewer than 200", compression, len(b))
		}
	}
}

func TestALittleFrameCannotFillTheMemory(t *testing.T) {
	for _, compression := range compressions {
		b := Frame{Kind: Response, Content: make([]byte, 2*limit)}.Append(nil, compression)
		if _, err := Parse(b, limit); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
			t.Errorf("%s: %v; want a refusal that names the limit", compression, err)
		}
	}
}

// FuzzFrame gives arbitrary bytes for a frame of the other proxy. An accepted frame must be the same after it was written and read again.
func FuzzFrame(f *testing.F) {
	whole := content(f, message.Head{Start: "GET http://far/ HTTP/1.1", Fields: []string{"Host: far"}}, "body", "T: 1")
	for _, compression := range compressions {
		for _, kind := range []Kind{Request, Query, Response, Failure, Unknown, Busy} {
			b := Frame{Kind: kind, Deadline: time.UnixMilli(5), Acknowledged: []ID{{1}, {2}}, Content: append(whole, bytes.Repeat([]byte{'x'}, 100)...), Reason: "reset", Text: "full"}.Append(nil, compression)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 16
		first, err := Parse(b, limit)
		if err != nil {
			return
		}
		for _, compression := range compressions {
			again := first.Append(nil, compression)
			second, err := Parse(again, limit)
			if err != nil || !same(second, first) {
				t.Fatalf("%.300v, %v; want %.300v", second, err, first)
			}
		}
	})
}

// FuzzContent gives arbitrary bytes for the content of a frame.
func FuzzContent(f *testing.F) {
	f.Add(content(f, message.Head{Start: "GET http://far/ HTTP/1.1", Fields: []string{"Host: far"}}, "body", "T: 1"))
	f.Add(content(f, message.Head{Start: "HTTP/1.1 200 OK"}, strings.Repeat("x", pieceBytes+1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ReadContent(bytes.NewReader(b))
		if err != nil {
			return
		}
		body, err := io.ReadAll(c)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := WriteContent(&out, c.Head, bytes.NewReader(body), func() []string { return c.Trailer }); err != nil {
			t.Fatal(err)
		}
		again, err := ReadContent(&out)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(again); err != nil || !bytes.Equal(got, body) || again.Head.Start != c.Head.Start || !slices.Equal(again.Head.Fields, c.Head.Fields) ||
			!slices.Equal(again.Trailer, c.Trailer) {
			t.Fatalf("%+v with a body of %d bytes, %v; want %+v with %d", again.Head, len(got), err, c.Head, len(body))
		}
	})
}
