//go:build long

package worker

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	scenariocompile "vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	manyNodes                = 243
	convergence, measurement = 60 * time.Second, 60 * time.Second
	messagePeriod            = 10 * time.Second
)

// TestManyNodesUnderBlueForceTracking has 243 moving nodes route by OLSRv2 and each send 900 bytes every 10 s to the first one, all
// by one worker: go test -tags long -v -run ManyNodes ./internal/radiod/worker. How late it was is printed, not judged: that depends
// on what else the machine does. So is the share of datagrams that arrive.
func TestManyNodesUnderBlueForceTracking(t *testing.T) {
	b := manyMovingNodes(t)
	b.begin(t)
	route(t, b.Manager)
	b.change(t, func(spec *v1alpha1.RadioNetworkSpec) { spec.T0 = &metav1.MicroTime{Time: time.Now()} })
	b.ready(t)
	time.Sleep(convergence)

	var received atomic.Int64
	at := b.pods[0].listenUDP(t, "198.18.9.1:7000")
	go func() {
		buffer := make([]byte, 2048)
		for {
			if _, err := at.Read(buffer); err != nil {
				return
			}
			received.Add(1)
		}
	}()
	b.Counters(true)
	cpu := processorTime(t)
	sent := b.report(t)
	used := processorTime(t) - cpu
	time.Sleep(5 * time.Second)
	summarise(t, b.Counters(true), used)
	// Nothing says how many should: the reasons of the losses are printed beside it.
	t.Logf("%d of %d datagrams arrived", received.Load(), sent)
	if received.Load() == 0 {
		t.Error("no datagram arrived")
	}
}

// manyMovingNodes go to places drawn at random in a square of 12 km, with some 20 neighbours within 121 dB.
func manyMovingNodes(t *testing.T) *airBed {
	t.Helper()
	spec := v1alpha1.ScenarioSpec{Format: v1alpha1.ScenarioSynthetic,
		Synthetic:   &v1alpha1.SyntheticMovement{Pattern: "RandomWaypoint", Platforms: manyNodes, Duration: "5m", Seed: 1, Spacing: "6000m"},
		Propagation: &v1alpha1.Propagation{Model: v1alpha1.PropagationLogDistance, Frequency: "300MHz"}}
	var content bytes.Buffer
	result, err := scenariocompile.Compile(context.Background(), spec, nil, &content)
	if err != nil {
		t.Fatal(err)
	}
	waveform := rfpipeOf()
	waveform.RFPipe.PHY.Bandwidth, waveform.RFPipe.PHY.TransmitPower = "250kHz", "25dBm"
	waveform.RFPipe.PCR = `<pcr><table pktsize="0"><row sinr="18.5" por="0"/><row sinr="21.5" por="100"/></table></pcr>`
	b := newAirBed(t, manyNodes, waveform)
	hello, validity, tc, tcValidity := v1alpha1.Duration("2s"), v1alpha1.Duration("20s"), v1alpha1.Duration("8s"), v1alpha1.Duration("80s")
	b.object.Spec.Routing = &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: &hello, HelloValidity: &validity, TC: &tc, TCValidity: &tcValidity}
	b.play(result.Digest, content.Bytes())
	return b
}

// report has every node but the first send a datagram each period, spread over it.
func (b *airBed) report(t *testing.T) (sent int64) {
	t.Helper()
	var sockets []net.Conn
	for _, p := range b.pods[1:] {
		p.do(t, func() error {
			c, err := net.Dial("udp4", "198.18.9.1:7000")
			if err == nil {
				sockets = append(sockets, c)
				t.Cleanup(func() { c.Close() })
			}
			return err
		})
	}
	message := make([]byte, 900)
	pause := time.NewTicker(messagePeriod / time.Duration(len(sockets)))
	defer pause.Stop()
	end := time.Now().Add(measurement)
	for i := 0; time.Now().Before(end); i++ {
		if _, err := sockets[i%len(sockets)].Write(message); err == nil {
			sent++
		}
		<-pause.C
	}
	return sent
}

func summarise(t *testing.T, networks []NetworkCounters, used time.Duration) {
	t.Helper()
	for _, n := range networks {
		var late, frames, routes uint64
		var worst int64
		reasons := map[string]uint64{}
		for i := range n.Nodes {
			c := &n.Nodes[i]
			late, worst, frames = late+c.LateReleases, max(worst, c.WorstLateness), frames+c.FramesReceived
			c.Dropped(func(reason string, frames uint64) { reasons[reason] += frames })
			if c.Routing != nil {
				routes += uint64(c.Routing.Routes)
			}
		}
		t.Logf("%d nodes: %.1f routes each, %d frames received since the start, %d released over 2 ms late in %v, at worst %v; %d of %d steps late, at worst %v; %.0f %% of a processor",
			len(n.Nodes), float64(routes)/float64(len(n.Nodes)), frames, late, measurement, time.Duration(worst), n.LateSteps, n.Steps, n.WorstStepLateness,
			100*used.Seconds()/measurement.Seconds())
		t.Logf("frames not received, at each receiver in range, by reason: %v", reasons)
		if mean := float64(routes) / float64(len(n.Nodes)); mean < 0.9*manyNodes {
			t.Errorf("nodes have %.1f routes on average; want nearly %d", mean, manyNodes-1)
		}
	}
}
