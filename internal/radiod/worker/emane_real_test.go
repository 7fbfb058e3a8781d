package worker

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// realPair is two nodes whose frames the EMANE of this machine carries.
type realPair struct {
	m    *Manager
	a, b *pod
	pod  *emanePod
	at   *net.UDPConn // of b
	n    *v1alpha1.RadioNetwork
}

// slots10 is a TDMA model with slots of 10 ms at 1 Mbit/s: 1250 bytes.
func slots10(phy v1alpha1.PHY, overhead v1alpha1.Duration) v1alpha1.WaveformSpec {
	return v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{Rate: "1Mbit", PHY: phy, Structure: v1alpha1.TDMAStructure{Frames: 1, SlotDuration: "10ms", SlotOverhead: overhead}}}
}

// newRealPair starts EMANE for two nodes, and waits until a frame arrives. others attach further ones that the change adds.
func newRealPair(t *testing.T, m *Manager, change func(*v1alpha1.RadioNetwork), others ...func(*Manager)) *realPair {
	t.Helper()
	prefix := testtool.EMANE(t)
	p := newEMANEPod(t)
	p.appear(t)
	p.manager(m)
	r := &realPair{m: m, pod: p, a: newPod(t, "pod-a"), b: newPod(t, "pod-b")}
	r.n = emaneNetwork(r.a.uid, r.b.uid)
	change(r.n)
	r.n = configuredRadios(r.n)
	if err := m.SetNetwork(r.n); err != nil {
		t.Fatal(err)
	}
	r.a.attach(t, m, "vhf")
	r.b.attach(t, m, "vhf")
	for _, attach := range others {
		attach(m)
	}
	for _, member := range r.n.Spec.Members {
		eventually(t, "the radio is beside EMANE", func() bool { return p.has(t, emane.Interface(member.NEM)) })
	}
	p.start(t, r.n, prefix)
	r.until(t, "all are attached", attachedIs(m, r.n, len(r.n.Spec.Members)))
	r.at = r.b.listenUDP(t, "198.18.9.2:4000")
	r.until(t, "a frame arrives", func() bool { return r.a.reachesUDP(t, "198.18.9.2:4000", r.at) })
	return r
}

// until is eventually with the time that EMANE needs on a busy host.
func (r *realPair) until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			_, message, _ := statusOf(r.m, string(r.n.UID))
			t.Fatalf("%s: not after two minutes: %s; %+v", what, message, r.m.Counters(false))
		}
	}
}

// arrive sends datagrams from a to b, one at a time, and counts those that arrive.
func (r *realPair) arrive(t *testing.T, count, bytes int) (arrived int) {
	t.Helper()
	r.a.do(t, func() error {
		c, err := net.Dial("udp4", "198.18.9.2:4000")
		if err != nil {
			return err
		}
		defer c.Close()
		buffer := make([]byte, 2000)
		for range count {
			if _, err := c.Write(make([]byte, bytes)); err != nil {
				return err
			}
			_ = r.at.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			if size, err := r.at.Read(buffer); err == nil && size == bytes {
				arrived++
			}
		}
		return nil
	})
	return arrived
}

// apart places the members 5 km from each other.
func apart(n *v1alpha1.RadioNetwork) {
	for i, latitude := range []v1alpha1.Degrees{"47.0", "47.045"} {
		n.Spec.Members[i].Position = &v1alpha1.Position{Latitude: latitude, Longitude: "8", Altitude: "400m"}
	}
}

// Datagrams that fill a slot of slots10 with their headers: but for its overhead, and to the byte.
const (
	fullSlot  = 1190
	toTheByte = 1250 - 42
)

// untilTheyArrive waits for ten datagrams of a size: on a busy host EMANE is late, and misses slots.
func (r *realPair) untilTheyArrive(t *testing.T, bytes int) {
	t.Helper()
	arrived := 0
	r.until(t, "datagrams arrive", func() bool {
		arrived += r.arrive(t, 5, bytes)
		return arrived >= 10
	})
}

