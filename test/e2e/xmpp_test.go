//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestXMPPClientsOnOtherNodesHearEachOtherThroughProsody(t *testing.T) {
	t.Parallel()
	security := &v1alpha1.Security{TLS: true, Password: true}
	b := makeExperiment(newNamespace(t), "chat").Network("wan", "198.18.9.0/24", "baseline").Duration("20s").
		Publisher("bft", "open", "500ms", 2).Subscriber("picture", "open").
		Publisher("orders", "closed", "1s", 1).Payload("nffi").Subscriber("staff", "closed").
		Node("nor", "wan", "open", "staff").Node("prt", "wan", "closed", "bft", "picture").Node("usa", "wan", "orders", "picture").
		Start("2s", "bft", "orders").Stop("18s", "bft", "orders")
	for i := range b.Spec.Apps {
		if p := b.Spec.Apps[i].Publisher; p != nil {
			p.Protocol, p.Lead = v1alpha1.ProtocolXMPP, "4s" // by then subscribers have heard of the nodes
		}
		if s := b.Spec.Apps[i].Subscriber; s != nil {
			s.Protocol = v1alpha1.ProtocolXMPP
		}
	}
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: "open", Prosody: &v1alpha1.Prosody{}}, v1alpha1.App{Name: "closed", Prosody: &v1alpha1.Prosody{}, Security: security})
	e := b.Obj()
	mustCreate(t, e)
	waitFor(t, e, finishTimeout, v1alpha1.PhaseRunning)
	expectMetrics(t, e, "nor", 9464, "prosody_mod_c2s__connections")
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	results := resultsOf(t, done.UID)
	// Two instances send 24 messages each to two pictures, one sends 12 to one staff.
	if m := results.Messages; m.Sent < 55 || m.Received != m.Expected || m.Lost != 0 || m.Duplicates != 0 || m.Expected < 100 {
		t.Errorf("messages: %+v; want about 60 sent, 108 expected, and every one to arrive once", m)
	}
	for _, p := range results.Publishers {
		if p.Messages.Lost != 0 || p.Messages.Received == 0 {
			t.Errorf("publisher %s: %+v; want all to arrive", p.Name, p.Messages)
		}
	}
}

// expectMetrics reads a port of a node while it runs.
func expectMetrics(t *testing.T, e *v1alpha1.Experiment, node string, port int, metric string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name + "-" + node}}
	eventually(t, time.Minute, fmt.Sprintf("%s among the metrics of node %s at port %d", metric, node, port), func() error {
		status, body := getFromPod(t, pod, port, "/metrics", "")
		if status != http.StatusOK || !strings.Contains(body, metric) {
			return errorf("status %d: %.2000s", status, body)
		}
		return nil
	})
}
