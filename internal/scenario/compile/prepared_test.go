package compile

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func prepared(t *testing.T, spec v1alpha1.ScenarioSpec, f files) *Prepared {
	t.Helper()
	p, err := Prepare(t.Context(), spec, f.open, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// differ reports whether two scenarios differ at a moment in a pathloss by more than its resolution.
func differ(t *testing.T, a, b *scenario.Scenario, at time.Duration, i, j int) bool {
	t.Helper()
	one, known := loss(t, a, at, i, j)
	other, also := loss(t, b, at, i, j)
	return known != also || math.Abs(one-other) > ResolutionDB+0.01 // which also is the file's resolution
}

func TestThePathlossOfSomeMomentsIsThatOfTheWholeScenario(t *testing.T) {
	seed := int64(3)
	for _, propagation := range []*v1alpha1.Propagation{
		{Model: v1alpha1.PropagationDiffraction, Frequency: "300MHz", SyntheticTerrain: &seed},
		{Model: v1alpha1.PropagationLogDistance, Frequency: "300MHz", Shadowing: "6dB"},
	} {
		spec := v1alpha1.ScenarioSpec{Format: v1alpha1.ScenarioSynthetic, Propagation: propagation,
			Synthetic: &v1alpha1.SyntheticMovement{Pattern: "RandomWaypoint", Platforms: 5, Duration: "3m", Seed: 2, Spacing: "4km"}}
		whole, result := compiled(t, spec, nil)
		p := prepared(t, spec, nil)
		wanted := Moments{All: []time.Duration{0, 61500 * time.Millisecond, 2 * time.Minute}, Pair: [2]int{4, 2}, OfPair: []time.Duration{30 * time.Second, 3 * time.Minute}}
		for range 2 { // what one use has computed does not hold for the next
			some, sampled, err := p.At(t.Context(), wanted, &bytes.Buffer{})
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range wanted.All {
				for i := range 5 {
					for j := range 5 {
						if i != j && differ(t, whole, some, at, i, j) {
							t.Errorf("%s: the pathloss from %d to %d at %s is another one", propagation.Model, i, j, at)
						}
					}
				}
			}
			for _, at := range wanted.OfPair {
				if differ(t, whole, some, at, 3, 1) || differ(t, whole, some, at, 1, 3) {
					t.Errorf("%s: the pathloss of the pair at %s is another one", propagation.Model, at)
				}
			}
			if !differ(t, whole, some, 30*time.Second, 0, 2) {
				t.Errorf("%s: the pathloss of a pair was computed though nobody asked", propagation.Model)
			}
			if sampled.Statistics.Positions != result.Statistics.Positions || some.Duration() != whole.Duration() || !slices.Equal(sampled.Warnings, result.Warnings) {
				t.Errorf("%s: %+v, %s; want %+v, %s", propagation.Model, sampled, some.Duration(), result, whole.Duration())
			}
		}
	}
}

func TestAPreparedScenarioMayBeUsedSeveralTimesAtOnce(t *testing.T) {
	var text strings.Builder
	for second := range 120 {
		for platform := 1; platform <= 4; platform++ {
			fmt.Fprintf(&text, "%d.0 nem:%d location gps 58.0,%f,10\n", second, platform, 8+0.001*float64(platform*(second+1)))
		}
	}
	text.WriteString("120.0 nem:1 nonsense x\n")
	f := files{"a.eel": text.String()}
	spec := v1alpha1.ScenarioSpec{Format: "eel", Source: from("a.eel"), Propagation: &v1alpha1.Propagation{Model: v1alpha1.PropagationFreeSpace, Frequency: "300MHz"}}
	whole, result := compiled(t, spec, f)
	p := prepared(t, spec, f)
	var some [4]*scenario.Scenario
	var sampled [4]Result
	var errs [4]error
	moment := func(use int) time.Duration { return time.Duration(use) * 20 * time.Second }
	var uses sync.WaitGroup
	for use := range some {
		uses.Go(func() {
			some[use], sampled[use], errs[use] = p.At(t.Context(), Moments{All: []time.Duration{moment(use)}}, &bytes.Buffer{})
		})
	}
	uses.Wait()
	for use := range some {
		if errs[use] != nil {
			t.Fatal(errs[use])
		}
		for i := range 4 {
			for j := range i {
				if differ(t, whole, some[use], moment(use), i, j) {
					t.Errorf("the pathloss from %d to %d at %s is another one", i, j, moment(use))
				}
			}
		}
		if unknown := sampled[use].Statistics.UnknownSentences; !slices.Equal(sampled[use].Warnings, result.Warnings) || len(unknown) != 1 {
			t.Errorf("warnings %q, unknown %q; want %q and one unknown kind", sampled[use].Warnings, unknown, result.Warnings)
		}
	}
}

func TestAPreparedScenarioWithoutPropagationIsTheCompiledOne(t *testing.T) {
	f := files{"a.csv": "time,platform,latitude,longitude\n0,1,58,8\n0,2,58,8.01\n"}
	spec := v1alpha1.ScenarioSpec{Format: "csv", Source: from("a.csv")}
	_, want := compiled(t, spec, f)
	_, got, err := prepared(t, spec, f).At(t.Context(), Moments{All: []time.Duration{0}}, &bytes.Buffer{})
	if err != nil || got.Digest != want.Digest || !slices.Equal(got.Warnings, want.Warnings) {
		t.Errorf("%v: %+v; want %+v", err, got, want)
	}
}

func TestAPreparationRefusesWhatACompilationRefuses(t *testing.T) {
	for what, spec := range map[string]v1alpha1.ScenarioSpec{
		"no such key":   {Format: "csv", Source: from("other.csv")},
		"nothing in it": {Format: "csv", Source: from("a.csv"), Propagation: &v1alpha1.Propagation{Model: v1alpha1.PropagationFreeSpace, Frequency: "300MHz"}},
		"no frequency":  {Format: "csv", Source: from("a.csv"), Propagation: &v1alpha1.Propagation{Model: v1alpha1.PropagationFreeSpace}},
		"compiled":      {Format: "csv", Compiled: "sha256:0"},
	} {
		f := files{"a.csv": "time,platform,latitude,longitude\n"}
		_, want := Compile(t.Context(), spec, f.open, &bytes.Buffer{})
		_, got := Prepare(t.Context(), spec, f.open, &bytes.Buffer{})
		if want == nil || got == nil || got.Error() != want.Error() {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
}
