package tdma

import (
	"fmt"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// Rate at which a node may send if the SINR at the receiver reaches a threshold.
type Rate struct {
	BitsPerSecond uint64
	SINRDB        float64
}

// Queue of each class of service of a node.
type Queue struct {
	// Depth in frames. Beyond it the oldest frame of which no part has been sent is dropped, as in EMANE.
	Depth int
	// Aggregation packs several frames into a slot. Frames of other classes than the slot's are added until
	// more than AggregationThreshold of the slot, 0 to 1, is used.
	Aggregation          bool
	AggregationThreshold float64
	// Fragmentation spreads a frame over several slots. Without it a frame too large for the slots of its
	// class is dropped.
	Fragmentation bool
	// StrictDequeue sends only frames of the slot's class in it.
	StrictDequeue bool
	// While it receives, a receiver checks every FragmentCheck for frames without a new part for
	// FragmentTimeout, and gives them up. EMANE calls them fragmentcheckthreshold and
	// fragmenttimeoutthreshold.
	FragmentCheck, FragmentTimeout time.Duration
}

// DefaultQueue has EMANE's defaults.
func DefaultQueue() Queue {
	return Queue{Depth: 256, Aggregation: true, AggregationThreshold: 0.9, Fragmentation: true,
		FragmentCheck: 2 * time.Second, FragmentTimeout: 5 * time.Second}
}

// Config of a network's radios.
type Config struct {
	// Seed of the draws.
	Seed int64
	// Radio of a port; only Members and Configure call it. The schedule's frequencies, bandwidth and powers
	// hold instead of the radio's. A generated schedule has no powers.
	Radio        func(p *radio.Port) phy.Radio
	Environment  phy.Environment
	Interference phy.Interference
	// PCR curve; nil for none: bursts above the sensitivity are received.
	PCR *phy.Curve
	// Schedule; nil for none: nobody sends.
	Schedule *Schedule
	// AdaptiveRates, if any, replace the schedule's rates. A slot is sent at the highest rate whose threshold
	// the SINR reaches. The SINR is that of the first frame's addressee, or of the worst receiver in range of
	// a broadcast.
	AdaptiveRates []Rate
	Queue         Queue
	// EpochOffset is the time since the Unix epoch, to which slots are aligned, minus that of the engine, nanoseconds.
	// All hosts of a network use one clock, to less than half a slot.
	EpochOffset func() int64
}

// CheckRates returns an error that names an impossible adaptive rate, or nil.
func CheckRates(rates []Rate, structure Structure) error {
	for i, rate := range rates {
		if rate.BitsPerSecond == 0 || rate.BitsPerSecond > MaxRate || structure.Capacity(rate.BitsPerSecond) < 1 {
			return fmt.Errorf("adaptive rate %d bit/s: a slot of %v less %v carries no byte at it",
				rate.BitsPerSecond, structure.SlotDuration, structure.SlotOverhead)
		}
		for _, other := range rates[:i] {
			if (other.BitsPerSecond < rate.BitsPerSecond) != (other.SINRDB < rate.SINRDB) || other == rate {
				return fmt.Errorf("adaptive rates %d bit/s from %g dB and %d bit/s from %g dB: want a higher threshold for a higher rate",
					other.BitsPerSecond, other.SINRDB, rate.BitsPerSecond, rate.SINRDB)
			}
		}
	}
	return nil
}

// PortStatistics of one node since it was attached.
type PortStatistics struct {
	Slots SlotStatistics
	// QueueDepth is the number of waiting frames, by class.
	QueueDepth [Classes]int
}

// SlotStatistics of one node show whether the emulation kept up.
type SlotStatistics struct {
	// Used counts the slots in which the node sent. Missed counts those in which it had frames, but the event
	// loop came after their end and sent nothing. That is overload, not radio.
	Used, Missed uint64
	// Lateness of the starts of slots, used and missed, by radio.LatenessBounds.
	Lateness radio.Histogram
	// WorstLateness in nanoseconds since StatisticsOf was last called with reset.
	WorstLateness int64
	// MissedIn are the times in which slots were missed, each until the next slot that was not; with reset only.
	MissedIn []radio.Interval
}
