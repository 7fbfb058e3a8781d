package emane

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/antenna"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// air is processes of the installed EMANE in one namespace, as in their pod.
type air struct {
	namespace *os.File
	stations  map[int]*station // by NEM id
	publisher *Publisher
	// repeat is published again with everything that is awaited, for processes that were not there yet.
	repeat func() []Event
}

// station is one NEM's process.
type station struct {
	socket  int // of the node's interface
	control *Control
	layers  map[Layer]uint32
}

// onAir starts the members of networks that share one channel, or skips.
func onAir(t *testing.T, s *scenario.Scenario, networks ...*v1alpha1.RadioNetworkSpec) *air {
	t.Helper()
	installed := testtool.EMANE(t)
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	a := &air{namespace: newNamespace(t), stations: map[int]*station{}}
	hub := newNamespace(t)
	a.do(t, func() error { return channels(hub) })
	for _, spec := range networks {
		for i := range spec.Members {
			a.start(t, installed, spec, &spec.Members[i], NewAntennas(spec, s))
		}
	}
	a.do(t, func() (err error) {
		a.publisher, err = NewPublisher(context.Background(), DefaultEventGroup, "ota0", 0)
		return err
	})
	t.Cleanup(func() { _ = a.publisher.Close() })
	return a
}

func (a *air) do(t *testing.T, what func() error) {
	t.Helper()
	if err := netns.Do(a.namespace, what); err != nil {
		t.Fatal(err)
	}
}

// start a member's process, and connect to its control port.
func (a *air) start(t *testing.T, installed string, spec *v1alpha1.RadioNetworkSpec, member *v1alpha1.Member, antennas *Antennas) {
	t.Helper()
	nem := int(member.NEM)
	p := Process{Directory: t.TempDir(), DTDs: filepath.Join(installed, "share", "emane", "dtd"), Device: "ota0", HostOnly: true, Interface: Interface(member.NEM), Raw: true,
		Control: netip.AddrPortFrom(DefaultControl.Addr(), DefaultControl.Port()+uint16(nem)), Antennas: antennas} //nolint:gosec // a few
	one := &station{layers: map[Layer]uint32{}}
	a.stations[nem] = one
	command, err := commandFor(installed, spec, member, &p)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(p.Directory, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = log, log
	a.do(t, func() (err error) {
		if one.socket, err = nodeInterface(p.Interface); err != nil {
			return err
		}
		return command.Start()
	})
	t.Cleanup(func() {
		_, _, _ = command.Process.Kill(), command.Wait(), unix.Close(one.socket)
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("EMANE of NEM %d: %s", nem, text)
		}
	})
	a.do(t, func() error { return one.connect(p.Control.String()) })
}

// nodeInterface makes a process's interface, and returns a socket at its other end.
func nodeInterface(name string) (socket int, err error) {
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-node"}
	if err := netlink.LinkAdd(veth); err != nil {
		return -1, err
	}
	for _, end := range []string{veth.Name, veth.PeerName} {
		link, err := netlink.LinkByName(end)
		if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			return -1, err
		}
	}
	node, err := net.InterfaceByName(veth.PeerName)
	if err != nil {
		return -1, err
	}
	if socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	return socket, unix.Bind(socket, &unix.SockaddrLinklayer{Ifindex: node.Index})
}

func (s *station) connect(address string) error {
	var connection net.Conn
	err := errors.New("never tried")
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		connection, err = net.DialTimeout("tcp4", address, time.Second)
	}
	if err != nil {
		return err
	}
	s.control = NewControl(connection, 10*time.Second)
	nems, err := s.control.Manifest()
	if err != nil {
		return err
	}
	for _, component := range nems[0].Components {
		s.layers[component.Layer] = component.BuildID
	}
	return nil
}

// follow publishes a scenario's events for a network up to a time.
func (a *air) follow(t *testing.T, feed *Feed, at time.Duration) {
	t.Helper()
	if _, _, _, err := feed.Changes(at); err != nil {
		t.Fatal(err)
	}
	a.repeat = feed.All
	a.publish(t)
}

func (a *air) publish(t *testing.T) {
	t.Helper()
	if err := a.publisher.Publish(a.repeat()); err != nil {
		t.Fatal(err)
	}
}

