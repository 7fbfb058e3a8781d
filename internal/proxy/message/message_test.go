package message

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func head(t *testing.T, text string) Head {
	t.Helper()
	h, err := ReadHead(bufio.NewReader(strings.NewReader(text)), 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAHeadIsWrittenAsItWasRead(t *testing.T) {
	const text = "POST http://far/x HTTP/1.1\r\nhOsT: far\r\nb:  2 \r\nA:1\r\na: \xff,\t\"\r\nX-Empty:\r\n\r\n"
	if got := string(head(t, "\r\n"+text).Append(nil)); got != text {
		t.Errorf("%q; want %q", got, text)
	}
}

func TestOnlyFieldsOfOneConnectionAreLeftOut(t *testing.T) {
	h := head(t, "GET http://far/ HTTP/1.1\r\nHost: far\r\nCONNECTION: close, X-Mine, Host\r\nx-mine: 1\r\nKeep-Alive: 5\r\nB: 1\r\nTE: trailers\r\na: 2\r\n"+
		"Proxy-Connection: keep-alive\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\nProxy-Authorization: Basic x\r\n\r\n").EndToEnd()
	if want := []string{"Host: far", "B: 1", "a: 2", "Transfer-Encoding: chunked"}; !slices.Equal(h.Fields, want) {
		t.Errorf("%q; want %q", h.Fields, want)
	}
}

func TestHeadsThatAreNoHTTPAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a bare line feed":         "GET / HTTP/1.1\nHost: a\r\n\r\n",
		"a folded field":           "GET / HTTP/1.1\r\nA: 1\r\n 2\r\n\r\n",
		"a space before the colon": "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
		"no colon":                 "GET / HTTP/1.1\r\nHost\r\n\r\n",
		"a control character":      "GET / HTTP/1.1\r\nA: \x01\r\n\r\n",
		"a carriage return inside": "GET / HTTP/1.1\r\nA: 1\rB: 2\r\n\r\n",
		"an endless line":          strings.Repeat("x", 1<<17),
	} {
		_, err := ReadHead(bufio.NewReader(strings.NewReader(text)), 1<<16)
		if e := new(Error); !errors.As(err, &e) {
			t.Errorf("%s: %v; want a refusal", name, err)
		}
	}
	if _, err := ReadHead(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\nA: 1\r\n")), 1<<16); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v; want to hear that the header ends too early", err)
	}
}

func TestTargetsAreSplitForTheService(t *testing.T) {
	for start, want := range map[string]Request{
		"GET http://far/a?b=c HTTP/1.1":        {Method: "GET", Authority: "far:80", Host: "far", Target: "/a?b=c", Minor: 1},
		"GET HTTP://far:8080 HTTP/1.0":         {Method: "GET", Authority: "far:8080", Host: "far:8080", Target: "/"},
		"GET http://[::1]:81?x HTTP/1.1":       {Method: "GET", Authority: "[::1]:81", Host: "[::1]:81", Target: "/?x", Minor: 1},
		"OPTIONS http://[::1] HTTP/1.1":        {Method: "OPTIONS", Authority: "[::1]:80", Host: "[::1]", Target: "*", Minor: 1},
		"PURGE http://far:/%2e%2E//x HTTP/1.1": {Method: "PURGE", Authority: "far:80", Host: "far:", Target: "/%2e%2E//x", Minor: 1},
	} {
		if got, err := ParseRequest(start); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", start, got, err, want)
		}
	}
	for start, status := range map[string]int{
		"CONNECT far:443 HTTP/1.1": 501, "GET / HTTP/1.1": 400, "GET https://far/ HTTP/1.1": 400, "GET http:///x HTTP/1.1": 400,
		"GET http://far:0/ HTTP/1.1": 400, "GET http://far:99999/ HTTP/1.1": 400, "GET http://a@far/ HTTP/1.1": 400, "GET http://far/#x HTTP/1.1": 400,
		"GET http://::1/ HTTP/1.1": 400, "GET http://far/ HTTP/2.0": 505, "GET http://far/ a HTTP/1.1": 400, "": 400,
	} {
		_, err := ParseRequest(start)
		if e := new(Error); !errors.As(err, &e) || e.Status != status {
			t.Errorf("%s: %v; want a refusal with %d", start, err, status)
		}
	}
}

func TestAServiceHearsTheHostOfTheTarget(t *testing.T) {
	for text, want := range map[string][]string{
		"A: 1\r\nhost: far:81\r\n": {"A: 1", "host: far:81", "Connection: close"},
		"A: 1\r\nHost: near\r\n":   {"Host: far:81", "A: 1", "Connection: close"},
		"A: 1\r\n":                 {"Host: far:81", "A: 1", "Connection: close"},
	} {
		h := head(t, "GET http://far:81/x HTTP/1.0\r\n"+text+"\r\n")
		r, err := ParseRequest(h.Start)
		if err != nil {
			t.Fatal(err)
		}
		if out := r.ForService(h); out.Start != "GET /x HTTP/1.1" || !slices.Equal(out.Fields, want) {
			t.Errorf("%q; want %q", out, want)
		}
	}
}

