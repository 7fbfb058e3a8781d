package position_test

import (
	"errors"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/position"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

// late is a platform whose positions begin 10 s after T0.
func late(t *testing.T) *position.Movement {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	if err := errors.Join(b.Position(10*time.Second, 3, geo.Position{Latitude: 1}), b.Position(20*time.Second, 3, geo.Position{Latitude: 2})); err != nil {
		t.Fatal(err)
	}
	all, err := scenariotest.Open(t, b).Movements(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := position.New(all[3])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAPlaceHoldsUntilTheNextOne(t *testing.T) {
	m := late(t)
	for at, want := range map[time.Duration]float64{10 * time.Second: 1, 19 * time.Second: 1, 20 * time.Second: 2, time.Hour: 2} {
		if p, known, err := m.At(at); p.Latitude != want || !known || err != nil {
			t.Errorf("at %v: latitude %v, %v, %v; want %v", at, p.Latitude, known, err, want)
		}
	}
}

func TestBeforeItsFirstPositionAPlatformIsNotPlaced(t *testing.T) {
	m := late(t)
	for _, at := range []time.Duration{-time.Minute, 0, 9 * time.Second} {
		if p, known, err := m.At(at); known || err != nil || p.Latitude != 1 {
			t.Errorf("at %v: %v, known %v, %v; want the first position, not known", at, p, known, err)
		}
	}
}

func TestAFixedNodeIsWhereItIsAtAnyTime(t *testing.T) {
	want := geo.Position{Latitude: 58.2, Longitude: -8.1, Altitude: 12}
	content, err := position.Fixed(want)
	if err != nil {
		t.Fatal(err)
	}
	m, err := position.New(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Duration{-time.Hour, 0, time.Hour} {
		if p, known, err := m.At(at); p.Position != want || p.Speed != 0 || !known || err != nil {
			t.Errorf("at %v: %+v, %v, %v; want %v, still", at, p, known, err, want)
		}
	}
}

func TestAMovementWithoutPositionsIsRefused(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	if err := b.Velocity(0, 3, geo.Velocity{Speed: 1}); err != nil {
		t.Fatal(err)
	}
	var content writer
	if _, err := b.Write(&content); err != nil {
		t.Fatal(err)
	}
	if _, err := position.New(content); !errors.Is(err, position.ErrNone) {
		t.Errorf("%v; want ErrNone", err)
	}
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) { *w = append(*w, p...); return len(p), nil }
