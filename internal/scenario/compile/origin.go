package compile

import (
	"bytes"
	"time"

	"vignette.dev/vignette/internal/scenario/gpx"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// origin is the moment that is the time 0 of all GPX files: the first one of any. It is zero for other formats.
func (c *compilation) origin(files []v1alpha1.ScenarioSource, texts [][]byte) (origin time.Time, err error) {
	if c.spec.Format != v1alpha1.ScenarioGPX {
		return origin, nil
	}
	for i, source := range files {
		first, err := gpx.First(bytes.NewReader(texts[i]), name(source))
		if err != nil {
			return origin, err
		}
		if origin.IsZero() || (!first.IsZero() && first.Before(origin)) {
			origin = first
		}
	}
	return origin, nil
}
