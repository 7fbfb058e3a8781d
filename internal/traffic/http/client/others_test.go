package client

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testcapture"
	"vignette.dev/vignette/internal/traffic/request"
	"vignette.dev/vignette/internal/traffic/request/requesttest"
)

// python is Debian's, which has Debian's libraries.
const python = "/usr/bin/python3"

// echo answers with what it got; it refuses the path /refuse.
func echo(_ time.Time, r request.Request) request.Response {
	if r.Path == "/refuse" {
		return request.Response{Status: 503, Body: []byte("full"), ContentType: "text/plain"}
	}
	return request.Response{Body: r.Body, ContentType: r.ContentType, ContentEncoding: r.ContentEncoding}
}

func TestCurlGetsAnswersOfTheServer(t *testing.T) {
	requesttest.RequirePrograms(t, "curl")
	at := requesttest.Address(t)
	open(t, request.Setup{Listen: at, Handler: echo})
	large := filepath.Join(t.TempDir(), "large") // curl asks before it sends a large body (Expect: 100-continue)
	if err := os.WriteFile(large, bytes.Repeat([]byte("0123456789abcdef"), 200_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		arguments []string
		want      string
	}{
		"POST":       {[]string{"-H", "Content-Type: application/json", "-d", `{"a":1}`, "http://" + at + "/messages"}, `{"a":1} 200 application/json 1`},
		"GET":        {[]string{"http://" + at + "/messages"}, " 204  1"},
		"HEAD":       {[]string{"-I", "-o", "/dev/null", "http://" + at + "/messages"}, " 204  1"},
		"large":      {[]string{"-o", "/dev/null", "-H", "Content-Type: a/b", "--data-binary", "@" + large, "http://" + at + "/"}, " 200 a/b 1"},
		"chunked":    {[]string{"-H", "Transfer-Encoding: chunked", "-H", "Content-Type:", "-d", "abc", "http://" + at + "/"}, "abc 200  1"},
		"HTTP/1.0":   {[]string{"--http1.0", "-H", "Content-Type: a/b", "-d", "abc", "http://" + at + "/"}, "abc 200 a/b 1"},
		"refused":    {[]string{"-d", "x", "http://" + at + "/refuse"}, "full 503 text/plain 1"},
		"over HTTP2": {[]string{"--http2-prior-knowledge", "http://" + at + "/"}, "000"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command("curl", append([]string{"-sS", "--noproxy", "*", "-m", "20", "-w", " %{http_code} %{content_type} %{num_connects}"}, c.arguments...)...).Output()
			if got := string(out); got != c.want && (err == nil || !strings.Contains(got, c.want)) {
				t.Errorf("curl: %v, %q; want %q", err, got, c.want)
			}
		})
	}
	out, err := exec.Command("curl", "-sS", "--noproxy", "*", "-o", "/dev/null", "-o", "/dev/null", "-w", "%{num_connects} ", "-d", "x", "http://"+at+"/", "http://"+at+"/").Output()
	if err != nil || string(out) != "1 0 " {
		t.Errorf("curl uses connections %q, %v; want one for two requests", out, err)
	}
}

func TestPythonsClientsGetAnswersOfTheServer(t *testing.T) {
	requesttest.RequirePrograms(t, python, "/usr/lib/python3/dist-packages/requests")
	at := requesttest.Address(t)
	open(t, request.Setup{Listen: at, Handler: echo})
	clients := exec.Command(python, "testdata/clients.py", "http://"+at)
	clients.Env = append(os.Environ(), "no_proxy=*")
	out, err := clients.CombinedOutput()
	want := `urllib 200 True application/cbor
urllib 204 b''
requests 200 True application/json
requests 200 True application/json
requests 200 True
requests 503
`
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}

func TestTheClientGetsAnswersOfPythonsServer(t *testing.T) {
	requesttest.RequirePrograms(t, python)
	at := requesttest.Address(t)
	_, port, _ := net.SplitHostPort(at)
	output := &syncbuffer.Buffer{}
	server := exec.Command(python, "testdata/server.py", port)
	server.Stdout, server.Stderr = output, output
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(output.String(), "ready"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("Python's server does not start: %s", output)
		}
	}
	client := open(t, request.Setup{})
	body := bytes.Repeat([]byte{0, 1, 0xff}, 50_000)
	for range 2 {
		response, _, err := client.Do(t.Context(), at, request.Request{Path: "/a?b=c", Body: body, ContentType: "application/cbor", ContentEncoding: "gzip"}, request.Events{})
		if err != nil || !bytes.Equal(response.Body, body) || response.ContentType != "application/cbor" || response.ContentEncoding != "gzip" {
			t.Errorf("%v, %d bytes of %q, %q", err, len(response.Body), response.ContentType, response.ContentEncoding)
		}
	}
	response, _, err := client.Do(t.Context(), at, request.Request{Path: "/"}, request.Events{})
	if err != nil || string(response.Body) != "hello world" {
		t.Errorf("%v, %q; want the whole of a body in chunks", err, response.Body)
	}
	if _, _, err := client.Do(t.Context(), at, request.Request{Path: "/missing"}, request.Events{}); err == nil || err.Error() != "rejected: 404 Not Found" {
		t.Errorf("%v; want rejected: 404 Not Found", err)
	}
	ports := map[string]bool{}
	for line := range strings.Lines(output.String()) {
		if fields := strings.Fields(line); len(fields) == 4 {
			ports[fields[3]] = true
		}
	}
	if len(ports) != 1 {
		t.Errorf("requests came from ports %v; want one connection", ports)
	}
}

func TestTsharkDissectsRequestsAndResponses(t *testing.T) {
	at := requesttest.Address(t)
	_, port, _ := net.SplitHostPort(at)
	capture := testcapture.Start(t, "tcp port "+port)
	open(t, request.Setup{Listen: at, Handler: echo})
	client, fresh := open(t, request.Setup{}), open(t, request.Setup{HTTP: request.HTTPOptions{FreshConnections: true}})
	for i := range 5 {
		body := bytes.Repeat([]byte(`{"a":[1,2,3]} `), 1+i*500)
		for _, p := range []request.Peer{client, fresh} {
			if _, _, err := p.Do(t.Context(), at, request.Request{Path: "/messages", Body: body, ContentType: "application/json"}, request.Events{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := client.Do(t.Context(), at, request.Request{Path: "/messages"}, request.Events{}); err != nil {
			t.Fatal(err)
		}
	}
	read := capture.Dissect("-d", fmt.Sprintf("tcp.port==%s,http", port))
	for want, times := range map[string]int{"POST /messages HTTP/1.1": 10, "GET /messages HTTP/1.1": 5, "HTTP/1.1 200 OK": 10, "HTTP/1.1 204 No Content": 5, "Connection: close": 10, "User-Agent: vignette": 15} {
		if n := strings.Count(read, want); n < times {
			t.Errorf("tshark finds %q %d times; want %d at least", want, n, times)
		}
	}
}
