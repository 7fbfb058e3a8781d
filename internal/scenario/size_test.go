package scenario_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/testtool"
)

// fillLikeABattalion changes positions and the pathloss of all pairs every second, the latter by fading of
// half a decibel.
func fillLikeABattalion(t testing.TB, b *scenario.Builder, platforms int, duration time.Duration) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	losses := make([]float64, platforms*platforms)
	for i := range losses {
		losses[i] = 80 + 60*random.Float64()
	}
	for at := time.Duration(0); at <= duration; at += time.Second {
		for i := range platforms {
			place := geo.Position{Latitude: 58.17 + float64(i)*1e-4 + at.Seconds()*1e-5, Longitude: 7.95 + 1e-3*math.Sin(at.Seconds()/60), Altitude: 12}
			must(t, b.Position(at, 100+i, place))
			for j := range i {
				losses[i*platforms+j] += random.NormFloat64() / 2
				dB := losses[i*platforms+j]
				if err := errors.Join(b.Pathloss(at, 100+i, 100+j, dB), b.Pathloss(at, 100+j, 100+i, dB)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A battalion for two hours (VIGNETTE_SCENARIO_DURATION=2h go test -v) takes no more memory than for two minutes: memory holds
// one chunk and one state.
func TestABattalionStaysBelow200MBInMemory(t *testing.T) {
	const platforms, limit = 243, 200 << 20
	duration := 2 * time.Minute
	if d, err := time.ParseDuration(os.Getenv("VIGNETTE_SCENARIO_DURATION")); err == nil {
		duration = d
	}
	path := filepath.Join(t.TempDir(), "battalion.scenario")
	file, err := os.Create(path)
	must(t, err)
	defer file.Close()
	before := testtool.Heap()
	began := time.Now()
	b := scenario.NewBuilder(scenario.Options{Sorted: true})
	fillLikeABattalion(t, b, platforms, duration)
	compiling := testtool.Heap() - before
	_, err = b.Write(file)
	must(t, err)
	t.Logf("compiled %s of %d platforms in %s, with %.1f MB in memory", duration, platforms, time.Since(began), float64(compiling)/1e6)
	if compiling > limit {
		t.Errorf("compiling takes %d bytes: want less than %d", compiling, limit)
	}
	runtime.KeepAlive(b)
	b = nil
	walkBattalion(t, file, limit)
}

func walkBattalion(t *testing.T, file *os.File, limit int64) {
	info, err := file.Stat()
	must(t, err)
	before := testtool.Heap()
	s, err := scenario.Open(file, info.Size())
	must(t, err)
	statistics := s.Statistics()
	c := s.NewCursor()
	most, began, moments := int64(0), time.Now(), 0
	for at, more := c.Next(); more; at, more = c.Next() {
		must(t, c.Seek(at))
		if moments++; moments%60 == 0 {
			most = max(most, testtool.Heap()-before)
		}
	}
	t.Logf("%d moments in %d chunks, %.1f MB; walked at %s each; %.1f MB in memory", statistics.Moments, statistics.Chunks,
		float64(statistics.Bytes)/1e6, time.Since(began)/time.Duration(moments), float64(most)/1e6)
	if most > limit {
		t.Errorf("a cursor takes %d bytes: want less than %d", most, limit)
	}
	random := rand.New(rand.NewPCG(1, 1))
	began = time.Now()
	const seeks = 50
	for range seeks {
		must(t, c.Seek(time.Duration(random.Int64N(int64(s.Duration())))))
	}
	t.Logf("a random seek takes %s", time.Since(began)/seeks)
	began = time.Now()
	connectivity := c.Connectivity(scenario.DefaultPathlossLimitDB)
	t.Logf("connectivity takes %s: %d links, hops %v", time.Since(began), connectivity.Links, connectivity.Hops)
	runtime.KeepAlive(c)
}

// BenchmarkCompileTwoHours measures the compilation of a scenario of two hours, with
// and without the promise of sorted events.
func BenchmarkCompileTwoHours(b *testing.B) {
	for name, c := range map[string]struct {
		platforms int
		options   scenario.Options
	}{
		"company":           {24, scenario.Options{}},
		"company, sorted":   {24, scenario.Options{Sorted: true}},
		"battalion":         {243, scenario.Options{}},
		"battalion, sorted": {243, scenario.Options{Sorted: true}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				builder := scenario.NewBuilder(c.options)
				fillLikeABattalion(b, builder, c.platforms, 2*time.Hour)
				var written discard
				_, err := builder.Write(&written)
				must(b, err)
				b.ReportMetric(float64(written.n)/1e6, "MB")
			}
		})
	}
}

// discard counts written bytes.
type discard struct{ n int }

func (d *discard) Write(p []byte) (int, error) {
	d.n += len(p)
	return len(p), nil
}
