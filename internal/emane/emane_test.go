package emane

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/emane/emanepb"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const ownPCR = `<?xml version="1.0"?>
<!DOCTYPE pcr SYSTEM "file:///elsewhere/rfpipepcr.dtd">
<pcr><!-- measured --><table pktsize="900"><row sinr="0" por="0"/><row sinr="12.5" por="100"/></table></pcr>`

func members(count int) (all []v1alpha1.Member) {
	for nem := int32(1); nem <= int32(count); nem++ {
		all = append(all, v1alpha1.Member{Node: fmt.Sprintf("veh-%d", nem), Group: "veh", NEM: nem, Platform: &nem, Address: fmt.Sprintf("198.18.0.%d/24", nem)})
	}
	return all
}

func power(p v1alpha1.Power) *v1alpha1.Power { return &p }

func pipe() *v1alpha1.RadioNetworkSpec {
	return &v1alpha1.RadioNetworkSpec{Members: members(3), Radios: []v1alpha1.Radio{{Nodes: []string{"veh-1"}, TransmitPower: power("5W")}},
		Waveform: v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{Rate: "9.8kbit", Delay: "100ms", Jitter: "2.5ms", PCR: ownPCR, Interference: v1alpha1.InterferenceOutOfBand,
			PHY: v1alpha1.PHY{Frequency: "300MHz", Bandwidth: "250kHz", TransmitPower: "37dBm", AntennaGain: "2dBi", NoiseFigure: "4.5dB", Pathloss: v1alpha1.PathlossTwoRay, SubID: 9}}}}
}

func slotted() *v1alpha1.RadioNetworkSpec {
	no := false
	return &v1alpha1.RadioNetworkSpec{Members: members(3), Radios: []v1alpha1.Radio{{Nodes: []string{"veh-3"}, TransmitPower: power("30dBm")}},
		Waveform: v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{Rate: "1Mbit", Queue: v1alpha1.TDMAQueue{Fragmentation: &no, AggregationThreshold: "75%"},
			Structure: v1alpha1.TDMAStructure{Frames: 2, SlotDuration: "5ms", SlotOverhead: "3us"}}}}
}

func process() Process {
	return Process{Directory: "/run/emane/1", Device: "ota0", Interface: "radio0"}
}

func TestFilesOfAProcessAreAsAccepted(t *testing.T) {
	raw := process()
	raw.Raw, raw.OTAMTU, raw.EventGroup = true, 1400, netip.MustParseAddrPort("224.1.2.9:45703")
	for _, c := range []struct {
		name    string
		spec    *v1alpha1.RadioNetworkSpec
		process Process
	}{{"rfpipe", pipe(), process()}, {"tdma", slotted(), raw}} {
		t.Run(c.name, func(t *testing.T) {
			files, err := Render(c.spec, &c.spec.Members[0], c.process)
			if err != nil {
				t.Fatal(err)
			}
			var all bytes.Buffer
			for _, f := range files {
				fmt.Fprintf(&all, "== %s\n%s", f.Name, f.Text)
			}
			golden.Check(t, c.name+".txt", all.String())
		})
	}
}

func TestFilesAreValidByEMANEsDocumentTypes(t *testing.T) {
	dtds := filepath.Join(testtool.EMANE(t), "share", "emane", "dtd")
	testtool.Need(t, "xmllint")
	for name, spec := range map[string]*v1alpha1.RadioNetworkSpec{"rfpipe": pipe(), "tdma": slotted(), "ieee80211abg": wifi(), "bypass": bypass(), "commeffect": commEffect(), "bentpipe": bentPipe(), "masks": masked(), "fading": constantFading("nakagami")} {
		directory := t.TempDir()
		p := process()
		p.DTDs = dtds
		files, err := Render(spec, &spec.Members[0], p)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			path := filepath.Join(directory, f.Name)
			if err := os.WriteFile(path, f.Text, 0o600); err != nil {
				t.Fatal(err)
			}
			arguments := []string{"--noout", "--nonet", path}
			if bytes.Contains(f.Text, []byte("<!DOCTYPE")) {
				arguments = append([]string{"--valid"}, arguments...)
			}
			if out, err := exec.Command("xmllint", arguments...).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", name, f.Name, err, out)
			}
		}
	}
}

func TestACurveOfAnotherModelIsWrittenAsTheModelsOwn(t *testing.T) {
	const wifi = `<pcr><table pktsize="128"><datarate index="1"><row sinr="-9" por="0"/><row sinr="-2" por="100"/></datarate>
	  <datarate index="3"><row sinr="0" por="0"/><row sinr="4" por="100"/></datarate></table></pcr>`
	p, s := pipe(), slotted()
	p.Waveform.RFPipe.PCR, p.Waveform.RFPipe.Rate, s.Waveform.TDMA.PCR = wifi, "5.5Mbit", wifi
	for name, c := range map[string]struct {
		spec *v1alpha1.RadioNetworkSpec
		want []string
	}{
		"RF Pipe": {p, []string{`<table pktsize="128">`, `<row sinr="0.00" por="0.00"></row>`, `<row sinr="4.00" por="100.00"></row>`}},
		"TDMA":    {s, []string{`<tdmabasemodel-pcr packetsize="128">`, `<datarate bps="5500000">`, `<entry sinr="-9.00" por="0.00"></entry>`}},
	} {
		files, err := Render(c.spec, &c.spec.Members[0], process())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(files, func(f File) bool { return f.Name == PCR })
		for _, want := range c.want {
			if !strings.Contains(string(files[i].Text), want) {
				t.Errorf("%s: %s\nwant %s", name, files[i].Text, want)
			}
		}
		if strings.Contains(string(files[i].Text), "index=") {
			t.Errorf("%s: %s\nwant no index of a rate", name, files[i].Text)
		}
	}
}

func TestSettingsThatEMANELacksAreRefusedByTheirField(t *testing.T) {
	for _, c := range []struct {
		name, field string
		change      func(pipe, slotted *v1alpha1.RadioNetworkSpec)
	}{
		{"half duplex", "waveform.rfpipe.halfDuplex", func(p, _ *v1alpha1.RadioNetworkSpec) { p.Waveform.RFPipe.HalfDuplex = true }},
		{"interference of its own", "waveform.rfpipe.interference", func(p, _ *v1alpha1.RadioNetworkSpec) { p.Waveform.RFPipe.Interference = v1alpha1.InterferenceAll }},
		{"another queue", "waveform.rfpipe.queueDepth", func(p, _ *v1alpha1.RadioNetworkSpec) { p.Waveform.RFPipe.QueueDepth = 10 }},
		{"half a bit per second", "waveform.rfpipe.rate", func(p, _ *v1alpha1.RadioNetworkSpec) { p.Waveform.RFPipe.Rate = "9.5bit" }},
		{"a curve that is none", "waveform.rfpipe.pcr", func(p, _ *v1alpha1.RadioNetworkSpec) { p.Waveform.RFPipe.PCR = "<pcr/>" }},
		{"a schedule that no event holds", "waveform.tdma.structure", func(_, s *v1alpha1.RadioNetworkSpec) { s.Waveform.TDMA.Structure.Frames = 60000 }},
		{"a slot of no time", "waveform.tdma.structure", func(_, s *v1alpha1.RadioNetworkSpec) { s.Waveform.TDMA.Structure.SlotOverhead = "1s" }},
		{"everybody's NEM id", "members[1].nem", func(p, _ *v1alpha1.RadioNetworkSpec) { p.Members[1].NEM = 65535 }},
		{"a NEM id twice", "members[1].nem", func(p, _ *v1alpha1.RadioNetworkSpec) { p.Members[1].NEM = 1 }},
		{"links", "links", func(_, s *v1alpha1.RadioNetworkSpec) { s.Links = make([]v1alpha1.GroupLink, 1) }},
		{"an address of no subnet", "members", func(p, _ *v1alpha1.RadioNetworkSpec) { p.Members[0].Address = "198.18.0.1" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s := pipe(), slotted()
			c.change(p, s)
			var all []string
			for _, spec := range []*v1alpha1.RadioNetworkSpec{p, s} {
				if _, err := Render(spec, &spec.Members[0], process()); err != nil {
					all = append(all, err.Error())
				}
			}
			if len(all) != 1 || !strings.Contains(all[0], c.field) {
				t.Errorf("refused as %q: want one that names %s", all, c.field)
			}
		})
	}
}

func compiled(t *testing.T) *scenario.Scenario {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	for _, err := range []error{b.Pathloss(0, 1, 2, 70), b.Pathloss(0, 2, 1, 90), b.Pathloss(time.Second, 1, 2, 75), b.Pathloss(time.Second, 3, 1, 101),
		b.Position(0, 1, geo.Position{Latitude: 58.5, Longitude: 7.5, Altitude: 100}), b.Velocity(0, 1, geo.Velocity{Azimuth: 90, Speed: 5})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return scenariotest.Open(t, b)
}

// loss is a pathloss from a NEM and back.
type loss struct {
	From     uint32
	DB, Back float32
}

func pathlosses(t *testing.T, events []Event) map[int][]loss {
	t.Helper()
	all := map[int][]loss{}
	for _, e := range events {
		read := &emanepb.Pathlosses{}
		if e.ID != PathlossEvent {
			continue
		}
		if err := proto.Unmarshal(e.Data, read); err != nil {
			t.Fatal(err)
		}
		for _, p := range read.GetPathlosses() {
			all[e.NEM] = append(all[e.NEM], loss{p.GetFrom(), p.GetForward(), p.GetReverse()})
		}
	}
	return all
}

func TestTheFeedHasChangesAndEverythingForLateReceivers(t *testing.T) {
	feed, err := NewFeed(slotted(), compiled(t))
	if err != nil {
		t.Fatal(err)
	}
	events, next, more, err := feed.Changes(0)
	if err != nil || next != time.Second || !more || len(events) != 2 || events[0].ID != PathlossEvent {
		t.Fatalf("at first %d events, next at %v %v, %v: want two pathlosses, next at 1s", len(events), next, more, err)
	}
	if diff := cmp.Diff(map[int][]loss{2: {{1, 70, 90}}, 1: {{2, 90, 70}}}, pathlosses(t, events)); diff != "" {
		t.Error("at first:", diff)
	}
	events, _, more, err = feed.Changes(time.Second)
	if err != nil || more {
		t.Fatal(more, err)
	}
	if diff := cmp.Diff(map[int][]loss{2: {{1, 75, 90}}, 1: {{3, 101, unknownDB}}}, pathlosses(t, events)); diff != "" {
		t.Error("after a second:", diff)
	}
	if events, _, _, _ = feed.Changes(2 * time.Second); len(events) != 0 {
		t.Errorf("%d events where nothing changes", len(events))
	}
	want := map[int][]loss{2: {{1, 75, 90}}, 1: {{2, 90, 75}, {3, 101, unknownDB}}}
	if diff := cmp.Diff(want, pathlosses(t, feed.All())); diff != "" {
		t.Error("for late ones:", diff)
	}
}

func TestTheFeedHasLocationsOnlyWhereEMANENeedsThem(t *testing.T) {
	byPath, byPosition := slotted(), slotted()
	byPosition.Waveform.TDMA.PHY.Pathloss = v1alpha1.PathlossFreeSpace
	for name, c := range map[string]struct {
		spec *v1alpha1.RadioNetworkSpec
		s    *scenario.Scenario
		want bool
	}{
		"pathloss of the scenario":               {byPath, compiled(t), false},
		"pathloss computed from positions":       {byPosition, compiled(t), true},
		"antenna profiles beside given pathloss": {byPath, directed(t), true},
		"fading beside given pathloss":           {fading(), faded(t), true},
		"a fading model beside given pathloss":   {constantFading("nakagami"), faded(t), true},
	} {
		feed, err := NewFeed(c.spec, c.s)
		if err != nil {
			t.Fatal(err)
		}
		events, _, _, err := feed.Changes(0)
		if err != nil {
			t.Fatal(err)
		}
		if has := slices.ContainsFunc(events, func(e Event) bool { return e.ID == LocationEvent }); has != c.want {
			t.Errorf("%s: locations %t, want %t", name, has, c.want)
		}
	}
}

func TestTheFeedHasPathlossByFrequency(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	for _, err := range []error{b.Pathloss(0, 1, 2, 70), b.PathlossAt(0, 1, 2, 2347e6, 72), b.PathlossAt(0, 1, 2, 310e6, 60), b.PathlossAt(time.Second, 1, 2, 310e6, 61)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	spec := slotted()
	spec.Members = spec.Members[:2]
	feed, err := NewFeed(spec, scenariotest.Open(t, b))
	if err != nil {
		t.Fatal(err)
	}
	type lossAt struct {
		From  uint32
		Hertz uint64
		DB    float32
	}
	read := func(events []Event) (all []lossAt) {
		for _, e := range events {
			if e.ID != PathlossExEvent {
				continue
			}
			read := &emanepb.FrequencyPathlosses{}
			if err := proto.Unmarshal(e.Data, read); err != nil || e.NEM != 2 {
				t.Fatalf("%v for NEM %d", err, e.NEM)
			}
			for _, p := range read.GetPathlosses() {
				for _, entry := range p.GetEntries() {
					all = append(all, lossAt{p.GetFrom(), entry.GetFrequencyHertz(), entry.GetLoss()})
				}
			}
		}
		return all
	}
	events, _, _, err := feed.Changes(0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int][]loss{2: {{1, 70, unknownDB}}}, pathlosses(t, events)); diff != "" {
		t.Error("at frequencies without their own:", diff)
	}
	if diff := cmp.Diff([]lossAt{{1, 310e6, 60}, {1, 2347e6, 72}}, read(events)); diff != "" {
		t.Error("at those with their own, of which one is the network's:", diff)
	}
	if events, _, _, err = feed.Changes(time.Second); err != nil || len(events) != 1 {
		t.Fatalf("%d events after a second, %v; want the one that changed", len(events), err)
	}
	if diff := cmp.Diff([]lossAt{{1, 310e6, 61}}, read(events)); diff != "" {
		t.Error("after a second:", diff)
	}
}

func TestAFeedForAPlatformThatIsNotThereNamesIt(t *testing.T) {
	spec := slotted()
	other := int32(9)
	spec.Members[2].Platform = &other
	if _, err := NewFeed(spec, compiled(t)); err == nil || !strings.Contains(err.Error(), "platform 9 of veh-3") {
		t.Error(err)
	}
}

// readDatagram reads a datagram on the event channel, and its events.
func readDatagram(datagram []byte) (*emanepb.Datagram, []Event, error) {
	if len(datagram) < 2 || int(binary.BigEndian.Uint16(datagram)) != len(datagram)-2 {
		return nil, nil, errors.New("its length differs from the one in its header")
	}
	read := &emanepb.Datagram{}
	if err := proto.Unmarshal(datagram[2:], read); err != nil {
		return nil, nil, err
	}
	var events []Event
	for _, e := range read.GetEvents().GetEvents() {
		events = append(events, Event{int(e.GetNem()), EventID(e.GetKind()), e.GetData()})
	}
	return read, events, nil
}

func TestDatagramsHaveAllEventsInOrderAndNoneIsCut(t *testing.T) {
	var want []Event
	for nem := 1; nem <= 60; nem++ {
		want = append(want, Event{nem, PathlossEvent, bytes.Repeat([]byte{byte(nem)}, 42)})
	}
	source := Source{ID: [16]byte{1, 2, 3}}
	datagrams, err := source.Datagrams(want)
	if err != nil || len(datagrams) < 2 {
		t.Fatal(len(datagrams), err)
	}
	var got []Event
	for i, d := range datagrams {
		read, events, err := readDatagram(d)
		if err != nil || !bytes.Equal(read.GetPublisher(), source.ID[:]) || read.GetSequence() != uint64(i+1) || len(d) > 1400 {
			t.Fatalf("datagram %d of %d bytes, %v: %v", i, len(d), read, err)
		}
		got = append(got, events...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAScheduleThatNoDatagramHoldsIsRefused(t *testing.T) {
	if _, err := (&Source{}).Datagrams([]Event{{1, ScheduleEvent, make([]byte, 65500)}}); err == nil || !strings.Contains(err.Error(), "NEM 1") {
		t.Error(err)
	}
}

func TestEventsReachAGroup(t *testing.T) {
	listener, err := net.ListenMulticastUDP("udp4", loopback(t), net.UDPAddrFromAddrPort(DefaultEventGroup))
	if err != nil {
		t.Skip("multicast on the loopback: ", err)
	}
	defer listener.Close()
	publisher, err := NewPublisher(context.Background(), DefaultEventGroup, "lo", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	schedule, err := Schedule(slotted())
	if err != nil {
		t.Fatal(err)
	}
	if err := publisher.Publish([]Event{ScheduleFor(3, schedule)}); err != nil {
		t.Fatal(err)
	}
	if err := listener.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 65536)
	n, _, err := listener.ReadFrom(buffer)
	if err != nil {
		t.Fatal(err)
	}
	_, events, err := readDatagram(buffer[:n])
	if err != nil || len(events) != 1 || events[0].NEM != 3 || events[0].ID != ScheduleEvent {
		t.Error(events, err)
	}
}

func loopback(t *testing.T) *net.Interface {
	t.Helper()
	i, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func FuzzDatagrams(f *testing.F) {
	datagrams, err := (&Source{}).Datagrams([]Event{{1, PathlossEvent, []byte("some")}, {65534, LocationEvent, make([]byte, 1300)}, {0, ScheduleEvent, []byte{}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, d := range datagrams {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, datagram []byte) {
		_, events, err := readDatagram(datagram)
		if err != nil {
			return
		}
		again, err := (&Source{}).Datagrams(events)
		if err != nil {
			return // longer than a datagram
		}
		var back []Event
		for _, d := range again {
			_, some, err := readDatagram(d)
			if err != nil {
				t.Fatal(err)
			}
			back = append(back, some...)
		}
		if diff := cmp.Diff(events, back); diff != "" {
			t.Fatal("after being written and read again:", diff)
		}
	})
}
