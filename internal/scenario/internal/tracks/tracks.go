// Package tracks is what the readers of tracks share: what a file of tracks has, and the rules by which files become platforms that move.
// A reader says what stands in its file; numbers of platforms, a common start, and the times of points without one are found here.
package tracks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/internal/reading"
)

// MaxPoints of all files of a scenario, which are held in memory.
const MaxPoints = 10_000_000

// MaxTracks of a file. A scenario has fewer platforms still.
const MaxTracks = scenario.MaxPlatform

// Untimed is the time of a point that has none.
const Untimed = time.Duration(math.MinInt64)

// Clock is what the times of a file count from.
type Clock int

// The clocks.
const (
	// Seconds since the start of the scenario, or of a simulation.
	Seconds Clock = iota
	// Dates count from 1970.
	Dates
	// TimesOfDay count from midnight of a day that the file does not say.
	TimesOfDay
)

// String names what the times of such a file are.
func (c Clock) String() string {
	return map[Clock]string{Seconds: "times in seconds", Dates: "dates", TimesOfDay: "times of day"}[c]
}

// Point of a track.
type Point struct {
	// At is its time, by the file's clock.
	At       time.Duration
	Position geo.Position
	Line     int
}

// Track of a platform.
type Track struct {
	// Name in the file; empty if it has none.
	Name string
	// Platform is the number that the file gives it; 0 if it gives none.
	Platform int
	// Segments, between which a platform stays and then jumps.
	Segments [][]Point
	// Plan is what the file calls a way that was planned, not recorded, such as a route; it is empty for others. A plan counts only
	// where the file has nothing else.
	Plan string
	// Ordered points are in the order of the way: their times must not go back. Others are sorted.
	Ordered bool
}

// File of tracks.
type File struct {
	Name   string
	Clock  Clock
	Tracks []*Track
	// ByName says that a name is that of a platform, in all files of the scenario. Otherwise each track is a platform of its own.
	ByName bool
	Tally  reading.Tally

	ctx    context.Context
	byName map[string]*Track
	points int
}

// NewFile whose name is for errors.
func NewFile(name string, options Options) *File {
	ctx := options.Context
	if ctx == nil {
		ctx = context.Background()
	}
	return &File{Name: name, ctx: ctx}
}

// Options of reading. Each reader takes those that its format needs.
type Options struct {
	// Context ends the reading when it ends; none does if nil.
	Context context.Context
	// Platform of rows that have none of their own.
	Platform int
	// Plane is where coordinates in metres lie; nil if nobody says so.
	Plane *Plane
}

// Plane of coordinates that are no latitudes and longitudes.
type Plane struct {
	frame  geo.Frame
	metres float64
	south  bool
}

// NewPlane whose coordinates 0, 0 are at the origin, with so many metres a unit. If south is true, y grows to the south, as on a screen.
func NewPlane(origin geo.Position, metres float64, south bool) *Plane {
	return &Plane{frame: geo.NewFrame(origin), metres: metres, south: south}
}

// Metres of one unit.
func (p *Plane) Metres() float64 { return p.metres }

// Position of coordinates. Its altitude is that of the origin, and z.
func (p *Plane) Position(x, y, z float64) geo.Position {
	if p.south {
		y = -y
	}
	return p.frame.Position(geo.Vector{X: x * p.metres, Y: y * p.metres, Z: z * p.metres})
}

// MaxPlane is how many metres coordinates may be from the origin of their plane.
const MaxPlane = 1_000_000

// Coordinate in units of the plane.
func (p *Plane) Coordinate(text, what string) (float64, error) {
	v, err := reading.Float([]byte(strings.TrimSpace(text)), what)
	if err == nil && math.Abs(v*p.metres) > MaxPlane {
		return 0, fmt.Errorf("%s is %q: want at most %d km from the origin", what, reading.Short([]byte(text)), MaxPlane/1000)
	}
	return v, err
}

// Parse a file whose name is for errors, which are *scenario.SyntaxError.
type Parse func(r io.Reader, name string, options Options) (*File, error)

// Named is the track of a name, which it begins if there is none yet.
func (f *File) Named(name string) *Track {
	if t := f.byName[name]; t != nil {
		return t
	}
	if f.byName == nil {
		f.byName = map[string]*Track{}
	}
	t := &Track{Name: name}
	f.byName[name] = t
	f.Tracks = append(f.Tracks, t)
	return t
}

// Numbered is the track of a platform's number.
func (f *File) Numbered(platform int) *Track {
	t := f.Named(fmt.Sprintf("\x00%d", platform)) // no name of a file
	t.Name, t.Platform = "", platform
	return t
}

// Begin a track.
func (f *File) Begin(t *Track) error {
	f.Tracks = append(f.Tracks, t)
	return f.tooMany()
}

func (f *File) tooMany() error {
	if len(f.Tracks) > MaxTracks {
		return fmt.Errorf("the file has more than %d tracks: want at most %d platforms", MaxTracks, scenario.MaxPlatforms)
	}
	return nil
}

// pointsPerLook at the context.
const pointsPerLook = 1 << 10

// Count a point of the file, which is refused if it is nowhere or one too many.
func (f *File) Count(p geo.Position) error {
	if f.points++; f.points > MaxPoints {
		return fmt.Errorf("the file has more than %d points: want fewer, or a part of it", MaxPoints)
	}
	if err := f.tooMany(); err != nil {
		return err
	}
	if f.points%pointsPerLook == 0 {
		if err := f.ctx.Err(); err != nil {
			return err
		}
	}
	return p.Validate()
}

// Points that were counted.
func (f *File) Points() int { return f.points }

// Add a point to the only segment of a track.
func (f *File) Add(t *Track, p Point) error {
	if err := f.Count(p.Position); err != nil {
		return err
	}
	if len(t.Segments) == 0 {
		t.Segments = make([][]Point, 1)
	}
	t.Segments[0] = append(t.Segments[0], p)
	return nil
}

// Date of a point; one without a zone is taken as UTC, with a warning.
func (f *File) Date(text string) (time.Duration, error) {
	at, zoned, err := reading.Date(text)
	if err == nil && !zoned {
		f.Tally.Warn("dates without a zone, such as Z or +01:00, are taken as UTC")
	}
	return at, err
}

// errorf is an error about a line.
func (f *File) errorf(line int, format string, args ...any) error {
	return &scenario.SyntaxError{File: f.Name, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// ErrNoPlane is about coordinates in metres of which nobody says where they lie.
var ErrNoPlane = errors.New("its coordinates are metres on a plane: want tracks.origin, the latitude and longitude of 0, 0 (--origin)")