// TestARealEMANEIsDisturbedByAnotherNetworkOfItsSpectrum has a second pod of EMANE's, whose node-3 is ten times as near to
// node-2 as node-1 is.
func TestARealEMANEIsDisturbedByAnotherNetworkOfItsSpectrum(t *testing.T) {
	testtool.EMANE(t)
	s := newSite(t, "host-a", &atomic.Bool{}, skewedClock{})
	r := newRealPair(t, s.Manager, func(n *v1alpha1.RadioNetwork) {
		n.Spec.Spectrum, n.Spec.Waveform.RFPipe.Interference = "band", v1alpha1.InterferenceOutOfBand
	})
	other := newEMANEPodOf(t, otherEMANEUID)
	other.proc = r.pod.proc
	other.appearAs(t, "4243")
	c, d := newPod(t, "pod-c"), newPod(t, "pod-d")
	n := emaneNetwork(c.uid, d.uid)
	n.Name, n.UID, n.Generation = "run1-uhf", "run1uhf", 1
	n.Spec.Network, n.Spec.Spectrum, n.Spec.Waveform.RFPipe.Rate, n.Spec.Waveform.RFPipe.PHY.SubID = "uhf", "band", "20kbit", 2
	n.Spec.EMANE = []v1alpha1.EMANEPod{{Host: "host-a", PodUID: otherEMANEUID}}
	for i, latitude := range []v1alpha1.Degrees{"47.0011", "47.0012"} {
		m := &n.Spec.Members[i]
		m.Node, m.NEM, m.Interface, m.Address = fmt.Sprintf("node-%d", i+3), int32(i+3), "uhf", fmt.Sprintf("198.18.8.%d/24", i+1)
		m.Position = &v1alpha1.Position{Latitude: latitude, Longitude: "8", Altitude: "400m"}
	}
	if err := s.SetNetwork(n); err != nil {
		t.Fatal(err)
	}
	c.attach(t, s.Manager, "uhf")
	d.attach(t, s.Manager, "uhf")
	for _, member := range n.Spec.Members {
		eventually(t, "the radio is beside EMANE", func() bool { return other.has(t, emane.Interface(member.NEM)) })
	}
	other.start(t, n, testtool.EMANE(t))
	r.until(t, "the other network's nodes are attached", attachedIs(s.Manager, n, 2))
	r.until(t, "datagrams arrive while nobody else sends", func() bool { return r.arrive(t, 10, 100) >= 8 })
	// Each takes half a second, so that the channel is in use for ten.
	r.until(t, "the other network disturbs", func() bool {
		c.do(t, func() error {
			conn, err := net.Dial("udp4", "198.18.8.255:7000")
			if err != nil {
				return err
			}
			defer conn.Close()
			for range 20 {
				if _, err := conn.Write(make([]byte, 1200)); err != nil {
					return err
				}
			}
			return nil
		})
		return r.arrive(t, 10, 100) <= 2
	})
	r.until(t, "the datagrams arrive again", func() bool { return r.arrive(t, 10, 100) >= 8 })
}

func TestARealEMANECarriesFullSlotsOverFarLinksWithEnoughOverhead(t *testing.T) {
	for name, c := range map[string]struct {
		overhead v1alpha1.Duration
		arrives  bool
	}{"overhead above the propagation delay": {"100us", true}, "no overhead": {"0ms", false}} {
		t.Run(name, func(t *testing.T) {
			r := newRealPair(t, newManager(t), func(n *v1alpha1.RadioNetwork) {
				n.Spec.Waveform = slots10(n.Spec.Waveform.RFPipe.PHY, c.overhead)
				apart(n)
			})
			if c.arrives {
				r.untilTheyArrive(t, fullSlot)
				return
			}
			const sent = 20
			if arrived := r.arrive(t, sent, toTheByte); arrived > 0 {
				t.Errorf("%d of %d arrive, want none", arrived, sent)
			}
			r.until(t, "they are counted as too long for their slots", func() bool {
				r.m.ReadRings()
				nodes := r.m.Counters(false)[0].Nodes
				lost := uint64(0)
				nodes[1].Dropped(func(reason string, frames uint64) {
					if reason == "tooLarge" {
						lost = frames
					}
				})
				return lost >= sent/2
			})
		})
	}
}

