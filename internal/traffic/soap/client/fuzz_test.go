package client

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/request"
)

// addEnvelopes seeds a fuzzer with envelopes in all encodings.
func addEnvelopes(f *testing.F) {
	f.Helper()
	for _, encoding := range encodings {
		for _, r := range []request.Request{
			{Path: "/a"}, {Path: "/a", Body: []byte(nffiTrack), ContentType: "text/xml"}, {Path: "/a", Body: []byte{0, 1}, ContentType: "a/b", ContentEncoding: "gzip"},
		} {
			for _, receipt := range []bool{true, false} {
				envelope, _, err := newRequest("soap.udp://hq:1/a", r, receipt)
				if err != nil {
					f.Fatal(err)
				}
				data, err := encode(encoding, envelope)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(data)
			}
		}
		fault, err := encode(encoding, faultReply(&soap.Message{Header: soap.Header{MessageID: "urn:1"}}, &soap.Fault{Code: soap.Sender, Reason: "why"}).envelope)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(fault)
	}
	f.Add(envelope(`<s:Header><x:a xmlns:x="urn:x" s:mustUnderstand="1"/></s:Header><s:Body><a b='c'>&#13;</a></s:Body>`))
}

// FuzzReceivedDatagram: whatever comes, the answer is an envelope in a datagram, and no answer to an answer.
func FuzzReceivedDatagram(f *testing.F) {
	addEnvelopes(f)
	f.Fuzz(func(t *testing.T, datagram []byte) {
		p := &overUDP{setup: request.Setup{Handler: echo, Warn: func(string) {}}, seen: newSeen()}
		answered := p.handle(time.Now(), datagram, false)
		if answered == nil {
			return
		}
		m, err := parse(encodingOf(answered), answered)
		if err != nil || len(answered) > MaxDatagram {
			t.Fatalf("answered by %d bytes, which are no envelope (%v): %s", len(answered), err, answered)
		}
		if m.Fault == nil && len(datagram) > 0 {
			asked, err := parse(encodingOf(datagram), datagram)
			if err != nil || m.RelatesTo != asked.MessageID {
				t.Fatalf("related to %q, asked by %+v, %v", m.RelatesTo, asked, err)
			}
		}
		if again := p.handle(time.Now(), answered, false); again != nil && m.RelatesTo != "" {
			t.Fatalf("the answer is answered by %s", again)
		}
	})
}

// FuzzReply: whatever comes as a reply, it is a response or has a reason.
func FuzzReply(f *testing.F) {
	addEnvelopes(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, encoding := range encodings {
			m, err := parse(encoding, data)
			response, failure := responseOf(m, err, "urn:1")
			if failure == nil && !response.Succeeded() || failure != nil && failure.Reason == "" {
				t.Fatalf("%+v, %v", response, failure)
			}
		}
	})
}

// FuzzPostedEnvelope: whatever is posted, the answer has a status of HTTP.
func FuzzPostedEnvelope(f *testing.F) {
	addEnvelopes(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, encoding := range encodings {
			response := answerHTTP(echo, time.Now(), request.Request{Path: "/", Body: data, ContentEncoding: encoding})
			if response.Status < 200 || response.Status > 599 {
				t.Fatalf("%+v", response)
			}
			if len(response.Body) == 0 {
				continue
			}
			envelope, err := decode(response.ContentEncoding, response.Body)
			if err == nil && len(data) > 0 {
				_, err = soap.ParseMessage(envelope, opaque...)
			}
			if err != nil && len(data) > 0 {
				t.Fatalf("answered by %s: %v", response.Body, err)
			}
		}
	})
}
