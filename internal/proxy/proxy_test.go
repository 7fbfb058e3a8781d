package proxy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/testport"
)

var linkProtocols = []string{proxyconfig.ProtocolHTTP, proxyconfig.ProtocolCoAP, proxyconfig.ProtocolAMQP}

func TestAClientReachesAServiceThroughThePair(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		for _, compression := range []string{proxyconfig.CompressionNone, proxyconfig.CompressionGzip, proxyconfig.CompressionZstd} {
			t.Run(protocol+" "+compression, func(t *testing.T) {
				t.Parallel()
				p := newPair(t, protocol, func(near, far *proxyconfig.Config) { near.Compression, far.Compression = compression, compression }).start()
				service, client := newCounter(t), p.client()
				for _, size := range []int{0, 1, 1000, 100_000, 2_000_000} {
					body := strings.Repeat("position ", size/9+1)[:size]
					status, answer, err := post(client, service.URL+"/x", body)
					if err != nil || status != 200 || answer != "ran "+body || service.of(body) != 1 {
						t.Errorf("%d bytes: %d, %d bytes, %v, ran %d times", size, status, len(answer), err, service.of(body))
					}
				}
			})
		}
	}
}

// TestHeadersAndBodiesArriveByteForByte sends random messages, of which only the fields of one connection may change.
func TestHeadersAndBodiesArriveByteForByte(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, protocol, func(near, far *proxyconfig.Config) { near.Compression, far.Compression = "zstd", "gzip" }).start()
			random := rand.New(rand.NewPCG(1, uint64(len(protocol))))
			for range 200 {
				response := "HTTP/1.1 " + []string{"200 OK", "404 Not  Found", "299 "}[random.IntN(3)] + "\r\n" + randomMessage(random)
				at, requests := rawService(t, func(string) string { return response })
				fields := randomMessage(random)
				method := []string{"POST", "PUT", "Strange-1", "GET"}[random.IntN(4)]
				target := "/" + randomText(random, "abc%2F/?&=~.", 20)
				got := rawExchange(t, p.near.Near.Listen, method+" http://"+at+target+" HTTP/1.1\r\nHost: "+at+"\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n"+fields)
				want := method + " " + target + " HTTP/1.1\r\nHost: " + at + "\r\n" + fields
				if received := strings.Replace(<-requests, "Connection: close\r\n", "", 1); received != want {
					t.Fatalf("the service received\n%q\nwant\n%q", received, want)
				}
				if answer := strings.Replace(got, "Connection: close\r\n", "", 1); answer != response {
					t.Fatalf("the client received\n%q\nwant\n%q", answer, response)
				}
			}
		})
	}
}

// randomMessage returns fields and a body with a length or in one chunk, which is how the proxies write a small one too.
func randomMessage(random *rand.Rand) string {
	var out strings.Builder
	for range random.IntN(12) {
		fmt.Fprintf(&out, "%s:%s\r\n", "x"+randomText(random, "aAbB-_.!#z", 12), randomText(random, "abc:;,\"\\ \t\xe4\xff=", 30))
	}
	body := randomText(random, "\x00\x01\r\n\xffabc{}<>", 3000)
	if random.IntN(2) == 0 || body == "" {
		fmt.Fprintf(&out, "%s: %d\r\n\r\n%s", []string{"Content-Length", "content-LENGTH"}[random.IntN(2)], len(body), body)
		return out.String()
	}
	trailer := []string{"", "Checksum: 1\r\n", "a: b\r\nA:c\r\n"}[random.IntN(3)]
	fmt.Fprintf(&out, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n", len(body), body, trailer)
	return out.String()
}

func randomText(random *rand.Rand, from string, most int) string {
	b := make([]byte, random.IntN(most+1))
	for i := range b {
		b[i] = from[random.IntN(len(from))]
	}
	return string(b)
}

func TestWhatIsNoRequestToAProxyIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) { near.Limits.BodyBytes = 1000 }).start()
	for text, want := range map[string]string{
		"CONNECT far:443 HTTP/1.1\r\nHost: far:443\r\n\r\n":         "501 Not Implemented|CONNECT opens a tunnel",
		"GET / HTTP/1.1\r\nHost: near\r\n\r\n":                      "400 Bad Request|want an absolute http URL",
		"GET http://far/ HTTP/1.1\nHost: far\n\n":                   "400 Bad Request|carriage return",
		"POST http://far/ HTTP/1.1\r\nContent-Length: 1001\r\n\r\n": "413 Request Entity Too Large|more than the 1000 bytes",
		"POST http://far/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + strings.Repeat("x", 2000) + "\r\n0\r\n\r\n": "413 Request Entity Too Large|more than the 1000 bytes",
		"POST http://far/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n":                                                         "501 Not Implemented|want chunked or none",
		"POST http://far/ HTTP/1.1\r\nProxy-Timeout: soon\r\nContent-Length: 0\r\n\r\n":                                        "400 Bad Request|Proxy-Timeout",
		"GET http://far/ HTTP/1.1\r\nA: " + strings.Repeat("x", 1<<17) + "\r\n\r\n":                                            "431 Request Header Fields Too Large|too long",
	} {
		answer := rawExchange(t, p.near.Near.Listen, text)
		status, reason, _ := strings.Cut(want, "|")
		_, body, _ := strings.Cut(answer, "\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 "+status+"\r\n") || !strings.Contains(body, reason) || !strings.Contains(answer, "Proxy-Status: vignette-near; error=") {
			t.Errorf("%.60q is answered\n%s\nwant %s", text, answer, want)
		}
	}
}

