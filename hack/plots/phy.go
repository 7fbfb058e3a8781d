package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

func init() {
	plots["phy-pathloss"] = plotPathloss
	plots["phy-interference"] = plotInterference
	plots["rfpipe-collisions"] = plotCollisions
}

// linearPCR is the curve of the measurements of EMANE 1.5.3.
const linearPCR = `<pcr><table pktsize="0"><row sinr="0" por="0"/><row sinr="20" por="100"/></table></pcr>`

// emaneRadio has EMANE's defaults: thermal noise and sensitivity of -110 dBm.
var emaneRadio = phy.Radio{FrequencyHertz: 2347e6, BandwidthHertz: 1e6, NoiseFigureDB: 4, SubID: 1, Transmit: true}

// losses returns the losses to node 1 of the nodes from 2 on. The others are out of each other's range.
type losses []float64

func (l losses) Pathloss(from, to *radio.Port, _ int64) (dB float64, known bool) {
	if to.NEM != 1 || from.NEM < 2 {
		return 0, false
	}
	return l[from.NEM-2], true
}

func (losses) Jamming(*radio.Port, int64, float64, float64) float64 { return 0 }

func (losses) Version(int64) uint64 { return 1 }

// bed is the medium of node 1 and its senders.
type bed struct {
	*phy.Medium
	ports []*radio.Port
}

func newBed(l losses, interference phy.Interference) (*bed, error) {
	pcr, err := phy.ParsePCR([]byte(linearPCR))
	if err != nil {
		return nil, err
	}
	b := &bed{Medium: phy.NewMedium(phy.Config{Seed: 1, Environment: l, Interference: interference, PCR: pcr,
		Radio: func(*radio.Port) phy.Radio { return emaneRadio }})}
	for i := range len(l) + 1 {
		b.ports = append(b.ports, &radio.Port{PortOptions: radio.PortOptions{NEM: i + 1}})
	}
	b.Members(b.ports, radio.SetSlots(nil, b.ports))
	return b, nil
}

// burst returns a sender's burst, in microseconds.
func (b *bed) burst(sender int, index uint64, start, end int64) phy.Transmission {
	return phy.Transmission{Source: b.ports[sender], Index: index, Start: start * 1000, End: end * 1000,
		FrequencyHertz: emaneRadio.FrequencyHertz, RateBitsPerSecond: 1e6, Bytes: 942}
}

func (b *bed) receive(t *phy.Transmission) (r phy.Reception) {
	if n := b.Neighbour(t.End, t.Source, b.ports[0], t.PowerDBm); n != nil {
		r = b.Receive(t.End, t, n, emaneRadio.FrequencyHertz, true)
	}
	return r
}

func plotPathloss() (*Chart, error) {
	drawn := Series{Name: "the model, 2000 draws each", Marks: true}
	for loss := 86.0; loss <= 114; loss += 2 {
		b, err := newBed(losses{loss}, phy.None)
		if err != nil {
			return nil, err
		}
		const frames = 2000
		received := 0
		for i := range frames {
			t := b.burst(1, uint64(i), int64(i)*10000, int64(i)*10000+7536)
			b.Begin(&t)
			if b.receive(&t).Received {
				received++
			}
		}
		drawn.X, drawn.Y = append(drawn.X, loss), append(drawn.Y, 100*float64(received)/frames)
	}
	return &Chart{
		Title: "Delivered share by pathloss: 0 dBm, sensitivity -110 dBm, PCR 0 dB 0 %, 20 dB 100 %",
		X:     Axis{Label: "pathloss in dB", Min: 84, Max: 116, Step: 4}, Y: Axis{Label: "frames received in %", Min: 0, Max: 100, Step: 20},
		Series: []Series{
			Sampled("closed form", 84, 116, 320, func(loss float64) float64 { return min(max(5*(110-loss), 0), 100) }),
			drawn,
			{Name: "EMANE 1.5.3, measured", X: []float64{90, 95, 100, 105, 109, 111}, Y: []float64{100, 74.8, 51.3, 27.1, 3.7, 0}, Marks: true},
		},
	}, nil
}

func plotInterference() (*Chart, error) {
	sinr := func(interferer float64) float64 {
		b, err := newBed(losses{90, interferer}, phy.All)
		if err != nil {
			return math.NaN()
		}
		wanted, other := b.burst(1, 0, 0, 1000), b.burst(2, 0, 500, 1500)
		b.Begin(&wanted)
		b.Begin(&other)
		return b.receive(&wanted).SINRDB
	}
	return &Chart{
		Title: "SINR of a signal at -90 dBm beside one other transmission",
		X:     Axis{Label: "interference at the receiver in dBm", Min: -120, Max: -80, Step: 5}, Y: Axis{Label: "SINR in dB", Min: -10, Max: 25, Step: 5},
		Series: []Series{
			Sampled("model, as EMANE: the larger one", -120, -80, 400, func(dBm float64) float64 { return sinr(-dBm) }),
			{Name: "sum with thermal noise, for comparison", Dashed: true, X: Sampled("", -120, -80, 80, math.Abs).X,
				Y: Sampled("", -120, -80, 80, func(dBm float64) float64 { return -90 - phy.DBm(phy.Milliwatts(-110)+phy.Milliwatts(dBm)) }).Y},
		},
	}, nil
}

// plotCollisions simulates many hidden terminals that send at random times: pure ALOHA.
func plotCollisions() (*Chart, error) {
	simulated := Series{Name: "the model, 400 hidden senders", Marks: true}
	for load := 0.1; load < 2.05; load += 0.1 {
		throughput, err := aloha(load)
		if err != nil {
			return nil, err
		}
		simulated.X, simulated.Y = append(simulated.X, load), append(simulated.Y, throughput)
	}
	return &Chart{
		Title: "Frames that many hidden senders of equal strength get through, interference: All",
		X:     Axis{Label: "offered load G, times on air per time on air", Min: 0, Max: 2, Step: 0.25},
		Y:     Axis{Label: "throughput S", Min: 0, Max: 0.3, Step: 0.05},
		Series: []Series{
			Sampled("pure ALOHA, S = G·exp(-2G)", 0, 2, 200, func(g float64) float64 { return g * math.Exp(-2*g) }),
			simulated,
		},
	}, nil
}

func aloha(load float64) (throughput float64, err error) {
	const senders, frames, onAir = 400, 40_000, 1000 // in µs
	l := make(losses, senders)
	for i := range l {
		l[i] = 70
	}
	b, err := newBed(l, phy.All)
	if err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(1, uint64(load*1000)))
	var ended []phy.Transmission
	received, now := 0, 0.0
	for i := range frames {
		now += random.ExpFloat64() * onAir / load
		t := b.burst(1+i%senders, uint64(i), int64(now), int64(now)+onAir)
		b.Begin(&t)
		ended = append(ended, t)
		for len(ended) > 0 && ended[0].End < t.Start {
			if b.receive(&ended[0]).Received {
				received++
			}
			ended = slices.Delete(ended, 0, 1)
		}
	}
	return float64(received) * onAir / now, nil
}
