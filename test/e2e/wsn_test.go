//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestNFFITracksCrossALinkByWSNotification(t *testing.T) {
	t.Parallel()
	sendNFFI(t, v1alpha1.WSNVignette, 2*time.Second, "vignette_wsnbroker_messages_delivered_total")
}

func TestNFFITracksCrossALinkByTheWSNotificationOfApacheCXF(t *testing.T) {
	t.Parallel()
	// On a busy host it takes 10 s of a processor to be ready.
	sendNFFI(t, v1alpha1.WSNCXF, 45*time.Second, "activemq_totalenqueuecount")
}

// sendNFFI sends tracks through a broker, which has this metric, from a start on.
func sendNFFI(t *testing.T, implementation v1alpha1.WSNImplementation, start time.Duration, metric string) {
	t.Helper()
	b := makeExperiment(newNamespace(t), "notify").Network("wan", "198.18.9.0/24", "line-of-sight").
		Publisher("bft", "broker", "1s", 3).Payload("nffi").Subscriber("picture", "broker")
	p, s := b.Spec.Apps[0].Publisher, b.Spec.Apps[1].Subscriber
	p.Protocol, p.QoS, p.Lead, s.Protocol = v1alpha1.ProtocolWSN, 1, "2s", v1alpha1.ProtocolWSN
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: "broker", WSNBroker: &v1alpha1.WSNBroker{Implementation: implementation}})
	b.Spec.Collect = &v1alpha1.Collect{Captures: []string{"wan"}}
	stop := start + 14*time.Second
	e := b.Node("hq", "wan", "broker").Node("veh", "wan", "bft").Node("uav", "wan", "picture").
		Duration(seconds(stop+4*time.Second)).Start(seconds(start), "bft").Stop(seconds(stop), "bft").Obj()
	mustCreate(t, e)
	waitForT0(t, e, stop-2*time.Second)
	expectMetrics(t, e, "hq", 9464, metric)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	results := resultsOf(t, done.UID)
	// Three instances send 12 messages each.
	if m := results.Messages; m.Sent < 33 || m.Expected != m.Sent || m.Received != m.Expected || m.Lost != 0 || m.Duplicates != 0 {
		t.Errorf("messages: %+v; want about 36 sent, and every one to arrive once", m)
	}
	t.Run("sizes", func(t *testing.T) {
		expectSizes(t, archivedText(t, done, "captures/run/wan/veh.pcapng"), results.Messages.Sent)
	})
}

// expectSizes checks the packets of a publisher's node: one complete HTTP message for each of its own, as large as the published ones.
func expectSizes(t *testing.T, capture string, sent int64) {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	path := filepath.Join(t.TempDir(), "veh.pcapng")
	if err := os.WriteFile(path, []byte(capture), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", path, "-d", "tcp.port==8080,http", "-Y", "http.request && !tcp.analysis.retransmission", "-T", "fields", "-e", "tcp.reassembled.length", "-e", "tcp.len").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if int64(len(lines)) != sent {
		t.Errorf("%d requests cross the link; want %d", len(lines), sent)
	}
	least, most := 1<<30, 0
	for _, line := range lines {
		whole, last, _ := strings.Cut(line, "\t")
		if whole == "" {
			whole = last
		}
		bytes, err := strconv.Atoi(whole)
		if err != nil {
			t.Fatalf("tshark says %q", line)
		}
		least, most = min(least, bytes), max(most, bytes)
	}
	if t.Logf("messages of %d to %d bytes", least, most); least < 1863 || most > 1939 {
		t.Errorf("messages have %d to %d bytes; want 1863 to 1939, as published", least, most)
	}
}
