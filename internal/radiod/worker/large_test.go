//go:build long

package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/podnet"
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

// TestManyNodesUnderBlueForceTracking has 243 moving nodes route by OLSRv2 and each but the first send it 900 bytes every 10 s, for five
// minutes, by one worker that samples as radiod does. Nothing may be late, by the thresholds of verdicts, but while the host stands still, and every message must
// have arrived or been lost for a reason: go test -tags long -v -timeout 20m -run ManyNodes ./internal/radiod/worker. It needs a
// machine to itself: what else runs makes it late.
func TestManyNodesUnderBlueForceTracking(t *testing.T) {
	late, samples := manyMovingNodes(t).reportToTheFirst(t, underLoad)
	if want := manyNodes * int(underLoad/time.Second); samples < want*9/10 {
		t.Errorf("%d samples of nodes; want about %d", samples, want)
	}
	if len(late) > 0 {
		t.Errorf("the emulation did not keep up, %d times: %s …", len(late), strings.Join(late[:min(len(late), 10)], "; "))
	}
}

// reportToTheFirst has all nodes report for some time, accounts for every message, and gives what a verdict would call late.
func (b *airBed) reportToTheFirst(t *testing.T, load time.Duration) (late []string, samples int) {
	t.Helper()
	b.begin(t)
	route(t, b.Manager)
	b.change(t, func(spec *v1alpha1.RadioNetworkSpec) { spec.T0 = &metav1.MicroTime{Time: time.Now()} })
	b.ready(t)
	log, endSamples := b.sample(t)
	time.Sleep(convergence)

	sockets := b.reporters(t)
	messages := len(sockets) * int(load/messagePeriod)
	j, endJournal := follow(b, messagePort, messages)
	arrived := b.listen(t, messages)
	from, cpu := time.Now(), b.processorTime(t)
	refused := report(sockets, messages)
	to, used := time.Now(), b.processorTime(t)-cpu
	time.Sleep(inTransit)
	endJournal()
	endSamples()

	b.summarise(t, used.Seconds()/to.Sub(from).Seconds())
	j.account(t, refused, arrived())
	return log.verdict(t, from, to)
}

// manyMovingNodes go to places drawn at random in a square of 12 km, with some 20 neighbours within 121 dB. It is the radio, the movement
// and the routing of scenarios/scale.
func manyMovingNodes(t *testing.T) *airBed {
	t.Helper()
	if err := podnet.RaiseNeighbourLimits(); err != nil {
		t.Log(err)
	}
	digest, content := manyMovements(t)
	waveform := rfpipeOf()
	waveform.RFPipe.PHY.Bandwidth, waveform.RFPipe.PHY.TransmitPower = "250kHz", "25dBm"
	waveform.RFPipe.PCR = manyPCR
	b := newAirBed(t, manyNodes, waveform)
	b.engine = radio.Options{Nice: radio.DefaultNice}
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
func (b *airBed) reporters(t *testing.T) (sockets []net.Conn) {
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

// listen at the first node; arrived ends that, and tells how often each message has come.
func (b *airBed) listen(t *testing.T, messages int) (arrived func() []int) {
	t.Helper()
	at := b.pods[0].listenUDP(t, fmt.Sprintf("198.18.9.1:%d", messagePort))
	times := make([]int, messages)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 2048)
		for {
			n, err := at.Read(buffer)
			if err != nil {
				return
			}
			if number := binary.BigEndian.Uint32(buffer); n == messageBytes && int(number) < messages {
				times[number]++
			}
		}
	}()
	return func() []int {
		_ = at.Close()
		<-ended
		return times
	}
}

// report sends numbered messages, each node's every period and all spread over it, and gives those that a kernel did not take.
func report(sockets []net.Conn, messages int) (refused map[int]string) {
	refused = map[int]string{}
	message := make([]byte, messageBytes)
	pause := time.NewTicker(messagePeriod / time.Duration(len(sockets)))
	defer pause.Stop()
	for i := range messages {
		<-pause.C
		binary.BigEndian.PutUint32(message, uint32(i))
		if _, err := sockets[i%len(sockets)].Write(message); err != nil {
			var number unix.Errno
			errors.As(err, &number)
			refused[i] = number.Error()
		}
	}
	return refused
}

// account for every message, and print what became of them.
func (j *journal) account(t *testing.T, refused map[int]string, arrived []int) {
	t.Helper()
	fates, hops, looped := map[string]int{}, 0, 0
	for i := range j.messages {
		m := &j.messages[i]
		fates[m.fate(refused[i], arrived[i])]++
		if arrived[i] > 0 {
			hops += len(m.radios)
		}
		if m.looped() {
			looped++
		}
	}
	t.Logf("%d messages: %v; those that arrived went %.2f hops; %d passed a radio twice", len(j.messages), fates,
		float64(hops)/float64(max(fates[delivered], 1)), looped)
	for _, dB := range slices.Sorted(maps.Keys(j.sent)) {
		t.Logf("links of %d to %d dB: %d frames, %.0f %% arrived", dB, dB+1, j.sent[dB], 100*float64(j.arrived[dB])/float64(j.sent[dB]))
	}
	if fates[delivered] < len(j.messages)/2 {
		t.Errorf("%d of %d messages arrived; want more than half", fates[delivered], len(j.messages))
	}
	if fates[unexplained] > 0 {
		t.Errorf("of %d messages nobody knows what became of them", fates[unexplained])
	}
}

// summarise prints what radiod has counted since it began, and what it takes.
func (b *airBed) summarise(t *testing.T, processors float64) {
	t.Helper()
	for _, n := range b.Counters(false) {
		var frames, routes uint64
		reasons := map[string]uint64{}
		for i := range n.Nodes {
			c := &n.Nodes[i]
			frames += c.FramesReceived
			c.eachDrop(func(reason string, frames uint64) { reasons[reason] += frames })
			if c.Routing != nil {
				routes += uint64(c.Routing.Routes)
			}
		}
		mean := float64(routes) / float64(len(n.Nodes))
		t.Logf("%d nodes: %.1f routes each, %d frames received, others not received in range by reason %v; %.0f %% of a processor under load", len(n.Nodes),
			mean, frames, reasons, 100*processors)
		if mean < 0.9*manyNodes {
			t.Errorf("nodes have %.1f routes on average; want nearly %d", mean, manyNodes-1)
		}
	}
}
