package client

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/quietio"
	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/request"
	"vignette.dev/vignette/internal/traffic/request/requesttest"
)

const nffiTrack = `<NFFIMessage xmlns="urn:nato:fft:protocols:nffi13"><track a='1'>x &amp; y</track></NFFIMessage>`

// trackOfEXI is the track without its prefixes and quotes, which EXI does not keep.
const trackOfEXI = `<NFFIMessage xmlns="urn:nato:fft:protocols:nffi13"><track a="1">x &amp; y</track></NFFIMessage>`

// transports has both, each with receipts.
var transports = map[string]request.Open{
	"HTTP": Open,
	"UDP": func(s request.Setup) (request.Peer, error) {
		s.Receipt = true
		return OpenUDP(s)
	},
}

// overBoth runs a test with each transport and each encoding of envelopes.
func overBoth(t *testing.T, test func(t *testing.T, open request.Open, encoding string)) {
	for name, open := range transports {
		for _, encoding := range encodings {
			t.Run(name+" "+encoding, func(t *testing.T) { test(t, open, encoding) })
		}
	}
}

func echo(_ time.Time, r request.Request) request.Response {
	return request.Response{Body: r.Body, ContentType: r.ContentType, ContentEncoding: r.ContentEncoding}
}

func TestContentGoesThroughEnvelopesAndBack(t *testing.T) {
	overBoth(t, func(t *testing.T, open request.Open, encoding string) {
		at, got := requesttest.Address(t), make(chan request.Request, 10)
		requesttest.Start(t, open, request.Setup{Listen: at, Handler: func(at time.Time, r request.Request) request.Response {
			got <- r
			return echo(at, r)
		}})
		client := requesttest.Start(t, open, request.Setup{SOAP: request.SOAPOptions{Envelope: encoding}})
		for name, c := range map[string]struct{ sent, want request.Request }{
			"XML": {
				request.Request{Path: "/messages?a=b", Body: []byte(nffiTrack), ContentType: "application/xml"},
				request.Request{Path: "/messages?a=b", Body: []byte(nffiTrack), ContentType: "application/xml"},
			},
			"a document": {
				request.Request{Path: "/", Body: []byte("<?xml version='1.0'?>\n" + nffiTrack + "\n"), ContentType: "application/nffi+xml; charset=utf-8"},
				request.Request{Path: "/", Body: []byte(nffiTrack), ContentType: "application/xml"},
			},
			"JSON": {
				request.Request{Path: "/", Body: []byte(`{"a": "<&>"}`), ContentType: "application/json"},
				request.Request{Path: "/", Body: []byte(`{"a": "<&>"}`), ContentType: "application/json"},
			},
			"bytes": {
				request.Request{Path: "/", Body: []byte{0x80, 0, 1, 0xff}, ContentType: "application/exi", ContentEncoding: "gzip"},
				request.Request{Path: "/", Body: []byte{0x80, 0, 1, 0xff}, ContentType: "application/exi", ContentEncoding: "gzip"},
			},
			"nothing": {request.Request{Path: "/"}, request.Request{Path: "/"}},
		} {
			if encoding == request.EnvelopeEXI && strings.Contains(c.sent.ContentType, "xml") {
				c.want.Body = []byte(trackOfEXI)
			}
			t.Run(name, func(t *testing.T) {
				response, _, err := client.Do(t.Context(), at, c.sent, request.Events{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, <-got); diff != "" {
					t.Errorf("request: %s", diff)
				}
				want := request.Response{Status: 200, Body: c.want.Body, ContentType: c.want.ContentType, ContentEncoding: c.want.ContentEncoding}
				if len(want.Body) == 0 {
					want.Status = 204
				}
				if diff := cmp.Diff(want, response); diff != "" {
					t.Errorf("response: %s", diff)
				}
			})
		}
	})
}

func TestARefusalIsAFault(t *testing.T) {
	overBoth(t, func(t *testing.T, open request.Open, encoding string) {
		at := requesttest.Address(t)
		requesttest.Start(t, open, request.Setup{Listen: at, Handler: func(_ time.Time, r request.Request) request.Response {
			if r.Path == "/none" {
				return request.Response{Status: 404}
			}
			return request.Response{Status: 503, Body: []byte("queue <full>"), ContentType: "text/plain"}
		}})
		client := requesttest.Start(t, open, request.Setup{SOAP: request.SOAPOptions{Envelope: encoding}})
		for path, c := range map[string]struct {
			text   string
			status int
		}{"/none": {"rejected: 404 Not Found", 400}, "/full": {"rejected: queue <full>", 500}} {
			response, _, err := client.Do(t.Context(), at, request.Request{Path: path, Body: []byte("<a/>"), ContentType: "text/xml"}, request.Events{})
			if err == nil || err.Error() != c.text || response.Status != c.status {
				t.Errorf("%v, status %d; want %q, %d", err, response.Status, c.text, c.status)
			}
		}
	})
}

func TestARequestIsSentOnceAndMeasured(t *testing.T) {
	for name, open := range transports {
		t.Run(name, func(t *testing.T) {
			at, received := requesttest.Address(t), make(chan time.Time, 1)
			requesttest.Start(t, open, request.Setup{Listen: at, Handler: func(at time.Time, _ request.Request) request.Response {
				received <- at
				return request.Response{}
			}})
			var e requesttest.Events
			triggered := time.Now()
			_, answered, err := requesttest.Start(t, open, request.Setup{}).Do(t.Context(), at, request.Request{Path: "/"}, e.Record())
			arrived := <-received
			if err != nil || len(e.Sent) != 1 || len(e.Retransmitted) > 0 || e.Sent[0].Before(triggered) || arrived.Before(e.Sent[0]) || answered.Before(arrived) {
				t.Errorf("%v, %+v, received %v, answered %v; want them in order", err, e, arrived, answered)
			}
		})
	}
}

func TestContentThatIsNoXMLIsRefusedBeforeItIsSent(t *testing.T) {
	for name, open := range transports {
		t.Run(name, func(t *testing.T) {
			for _, body := range []string{"<a>", "text", "<a/><b/>", `<!DOCTYPE a><a/>`} {
				var e requesttest.Events
				_, _, err := requesttest.Start(t, open, request.Setup{}).Do(t.Context(), "127.0.0.1:9", request.Request{Path: "/", Body: []byte(body), ContentType: "text/xml"}, e.Record())
				if request.ReasonOf(err) != request.Invalid || len(e.Sent) > 0 {
					t.Errorf("%q: %v, sent %d times; want invalid and never", body, err, len(e.Sent))
				}
			}
		})
	}
}

func TestAnEnvelopeThatIsCompressedIsSmaller(t *testing.T) {
	envelope, _, err := newRequest("http://hq:8080/", request.Request{Body: []byte(nffiTrack), ContentType: "text/xml"}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, encoding := range encodings {
		data, err := encode(encoding, envelope)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("envelope %q: %d bytes", encoding, len(data))
		if encoding != "" && len(data) >= len(envelope) {
			t.Errorf("%s makes %d bytes of %d", encoding, len(data), len(envelope))
		}
		if encodingOf(data) != encoding {
			t.Errorf("a datagram of %q is taken for %q", encoding, encodingOf(data))
		}
	}
}

func TestTheHTTPServerAnswersWhatIsNoEnvelope(t *testing.T) {
	handler := func(time.Time, request.Request) request.Response {
		t.Error("the handler is called")
		return request.Response{}
	}
	for name, c := range map[string]struct {
		r      request.Request
		status int
		want   string
	}{
		"a GET":                {request.Request{}, 400, "want POST of a SOAP envelope"},
		"text":                 {request.Request{Body: []byte("hello")}, 400, "soap:Sender"},
		"another document":     {request.Request{Body: []byte("<a/>")}, 400, "want an Envelope of SOAP 1.1 or 1.2"},
		"an unknown encoding":  {request.Request{Body: []byte("<a/>"), ContentEncoding: "br"}, 400, "want none, gzip or exi"},
		"no gzip":              {request.Request{Body: []byte("<a/>"), ContentEncoding: "gzip"}, 400, "not compressed by gzip"},
		"what must be known":   {request.Request{Body: envelope(`<s:Header><x:a xmlns:x="urn:x" s:mustUnderstand="true"/></s:Header><s:Body/>`)}, 500, "soap:MustUnderstand"},
		"a fault":              {request.Request{Body: envelope(`<s:Body><s:Fault/></s:Body>`)}, 400, "a fault is no request"},
		"another reply-to":     {request.Request{Body: envelope(`<s:Header><a:ReplyTo xmlns:a="` + soap.NSAddressing + `"><a:Address>http://x</a:Address></a:ReplyTo></s:Header><s:Body/>`)}, 400, "want the anonymous address or none"},
		"content of no base64": {request.Request{Body: envelope(`<s:Body><v:Base64 xmlns:v="https://vignette.dev/wsn">!</v:Base64></s:Body>`)}, 400, "content in base64 has other characters, or an odd length"},
	} {
		t.Run(name, func(t *testing.T) {
			response := answerHTTP(handler, time.Now(), c.r)
			body, err := decode(response.ContentEncoding, response.Body)
			if err != nil || response.Status != c.status || !bytes.Contains(body, []byte(c.want)) {
				t.Errorf("status %d, %s, %v; want %d and %q", response.Status, body, err, c.status, c.want)
			}
		})
	}
}

func envelope(inner string) []byte {
	return []byte(`<s:Envelope xmlns:s="` + soap.NSSOAP12 + `">` + inner + `</s:Envelope>`)
}

func TestOlderClientsAreAnsweredInTheirVersion(t *testing.T) {
	for _, h := range []soap.Header{{}, {Action: "urn:PutRequest", MessageID: "urn:m", To: soap.EPR{Address: "http://hq/"}}} {
		response := answerHTTP(echo, time.Now(), request.Request{Path: "/", Body: soap.Envelope(soap.SOAP11, h, "", "<a/>")})
		m, err := soap.ParseMessage(response.Body)
		if err != nil || m.SOAP != soap.SOAP11 || m.RelatesTo != h.MessageID || response.ContentType != "text/xml; charset=utf-8" || !m.Body.Is("", "a") {
			t.Errorf("%v, %+v, %s; want an answer in SOAP 1.1", err, m, response.ContentType)
		}
		if h.Action != "" && m.Action != "urn:PutResponse" {
			t.Errorf("action %q; want urn:PutResponse", m.Action)
		}
	}
}

func TestAMessageThatWantsNoReplyGetsNone(t *testing.T) {
	h := soap.Header{Action: "urn:a", MessageID: "urn:m", ReplyTo: soap.None}
	if response := answerHTTP(echo, time.Now(), request.Request{Body: soap.Envelope(soap.SOAP12, h, "", "<a/>")}); response.Status != 202 || len(response.Body) > 0 {
		t.Errorf("%+v; want 202 without content", response)
	}
}

func TestAWrongOptionIsRefused(t *testing.T) {
	many := maxRepeat + 1
	for want, o := range map[string]request.SOAPOptions{
		`envelope "zip": want none, gzip or exi`: {Envelope: "zip"},
		"unicastRepeat 21: want 0 to 20":         {UnicastRepeat: &many},
		"multicastRepeat 21: want 0 to 20":       {MulticastRepeat: &many},
	} {
		if _, err := OpenUDP(request.Setup{TimeoutSeconds: 1, SOAP: o}); err == nil || err.Error() != want {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if _, err := Open(request.Setup{TimeoutSeconds: 1, SOAP: request.SOAPOptions{Envelope: "zip"}}); err == nil {
		t.Error("SOAP over HTTP takes an envelope of zip")
	}
	for want, s := range map[string]request.Setup{
		"timeout 0 s: want more than 0":                                           {},
		`multicast group "hq": want an address of 224.0.0.0 to 239.255.255.255`:   {MulticastGroups: []string{"hq"}},
		`interface "none": want one of this node`:                                 {Interface: "none"},
		`listen at "192.0.2.1:5000": want host:port with an address of this node`: {Listen: "192.0.2.1:5000"},
	} {
		if s.Listen == "" {
			s.Listen = "127.0.0.1:0"
		}
		if want != "timeout 0 s: want more than 0" {
			s.TimeoutSeconds = 1
		}
		if _, err := OpenUDP(s); err == nil || err.Error() != want {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// --- datagrams

var eventually = testtool.Eventually

// lossy passes datagrams between a client and a server, with a delay each way. It drops those that a function says, by their number each way.
func lossy(t *testing.T, server string, delay time.Duration, drop func(toServer bool, number int) bool) (string, *atomic.Int64) {
	t.Helper()
	near, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.Dial("udp4", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		near.Close()
		far.Close()
	})
	var client atomic.Value
	var forth atomic.Int64
	pass := func(toServer bool, read func([]byte) (int, error), write func([]byte)) {
		buffer := make([]byte, MaxDatagram)
		for number := 1; ; number++ {
			n, err := read(buffer)
			if err != nil {
				return
			}
			if toServer {
				forth.Add(1)
			}
			if drop != nil && drop(toServer, number) {
				continue
			}
			datagram := bytes.Clone(buffer[:n])
			time.AfterFunc(delay, func() { write(datagram) })
		}
	}
	go pass(true, func(b []byte) (int, error) {
		n, from, err := near.ReadFrom(b)
		if err == nil {
			client.Store(from)
		}
		return n, err
	}, func(b []byte) { _, _ = far.Write(b) })
	go pass(false, far.Read, func(b []byte) { _, _ = near.WriteTo(b, client.Load().(net.Addr)) })
	return near.LocalAddr().String(), &forth
}

// TestAReplyComesFromTheAddressThatTheRequestWentTo: a node with several networks may send it over another one than the request came by.
func TestAReplyComesFromTheAddressThatTheRequestWentTo(t *testing.T) {
	_, port, err := net.SplitHostPort(requesttest.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	openUDP(t, request.Setup{Listen: "0.0.0.0:" + port, Handler: echo, Receipt: true})
	client := openUDP(t, request.Setup{Receipt: true, TimeoutSeconds: 2})
	response, _, err := client.Do(t.Context(), "127.0.0.77:"+port, request.Request{Path: "/", Body: []byte("x"), ContentType: "text/plain"}, request.Events{})
	if err != nil || string(response.Body) != "x" {
		t.Errorf("%v, response %q; want x", err, response.Body)
	}
}

func openUDP(t *testing.T, s request.Setup) *overUDP {
	t.Helper()
	return requesttest.Start(t, OpenUDP, s).(*overUDP)
}

func TestTheResponseTimeOverUDPIsTheSumOfTheDelays(t *testing.T) {
	const oneWay, work, slack = 20 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond
	at := requesttest.Address(t)
	openUDP(t, request.Setup{Listen: at, Handler: func(time.Time, request.Request) request.Response {
		time.Sleep(work)
		return request.Response{}
	}})
	through, _ := lossy(t, at, oneWay, nil)
	client := openUDP(t, request.Setup{Receipt: true})
	best := time.Hour
	for i := 0; i < 8 || i < 80 && best > 2*oneWay+work+slack; i++ {
		var e requesttest.Events
		_, answered, err := client.Do(t.Context(), through, request.Request{Path: "/"}, e.Record())
		if err != nil {
			t.Fatal(err)
		}
		whole := answered.Sub(e.Sent[0])
		if whole < 2*oneWay+work {
			t.Errorf("request %d: answered after %v; want %v at least", i, whole, 2*oneWay+work)
		}
		best = min(best, whole)
	}
	// A busy machine adds to most.
	if best > 2*oneWay+work+slack {
		t.Errorf("the fastest is answered after %v; want %v", best, 2*oneWay+work)
	}
}

func TestALostDatagramIsSentAgainByTheRule(t *testing.T) {
	at := requesttest.Address(t)
	var handled atomic.Int64
	openUDP(t, request.Setup{Listen: at, Handler: func(time.Time, request.Request) request.Response {
		handled.Add(1)
		return request.Response{}
	}})
	through, forth := lossy(t, at, 0, func(toServer bool, number int) bool { return toServer && number%4 != 0 })
	repeats := 3
	client := openUDP(t, request.Setup{Receipt: true, SOAP: request.SOAPOptions{UnicastRepeat: &repeats}})
	for range 3 {
		var e requesttest.Events
		if _, _, err := client.Do(t.Context(), through, request.Request{Path: "/"}, e.Record()); err != nil || len(e.Sent) != 1 || len(e.Retransmitted) != 3 {
			t.Fatalf("%v, %+v; want three repetitions", err, e)
		}
		gaps := []time.Duration{e.Retransmitted[0].Sub(e.Sent[0]), e.Retransmitted[1].Sub(e.Retransmitted[0]), e.Retransmitted[2].Sub(e.Retransmitted[1])}
		for i, gap := range gaps { // which a busy machine makes longer
			if least := min(standard.shortest<<i, standard.upper); gap < least {
				t.Errorf("repetition %d after %v; want %v at least", i+1, gap, least)
			}
		}
	}
	if handled.Load() != 3 || forth.Load() != 12 {
		t.Errorf("%d requests handled, %d datagrams; want 3 and 12", handled.Load(), forth.Load())
	}
}

func TestTheDelaysAreThoseOfTheStandard(t *testing.T) {
	p := openUDP(t, request.Setup{})
	var shortest, longest time.Duration = time.Hour, 0
	for range 2000 {
		delays := p.delays(6)
		shortest, longest = min(shortest, delays[0]), max(longest, delays[0])
		for i, d := range delays[1:] {
			if d != min(2*delays[i], standard.upper) {
				t.Fatalf("delays %v", delays)
			}
		}
	}
	if shortest < standard.shortest || shortest > standard.shortest+time.Millisecond || longest > standard.longest || longest < standard.longest-time.Millisecond {
		t.Errorf("first delays from %v to %v; want %v to %v", shortest, longest, standard.shortest, standard.longest)
	}
}

func TestALostReplyIsMadeUpForByItsCopy(t *testing.T) {
	at := requesttest.Address(t)
	var handled atomic.Int64
	openUDP(t, request.Setup{Listen: at, Handler: func(time.Time, request.Request) request.Response {
		handled.Add(1)
		return request.Response{Body: []byte("<a/>"), ContentType: "text/xml"}
	}})
	through, _ := lossy(t, at, 0, func(toServer bool, number int) bool { return !toServer && number == 1 })
	response, _, err := openUDP(t, request.Setup{Receipt: true}).Do(t.Context(), through, request.Request{Path: "/"}, request.Events{})
	if err != nil || string(response.Body) != "<a/>" || handled.Load() != 1 {
		t.Errorf("%v, %q, handled %d times; want the reply, handled once", err, response.Body, handled.Load())
	}
}

func TestACopyOfAMessageIsHandledOnce(t *testing.T) {
	var handled int
	p := openUDP(t, request.Setup{Handler: func(time.Time, request.Request) request.Response {
		handled++
		return request.Response{}
	}})
	datagram := soap.Envelope(soap.SOAP12, soap.Header{Action: "urn:a", MessageID: "urn:1"}, "", "")
	other := soap.Envelope(soap.SOAP12, soap.Header{Action: "urn:a", MessageID: "urn:2"}, "", "")
	answers := 0
	for _, d := range [][]byte{datagram, datagram, other, datagram, other} {
		if p.handle(time.Now(), d, false) != nil {
			answers++
		}
	}
	if handled != 2 || answers != 2 {
		t.Errorf("handled %d, answered %d; want 2 and 2", handled, answers)
	}
}

func TestTheOldestMessagesAreForgotten(t *testing.T) {
	s := newSeen()
	for i := range 3 * remembered {
		if !s.add(fmt.Sprint(i)) {
			t.Fatalf("message %d is known", i)
		}
	}
	if s.add(fmt.Sprint(2*remembered)) || !s.add("0") || len(s.ids) > remembered {
		t.Errorf("%d ids are known; want the last %d", len(s.ids), remembered)
	}
}

func TestAnAnswerIsNotAnswered(t *testing.T) {
	p := openUDP(t, request.Setup{})
	for name, datagram := range map[string][]byte{
		"a reply":     soap.Envelope(soap.SOAP12, soap.Header{Action: "urn:a", MessageID: "urn:1", RelatesTo: "urn:0"}, "", ""),
		"a fault":     soap.FaultEnvelope(soap.SOAP12, soap.Header{Action: soap.ActionFault}, "", &soap.Fault{Code: soap.Sender, Reason: "x"}, ""),
		"no envelope": []byte("<a/>"),
		"nothing":     {},
	} {
		if answered := p.handle(time.Now(), datagram, false); answered != nil {
			t.Errorf("%s is answered by %s", name, answered)
		}
	}
}

func TestADatagramThatIsNoEnvelopeIsWarnedOfOnce(t *testing.T) {
	var warnings []string
	p := openUDP(t, request.Setup{Warn: func(text string) { warnings = append(warnings, text) }})
	p.handle(time.Now(), []byte("hello"), false)
	p.handle(time.Now(), []byte("hello"), false)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "no SOAP envelope") {
		t.Errorf("warnings %q; want one", warnings)
	}
}

func TestWithoutAReceiptDoReturnsOnceTheMessageIsSent(t *testing.T) {
	at, got := requesttest.Address(t), make(chan request.Request, 10)
	openUDP(t, request.Setup{Listen: at, Handler: func(_ time.Time, r request.Request) request.Response {
		got <- r
		return request.Response{}
	}})
	through, forth := lossy(t, at, 0, nil)
	var e requesttest.Events
	response, answered, err := openUDP(t, request.Setup{}).Do(t.Context(), through, request.Request{Path: "/a", Body: []byte(nffiTrack), ContentType: "text/xml"}, e.Record())
	if err != nil || response.Status != 0 || !answered.IsZero() || len(e.Sent) != 1 || len(e.Retransmitted) != standard.unicast {
		t.Errorf("%v, %+v, %+v", err, response, e)
	}
	r := <-got
	eventually(t, "the copy", func() bool { return forth.Load() == 2 })
	if string(r.Body) != nffiTrack {
		t.Errorf("%q arrived; want the track", r.Body)
	}
}

func TestAFailedDatagramTellsItsReason(t *testing.T) {
	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	small := openUDP(t, request.Setup{Receipt: true, TimeoutSeconds: 0.4})
	large := bytes.Repeat([]byte("x"), MaxDatagram)
	for name, c := range map[string]struct {
		to   string
		body []byte
		want string
		sent int
	}{
		"timeout":   {silent.LocalAddr().String(), nil, "timeout: no response in time", 1},
		"refused":   {requesttest.Address(t), nil, "refused: nobody serves there", 1},
		"no port":   {"hq", nil, `invalid: addressee "hq": want host:port`, 0},
		"too large": {silent.LocalAddr().String(), large, "want at most 65507, as it is one datagram", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second finds what the first left behind
				var e requesttest.Events
				_, _, err := small.Do(t.Context(), c.to, request.Request{Path: "/", Body: c.body, ContentType: "text/plain"}, e.Record())
				if err == nil || !strings.Contains(err.Error(), c.want) || len(e.Sent) != c.sent {
					t.Errorf("%v, sent %d times; want %q, %d", err, len(e.Sent), c.want, c.sent)
				}
			}
		})
	}
}

func TestARefusalOfAnEarlierDatagramDoesNotFailTheNextOne(t *testing.T) {
	t.Parallel()
	at := requesttest.Address(t)
	l := unread(t, at) // so that sending gets the refusal
	earlier, next := l.expect("earlier", []byte("one")), l.expect("next", []byte("two"))
	if _, failure := l.send([]byte("one"), "earlier"); failure != nil {
		t.Fatal(failure)
	}
	waitRefused(t, l)
	server, err := net.ListenPacket("udp4", at)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, failure := l.send([]byte("two"), "next"); failure != nil {
		t.Fatal(failure)
	}
	got := make([]byte, 10)
	_ = server.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, _, err := server.ReadFrom(got); err != nil || string(got[:n]) != "two" {
		t.Errorf("the server received %q, %v; want the second datagram", got[:n], err)
	}
	wantRefused(t, earlier, next)
}

func TestALateRefusalFailsItsOwnRequestOnly(t *testing.T) {
	t.Parallel()
	l := unread(t, requesttest.Address(t))
	earlier, next := l.expect("earlier", []byte("one")), l.expect("next", []byte("two"))
	if _, failure := l.send([]byte("one"), ""); failure != nil {
		t.Fatal(failure)
	}
	waitRefused(t, l)
	l.readRefusals("")
	wantRefused(t, earlier, next)
}

// unread returns a link to an address whose replies nobody reads.
func unread(t *testing.T, to string) *link {
	t.Helper()
	dialer := net.Dialer{Control: control("", false)}
	socket, err := dialer.Dial("udp4", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return &link{socket: socket.(*net.UDPConn), waiting: map[string]waiting{}}
}

// waitRefused waits until the kernel has a refusal for a link: a busy one delivers datagrams later, even to itself.
func waitRefused(t *testing.T, l *link) {
	t.Helper()
	eventually(t, "a refusal", func() bool {
		ready := []unix.PollFd{{}}
		return quietio.Control(l.socket, func(fd int) error {
			ready[0].Fd = int32(fd)
			_, err := unix.Poll(ready, 0)
			return err
		}) == nil && ready[0].Revents&unix.POLLERR != 0
	})
}

func wantRefused(t *testing.T, refused, other <-chan arrival) {
	t.Helper()
	select {
	case a := <-refused:
		if a.failure.Reason != request.Refused {
			t.Errorf("the earlier request: %v; want %s", a.failure, request.Refused)
		}
	default:
		t.Error("the earlier request is not failed")
	}
	select {
	case a := <-other:
		t.Errorf("the next request: %v, although its datagram was not refused", a.failure)
	default:
	}
}

func TestAResponseLargerThanADatagramIsAFault(t *testing.T) {
	at := requesttest.Address(t)
	openUDP(t, request.Setup{Listen: at, Handler: func(time.Time, request.Request) request.Response {
		return request.Response{Body: bytes.Repeat([]byte("x"), MaxDatagram), ContentType: "text/plain"}
	}})
	_, _, err := openUDP(t, request.Setup{Receipt: true}).Do(t.Context(), at, request.Request{Path: "/"}, request.Events{})
	if err == nil || !strings.Contains(err.Error(), "a datagram has at most 65507") {
		t.Errorf("%v; want a fault about the size", err)
	}
}

func TestTheLargestDatagramArrives(t *testing.T) {
	at := requesttest.Address(t)
	openUDP(t, request.Setup{Listen: at, Handler: func(_ time.Time, r request.Request) request.Response {
		return request.Response{Body: fmt.Append(nil, len(r.Body)), ContentType: "text/plain"}
	}})
	client := openUDP(t, request.Setup{Receipt: true})
	empty, _, err := client.datagram(at, request.Request{Path: "/", Body: []byte("x"), ContentType: "text/plain"}, true)
	if err != nil {
		t.Fatal(err)
	}
	most := MaxDatagram - len(empty) + 1
	response, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: bytes.Repeat([]byte("x"), most), ContentType: "text/plain"}, request.Events{})
	if err != nil || string(response.Body) != fmt.Sprint(most) {
		t.Errorf("%v, %s bytes; want %d", err, response.Body, most)
	}
}

func TestAGroupGetsEachMessageOnceAndDoesNotReply(t *testing.T) {
	const group = "239.255.77.30"
	_, number, _ := net.SplitHostPort(requesttest.Address(t))
	var mu sync.Mutex
	got := map[int]int{}
	var members []*overUDP
	for i := range 3 {
		members = append(members, openUDP(t, request.Setup{
			// Each on an address of its own, as nodes are.
			Listen: fmt.Sprintf("127.0.0.%d:%s", i+1, number), Interface: "lo", MulticastGroups: []string{group}, Receipt: true,
			Handler: func(time.Time, request.Request) request.Response {
				mu.Lock()
				defer mu.Unlock()
				got[i]++
				return request.Response{}
			},
		}))
	}
	var e requesttest.Events
	response, answered, err := members[0].Do(t.Context(), group+":"+number, request.Request{Path: "/", Body: []byte(nffiTrack), ContentType: "text/xml"}, e.Record())
	if request.ReasonOf(err) == request.Unreachable {
		t.Skipf("loopback does not carry multicast here: %v", err)
	}
	if err != nil || response.Status != 0 || !answered.IsZero() || len(e.Sent) != 1 || len(e.Retransmitted) != standard.multicast {
		t.Fatalf("%v, %+v, %+v; want no reply and %d repetitions", err, response, e, standard.multicast)
	}
	eventually(t, "the message at the other members", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return got[1] > 0 && got[2] > 0
	})
	mu.Lock()
	defer mu.Unlock()
	if got[0] != 0 || got[1] != 1 || got[2] != 1 {
		t.Errorf("members handled the message %v times; want others once each, and the sender never", got)
	}
}

func TestAPortInUseIsRefusedThoughGroupsShareIt(t *testing.T) {
	for _, at := range []string{requesttest.Address(t), strings.Replace(requesttest.Address(t), "127.0.0.1", "0.0.0.0", 1)} {
		openUDP(t, request.Setup{Listen: at, Interface: "lo", MulticastGroups: []string{"239.255.77.30"}})
		if _, err := OpenUDP(request.Setup{Listen: at, Interface: "lo", MulticastGroups: []string{"239.255.77.30"}, TimeoutSeconds: 1}); err == nil ||
			err.Error() != fmt.Sprintf("listen at %q: another program uses the port", at) {
			t.Errorf("%v; want that the port is in use", err)
		}
	}
}

func TestAMessageToAGroupHasNoReplyThoughItWantsOne(t *testing.T) {
	handled := 0
	p := openUDP(t, request.Setup{Handler: func(time.Time, request.Request) request.Response {
		handled++
		return request.Response{}
	}})
	datagram := soap.Envelope(soap.SOAP12, soap.Header{Action: "urn:a", MessageID: "urn:1"}, "", "")
	if answered := p.handle(time.Now(), datagram, true); answered != nil || handled != 1 {
		t.Errorf("handled %d times, answered by %s; want once and nothing", handled, answered)
	}
}

func TestAReplyRelatesToAMessageWithoutAnAction(t *testing.T) {
	p := openUDP(t, request.Setup{Handler: echo})
	asked := `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://www.w3.org/2005/08/addressing"><s:Header><a:MessageID>urn:7</a:MessageID></s:Header><s:Body/></s:Envelope>`
	answered, err := soap.ParseMessage(p.handle(time.Now(), []byte(asked), false))
	if err != nil || answered.RelatesTo != "urn:7" {
		t.Errorf("%v, %+v; want a reply that relates to urn:7", err, answered)
	}
}

func TestWithoutAGroupNothingOfItArrives(t *testing.T) {
	const group = "239.255.77.31"
	at := requesttest.Address(t)
	_, port, _ := net.SplitHostPort(at)
	got := make(chan string, 10)
	openUDP(t, request.Setup{Listen: ":" + port, Handler: func(_ time.Time, r request.Request) request.Response {
		got <- r.Path
		return request.Response{}
	}})
	// Another program's membership makes the kernel take the group's datagrams.
	openUDP(t, request.Setup{Listen: requesttest.Address(t), Interface: "lo", MulticastGroups: []string{group}})
	client := openUDP(t, request.Setup{Interface: "lo", Receipt: true})
	for _, to := range []string{group + ":" + port, at} {
		path := "/" + map[bool]string{true: "own", false: "group"}[to == at]
		if _, _, err := client.Do(t.Context(), to, request.Request{Path: path}, request.Events{}); err != nil {
			t.Fatal(err)
		}
	}
	if path := <-got; path != "/own" {
		t.Errorf("the first message is %s; want only the one to the node itself", path)
	}
}

func TestAReplyIsAResponseOrHasAReason(t *testing.T) {
	reply := func(h soap.Header, body string) (*soap.Message, error) {
		return parse("", soap.Envelope(soap.SOAP12, h, "", body))
	}
	for want, c := range map[string]struct {
		h    soap.Header
		body string
	}{
		"": {soap.Header{Action: "urn:a", RelatesTo: "urn:1"}, "<a/>"},
		"invalid: the reply relates to another message":                                  {soap.Header{Action: "urn:a", RelatesTo: "urn:2"}, "<a/>"},
		"invalid: the reply is no SOAP envelope: want one Body with one element at most": {soap.Header{Action: "urn:a", RelatesTo: "urn:1"}, "<a/><b/>"},
		"rejected: why": {soap.Header{Action: "urn:a", RelatesTo: "urn:1"}, "<soap:Fault><soap:Reason><soap:Text>why</soap:Text></soap:Reason></soap:Fault>"},
	} {
		m, err := reply(c.h, c.body)
		_, failure := responseOf(m, err, "urn:1")
		got := ""
		if failure != nil {
			got = failure.Error()
		}
		if got != want {
			t.Errorf("%s: %q; want %q", c.body, got, want)
		}
	}
}

func TestOneNodesMessageToItselfArrives(t *testing.T) {
	at := requesttest.Address(t)
	p := openUDP(t, request.Setup{Listen: at, Receipt: true, Handler: echo})
	response, _, err := p.Do(t.Context(), at, request.Request{Path: "/", Body: []byte("x"), ContentType: "text/plain"}, request.Events{})
	if err != nil || string(response.Body) != "x" {
		t.Errorf("%v, %q", err, response.Body)
	}
}

func TestClosingCancelsRequestsOverUDP(t *testing.T) {
	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := openUDP(t, request.Setup{Receipt: true})
	sent := request.Events{Sent: func(time.Time) { go p.Close(context.Background()) }}
	for range 2 {
		if _, _, err := p.Do(t.Context(), silent.LocalAddr().String(), request.Request{Path: "/"}, sent); request.ReasonOf(err) != request.Cancelled {
			t.Errorf("%v; want cancelled", err)
		}
	}
}

func TestManyRequestsAtOnceAreEachAnswered(t *testing.T) {
	at := requesttest.Address(t)
	openUDP(t, request.Setup{Listen: at, Handler: echo})
	client := openUDP(t, request.Setup{Receipt: true})
	var group sync.WaitGroup
	for i := range 300 {
		group.Go(func() {
			want := fmt.Sprint("message ", i)
			response, _, err := client.Do(t.Context(), at, request.Request{Path: "/", Body: []byte(want), ContentType: "text/plain"}, request.Events{})
			if err != nil || string(response.Body) != want {
				t.Errorf("%v, %q; want %q", err, response.Body, want)
			}
		})
	}
	group.Wait()
}
