package proxy

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/testport"
)

func TestARequestHasOneIDInTheMessageLogOfBothProxies(t *testing.T) {
	t.Parallel()
	for _, protocol := range linkProtocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, protocol, nil).start()
			service := newCounter(t)
			for i := range 3 {
				if status, _, err := post(p.client(), service.URL, fmt.Sprint(i)); err != nil || status != 200 {
					t.Fatal(status, err)
				}
			}
			eventually(t, "all records", func() bool { return strings.Count(p.log.String(), "\n") == 15 })
			records := p.records()
			if len(records) != 3 {
				t.Errorf("%d ids; want 3", len(records))
			}
			for id, by := range records {
				if by["a/near"] != "triggered sent receipt" || by["b/far"] != "received processed" {
					t.Errorf("%s: %v", id, by)
				}
			}
		})
	}
}

func TestAFailedRequestSaysWhyInTheMessageLog(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, _ *proxyconfig.Config) { near.Near.DeadlineSeconds = 0.5 })
	p.run(p.near) // and no far proxy
	if status, _, err := post(p.client(), "http://127.0.0.1:1/", "x"); err != nil || status != 504 {
		t.Fatal(status, err)
	}
	eventually(t, "the failure", func() bool { return strings.Contains(p.log.String(), `"failed"`) })
	for _, by := range p.records() {
		if !strings.Contains(by["a/near"], "failed(timeout: ") {
			t.Errorf("%v; want a failure by timeout", by)
		}
	}
}

func TestARequestThatWaitedForTheLinkIsLoggedAsSentFirst(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, far *proxyconfig.Config) { near.Near.Peer = far.Far.Listen })
	p.run(p.near) // the first attempts find nobody
	service, done := newCounter(t), make(chan error, 1)
	go func() {
		_, _, err := post(p.client(), service.URL, "x")
		done <- err
	}()
	eventually(t, "a failed attempt", func() bool { return strings.Contains(p.output.String(), "the link does not carry") })
	p.run(p.far)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	eventually(t, "all records", func() bool { return strings.Count(p.log.String(), "\n") >= 5 })
	for _, by := range p.records() {
		if !strings.HasPrefix(by["a/near"], "triggered sent ") {
			t.Errorf("%v; want triggered, then sent", by)
		}
	}
}

func TestARetransmissionByCoAPIsLogged(t *testing.T) {
	t.Parallel()
	p := newPair(t, proxyconfig.ProtocolCoAP, func(near, _ *proxyconfig.Config) {
		near.CoAP.ACKTimeoutSeconds, near.Retry.SilenceSeconds = 0.1, 30 // so that only CoAP repeats the request
	}).start()
	p.link.set(true)
	service, done := newCounter(t), make(chan error, 1)
	go func() {
		_, _, err := post(p.client(), service.URL, "x")
		done <- err
	}()
	eventually(t, "a retransmission", func() bool { return strings.Contains(p.log.String(), `"retransmitted"`) })
	p.link.set(false)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the receipt", func() bool { return strings.Contains(p.log.String(), `"receipt"`) })
	for _, by := range p.records() {
		if !regexp.MustCompile(`^triggered sent( retransmitted)+ receipt$`).MatchString(by["a/near"]) {
			t.Errorf("%v; want sent, its retransmissions, and the receipt", by)
		}
	}
}

// metric returns a sample of what a proxy offers for Prometheus.
func metric(t *testing.T, port int, name string) float64 {
	t.Helper()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindSubmatch(text)
	if match == nil {
		t.Fatalf("no %s in\n%s", name, text)
	}
	value, err := strconv.ParseFloat(string(match[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestMetricsTellOfTheQueueAndOfTheCompression(t *testing.T) {
	t.Parallel()
	nearPort, farPort := testport.Free(t), testport.Free(t)
	p := newPair(t, proxyconfig.ProtocolHTTP, func(near, far *proxyconfig.Config) {
		near.Compression, far.Compression, near.MetricsPort, far.MetricsPort = "gzip", "gzip", nearPort, farPort
	})
	p.run(p.near)
	service, body := newCounter(t), strings.Repeat("position ", 1000)
	done := make(chan error, 1)
	go func() {
		_, _, err := post(p.client(), service.URL, body)
		done <- err
	}()
	eventually(t, "a queued request", func() bool { return metric(t, nearPort, `vignette_proxy_queue_requests{instance="a/near"}`) == 1 })
	time.Sleep(300 * time.Millisecond)
	if age := metric(t, nearPort, `vignette_proxy_queue_oldest_seconds{instance="a/near"}`); age < 0.3 || age > 20 {
		t.Errorf("the oldest request is %v s old", age)
	}
	p.run(p.far)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the receipt, before which the answer is counted", func() bool { return strings.Contains(p.log.String(), `"receipt"`) })
	before := metric(t, nearPort, `vignette_proxy_bytes_before_total{direction="request",instance="a/near"}`)
	after := metric(t, nearPort, `vignette_proxy_bytes_after_total{direction="request",instance="a/near"}`)
	if before < 9000 || before > 9500 || after > before/10 || after == 0 {
		t.Errorf("%v bytes before compression, %v after", before, after)
	}
	for name, want := range map[string]float64{`queue_requests{instance="a/near"}`: 0, `queue_oldest_seconds{instance="a/near"}`: 0,
		`requests_total{instance="a/near",outcome="answered"}`: 1} {
		if got := metric(t, nearPort, "vignette_proxy_"+name); got != want {
			t.Errorf("%s is %v; want %v", name, got, want)
		}
	}
	if retries := metric(t, nearPort, `vignette_proxy_retries_total{instance="a/near"}`); retries < 1 {
		t.Errorf("%v retries; want some", retries)
	}
	if ran := metric(t, farPort, `vignette_proxy_requests_total{instance="b/far",outcome="run"}`); ran != 1 {
		t.Errorf("%v run; want 1", ran)
	}
}

func TestBytesOfARequestThatAnEarlierProcessAcceptedAreCountedOnce(t *testing.T) {
	t.Parallel()
	port := testport.Free(t)
	p := newPair(t, proxyconfig.ProtocolHTTP, nil)
	stop := p.run(p.near)
	service, body := newCounter(t), strings.Repeat("x", 9000)
	go func() { _, _, _ = post(p.client(), service.URL, body) }()
	eventually(t, "acceptance", func() bool { return len(p.accepted()) == 1 })
	stop()
	p.near.MetricsPort = port
	p.run(p.near)
	p.run(p.far)
	eventually(t, "an answer", func() bool { return len(p.accepted()) == 0 })
	for _, name := range []string{"before", "after"} {
		name = "vignette_proxy_bytes_" + name + `_total{direction="request",instance="a/near"}`
		if got := metric(t, port, name); got < 9000 || got > 9500 {
			t.Errorf("%s is %v; want the request's bytes once", name, got)
		}
	}
}
