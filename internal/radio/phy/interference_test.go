package phy

import (
	"math"
	"math/rand/v2"
	"testing"

	"vignette.dev/vignette/internal/radio"
)

// lossesTo gives pathlosses to node 1 of nodes 2, 3, …, 50 dB among the others.
func lossesTo(losses ...float64) *world {
	w := everywhere(len(losses)+1, 50)
	for i, loss := range losses {
		w.loss[[2]int{i + 2, 1}] = loss
	}
	return w
}

func TestNoiseIsTheLargerOneOfThermalNoiseAndInterference(t *testing.T) {
	for name, c := range map[string]struct {
		interference Interference
		losses       []float64 // of those who send at the same time
		want         float64   // dBm
	}{
		"none":                       {None, []float64{70}, -110},
		"own waveform, out of band":  {OutOfBand, []float64{70}, -110},
		"own waveform, all":          {All, []float64{70}, -70},
		"two of equal strength":      {All, []float64{70, 70}, -70 + 10*math.Log10(2)},
		"as strong as thermal noise": {All, []float64{110 - 1e-9}, -110},
		"below the sensitivity":      {All, []float64{111}, -110},
		"many below the sensitivity": {All, []float64{111, 111, 111, 111}, -110},
	} {
		t.Run(name, func(t *testing.T) {
			m, p := mediumOf(len(c.losses)+2, Config{Interference: c.interference, Environment: lossesTo(append([]float64{60}, c.losses...)...)})
			tr := send(m, p[1], 0, 1000, 2000)
			for i := range c.losses {
				send(m, p[i+2], 0, 1500, 2500)
			}
			r, _ := receive(m, tr, p[0])
			if math.Abs(r.NoiseDBm-c.want) > 1e-6 || math.Abs(r.SINRDB-(-60-c.want)) > 1e-6 {
				t.Errorf("noise %v dBm, SINR %v dB; want %v dBm", r.NoiseDBm, r.SINRDB, c.want)
			}
		})
	}
}

func TestWhatOverlappedWithALongTransmissionIsForgottenAfterIt(t *testing.T) {
	m, p := mediumOf(2, Config{Interference: All, Environment: everywhere(2, 70)})
	send(m, p[0], 0, 0, 10e6)
	for i := range int64(60_000) { // of half a millisecond, one each millisecond
		send(m, p[1], uint64(i), 1000*i, 1000*i+500)
	}
	if kept := len(m.recent.sent) - m.recent.head; kept > 1100 {
		t.Errorf("%d transmissions are kept; want those of a second", kept)
	}
}

func TestInterferenceCountsByItsHighestMoment(t *testing.T) {
	// Node 2 sends to node 1 from 1000 to 2000 µs; the others are heard at -70 dBm.
	for name, c := range map[string]struct {
		bursts [][2]int64
		at     float64 // how many were on the air at once
	}{
		"before":                  {[][2]int64{{0, 1000}}, 0},
		"after":                   {[][2]int64{{2000, 3000}}, 0},
		"one after the other":     {[][2]int64{{900, 1300}, {1300, 1500}, {1500, 2100}}, 1},
		"two overlap for 1 µs":    {[][2]int64{{900, 1301}, {1300, 1500}}, 2},
		"overlap before only":     {[][2]int64{{100, 900}, {200, 1200}, {300, 1000}}, 1},
		"long one under short":    {[][2]int64{{0, 5000}, {1100, 1200}, {1250, 1300}}, 2},
		"all at once, and longer": {[][2]int64{{0, 5000}, {100, 4000}, {1999, 2500}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			m, p := mediumOf(len(c.bursts)+2, Config{Interference: All, Environment: lossesTo(60, 70, 70, 70, 70)})
			tr := send(m, p[1], 0, 1000, 2000)
			for i, b := range c.bursts {
				send(m, p[i+2], 0, b[0], b[1])
			}
			want := -110.0
			if c.at > 0 {
				want = -70 + 10*math.Log10(c.at)
			}
			r, _ := receive(m, tr, p[0])
			near(t, "noise in dBm", r.NoiseDBm, want)
		})
	}
}

func TestInterferenceEqualsThatOfEverySampledMoment(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		others := 1 + random.IntN(12)
		losses := make([]float64, others+1)
		for i := range losses {
			losses[i] = 60 + 60*random.Float64()
		}
		m, p := mediumOf(others+2, Config{Interference: All, Environment: lossesTo(losses...)})
		tr := send(m, p[1], 0, 100, 200)
		var power [300]float64 // by microsecond
		for i := range others {
			start := random.Int64N(250)
			end := start + 1 + random.Int64N(60)
			o := send(m, p[i+2], 0, start, end)
			if heard := -losses[i+1]; heard >= -110 {
				for us := start; us < min(end, 300); us++ {
					power[us] += Milliwatts(heard)
				}
			}
			_ = o
		}
		want := Milliwatts(-110)
		for us := 100; us < 200; us++ {
			want = max(want, power[us])
		}
		r, ok := receive(m, tr, p[0])
		if !ok || r.Reason == radio.BelowSensitivity {
			continue
		}
		near(t, "noise in dBm", r.NoiseDBm, DBm(want))
	}
}

