package tdma

import (
	"fmt"
	"time"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/phy"
)

// Rate that a node may send at where the SINR at the receiver reaches a threshold.
type Rate struct {
	BitsPerSecond uint64
	SINRDB        float64
}

// Queue of each class of service of a node.
type Queue struct {
	// Depth in frames; beyond it the oldest frame of which no part has been sent goes, as in EMANE.
	Depth int
	// Aggregation packs several frames into a slot. Frames of other classes than the slot's are added until more than
	// AggregationThreshold of the slot, 0 to 1, is used.
	Aggregation          bool
	AggregationThreshold float64
	// Fragmentation spreads a frame over several slots. Without it one that no slot of its class holds is dropped.
	Fragmentation bool
	// StrictDequeue sends only frames of a slot's own class in it.
	StrictDequeue bool
	// A receiver looks every FragmentCheck, as it receives, for frames of which it got no part for FragmentTimeout, and
	// gives them up. In EMANE fragmentcheckthreshold and fragmenttimeoutthreshold.
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
	// Radio of a port; called by Members and Configure only. A schedule has frequencies and a bandwidth of its own, and
	// but for a generated one powers, which hold instead of the radio's.
	Radio        func(p *radio.Port) phy.Radio
	Environment  phy.Environment
	Interference phy.Interference
	// PCR curve; nil for none: what is above the sensitivity is received.
	PCR *phy.Curve
	// Schedule; nil for none: nobody sends.
	Schedule *Schedule
	// AdaptiveRates, if any, hold instead of the schedule's: a slot is sent at the highest one whose threshold the SINR
	// reaches at the addressee of its first frame, or at the worst receiver in range of a broadcast.
	AdaptiveRates []Rate
	Queue         Queue
	// EpochOffset is CLOCK_REALTIME - CLOCK_MONOTONIC in nanoseconds; nil for this machine's. Slots are aligned to the
	// Unix epoch, on all hosts of a network by the same clock, to less than half a slot.
	EpochOffset func() int64
	// Now is CLOCK_MONOTONIC in nanoseconds; nil for this machine's.
	Now func() int64
}

// CheckRates returns an error that names the adaptive rate that cannot be, or nil.
func CheckRates(rates []Rate, structure Structure) error {
	for i, rate := range rates {
		if rate.BitsPerSecond == 0 || rate.BitsPerSecond > mostRate || structure.Capacity(rate.BitsPerSecond) < 1 {
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
	Port  *radio.Port
	Slots SlotStatistics
	// MissedIn is, from each first slot that was missed to the next one that was not, when slots were missed. With reset only.
	MissedIn []radio.Interval
	// QueueDepth is how many frames wait, by class.
	QueueDepth [Classes]int
	// Links to those who were heard by the node, or nearly.
	Links []phy.LinkStatistics
}

// SlotStatistics of one node tell whether the emulation kept up.
type SlotStatistics struct {
	// Used counts the slots in which the node sent; Missed those in which it had something to send when the event loop came
	// to them only after their end, so that nothing was sent in them. That is overload, not radio.
	Used, Missed uint64
	// Lateness of the starts of slots, used and missed, by radio.LatenessBounds.
	Lateness radio.Histogram
	// WorstLateness in nanoseconds since Statistics was last asked to reset it.
	WorstLateness int64
	// FrameBytes and Capacity of the slots used, in bytes: what they carried and could have.
	FrameBytes, Capacity uint64
}
