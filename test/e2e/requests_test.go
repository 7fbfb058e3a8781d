//go:build e2e

package e2e

import (
	"testing"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// answering is a server for one path that knows nothing of vignette.
const answering = `
from http.server import BaseHTTPRequestHandler, HTTPServer
class Tracks(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204 if self.path == "/api/tracks" else 404)
        self.end_headers()
HTTPServer(("", 9000), Tracks).serve_forever()
`

// requesting has three nodes over a link: messages by CoAP to all, and reports of one node to another by SOAP over a pair of proxies.
// c also runs a server of the user's own, which only answers. From 12 s to 20 s the link carries nothing.
func requesting(namespace, image string) *v1alpha1.Experiment {
	b := makeExperiment(namespace, "requests").Duration("40s")
	b.Spec.Networks = []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24", Link: &v1alpha1.LinkModel{Rate: new(v1alpha1.DataRate("2Mbit")), Delay: "20ms"}}}
	b.Spec.Apps = []v1alpha1.App{
		{Name: "chat", Messaging: &v1alpha1.Messaging{Transport: v1alpha1.TransportCoAP, Encoding: v1alpha1.EncodingCBOR, Timeout: "60s", Messages: []v1alpha1.ScriptedMessage{
			{At: "4s", From: "a", To: "all", Text: "before the cut"}, {At: "14s", From: "b", To: "c", Text: "while the link is cut"}}}},
		{Name: "report", Messaging: &v1alpha1.Messaging{Transport: v1alpha1.TransportSOAP, Encoding: v1alpha1.EncodingEXI, Timeout: "60s", Via: "near", Reply: "bytes:2000",
			Push: &v1alpha1.Push{From: []string{"a"}, To: "c", Period: "2s", Payload: "nffi", Lead: "4s", Phase: v1alpha1.PushPhase(v1alpha1.PhaseAligned)}}},
		{Name: "near", Proxy: &v1alpha1.Proxy{Peer: "far", Compression: v1alpha1.ProxyCompressionZstd}},
		{Name: "far", Proxy: &v1alpha1.Proxy{}},
		{Name: "tracks", Image: image, Command: []string{"python3", "-c", answering}},
		{Name: "client", Messaging: &v1alpha1.Messaging{Transport: v1alpha1.TransportHTTP, Server: "tracks", Port: 9000, Path: "/api/tracks",
			Push: &v1alpha1.Push{To: "c", Period: "3s", Lead: "22s", Phase: v1alpha1.PushPhase(v1alpha1.PhaseAligned)}}},
	}
	b.Node("a", "wan", "chat", "report", "near").Node("b", "wan", "chat", "client").Node("c", "wan", "chat", "report", "far", "tracks")
	b.Spec.Timeline = []v1alpha1.TimelineEntry{
		{At: "12s", Set: []v1alpha1.RadioChange{{Network: "wan", Silent: new(true)}}},
		{At: "20s", Set: []v1alpha1.RadioChange{{Network: "wan", Silent: new(false)}}},
		{At: "25s", Stop: []string{"report"}},
		{At: "33s", Stop: []string{"client"}},
	}
	return b.Obj()
}

func TestRequestsAreDeliveredOnceAndAnsweredAcrossACutOfTheLink(t *testing.T) {
	t.Parallel()
	e := requesting(newNamespace(t), analysisImage(t))
	mustCreate(t, e)
	results := resultsOf(t, waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded).UID)
	for name, want := range map[string]int64{"a/chat": 2, "b/chat": 1, "a/report": 11} {
		p := publisherOf(t, results, name)
		if p.Requests == nil {
			t.Errorf("%s has no results of requests", name)
			continue
		}
		if m, r := p.Messages, p.Requests; m.Sent != want || m.Received != want || m.Duplicates != 0 || r.Receipts != want || r.FailedCount() != 0 {
			t.Errorf("%s: messages %+v, requests %+v; want %d, each delivered once and answered", name, m, *r, want)
		}
	}
	if own := publisherOf(t, results, "b/client").Requests; own == nil || own.Triggered != 4 || own.Receipts != own.Triggered {
		t.Errorf("requests to the own server: %+v; want 4, all answered with a receipt", own)
	}
	late := publisherOf(t, results, "b/chat").Requests
	if late != nil && late.ResponseSeconds != nil && (late.Retransmissions == nil || *late.Retransmissions < 1 || late.ResponseSeconds.Max < 6) {
		t.Errorf("the request in the cut: %+v; want it retransmitted, and answered after the cut", *late)
	}
	wantNoGaps(t, results)
}

func wantNoGaps(t *testing.T, results runapi.Results) {
	t.Helper()
	for _, gap := range append(results.Gaps, results.Warnings...) {
		t.Errorf("gap %+v; want none", gap)
	}
}
