package compile

import (
	"maps"
	"slices"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/anglovacsv"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// file is a scenario's file, with the values that its files share.
type file struct {
	source v1alpha1.ScenarioSource
	text   []byte
	// originSeconds is the time 0 of all files; nil for each file's own.
	originSeconds *float64
}

func (f *file) name() string { return name(f.source) }

// setCommonOrigin gives files of pairs a common origin, as their own origins would differ.
func (c *compilation) setCommonOrigin(files []*file) error {
	if len(files) < 2 || c.spec.Format != v1alpha1.ScenarioAnglovaCSV {
		return nil
	}
	var origin float64
	for i, f := range files {
		first, err := anglovacsv.First(c.reader(f.text), f.name())
		if err != nil {
			return err
		}
		if i == 0 || first < origin {
			origin = first
		}
	}
	for _, f := range files {
		f.originSeconds = &origin
	}
	return nil
}

// warnOfOverlap warns once of two files that have positions of a platform at the same times.
func (c *compilation) warnOfOverlap(f *file, spans map[int]scenario.Span) {
	said := false
	for _, platform := range slices.Sorted(maps.Keys(spans)) {
		clash := c.presence.Add(f.name(), platform, spans[platform])
		if clash != "" && !said {
			c.warnings = append(c.warnings, clash+": of two for one moment the later source's holds")
			said = true
		}
	}
}
