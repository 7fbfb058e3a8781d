//go:build e2e

package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// A vehicle is out of reach from leaves to returns after T0. Around both times, for the duration of a
// transmission, messages may arrive or not.
const (
	leaves, returns = 15 * time.Second, 30 * time.Second
	blurred         = 100 * time.Millisecond
)

// leaving is an event log in which platform 4 is out of the others' reach for a while. Platform 4 moves every second.
func leaving() string {
	var b strings.Builder
	mesh := func(at time.Duration, lossOfFour int) {
		fmt.Fprintf(&b, "%.1f nem:1 pathloss nem:2,80 nem:3,80 nem:4,%d\n", at.Seconds(), lossOfFour)
		fmt.Fprintf(&b, "%.1f nem:2 pathloss nem:3,80 nem:4,%d\n%.1f nem:3 pathloss nem:4,%d\n", at.Seconds(), lossOfFour, at.Seconds(), lossOfFour)
	}
	for platform := 1; platform <= 3; platform++ {
		fmt.Fprintf(&b, "0.0 nem:%d location gps 58.19,7.9%d,20\n", platform, platform)
	}
	mesh(0, 80)
	for second := range 45 {
		switch time.Duration(second) * time.Second {
		case leaves:
			mesh(leaves, 180)
		case returns:
			mesh(returns, 80)
		}
		fmt.Fprintf(&b, "%d.0 nem:4 location gps 58.2,%.4f,20\n", second, 7.9+0.001*float64(second))
	}
	return b.String()
}

// replay makes a Scenario of an event log.
func replay(t *testing.T, namespace, name, events string) {
	t.Helper()
	mustCreate(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"events.eel": events}})
	mustCreate(t, &v1alpha1.Scenario{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ScenarioSpec{
			Format: v1alpha1.ScenarioEEL, Source: &v1alpha1.ScenarioSource{ConfigMap: name, Key: "events.eel"},
		},
	})
}

// Model replaces the waveform of the last network.
func (b *experimentBuilder) Model(change func(*v1alpha1.Network)) *experimentBuilder {
	network := &b.Spec.Networks[len(b.Spec.Networks)-1]
	network.Waveform = ""
	change(network)
	return b
}

// Replay sets the experiment's movement.
func (b *experimentBuilder) Replay(name string) *experimentBuilder {
	b.Spec.Scenario = &v1alpha1.ScenarioReference{Ref: name}
	return b
}

// widebandPHY reaches up to 141 dB of pathloss.
var widebandPHY = v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "250kHz", TransmitPower: "25dBm", NoiseFigure: "4dB"}

// delivery is one message to one subscriber, a row of the table of deliveries.
type delivery struct {
	publisher, subscriber string
	sent                  time.Duration
	local, lost           bool
}

func deliveriesOf(t *testing.T, e *v1alpha1.Experiment) (all []delivery) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(archivedText(t, e, "results/deliveries.csv"))).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("deliveries.csv has %d rows, %v", len(rows), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		sent, err := strconv.ParseInt(row[column["sent"]], 10, 64)
		if err != nil {
			t.Fatalf("deliveries.csv: %v", err)
		}
		all = append(all, delivery{
			publisher: row[column["publisher"]], subscriber: row[column["subscriber"]],
			sent:  time.Unix(0, sent).Sub(e.Status.T0.Time),
			local: row[column["local"]] == "true", lost: row[column["lost"]] == "true",
		})
	}
	return all
}

