package scenario

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Limits of a scenario.
const (
	// MinPlatform is the least number of a platform. The numbers are EMANE's NEM identifiers, of which 0 and 65535 are reserved.
	MinPlatform = 1
	// MaxPlatform is the greatest number of a platform.
	MaxPlatform = 65534
	// MaxPlatforms is how many platforms a scenario may have: each cursor has a state for every ordered pair of them.
	MaxPlatforms = 1024
	// MaxDuration of a scenario.
	MaxDuration = 366 * 24 * time.Hour
	// maxFrequencies that have a pathloss of their own.
	maxFrequencies = 16
	// maxPathlossDB bounds what is taken for a pathloss: no more than a slip can be behind a greater one.
	maxPathlossDB = 100_000
)

// CommEffect is what EMANE's comm effect model does to the frames of a link.
type CommEffect struct {
	Latency, Jitter time.Duration
	// LossPercent and DuplicationPercent of the frames.
	LossPercent, DuplicationPercent float64
	// UnicastBitsPerSecond and BroadcastBitsPerSecond; 0 is unlimited.
	UnicastBitsPerSecond, BroadcastBitsPerSecond uint64
}

// Fading is the fading model that a receiver applies to a transmitter's signal.
type Fading int

// EMANE's fading models.
const (
	FadingNone Fading = iota
	FadingNakagami
	FadingLognormal
	fadings
)

// String is the model's name in an EMANE event log.
func (f Fading) String() string {
	switch f {
	case FadingNone:
		return "none"
	case FadingNakagami:
		return "nakagami"
	case FadingLognormal:
		return "lognormal"
	}
	return fmt.Sprintf("Fading(%d)", int(f))
}

// AntennaProfile of a platform: the number of an antenna in EMANE's antenna manifest and where it points.
type AntennaProfile struct {
	ID int
	// Azimuth and Elevation in degrees.
	Azimuth, Elevation float64
}

// AntennaStart is when a platform has its first antenna profile.
type AntennaStart struct {
	Platform int
	At       time.Duration
}

// Statistics sum up a compiled scenario.
type Statistics struct {
	// Platforms of the scenario.
	Platforms int
	// Duration from time 0 to the last moment.
	Duration time.Duration
	// Pathloss says whether any pathloss between platforms is known, Positions whether any position is.
	Pathloss, Positions bool
	// Moments at which something changes, and Changes of single values at them.
	Moments, Changes int64
	// Chunks that the compiled form is divided into, and its size.
	Chunks int
	Bytes  int64
}

// Report of a reader on a file that it has read.
type Report struct {
	// Sentences that were understood: lines, rows or track points.
	Sentences int64
	// Unknown kinds of sentences, which were passed over, with how many there were of each.
	Unknown map[string]int64
	// Warnings about what was understood, but may not be meant.
	Warnings []string
	// Platforms that the file speaks of, ascending.
	Platforms []int
	// Last moment that the file speaks of.
	Last time.Duration
	// Origin is the scenario's time 0 where the file has absolute times.
	Origin time.Time
	// OriginSeconds was subtracted from the file's times where they are seconds that do not begin at 0.
	OriginSeconds float64
}

// UnknownSentences lists the unknown kinds with their numbers, the most frequent first: "14 × foo".
func (r Report) UnknownSentences() []string {
	kinds := slices.SortedFunc(maps.Keys(r.Unknown), func(a, b string) int {
		if r.Unknown[a] != r.Unknown[b] {
			return int(min(max(r.Unknown[b]-r.Unknown[a], -1), 1))
		}
		return compareStrings(a, b)
	})
	list := make([]string, len(kinds))
	for i, kind := range kinds {
		list[i] = fmt.Sprintf("%d × %s", r.Unknown[kind], kind)
	}
	return list
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// SyntaxError says where a file is not what it should be, and why.
type SyntaxError struct {
	File   string
	Line   int
	Reason string
}

// Error is file:line: reason.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// CorruptError says that a compiled scenario is not one, is damaged, or is of a version that this program does not know.
type CorruptError struct{ Reason string }

// Error names the reason.
func (e *CorruptError) Error() string { return "compiled scenario: " + e.Reason }
