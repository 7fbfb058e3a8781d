package soapreq

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/testcapture"
	"vignette.dev/vignette/internal/testjava"
	"vignette.dev/vignette/internal/traffic/request"
	"vignette.dev/vignette/internal/traffic/request/requesttest"
)

// cxf starts Apache CXF with services.
func cxf(t *testing.T, services ...string) *testjava.Program {
	t.Helper()
	libraries, _ := testjava.Jars(t, "testdata/pom.xml")
	p := testjava.Start(t, testjava.Compile(t, libraries, "testdata/CXF.java"), "CXF", services...)
	p.Says("ready")
	return p
}

func TestCXFsServicesAnswer(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{"HTTP": requesttest.Address(t), "UDP": requesttest.Address(t)}
	cxf(t, "http://"+addresses["HTTP"]+"/echo", "udp://"+addresses["UDP"])
	for name, open := range transports {
		t.Run(name, func(t *testing.T) {
			client := requesttest.Start(t, open, request.Setup{})
			for range 2 {
				response, _, err := client.Do(t.Context(), addresses[name], request.Request{Path: "/echo", Body: []byte(nffiTrack), ContentType: "text/xml"}, request.Events{})
				if err != nil {
					t.Fatal(err)
				}
				got, err := soap.ParseXML(response.Body)
				if err != nil || !got.Is("urn:nato:fft:protocols:nffi13", "NFFIMessage") || got.Children[0].Text != "x & y" || got.Children[0].Attribute("a") != "1" {
					t.Errorf("%v, %s; want the track", err, response.Body)
				}
			}
			json := []byte(`{"a": "<&>"}`)
			response, _, err := client.Do(t.Context(), addresses[name], request.Request{Path: "/echo", Body: json, ContentType: "application/json"}, request.Events{})
			if err != nil || string(response.Body) != string(json) || response.ContentType != "application/json" {
				t.Errorf("%v, %s as %s; want JSON", err, response.Body, response.ContentType)
			}
			_, _, err = client.Do(t.Context(), addresses[name], request.Request{Path: "/echo", Body: []byte("<refuse/>"), ContentType: "text/xml"}, request.Events{})
			if err == nil || err.Error() != "rejected: the queue is full" {
				t.Errorf("%v; want CXF's fault", err)
			}
		})
	}
}

func TestCXFsClientsAreAnswered(t *testing.T) {
	t.Parallel()
	program := cxf(t)
	// CXF's client takes a late copy of a reply for the reply to its next request.
	never := 0
	for name, open := range transports {
		at, got := requesttest.Address(t), make(chan request.Request, 10)
		requesttest.Start(t, open, request.Setup{Listen: at, SOAP: request.SOAPOptions{UnicastRepeat: &never}, Handler: func(at time.Time, r request.Request) request.Response {
			got <- r
			if strings.HasPrefix(string(r.Body), "<refuse") {
				return request.Response{Status: 503, Body: []byte("full over " + name), ContentType: "text/plain"}
			}
			return echo(at, r)
		}})
		scheme := map[string]string{"HTTP": "http://", "UDP": "udp://"}[name]
		for _, addressing := range []string{"yes", "no"} {
			mark := name + addressing
			program.Step(scheme+at+"/messages "+addressing+` <x:track xmlns:x="urn:n"><id>`+mark+`</id></x:track>`, `answer <x:track xmlns:x="urn:n"><id>`+mark+`</id></x:track>`)
			r := <-got
			// Without WS-Addressing a datagram tells no path.
			if want := map[bool]string{true: "/", false: "/messages"}[name == "UDP" && addressing == "no"]; r.Path != want || r.ContentType != xmlType {
				t.Errorf("%s: path %s, content %s; want %s, %s", mark, r.Path, r.ContentType, want, xmlType)
			}
		}
		program.Step(scheme+at+"/ yes <refuse/>", "fault Receiver full over "+name)
		<-got
	}
}

func TestTsharkDissectsEnvelopes(t *testing.T) {
	addresses := map[string]string{"HTTP": requesttest.Address(t), "UDP": requesttest.Address(t)}
	_, http, _ := net.SplitHostPort(addresses["HTTP"])
	_, udp, _ := net.SplitHostPort(addresses["UDP"])
	capture := testcapture.Start(t, fmt.Sprintf("tcp port %s or udp port %s", http, udp))
	requests := 0
	for name, open := range transports {
		requesttest.Start(t, open, request.Setup{Listen: addresses[name], Handler: echo})
		client := requesttest.Start(t, open, request.Setup{})
		for _, r := range []request.Request{
			{Path: "/messages", Body: []byte(nffiTrack), ContentType: "text/xml"}, {Path: "/messages", Body: []byte(`{"a": 1}`), ContentType: "application/json"},
			{Path: "/messages", Body: []byte{0, 1, 2}, ContentType: "application/cbor"}, {Path: "/"},
		} {
			if _, _, err := client.Do(t.Context(), addresses[name], r, request.Events{}); err != nil {
				t.Fatal(err)
			}
			requests++
		}
	}
	read := capture.Dissect("-d", "tcp.port=="+http+",http", "--enable-heuristic", "xml_udp")
	if n := strings.Count(read, "eXtensible Markup Language"); n < 2*requests {
		t.Errorf("tshark dissects %d envelopes; want %d at least", n, 2*requests)
	}
}
