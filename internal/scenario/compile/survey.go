package compile

import (
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/synthetic"
)

// Survey counts the hops between all platforms of a scenario at regular times, over links of at most limitDB in both directions.
func Survey(s *scenario.Scenario, limitDB float64, every time.Duration) (synthetic.Hops, error) {
	var hops synthetic.Hops
	cursor := s.NewCursor()
	linked := func(i, j int) bool {
		there, known := cursor.Pathloss(i, j)
		back, knownBack := cursor.Pathloss(j, i)
		return known && knownBack && there <= limitDB && back <= limitDB
	}
	for t := time.Duration(0); t <= s.Duration(); t += every {
		if err := cursor.Seek(t); err != nil {
			return hops, err
		}
		hops.Add(len(s.Platforms()), linked)
	}
	return hops, nil
}