func TestAServiceThatCannotBeCalledIsTold(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	broken, _ := rawService(t, func(string) string { return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this" })
	strange, _ := rawService(t, func(string) string { return "220 mail.example.org ESMTP\r\n\r\n" })
	listener := testport.Listen(t)
	closed := listener.Addr().String()
	listener.Close()
	for to, want := range map[string]string{
		closed: "502 Nobody listens at " + closed + ". The request was not run.", "no-such-host.invalid": "502 The far proxy finds no address of no-such-host.invalid:80.",
		broken:  "502 " + broken + " ended the connection before its response was whole. Whether it acted on the request is unknown.",
		strange: "502 The response of " + strange + " is malformed",
	} {
		status, answer, err := post(p.client(), "http://"+to+"/", "x")
		if got := fmt.Sprint(status, " ", answer); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, %v; want %q", to, got, err, want)
		}
	}
}

func TestConnectionsOfClientsAndServicesHaveNoKeepAlive(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	service, release := newHeldCounter(t)
	answered := make(chan error, 1)
	go func() {
		_, _, err := post(p.client(), service.URL, "x")
		answered <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); service.of("x") == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	near, to := portOf(t, p.near.Near.Listen), portOf(t, service.Listener.Addr().String())
	if client, service := testport.KeepAlive(t, near, 0), testport.KeepAlive(t, 0, to); client != 0 || service != 0 {
		t.Errorf("keep-alive is due to the client in %v, to the service in %v; want none", client, service)
	}
	release()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, _ := net.SplitHostPort(address)
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestOneEndOfAnIdleLinkKeepsItAlive(t *testing.T) {
	t.Parallel()
	const silence = time.Minute
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, far *proxyconfig.Config) {
		near.Near.Peer, near.Retry.SilenceSeconds, far.Retry.SilenceSeconds = far.Far.Listen, silence.Seconds(), silence.Seconds()
	}).start()
	if status, _, err := post(p.client(), newCounter(t).URL, "x"); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	port := portOf(t, p.far.Far.Listen)
	near, far := testport.KeepAlive(t, 0, port), testport.KeepAlive(t, port, 0)
	if near == 0 || near > silence/2 || far <= silence {
		t.Errorf("keep-alive is due at the near proxy in %v, at the far one in %v; want it within %v at the near one, and then not at the far one", near, far, silence/2)
	}
}

func TestRequestsWaitForALinkThatWasCut(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, protocol, nil).start()
			service, client := newCounter(t), p.client()
			if status, _, err := post(client, service.URL, "before"); err != nil || status != 200 {
				t.Fatal(status, err)
			}
			p.link.set(true)
			var done sync.WaitGroup
			for i := range 30 {
				done.Go(func() {
					body := fmt.Sprint("request ", i)
					if status, answer, err := post(client, service.URL, body); err != nil || status != 200 || answer != "ran "+body {
						t.Error(status, answer, err)
					}
				})
			}
			time.Sleep(3 * time.Second)
			if n, _ := service.total(); n != 1 {
				t.Errorf("%d requests passed a link that is cut", n-1)
			}
			p.link.set(false)
			done.Wait()
			if n, twice := service.total(); n != 31 || twice != nil {
				t.Errorf("%d requests ran, %v; want 31, each once", n, twice)
			}
		})
	}
}