func TestARealEMANECarriesFullSlotsWherePathlossIsTheScenarios(t *testing.T) {
	m := newManager(t)
	digest, content := radiodtest.Compile(t, func(b *scenario.Builder) error {
		for platform, latitude := range map[int]float64{1: 47, 2: 47.045} {
			if err := b.Position(0, platform, geo.Position{Latitude: latitude, Longitude: 8, Altitude: 400}); err != nil {
				return err
			}
		}
		for _, pair := range [][2]int{{1, 2}, {2, 1}} {
			if err := b.Pathloss(0, pair[0], pair[1], 80); err != nil {
				return err
			}
		}
		return nil
	})
	m.Networks.Scenarios = new(radiodtest.ScenarioStore).Put(digest, content)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { _ = m.FetchScenarios(ctx) }()
	r := newRealPair(t, m, func(n *v1alpha1.RadioNetwork) {
		n.Spec.Waveform = slots10(n.Spec.Waveform.RFPipe.PHY, "0ms")
		n.Spec.Waveform.TDMA.PHY.Pathloss = v1alpha1.PathlossScenario
		n.Spec.Scenario = digest
		for i := range n.Spec.Members {
			n.Spec.Members[i].Position, n.Spec.Members[i].Platform = nil, ptr.To(int32(i+1))
		}
	})
	r.untilTheyArrive(t, toTheByte)
	r.until(t, "the link has its SINR", func() bool {
		for _, l := range r.m.Counters(false)[0].Links {
			// 20 dBm - 80 dB over -110 dBm.
			if l.Receiver == "node-2" && l.From == "node-1" && l.SINRDB > 49 && l.SINRDB < 51 && l.Heard > 0 && l.PathlossDB == 80 {
				return true
			}
		}
		return false
	})
}

func TestFramesThatARealEMANECarriesAreCapturedAtBothEnds(t *testing.T) {
	testtool.EMANE(t)
	both := []string{"node-1", "node-2"}
	bed := newCaptureBed(t, runapi.PlannedCapture{Name: "run", Network: "vhf", Nodes: both})
	r := newRealPair(t, bed.worker(), func(n *v1alpha1.RadioNetwork) {
		n.Spec.Experiment.UID, n.Spec.Captures = "run", []v1alpha1.RadioCapture{{Name: "run"}}
	})
	const sent, bytes = 30, 777
	arrived := r.arrive(t, sent, bytes)
	if arrived < sent/2 {
		t.Fatalf("%d of %d arrive", arrived, sent)
	}
	ended := r.n.DeepCopy()
	ended.Generation, ended.Spec.Captures = r.n.Generation+1, nil
	set(t, r.m, ended)
	bed.sealed()
	for node, want := range map[string]int{"node-1": sent, "node-2": arrived} {
		seen := 0
		for _, f := range tshark(t, bed.archived(client.Capture{Name: "run", Network: "vhf", Node: node})) {
			if f.length == bytes+42 && f.out == (node == "node-1") {
				seen++
			}
		}
		if seen < want {
			t.Errorf("%s: %d frames, want %d", node, seen, want)
		}
	}
}

