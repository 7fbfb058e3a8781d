package tdma

import (
	"math"
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// four is a schedule of one frame of four slots of 10 ms with the given slot elements.
func four(t testing.TB, slots string) *Schedule {
	return parsed(t, `<emane-tdma-schedule><structure frames="1" slots="4" slotoverhead="0" slotduration="10000" bandwidth="1M"/>
		<multiframe frequency="2.4G" power="0" class="0" datarate="1M"><frame index="0">`+slots+`</frame></multiframe></emane-tdma-schedule>`, nil)
}

func TestWhoReceivesABroadcast(t *testing.T) {
	none := map[radio.Reason]int{}
	for _, c := range []struct {
		name     string
		slots    string // of node 2; node 1 sends in slot 0
		pathloss float64
		received bool
		missed   map[radio.Reason]int
	}{
		{"one who listens", `<slot index="0" nodes="2"><rx/></slot>`, 70, true, none},
		{"one whose slot is not listed", `<slot index="1" nodes="2"/>`, 70, true, none},
		{"not one on another frequency", `<slot index="0" nodes="2"><rx frequency="2.5G"/></slot>`, 70, false, map[radio.Reason]int{radio.NotListening: 1}},
		{"not one who is idle", `<slot index="0" nodes="2"><idle/></slot>`, 70, false, map[radio.Reason]int{radio.NotListening: 1}},
		{"not one who may send, even if it has nothing to send", `<slot index="0" nodes="2"/>`, 70, false, map[radio.Reason]int{radio.NotListening: 1}},
		{"one at the sensitivity", `<slot index="1" nodes="2"/>`, 110, true, none},
		{"not one below the sensitivity", `<slot index="1" nodes="2"/>`, 110.1, false, map[radio.Reason]int{radio.BelowSensitivity: 1}},
		{"not one far away, who does not count", `<slot index="1" nodes="2"/>`, 200, false, none},
		{"not one to whom the pathloss is unknown", `<slot index="1" nodes="2"/>`, math.NaN(), false, none},
		{"not one whom the schedule does not name", ``, 70, false, map[radio.Reason]int{radio.NotListening: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSimulation(t, 2, func(config *Config) { config.Schedule = four(t, `<slot index="0" nodes="1"/>`+c.slots) })
			s.pathloss[0][1] = c.pathloss
			s.pass(time.Second)
			s.send(0, everybody, 0, 7, 500)
			s.pass(time.Second)
			if got := s.sequences(1); len(got) > 0 != c.received {
				t.Errorf("received %v; want %v", got, c.received)
			}
			if got := s.missed(s.ports[1]); len(got) != len(c.missed) || got[radio.NotListening] != c.missed[radio.NotListening] || got[radio.BelowSensitivity] != c.missed[radio.BelowSensitivity] {
				t.Errorf("missed %v; want %v", got, c.missed)
			}
			if s.kept() != 0 || len(s.dropped()) != 0 {
				t.Errorf("%d frames left, dropped %v", s.kept(), s.dropped())
			}
		})
	}
}

func TestARadioOfAnotherNetworkKeepsItsOwnBandwidth(t *testing.T) {
	s := newSimulation(t, 1, func(c *Config) {
		c.Schedule = schedule(t, 1, milliseconds(1, 10*time.Millisecond), 1e6)
		radios := c.Radio
		c.Radio = func(p *radio.Port) phy.Radio {
			r := radios(p)
			r.BandwidthHertz = 25e3
			return r
		}
	})
	other, err := s.network.Attach(s.now, radio.PortOptions{NEM: 9, Host: wire{}, Neighbour: true})
	if err != nil {
		t.Fatal(err)
	}
	if own, its := s.model.Medium().Radio(s.ports[0]).BandwidthHertz, s.model.Medium().Radio(other).BandwidthHertz; own != 1e6 || its != 25e3 {
		t.Errorf("bandwidths %v Hz of the member and %v Hz of the other radio; want 1 MHz of the schedule and 25 kHz", own, its)
	}
}

func TestAUnicastReachesItsAddresseeAlone(t *testing.T) {
	s := newSimulation(t, 4, func(c *Config) { c.Schedule = schedule(t, 4, milliseconds(4, 10*time.Millisecond), 1e6) })
	s.pathloss[0][3] = 300
	s.pass(time.Second)
	s.send(0, s.address(1), 0, 1, 500)
	s.send(0, s.address(3), 0, 2, 500)
	s.send(0, 0x020200000063, 0, 3, 100)
	s.pass(time.Second)
	if !slices.Equal(s.sequences(1), []uint64{1}) || s.sequences(2) != nil || s.sequences(3) != nil {
		t.Errorf("received %v, %v and %v; want 1 by the addressee alone", s.sequences(1), s.sequences(2), s.sequences(3))
	}
	if s.anyMissed() != 1 || s.missed(s.ports[3])[radio.BelowSensitivity] != 1 {
		t.Errorf("missed %v; want one by the addressee that is out of reach", s.anyMissed())
	}
	if s.dropped()[radio.NoReceiver] != 1 || s.kept() != 0 {
		t.Errorf("dropped %v; want the frame to nobody as noReceiver", s.dropped())
	}
}

// Nodes 1 and 3 have the same slot and are out of each other's range; node 2 is in range of both.
func TestHiddenTerminalsInterfereWhereTheyShareASlot(t *testing.T) {
	for _, c := range []struct {
		name         string
		interference phy.Interference
		weaker       float64 // pathloss of node 3, dB
		least, most  int     // frames of 200 that node 2 receives
		reason       radio.Reason
	}{
		{"equally strong ones destroy each other", phy.All, 70, 0, 0, radio.Interfered},
		{"of a strong and a weak one the receiver follows either, and gets the strong one", phy.All, 100, 70, 130, radio.Interfered},
		{"one below the sensitivity disturbs nobody", phy.All, 115, 200, 200, radio.BelowSensitivity},
		{"without interference the receiver gets the one it follows", phy.None, 70, 200, 200, radio.Interfered},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSimulation(t, 3, func(config *Config) {
				config.Schedule = four(t, `<slot index="0" nodes="1,3"/><slot index="1" nodes="2"/>`)
				config.Interference = c.interference
				config.PCR = curve(t, "3", "10")
			})
			s.pathloss[2][1] = c.weaker
			s.pass(time.Second)
			for i := range uint64(200) {
				s.send(0, everybody, 0, i, 1000)
				s.send(2, everybody, 0, i, 1000)
				s.pass(40 * time.Millisecond)
			}
			s.pass(time.Second)
			got := len(s.received[s.ports[1]])
			if got < c.least || got > c.most || s.missed(s.ports[1])[c.reason] != 400-got {
				t.Errorf("%d frames received, missed %v; want %d to %d, and the rest as %v", got, s.missed(s.ports[1]), c.least, c.most, c.reason)
			}
			heard, missed := uint64(0), uint64(0)
			for _, l := range s.model.Medium().AppendLinks(nil, s.ports[1]) {
				heard += l.Received
				missed += l.Missed[c.reason-radio.BelowSensitivity]
			}
			if heard != uint64(got) || missed != uint64(400-got) {
				t.Errorf("its links heard %d and missed %d; want %d and %d, as the node did", heard, missed, got, 400-got)
			}
			if s.missed(s.ports[0])[radio.NotListening] != 200 {
				t.Errorf("node 1, which sends in the same slot, missed %v; want 200 as notListening", s.missed(s.ports[0]))
			}
		})
	}
}