// send broadcasts frames.
func (a *air) send(t *testing.T, from, frames, bytes int) {
	t.Helper()
	frame := make([]byte, max(bytes, 60))
	copy(frame, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 2, 0, 0, 0, byte(from), 0x88, 0xb5}) // a type for experiments
	for range frames {
		if _, err := unix.Write(a.stations[from].socket, frame); err != nil {
			t.Fatal(err)
		}
	}
}

// heardFrom is a row of a receiver's power table.
type heardFrom struct {
	from      int
	frequency uint64
}

// powers are what a NEM has last received, in dBm.
func (a *air) powers(t *testing.T, nem int) map[heardFrom]float64 {
	t.Helper()
	one, all := a.stations[nem], map[heardFrom]float64{}
	tables, err := one.control.Tables(one.layers[PHY], "ReceivePowerTable")
	if err != nil {
		t.Fatal(err)
	}
	table := tables["ReceivePowerTable"]
	table.each(func(from int, row map[string]any) {
		all[heardFrom{from, count(row, "Frequency")}] = number(row, "Rx Power")
	})
	return all
}

// until sends from NEM 1 and publishes, until a condition holds.
func (a *air) until(t *testing.T, what string, condition func() (is bool, found any)) {
	t.Helper()
	var found any
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		a.publish(t)
		a.send(t, 1, 1, 100)
		is := false
		if is, found = condition(); is {
			return
		}
	}
	t.Fatalf("%s: not after 20 s, but %v", what, found)
}

// hear waits until each NEM receives what it should from NEM 1, in dBm, at one frequency.
func (a *air) hear(t *testing.T, what string, hertz uint64, want map[int]float64) {
	t.Helper()
	a.until(t, what, func() (bool, any) {
		found, all := map[int]float64{}, true
		for nem, dBm := range want {
			got, heard := a.powers(t, nem)[heardFrom{1, hertz}]
			found[nem] = got
			all = all && heard && math.Abs(got-dBm) < 0.1
		}
		return all, found
	})
}

// measured is a network of RF Pipe at 300 MHz and 0 dBm, whose receivers keep a table of powers.
func measured(nems int, parameters ...v1alpha1.EMANEParameter) *v1alpha1.RadioNetworkSpec {
	table := v1alpha1.EMANEParameter{Layer: v1alpha1.EMANELayerPHY, Name: "stats.receivepowertableenable", Values: []string{"on"}}
	return &v1alpha1.RadioNetworkSpec{Members: members(nems), Waveform: v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{Rate: "1Mbit", PHY: v1alpha1.PHY{Frequency: "300MHz"}},
		EMANE: &v1alpha1.EMANESettings{Parameters: append(parameters, table)}}}
}

func phyParameter(name, value string) v1alpha1.EMANEParameter {
	return v1alpha1.EMANEParameter{Layer: v1alpha1.EMANELayerPHY, Name: name, Values: []string{value}}
}