func TestAnOtherBandCountsByWhatOverlaps(t *testing.T) {
	for name, c := range map[string]struct {
		interference          Interference
		subID                 int
		hertz, bandwidthHertz float64
		share                 float64
	}{
		"own waveform":                        {OutOfBand, 1, 2347e6, 1e6, 0},
		"another subid":                       {OutOfBand, 2, 2347e6, 1e6, 1},
		"another frequency, a quarter within": {OutOfBand, 1, 2347.75e6, 1e6, 0.25},
		"another frequency below":             {All, 1, 2346.25e6, 1e6, 0.25},
		"ten times as wide":                   {All, 1, 2347e6, 10e6, 0.1},
		"side by side":                        {All, 1, 2348e6, 1e6, 0},
		"far away":                            {All, 3, 300e6, 25e3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, p := mediumOf(3, Config{Interference: c.interference, Environment: lossesTo(60, 70), Radio: func(p *radio.Port) Radio {
				r := emaneRadio
				if p.NEM == 3 {
					r.SubID, r.FrequencyHertz, r.BandwidthHertz = c.subID, c.hertz, c.bandwidthHertz
				}
				return r
			}})
			tr := send(m, p[1], 0, 1000, 2000)
			send(m, p[2], 0, 1000, 2000)
			want := -110.0
			if c.share > 0 {
				want = -70 + 10*math.Log10(c.share)
			}
			r, _ := receive(m, tr, p[0])
			near(t, "noise in dBm", r.NoiseDBm, want)
		})
	}
}

func TestJammersAreNoiseThroughTheReceiversAntenna(t *testing.T) {
	for name, c := range map[string]struct {
		interference Interference
		want         float64
	}{
		"none": {None, -110}, "out of band": {OutOfBand, -77}, "all": {All, -77},
	} {
		w := everywhere(2, 60)
		w.jamming = Milliwatts(-80)
		m, p := mediumOf(2, Config{Interference: c.interference, Environment: w, Radio: func(*radio.Port) Radio {
			r := emaneRadio
			r.AntennaGainDBi = 3
			return r
		}})
		r, _ := receive(m, send(m, p[1], 0, 0, 100), p[0])
		near(t, name, r.NoiseDBm, c.want)
	}
}

func TestAHiddenTerminalDestroysFramesOfRadiosOutOfItsRange(t *testing.T) {
	// 2 and 3 reach 1 equally well, but not each other.
	w := &world{loss: map[[2]int]float64{{2, 1}: 80, {3, 1}: 80}}
	m, p := mediumOf(3, Config{Interference: All, PCR: linearCurve, Environment: w})
	first, second := send(m, p[1], 0, 0, 1000), send(m, p[2], 0, 500, 1500)
	for _, tr := range []*Transmission{first, second} {
		r, _ := receive(m, tr, p[0])
		if r.Received || r.Reason != radio.Interfered || r.SINRDB != 0 {
			t.Errorf("%+v; want interference at 0 dB", r)
		}
	}
	if _, reached := receive(m, first, p[2]); reached {
		t.Error("the hidden terminal hears the other")
	}
	r, _ := receive(m, send(m, p[1], 1, 2000, 3000), p[0])
	if !r.Received {
		t.Errorf("%+v; want it received once the other is quiet", r)
	}
}

func TestTheStrongerOneOfTwoIsCaptured(t *testing.T) {
	m, p := mediumOf(3, Config{Interference: All, PCR: linearCurve, Environment: lossesTo(70, 95)})
	strong, weak := send(m, p[1], 0, 0, 1000), send(m, p[2], 0, 0, 1000)
	if r, _ := receive(m, strong, p[0]); !r.Received || math.Abs(r.SINRDB-25) > 1e-9 {
		t.Errorf("the stronger one: %+v; want it received at 25 dB", r)
	}
	if r, _ := receive(m, weak, p[0]); r.Received || math.Abs(r.SINRDB+25) > 1e-9 {
		t.Errorf("the weaker one: %+v; want it lost at -25 dB", r)
	}
}

func TestHalfDuplexRadiosReceiveNothingWhileTheySend(t *testing.T) {
	for name, c := range map[string]struct {
		half  bool
		burst [2]int64 // of the receiver; the reception lasts from 1000 to 2000
		want  bool
	}{
		"full duplex":         {false, [2]int64{900, 2100}, true},
		"within":              {true, [2]int64{1400, 1500}, false},
		"across its start":    {true, [2]int64{900, 1001}, false},
		"across its end":      {true, [2]int64{1999, 2100}, false},
		"until its start":     {true, [2]int64{900, 1000}, true},
		"from its end on":     {true, [2]int64{2000, 2100}, true},
		"all the time and on": {true, [2]int64{0, 9000}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, p := mediumOf(2, Config{HalfDuplex: c.half, Environment: everywhere(2, 60)})
			tr := send(m, p[1], 0, 1000, 2000)
			send(m, p[0], 0, c.burst[0], c.burst[1])
			r, _ := receive(m, tr, p[0])
			if r.Received != c.want || !r.Received && r.Reason != radio.HalfDuplex {
				t.Errorf("%+v; want received: %v", r, c.want)
			}
		})
	}
}

func TestWhatWasSentIsForgottenOnceNothingCanOverlapWithIt(t *testing.T) {
	m, p := mediumOf(2, Config{Interference: All, Environment: everywhere(2, 60)})
	for i := range int64(100_000) {
		send(m, p[0], uint64(i), i*1000, i*1000+100)
	}
	if kept := len(m.recent.sent) - m.recent.head; kept > 1002 {
		t.Errorf("%d transmissions kept; want those of the last second", kept)
	}
	if c := cap(m.recent.sent); c > 8192 {
		t.Errorf("room for %d transmissions; want it bounded", c)
	}
}