func TestABodyEndsWhereItsHeadSays(t *testing.T) {
	for name, c := range map[string]struct{ fields, body, want, trailer string }{
		"a length":        {"Content-Length: 3\r\n", "abcdef", "abc", ""},
		"chunks":          {"Transfer-Encoding: Chunked\r\n", "2\r\nab\r\n1;x=y\r\nc\r\n0\r\nSum: 1\r\n\r\nnext", "abc", "Sum: 1"},
		"equal lengths":   {"Content-Length: 1\r\ncontent-length: 1\r\n", "abc", "a", ""},
		"until the close": {"", "abc", "abc", ""},
	} {
		h := head(t, "HTTP/1.1 200 OK\r\n"+c.fields+"\r\n")
		f, err := ResponseFraming(h, "GET", 200)
		if err != nil {
			t.Fatal(name, err)
		}
		body := NewBody(bufio.NewReader(strings.NewReader(c.body)), f, 1000)
		got, err := io.ReadAll(body)
		if err != nil || string(got) != c.want || strings.Join(body.Trailer, "\n") != c.trailer {
			t.Errorf("%s: %q, trailer %q, %v; want %q, %q", name, got, body.Trailer, err, c.want, c.trailer)
		}
		var out bytes.Buffer
		if err := WriteBody(&out, bytes.NewReader(got), f, func() []string { return body.Trailer }); err != nil {
			t.Fatal(err)
		}
		again := NewBody(bufio.NewReader(&out), f, 1000)
		if got, err := io.ReadAll(again); err != nil || string(got) != c.want || !slices.Equal(again.Trailer, body.Trailer) {
			t.Errorf("%s, written and read again: %q, trailer %q, %v", name, got, again.Trailer, err)
		}
	}
}

func TestABodyThatIsNotWholeIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		framing Framing
		body    string
	}{
		"a length": {Framing{Length: 4}, "abc"}, "no last chunk": {Framing{Chunked: true}, "2\r\nab\r\n"},
		"no trailer": {Framing{Chunked: true}, "0\r\n"}, "no chunk": {Framing{Chunked: true}, "xyz\r\n"},
	} {
		if _, err := io.ReadAll(NewBody(bufio.NewReader(strings.NewReader(c.body)), c.framing, 1000)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAmbiguousFramingsAreRefused(t *testing.T) {
	for _, fields := range []string{"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: +1\r\n",
		"Content-Length: -1\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"} {
		if f, err := RequestFraming(head(t, "POST http://far/ HTTP/1.1\r\n"+fields+"\r\n")); err == nil {
			t.Errorf("%q is %+v; want a refusal", fields, f)
		}
	}
}

// FuzzRequest gives arbitrary bytes of a client. An accepted request must be the same, with the same body, after it was written for the
// service and read again: a service must not see another request than the proxy did.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("POST http://far:81/x?y HTTP/1.1\r\nHost: far\r\nContent-Length: 4\r\nConnection: x, close\r\nx: 1\r\n\r\nbody and more"))
	f.Add([]byte("PUT http://[::1] HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nT: 1\r\n\r\n"))
	f.Add([]byte("OPTIONS http://far HTTP/1.1\r\nhost:far\r\nConnection: Transfer-Encoding, Content-Length, Host\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 12
		reader := bufio.NewReader(bytes.NewReader(b))
		h, err := ReadHead(reader, limit)
		if err != nil {
			return
		}
		r, err := ParseRequest(h.Start)
		if err != nil {
			return
		}
		framing, err := RequestFraming(h)
		if err != nil {
			return
		}
		body := NewBody(reader, framing, limit)
		content, err := io.ReadAll(body)
		if err != nil {
			return
		}
		var wire bytes.Buffer
		wire.Write(r.ForService(h.EndToEnd()).Append(nil))
		if err := WriteBody(&wire, bytes.NewReader(content), framing, func() []string { return body.Trailer }); err != nil {
			t.Fatal(err)
		}
		again := bufio.NewReader(&wire)
		h2, err := ReadHead(again, 2*limit)
		if err != nil {
			t.Fatalf("%v in what a service reads", err)
		}
		if want := r.Method + " " + r.Target + " HTTP/1.1"; h2.Start != want || len(h2.Values("Host")) != 1 || !strings.EqualFold(h2.Values("Host")[0], r.Host) {
			t.Fatalf("a service reads %q and hosts %q; want %q and %q", h2.Start, h2.Values("Host"), want, r.Host)
		}
		framing2, err := RequestFraming(h2)
		if err != nil || framing2 != framing {
			t.Fatalf("a service reads framing %+v, %v; want %+v", framing2, err, framing)
		}
		body2 := NewBody(again, framing2, limit)
		content2, err := io.ReadAll(body2)
		if err != nil || !bytes.Equal(content2, content) || !slices.Equal(body2.Trailer, body.Trailer) || again.Buffered() > 0 {
			t.Fatalf("a service reads %q, trailer %q, %v; want %q, %q", content2, body2.Trailer, err, content, body.Trailer)
		}
	})
}
