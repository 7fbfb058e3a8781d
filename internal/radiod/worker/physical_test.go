package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/metrics"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// physicalBed is a network with a physical layer: real pods, a server of scenarios, and workers that come and go.
type physicalBed struct {
	radiodBed
	*Manager
	server radiodtest.ScenarioStore
	object *v1alpha1.RadioNetwork
	pods   []*pod
	sent   map[int]uint64 // by node
}

// newPhysicalBed has a network of n nodes on platforms 1 to n, without T0.
func newPhysicalBed(t *testing.T, n int, waveform v1alpha1.WaveformSpec) *physicalBed {
	t.Helper()
	b := &physicalBed{radiodBed: newRadiod(t), sent: map[int]uint64{}}
	var uids []string
	for i := range n {
		b.pods = append(b.pods, newPod(t, fmt.Sprintf("pod-%d", i+1)))
		uids = append(uids, b.pods[i].uid)
	}
	b.object = networkOf("run", "vhf", uids...)
	b.object.Generation = 1
	b.object.Spec.Waveform = waveform
	for i := range b.object.Spec.Members {
		b.object.Spec.Members[i].Platform = ptr.To(int32(i + 1))
	}
	return b
}

// begin starts a worker, and attaches all pods the first time.
func (b *physicalBed) begin(t *testing.T) {
	t.Helper()
	first := b.Manager == nil
	b.Manager, _ = b.worker(t)
	b.Networks.Scenarios = &b.server
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	m := b.Manager
	go func() { _ = m.FetchScenarios(ctx) }()
	if !first {
		return
	}
	set(t, b.Manager, b.object)
	for _, p := range b.pods {
		p.attach(t, b.Manager, "vhf")
	}
}

// with a scenario that the server has.
func (b *physicalBed) play(digest string, content []byte) {
	b.server.Put(digest, content)
	b.object.Spec.Scenario = digest
}

// change updates the worker with the changed object.
func (b *physicalBed) change(t *testing.T, change func(spec *v1alpha1.RadioNetworkSpec)) {
	t.Helper()
	b.object = b.object.DeepCopy()
	b.object.Generation++
	change(&b.object.Spec)
	set(t, b.Manager, b.object)
}

// now carries out a change at once, as one made by hand.
func (b *physicalBed) now(t *testing.T, change v1alpha1.RadioChange) {
	t.Helper()
	b.change(t, func(spec *v1alpha1.RadioNetworkSpec) {
		if spec.T0 == nil {
			spec.T0 = &metav1.MicroTime{Time: time.Now().Add(-time.Minute)}
		}
		at := clock.Realtime() - spec.T0.UnixNano()
		spec.Changes = append(spec.Changes, v1alpha1.TimedRadioChange{AtNanoseconds: at, RadioChange: change})
	})
}

// broadcast sends a frame of a node. It returns the moments before it was sent and after it ended, and what
// each node received.
func (b *physicalBed) broadcast(t *testing.T, node int) (heard receivedBy, before, after int64) {
	t.Helper()
	earlier := b.counters()
	before = clock.Realtime()
	b.pods[node-1].sendBroadcasts(t, 1)
	name := fmt.Sprintf("node-%d", node)
	sent := earlier[name].FramesSent + 1
	var now map[string]figures.Node
	eventually(t, name+" has sent its frame", func() bool {
		now = b.counters()
		return now[name].FramesSent == sent && now[name].InFlight == 0
	})
	after = clock.Realtime()
	heard = receivedBy{}
	for other, c := range now {
		heard[other] = int(c.FramesReceived - earlier[other].FramesReceived)
	}
	return heard, before, after
}

type receivedBy map[string]int

func (b *physicalBed) counters() map[string]figures.Node {
	all := map[string]figures.Node{}
	for _, n := range b.Counters(false) {
		for i := range n.Nodes {
			all[n.Nodes[i].Node] = n.Nodes[i]
		}
	}
	return all
}