func TestARealEMANETakesTheRatesThatTheSINRAllows(t *testing.T) {
	r := newRealPair(t, newManager(t), func(n *v1alpha1.RadioNetwork) {
		n.Spec.Waveform = slots10(n.Spec.Waveform.RFPipe.PHY, "100us")
		n.Spec.Waveform.TDMA.AdaptiveRates = []v1alpha1.TDMARate{{Rate: "1Mbit", SINR: "20dB"}, {Rate: "100kbit", SINR: "5dB"}}
		n.Spec.Waveform.TDMA.Queue.Fragmentation = ptr.To(false)
	})
	// At 100 kbit/s a slot has 124 bytes, at 1 Mbit/s 1237.
	r.until(t, "frames that need the higher rate arrive", func() bool { return r.arrive(t, 3, 1000) > 0 })
	weak := r.n.DeepCopy()
	weak.Generation++
	gain := v1alpha1.Gain("-55dBi")
	weak.Spec.Changes = []v1alpha1.TimedRadioChange{{RadioChange: v1alpha1.RadioChange{Network: "vhf", From: "node-1", Radio: &v1alpha1.RadioPatch{AntennaGain: &gain}}}}
	now := nowMicro()
	weak.Spec.T0 = &now
	if err := r.m.SetNetwork(weak); err != nil {
		t.Fatal(err)
	}
	r.until(t, "with less gain only small frames arrive", func() bool { return r.arrive(t, 3, 1000) == 0 && r.arrive(t, 3, 60) > 0 })
}

// restart replaces the worker of a bed.
func (r *realPair) restart(t *testing.T, bed radiodBed) {
	t.Helper()
	r.m.Close()
	m, held := managerWith(t, bed.parent, bed.directory)
	r.m = r.pod.manager(m)
	if err := m.Restore(held); err != nil {
		t.Fatal(err)
	}
	r.until(t, "all are attached again", attachedIs(m, r.n, len(r.n.Spec.Members)))
}

// schedulesOf a node's process is how many it has accepted.
func (r *realPair) schedulesOf(t *testing.T, nem int32) uint64 {
	t.Helper()
	var all []emane.Statistics
	r.pod.do(t, func() error {
		connection, err := net.Dial("tcp4", emane.InPod(r.n, nem).Control.String())
		if err != nil {
			return err
		}
		c := emane.NewControl(connection, 10*time.Second)
		defer c.Close()
		all, err = emane.Scrape(nil, c, nil)
		return err
	})
	return all[0].Schedules
}

func sendOnce(to string) error {
	c, err := net.Dial("udp4", to)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write(make([]byte, 100))
	return err
}

// A process that receives its schedule again sends nothing until the next multiframe.
func TestARealEMANEKeepsItsScheduleAndRateOverARestartOfTheWorker(t *testing.T) {
	bed := newRadiod(t)
	m, _ := bed.worker(t)
	r := newRealPair(t, m, func(n *v1alpha1.RadioNetwork) {
		n.Spec.Waveform = slots10(n.Spec.Waveform.RFPipe.PHY, "100us")
		n.Spec.Waveform.TDMA.AdaptiveRates = []v1alpha1.TDMARate{{Rate: "1Mbit", SINR: "20dB"}, {Rate: "100kbit", SINR: "5dB"}}
		n.Spec.Waveform.TDMA.Queue.Fragmentation = ptr.To(false)
	})
	r.until(t, "frames that need the higher rate arrive", func() bool { return r.arrive(t, 3, 1000) > 0 })
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // a sender that is not heard for 10 s has the lowest rate
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				_ = netns.Do(r.a.namespace, func() error { return sendOnce("198.18.9.2:4000") })
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	before := r.schedulesOf(t, 1)
	r.restart(t, bed)
	time.Sleep(2 * time.Second) // several readings
	if now := r.schedulesOf(t, 1); now != before {
		t.Errorf("it has accepted %d schedules, and %d before the restart; want none more", now, before)
	}
}

func nowMicro() metav1.MicroTime { return metav1.NewMicroTime(time.Now()) }

