package hosts

import (
	"bytes"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/peers"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// notes are a Recorder and a Plane without the host.
type notes struct {
	dataplane.Plane
	gaps []runapi.RadioGap
}

func (n *notes) Record(_ string, gaps []runapi.RadioGap, _ []figures.Network) error {
	n.gaps = append(n.gaps, gaps...)
	return nil
}

func (*notes) SetHosts(map[string]peers.Address) error { return nil }

func (*notes) Attach(*dataplane.Port) (dataplane.PortID, error) { return 0, errors.New("no room") }

// connected returns Hosts with a network of nodes here and at host-b, and its log.
func connected() (*Hosts, *notes, *bytes.Buffer) {
	n, log := &notes{}, &bytes.Buffer{}
	h := New(Options{Host: "host-a", Plane: n, Recorder: n, Log: slog.New(slog.NewTextHandler(log, nil)), Changed: func(*v1alpha1.RadioNetwork) {}})
	object := &v1alpha1.RadioNetwork{}
	object.Spec.Members = []v1alpha1.Member{{Node: "nor", NEM: 1, MAC: "02:02:00:00:00:01"}, {Node: "prt", NEM: 2, MAC: "02:02:00:00:00:02"}}
	peer := &v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: base64.StdEncoding.EncodeToString(make([]byte, peers.KeyLength))}
	object.Status.Hosts = []v1alpha1.RadioNetworkHost{{Host: "host-b", NEMs: []int32{2}, Peer: peer}}
	h.Connect("net", object, nil)
	return h, n, log
}

func TestANodeAtAnotherHostThatCannotBeAttachedIsLogged(t *testing.T) {
	_, _, log := connected()
	if text := log.String(); !strings.Contains(text, "prt at host host-b") || !strings.Contains(text, "no room") {
		t.Errorf("log %q; want the node and why", text)
	}
}

func TestAGapHasTheTimesAndCountsOfItsEvents(t *testing.T) {
	h, n, _ := connected()
	h.ReachabilityChanged(&dataplane.Event{Host: "host-b", Since: 500, At: 1000})
	h.ReachabilityChanged(&dataplane.Event{Host: "host-b", Again: true, Since: 500, At: 1500})
	h.ReachabilityChanged(&dataplane.Event{Host: "host-b", Reachable: true, Since: 500, At: 2000, Lost: 7})
	if len(n.gaps) != 2 || n.gaps[0].TimeNanoseconds != 1000 || n.gaps[0].FromNanoseconds != 500 {
		t.Fatalf("gaps %+v; want two, the first from 500", n.gaps)
	}
	if g := n.gaps[1]; g.FromNanoseconds != 500 || g.ToNanoseconds != 2000 || g.FramesLost != 7 {
		t.Errorf("gap %+v; want 7 frames from 500 to 2000", g)
	}
}

func TestOtherHostsEntriesAreChecked(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(make([]byte, peers.KeyLength))
	for name, c := range map[string]struct {
		peer v1alpha1.RadioPeer
		want string
	}{
		"good":       {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: good}, ""},
		"no port":    {v1alpha1.RadioPeer{Address: "192.0.2.7", Key: good}, "peer.address"},
		"a name":     {v1alpha1.RadioPeer{Address: "host:9601", Key: good}, "peer.address"},
		"short key":  {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: good[:20]}, "peer.key"},
		"not base64": {v1alpha1.RadioPeer{Address: "192.0.2.7:9601", Key: "§"}, "peer.key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsePeer(&c.peer)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
		})
	}
}