// receives checks which nodes receive a broadcast of a node.
func (b *physicalBed) receives(t *testing.T, when string, from int, want ...int) {
	t.Helper()
	heard, _, _ := b.broadcast(t, from)
	for i := range b.pods {
		expected := 0
		for _, w := range want {
			if w == i+1 {
				expected = 1
			}
		}
		if got := heard[fmt.Sprintf("node-%d", i+1)]; got != expected {
			t.Errorf("%s: node-%d heard %d frames of node-%d; want %d", when, i+1, got, from, expected)
		}
	}
}

// ready waits until the radios work.
func (b *physicalBed) ready(t *testing.T) {
	t.Helper()
	eventually(t, "the network has nothing to complain of", func() bool {
		_, message, _ := statusOf(b.Manager, string(b.object.UID))
		return message == ""
	})
}

// everybodyNear is a scenario in which platforms 1 to 3 are in good range of each other.
func everybodyNear(t *testing.T) (digest string, content []byte) {
	return radiodtest.Losses(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(0, 1, 3, 80), radiodtest.LossAt(0, 2, 3, 80))
}

func TestANodeOutOfRangeIsNotReceived(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.RFPipe())
	b.play(radiodtest.Losses(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(0, 1, 3, 80), radiodtest.LossAt(0, 2, 3, 80),
		radiodtest.LossAt(time.Second, 1, 3, 200), radiodtest.LossAt(time.Second, 2, 3, 200)))
	b.begin(t)
	b.ready(t)
	b.receives(t, "before T0 the state at t = 0", 1, 2, 3)
	t0 := time.Now().Add(1500 * time.Millisecond)
	b.change(t, func(spec *v1alpha1.RadioNetworkSpec) { spec.T0 = &metav1.MicroTime{Time: t0} })
	eventually(t, "the step is prepared", func() bool { return b.Counters(false)[0].Steps == 1 })
	if time.Now().After(t0.Add(900 * time.Millisecond)) {
		t.Skip("the machine is too busy")
	}
	leaves := t0.Add(time.Second).UnixNano()
	near, far := 0, 0
	for time.Since(t0) < 1500*time.Millisecond {
		heard, before, after := b.broadcast(t, 1)
		switch {
		case after < leaves:
			near++
			if heard["node-3"] != 1 {
				t.Errorf("node-3 did not hear a frame sent %v before it left", time.Duration(leaves-before))
			}
		case before > leaves:
			far++
			if heard["node-3"] != 0 {
				t.Errorf("node-3 heard a frame sent %v after it left", time.Duration(before-leaves))
			}
		}
		if heard["node-2"] != 1 {
			t.Error("node-2 missed a frame, although it is near all the time")
		}
		time.Sleep(2 * time.Millisecond)
	}
	if near == 0 || far == 0 {
		t.Errorf("%d frames were sent in range, %d after: want some of both", near, far)
	}
	t.Logf("%d frames in range, %d after; %d of %d steps late", near, far, b.Counters(false)[0].LateSteps, b.Counters(false)[0].Steps)
}

func TestANetworkOfLinksFollowsTheCommEffectsOfItsScenario(t *testing.T) {
	b := newPhysicalBed(t, 3, v1alpha1.WaveformSpec{Link: &v1alpha1.LinkModel{Delay: "1ms", Limit: 1000}})
	b.object.Spec.CommEffects = true
	b.begin(t)
	if _, message, _ := statusOf(b.Manager, string(b.object.UID)); !strings.Contains(message, "commEffects need a scenario") {
		t.Errorf("message %q; want what is missing", message)
	}
	lost, passed := scenario.CommEffect{LossPercent: 100}, scenario.CommEffect{Latency: time.Millisecond}
	digest, content := radiodtest.Compile(t, func(builder *scenario.Builder) error {
		return errors.Join(builder.CommEffect(0, 1, 3, lost), builder.CommEffect(time.Second, 1, 2, lost), builder.CommEffect(time.Second, 1, 3, passed))
	})
	b.server.Put(digest, content)
	b.change(t, func(spec *v1alpha1.RadioNetworkSpec) { spec.Scenario = digest })
	b.ready(t)
	b.receives(t, "before T0 the state at t = 0", 1, 2)
	b.receives(t, "the other way", 3, 1, 2)
	b.change(t, func(spec *v1alpha1.RadioNetworkSpec) {
		spec.T0 = &metav1.MicroTime{Time: time.Now().Add(-2 * time.Second)}
	})
	b.receives(t, "after a second", 1, 3)
}