func TestALinkCutInTheMiddleOfAnExchangeRunsNothingTwice(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, protocol, nil).start()
			service, client := newCounter(t), p.client()
			service.delay.Store(int64(300 * time.Millisecond))
			var done sync.WaitGroup
			for i := range 10 {
				done.Go(func() {
					if status, answer, err := post(client, service.URL, fmt.Sprint(i)); err != nil || status != 200 {
						t.Error(status, answer, err)
					}
				})
			}
			eventually(t, "the service runs", func() bool { n, _ := service.total(); return n > 0 })
			p.link.set(true)
			time.Sleep(4 * time.Second)
			p.link.set(false)
			done.Wait()
			if n, twice := service.total(); n != 10 || twice != nil {
				t.Errorf("%d requests ran, %v; want 10, each once", n, twice)
			}
		})
	}
}

func TestWhatIsNotDeliveredInTimeIsToldWithAReason(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	service, _ := newHeldCounter(t)
	ask := func(seconds string) *http.Response {
		r, err := http.NewRequest(http.MethodPost, service.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Proxy-Timeout", seconds)
		response, err := p.client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	check := func(response *http.Response, kind, text string) {
		t.Helper()
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != 504 || !strings.Contains(string(body), text) || !strings.Contains(response.Header.Get("Proxy-Status"), "error="+kind) {
			t.Errorf("%d %s, Proxy-Status %s; want 504 with %q, error %s", response.StatusCode, body, response.Header.Get("Proxy-Status"), text, kind)
		}
	}
	check(ask("3"), "http_response_timeout", "Whether") // long enough to reach the service on a busy machine
	p.link.set(true)
	begun := time.Now()
	check(ask("0.7"), "", "before its deadline")
	if took := time.Since(begun); took > 15*time.Second { // half of the proxy's own deadline
		t.Errorf("the answer took %v; want about 0.7 s", took)
	}
	p.link.set(false)
}

func TestARequestWhoseTakingTheBrokerDidNotConfirmMayHaveRun(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolAMQP, func(near, _ *proxyconfig.Config) { near.Retry.SilenceSeconds = 60 }).start()
	service, client := newCounter(t), p.client()
	if status, _, err := post(client, service.URL, "before"); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	p.link.set(true) // the message leaves, and no confirmation comes
	r, err := http.NewRequest(http.MethodPost, service.URL, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Proxy-Timeout", "5") // long enough for a busy machine to send the message
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != 504 || !strings.Contains(string(text), "Whether the service acted on it is unknown") {
		t.Errorf("%d %s; want 504, as it may have run", response.StatusCode, text)
	}
}

func TestARequestOutlivesItsClientAndItsProxy(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil)
	service := newCounter(t)
	near := p.child(p.near, "")
	for i := range 5 {
		conn, err := net.Dial("tcp", p.near.Near.Listen)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s/ HTTP/1.1\r\nContent-Length: 1\r\n\r\n%d", service.URL, i)
		fmt.Fprintf(conn, "GET %s/ HTTP/1.1\r\n\r\n", service.URL) // of which nobody waits for the response
		eventually(t, "acceptance", func() bool {
			files, _ := filepath.Glob(filepath.Join(p.near.Folder, "near", "*.request"))
			return len(files) > i
		})
		conn.Close()
	}
	near.kill()
	p.run(p.far)
	p.run(p.near)
	eventually(t, "all run", func() bool { n, _ := service.total(); return n == 5 })
	eventually(t, "all answered", func() bool {
		files, _ := filepath.Glob(filepath.Join(p.near.Folder, "near", "*.response"))
		return len(files) == 5
	})
	if _, twice := service.total(); twice != nil {
		t.Error(twice)
	}
}

func TestARepetitionWithTheSameKeyGetsTheFirstResponse(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	service := newCounter(t)
	var done sync.WaitGroup
	for range 5 {
		done.Go(func() {
			for range 3 {
				r, err := http.NewRequest(http.MethodPost, service.URL, strings.NewReader("pay"))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Idempotency-Key", `"8e03978e"`)
				response, err := p.client().Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				body, _ := io.ReadAll(response.Body)
				response.Body.Close()
				if string(body) != "ran pay" && response.StatusCode != http.StatusConflict {
					t.Errorf("%d %s", response.StatusCode, body)
				}
			}
		})
	}
	done.Wait()
	if n := service.of("pay"); n != 1 {
		t.Errorf("ran %d times; want once", n)
	}
}

// postKeyed sends a request with a key from an address of this host.
func postKeyed(t *testing.T, p *pair, from, to, body string) {
	t.Helper()
	client := p.client()
	client.Transport.(*http.Transport).DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext
	r, err := http.NewRequest(http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "1")
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); string(text) != "ran "+body {
		t.Errorf("%d %s; want the response to %s", response.StatusCode, text, body)
	}
}