// parameterOf a node's process, as its control port tells it.
func (r *realPair) parameterOf(t *testing.T, nem int32, layer emane.Layer, name string) (values []any) {
	t.Helper()
	r.pod.do(t, func() error {
		connection, err := net.Dial("tcp4", emane.InPod(r.n, nem).Control.String())
		if err != nil {
			return err
		}
		c := emane.NewControl(connection, 10*time.Second)
		defer c.Close()
		nems, err := c.Manifest()
		if err != nil {
			return err
		}
		for _, component := range nems[0].Components {
			if component.Layer != layer {
				continue
			}
			all, err := c.Configuration(component.BuildID, name)
			if err != nil {
				return err
			}
			values = all[name]
		}
		return nil
	})
	return values
}

func TestARealEMANECarriesFramesByItsOtherModelsWithTheirParameters(t *testing.T) {
	raw := func(layer v1alpha1.EMANELayer, name, value string) []v1alpha1.EMANEParameter {
		return []v1alpha1.EMANEParameter{{Layer: layer, Name: name, Values: []string{value}}}
	}
	for name, c := range map[string]struct {
		settings func(phy v1alpha1.PHY) *v1alpha1.EMANESettings
		besides  bool // rfpipe
		layer    emane.Layer
		want     any
	}{
		"rfpipe": {func(v1alpha1.PHY) *v1alpha1.EMANESettings {
			return &v1alpha1.EMANESettings{Parameters: raw("mac", "radiometricreportinterval", "2.5")}
		}, true, emane.MAC, 2.5},
		"ieee80211abg": {func(phy v1alpha1.PHY) *v1alpha1.EMANESettings {
			return &v1alpha1.EMANESettings{Model: v1alpha1.EMANEWiFi, PHY: &phy, Parameters: raw("mac", "unicastrate", "3")}
		}, false, emane.MAC, uint64(3)},
		"a library by its name": {func(phy v1alpha1.PHY) *v1alpha1.EMANESettings {
			return &v1alpha1.EMANESettings{Model: "rfpipemaclayer", PHY: &phy, Parameters: append(raw("mac", "datarate", "123456"),
				raw("mac", "pcrcurveuri", "file://"+testtool.EMANE(t)+"/share/emane/xml/models/mac/rfpipe/rfpipepcr.xml")...)}
		}, false, emane.MAC, uint64(123456)},
		"bypass": {func(v1alpha1.PHY) *v1alpha1.EMANESettings {
			return &v1alpha1.EMANESettings{Model: v1alpha1.EMANEBypass}
		}, false, 0, nil},
		"commeffect": {func(v1alpha1.PHY) *v1alpha1.EMANESettings {
			return &v1alpha1.EMANESettings{Model: v1alpha1.EMANECommEffect, Effect: &v1alpha1.EMANEEffect{Delay: "20ms"}, Parameters: raw("shim", "groupid", "7")}
		}, false, emane.Shim, uint64(7)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealPair(t, newManager(t), func(n *v1alpha1.RadioNetwork) {
				n.Spec.Waveform.EMANE = c.settings(n.Spec.Waveform.RFPipe.PHY)
				if !c.besides {
					n.Spec.Waveform.RFPipe = nil
				}
			})
			if settings := r.n.Spec.Waveform.EMANE; len(settings.Parameters) > 0 {
				if values := r.parameterOf(t, 2, c.layer, settings.Parameters[0].Name); len(values) != 1 || values[0] != c.want {
					t.Errorf("%s of %s is %v, want %v", settings.Parameters[0].Name, name, values, c.want)
				}
			}
			r.untilTheyArrive(t, 200)
			r.until(t, "they are counted on their link", func() bool {
				r.m.ReadRings()
				for _, l := range r.m.Counters(false)[0].Links {
					if l.Receiver == "node-2" && l.From == "node-1" && l.Heard > 5 {
						return true
					}
				}
				return false
			})
		})
	}
}

