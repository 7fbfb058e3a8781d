package compile

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/anglovacsv"
	"vignette.dev/vignette/internal/scenario/eel"
	"vignette.dev/vignette/internal/scenario/gpx"
	"vignette.dev/vignette/internal/scenario/internal/tracks"
	"vignette.dev/vignette/internal/scenario/kml"
	"vignette.dev/vignette/internal/scenario/nmea"
	"vignette.dev/vignette/internal/scenario/ns2"
	"vignette.dev/vignette/internal/scenario/positioncsv"
	"vignette.dev/vignette/internal/scenario/sumo"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// format is a format of files.
type format struct {
	name v1alpha1.ScenarioFormat
	// endings are the endings of file names; .gz may follow.
	endings []string
	// wants is what a source needs to become a scenario.
	wants string
	// tracks reads a file of tracks, and events a file of another kind.
	tracks tracks.Parse
	events func(r io.Reader, f *file, b *scenario.Builder) (scenario.Report, error)
	// plane: coordinates need an origin.
	plane bool
}

// formats are the formats of files, one a line.
var formats = []format{
	{name: v1alpha1.ScenarioEEL, endings: []string{".eel"}, events: readEEL, wants: "sentences such as: 0.0 nem:1 location gps 58.1,7.9,3"},
	{name: v1alpha1.ScenarioAnglovaCSV, events: readPairs, wants: "rows such as: 0,120.5,1,58.1,7.9,3,2,58.2,7.9,3,98.5"},
	{name: v1alpha1.ScenarioGPX, endings: []string{".gpx"}, tracks: gpx.Parse, wants: "tracks (trk) whose points have times, or with a speed or duration also tracks and routes (rte) without times"},
	{name: v1alpha1.ScenarioCSV, endings: []string{".csv"}, tracks: positioncsv.Parse, wants: "rows such as: 0,1,58.1,7.9,3"},
	{name: v1alpha1.ScenarioKML, endings: []string{".kml", ".kmz"}, tracks: kml.Parse, wants: "gx:Track with when and coord, points with TimeStamp, or with a speed or duration also LineString"},
	{name: v1alpha1.ScenarioNMEA, endings: []string{".nmea", ".nma"}, tracks: nmea.Parse, wants: "GGA, GNS, RMC or GLL sentences with a fix"},
	{name: v1alpha1.ScenarioNS2, endings: []string{".ns2", ".ns_movements", ".scen", ".tcl"}, tracks: ns2.Parse, plane: true,
		wants: `lines such as: $ns_ at 5.0 "$node_(0) setdest 100.0 200.0 10.0"`},
	{name: v1alpha1.ScenarioSUMO, endings: []string{".xml"}, tracks: sumo.Parse, wants: "timesteps with vehicles or persons, as of sumo --fcd-output"},
}

func readEEL(r io.Reader, f *file, b *scenario.Builder) (scenario.Report, error) {
	return eel.Read(r, f.name(), b)
}

func readPairs(r io.Reader, f *file, b *scenario.Builder) (scenario.Report, error) {
	return scenario.Report{}, anglovacsv.Read(r, f.name(), b, f.originSeconds)
}

// formatOf returns the format of a name.
func formatOf(name v1alpha1.ScenarioFormat) (format, error) {
	for _, f := range formats {
		if f.name == name {
			return f, nil
		}
	}
	return format{}, fmt.Errorf("format is %q: want %s or synthetic", name, strings.Join(FormatNames(), ", "))
}

// FormatNames returns the names of all formats of files.
func FormatNames() (names []string) {
	for _, f := range formats {
		names = append(names, string(f.name))
	}
	return names
}

// FormatOfFile returns the format by a file's name; empty if unknown.
func FormatOfFile(name string) v1alpha1.ScenarioFormat {
	ending := path.Ext(strings.TrimSuffix(strings.ToLower(name), ".gz"))
	for _, f := range formats {
		if slices.Contains(f.endings, ending) {
			return f.name
		}
	}
	return ""
}

// Endings returns the endings of all file names, without their dots.
func Endings() (endings []string) {
	for _, f := range formats {
		for _, e := range f.endings {
			endings = append(endings, e[1:])
		}
	}
	return append(endings, "gz")
}
