package phy

import (
	"fmt"
	"math"
	"testing"

	"vignette.dev/vignette/internal/radio"
)

// world is an environment of fixed pathloss by NEM ids; others are unknown.
type world struct {
	loss    map[[2]int]float64
	jamming float64
	asked   int
	version uint64
}

func (w *world) Pathloss(from, to *radio.Port, _ int64) (float64, bool) {
	w.asked++
	loss, known := w.loss[[2]int{from.NEM, to.NEM}]
	return loss, known
}

func (w *world) Jamming(*radio.Port, int64, float64, float64) float64 { return w.jamming }

func (w *world) Version(int64) uint64 { return w.version }

// everywhere is an environment of the same pathloss between all.
func everywhere(nodes int, loss float64) *world {
	w := &world{loss: map[[2]int]float64{}}
	for i := range nodes {
		for j := range nodes {
			w.loss[[2]int{i + 1, j + 1}] = loss
		}
	}
	return w
}

// emaneRadio has EMANE's defaults: its sensitivity is -110 dBm.
var emaneRadio = Radio{FrequencyHertz: 2347e6, BandwidthHertz: 1e6, NoiseFigureDB: 4, SubID: 1, Transmit: true}

func portsOf(nodes int) (ports []*radio.Port) {
	for i := range nodes {
		ports = append(ports, &radio.Port{PortOptions: radio.PortOptions{Name: fmt.Sprint("n", i+1), NEM: i + 1}})
	}
	return ports
}

func mediumOf(nodes int, config Config) (*Medium, []*radio.Port) {
	if config.Radio == nil {
		config.Radio = func(*radio.Port) Radio { return emaneRadio }
	}
	m, ports := NewMedium(config), portsOf(nodes)
	m.Members(ports, radio.SetSlots(nil, ports))
	return m, ports
}

// send makes a transmission of the source from start to end, in microseconds.
func send(m *Medium, source *radio.Port, index uint64, start, end int64) *Transmission {
	r := m.Radio(source)
	t := &Transmission{Source: source, Index: index, Start: start * 1000, End: end * 1000,
		FrequencyHertz: r.FrequencyHertz, PowerDBm: r.TransmitPowerDBm, RateBitsPerSecond: 1e6, Bytes: 942}
	m.Begin(t)
	return t
}

func receive(m *Medium, t *Transmission, to *radio.Port) (Reception, bool) {
	n := m.Neighbour(t.End, t.Source, to, t.PowerDBm)
	if n == nil {
		return Reception{}, false
	}
	return m.Receive(t.End, t, n, m.Radio(to).FrequencyHertz, true), true
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s is %.9f; want %.9f", what, got, want)
	}
}

func TestSensitivityIsTheThermalNoiseInTheReceiversBand(t *testing.T) {
	for name, c := range map[string]struct{ figure, bandwidth, want float64 }{
		"EMANE's defaults": {4, 1e6, -110},
		"VHF, 25 kHz":      {8, 25e3, -174 + 8 + 43.97940008672},
		"one hertz":        {0, 1, -174},
	} {
		r := Radio{NoiseFigureDB: c.figure, BandwidthHertz: c.bandwidth}
		near(t, name, r.SensitivityDBm(), c.want)
	}
}

func TestReceivedPowerAndSINRAreTheirClosedForms(t *testing.T) {
	w := &world{loss: map[[2]int]float64{{1, 2}: 120.5, {2, 1}: 90}}
	radios := []Radio{emaneRadio, emaneRadio}
	radios[0].TransmitPowerDBm, radios[0].AntennaGainDBi = 37, 2
	radios[1].AntennaGainDBi, radios[1].NoiseFigureDB = 3, 6
	m, p := mediumOf(2, Config{Environment: w, Radio: func(p *radio.Port) Radio { return radios[p.NEM-1] }})
	there, _ := receive(m, send(m, p[0], 0, 0, 100), p[1])
	near(t, "power at 2", there.PowerDBm, 37+2+3-120.5)
	near(t, "noise at 2", there.NoiseDBm, -174+6+60)
	near(t, "SINR at 2", there.SINRDB, 37+2+3-120.5+108)
	back, _ := receive(m, send(m, p[1], 0, 200, 300), p[0])
	near(t, "power at 1, over the reverse pathloss", back.PowerDBm, 0+2+3-90)
	near(t, "noise at 1", back.NoiseDBm, -110)
	if !there.Received || !back.Received {
		t.Error("without a curve, what is above the noise was not received")
	}
}

