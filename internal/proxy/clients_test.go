package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
)

// describing is a service that answers with what it received.
func describing(t testing.TB) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		kind := "-"
		if len(body) > 0 {
			kind = string(body[:1])
		}
		fmt.Fprintf(w, "%s %s %d %s chunked=%v", r.Method, r.URL.Path, len(body), kind, r.ContentLength < 0)
	}))
	t.Cleanup(s.Close)
	return s
}

// run runs a client with the near proxy as http_proxy, and checks what it says.
func (p *pair) runClient(want []string, name string, args ...string) {
	p.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "http_proxy=http://"+p.near.Near.Listen, "no_proxy=", "NO_PROXY=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	for _, text := range want {
		if !strings.Contains(string(out), text) {
			p.t.Errorf("%s says\n%s\nwant %q", name, out, text)
		}
	}
}

func TestCurlWorksThroughThePairUnchanged(t *testing.T) {
	t.Parallel()
	testtool.Need(t, "curl")
	p, s := newPair(t, proxyconfig.ProtocolHTTP, nil).start(), describing(t)
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte(strings.Repeat("c", 2_000_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.runClient([]string{"GET /get 0"}, "curl", "-sS", s.URL+"/get")
	p.runClient([]string{"POST /post 2000000 c chunked=false"}, "curl", "-sS", "--data-binary", "@"+file, s.URL+"/post") // with Expect: 100-continue
	p.runClient([]string{"POST /chunks 2000000 c chunked=true"}, "curl", "-sS", "-H", "Transfer-Encoding: chunked", "--data-binary", "@"+file, s.URL+"/chunks")
	p.runClient([]string{"HTTP/1.1 200 OK", "Content-Length:"}, "curl", "-sS", "-I", s.URL+"/head")
	p.runClient([]string{"GET /one 0", "GET /two 0"}, "curl", "-sS", "--http1.0", s.URL+"/one", s.URL+"/two")
	cmd := exec.Command("curl", "-sS", "-v", "--proxy", p.near.Near.Listen, "--noproxy", "", "https://127.0.0.1:1/")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "501 Not Implemented") || !strings.Contains(string(out), "CONNECT opens a tunnel") {
		t.Errorf("https: %v\n%s\nwant the refusal of CONNECT", err, out)
	}
}

func TestPythonsClientsWorkThroughThePairUnchanged(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import requests").Run() != nil {
		t.Skip("needs Python's requests: hack/test-packages installs it")
	}
	p, s := newPair(t, proxyconfig.ProtocolCoAP, nil).start(), describing(t)
	p.runClient([]string{"urllib POST POST /urllib 100000 p chunked=false", "urllib GET GET /urllib 0", "requests POST 200 POST /requests 100000 p chunked=false",
		"requests POST 200 POST /requests 100000 p chunked=true", "requests GET 200 GET /requests 0", "https", "501"}, python, "testdata/clients.py", s.URL)
}

// javaClass compiles a program of testdata, and returns the folder of its classes.
func javaClass(t testing.TB, name, classPath string) string {
	t.Helper()
	testtool.Need(t, "java", "javac")
	classes := t.TempDir()
	if out, err := exec.Command("javac", "-J-XX:TieredStopAtLevel=1", "-d", classes, "-cp", classPath, "testdata/"+name+".java").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return classes
}

func TestJavasClientsWorkThroughThePairUnchanged(t *testing.T) {
	t.Parallel()
	classes := javaClass(t, "HTTPClients", ".")
	p, s := newPair(t, proxyconfig.ProtocolHTTP, nil).start(), describing(t)
	_, port, _ := strings.Cut(p.near.Near.Listen, ":")
	p.runClient([]string{
		"HttpURLConnection POST 200 POST /url-connection 100000 j chunked=false", "HttpURLConnection POST 200 POST /url-connection 100000 j chunked=true",
		"HttpURLConnection GET 200 GET /url-connection 0", "HttpClient POST 200 POST /client 100000 j chunked=false",
		"HttpClient POST 200 POST /client 100000 j chunked=true", "HttpClient GET 200 GET /client 0",
	}, "java", "-XX:TieredStopAtLevel=1", "-cp", classes, "HTTPClients", port, s.URL)
}

func TestASOAPClientAndServiceOfCXFWorkThroughThePairUnchanged(t *testing.T) {
	t.Parallel()
	testtool.Need(t, "java", "javac")
	out, err := exec.Command("../../hack/jars", "../../images/wsn-cxf/pom.xml").Output()
	if err != nil {
		t.Skipf("the jars of Apache CXF cannot be fetched (hack/jars): %v", err)
	}
	libraries := filepath.Join(strings.TrimSpace(string(out)), "lib", "*")
	classPath := libraries + ":" + javaClass(t, "SOAP", libraries)
	service, output := fmt.Sprintf("http://127.0.0.1:%d/tracks", testport.Free(t)), &syncbuffer.Buffer{}
	java := exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classPath, "SOAP", "service", service)
	java.Stdout, java.Stderr = output, output
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = java.Process.Kill()
		_ = java.Wait()
	})
	eventually(t, "CXF's service", func() bool { return strings.Contains(output.String(), "ready") })
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, far *proxyconfig.Config) { near.Compression, far.Compression = "gzip", "gzip" }).start()
	_, port, _ := strings.Cut(p.near.Near.Listen, ":")
	p.runClient([]string{"1 tracks: as they were sent", "3 tracks: as they were sent", "5000 tracks: as they were sent"},
		"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dhttp.proxyHost=127.0.0.1", "-Dhttp.proxyPort="+port, "-Dhttp.nonProxyHosts=",
		"-cp", classPath, "SOAP", "client", service)
	if n := len(p.records()); n != 3 {
		t.Errorf("%d requests went through the pair; want 3", n)
	}
}