func TestClientsWithTheSameKeyEachGetTheirOwnResponse(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	service := newCounter(t)
	postKeyed(t, p, "127.0.0.1", service.URL, "one")
	postKeyed(t, p, "127.0.0.2", service.URL, "two")
}

func TestNearProxiesOfOneFarProxyMayHaveClientsWithTheSameKey(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	other := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) {
		near.Instance, near.Near.Peer = "c/near", p.link.address
	})
	other.run(other.near)
	service := newCounter(t)
	postKeyed(t, p, "127.0.0.1", service.URL, "one")
	postKeyed(t, other, "127.0.0.1", service.URL, "two")
}

func TestManyNearProxiesShareAFarProxyWithTheirIdleConnections(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, far *proxyconfig.Config) { near.Limits.Concurrent, far.Limits.Concurrent = 1, 1 }).start()
	service := newCounter(t)
	for i := range 9 {
		other := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) {
			near.Instance, near.Near.Peer, near.Near.DeadlineSeconds = fmt.Sprintf("n%d/near", i), p.link.address, 5
		})
		other.run(other.near)
		if status, answer, err := post(other.client(), service.URL, fmt.Sprint(i)); err != nil || status != 200 {
			t.Fatalf("near proxy %d: %d %q, %v; want a response", i+1, status, answer, err)
		}
	}
}

func TestAFullQueueRefusesBeforeItAccepts(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) { near.Limits.Requests = 3 })
	p.run(p.near) // the far proxy does not run
	service, client := newCounter(t), p.client()
	for i := range 3 {
		go func() { _, _, _ = post(client, service.URL, fmt.Sprint(i)) }()
	}
	eventually(t, "three requests", func() bool {
		files, _ := filepath.Glob(filepath.Join(p.near.Folder, "near", "*.request"))
		return len(files) == 3
	})
	status, answer, err := post(client, service.URL, "more")
	if err != nil || status != 503 || !strings.Contains(answer, "the queue is full with 3 requests") {
		t.Errorf("%d %s %v; want a refusal", status, answer, err)
	}
	p.run(p.far)
	eventually(t, "three runs", func() bool { n, _ := service.total(); return n == 3 })
	eventually(t, "room", func() bool {
		status, _, err := post(client, service.URL, "more")
		return err == nil && status == 200
	})
}

func TestNothingIsLeftOfAnsweredRequests(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) { near.Near.DeadlineSeconds = 10 }).start()
	service, client := newCounter(t), p.client()
	for i := range 5 {
		if status, _, err := post(client, service.URL, fmt.Sprint(i)); err != nil || status != 200 {
			t.Fatal(status, err)
		}
	}
	eventually(t, "empty folders", func() bool {
		near, _ := os.ReadDir(filepath.Join(p.near.Folder, "near"))
		far, _ := os.ReadDir(filepath.Join(p.far.Folder, "far"))
		return len(near) == 1 && len(far) == 1
	})
}

func TestTheFarProxyRemovesResponsesOnceTheyHaveArrived(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, protocol, func(near, _ *proxyconfig.Config) { near.Near.DeadlineSeconds = 300 }).start()
			service, client := newCounter(t), p.client()
			for i := range 20 {
				if status, _, err := post(client, service.URL, fmt.Sprint(i)); err != nil || status != 200 {
					t.Fatal(status, err)
				}
			}
			responses, _ := filepath.Glob(filepath.Join(p.far.Folder, "far", "*.response"))
			acknowledged, _ := filepath.Glob(filepath.Join(p.far.Folder, "far", "*.acknowledged"))
			if len(responses) != 1 || len(acknowledged) != 19 {
				t.Errorf("%d responses are kept and %d were acknowledged of 20; want the last one only", len(responses), len(acknowledged))
			}
		})
	}
}