func TestOnlyReceiversWithinReachAreTouched(t *testing.T) {
	// At 0 dBm and -110 dBm sensitivity: received, below it, within the margin, beyond it, unknown.
	w := &world{loss: map[[2]int]float64{{1, 2}: 109.9, {1, 3}: 110.1, {1, 4}: 119.9, {1, 5}: 120.1}}
	m, p := mediumOf(6, Config{Environment: w})
	tr := send(m, p[0], 0, 0, 100)
	var reached []int
	for _, n := range m.Neighbours(tr.End, p[0], tr.PowerDBm) {
		reached = append(reached, n.Port.NEM)
		r := m.Receive(tr.End, tr, &n, emaneRadio.FrequencyHertz, true)
		if got, want := r.Received, n.Port.NEM == 2; got != want {
			t.Errorf("node %d received: %v", n.Port.NEM, got)
		}
		if !r.Received && r.Reason != radio.BelowSensitivity {
			t.Errorf("node %d missed it as %v", n.Port.NEM, r.Reason)
		}
	}
	if fmt.Sprint(reached) != "[2 3 4]" {
		t.Errorf("reached nodes %v; want 2, 3 and 4", reached)
	}
}

func TestPathlossIsAskedOncePerVersion(t *testing.T) {
	w := everywhere(5, 80)
	m, p := mediumOf(5, Config{Environment: w})
	for i := range int64(10) {
		m.Neighbours(i, p[0], 0)
	}
	if w.asked != 4 {
		t.Errorf("asked for %d pathlosses; want 4", w.asked)
	}
	w.version++
	w.loss[[2]int{1, 2}] = 200
	if n := m.Neighbours(11, p[0], 0); len(n) != 3 {
		t.Errorf("%d neighbours after one went out of reach; want 3", len(n))
	}
	if n := m.Neighbours(12, p[0], 90); len(n) != 4 {
		t.Errorf("%d neighbours at 90 dBm; want 4", len(n))
	}
}

func TestMeasuredSharesOfEMANEFollowFromTheLinearCurve(t *testing.T) {
	// Pathloss, and the share in percent of 1200 receptions that EMANE 1.5.3 gave. Its curve was 0 dB 0 %, 20
	// dB 100 %.
	for _, c := range []struct{ loss, measured float64 }{
		{70, 100}, {90, 100}, {95, 74.8}, {100, 51.3}, {105, 27.1}, {109, 3.7}, {111, 0},
	} {
		completion := min(max((110-c.loss)/20, 0), 1)
		if c.measured/100 != completion {
			reject(t, fmt.Sprintf("EMANE at %v dB", c.loss), int(math.Round(c.measured*12)), 1200, completion, 3.29)
		}
		m, p := mediumOf(2, Config{Seed: 1, Environment: everywhere(2, c.loss), PCR: linearCurve})
		reject(t, fmt.Sprintf("the model at %v dB", c.loss), received(m, p, 4000), 4000, completion, 2.576)
	}
}

func received(m *Medium, p []*radio.Port, frames int) (n int) {
	for i := range frames {
		if r, _ := receive(m, send(m, p[0], uint64(i), int64(i)*10000, int64(i)*10000+7600), p[1]); r.Received {
			n++
		}
	}
	return n
}

// linearCurve goes from 0 % at 0 dB to 100 % at 20 dB.
var linearCurve = &Curve{rates: []rateCurve{{points: []point{{0, 0}, {20, 1}}}}}

// reject fails the test if a count deviates from the binomial distribution by more than that many standard deviations.
func reject(t *testing.T, what string, count, n int, p, deviations float64) {
	t.Helper()
	if d := math.Abs(float64(count) - float64(n)*p); d > deviations*math.Sqrt(float64(n)*p*(1-p)) {
		t.Errorf("%s: %d of %d; want a share of %v", what, count, n, p)
	}
}

func TestDrawsRepeatForTheSameFrameWhateverElseHappens(t *testing.T) {
	fate := func(seed int64, nodes int, others bool) (fates string) {
		m, p := mediumOf(nodes, Config{Seed: seed, Environment: everywhere(nodes, 100), PCR: linearCurve})
		for i := range 64 {
			if others {
				_, _ = receive(m, send(m, p[1], uint64(i), int64(i)*100, int64(i)*100+50), p[2])
			}
			r, _ := receive(m, send(m, p[0], uint64(i), int64(i)*100, int64(i)*100+50), p[1])
			fates += fmt.Sprint(r.Received)[:1]
		}
		return fates
	}
	if a, b := fate(7, 2, false), fate(7, 5, true); a != b {
		t.Errorf("fates differ with others around:\n%s\n%s", a, b)
	}
	if a, b := fate(7, 2, false), fate(8, 2, false); a == b {
		t.Error("fates do not depend on the seed")
	}
}

