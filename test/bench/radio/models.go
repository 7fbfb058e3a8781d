package main

import (
	"fmt"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/rfpipe"
	"vignette.dev/vignette/internal/radio/tdma"
)

// world is an environment in which all receive all, at a SINR of 40 dB.
type world struct{}

func (world) Pathloss(*radio.Port, *radio.Port, int64) (dB float64, known bool) { return 70, true }

func (world) Jamming(*radio.Port, int64, float64, float64) float64 { return 0 }

func (world) Version(int64) uint64 { return 1 }

const frequencyHertz = 2347e6

func emaneRadio(*radio.Port) phy.Radio {
	return phy.Radio{FrequencyHertz: frequencyHertz, BandwidthHertz: 1e6, NoiseFigureDB: 4, SubID: 1, Transmit: true}
}

// pcr is the curve of EMANE's RF Pipe in the measurements to compare with.
const pcr = `<pcr><table pktsize="0"><row sinr="0" por="0"/><row sinr="20" por="100"/></table></pcr>`

// newModel of a kind whose rate carries the highest load: link 1 Gbit/s and rfpipe 1 Mbit/s for each node, tdma 20 Mbit/s for
// all in slots of 5 ms.
func newModel(kind string, nodes int) (radio.Model, error) {
	curve, err := phy.ParsePCR([]byte(pcr))
	if err != nil {
		return nil, err
	}
	switch kind {
	case "link":
		return link.New(link.Config{Default: link.Parameters{RateBitsPerSecond: 1e9, Delay: time.Millisecond, Limit: 1000}}), nil
	case "rfpipe":
		return rfpipe.New(rfpipe.Config{Seed: 1, Radio: emaneRadio, Environment: world{}, PCR: curve,
			RateBitsPerSecond: func(*radio.Port) float64 { return 1e6 }}), nil
	case "tdma":
		return newTDMA(nodes, curve)
	default:
		return nil, fmt.Errorf("carrier %q: want hub, link, rfpipe or tdma", kind)
	}
}

func newTDMA(nodes int, curve *phy.Curve) (radio.Model, error) {
	nems := make([]int, nodes)
	for i := range nems {
		nems[i] = i + 1
	}
	structure := tdma.Structure{Frames: 1, Slots: nodes, SlotDuration: 5 * time.Millisecond, BandwidthHertz: 1e6}
	schedule, err := tdma.Generate(structure, nems, 20e6, frequencyHertz, nil)
	if err != nil {
		return nil, err
	}
	return tdma.New(tdma.Config{EpochOffset: clock.EpochOffset, Seed: 1, Radio: emaneRadio, Environment: world{}, Interference: phy.All, PCR: curve,
		Schedule: schedule, Queue: tdma.DefaultQueue()}), nil
}