func TestAnotherWorkerIsRightAtOnceInTheMiddleOfAScenario(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.RFPipe())
	b.play(radiodtest.Losses(t, radiodtest.LossAt(0, 1, 2, 80), radiodtest.LossAt(0, 1, 3, 80), radiodtest.LossAt(0, 2, 3, 80),
		radiodtest.LossAt(time.Second, 1, 3, 200), radiodtest.LossAt(time.Second, 2, 3, 200)))
	b.object.Spec.T0 = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
	b.begin(t)
	b.ready(t)
	b.receives(t, "before the restart", 1, 2)
	b.Close() // as if it had died
	b.server.Fail(errors.New("the server is away"))
	b.begin(t)
	if _, message, _ := statusOf(b.Manager, string(b.object.UID)); message != "" {
		t.Errorf("message %q; want none: the scenario is in the state folder", message)
	}
	b.receives(t, "after the restart", 1, 2)
	b.receives(t, "after the restart", 3)
}

func TestAJammerMakesAReceiverDeafWhileItIsOn(t *testing.T) {
	w := radiodtest.RFPipe()
	w.RFPipe.Interference = v1alpha1.InterferenceOutOfBand
	b := newPhysicalBed(t, 3, w)
	b.play(everybodyNear(t))
	b.begin(t)
	b.ready(t)
	b.receives(t, "without a jammer", 1, 2, 3)
	power := v1alpha1.Power("10dBm")
	jammer := v1alpha1.Jammer{Name: "red", Pathloss: ptr.To(v1alpha1.Decibel("60dB")), Power: &power}
	b.now(t, v1alpha1.RadioChange{Jammer: &jammer})
	b.receives(t, "with a jammer 30 dB above the signal", 1)
	if c := b.counters()["node-2"]; c.Drops[radio.LowSINR]+c.Drops[radio.Interfered] != 1 {
		t.Errorf("drops of node-2: %v; want one for the noise", c.Drops)
	}
	weak := jammer
	weak.Power = ptr.To(v1alpha1.Power("-60dBm"))
	b.now(t, v1alpha1.RadioChange{Jammer: &weak})
	b.receives(t, "with the jammer turned down", 1, 2, 3)
	b.now(t, v1alpha1.RadioChange{Jammer: &jammer})
	b.receives(t, "with the jammer turned up", 1)
	elsewhere := jammer
	elsewhere.Frequency, elsewhere.Bandwidth = ptr.To(v1alpha1.Frequency("310MHz")), ptr.To(v1alpha1.Frequency("1MHz"))
	b.now(t, v1alpha1.RadioChange{Jammer: &elsewhere})
	b.receives(t, "with the jammer on another frequency", 1, 2, 3)
	b.now(t, v1alpha1.RadioChange{Jammer: &jammer})
	b.receives(t, "with the jammer back", 1)
	b.now(t, v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "red", Off: true}})
	b.receives(t, "with the jammer off", 1, 2, 3)
}

func TestANodeUnderRadioSilenceHearsAndSendsNothing(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.RFPipe())
	b.play(everybodyNear(t))
	b.begin(t)
	b.ready(t)
	b.now(t, v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Transmit: ptr.To(false)}})
	b.receives(t, "under radio silence", 1)
	b.receives(t, "while another is under radio silence", 2, 1, 3)
	if c := b.counters()["node-1"]; c.Drops[radio.EmissionControl] != 1 {
		t.Errorf("drops of node-1: %v; want one for emission control", c.Drops)
	}
	b.now(t, v1alpha1.RadioChange{From: "all", Radio: &v1alpha1.RadioPatch{Transmit: ptr.To(true)}})
	b.receives(t, "after the silence", 1, 2, 3)
}

