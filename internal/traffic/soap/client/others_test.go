package client

import (
	"fmt"
	"net"
	"slices"
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

// multicastInterfaces are those on which Java sends and receives multicast by itself.
func multicastInterfaces(t *testing.T) (names []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		v4 := slices.ContainsFunc(addresses, func(a net.Addr) bool {
			network, ok := a.(*net.IPNet)
			return ok && network.IP.To4() != nil
		})
		if err == nil && v4 && i.Flags&net.FlagUp != 0 && i.Flags&net.FlagMulticast != 0 && i.Flags&net.FlagLoopback == 0 {
			names = append(names, i.Name)
		}
	}
	if len(names) == 0 {
		t.Skip("no interface but loopback has multicast")
	}
	return names
}

func TestCXFsServiceInAGroupReceives(t *testing.T) {
	t.Parallel()
	interfaces := multicastInterfaces(t)
	_, port, _ := net.SplitHostPort(requesttest.Address(t))
	group := net.JoinHostPort("239.255.77.41", port)
	program := cxf(t, "udp://"+group)
	for _, name := range interfaces { // CXF chooses one of them
		client := requesttest.Start(t, OpenUDP, request.Setup{Interface: name})
		if _, _, err := client.Do(t.Context(), group, request.Request{Path: "/messages", Body: []byte(`<tell>hello</tell>`), ContentType: "text/xml"}, request.Events{}); err != nil {
			t.Fatal(err)
		}
	}
	program.Says("told <tell>hello</tell>")
}

func TestAMessageOfCXFsClientToAGroupIsReceived(t *testing.T) {
	t.Parallel()
	program, got := cxf(t), make(chan string, 100)
	_, port, _ := net.SplitHostPort(requesttest.Address(t))
	// CXF sends on all of them.
	requesttest.Start(t, OpenUDP, request.Setup{Listen: ":" + port, Interface: multicastInterfaces(t)[0], MulticastGroups: []string{"239.255.77.42"}, Handler: func(at time.Time, r request.Request) request.Response {
		got <- string(r.Body)
		return echo(at, r)
	}})
	program.Send("udp://239.255.77.42:" + port + " yes <track>7</track>") // of which no reply comes, as this is a group
	select {
	case body := <-got:
		if body != "<track>7</track>" {
			t.Errorf("received %s; want the track", body)
		}
	case <-time.After(time.Minute):
		t.Error("nothing arrived")
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