func TestAResponseThatNobodyCanAskForIsNotKept(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	service, release := newHeldCounter(t)
	conn, err := net.Dial("tcp", p.near.Near.Listen)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s/ HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", service.URL)
	eventually(t, "the call", func() bool { return service.of("x") == 1 })
	conn.Close()
	release()
	eventually(t, "nothing but the lock", func() bool {
		files, _ := os.ReadDir(filepath.Join(p.near.Folder, "near"))
		return len(files) == 1
	})
}

func TestAClientThatLeftMayRepeatAnUnsentRequestWithItsKey(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, far *proxyconfig.Config) { near.Near.Peer = far.Far.Listen })
	p.run(p.near) // nobody takes its connections: the far proxy does not run
	service := newCounter(t)
	get := fmt.Sprintf("GET %s/ HTTP/1.1\r\nIdempotency-Key: 1\r\nConnection: close\r\n\r\n", service.URL)
	conn, err := net.Dial("tcp", p.near.Near.Listen)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, get)
	requests := func() int {
		files, _ := filepath.Glob(filepath.Join(p.near.Folder, "near", "*.request"))
		return len(files)
	}
	eventually(t, "the request", func() bool { return requests() == 1 })
	conn.Close()
	eventually(t, "no request", func() bool { return requests() == 0 })
	p.run(p.far)
	if answer := rawExchange(t, p.near.Near.Listen, get); !strings.HasPrefix(answer, "HTTP/1.1 200 OK") {
		t.Errorf("the repetition is answered\n%s\nwant the service's response", answer)
	}
}

func TestASlowServiceHoldsNobodyElseUp(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, protocol, nil).start()
			slow, release := newHeldCounter(t)
			fast, client := newCounter(t), p.client()
			var done sync.WaitGroup
			for i := range 5 {
				done.Go(func() {
					if status, answer, err := post(client, slow.URL, fmt.Sprint("slow ", i)); err != nil || status != 200 {
						t.Error(status, answer, err)
					}
				})
			}
			eventually(t, "slow runs", func() bool { n, _ := slow.total(); return n == 5 })
			if status, _, err := post(client, fast.URL, "fast"); err != nil || status != 200 {
				t.Errorf("%d %v; want an answer before the slow ones", status, err)
			}
			time.Sleep(4 * time.Second) // longer than the silence after which the link counts as lost
			release()
			done.Wait()
			if _, twice := slow.total(); twice != nil {
				t.Error(twice)
			}
		})
	}
}

func TestTwoProxiesMayBeNearAndFarForEachOther(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			there, back := newPair(t, protocol, nil), newPair(t, protocol, nil)
			left, right := there.near, back.near
			left.Far, right.Far = back.far.Far, there.far.Far
			if protocol == proxyconfig.ProtocolAMQP {
				back.near.Near.Queue, back.far.Far.Queue = t.Name()+" back", t.Name()+" back"
			}
			right.Instance = "b/proxy"
			there.run(left)
			back.run(right)
			service := newCounter(t)
			for name, p := range map[string]*pair{"there": there, "back": back} {
				if status, answer, err := post(p.client(), service.URL, name); err != nil || status != 200 || answer != "ran "+name {
					t.Error(name, status, answer, err)
				}
			}
		})
	}
}

func TestPipelinedRequestsAreAnsweredInTheirOrder(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	service := newCounter(t)
	var text strings.Builder
	for i := range 5 {
		fmt.Fprintf(&text, "POST %s/ HTTP/1.1\r\nContent-Length: 1\r\n\r\n%d", service.URL, i)
	}
	fmt.Fprintf(&text, "GET %s/ HTTP/1.1\r\nConnection: close\r\n\r\n", service.URL)
	answer, last := rawExchange(t, p.near.Near.Listen, text.String()), 0
	for i := range 5 {
		at := strings.Index(answer, fmt.Sprint("\r\n\r\nran ", i))
		if at < last {
			t.Errorf("answer %d is at %d, after the one at %d, of\n%s", i, at, last, answer)
		}
		last = at
	}
	if n := strings.Count(answer, "HTTP/1.1 200 OK"); n != 6 {
		t.Errorf("%d responses; want 6", n)
	}
}

