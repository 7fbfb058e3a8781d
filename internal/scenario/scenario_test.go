package scenario_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
)

// compiled returns the compiled scenario of a function that fills a builder.
func compiled(t testing.TB, options scenario.Options, fill func(b *scenario.Builder)) ([]byte, string) {
	t.Helper()
	b := scenario.NewBuilder(options)
	fill(b)
	var file bytes.Buffer
	digest, err := b.Write(&file)
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), digest
}

func open(t testing.TB, file []byte) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOfTimesBefore0TheLastOneHolds(t *testing.T) {
	for name, options := range map[string]scenario.Options{"in memory": {}, "in a file": scenario.InMemory(1)} {
		file, _ := compiled(t, options, func(b *scenario.Builder) {
			for _, at := range []time.Duration{-5, math.MinInt64, -9} {
				must(t, b.Pathloss(at*time.Nanosecond, 1, 2, 60-float64(max(at, -50))))
			}
		})
		c := open(t, file).NewCursor()
		must(t, c.Seek(0))
		if dB, _ := c.Pathloss(0, 1); dB != 65 {
			t.Errorf("%s: %v dB; want the 65 dB of the last time", name, dB)
		}
	}
}

func TestAScenarioIsAStepFunctionOfTime(t *testing.T) {
	file, _ := compiled(t, scenario.Options{}, func(b *scenario.Builder) {
		must(t, b.Pathloss(10*time.Second, 200, 100, 95.25))
		must(t, b.Pathloss(2*time.Second, 100, 200, 80))
		must(t, b.Position(0, 100, geo.Position{Latitude: 58.2, Longitude: 7.97, Altitude: 12.5}))
		must(t, b.Extend(time.Minute))
	})
	s := open(t, file)
	if got := s.Platforms(); !slices.Equal(got, []int{100, 200}) {
		t.Fatalf("platforms are %v", got)
	}
	if s.Duration() != time.Minute || !s.HasPathloss() || !s.HasPositions() {
		t.Errorf("duration %s, pathloss %t, positions %t", s.Duration(), s.HasPathloss(), s.HasPositions())
	}
	if i, ok := s.Index(200); i != 1 || !ok {
		t.Errorf("index of 200 is %d, %t", i, ok)
	}
	if _, ok := s.Index(150); ok {
		t.Error("150 has an index")
	}
	c := s.NewCursor()
	for _, step := range []struct {
		at            time.Duration
		there, back   float64
		known, known2 bool
		next          time.Duration
		more          bool
	}{
		{-time.Second, 0, 0, false, false, 0, true},
		{0, 0, 0, false, false, 2 * time.Second, true},
		{2*time.Second - 1, 0, 0, false, false, 2 * time.Second, true},
		{2 * time.Second, 80, 0, true, false, 10 * time.Second, true},
		{10 * time.Second, 80, 95.25, true, true, 0, false},
		{time.Hour, 80, 95.25, true, true, 0, false},
		{5 * time.Second, 80, 0, true, false, 10 * time.Second, true},
	} {
		must(t, c.Seek(step.at))
		there, known := c.Pathloss(0, 1)
		back, known2 := c.Pathloss(1, 0)
		if there != step.there || back != step.back || known != step.known || known2 != step.known2 {
			t.Errorf("at %s the pathloss is %v %t there, %v %t back", step.at, there, known, back, known2)
		}
		if next, more := c.Next(); next != step.next || more != step.more {
			t.Errorf("after %s comes %s, %t", step.at, next, more)
		}
	}
	if p, ok := c.Position(0); !ok || p != (geo.Position{Latitude: 58.2, Longitude: 7.97, Altitude: 12.5}) {
		t.Errorf("position is %v, %t", p, ok)
	}
	if _, ok := c.Position(1); ok {
		t.Error("a position that was never given is known")
	}
	if _, ok := c.Pathloss(0, 0); ok {
		t.Error("a platform has a pathloss to itself")
	}
}

