package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Limits of a scenario.
const (
	// MinPlatform is the lowest number of a platform. The numbers are EMANE's NEM identifiers, of which 0 and 65535 are reserved.
	MinPlatform = 1
	// MaxPlatform is the highest number of a platform.
	MaxPlatform = 65534
	// MaxPlatforms is the most platforms of a scenario: each cursor has a state for every ordered pair of them.
	MaxPlatforms = 1024
	// MaxDuration is the longest duration of a scenario.
	MaxDuration = 366 * 24 * time.Hour
	// maxFrequencies is the most frequencies with their own pathloss.
	maxFrequencies = 16
	// maxPathlossDB is the largest accepted pathloss: a greater one can only be a mistake.
	maxPathlossDB = 100_000
)

// CommEffect is the effect of EMANE's comm effect model on the frames of a link.
type CommEffect struct {
	Latency, Jitter time.Duration
	// LossPercent and DuplicationPercent are shares of the frames.
	LossPercent, DuplicationPercent float64
	// UnicastBitsPerSecond and BroadcastBitsPerSecond are data rates; 0 is unlimited.
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

// String returns the model's name in an EMANE event log.
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

// AntennaProfile is a platform's antenna: its number in EMANE's antenna manifest and its direction.
type AntennaProfile struct {
	ID int
	// Azimuth and Elevation are in degrees.
	Azimuth, Elevation float64
}

// AntennaStart is when a platform has its first antenna profile.
type AntennaStart struct {
	Platform int
	At       time.Duration
}

// Statistics sum up a compiled scenario.
type Statistics struct {
	// Platforms is the number of platforms.
	Platforms int
	// Duration is the time from 0 to the last moment.
	Duration time.Duration
	// Pathloss: any pathloss between platforms is known. Positions: any position is known.
	Pathloss, Positions bool
	// Moments is the number of moments with a change, and Changes that of changed single values.
	Moments, Changes int64
	// Chunks is the number of chunks of the compiled form, and Bytes its size.
	Chunks int
	Bytes  int64
}

// Report is a reader's report on a file.
type Report struct {
	// Unknown has the skipped kinds of sentences, and how many there were of each.
	Unknown map[string]int64
	// Warnings are about content that may be a mistake.
	Warnings []string
	// Origin is the scenario's time 0 if the file has absolute times.
	Origin time.Time
}

// UnknownSentences lists the unknown kinds with their numbers, the most frequent first: "14 × foo".
func (r Report) UnknownSentences() []string {
	kinds := slices.SortedFunc(maps.Keys(r.Unknown), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Unknown[b], r.Unknown[a]), cmp.Compare(a, b))
	})
	list := make([]string, len(kinds))
	for i, kind := range kinds {
		list[i] = fmt.Sprintf("%d × %s", r.Unknown[kind], kind)
	}
	return list
}

// SyntaxError names the place and the reason of an error in a file.
type SyntaxError struct {
	File   string
	Line   int
	Reason string
}

// Error is file:line: reason.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// CorruptError says that a file is no compiled scenario, is damaged, or has an unknown version.
type CorruptError struct{ Reason string }

// Error names the reason.
func (e *CorruptError) Error() string { return "compiled scenario: " + e.Reason }