func TestPowerAndNoiseFigureChangeWhileTheNetworkRuns(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.RFPipe())
	b.play(radiodtest.Losses(t, radiodtest.LossAt(0, 1, 2, 105), radiodtest.LossAt(0, 1, 3, 80), radiodtest.LossAt(0, 2, 3, 105)))
	b.object.Spec.Radios = []v1alpha1.Radio{{Nodes: []string{"node-3"}, TransmitPower: ptr.To(v1alpha1.Power("-40dBm"))}}
	b.begin(t)
	b.ready(t)
	b.receives(t, "5 dB above the sensitivity", 1, 2, 3)
	b.receives(t, "with less power than the others", 3)
	b.now(t, v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{TransmitPower: ptr.To(v1alpha1.Power("-6dBm"))}})
	b.receives(t, "1 dB below the sensitivity", 1, 3)
	if c := b.counters()["node-2"]; c.Drops[radio.BelowSensitivity] == 0 {
		t.Errorf("drops of node-2: %v; want one below the sensitivity", c.Drops)
	}
	b.now(t, v1alpha1.RadioChange{From: "node-2", Radio: &v1alpha1.RadioPatch{NoiseFigure: ptr.To(v1alpha1.Decibel("2dB"))}})
	b.receives(t, "with a better receiver", 1, 2, 3)
	b.now(t, v1alpha1.RadioChange{From: "node-2", Radio: &v1alpha1.RadioPatch{Frequency: ptr.To(v1alpha1.Frequency("400MHz"))}})
	b.receives(t, "with one on another frequency", 1, 3)
}

func TestWithoutItsScenarioANetworkIsSilentAndSaysSo(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.RFPipe())
	digest, content := everybodyNear(t)
	b.object.Spec.Scenario = digest
	b.server.Fail(errors.New("connection refused"))
	b.begin(t)
	if attached, message, _ := statusOf(b.Manager, string(b.object.UID)); attached != 3 || message == "" {
		t.Errorf("%d attached, message %q; want 3, and one that says what is missing", attached, message)
	}
	eventually(t, "the message says why", func() bool {
		_, message, _ := statusOf(b.Manager, string(b.object.UID))
		return bytes.Contains([]byte(message), []byte("connection refused")) && bytes.Contains([]byte(message), []byte(digest))
	})
	b.receives(t, "without a scenario", 1)
	if c := b.counters()["node-1"]; c.Drops[radio.Silent] != 1 {
		t.Errorf("drops %v; want one by a silent radio", c.Drops)
	}
	b.server.Fail(nil)
	b.server.Put(digest, content)
	b.ready(t)
	b.receives(t, "with the scenario", 1, 2, 3)
}

func TestLinksAreCountedWithTheirPathloss(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.RFPipe())
	b.play(radiodtest.Losses(t, radiodtest.LossAt(0, 1, 2, 105), radiodtest.LossAt(0, 1, 3, 112), radiodtest.LossAt(0, 2, 3, 80)))
	b.begin(t)
	b.ready(t)
	b.receives(t, "in range", 1, 2)
	links := b.Counters(false)[0].Links
	if len(links) != 2 {
		t.Fatalf("links %+v; want those of node-2 and node-3 from node-1", links)
	}
	if l := links[0]; l.Receiver != "node-2" || l.From != "node-1" || l.Heard != 1 || l.Missed.ByReason() != nil || l.PathlossDB != 105 || math.Abs(l.SINRDB-5) > 0.01 {
		t.Errorf("link %+v; want one frame heard by node-2, 5 dB above the noise over 105 dB", l)
	}
	if l := links[1]; l.Receiver != "node-3" || l.Heard != 0 || l.Missed.ByReason()["belowSensitivity"] != 1 || l.PathlossDB != 112 {
		t.Errorf("link %+v; want one frame missed by node-3 below its sensitivity", l)
	}
}