func TestAClientOfHTTP10GetsNoChunks(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	at, _ := rawService(t, func(string) string {
		return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: 1\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
	})
	answer := rawExchange(t, p.near.Near.Listen, "GET http://"+at+"/ HTTP/1.0\r\n\r\n")
	if want := "HTTP/1.1 200 OK\r\nA: 1\r\nConnection: close\r\n\r\nabcde"; answer != want {
		t.Errorf("%q; want %q", answer, want)
	}
}

func TestInterimResponsesAreSkippedAndABodyMayEndWithTheConnection(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, nil).start()
	at, _ := rawService(t, func(string) string {
		return "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.0 201 Made\r\nB:2\r\n\r\nuntil the end"
	})
	answer := rawExchange(t, p.near.Near.Listen, "POST http://"+at+"/ HTTP/1.1\r\nContent-Length: 1\r\n\r\nx")
	if want := "HTTP/1.1 201 Made\r\nB:2\r\nConnection: close\r\n\r\nuntil the end"; answer != want {
		t.Errorf("%q; want %q", answer, want)
	}
}

func TestARequestForTheProxyItselfIsRefused(t *testing.T) {
	t.Parallel()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	own := ""
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && !network.IP.IsLoopback() && network.IP.To4() != nil {
			own = network.IP.String()
		}
	}
	if own == "" {
		t.Skip("this machine has loopback addresses only")
	}
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) {
		near.Near.Listen = net.JoinHostPort(own, fmt.Sprint(testport.Free(t)))
	}).start()
	answer := rawExchange(t, p.near.Near.Listen, "GET http://"+p.near.Near.Listen+"/ HTTP/1.1\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 508 Loop Detected\r\n") || !strings.Contains(answer, "error=proxy_loop_detected") || !strings.Contains(answer, "is this proxy itself") {
		t.Errorf("%s\nwant 508 and the reason", answer)
	}
}

func TestFilesOfTheBrokersSecurityThatAreMissingAreTold(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for want, amqp := range map[string]*proxyconfig.AMQP{
		"amqp.caFile is":       {Broker: "127.0.0.1:5672", CAFile: missing},
		"amqp.usernameFile is": {Broker: "127.0.0.1:5672", UsernameFile: missing, PasswordFile: missing},
	} {
		near := proxyconfig.Config{Protocol: proxyconfig.ProtocolAMQP, Folder: t.TempDir(), AMQP: amqp, Near: &proxyconfig.Near{Listen: "127.0.0.1:0", Queue: "q"}}
		far := near
		far.Near, far.Far = nil, &proxyconfig.Far{Queue: "q"}
		for _, config := range []proxyconfig.Config{near, far} {
			ended := make(chan error, 1)
			go func() { ended <- Run(t.Context(), config, nil, func(string) {}) }()
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want an error with %q", err, want)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("a proxy without its file runs on; want an error with %q", want)
			}
		}
	}
}

func TestAPortInUseIsTold(t *testing.T) {
	t.Parallel()
	tcp := testport.Listen(t)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	inUse, inUseUDP := tcp.Addr().String(), udp.LocalAddr().String()
	for want, config := range map[string]proxyconfig.Config{
		fmt.Sprintf("near.listen: listen at %q: another program uses the port", inUse): {
			Protocol: proxyconfig.ProtocolHTTP, Near: &proxyconfig.Near{Listen: inUse, Peer: "127.0.0.1:1"}},
		fmt.Sprintf("far.listen: listen at %q: another program uses the port", inUse): {
			Protocol: proxyconfig.ProtocolHTTP, Far: &proxyconfig.Far{Listen: inUse}},
		fmt.Sprintf("far.listen: listen %q: the port is in use, or the address is none of this node's", inUseUDP): {
			Protocol: proxyconfig.ProtocolCoAP, Far: &proxyconfig.Far{Listen: inUseUDP}},
	} {
		config.Folder = t.TempDir()
		if err := Run(t.Context(), config, nil, func(string) {}); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
