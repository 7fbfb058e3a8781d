package tdma_test

import (
	"fmt"
	"math"
	"os/exec"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radio/tdma"
)

// field has all radios at 70 dB from each other.
type field struct{}

func (field) Pathloss(_, _ *radio.Port, _ int64) (float64, bool)   { return 70, true }
func (field) Jamming(*radio.Port, int64, float64, float64) float64 { return 0 }
func (field) Version(int64) uint64                                 { return 1 }
func radioOf(*radio.Port) phy.Radio                                { return phy.Radio{NoiseFigureDB: 4, SubID: 1, Transmit: true} }
func model(schedule *tdma.Schedule) *tdma.Model {
	return tdma.New(tdma.Config{Seed: 1, Radio: radioOf, Environment: field{}, Interference: phy.All, Schedule: schedule, Queue: tdma.DefaultQueue(), EpochOffset: clock.EpochOffset})
}

type bed struct{ *radiotest.Bed }

func newBed(t testing.TB, nodes int, slot time.Duration) *bed {
	t.Helper()
	var nems []int
	for i := range nodes {
		nems = append(nems, i+1)
	}
	schedule, err := tdma.Generate(tdma.Structure{Frames: 1, Slots: nodes, SlotDuration: slot, BandwidthHertz: 1e6}, nems, 1e6, 2.4e9, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &bed{radiotest.NewBed(t, nodes, model(schedule))}
}

// slots of all nodes together.
func (b *bed) slots() (all tdma.SlotStatistics) {
	b.Network.Do(func(_ *radio.Network, m radio.Model) {
		for _, p := range m.(*tdma.Model).Statistics(false) {
			all.Used += p.Slots.Used
			all.Missed += p.Slots.Missed
			all.WorstLateness = max(all.WorstLateness, p.Slots.WorstLateness)
			for i, n := range p.Slots.Lateness.Buckets {
				all.Lateness.Buckets[i] += n
			}
			all.Lateness.Count += p.Slots.Lateness.Count
		}
	})
	return all
}

// BenchmarkLoad has 24 nodes send in all their slots of 5 ms while more and more programs use the processors.
// It reports how late the loop comes to slots, and so at which load the emulation falls behind.
func BenchmarkLoad(b *testing.B) {
	for _, hogs := range []int{0, 1, 2, 4, 8, 16} {
		b.Run(fmt.Sprintf("%d hogs", hogs), func(b *testing.B) { benchmarkLoad(b, hogs) })
	}
}

func benchmarkLoad(b *testing.B, hogs int) {
	bed := newBed(b, 24, 5*time.Millisecond)
	for range hogs {
		hog := exec.Command("sh", "-c", "while :; do :; done")
		if err := hog.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() {
			_ = hog.Process.Kill()
			_ = hog.Wait() // it was killed
		}()
	}
	for b.Loop() {
		for _, n := range bed.Nodes {
			if err := n.Send(n.Frame(radiotest.Broadcast, 0, 600)); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(120 * time.Millisecond)
	}
	slots := bed.slots()
	b.ReportMetric(100*float64(slots.Missed)/float64(max(slots.Used+slots.Missed, 1)), "%missed")
	b.ReportMetric(float64(quantile(&slots.Lateness, 0.5))/1e3, "p50-µs")
	b.ReportMetric(float64(quantile(&slots.Lateness, 0.99))/1e3, "p99-µs")
	b.ReportMetric(float64(slots.WorstLateness)/1e3, "worst-µs")
}

// quantile of a histogram of lateness: the bound that this share is below.
func quantile(h *radio.Histogram, share float64) int64 {
	below := uint64(0)
	for i, n := range h.Buckets {
		if below += n; float64(below) >= share*float64(h.Count) && i < len(radio.LatenessBounds) {
			return radio.LatenessBounds[i]
		}
	}
	return math.MaxInt64
}