// transponder of a bent pipe, with an antenna without gain.
func transponder(receive, transmit, action, delay, packets string) (all []v1alpha1.EMANEParameter) {
	for _, p := range [][2]string{
		{"antenna.defines", "0:omni;0;0"},
		{"transponder.receive.frequency", "0:" + receive}, {"transponder.receive.bandwidth", "0:1M"}, {"transponder.receive.antenna", "0:0"},
		{"transponder.receive.action", "0:" + action}, {"transponder.receive.enable", "0:yes"},
		{"transponder.transmit.frequency", "0:" + transmit}, {"transponder.transmit.bandwidth", "0:1M"}, {"transponder.transmit.antenna", "0:0"},
		{"transponder.transmit.datarate", "0:1M"}, {"transponder.transmit.power", "0:30"}, {"transponder.transmit.pcrcurveindex", "0:1"},
		{"transponder.transmit.ubend.delay", "0:" + delay}, {"transponder.transmit.tosmap", "0:" + packets}, {"transponder.transmit.mtu", "0:1500"},
		{"transponder.transmit.slotperframe", "0:na"}, {"transponder.transmit.slotsize", "0:na"}, {"transponder.transmit.txslots", "0:na"},
		{"transponder.transmit.enable", "0:yes"},
	} {
		all = append(all, v1alpha1.EMANEParameter{Layer: v1alpha1.EMANELayerMAC, Name: p[0], Values: []string{p[1]}})
	}
	return all
}

func TestARealEMANESendsFramesOverTheSatelliteOfABentPipe(t *testing.T) {
	var satellite *pod
	r := newRealPair(t, newManager(t), func(n *v1alpha1.RadioNetwork) {
		satellite = newPod(t, "pod-c")
		third := emaneNetwork("pod-a", "pod-b", satellite.uid).Spec.Members[2]
		n.Spec.Members = append(n.Spec.Members, third)
		n.Spec.Waveform = v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANEBentPipe, PHY: &v1alpha1.PHY{Pathloss: v1alpha1.PathlossFreeSpace},
			Parameters: transponder("300M", "400M", "process", "na", "0-255"),
			Nodes:      []v1alpha1.EMANENodes{{Names: []string{third.Node}, Parameters: transponder("400M", "300M", "ubend", "250000", "na")}}}}
	}, func(m *Manager) { satellite.attach(t, m, "vhf") })
	begun := time.Now()
	if r.arrive(t, 1, 200) == 1 && time.Since(begun) < 250*time.Millisecond {
		t.Errorf("a frame arrived after %v; want 250 ms at least, as the satellite takes them", time.Since(begun))
	}
	r.untilTheyArrive(t, 200)
}

func TestARealEMANEDelaysFramesByItsCommEffects(t *testing.T) {
	r := newRealPair(t, newManager(t), func(n *v1alpha1.RadioNetwork) {
		n.Spec.Waveform = v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANECommEffect, Effect: &v1alpha1.EMANEEffect{Delay: "300ms"}}}
	})
	begun := time.Now()
	if r.arrive(t, 1, 200) == 1 && time.Since(begun) < 300*time.Millisecond {
		t.Errorf("a frame arrived after %v, want 300ms at least", time.Since(begun))
	}
}

func TestARealEMANETakesTheScenariosCommEffects(t *testing.T) {
	m := newManager(t)
	digest, content := radiodtest.Compile(t, func(b *scenario.Builder) error {
		return b.CommEffect(0, 1, 2, scenario.CommEffect{Latency: 300 * time.Millisecond})
	})
	m.Networks.Scenarios = new(radiodtest.ScenarioStore).Put(digest, content)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { _ = m.FetchScenarios(ctx) }()
	r := newRealPair(t, m, func(n *v1alpha1.RadioNetwork) {
		n.Spec.Waveform = v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANECommEffect}}
		n.Spec.Scenario, n.Spec.CommEffects = digest, true
		for i := range n.Spec.Members {
			n.Spec.Members[i].Position, n.Spec.Members[i].Platform = nil, ptr.To(int32(i+1))
		}
	})
	begun := time.Now()
	if r.arrive(t, 1, 200) == 1 && time.Since(begun) < 300*time.Millisecond {
		t.Errorf("a frame arrived after %v, want 300ms at least", time.Since(begun))
	}
}