func TestAllThatAnEventLogSaysIsKept(t *testing.T) {
	effect := scenario.CommEffect{Latency: 50 * time.Millisecond, Jitter: time.Millisecond, LossPercent: 12.5, DuplicationPercent: 1,
		UnicastBitsPerSecond: 1 << 40, BroadcastBitsPerSecond: 9600}
	file, _ := compiled(t, scenario.Options{}, func(b *scenario.Builder) {
		must(t, b.Velocity(0, 1, geo.Velocity{Azimuth: 90, Elevation: -1, Speed: 13.9}))
		must(t, b.Orientation(0, 1, geo.Orientation{Pitch: 1, Roll: 2, Yaw: 350.5}))
		must(t, b.AntennaProfile(0, 2, scenario.AntennaProfile{ID: 3, Azimuth: 45, Elevation: 10}))
		must(t, b.CommEffect(0, 1, 2, effect))
		must(t, b.FadingSelection(0, 2, 1, scenario.FadingNakagami))
		must(t, b.Pathloss(0, 1, 2, 70))
		must(t, b.PathlossAt(0, 1, 2, 0, 80))
		must(t, b.PathlossAt(0, 2, 1, 0, 75))
		must(t, b.PathlossAt(0, 1, 2, 300e6, 90))
		must(t, b.Pathloss(time.Second, 1, 2, 60))
	})
	c := open(t, file).NewCursor()
	must(t, c.Seek(0))
	if v, ok := c.Velocity(0); !ok || v != (geo.Velocity{Azimuth: 90, Elevation: -1, Speed: 13.9}) {
		t.Errorf("velocity is %v, %t", v, ok)
	}
	if o, ok := c.Orientation(0); !ok || o != (geo.Orientation{Pitch: 1, Roll: 2, Yaw: 350.5}) {
		t.Errorf("orientation is %v, %t", o, ok)
	}
	if a, ok := c.AntennaProfile(1); !ok || a != (scenario.AntennaProfile{ID: 3, Azimuth: 45, Elevation: 10}) {
		t.Errorf("antenna profile is %v, %t", a, ok)
	}
	if e, ok := c.CommEffect(0, 1); !ok || e != effect {
		t.Errorf("comm effect is %v, %t", e, ok)
	}
	if _, ok := c.CommEffect(1, 0); ok {
		t.Error("a comm effect holds the other way, too")
	}
	if f, ok := c.FadingSelection(1, 0); !ok || f != scenario.FadingNakagami {
		t.Errorf("fading is %v, %t", f, ok)
	}
	for frequency, want := range map[uint64]float64{300e6: 90, 400e6: 80} {
		if dB, ok := c.PathlossAt(0, 1, frequency); !ok || dB != want {
			t.Errorf("pathloss at %d Hz is %v, %t: want %v", frequency, dB, ok, want)
		}
	}
	if links := c.Connectivity(80).Links; links != 2 {
		t.Errorf("%d links up to 80 dB: want both directions, whose pathloss at 0 Hz is that of all frequencies", links)
	}
	must(t, c.Seek(time.Second))
	if dB, _ := c.PathlossAt(0, 1, 400e6); dB != 60 {
		t.Errorf("pathloss is %v dB a second later: want the new 60 dB at frequencies without their own", dB)
	}
}

func TestTheLaterOfTwoEventsAtOneTimeHolds(t *testing.T) {
	for _, sorted := range []bool{true, false} {
		file, _ := compiled(t, scenario.Options{Sorted: sorted}, func(b *scenario.Builder) {
			must(t, b.Pathloss(0, 1, 2, 80))
			must(t, b.Pathloss(0, 1, 2, 90))
		})
		c := open(t, file).NewCursor()
		must(t, c.Seek(0))
		if dB, _ := c.Pathloss(0, 1); dB != 90 {
			t.Errorf("sorted %t: pathloss is %v: want 90", sorted, dB)
		}
	}
}

func TestTimesBeforeTheStartAreInitialConditions(t *testing.T) {
	file, _ := compiled(t, scenario.Options{}, func(b *scenario.Builder) { must(t, b.Pathloss(-time.Hour, 1, 2, 80)) })
	c := open(t, file).NewCursor()
	must(t, c.Seek(0))
	if dB, known := c.Pathloss(0, 1); dB != 80 || !known {
		t.Errorf("pathloss is %v, %t", dB, known)
	}
}

func TestHopsAreThoseOfTheShortestWays(t *testing.T) {
	line := []scenario.ConnectivityAt{
		{Connectivity: scenario.NewConnectivity(4, func(i, j int) bool { return i-j == 1 || j-i == 1 })}, // a chain
		{Connectivity: scenario.NewConnectivity(3, func(i, j int) bool { return i+j == 1 })},             // a pair and one alone
	}
	total := scenario.Total(line)
	if total.MeanHops() != (8*1+4*2+2*3)/14.0 || !slices.Equal(total.Hops, []int{4, 8, 4, 2}) || line[0].Hops[0] != 0 {
		t.Errorf("got %+v", total)
	}
}

func TestAnEmptyScenarioIsOne(t *testing.T) {
	file, _ := compiled(t, scenario.Options{}, func(*scenario.Builder) {})
	s := open(t, file)
	c := s.NewCursor()
	must(t, c.Seek(time.Hour))
	if _, more := c.Next(); more || len(s.Platforms()) != 0 || s.HasPathloss() || s.HasPositions() {
		t.Errorf("an empty scenario has something: %+v", s.Statistics())
	}
}

