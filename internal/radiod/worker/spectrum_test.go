package worker

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// crowdedBand has two networks on one frequency. node-1 and node-2 of vhf are 3 km apart, node-3 of uhf is 500 m from node-2.
type crowdedBand struct {
	vhf, uhf *v1alpha1.RadioNetwork
	// here has vhf, there uhf.
	here, there *site
	pods        []*pod
}

// crowd attaches the nodes of vhf to one host and those of uhf to another, or all to one.
func crowd(t *testing.T, waveform v1alpha1.WaveformSpec, here, there *site) *crowdedBand {
	t.Helper()
	c := &crowdedBand{here: here, there: there, vhf: networkOf("run-1", "vhf", "pod-1", "pod-2"), uhf: networkOf("run-1", "uhf", "pod-3", "pod-4")}
	c.vhf.Spec.Waveform = waveform
	c.uhf.Spec.Waveform = rfpipeInFreeSpace("10kbit", v1alpha1.InterferenceNone)
	for i, metres := range []float64{0, 3000} {
		c.vhf.Spec.Members[i].Position = northOf(1, metres)
	}
	for i, metres := range []float64{3500, 5000} {
		m := &c.uhf.Spec.Members[i]
		m.Node, m.Address, m.Position = fmt.Sprintf("node-%d", i+3), fmt.Sprintf("198.18.8.%d/24", i+1), northOf(1, metres)
	}
	c.set(t, "band")
	for i, n := range []*v1alpha1.RadioNetwork{c.vhf, c.vhf, c.uhf, c.uhf} {
		c.pods = append(c.pods, newPod(t, fmt.Sprintf("pod-%d", i+1)))
		to := here
		if n == c.uhf {
			to = there
		}
		c.pods[i].attach(t, to.Manager, n.Spec.Network)
	}
	c.set(t, "band")
	return c
}

func rfpipeInFreeSpace(rate v1alpha1.DataRate, counted v1alpha1.Interference) v1alpha1.WaveformSpec {
	w := radiodtest.RFPipe()
	w.RFPipe.PHY.Pathloss, w.RFPipe.Rate, w.RFPipe.Interference = v1alpha1.PathlossFreeSpace, rate, counted
	return w
}

// set publishes both networks with a spectrum.
func (c *crowdedBand) set(t *testing.T, spectrum string) {
	t.Helper()
	c.vhf.Spec.Spectrum, c.uhf.Spec.Spectrum = spectrum, spectrum
	for _, n := range []*v1alpha1.RadioNetwork{c.vhf, c.uhf} {
		n.Generation++
		if c.here != c.there {
			publish(t, n, c.here, c.there)
		} else if err := c.here.SetNetwork(n.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
}

// hears reports whether node-2 receives a broadcast of node-1. With disturbed, uhf's node-3 is on the air all the while.
func (c *crowdedBand) hears(t *testing.T, disturbed bool) bool {
	t.Helper()
	if disturbed {
		c.sendLong(t)
	}
	before, sent := counted(c.here.Manager, "node-2"), counted(c.here.Manager, "node-1").FramesSent
	c.pods[0].sendBroadcasts(t, 1)
	eventually(t, "node-1 has sent", func() bool {
		n := counted(c.here.Manager, "node-1")
		return n.FramesSent == sent+1 && n.InFlight == 0
	})
	after := counted(c.here.Manager, "node-2")
	if disturbed {
		if counted(c.there.Manager, "node-3").InFlight == 0 {
			t.Skip("the machine is too busy")
		}
		eventually(t, "uhf is silent again", func() bool { return counted(c.there.Manager, "node-3").InFlight == 0 })
	}
	heard, missed := after.FramesReceived-before.FramesReceived, after.Drops[radio.Interfered]-before.Drops[radio.Interfered]
	if heard+missed != 1 {
		t.Errorf("node-2 received %d frames and missed %d; want one of them", heard, missed)
	}
	return heard == 1
}

// sendLong puts a frame of uhf on the air that takes more than a second, and waits until all hosts know of it.
func (c *crowdedBand) sendLong(t *testing.T) {
	t.Helper()
	known := uint64(0)
	if c.here != c.there {
		known = c.here.sees("there").Received
	}
	c.pods[2].do(t, func() error {
		conn, err := net.Dial("udp4", "198.18.8.255:7000")
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write(make([]byte, 1300))
		return err
	})
	eventually(t, "uhf is on the air", func() bool { return counted(c.there.Manager, "node-3").InFlight == 1 })
	if c.here != c.there {
		eventually(t, "the other host knows", func() bool { return c.here.sees("there").Received > known })
	}
}

func TestNetworksOfOneSpectrumDisturbEachOther(t *testing.T) {
	s := newSite(t, "here", &atomic.Bool{}, skewedClock{})
	for name, waveform := range map[string]v1alpha1.WaveformSpec{"rfpipe": rfpipeInFreeSpace("1Mbit", v1alpha1.InterferenceOutOfBand), "tdma": slotsOf("20ms")} {
		t.Run(name, func(t *testing.T) {
			c := crowd(t, waveform, s, s)
			defer func() { _ = s.RemoveNetwork(string(c.vhf.UID)) }()
			if !c.hears(t, false) {
				t.Error("lost although nobody else sends")
			}
			if c.hears(t, true) {
				t.Error("arrived although a stronger signal of another network was in the band")
			}
			c.set(t, "")
			if !c.hears(t, true) {
				t.Error("without a common spectrum: lost")
			}
			c.set(t, "band")
			if c.hears(t, true) {
				t.Error("with the spectrum again: arrived")
			}
			if err := s.RemoveNetwork(string(c.uhf.UID)); err != nil {
				t.Fatal(err)
			}
			if !c.hears(t, false) {
				t.Error("after the other network's end: lost")
			}
		})
	}
}

func TestNetworksDisturbEachOtherAlsoAfterAWorkersEnd(t *testing.T) {
	r := newRadiod(t)
	_, connect := startPlane(t)
	start := func() *Manager {
		m, held := managerOn(t, r.parent, r.directory, connect(dataplane.ProcessOptions{StateDirectory: r.directory}))
		_ = restored(t, m, held)
		return m
	}
	one := &site{Manager: start()}
	c := crowd(t, rfpipeInFreeSpace("1Mbit", v1alpha1.InterferenceOutOfBand), one, one)
	if c.hears(t, true) {
		t.Error("arrived although a stronger signal of another network was in the band")
	}
	one.Close()
	one.Manager = start()
	if err := one.Options.Plane.DropLeft(); err != nil {
		t.Fatal(err)
	}
	if c.hears(t, true) {
		t.Error("arrived after the worker's restart")
	}
	if !c.hears(t, false) {
		t.Error("lost although nobody else sends")
	}
}

func TestANetworkOfAnotherHostDisturbsWithinASpectrum(t *testing.T) {
	cut := &atomic.Bool{}
	here, there := newSite(t, "here", cut, skewedClock{}), newSite(t, "there", cut, skewedClock{})
	c := crowd(t, rfpipeInFreeSpace("1Mbit", v1alpha1.InterferenceOutOfBand), here, there)
	eventually(t, "the hosts know each other's clocks", func() bool { return here.sees("there").Clock.Known && there.sees("here").Clock.Known })
	if !c.hears(t, false) {
		t.Error("lost although nobody else sends")
	}
	if c.hears(t, true) {
		t.Error("arrived although a stronger signal of another network was in the band")
	}
}