func TestATDMANetworkFollowsItsSchedules(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.TDMA())
	b.play(everybodyNear(t))
	b.begin(t)
	b.ready(t)
	b.receives(t, "with a generated schedule", 1, 2, 3)
	b.receives(t, "with a generated schedule", 3, 1, 2)
	b.now(t, v1alpha1.RadioChange{Schedule: radiodtest.Schedule(2, 3, 2)})
	b.receives(t, "by a schedule of its own", 2, 1, 3)
	// Node 1 has no slot: its frame waits until it has one again.
	b.pods[0].sendBroadcasts(t, 1)
	eventually(t, "node-1's frame is in its queue", func() bool { return b.counters()["node-1"].InFlight == 1 })
	b.receives(t, "while node-1 must wait", 3, 1, 2)
	if c := b.counters()["node-1"]; c.InFlight != 1 || c.Classes[0] != 1 {
		t.Errorf("node-1 has %d frames under way, by class %v; want one in class 0", c.InFlight, c.Classes)
	}
	before := b.counters()["node-2"].FramesReceived
	b.now(t, v1alpha1.RadioChange{Schedule: radiodtest.Schedule(1, 2, 3)})
	eventually(t, "node-1's frame reaches node-2", func() bool { return b.counters()["node-2"].FramesReceived == before+1 })
	if c := b.counters()["node-1"]; c.Slots.Used+c.Slots.Missed < 2 {
		t.Errorf("node-1 used %d slots; want at least 2", c.Slots.Used)
	}
	t.Logf("slots of node-1: %+v", b.counters()["node-1"].Slots)
}

func TestAnInvalidScheduleIsNamedAndLeftOut(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.TDMA())
	b.play(everybodyNear(t))
	b.begin(t)
	b.ready(t)
	b.now(t, v1alpha1.RadioChange{Schedule: "<nonsense/>"})
	if _, message, _ := statusOf(b.Manager, string(b.object.UID)); !strings.Contains(message, "change at 1m0") || !strings.Contains(message, "schedule") {
		t.Errorf("message %q; want the change and its schedule named", message)
	}
	if refused := refusedOf(b.Manager, string(b.object.UID)); !strings.Contains(refused, "schedule") {
		t.Errorf("refused is %q; want the schedule, which no further try helps", refused)
	}
	b.receives(t, "with the schedule before", 1, 2, 3)
}

