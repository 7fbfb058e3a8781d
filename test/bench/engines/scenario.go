package main

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/rfpipe"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Slots of TDMA are as in the published measurements of EMANE: 10 ms each, one for each node.
const slotDuration = 10 * time.Millisecond

func frameOf(nodes int) time.Duration { return time.Duration(nodes) * slotDuration }

// periodOf is the time between a node's messages: 1 + golden ratio frames, whose multiples are spread most evenly over the frame.
func periodOf(nodes int) time.Duration {
	return time.Duration((3 + math.Sqrt(5)) / 2 * float64(frameOf(nodes)))
}

// The same curve for both models: linear from 0 % at 0 dB to 100 % at 20 dB.
const (
	rfpipePCR = `<pcr><table pktsize="0"><row sinr="0" por="0"/><row sinr="20" por="100"/></table></pcr>`
	tdmaPCR   = `<tdmabasemodel-pcr packetsize="0"><datarate bps="1M"><entry sinr="0" por="0"/><entry sinr="20" por="100"/></datarate></tdmabasemodel-pcr>`
)

// pathlosses in dB of pairs of nodes, in rotation. With 0 dBm, 1 MHz and 4 dB the curve gives 100, 100, 75,
// 50 and 25 %. The last is below the sensitivity.
var pathlosses = []float64{70, 85, 95, 100, 105, 112}

// pathlossOf returns the pathloss between two NEMs. The saturated pair, 1 and 2, has the first one.
func pathlossOf(from, to int) float64 {
	if from+to == 3 {
		return pathlosses[0]
	}
	return pathlosses[(7*from+3*to)%len(pathlosses)]
}

func newScenario(s *settings, model string, nodes int) (*v1alpha1.RadioNetworkSpec, *scenario.Scenario, error) {
	spec := &v1alpha1.RadioNetworkSpec{Network: model, MTU: 1500, Waveform: waveform(s, model)}
	b := scenario.NewBuilder(scenario.Options{})
	for nem := 1; nem <= nodes; nem++ {
		platform := int32(nem)
		spec.Members = append(spec.Members, v1alpha1.Member{Node: fmt.Sprintf("node-%d", nem), NEM: platform, Platform: &platform,
			Address: fmt.Sprintf("198.18.%d.%d/16", nem>>8, nem&255)})
		for other := 1; other <= nodes; other++ {
			if other == nem {
				continue
			}
			if err := b.Pathloss(0, nem, other, pathlossOf(nem, other)); err != nil {
				return nil, nil, err
			}
		}
	}
	var compiled bytes.Buffer
	if _, err := b.Write(&compiled); err != nil {
		return nil, nil, err
	}
	paths, err := scenario.Open(bytes.NewReader(compiled.Bytes()), int64(compiled.Len()))
	return spec, paths, err
}

func waveform(s *settings, model string) v1alpha1.WaveformSpec {
	p := v1alpha1.PHY{Frequency: "2347MHz", Bandwidth: "1MHz", TransmitPower: "0dBm", AntennaGain: "0dBi", NoiseFigure: "4dB",
		Pathloss: v1alpha1.PathlossScenario, SubID: 7}
	rate := v1alpha1.DataRate(fmt.Sprintf("%dbit", s.rate))
	if model == "rfpipe" {
		return v1alpha1.WaveformSpec{RFPipe: &v1alpha1.RFPipeModel{PHY: p, Rate: rate, PCR: rfpipePCR, Interference: v1alpha1.InterferenceNone}}
	}
	return v1alpha1.WaveformSpec{TDMA: &v1alpha1.TDMAModel{PHY: p, Rate: rate, PCR: tdmaPCR, Interference: v1alpha1.InterferenceAll,
		Structure: v1alpha1.TDMAStructure{SlotDuration: v1alpha1.Duration(slotDuration.String())}}}
}

// world is the scenario for the native models.
type world struct{ dB [][]float64 }

func newWorld(paths *scenario.Scenario, nodes int) (*world, error) {
	cursor := paths.NewCursor()
	if err := cursor.Seek(0); err != nil {
		return nil, err
	}
	w := &world{make([][]float64, nodes)}
	for from := range nodes {
		w.dB[from] = make([]float64, nodes)
		for to := range nodes {
			if from != to {
				w.dB[from][to], _ = cursor.Pathloss(from, to)
			}
		}
	}
	return w, nil
}

func (w *world) Pathloss(from, to *radio.Port, _ int64) (dB float64, known bool) {
	return w.dB[from.NEM-1][to.NEM-1], true
}

func (w *world) Jamming(*radio.Port, int64, float64, float64) float64 { return 0 }

func (w *world) Version(int64) uint64 { return 1 }

// newModel makes radiod's model for the same scenario.
func newModel(s *settings, kind string, nodes int) (radio.Model, error) {
	spec, paths, err := newScenario(s, kind, nodes)
	if err != nil {
		return nil, err
	}
	w, err := newWorld(paths, nodes)
	if err != nil {
		return nil, err
	}
	radioOf := func(*radio.Port) phy.Radio {
		return phy.Radio{FrequencyHertz: 2347e6, BandwidthHertz: 1e6, NoiseFigureDB: 4, SubID: 7, Transmit: true}
	}
	if kind == "rfpipe" {
		curve, err := phy.ParsePCR([]byte(rfpipePCR))
		return rfpipe.New(rfpipe.Config{Seed: int64(s.seed), Radio: radioOf, Environment: w, PCR: curve,
			RateBitsPerSecond: func(*radio.Port) float64 { return float64(s.rate) }}), err
	}
	curve, err := phy.ParsePCR([]byte(tdmaPCR))
	if err != nil {
		return nil, err
	}
	schedule, err := emane.Schedule(spec)
	return tdma.New(tdma.Config{EpochOffset: clock.EpochOffset, Seed: int64(s.seed), Radio: radioOf, Environment: w, PCR: curve, Interference: phy.All,
		Schedule: schedule, Queue: tdma.DefaultQueue()}), err
}
