// Package tracks has the shared parts of readers of tracks: the content of a file, and the rules that convert files into moving platforms.
// A reader returns its file's content. This package finds platform numbers, a common start, and the times of points without one.
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

// MaxPoints is the most points of all files of a scenario. They are held in memory.
const MaxPoints = 10_000_000

// MaxTracks is the most tracks of a file. A scenario has fewer platforms.
const MaxTracks = scenario.MaxPlatform

// Untimed is the time of a point without one.
const Untimed = time.Duration(math.MinInt64)

// Clock is the zero of a file's times.
type Clock int

// The clocks.
const (
	// Seconds since the start of the scenario, or of a simulation.
	Seconds Clock = iota
	// Dates count from 1970.
	Dates
	// TimesOfDay count from midnight of an unknown day.
	TimesOfDay
)

// String names the times of such a file.
func (c Clock) String() string {
	return map[Clock]string{Seconds: "times in seconds", Dates: "dates", TimesOfDay: "times of day"}[c]
}

// Point is a point of a track.
type Point struct {
	// At is its time, by the file's clock.
	At       time.Duration
	Position geo.Position
	Line     int
}

// Track is the track of a platform.
type Track struct {
	// Name is its name in the file; empty for none.
	Name string
	// Platform is its number in the file; 0 for none.
	Platform int
	// Segments are the track's parts. A platform stays at the end of one, and then jumps to the next.
	Segments [][]Point
	// Plan is the file's word for a planned path, such as a route; empty for a recorded one. A plan counts only
	// if the file has nothing else.
	Plan string
	// Ordered points are in the order of the path, and their times must not go back. Others are sorted.
	Ordered bool
}

// File is a file of tracks.
type File struct {
	Name   string
	Clock  Clock
	Tracks []*Track
	// ByName: a name means the same platform in all files of the scenario. Otherwise each track is a platform.
	ByName bool
	// WhyUntimed may say why no point has a time.
	WhyUntimed string
	Tally      reading.Tally

	ctx    context.Context
	byName map[string]*Track
	points int
}

// NewFile returns an empty file with a name for errors.
func NewFile(name string, options Options) *File {
	ctx := options.Context
	if ctx == nil {
		ctx = context.Background()
	}
	return &File{Name: name, ctx: ctx}
}

// Options are for reading. Each reader uses those of its format.
type Options struct {
	// Context ends the reading when it ends; nil for no limit.
	Context context.Context
	// Platform is that of rows without one.
	Platform int
	// Plane is the plane of coordinates in metres; nil if unknown.
	Plane *Plane
}

// Plane is a plane of coordinates other than latitude and longitude.
type Plane struct {
	frame  geo.Frame
	metres float64
	south  bool
}

// NewPlane returns a plane with coordinates 0, 0 at the origin, and so many metres a unit. If south is true, y grows to the south, as on a screen.
func NewPlane(origin geo.Position, metres float64, south bool) *Plane {
	return &Plane{frame: geo.NewFrame(origin), metres: metres, south: south}
}

// Metres returns the metres of one unit.
func (p *Plane) Metres() float64 { return p.metres }

// Position returns the position of coordinates. Its altitude is the origin's plus z.
func (p *Plane) Position(x, y, z float64) geo.Position {
	if p.south {
		y = -y
	}
	return p.frame.Position(geo.Vector{X: x * p.metres, Y: y * p.metres, Z: z * p.metres})
}

// MaxPlane is the largest distance in metres of coordinates from their plane's origin.
const MaxPlane = 1_000_000

// Coordinate parses a coordinate in units of the plane.
func (p *Plane) Coordinate(text, what string) (float64, error) {
	v, err := reading.Float([]byte(strings.TrimSpace(text)), what)
	if err == nil && math.Abs(v*p.metres) > MaxPlane {
		return 0, fmt.Errorf("%s is %q: want at most %d km from the origin", what, reading.Short([]byte(text)), MaxPlane/1000)
	}
	return v, err
}

// Parse parses a file. Errors about the file contain its name, and are *scenario.SyntaxError.
type Parse func(r io.Reader, name string, options Options) (*File, error)

// Named returns the track of a name, and begins it if there is none yet.
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

// Numbered returns the track of a platform's number.
func (f *File) Numbered(platform int) *Track {
	t := f.Named(fmt.Sprintf("\x00%d", platform)) // no name of a file
	t.Name, t.Platform = "", platform
	return t
}

// Begin begins a track.
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

// pointsPerCheck is the number of points between two checks of the context.
const pointsPerCheck = 1 << 10

// Count counts a point of the file. It refuses an impossible position and too many points.
func (f *File) Count(p geo.Position) error {
	if f.points++; f.points > MaxPoints {
		return fmt.Errorf("the file has more than %d points: want fewer, or a part of it", MaxPoints)
	}
	if err := f.tooMany(); err != nil {
		return err
	}
	if f.points%pointsPerCheck == 0 {
		if err := f.ctx.Err(); err != nil {
			return err
		}
	}
	return p.Validate()
}

// Points returns the number of counted points.
func (f *File) Points() int { return f.points }

// Add adds a point to the only segment of a track.
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

// Date returns a point's date. One without a zone counts as UTC, with a warning.
func (f *File) Date(text string) (time.Duration, error) {
	at, zoned, err := reading.Date(text)
	if err == nil && !zoned {
		f.Tally.Warn("dates without a zone, such as Z or +01:00, are taken as UTC")
	}
	return at, err
}

// errorf returns an error about a line.
func (f *File) errorf(line int, format string, args ...any) error {
	return &scenario.SyntaxError{File: f.Name, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// ErrNoPlane is about coordinates in metres without a known origin.
var ErrNoPlane = errors.New("its coordinates are metres on a plane: want tracks.origin, the latitude and longitude of 0, 0 (--origin)")