func TestABuilderRefusesWhatMakesNoSense(t *testing.T) {
	nan := 0.0
	nan /= nan
	for name, c := range map[string]struct {
		do   func(b *scenario.Builder) error
		says string
	}{
		"a platform of 0":       {func(b *scenario.Builder) error { return b.Pathloss(0, 0, 1, 80) }, "platform is 0: want 1 to 65534"},
		"a platform of 65535":   {func(b *scenario.Builder) error { return b.Velocity(0, 65535, geo.Velocity{}) }, "65535"},
		"a link to itself":      {func(b *scenario.Builder) error { return b.Pathloss(0, 7, 7, 80) }, "platform 7 is given a link to itself"},
		"no number":             {func(b *scenario.Builder) error { return b.Pathloss(0, 1, 2, nan) }, "NaN"},
		"latitude 91":           {func(b *scenario.Builder) error { return b.Position(0, 1, geo.Position{Latitude: 91}) }, "latitude is 91"},
		"a loss of 101 %":       {func(b *scenario.Builder) error { return b.CommEffect(0, 1, 2, scenario.CommEffect{LossPercent: 101}) }, "101 %"},
		"an unknown fading":     {func(b *scenario.Builder) error { return b.FadingSelection(0, 1, 2, 9) }, "Fading(9)"},
		"a time since 1970":     {func(b *scenario.Builder) error { return b.Pathloss(1763708400*time.Second, 1, 2, 80) }, "seconds since the scenario's start"},
		"an antenna profile -1": {func(b *scenario.Builder) error { return b.AntennaProfile(0, 1, scenario.AntennaProfile{ID: -1}) }, "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := scenario.NewBuilder(scenario.Options{})
			if err := c.do(b); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v: want one that says %q", err, c.says)
			}
		})
	}
}

func TestASortedBuilderRefusesToGoBack(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{Sorted: true})
	must(t, b.Pathloss(2*time.Second, 1, 2, 80))
	if err := b.Pathloss(time.Second, 1, 2, 80); err == nil || !strings.Contains(err.Error(), "promised sorted events") {
		t.Errorf("error is %v", err)
	}
}

func TestThereAreNotTooManyPlatforms(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	for p := range scenario.MaxPlatforms + 1 {
		must(t, b.Position(0, p+1, geo.Position{}))
	}
	if _, err := b.Write(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "want at most 1024") {
		t.Errorf("error is %v", err)
	}
}

// change is an event of the model.
type change struct {
	at       time.Duration
	from, to int
	dB       float64
	place    geo.Position
}

// randomChanges returns changes, many at the same times.
func randomChanges(random *rand.Rand, platforms, moments, n int) []change {
	changes := make([]change, n)
	for i := range changes {
		c := change{at: time.Duration(random.IntN(moments)) * 100 * time.Millisecond, from: 100 + 7*random.IntN(platforms)}
		switch c.to = 100 + 7*random.IntN(platforms); {
		case c.from == c.to:
			c.place = geo.Position{Latitude: float64(random.IntN(1000)) / 100, Longitude: float64(random.IntN(1000)) / 100}
		default:
			c.dB = float64(random.IntN(4000)) / 20
		}
		changes[i] = c
	}
	return changes
}

func put(t testing.TB, b *scenario.Builder, changes []change) {
	for _, c := range changes {
		switch {
		case c.from == c.to:
			must(t, b.Position(c.at, c.from, c.place))
		case c.dB > 100: // symmetric, as most are
			must(t, b.Pathloss(c.at, c.from, c.to, c.dB))
			must(t, b.Pathloss(c.at, c.to, c.from, c.dB))
		default:
			must(t, b.Pathloss(c.at, c.from, c.to, c.dB))
		}
	}
}

// model computes the state at t in a simple way.
func model(changes []change, t time.Duration) (map[[2]int]float64, map[int]geo.Position) {
	losses, places := map[[2]int]float64{}, map[int]geo.Position{}
	for _, c := range changes {
		switch {
		case c.at > t:
			return losses, places
		case c.from == c.to:
			places[c.from] = c.place
		default:
			losses[[2]int{c.from, c.to}] = c.dB
			if c.dB > 100 {
				losses[[2]int{c.to, c.from}] = c.dB
			}
		}
	}
	return losses, places
}

func compare(t *testing.T, s *scenario.Scenario, c *scenario.Cursor, changes []change, at time.Duration) {
	t.Helper()
	losses, places := model(changes, at)
	for i, from := range s.Platforms() {
		for j, to := range s.Platforms() {
			want, wantKnown := losses[[2]int{from, to}]
			if got, known := c.Pathloss(i, j); got != want || known != wantKnown {
				t.Fatalf("at %s pathloss from %d to %d is %v %t: want %v %t", at, from, to, got, known, want, wantKnown)
			}
		}
		want, wantKnown := places[from]
		if got, known := c.Position(i); got != want || known != wantKnown {
			t.Fatalf("at %s position of %d is %v %t: want %v %t", at, from, got, known, want, wantKnown)
		}
	}
}