// radioLog returns the lines of a run's radio logs with a field.
func radioLog[T any](t *testing.T, e *v1alpha1.Experiment, field string) (lines []T) {
	t.Helper()
	for _, file := range manifestOf(t, e.UID).Files {
		if !strings.HasPrefix(file.Path, "radio/") {
			continue
		}
		for text := range strings.Lines(archivedText(t, e, file.Path)) {
			if !strings.Contains(text, `"`+field+`":`) {
				continue
			}
			var line T
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatalf("%s: %v in %s", file.Path, err, text)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// TestVehicleOutOfReachLosesExactlyWhatIsSentMeanwhile replays an event log over an RF pipe.
func TestVehicleOutOfReachLosesExactlyWhatIsSentMeanwhile(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	replay(t, namespace, "leaving", leaving())
	e := broadcasters(namespace, "reach", 4, "250ms", "bytes:200").Duration("45s").Replay("leaving").
		Model(func(n *v1alpha1.Network) {
			rate := v1alpha1.DataRate("175kbit")
			n.RFPipe = &v1alpha1.RFPipeModel{PHY: widebandPHY, Rate: rate}
		}).Obj()
	e.Spec.Timeline[1].At = "43s"
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	t.Log(brief(results))

	var away int
	for _, d := range deliveriesOf(t, done) {
		if d.local {
			continue
		}
		near := !strings.HasPrefix(d.publisher, "unit4/") && !strings.HasPrefix(d.subscriber, "unit4/")
		switch {
		case near || d.sent < leaves-blurred || d.sent > returns:
			if d.lost {
				t.Errorf("%+v; want it to arrive", d)
			}
		case d.sent > leaves && d.sent < returns-blurred:
			away++
			if !d.lost {
				t.Errorf("%+v; want it lost, as unit4 is out of reach", d)
			}
		}
	}
	if away < 300 {
		t.Errorf("%d deliveries from or to the one out of reach; want some 360", away)
	}
	// 200 bytes and the headers of UDP and MQTT/UDP take 11 ms at 175 kbit/s.
	if cross := group(t, results, "cross"); cross.DelaySeconds == nil || cross.DelaySeconds.Min < 0.0105 {
		t.Errorf("delays %+v; want none below the time on air, 11 ms", cross.DelaySeconds)
	}
	checkSurroundings(t, done)
}

// checkSurroundings wants the movement of unit4, and what its radio received from the others, in the radio log.
func checkSurroundings(t *testing.T, done *v1alpha1.Experiment) {
	t.Helper()
	longitudes := map[float64]bool{}
	for _, line := range radioLog[runapi.RadioPositions](t, done, "positions") {
		if at, ok := line.Positions["unit4"]; ok {
			longitudes[at[1]] = true
		}
	}
	if len(longitudes) < 35 {
		t.Errorf("the radio log has unit4 at %d places; want one for most of 45 seconds", len(longitudes))
	}
	var heard uint64
	pathlosses := map[float64]bool{}
	for _, line := range radioLog[runapi.RadioLinks](t, done, "receiver") {
		for _, from := range line.From {
			if line.Receiver == "unit4" && from.Node == "unit1" && from.PathlossDecibels != nil {
				heard = from.Received
				pathlosses[*from.PathlossDecibels] = true
			}
			if from.SINRDecibels != nil && (*from.SINRDecibels < 60.9 || *from.SINRDecibels > 61.1) {
				t.Errorf("SINR from %s at %s is %v dB; want 25 dBm - 80 dB + 116 dBm = 61 dB", from.Node, line.Receiver, *from.SINRDecibels)
			}
		}
	}
	if heard < 90 || !pathlosses[80] {
		t.Errorf("unit4 heard %d transmissions of unit1 over %v dB; want some 100 over 80 dB", heard, pathlosses)
	}
}

// chain is a line of platforms of which only neighbours are in range of each other.
func chain(platforms int) string {
	var b strings.Builder
	for i := 1; i <= platforms; i++ {
		fmt.Fprintf(&b, "0.0 nem:%d location gps 58.19,%.3f,20\n", i, 7.9+0.01*float64(i))
		for j := i + 1; j <= platforms; j++ {
			loss := 80
			if j > i+1 {
				loss = 180
			}
			fmt.Fprintf(&b, "0.0 nem:%d pathloss nem:%d,%d\n", i, j, loss)
		}
	}
	return b.String()
}

// overChain is a broker at one end of a chain of four over TDMA, and a publisher at the other, which starts once there are routes.
func overChain(namespace string) *v1alpha1.Experiment {
	const start, stop = 12 * time.Second, 42 * time.Second
	routing := &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: new(v1alpha1.Duration("1s")), TC: new(v1alpha1.Duration("1s"))}
	b := makeExperiment(namespace, "chain").Duration(seconds(stop+5*time.Second)).Replay("chain").
		Network("radio", "198.18.9.0/24", "").
		Model(func(n *v1alpha1.Network) {
			n.TDMA = &v1alpha1.TDMAModel{PHY: widebandPHY, Structure: v1alpha1.TDMAStructure{SlotDuration: "10ms"}, Rate: "1Mbit"}
			n.Routing = routing
		}).
		Broker("broker").Subscriber("picture", "broker").Publisher("bft", "broker", "500ms", 1).
		Node("hq", "radio", "broker", "picture").Node("relay1", "radio").Node("relay2", "radio").Node("veh", "radio", "bft").
		Start(seconds(start), "bft").Stop(seconds(stop), "bft")
	e := b.Obj()
	e.Spec.Apps[2].Publisher.Lead = "5s"
	e.Spec.Drain = v1alpha1.Drain{Max: "20s", QuietFor: "5s"}
	return e
}

// TestMessagesCrossThreeHopsOverTDMAByOLSRv2 reaches the broker from the far end of a chain by relays alone.
func TestMessagesCrossThreeHopsOverTDMAByOLSRv2(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	replay(t, namespace, "chain", chain(4))
	e := overChain(namespace)
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	t.Log(brief(results))
	if results.Messages.Sent < 45 || results.Messages.Lost != 0 {
		t.Errorf("%+v; want some 50 messages and none lost", results.Messages)
	}
	// Each hop ends with the end of a slot of 10 ms.
	if results.DelaySeconds == nil || results.DelaySeconds.Min < 0.03 {
		t.Errorf("delays %+v; want none below the three slots that three hops take", results.DelaySeconds)
	}
	slotsAreUsed(t, done)
}

// slotsAreUsed wants every node of a chain to have sent in its own slots.
func slotsAreUsed(t *testing.T, done *v1alpha1.Experiment) {
	t.Helper()
	used := map[string]uint64{}
	for _, sample := range radioLog[runapi.RadioSample](t, done, "framesSent") {
		used[sample.Node] = max(used[sample.Node], sample.SlotsUsed)
	}
	for _, node := range []string{"hq", "relay1", "relay2", "veh"} {
		if used[node] < 30 {
			t.Errorf("%s used %d slots; want at least 30, as every message passes by it", node, used[node])
		}
	}
}

// besideEachOther is an event log of platforms 1 and 2, and of 3 and 4, of which 3 is the stronger one at all others.
const besideEachOther = "0.0 nem:1 pathloss nem:2,95 nem:3,80 nem:4,180\n0.0 nem:2 pathloss nem:3,80 nem:4,180\n0.0 nem:3 pathloss nem:4,80\n"

// TestANetworkOfTheSameSpectrumDisturbsWhileItSends has another network on the air for ten seconds, from 15 s on.
func TestANetworkOfTheSameSpectrumDisturbsWhileItSends(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	replay(t, namespace, "beside", besideEachOther)
	b := broadcasters(namespace, "spectrum", 2, "250ms", "bytes:200").Duration("40s").Replay("beside").
		Model(func(n *v1alpha1.Network) {
			n.Spectrum, n.RFPipe = "band", &v1alpha1.RFPipeModel{PHY: widebandPHY, Rate: "175kbit", Interference: v1alpha1.InterferenceOutOfBand}
		}).
		Network("other", "198.18.10.0/24", "").
		Model(func(n *v1alpha1.Network) {
			n.Spectrum, n.RFPipe = "band", &v1alpha1.RFPipeModel{PHY: widebandPHY, Rate: "100kbit"}
		}).
		Node("loud", "other", "noise").Node("sink", "other")
	// A datagram of 1200 bytes takes nearly the 100 ms until the next one.
	// The second flow keeps some ten of them queued, so that a late sender leaves no gap on the air.
	b.Spec.Apps = append(b.Spec.Apps, v1alpha1.App{Name: "noise", MGEN: &v1alpha1.MGEN{Script: "0.0 ON 1 UDP DST sink/5000 PERIODIC [10 1200]\n" +
		"0.0 ON 2 UDP DST sink/5001 PERIODIC [10 1200]\n1.0 OFF 2\n"}})
	e := b.Start("15s", "noise").Stop("25s", "noise").Obj()
	e.Spec.Timeline[1].At = "38s"
	mustCreate(t, e)
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	lost, arrived := 0, 0
	for _, d := range deliveriesOf(t, done) {
		switch {
		case d.local:
		case d.sent > 16*time.Second && d.sent < 24*time.Second:
			lost++
			if !d.lost {
				t.Errorf("%+v; want it lost while the other network sends", d)
			}
		case d.sent < 14*time.Second || d.sent > 27*time.Second:
			arrived++
			if d.lost {
				t.Errorf("%+v; want it to arrive", d)
			}
		}
	}
	if lost < 50 || arrived < 120 {
		t.Errorf("%d deliveries while the other network sends, %d without it; want some 60 and 180", lost, arrived)
	}
}

// TestEngineThatIsNotInstalledIsRefusedAtOnce requests EMANE from a chart without it.
func TestEngineThatIsNotInstalledIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	if hasEMANE(t) {
		t.Skip("the platform has EMANE")
	}
	e := pair(newNamespace(t), "emane").Model(func(n *v1alpha1.Network) {
		n.RFPipe = &v1alpha1.RFPipeModel{PHY: v1alpha1.PHY{Pathloss: v1alpha1.PathlossFreeSpace}}
		n.Engine = v1alpha1.EngineEMANE
	}).Obj()
	for i := range e.Spec.Nodes {
		e.Spec.Nodes[i].Position = &v1alpha1.Position{Latitude: "58.19", Longitude: v1alpha1.Degrees(fmt.Sprintf("7.9%d", i))}
	}
	mustCreate(t, e)
	eventually(t, time.Minute, "the engine to be refused", func() error {
		now := get(t, e)
		c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionAccepted)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "EngineNotInstalled" {
			return errorf("phase %q, Accepted %+v", now.Status.Phase, c)
		}
		if !strings.Contains(c.Message, "spec.networks[0].engine") {
			t.Errorf("the message %q does not name the field", c.Message)
		}
		return nil
	})
}
