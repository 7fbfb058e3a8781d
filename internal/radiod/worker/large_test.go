//go:build long

package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	scenariocompile "vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	manyNodes = 243
	// convergence is as long as the metric's memory of losses.
	convergence = 64 * time.Second
	// underLoad, then inTransit for the last messages.
	underLoad, inTransit = 5 * time.Minute, 5 * time.Second
	messagePeriod        = 10 * time.Second
	messageBytes         = 900
	messagePort          = 7000
	// The radios send with 25 dBm; 250 kHz and a noise figure of 4 dB make noise of -116 dBm.
	manyPowerDBm, manyNoiseDBm = 25, -116.02
	manyPCR                    = `<pcr><table pktsize="0"><row sinr="18.5" por="0"/><row sinr="21.5" por="100"/></table></pcr>`
)

// TestManyNodesUnderBlueForceTracking has 243 moving nodes route by OLSRv2. Each but the first sends it 900
// bytes every 10 s, for five minutes. One worker carries all and samples as radiod does. Run it with: go test
// -tags long -v -timeout 20m -run ManyNodes ./internal/radiod/worker.
func TestManyNodesUnderBlueForceTracking(t *testing.T) {
	b := manyMovingNodes(t)
	b.begin(t)
	route(t, b.Manager)
	b.change(t, func(spec *v1alpha1.RadioNetworkSpec) { spec.T0 = &metav1.MicroTime{Time: time.Now()} })
	b.ready(t)
	log, endSamples := b.sample(t)
	time.Sleep(convergence)

	sockets := b.reporters(t)
	messages := len(sockets) * int(underLoad/messagePeriod)
	arrived := b.listen(t, messages)
	before, from, cpu := b.total(t), time.Now(), b.processorTime(t)
	report(t, sockets, messages)
	length, used := time.Since(from), b.processorTime(t)-cpu
	time.Sleep(inTransit)
	after := b.total(t)
	endSamples()

	came := arrived()
	t.Logf("%d of %d messages arrived; %.0f %% of a processor under load", came, messages, 100*used.Seconds()/length.Seconds())
	if came < messages/2 {
		t.Error("want more than half of the messages")
	}
	released, late := after.released-before.released, after.late-before.late
	t.Logf("%d frames released, %d of them 2 ms late or later; %d had no room; the loop was late for %v of %v", released, late, after.noRoom-before.noRoom,
		log.late(t, from, from.Add(length)), length)
	if share := float64(late) / float64(released); share > 0.01 {
		t.Errorf("%.2f %% of the frames were late; want at most 1 %%", 100*share)
	}
	if after.noRoom-before.noRoom > released/1000 {
		t.Error("want at most 0.1 % without room")
	}
	if after.routes < 0.9*manyNodes {
		t.Errorf("nodes have %.1f routes on average; want nearly %d", after.routes, manyNodes-1)
	}
}

// manyMovingNodes go to places drawn at random in a square of 12 km, with some 20 neighbours within 121 dB. It is the radio, the movement
// and the routing of scenarios/scale.
func manyMovingNodes(t *testing.T) *physicalBed {
	t.Helper()
	if err := podnet.RaiseNeighbourLimits(); err != nil {
		t.Log(err)
	}
	digest, content := manyMovements(t)
	waveform := radiodtest.RFPipe()
	waveform.RFPipe.PHY.Bandwidth, waveform.RFPipe.PHY.TransmitPower = "250kHz", "25dBm"
	waveform.RFPipe.PCR = manyPCR
	b := newPhysicalBed(t, manyNodes, waveform)
	b.engine = driver.Options{Nice: driver.DefaultNice}
	hello, validity, tc, tcValidity := v1alpha1.Duration("2s"), v1alpha1.Duration("20s"), v1alpha1.Duration("8s"), v1alpha1.Duration("80s")
	b.object.Spec.Routing = &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: &hello, HelloValidity: &validity, TC: &tc, TCValidity: &tcValidity,
		Metric: v1alpha1.MetricDAT}
	b.play(digest, content)
	return b
}

func manyMovements(t *testing.T) (digest string, content []byte) {
	t.Helper()
	spec := v1alpha1.ScenarioSpec{Format: v1alpha1.ScenarioSynthetic,
		Synthetic:   &v1alpha1.SyntheticMovement{Pattern: "RandomWaypoint", Platforms: manyNodes, Duration: "8m", Seed: 1, Spacing: "6000m"},
		Propagation: &v1alpha1.Propagation{Model: v1alpha1.PropagationLogDistance, Frequency: "300MHz"}}
	var text bytes.Buffer
	result, err := scenariocompile.Compile(context.Background(), spec, nil, &text)
	if err != nil {
		t.Fatal(err)
	}
	return result.Digest, text.Bytes()
}

// reporters are sockets of all nodes but the first, to it.
func (b *physicalBed) reporters(t *testing.T) (sockets []net.Conn) {
	t.Helper()
	for _, p := range b.pods[1:] {
		p.do(t, func() error {
			c, err := net.Dial("udp4", fmt.Sprintf("198.18.9.1:%d", messagePort))
			if err == nil {
				sockets = append(sockets, c)
				t.Cleanup(func() { _ = c.Close() })
			}
			return err
		})
	}
	return sockets
}

// listen listens at the first node; arrived ends that, and returns the number of messages.
func (b *physicalBed) listen(t *testing.T, messages int) (arrived func() int) {
	t.Helper()
	at := b.pods[0].listenUDP(t, fmt.Sprintf("198.18.9.1:%d", messagePort))
	came := make(map[uint32]bool, messages)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 2048)
		for {
			n, err := at.Read(buffer)
			if err != nil {
				return
			}
			if n == messageBytes {
				came[binary.BigEndian.Uint32(buffer)] = true
			}
		}
	}()
	return func() int {
		_ = at.Close()
		<-ended
		return len(came)
	}
}

// report sends numbered messages, each node's every period and all spread over it. Without a route a kernel takes none.
func report(t *testing.T, sockets []net.Conn, messages int) {
	t.Helper()
	message, refused := make([]byte, messageBytes), 0
	pause := time.NewTicker(messagePeriod / time.Duration(len(sockets)))
	defer pause.Stop()
	for i := range messages {
		<-pause.C
		binary.BigEndian.PutUint32(message, uint32(i))
		if _, err := sockets[i%len(sockets)].Write(message); err != nil {
			refused++
		}
	}
	t.Logf("%d of %d messages were refused for want of a route", refused, messages)
}

// totals of all nodes.
type totals struct {
	released, late, noRoom uint64
	routes                 float64 // on average
}

func (b *physicalBed) total(t *testing.T) (sum totals) {
	t.Helper()
	for _, n := range b.Counters(false) {
		for i := range n.Nodes {
			c := &n.Nodes[i]
			sum.released += c.Lateness.Count
			for bucket, frames := range c.Lateness.Buckets {
				if bucket >= len(radio.LatenessBounds) || radio.LatenessBounds[bucket] > radio.LateThreshold {
					sum.late += frames
				}
			}
			sum.noRoom += c.RingDrops
			if c.Routing != nil {
				sum.noRoom += c.Routing.ReceiveDrops
				sum.routes += float64(c.Routing.Routes) / float64(len(n.Nodes))
			}
		}
	}
	return sum
}