func TestDifferentWaveformsDoNotHearEachOther(t *testing.T) {
	radios := []Radio{emaneRadio, emaneRadio, emaneRadio}
	radios[1].SubID = 2
	radios[2].FrequencyHertz += 1e6
	m, p := mediumOf(3, Config{Environment: everywhere(3, 50), Radio: func(p *radio.Port) Radio { return radios[p.NEM-1] }})
	tr := send(m, p[0], 0, 0, 100)
	for _, to := range p[1:] {
		if r, _ := receive(m, tr, to); r.Received || r.Reason != radio.NotListening {
			t.Errorf("node %d: %+v; want it not to listen", to.NEM, r)
		}
	}
}

func TestLinksKeepTheirStatisticsAcrossChangesOfMembers(t *testing.T) {
	m, p := mediumOf(4, Config{Environment: everywhere(4, 100), PCR: linearCurve})
	for i := range 100 {
		_, _ = receive(m, send(m, p[2], uint64(i), int64(i)*100, int64(i)*100+50), p[3])
	}
	before := m.AppendLinks(nil, p[3])
	members := []*radio.Port{p[3], p[2], p[1]}
	m.Members(members, radio.SetSlots(p, members))
	after := m.AppendLinks(nil, p[3])
	if len(before) != 1 || len(after) != 1 || before[0] != after[0] || before[0].FromNEM != p[2].NEM {
		t.Fatalf("links %+v, and after the change %+v", before, after)
	}
	l := before[0]
	if missed := l.Missed[radio.LowSINR-radio.BelowSensitivity]; l.Received == 0 || missed == 0 || l.Received+missed != 100 {
		t.Errorf("%d received, %d missed; want 100 in all", l.Received, missed)
	}
	if l.SINRDB != 10 {
		t.Errorf("last reception %+v", l)
	}
	if m.AppendLinks(nil, p[0]) != nil || m.Radio(p[0]) != nil || m.Neighbours(0, p[0], 0) != nil {
		t.Error("a port that has gone still has links, a radio or neighbours")
	}
}

func TestATransmissionAllocatesNothing(t *testing.T) {
	m, p := mediumOf(24, Config{Environment: everywhere(24, 95), PCR: linearCurve, Interference: All, HalfDuplex: true})
	all := make([]Transmission, len(p))
	var now int64
	burst := func() {
		for i := range p {
			now += 1000
			all[i] = Transmission{Source: p[i], Start: now, End: now + 20e3, FrequencyHertz: emaneRadio.FrequencyHertz, Bytes: 900}
			m.Begin(&all[i])
			neighbours := m.Neighbours(now, p[i], 0)
			for k := range neighbours {
				m.Receive(now+20e3, &all[i], &neighbours[k], emaneRadio.FrequencyHertz, true)
			}
		}
	}
	for range 200 { // past the horizon, so that the buffers have their final size
		now += 50e6
		burst()
	}
	if n := testing.AllocsPerRun(100, burst); n > 0 {
		t.Errorf("%v allocations for %d transmissions; want none", n, len(p))
	}
}

func BenchmarkReceive(b *testing.B) {
	for name, c := range map[string]struct {
		nodes, overlapping int
		interference       Interference
	}{
		"24 nodes": {24, 0, None}, "243 nodes": {243, 0, None}, "24 nodes, 8 interfere": {24, 8, All}, "243 nodes, 64 interfere": {243, 64, All},
	} {
		b.Run(name, func(b *testing.B) {
			m, p := mediumOf(c.nodes, Config{Environment: everywhere(c.nodes, 95), PCR: linearCurve, Interference: c.interference})
			for i := range c.overlapping {
				send(m, p[i+1], 0, int64(i)*10, 2000)
			}
			tr := send(m, p[0], 0, 0, 1000)
			b.ReportAllocs()
			receptions := 0
			for b.Loop() {
				tr.Index++
				neighbours := m.Neighbours(tr.End, p[0], 0)
				for k := range neighbours {
					m.Receive(tr.End, tr, &neighbours[k], emaneRadio.FrequencyHertz, true)
				}
				receptions += len(neighbours)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(receptions), "ns/receiver")
		})
	}
}
