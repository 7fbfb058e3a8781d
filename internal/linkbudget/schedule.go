package linkbudget

import (
	"cmp"

	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Schedule generates the schedule of a tdma network by its structure, for NEM ids that send at one rate. Without powers they
// send at their own.
func Schedule(w *v1alpha1.TDMAModel, nems []int, rate v1alpha1.DataRate, powerDBm func(nem int) float64) (*tdma.Schedule, error) {
	s := tdma.Structure{Frames: max(int(w.Structure.Frames), 1), Slots: len(nems), SlotDuration: cmp.Or(w.Structure.SlotDuration, "5ms").Std(),
		SlotOverhead: w.Structure.SlotOverhead.Std(), BandwidthHertz: uint64(cmp.Or(w.PHY.Bandwidth, v1alpha1.DefaultBandwidth).Hertz())}
	if w.Structure.Slots != nil {
		s.Slots = int(*w.Structure.Slots)
	}
	return tdma.Generate(s, nems, uint64(cmp.Or(rate, v1alpha1.DefaultRate).BitsPerSecond()), uint64(cmp.Or(w.PHY.Frequency, v1alpha1.DefaultFrequency).Hertz()), powerDBm)
}
