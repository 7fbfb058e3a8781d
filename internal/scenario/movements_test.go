package scenario_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

func movement(t *testing.T, s *scenario.Scenario, platform int) *scenario.Scenario {
	t.Helper()
	all, err := s.Movements(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := scenario.Open(bytes.NewReader(all[platform]), int64(len(all[platform])))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAMovementHasThePositionsOfTheScenarioAtEveryTime(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	random := rand.New(rand.NewPCG(1, 2))
	for second := 3; second < 600; second++ {
		for platform := 1; platform <= 4; platform++ {
			if random.IntN(3) == 0 {
				continue // it stands
			}
			at := time.Duration(second)*time.Second + time.Duration(random.IntN(1000))*time.Millisecond
			p := geo.Position{Latitude: 58 + random.Float64(), Longitude: 8 + random.Float64(), Altitude: 100 * random.Float64()}
			if err := errors.Join(b.Position(at, platform, p), b.Pathloss(at, platform, platform%4+1, 100+random.Float64())); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := scenariotest.Open(t, b)
	for i, platform := range s.Platforms() {
		whole, alone := s.NewCursor(), movement(t, s, platform).NewCursor()
		for at := time.Duration(0); at < 610*time.Second; at += 137 * time.Millisecond {
			if err := errors.Join(whole.Seek(at), alone.Seek(at)); err != nil {
				t.Fatal(err)
			}
			want, placed := whole.Position(i)
			if got, known := alone.Position(0); got != want || known != placed {
				t.Fatalf("platform %d at %v: %v, %v; want %v, %v as in the scenario", platform, at, got, known, want, placed)
			}
		}
	}
}

func TestAMovementHasTheDurationOfTheScenarioAndNoOtherPlatform(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	if err := errors.Join(b.Position(0, 1, geo.Position{}), b.Position(0, 7, geo.Position{Latitude: 1}), b.Pathloss(0, 7, 9, 80), b.Extend(time.Hour)); err != nil {
		t.Fatal(err)
	}
	s := scenariotest.Open(t, b)
	m := movement(t, s, 7)
	if got := m.Platforms(); len(got) != 1 || got[0] != 7 || m.Duration() != time.Hour || m.HasPathloss() {
		t.Errorf("platforms %v, %v, pathloss %v; want platform 7 alone, an hour", got, m.Duration(), m.HasPathloss())
	}
	all, err := s.Movements(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, has := all[9]; has {
		t.Error("platform 9 has a movement; want none without a position")
	}
}

func TestMovementsNeedNoTemporaryFiles(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	if err := b.Position(0, 1, geo.Position{Latitude: 58}); err != nil {
		t.Fatal(err)
	}
	s := scenariotest.Open(t, b)
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing")) // as in a container of the program alone
	if all, err := s.Movements(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d movements, %v; want that of platform 1", len(all), err)
	}
}

func velocityAt(t *testing.T, m *scenario.Scenario, at time.Duration) geo.Velocity {
	t.Helper()
	c := m.NewCursor()
	if err := c.Seek(at); err != nil {
		t.Fatal(err)
	}
	v, _ := c.Velocity(0)
	return v
}

func TestVelocityIsThatToTheNextPosition(t *testing.T) {
	f := geo.NewFrame(geo.Position{Latitude: 58, Longitude: 8})
	b := scenario.NewBuilder(scenario.Options{})
	for at, place := range map[time.Duration]geo.Vector{0: {}, 2 * time.Second: {X: 20}, 3 * time.Second: {X: 20, Y: -5}, time.Minute: {X: 40, Y: -5}} {
		if err := b.Position(at, 1, f.Position(place)); err != nil {
			t.Fatal(err)
		}
	}
	m := movement(t, scenariotest.Open(t, b), 1)
	for at, want := range map[time.Duration]geo.Velocity{
		time.Second:      {Azimuth: 90, Speed: 10},
		2 * time.Second:  {Azimuth: 180, Speed: 5},
		30 * time.Second: {}, // the next position is too far ahead
		time.Hour:        {}, // there is no next position
	} {
		if got := velocityAt(t, m, at); math.Abs(got.Azimuth-want.Azimuth) > 0.01 || math.Abs(got.Speed-want.Speed) > 0.01 || math.Abs(got.Elevation) > 0.01 {
			t.Errorf("at %v: %+v; want %+v", at, got, want)
		}
	}
}

func TestTheScenariosOwnVelocityCounts(t *testing.T) {
	b, own := scenario.NewBuilder(scenario.Options{}), geo.Velocity{Azimuth: 45, Elevation: 2, Speed: 7}
	if err := errors.Join(b.Position(0, 1, geo.Position{}), b.Velocity(0, 1, own), b.Position(time.Second, 1, geo.Position{Latitude: 1})); err != nil {
		t.Fatal(err)
	}
	if got := velocityAt(t, movement(t, scenariotest.Open(t, b), 1), time.Minute); got != own {
		t.Errorf("%+v; want %+v", got, own)
	}
}

func TestMovementsEndWithTheirContext(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	if err := b.Position(0, 1, geo.Position{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := scenariotest.Open(t, b).Movements(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want the context's error", err)
	}
}

func TestMovementsThatTakeTooMuchAreRefused(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	if err := errors.Join(b.Position(0, 1, geo.Position{}), b.Position(0, 2, geo.Position{})); err != nil {
		t.Fatal(err)
	}
	s := scenariotest.Open(t, b)
	all, err := scenario.MovementsWithin(t.Context(), s, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	size := len(all[1]) + len(all[2])
	if _, err := scenario.MovementsWithin(t.Context(), s, size); err != nil {
		t.Errorf("%v; want no error within the limit", err)
	}
	if _, err := scenario.MovementsWithin(t.Context(), s, size-1); !errors.Is(err, scenario.ErrTooManyPositions) {
		t.Errorf("%v; want %v", err, scenario.ErrTooManyPositions)
	}
}

func TestAnAzimuthIsFrom0To360(t *testing.T) {
	for given, want := range map[float64]float64{-90: 270, 450: 90, 360: 0, 0: 0, 359.5: 359.5} {
		file, _ := compiled(t, scenario.Options{}, func(b *scenario.Builder) {
			must(t, errors.Join(b.Position(0, 1, geo.Position{}), b.Velocity(0, 1, geo.Velocity{Azimuth: given, Speed: 5})))
		})
		if v := velocityAt(t, open(t, file), 0); v.Azimuth != want {
			t.Errorf("azimuth %g is %g; want %g", given, v.Azimuth, want)
		}
	}
}
