package synthetic

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/orderofbattle"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// compiled returns the compiled scenario of a movement.
func compiled(t *testing.T, parameters v1alpha1.SyntheticMovement) (*scenario.Scenario, string) {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{Sorted: true})
	if err := Generate(t.Context(), parameters, b); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	digest, err := b.Write(&file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return s, digest
}

func positions(t *testing.T, s *scenario.Scenario, at time.Duration) (p []geo.Position) {
	t.Helper()
	c := s.NewCursor()
	if err := c.Seek(at); err != nil {
		t.Fatal(err)
	}
	for i := range s.Platforms() {
		now, known := c.Position(i)
		if !known {
			t.Fatalf("platform %d is nowhere at %v", i+1, at)
		}
		p = append(p, now)
	}
	return p
}

func TestALineHasItsSpacing(t *testing.T) {
	s, _ := compiled(t, v1alpha1.SyntheticMovement{Pattern: "Line", Platforms: 5, Duration: "1m", Spacing: "250m"})
	p := positions(t, s, 30*time.Second)
	for i := range 4 {
		if d := geo.Distance(p[i], p[i+1]); math.Abs(d-250) > 0.1 {
			t.Errorf("from %d to %d: %v m", i+1, i+2, d)
		}
	}
	if s.Duration() != time.Minute {
		t.Errorf("duration %v", s.Duration())
	}
}

func TestAGridIsSquareAndHasItsSpacing(t *testing.T) {
	s, _ := compiled(t, v1alpha1.SyntheticMovement{Pattern: "Grid", Platforms: 9, Duration: "1m"})
	p := positions(t, s, 0)
	for _, pair := range [][2]int{{0, 1}, {1, 2}, {0, 3}, {5, 8}} {
		if d := geo.Distance(p[pair[0]], p[pair[1]]); math.Abs(d-500) > 0.1 {
			t.Errorf("%v: %v m", pair, d)
		}
	}
}

func TestRandomWaypointStaysInItsSquareAtItsSpeeds(t *testing.T) {
	s, _ := compiled(t, v1alpha1.SyntheticMovement{Pattern: "RandomWaypoint", Platforms: 6, Duration: "10m", Seed: 3, Spacing: "400m"})
	frame, moved := geo.NewFrame(Origin), 0
	before := positions(t, s, 0)
	for second := 1; second <= 600; second++ {
		now := positions(t, s, time.Duration(second)*time.Second)
		for i := range now {
			if at := frame.ENU(now[i]); math.Abs(at.X) > 400.1 || math.Abs(at.Y) > 400.1 {
				t.Fatalf("platform %d is at %v", i+1, at)
			}
			metres := geo.Distance(before[i], now[i])
			if metres > fastest+0.1 {
				t.Fatalf("platform %d: %v m in a second", i+1, metres)
			}
			if metres > 0 {
				moved++
			}
		}
		before = now
	}
	if moved < 1800 || moved > 3599 {
		t.Errorf("%d of 3600 steps: platforms must move, and pause", moved)
	}
}

func TestACompanyDrivesHaltsAndStaysTogether(t *testing.T) {
	s, _ := compiled(t, v1alpha1.SyntheticMovement{Pattern: AnglovaLike, Duration: "15m", Seed: 5})
	before, moved, still := positions(t, s, 0), 0, 0
	for second := 1; second <= 900; second++ {
		now := positions(t, s, time.Duration(second)*time.Second)
		for i := range now {
			metres := geo.Distance(before[i], now[i])
			if metres > topSpeed+0.1 {
				t.Fatalf("platform %d: %v m in second %d", i+1, metres, second)
			}
			if metres > 1 {
				moved++
			} else if metres < 0.01 {
				still++
			}
			if d := geo.Distance(now[i], Origin); d > 6000 {
				t.Fatalf("platform %d is %v m from the area", i+1, d)
			}
		}
		before = now
	}
	if moved < 2000 || still < 2000 {
		t.Errorf("of 21600 steps %d drive and %d halt", moved, still)
	}
}

func TestASeedIsAMovement(t *testing.T) {
	parameters := v1alpha1.SyntheticMovement{Pattern: AnglovaLike, Platforms: 12, Duration: "2m", Seed: 7}
	_, first := compiled(t, parameters)
	_, again := compiled(t, parameters)
	parameters.Seed = 8
	_, other := compiled(t, parameters)
	if first != again || first == other {
		t.Errorf("%s, again %s, other seed %s", first, again, other)
	}
}

func TestWhatIsNoMovementIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		parameters v1alpha1.SyntheticMovement
		want       string
	}{
		"pattern":   {v1alpha1.SyntheticMovement{Pattern: "Circle"}, `pattern is "Circle"`},
		"platforms": {v1alpha1.SyntheticMovement{Pattern: "Line", Platforms: 1}, "platforms is 1"},
		"duration":  {v1alpha1.SyntheticMovement{Pattern: "Line", Duration: "0s"}, "duration is 0s"},
		"a year of many": {v1alpha1.SyntheticMovement{Pattern: "RandomWaypoint", Platforms: 1000, Duration: "8760h"},
			"1000 platforms for 8760h have 31536001000 positions: want at most 90000000, which is 25h for so many platforms"},
		"a year of a company": {v1alpha1.SyntheticMovement{Pattern: AnglovaLike, Platforms: 24, Duration: "8760h"}, "want at most 90000000"},
		"a regiment":          {v1alpha1.SyntheticMovement{Pattern: AnglovaLikeBattalion, Platforms: 244}, "platforms is 244: want 25 to 243 of AnglovaLikeBattalion, such as 243 for all"},
		"a company alone":     {v1alpha1.SyntheticMovement{Pattern: AnglovaLikeBattalion}, "platforms is 24: want 25 to 243 of AnglovaLikeBattalion, such as 243 for all; 24 are AnglovaLike"},
		"spacing":             {v1alpha1.SyntheticMovement{Pattern: "Line", Spacing: "0m"}, "spacing is 0 m"},
	} {
		err := Generate(t.Context(), c.parameters, scenario.NewBuilder(scenario.Options{Sorted: true}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestWhatStandsStillMayStandForAYear(t *testing.T) {
	s, _ := compiled(t, v1alpha1.SyntheticMovement{Pattern: "Grid", Platforms: 1000, Duration: "8760h"})
	if s.Duration() != 8760*time.Hour || len(s.Platforms()) != 1000 {
		t.Errorf("%d platforms for %s", len(s.Platforms()), s.Duration())
	}
}

func TestTheBattalionsFirstCompanyIsTheCompany(t *testing.T) {
	company, _ := compiled(t, v1alpha1.SyntheticMovement{Pattern: AnglovaLike, Duration: "3m", Seed: 5})
	battalion, _ := compiled(t, v1alpha1.SyntheticMovement{Pattern: AnglovaLikeBattalion, Platforms: BattalionPlatforms, Duration: "3m", Seed: 5})
	for _, at := range []time.Duration{0, time.Minute, 3 * time.Minute} {
		alone, all := positions(t, company, at), positions(t, battalion, at)
		if len(all) != BattalionPlatforms {
			t.Fatalf("%d platforms", len(all))
		}
		for i, want := range alone {
			if all[i] != want {
				t.Errorf("at %v platform %d is at %v; alone it is at %v", at, i+1, all[i], want)
			}
		}
	}
}

func TestWhoFollowsAVehicleStaysNearIt(t *testing.T) {
	s, _ := compiled(t, v1alpha1.SyntheticMovement{Pattern: AnglovaLikeBattalion, Platforms: BattalionPlatforms, Duration: "6m", Seed: 5})
	walks := 0
	before := positions(t, s, 0)
	for second := 1; second <= 360; second++ {
		now := positions(t, s, time.Duration(second)*time.Second)
		for soldier := 172; soldier <= 243; soldier++ {
			vehicle := 61 + (soldier-172)/3 // of company 3, then of company 4
			if soldier >= 208 {
				vehicle = 85 + (soldier-208)/3
			}
			if d := geo.Distance(now[soldier-1], now[vehicle-1]); d > 2*footReach {
				t.Fatalf("second %d: soldier %d is %v m from vehicle %d", second, soldier, d, vehicle)
			}
			if d := geo.Distance(now[soldier-1], before[soldier-1]); d > fetchSpeed+0.1 {
				t.Fatalf("second %d: soldier %d moved %v m", second, soldier, d)
			} else if d > 1 && d < 2 {
				walks++
			}
		}
		before = now
	}
	if walks == 0 {
		t.Error("no soldier walks")
	}
}

func TestDronesFlyAndNobodyElse(t *testing.T) {
	s, _ := compiled(t, v1alpha1.SyntheticMovement{Pattern: AnglovaLikeBattalion, Platforms: BattalionPlatforms, Duration: "1m", Seed: 5})
	for i, at := range positions(t, s, time.Minute) {
		if flies := i+1 >= 160 && i+1 <= 163; flies != (at.Altitude > 100) {
			t.Errorf("platform %d is %v m above the sea", i+1, at.Altitude)
		}
	}
}

func TestTheOrderOfBattleHasEveryPlatformAndAGatewayForEachNetwork(t *testing.T) {
	order, err := orderofbattle.Read(OrderOfBattle())
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	order.Walk(func(unit *orderofbattle.Unit, _ int) { all = append(append(all, unit.Commander), unit.Platforms...) })
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != BattalionPlatforms || all[0] != 1 || all[len(all)-1] != BattalionPlatforms {
		t.Errorf("it has %d platforms", len(all))
	}
	want := map[string]int{"bn": 8, "co-1": 24, "co-2": 24, "co-3": 24, "co-4": 24, "co-5": 22, "co-6": 47, "uav": 6, "foot-3": 37, "foot-4": 37}
	gateways := map[string]bool{}
	for _, network := range order.Networks {
		if len(network.Members) != want[network.Name] {
			t.Errorf("%s has %d members; want %d", network.Name, len(network.Members), want[network.Name])
		}
		for _, platform := range network.Members {
			gateways[network.Name] = gateways[network.Name] || len(order.NetworksOf(platform)) > 1
		}
		if !gateways[network.Name] {
			t.Errorf("%s has no gateway", network.Name)
		}
	}
	if len(order.Networks) != len(want) {
		t.Errorf("%d networks; want %d", len(order.Networks), len(want))
	}
}