func TestChangesOfTheTimelineComeAtTheirMoments(t *testing.T) {
	const step = 300 * time.Millisecond
	for name, c := range map[string]struct{ deaf, again v1alpha1.RadioChange }{
		"jammer": {v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "red", Pathloss: ptr.To(v1alpha1.Decibel("60dB")), Power: ptr.To(v1alpha1.Power("10dBm"))}},
			v1alpha1.RadioChange{Jammer: &v1alpha1.Jammer{Name: "red", Off: true}}},
		"power": {v1alpha1.RadioChange{From: "all", Radio: &v1alpha1.RadioPatch{TransmitPower: ptr.To(v1alpha1.Power("-50dBm"))}},
			v1alpha1.RadioChange{Radio: &v1alpha1.RadioPatch{TransmitPower: ptr.To(v1alpha1.Power("0dBm"))}}},
		"radio silence": {v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Transmit: ptr.To(false)}},
			v1alpha1.RadioChange{From: "node-1", Radio: &v1alpha1.RadioPatch{Transmit: ptr.To(true)}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := radiodtest.RFPipe()
			w.RFPipe.Interference = v1alpha1.InterferenceOutOfBand
			b := newPhysicalBed(t, 3, w)
			b.play(everybodyNear(t))
			t0 := time.Now().Add(time.Second)
			b.object.Spec.T0 = &metav1.MicroTime{Time: t0}
			b.object.Spec.Changes = []v1alpha1.TimedRadioChange{{AtNanoseconds: int64(step), RadioChange: c.deaf}, {AtNanoseconds: int64(2 * step), RadioChange: c.again}}
			b.begin(t)
			b.ready(t)
			if c.deaf.Jammer != nil {
				eventually(t, "both steps are prepared", func() bool { return b.Counters(false)[0].Steps == 2 })
				if late := b.Counters(false)[0].LateSteps; late > 0 {
					t.Skipf("the machine is too busy: %d steps were late", late)
				}
			}
			kinds := map[bool]int{}
			for time.Since(t0) < 3*step {
				already := carriedOut(b)
				heard, before, after := b.broadcast(t, 1)
				first, last := (before-t0.UnixNano())/int64(step), (after-t0.UnixNano())/int64(step)
				if before < t0.UnixNano() {
					first = 0
				}
				if first != last || already != uint64(first) || carriedOut(b) != already {
					continue // a change fell due meanwhile, or was late
				}
				want := 1
				if first == 1 {
					want = 0
				}
				kinds[want == 1]++
				if heard["node-2"] != want {
					t.Errorf("after %d changes node-2 heard %d frames; want %d", first, heard["node-2"], want)
				}
				time.Sleep(2 * time.Millisecond)
			}
			t.Logf("%d frames had to be heard, %d not; %d changes late, %d steps late", kinds[true], kinds[false], lateChanges(b), b.Counters(false)[0].LateSteps)
		})
	}
}

func TestSamplesAndMetricsOfAPhysicalNetwork(t *testing.T) {
	b := newPhysicalBed(t, 3, radiodtest.TDMA())
	b.play(radiodtest.Compile(t, func(s *scenario.Builder) error {
		for i := 1; i <= 3; i++ {
			if err := s.Position(0, i, geo.Position{Latitude: 58 + float64(i)/100, Longitude: 8, Altitude: 3}); err != nil {
				return err
			}
			for j := 1; j <= 3; j++ {
				if i != j {
					if err := s.Pathloss(0, i, j, 80); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}))
	b.begin(t)
	b.ready(t)
	b.receives(t, "in range", 1, 2, 3)
	for _, s := range []string{"slots_used_total", "slot_lateness_seconds", "queue_class_frames", "links", "link_sinr_decibels", "link_pathloss_decibels", "link_heard_total", "scenario_steps_total"} {
		if testutil.CollectAndCount(metrics.Collector{Counters: func() []figures.Network { return b.Counters(false) }}, "vignette_radio_"+s) == 0 {
			t.Errorf("there is no metric vignette_radio_%s", s)
		}
	}
	sampler := newSampler(t, b.Manager)
	sampler.Sample()
	text, err := os.ReadFile(filepath.Join(sampler.Directory, "run.0.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	log := string(text)
	last := &recorder{}
	b.Options.Recorder, b.Networks.Recorder = last, last
	if err := b.RemoveNetwork(string(b.object.UID)); err != nil {
		t.Fatal(err)
	}
	if used := last.last["node-1"].Slots.Used; used != 1 {
		t.Errorf("the last counters have %d slots used; want the one that was", used)
	}
	for _, part := range []string{`"slotsUsed":1`, `"positions":{"node-1":[58.01,8,3],"node-2":[58.02,8,3],"node-3":[58.03,8,3]}`,
		`"receiver":"node-2","from":[{"node":"node-1","sinrDB":30,"pathlossDB":80,"heard":1}]`} {
		if !strings.Contains(log, part) {
			t.Errorf("the radio log lacks %s:\n%s", part, log)
		}
	}
}

// carriedOut and lateChanges are numbers of changes, by the metrics.
func carriedOut(b *physicalBed) uint64 { return uint64(testutil.ToFloat64(b.Networks.Collectors()[0])) }

func lateChanges(b *physicalBed) uint64 {
	return uint64(testutil.ToFloat64(b.Networks.Collectors()[1]))
}
