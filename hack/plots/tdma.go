package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radio/virtual"
)

func init() {
	plots["tdma-delay"] = plotSlotDelay
	plots["tdma-capacity"] = plotSlotCapacity
}

// newSlots is a network of four nodes with one slot of 10 ms each at 1 Mbit/s, as in the measurement of EMANE.
func newSlots() (*virtual.Network, error) {
	schedule, err := tdma.Generate(tdma.Structure{Frames: 1, Slots: 4, SlotDuration: 10 * time.Millisecond, BandwidthHertz: 1e6},
		[]int{1, 2, 3, 4}, 1e6, 2.4e9, nil)
	if err != nil {
		return nil, err
	}
	return virtual.NewOf(4, tdma.New(tdma.Config{Seed: 1, Radio: func(*radio.Port) phy.Radio { return emaneRadio }, Environment: losses{70, 70, 70},
		Interference: phy.All, Schedule: schedule, Queue: tdma.DefaultQueue(), EpochOffset: func() int64 { return 0 }})), nil
}

// The headers of Ethernet, IPv4 and UDP, in bytes.
const headers = 14 + 20 + 8

func plotSlotDelay() (*Chart, error) {
	s, err := newSlots()
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 1))
	const frames = 2000
	for range frames {
		s.Send(2, virtual.Address(1), 900+headers)
		s.Pass(100*time.Millisecond + time.Duration(random.Int64N(int64(40*time.Millisecond))))
	}
	var delays []float64 // in ms
	for _, a := range s.Received(1) {
		delays = append(delays, float64(a.Delay())/1e6)
	}
	slices.Sort(delays)
	drawn := Series{Name: "the model, 2000 frames", Marks: true}
	for share := 0.0; share < 1.01; share += 0.05 {
		drawn.X, drawn.Y = append(drawn.X, delays[min(int(share*frames), frames-1)]), append(drawn.Y, 100*share)
	}
	return &Chart{
		Title: "Delay of a frame that comes at a random time: 4 nodes, slots of 10 ms",
		X:     Axis{Label: "one-way delay in ms", Min: 0, Max: 60, Step: 10}, Y: Axis{Label: "frames that took no longer, in %", Min: 0, Max: 100, Step: 20},
		Series: []Series{
			Sampled("closed form: even from 10 ms to 50 ms", 0, 60, 240, func(ms float64) float64 { return 100 * min(max((ms-10)/40, 0), 1) }),
			drawn,
			{Name: "EMANE 1.5.3, measured: least and most", X: []float64{10, 50}, Y: []float64{0, 100}, Marks: true},
		},
	}, nil
}

func plotSlotCapacity() (*Chart, error) {
	drawn := Series{Name: "the model", Marks: true}
	const payload, seconds = 900, 20
	for offered := 20.0; offered <= 400; offered += 20 {
		s, err := newSlots()
		if err != nil {
			return nil, err
		}
		interval := time.Duration(payload * 8e6 / offered)
		for end := s.Now + seconds*1e9; s.Now < end; s.Pass(interval) {
			s.Send(2, virtual.Address(1), payload+headers)
		}
		received := float64(len(s.Received(1))*(payload+headers)) * payload / (payload + headers) * 8 / seconds / 1e3
		drawn.X, drawn.Y = append(drawn.X, offered), append(drawn.Y, received)
	}
	const most = 250.0 * payload / (payload + headers)
	return &Chart{
		Title: "UDP payload that a node gets through: a slot of 10 ms at 1 Mbit/s every 40 ms, 900 bytes a packet",
		X:     Axis{Label: "offered in kbit/s", Min: 0, Max: 400, Step: 50}, Y: Axis{Label: "received in kbit/s", Min: 0, Max: 300, Step: 50},
		Series: []Series{
			Sampled("closed form: slot payload / frame time", 0, 400, 400, func(offered float64) float64 { return min(offered, most) }),
			drawn,
			{Name: "EMANE 1.5.3, measured: saturated", X: []float64{400}, Y: []float64{237}, Marks: true},
		},
	}, nil
}