// curve is a PCR curve from nothing at one SINR to all at another, dB.
func curve(t testing.TB, low, high string) *phy.Curve {
	t.Helper()
	c, err := phy.ParsePCR([]byte(`<tdmabasemodel-pcr packetsize="0"><datarate bps="1M"><entry sinr="` + low + `" por="0"/><entry sinr="` + high + `" por="100"/></datarate></tdmabasemodel-pcr>`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The pathlosses and shares are those that EMANE was measured at with the curve from 0 dB to 20 dB.
func TestReceptionFollowsThePCRCurve(t *testing.T) {
	for _, c := range []struct{ pathloss, share float64 }{{90, 1}, {95, 0.75}, {100, 0.5}, {105, 0.25}, {109, 0.05}} {
		s := newSimulation(t, 2, func(config *Config) {
			config.Schedule = schedule(t, 2, milliseconds(2, 10*time.Millisecond), 1e6)
			config.PCR = curve(t, "0", "20")
		})
		s.pathloss[0][1] = c.pathloss
		const frames = 4000
		for i := range uint64(frames) {
			s.send(0, everybody, 0, i, 900)
			s.pass(20 * time.Millisecond)
		}
		s.pass(time.Second)
		share := float64(len(s.received[s.ports[1]])) / frames
		if margin := 3 * math.Sqrt(c.share*(1-c.share)/frames); math.Abs(share-c.share) > margin+1e-9 {
			t.Errorf("pathloss %g dB: %.4f of the frames; want %.4f ± %.4f", c.pathloss, share, c.share, margin)
		}
		if got := s.missed(s.ports[1])[radio.LowSINR]; got != frames-len(s.received[s.ports[1]]) {
			t.Errorf("pathloss %g dB: %d frames missed as lowSINR; want all that were not received", c.pathloss, got)
		}
	}
}

// Frames of a slot have the same outcome at a receiver, and a frame in parts arrives if all its parts do.
func TestAFrameInPartsArrivesWhereAllPartsDo(t *testing.T) {
	s := newSimulation(t, 3, func(config *Config) {
		config.Schedule = schedule(t, 3, milliseconds(3, 10*time.Millisecond), 1e6)
		config.PCR = curve(t, "0", "20")
	})
	s.pathloss[0][1] = 95 // three of four parts arrive
	const frames = 3000
	for i := range uint64(frames) {
		s.send(0, everybody, 0, i, 3000) // 1250 + 1250 + 500
		s.pass(90 * time.Millisecond)
	}
	s.pass(time.Second)
	const expected = 0.75 * 0.75 * 0.75
	share := float64(len(s.received[s.ports[1]])) / frames
	if margin := 3 * math.Sqrt(expected*(1-expected)/frames); math.Abs(share-expected) > margin {
		t.Errorf("%.4f of the frames arrived; want 0.75³ = %.4f ± %.4f", share, expected, margin)
	}
	if got := len(s.received[s.ports[2]]); got != frames {
		t.Errorf("the near node received %d of %d", got, frames)
	}
	if missed := s.missed(s.ports[1])[radio.LowSINR]; missed != frames-len(s.received[s.ports[1]]) {
		t.Errorf("missed %v; want each frame once", s.missed(s.ports[1]))
	}
}

func TestAReceiverGivesUpAFrameWhoseNextPartComesTooLate(t *testing.T) {
	for _, c := range []struct {
		name     string
		frame    time.Duration // between a node's slots
		others   bool          // whether another node sends meanwhile
		received bool
	}{
		{"in time", 4 * time.Second, true, true},
		{"too late", 8 * time.Second, true, false},
		{"too late, but the receiver did not look", 8 * time.Second, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSimulation(t, 3, func(config *Config) {
				config.Schedule = schedule(t, 3, milliseconds(3*int(c.frame/(3*10*time.Millisecond)), 10*time.Millisecond), 1e6)
				slots := config.Schedule.structure.Slots
				// Node 1 has one slot of the long frame, node 3 all others.
				config.Schedule, _ = Generate(config.Schedule.structure, []int{1, 3}, 1e6, 2.4e9, nil)
				for i := 2; i < slots; i += 2 {
					config.Schedule.plans[1][0].cells[i] = config.Schedule.plans[1][0].cells[1]
				}
				config.Schedule.plans[1][0].sends = []int32{0}
				config.Schedule.plans[2] = plan{{cells: slices.Repeat([]cell{config.Schedule.plans[1][0].cells[1]}, slots)}}
			})
			s.pass(20 * time.Second)
			s.send(0, s.address(1), 0, 1, 2000)
			for range 400 {
				s.pass(100 * time.Millisecond)
				if c.others {
					s.send(2, everybody, 0, 2, 100)
				}
			}
			if got := slices.Contains(s.sequences(1), 1); got != c.received {
				t.Errorf("received %v; want %v", got, c.received)
			}
			if missed := s.missed(s.ports[1])[radio.FragmentTimeout] > 0; missed == c.received {
				t.Errorf("missed %v", s.missed(s.ports[1]))
			}
		})
	}
}

func TestRadioSilenceHoldsInTheSlot(t *testing.T) {
	transmit := true
	s := newSimulation(t, 2, func(c *Config) {
		c.Schedule = schedule(t, 2, milliseconds(2, 10*time.Millisecond), 1e6)
		of := c.Radio
		c.Radio = func(p *radio.Port) phy.Radio {
			r := of(p)
			r.Transmit = transmit || p.NEM != 1
			return r
		}
	})
	s.pass(time.Second)
	s.send(0, everybody, 0, 1, 2500)
	s.pass(21 * time.Millisecond)
	transmit = false
	s.configure(func(*Config) {})
	s.pass(20 * time.Millisecond)
	s.send(0, everybody, 0, 2, 500)
	s.send(1, everybody, 0, 3, 500)
	s.pass(time.Second)
	transmit = true
	s.configure(func(*Config) {})
	s.send(0, everybody, 0, 4, 500)
	s.pass(time.Second)
	if !slices.Equal(s.sequences(1), []uint64{4}) || !slices.Equal(s.sequences(0), []uint64{3}) {
		t.Errorf("received %v and %v; want 4, sent after the silence, and 3, as a silent radio goes on receiving", s.sequences(1), s.sequences(0))
	}
	if s.dropped()[radio.EmissionControl] != 2 || s.kept() != 0 {
		t.Errorf("dropped %v, %d left; want the frames of the silence as emissionControl, also the one that had begun", s.dropped(), s.kept())
	}
}

func TestAFrameWhoseBeginningFallsIntoRadioSilenceIsDropped(t *testing.T) {
	transmit := false
	s := newSimulation(t, 2, func(c *Config) {
		c.Schedule = schedule(t, 2, milliseconds(2, 10*time.Millisecond), 1e6)
		of := c.Radio
		c.Radio = func(p *radio.Port) phy.Radio {
			r := of(p)
			r.Transmit = transmit
			return r
		}
	})
	s.pass(time.Second)
	s.send(0, everybody, 0, 1, 3000) // in three slots, of which the first is silent
	s.pass(21 * time.Millisecond)
	transmit = true
	s.configure(func(*Config) {})
	s.pass(time.Second)
	if len(s.sequences(1)) != 0 || s.dropped()[radio.EmissionControl] != 1 || s.kept() != 0 || s.anyMissed() != 0 {
		t.Errorf("received %v, dropped %v, missed %v, %d left; want the frame dropped as emissionControl, and missed by nobody", s.sequences(1), s.dropped(), s.anyMissed(), s.kept())
	}
}

func TestSlotsOfADestinationOrAClass(t *testing.T) {
	s := newSimulation(t, 3, func(c *Config) {
		c.Schedule = four(t, `<slot index="0" nodes="1"><tx destination="2"/></slot><slot index="1" nodes="1"><tx class="2"/></slot><slot index="2" nodes="2,3"/>`)
		c.Queue.StrictDequeue = true
	})
	s.pass(time.Second)
	s.send(0, s.address(2), 0, 1, 100) // to node 3, of class 0: no slot of node 1 is for it
	s.send(0, s.address(1), 0, 2, 100)
	s.send(0, everybody, 40, 3, 100)
	s.send(0, s.address(1), 40, 4, 100)
	s.pass(time.Second)
	if got := s.sequences(1); !slices.Equal(got, []uint64{2, 3, 4}) && !slices.Equal(got, []uint64{3, 4, 2}) {
		t.Errorf("node 2 received %v; want 2 in its own slot, 3 and 4 in that of class 2", got)
	}
	if got := s.sequences(2); !slices.Equal(got, []uint64{3}) || s.kept() != 1 {
		t.Errorf("node 3 received %v, %d frames wait; want 3 alone, and the one to it waiting", got, s.kept())
	}
	if s.engine.Next() != radio.Never {
		t.Error("the model wakes for a frame that no slot is for")
	}
}

// Pathlosses give SINRs of 20, 8 and 2 dB.
func TestAdaptiveRatesAreTheHighestThatTheWorstReceiverReaches(t *testing.T) {
	for _, c := range []struct {
		name                string
		to                  []int // receivers of the frames in order; -1 is all
		jamming             float64
		far                 float64 // pathloss of the last node
		rate                float64 // of the first burst
		received            []int   // frames of the first burst
		withoutInterference bool
	}{
		{"to a near one", []int{1}, 0, 108, 1e6, []int{1}, false},
		{"to one in between", []int{2}, 0, 108, 500e3, []int{1}, false},
		{"to a far one", []int{3}, 0, 108, 380e3, []int{1}, false},
		{"to everybody", []int{-1}, 0, 108, 380e3, []int{3}, false},
		{"to everybody in range", []int{-1}, 0, 111, 500e3, []int{2}, false},
		{"frames that stand a higher rate go with the first", []int{2, 1}, 0, 108, 500e3, []int{2}, false},
		{"frames that need a lower rate wait", []int{1, 3}, 0, 108, 1e6, []int{1}, false},
		{"a jammer lowers it", []int{1}, phy.Milliwatts(-98), 108, 500e3, []int{1}, false},
		{"but not where interference does not count", []int{1}, phy.Milliwatts(-98), 108, 1e6, []int{1}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSimulation(t, 4, func(config *Config) {
				config.Schedule = schedule(t, 4, milliseconds(4, 10*time.Millisecond), 1e6)
				config.AdaptiveRates = []Rate{{500e3, 6}, {380e3, 0}, {1e6, 12}}
				if c.withoutInterference {
					config.Interference = phy.None
				}
			})
			s.jamming = c.jamming
			s.pathloss[0] = []float64{0, 90, 102, c.far}
			s.pass(time.Second)
			for i, to := range c.to {
				address := everybody
				if to >= 0 {
					address = s.address(to)
				}
				s.send(0, address, 0, uint64(i), 200)
			}
			for s.wakes == 0 {
				s.pass(time.Millisecond)
			}
			if got := s.model.stations[0].air.RateBitsPerSecond; got != c.rate {
				t.Errorf("sent at %g bit/s; want %g", got, c.rate)
			}
			s.pass(11 * time.Millisecond)
			received := 0
			for _, p := range s.ports {
				received += len(s.received[p])
			}
			if received != c.received[0] {
				t.Errorf("%d frames received of the first burst; want %d", received, c.received[0])
			}
			s.pass(time.Second)
			if s.kept() != 0 {
				t.Errorf("%d frames left", s.kept())
			}
		})
	}
}

func TestAdaptiveRatesMayComeAndGo(t *testing.T) {
	s := newSimulation(t, 2, func(c *Config) { c.Schedule = schedule(t, 2, milliseconds(2, 10*time.Millisecond), 1e6) })
	s.pathloss[0][1] = 102
	s.pass(time.Second)
	for i, c := range []struct {
		rates []Rate
		want  float64
	}{{nil, 1e6}, {[]Rate{{500e3, 6}, {380e3, 0}, {1e6, 12}}, 500e3}, {nil, 1e6}} {
		s.configure(func(config *Config) { config.AdaptiveRates = c.rates })
		s.send(0, s.address(1), 0, uint64(2*i), 200)
		s.send(0, everybody, 0, uint64(2*i+1), 200)
		s.pass(time.Second)
		if got := s.model.stations[0].air.RateBitsPerSecond; got != c.want || len(s.received[s.ports[1]]) != 2*i+2 {
			t.Errorf("with the rates %v sent at %g bit/s, received %v; want %g", c.rates, got, s.sequences(1), c.want)
		}
	}
}