func TestACursorAgreesWithAPlainModelWhereverItSeeks(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			changes := randomChanges(random, 2+random.IntN(12), 1+random.IntN(900), random.IntN(30_000))
			slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
			file, _ := compiled(t, scenario.Options{Sorted: true}, func(b *scenario.Builder) { put(t, b, changes) })
			s := open(t, file)
			c := s.NewCursor()
			for range 60 {
				at := time.Duration(random.IntN(100_000)-500) * time.Millisecond
				must(t, c.Seek(at))
				compare(t, s, c, changes, at)
			}
		})
	}
}

func TestWalkingByNextMeetsEveryChange(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	changes := randomChanges(random, 24, 400, 400_000)
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	file, _ := compiled(t, scenario.Options{Sorted: true}, func(b *scenario.Builder) { put(t, b, changes) })
	s := open(t, file)
	if chunks := s.Statistics().Chunks; chunks < 2 {
		t.Fatalf("there is %d chunk: the test needs more", chunks)
	}
	c, moments := s.NewCursor(), int64(0)
	for at, more := c.Next(); more; at, more = c.Next() {
		must(t, c.Seek(at))
		moments++
		if moments%40 == 0 {
			compare(t, s, c, changes, at)
		}
	}
	if moments != s.Statistics().Moments || moments != 400 {
		t.Errorf("met %d of %d moments", moments, s.Statistics().Moments)
	}
}

func TestTheBytesDependOnTheEventsAndNotOnTheirOrderOrTheMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	// One value per pair and moment: of two at the same time the later counts.
	var changes []change
	for moment := range 200 {
		for from := range 12 {
			for to := range from {
				changes = append(changes, change{at: time.Duration(moment) * time.Second, from: 1 + from, to: 1 + to, dB: float64(random.IntN(20_000)) / 100})
			}
		}
	}
	sorted, digest := compiled(t, scenario.Options{Sorted: true}, func(b *scenario.Builder) { put(t, b, changes) })
	if !strings.HasPrefix(digest, "sha256:") || len(digest) != 71 {
		t.Errorf("digest is %q", digest)
	}
	random.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	for name, options := range map[string]scenario.Options{"in memory": {}, "in files": scenario.InMemory(1000)} {
		t.Run(name, func(t *testing.T) {
			shuffled, other := compiled(t, options, func(b *scenario.Builder) { put(t, b, changes) })
			if other != digest || !bytes.Equal(shuffled, sorted) {
				t.Errorf("digest is %s: want %s", other, digest)
			}
		})
	}
}

func TestOfEventsAtOneTimeTheLaterHoldsThoughTheyWereInFiles(t *testing.T) {
	file, _ := compiled(t, scenario.InMemory(3), func(b *scenario.Builder) {
		for i := range 100 {
			must(t, b.Pathloss(time.Second, 1, 2, float64(i)))
		}
	})
	c := open(t, file).NewCursor()
	must(t, c.Seek(time.Second))
	if dB, _ := c.Pathloss(0, 1); dB != 99 {
		t.Errorf("pathloss is %v: want 99", dB)
	}
}

func TestADamagedFileIsRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	changes := randomChanges(random, 6, 50, 3000)
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	file, _ := compiled(t, scenario.Options{Sorted: true}, func(b *scenario.Builder) { put(t, b, changes) })
	read := func(file []byte) error {
		s, err := scenario.Open(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return err
		}
		c := s.NewCursor()
		for at, more := c.Next(); more; at, more = c.Next() {
			if err := c.Seek(at); err != nil {
				return err
			}
		}
		return nil
	}
	must(t, read(file))
	t.Run("wherever one byte is another", func(t *testing.T) {
		for i := range file {
			damaged := slices.Clone(file)
			damaged[i] ^= 0x41
			var corrupt *scenario.CorruptError
			if err := read(damaged); !errors.As(err, &corrupt) {
				t.Fatalf("with byte %d of %d changed the error is %v", i, len(file), err)
			}
		}
	})
	t.Run("wherever it is cut short", func(t *testing.T) {
		for n := range file {
			var corrupt *scenario.CorruptError
			if err := read(file[:n]); !errors.As(err, &corrupt) {
				t.Fatalf("cut to %d of %d bytes the error is %v", n, len(file), err)
			}
		}
	})
	t.Run("of a later version", func(t *testing.T) {
		later := slices.Clone(file)
		later[8] = 3
		if err := read(later); err == nil || !strings.Contains(err.Error(), "version is 3: this program knows versions 1 and 2") {
			t.Errorf("error is %v", err)
		}
	})
}