// inARow has platforms 1, 2 and 3 from west to east with 1 in the middle, 580 m apart and high enough, and a pathloss of 80 dB.
func inARow(t *testing.T) *scenario.Builder {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	for platform, longitude := range map[int]float64{1: 8, 2: 7.99, 3: 8.01} {
		if err := b.Position(0, platform, geo.Position{Latitude: 58, Longitude: longitude, Altitude: 400}); err != nil {
			t.Fatal(err)
		}
		for other := 1; other <= 3; other++ {
			if other != platform {
				if err := b.Pathloss(0, platform, other, 80); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return b
}

func feedOf(t *testing.T, spec *v1alpha1.RadioNetworkSpec, s *scenario.Scenario) *Feed {
	t.Helper()
	feed, err := NewFeed(spec, s)
	if err != nil {
		t.Fatal(err)
	}
	return feed
}

func TestARealEMANEHearsAnAntennaByItsPatternPointingAndBlockage(t *testing.T) {
	ahead := &antenna.Pattern{Elevations: []antenna.Elevation{{Min: -90, Max: 90, Bearings: []antenna.Bearing{{Min: 0, Max: 45, Gain: 10}, {Min: 46, Max: 314, Gain: -15}, {Min: 315, Max: 359, Gain: 10}}}}}
	mast := &antenna.Pattern{Elevations: []antenna.Elevation{{Min: -90, Max: 90, Bearings: []antenna.Bearing{{Min: 0, Max: 45}, {Min: 46, Max: 135, Gain: -12}, {Min: 136, Max: 359}}}}}
	b := inARow(t)
	b.Antennas(antenna.Profiles{{ID: 1, Antenna: ahead}, {ID: 2, Antenna: ahead, Blockage: mast}})
	for at, profile := range map[time.Duration]scenario.AntennaProfile{time.Second: {ID: 1, Azimuth: 90}, 2 * time.Second: {ID: 1, Azimuth: 270}, 3 * time.Second: {ID: 2, Azimuth: 90}} {
		if err := b.AntennaProfile(at, 1, profile); err != nil {
			t.Fatal(err)
		}
	}
	spec, s := measured(3), scenariotest.Open(t, b)
	spec.Waveform.RFPipe.PHY.AntennaGain = "1dBi"
	a, feed := onAir(t, s, spec), feedOf(t, spec, s)
	for _, step := range []struct {
		at   time.Duration
		what string
		want map[int]float64 // both receivers have 1 dBi
	}{
		{0, "before the first profile, the fixed gain", map[int]float64{2: -78, 3: -78}},
		{time.Second, "pointing east", map[int]float64{2: -94, 3: -69}},
		{2 * time.Second, "pointing west", map[int]float64{2: -69, 3: -94}},
		{3 * time.Second, "pointing east behind a mast", map[int]float64{2: -94, 3: -81}},
	} {
		a.follow(t, feed, step.at)
		a.hear(t, step.what, 300e6, step.want)
	}
}

func TestARealEMANEHasThePathlossOfEachSlotsFrequency(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	for _, err := range []error{b.Pathloss(0, 1, 2, 90), b.PathlossAt(0, 1, 2, 310e6, 70), b.PathlossAt(time.Second, 1, 2, 310e6, 76)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	spec := slotted()
	spec.Members, spec.Radios = spec.Members[:2], nil
	spec.Waveform.EMANE = &v1alpha1.EMANESettings{Parameters: []v1alpha1.EMANEParameter{phyParameter("stats.receivepowertableenable", "on")}}
	spec.Waveform.TDMA = &v1alpha1.TDMAModel{PHY: v1alpha1.PHY{Frequency: "310MHz"}, Schedule: `<emane-tdma-schedule><structure frames="1" slots="2" slotoverhead="0" slotduration="10000" bandwidth="1000000"/>
<multiframe frequency="300M" power="0" class="0" datarate="1M"><frame index="0"><slot index="0" nodes="1"/>
<slot index="1" nodes="1"><tx frequency="310M"/></slot><slot index="1" nodes="2"><rx frequency="310M"/></slot></frame></multiframe></emane-tdma-schedule>`}
	schedule, err := tdma.ParseSchedule([]byte(spec.Waveform.TDMA.Schedule), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := scenariotest.Open(t, b)
	a, feed := onAir(t, s, spec), feedOf(t, spec, s)
	for _, step := range []struct {
		at   time.Duration
		want float64
	}{{0, -70}, {time.Second, -76}} {
		a.follow(t, feed, step.at)
		a.until(t, "both frequencies", func() (bool, any) {
			for nem := 1; nem <= 2; nem++ {
				one := a.stations[nem]
				values, err := one.control.Statistics(one.layers[MAC], "scheduler.scheduleAcceptFull")
				if err == nil && count(values, "scheduler.scheduleAcceptFull") == 0 {
					err = a.publisher.Publish([]Event{ScheduleFor(nem, schedule)})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			a.send(t, 1, 3, 1000) // for both slots
			got := a.powers(t, 2)
			return math.Abs(got[heardFrom{1, 300e6}]+90) < 0.1 && math.Abs(got[heardFrom{1, 310e6}]-step.want) < 0.1, got
		})
	}
}

// drawn are the powers of some transmissions of NEM 1, as another NEM received them.
func (a *air) drawn(t *testing.T, nem int) (dBm []float64) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(dBm) < 40 && time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		a.send(t, 1, 1, 100)
		if got, heard := a.powers(t, nem)[heardFrom{1, 300e6}]; heard {
			dBm = append(dBm, got)
		}
	}
	return dBm
}

func spread(dBm []float64) float64 {
	if len(dBm) == 0 {
		return math.NaN()
	}
	return slices.Max(dBm) - slices.Min(dBm)
}

func TestARealEMANEFadesWhatTheScenarioSelects(t *testing.T) {
	b := inARow(t)
	for _, err := range []error{b.FadingSelection(0, 1, 2, scenario.FadingNakagami), b.FadingSelection(time.Second, 1, 2, scenario.FadingNone),
		b.FadingSelection(time.Second, 1, 3, scenario.FadingLognormal)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// Rayleigh fading at all distances; shadows of 12 dB at most.
	spec, s := measured(3, phyParameter("fading.nakagami.m2", "1"), phyParameter("fading.lognormal.maxpathloss", "12"), phyParameter("fading.lognormal.dmu", "-0.7")), scenariotest.Open(t, b)
	spec.FadingSelections = true
	a, feed := onAir(t, s, spec), feedOf(t, spec, s)
	for _, step := range []struct {
		at            time.Duration
		fades, steady int
	}{{0, 2, 3}, {time.Second, 3, 2}} {
		a.follow(t, feed, step.at)
		a.hear(t, fmt.Sprintf("NEM %d without fading at %s", step.steady, step.at), 300e6, map[int]float64{step.steady: -80})
		if got := a.drawn(t, step.fades); !(spread(got) > 3) {
			t.Errorf("at %s NEM %d receives %v; want fading", step.at, step.fades, got)
		}
		if got := a.drawn(t, step.steady); !(spread(got) < 0.1) {
			t.Errorf("at %s NEM %d receives %v; want no fading", step.at, step.steady, got)
		}
	}
}

func TestARealEMANEFadesByAModelOfItsParameters(t *testing.T) {
	s := scenariotest.Open(t, inARow(t))
	spec := measured(2, phyParameter("fading.model", "nakagami"), phyParameter("fading.nakagami.m2", "1"))
	a, feed := onAir(t, s, spec), feedOf(t, spec, s)
	a.follow(t, feed, 0)
	a.until(t, "something is received", func() (bool, any) { got := a.powers(t, 2); return len(got) > 0, got })
	got, sum := a.drawn(t, 2), 0.0
	for _, dBm := range got {
		sum += math.Pow(10, (dBm+80)/10)
	}
	// The mean of 40 exponential variables is within a factor of 2 but once in 10 000.
	if mean := sum / float64(len(got)); !(spread(got) > 3) || mean < 0.5 || mean > 2 {
		t.Errorf("NEM 2 receives %v; want them to fade about -80 dBm", got)
	}
}

// neighbouring has NEM 3 on the channel above that of NEMs 1 and 2, sending with a mask.
func neighbouring(mask string) (ours, theirs *v1alpha1.RadioNetworkSpec) {
	ours, theirs = measured(2), measured(3, phyParameter("spectralmaskindex", mask))
	theirs.Members = theirs.Members[2:]
	ours.Waveform.RFPipe.Interference = v1alpha1.InterferenceOutOfBand
	theirs.Waveform.RFPipe.Rate, theirs.Waveform.RFPipe.PHY.Frequency, theirs.Waveform.RFPipe.PHY.SubID = "20kbit", "301MHz", 2
	for _, spec := range []*v1alpha1.RadioNetworkSpec{ours, theirs} {
		spec.Waveform.EMANE.SpectralMasks = `<spectral-mask-manifest><mask id="3"><primary><width hz="1M" dBr="-10"/><width hz="1M" dBr="0"/><width hz="1M" dBr="-10"/></primary></mask></spectral-mask-manifest>`
	}
	return ours, theirs
}

func TestARealEMANEIsDisturbedByWhatASpectralMaskLetsIntoItsChannel(t *testing.T) {
	for mask, want := range map[string]float64{"0": 30, "3": 10} { // dB; -80 dBm over -110 dBm, or over -90 dBm
		t.Run("mask "+mask, func(t *testing.T) {
			s := scenariotest.Open(t, inARow(t))
			ours, theirs := neighbouring(mask)
			a := onAir(t, s, ours, theirs)
			feed, err := NewFeed(ours, s, theirs.Members...)
			if err != nil {
				t.Fatal(err)
			}
			a.follow(t, feed, 0)
			a.send(t, 3, 60, 1200) // half a second each
			one := a.stations[2]
			a.until(t, "the SINR of what is received meanwhile", func() (bool, any) {
				tables, err := one.control.Tables(one.layers[MAC], "RFSignalTable")
				if err != nil {
					t.Fatal(err)
				}
				sinr, table := math.NaN(), tables["RFSignalTable"]
				table.each(func(from int, row map[string]any) {
					if from == 1 {
						sinr = number(row, "AvgSINR")
					}
				})
				return math.Abs(sinr-want) < 1, sinr
			})
		})
	}
}
