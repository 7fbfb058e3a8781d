package mgenapp_test

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/mgenapp"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

const lossy = `
spec:
  networks:
  - {name: radio0, subnet: 198.18.0.0/16, link: {delay: 20ms, loss: 20%}}
  apps:
  - name: flows
    mgen:
      script: |
        3.5 ON 1 UDP DST b/5000 PERIODIC [100 200] COUNT 300
        3.5 ON 2 TCP DST b/5001 PERIODIC [4 3000] COUNT 6
        3.5 ON 3 UDP DST 239.1.2.3/5000 POISSON [100 100] COUNT 200
        3.5 ON 4 UDP DST b/5009 PERIODIC [10 100] COUNT 20
  - name: sink
    mgen:
      script: |
        0.0 LISTEN UDP 5000
        0.0 LISTEN TCP 5001
        0.0 JOIN 239.1.2.3
  nodes:
  - {name: a, networks: [radio0], apps: [flows]}
  - {name: b, networks: [radio0], apps: [sink]}
`

// rendered are the apps as the operator renders them, by node.
func rendered(t *testing.T) map[string]apps.Rendering {
	t.Helper()
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict([]byte(lossy), e); err != nil {
		t.Fatal(err)
	}
	expanded, errs := topology.Expand(&e.Spec)
	in := render.Input{Experiment: e, Topology: expanded}
	if errs = append(errs, render.CheckScripts(in)...); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	found := map[string]apps.Rendering{}
	for node, sites := range render.MakeSites(in) {
		found[node] = render.KindOf(sites[0].App).Render(sites[0])
	}
	return found
}

// run an app in a namespace until ctx ends; the log is whole when done is closed.
func run(ctx context.Context, t *testing.T, node *radiotest.Node, r apps.Rendering, start time.Time) (log *syncbuffer.Buffer, done chan struct{}) {
	t.Helper()
	program := testtool.Need(t, "mgen")
	var config mgenapp.Config
	if err := json.Unmarshal([]byte(r.Files[0].Content), &config); err != nil {
		t.Fatal(err)
	}
	log, done = &syncbuffer.Buffer{}, make(chan struct{})
	runner := &mgenapp.Runner{Config: config, Program: program, Start: start, Dir: t.TempDir(), Log: messagelog.NewWriter(log),
		Out: &syncbuffer.Buffer{}, Warn: func(text string) { t.Log(text) }}
	go func() {
		defer close(done)
		if err := netns.Do(node.Namespace, func() error { return runner.Run(ctx, nil) }); err != nil {
			t.Error(err)
		}
	}()
	return log, done
}

func records(t *testing.T, log *syncbuffer.Buffer) (all []messagelog.Record) {
	t.Helper()
	if bad, err := messagelog.Read(strings.NewReader(log.String()), func(m messagelog.Record) { all = append(all, m) }); bad > 0 || err != nil {
		t.Errorf("message log: %d bad lines, %v", bad, err)
	}
	return all
}

// know a peer without ARP, whose requests the link would lose as well: what waits for the third one would be a loss of another kind.
func know(t *testing.T, n, peer *radiotest.Node) {
	t.Helper()
	err := netns.Do(n.Namespace, func() error {
		return netlink.NeighSet(&netlink.Neigh{LinkIndex: n.Index, State: netlink.NUD_PERMANENT, IP: net.IPv4(198, 18, 0, byte(peer.NEM)), HardwareAddr: peer.MAC})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFlowsOverALinkWithKnownLossLoseThatMuch(t *testing.T) {
	t.Parallel()
	const loss, delay = 0.2, 20 * time.Millisecond
	bed := radiotest.NewBed(t, 2, link.New(link.Config{Default: link.Parameters{Delay: delay, Loss: loss, Limit: 1000}}))
	for i, n := range bed.Nodes {
		n.Quiet()
		know(t, n, bed.Nodes[1-i])
	}
	r := rendered(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := time.Now()
	sender, sent := run(ctx, t, bed.Nodes[0], r["a"], start)
	receiver, received := run(ctx, t, bed.Nodes[1], r["b"], start)
	time.Sleep(8500 * time.Millisecond)
	cancel()
	<-sent
	<-received

	count, times := map[string]int{}, map[string]int64{}
	for _, m := range records(t, sender) {
		count[m.Instance]++
		times[m.ID+m.Topic] = m.TimeNanoseconds
	}
	if want := []string{"a/flows/1", "a/flows/2", "a/flows/3", "a/flows/4"}; !slices.Equal(r["a"].Senders, want) || len(r["a"].Subscriptions) > 0 {
		t.Errorf("the plan has senders %q, subscriptions %q", r["a"].Senders, r["a"].Subscriptions)
	}
	arrived := map[string]int{}
	for _, m := range records(t, receiver) {
		at, ok := times[m.ID+m.Topic]
		if !ok || m.TimeNanoseconds-at < int64(delay) || m.Instance != "b/sink" || !slices.Contains(r["b"].Subscriptions[0], m.Topic) {
			t.Fatalf("received %+v, sent at %d; want it at b/sink, 20 ms after it was sent, on a topic of %q", m, at, r["b"].Subscriptions)
		}
		arrived[strings.Split(m.ID, "_")[0]]++
	}
	// TCP repeats what is lost, but how long that takes is chance: connecting alone may take seconds.
	if n := count["a/flows/2"]; n > 6 || arrived["a/2"] > n {
		t.Errorf("flow 2: %d sent, %d received; want 6 at most, and none twice", n, arrived["a/2"])
	}
	for flow, want := range map[string]struct {
		sent int
		loss float64
	}{"1": {300, loss}, "3": {200, loss}, "4": {20, 1}} {
		n := float64(count["a/flows/"+flow])
		mean, deviation := n*(1-want.loss), math.Sqrt(n*want.loss*(1-want.loss))
		if got := float64(arrived["a/"+flow]); int(n) != want.sent || math.Abs(got-mean) > 5*deviation+1e-9 {
			t.Errorf("flow %s: %v sent, %v received; want %d sent, %.0f ± %.0f received", flow, n, got, want.sent, mean, 5*deviation)
		}
		t.Logf("flow %s: %v sent, %d received", flow, n, arrived["a/"+flow])
	}
}
