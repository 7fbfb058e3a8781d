package scenario_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

// leaving has platform 1, and platforms 2 and 7 that drive away from it: by 1 km and by 2 km a minute. Platform 7 appears after a minute.
func leaving(t *testing.T) *scenario.Scenario {
	t.Helper()
	b, home := scenario.NewBuilder(scenario.Options{}), geo.NewFrame(geo.Position{Latitude: 58, Longitude: 8})
	err := b.Position(0, 1, home.Position(geo.Vector{}))
	for minute := range 10 {
		at, km := time.Duration(minute)*time.Minute, 1000*float64(minute)
		err = errors.Join(err, b.Position(at, 2, home.Position(geo.Vector{X: km})), b.Pathloss(at, 1, 2, 100))
		if minute > 0 {
			err = errors.Join(err, b.Position(at, 7, home.Position(geo.Vector{Y: 2 * km})))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return scenariotest.Open(t, b)
}

func TestTheFarthestDistanceIsThatOfTheAskedPlacesInTheAskedTime(t *testing.T) {
	s := leaving(t)
	fixed := []geo.Position{{Latitude: 58.1, Longitude: 8}}
	for name, c := range map[string]struct {
		platforms []int
		fixed     []geo.Position
		until     time.Duration
		want      scenario.Separation
	}{
		"two platforms":               {[]int{1, 2}, nil, time.Hour, scenario.Separation{Metres: 9000, A: 0, B: 1, At: 9 * time.Minute}},
		"two platforms for a while":   {[]int{1, 2}, nil, 4*time.Minute + time.Second, scenario.Separation{Metres: 4000, A: 0, B: 1, At: 4 * time.Minute}},
		"in another order":            {[]int{7, 2, 1}, nil, 5 * time.Minute, scenario.Separation{Metres: 11180, A: 0, B: 1, At: 5 * time.Minute}},
		"one that is not there yet":   {[]int{1, 7}, nil, 59 * time.Second, scenario.Separation{}},
		"a fixed place at the start":  {[]int{1}, fixed, time.Minute, scenario.Separation{Metres: 11139, A: 0, B: 1}},
		"a fixed place that is left":  {[]int{2}, fixed, 9 * time.Minute, scenario.Separation{Metres: 14321, A: 0, B: 1, At: 9 * time.Minute}},
		"one platform":                {[]int{2}, nil, time.Hour, scenario.Separation{}},
		"nothing but one fixed place": {nil, fixed, time.Hour, scenario.Separation{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Farthest(t.Context(), c.platforms, c.fixed, c.until)
			if err != nil {
				t.Fatal(err)
			}
			metres := got.Metres
			if got.Metres = c.want.Metres; got != c.want || math.Abs(metres-c.want.Metres) > 2 {
				t.Errorf("%.0f m, %+v; want %+v", metres, got, c.want)
			}
		})
	}
}

func TestTheFarthestDistanceOfAnUnknownPlatformIsAnError(t *testing.T) {
	if _, err := leaving(t).Farthest(t.Context(), []int{1, 3}, nil, time.Hour); err == nil {
		t.Error("no error for platform 3, which the scenario does not have")
	}
}

func TestTheSearchForTheFarthestDistanceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := leaving(t).Farthest(ctx, []int{1, 2}, nil, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v; want that it was cancelled", got, err)
	}
}
