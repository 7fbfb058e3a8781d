package mapdata

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const movingPair = `apiVersion: vignette.dev/v1alpha1
kind: Scenario
metadata: {name: pair, namespace: team-nor}
spec:
  format: csv
  source: {configMap: files, key: pair.csv}
  propagation: {model: FreeSpace, frequency: 300MHz}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: files, namespace: team-nor}
data:
  pair.csv: |
    time,platform,latitude,longitude,altitude
    0,1,58.10,7.90,0
    0,2,58.10,7.91,0
    0,3,58.10,7.92,0
    100,2,59.10,7.91,0
`

func TestAPreviewHasTracksLinksHopsAndThePathlossOfAPair(t *testing.T) {
	made, err := New().Preview(t.Context(), []byte(movingPair), PreviewQuery{LimitDB: 80, From: 1, To: 2})
	if err != nil {
		t.Fatal(err)
	}
	if made.DurationSeconds != 100 || len(made.Platforms) != 3 || !made.Pathloss {
		t.Fatalf("%v s, %d platforms, pathloss %t", made.DurationSeconds, len(made.Platforms), made.Pathloss)
	}
	if got := made.Platforms[1].Track; len(got) != 2 || got[1] != (Point{100, 59.1, 7.91, 3}) {
		t.Errorf("track %v; want a straight way to the north", got)
	}
	if got := made.Platforms[0].Track; len(got) != 1 {
		t.Errorf("track %v; want one point of a platform that stands", got)
	}
	var pairs [][2]int
	for _, link := range made.Links {
		pairs = append(pairs, [2]int{link.From, link.To})
	}
	if diff := cmp.Diff([][2]int{{1, 2}, {2, 1}, {2, 3}, {3, 2}}, pairs); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if first, last := made.Hops[0], made.Hops[len(made.Hops)-1]; !cmp.Equal(first, HopsAt{0, []int{0, 4, 2}, 1.333, 1}) || !cmp.Equal(last, HopsAt{100, []int{6}, 0, 3}) {
		t.Errorf("hops %v, then %v", first, last)
	}
	if first, last := *made.Between[0].Pathloss, *made.Between[len(made.Between)-1].Pathloss; first < 75 || first > 80 || last < first+40 {
		t.Errorf("pathloss from %v to %v dB", first, last)
	}
}

func TestABadScenarioIsRefusedInTheWordsOfItsCompilation(t *testing.T) {
	for name, c := range map[string]struct {
		change [2]string
		want   string
		status int
	}{
		"a bad number":    {[2]string{"58.10,7.91,0", "58.10,here,0"}, "files/pair.csv:3: ", http.StatusUnprocessableEntity},
		"another key":     {[2]string{"key: pair.csv", "key: pear.csv"}, "files/pear.csv: the ConfigMap has no such key", http.StatusUnprocessableEntity},
		"an unknown word": {[2]string{"format: csv", "format: cvs"}, "spec.format", http.StatusUnprocessableEntity},
		"no Scenario":     {[2]string{"kind: Scenario", "kind: Waveform"}, "is not inspected: want a file with a Scenario", http.StatusUnprocessableEntity},
		"no YAML":         {[2]string{movingPair, "{"}, "scenario.yaml", http.StatusUnprocessableEntity},
		"nothing":         {[2]string{movingPair, ""}, "no Scenario", http.StatusUnprocessableEntity},
		"a long movement": {[2]string{"format: csv\n  source: {configMap: files, key: pair.csv}", "format: synthetic\n  synthetic: {pattern: RandomWaypoint, platforms: 200, duration: 2h, seed: 1}"},
			"spec.synthetic: 200 platforms for 2h have a pathloss of 143299900 pairs and seconds", http.StatusUnprocessableEntity},
		"a compiled one": {[2]string{"source: {configMap: files, key: pair.csv}\n  propagation: {model: FreeSpace, frequency: 300MHz}", "compiled: sha256:" + strings.Repeat("0", 64)}, "is compiled already", http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New().Preview(t.Context(), []byte(strings.Replace(movingPair, c.change[0], c.change[1], 1)), PreviewQuery{})
			if known, ok := errors.AsType[*Error](err); !ok || known.Status != c.status || !strings.Contains(known.Message, c.want) {
				t.Errorf("%v; want %d with %q", err, c.status, c.want)
			}
		})
	}
}

func TestAPreviewDoesNotUnpackMoreThanItsMemory(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(make([]byte, maxSourceBytes/2+1))
	_ = z.Close()
	scenario, _, _ := strings.Cut(movingPair, "---\n")
	text := strings.Replace(scenario, "source: {configMap: files, key: pair.csv}", "sources: [{configMap: files, key: a.gz}, {configMap: files, key: a.gz}]", 1) +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: files, namespace: team-nor}\nbinaryData: {a.gz: " + base64.StdEncoding.EncodeToString(packed.Bytes()) + "}\n"
	if _, err := New().Preview(t.Context(), []byte(text), PreviewQuery{}); err == nil || !strings.Contains(err.Error(), "more than 64 MiB when unpacked: vignette scenario inspect reads larger ones") {
		t.Errorf("%v", err)
	}
}

func TestAPairThatTheScenarioLacksIsNamed(t *testing.T) {
	_, err := New().Preview(t.Context(), []byte(movingPair), PreviewQuery{From: 1, To: 7})
	if err == nil || err.Error() != "from 1 and to 7: want two platforms of the scenario, which has 1-3" {
		t.Errorf("%v", err)
	}
}

// company is one whose movement takes seconds.
const company = `apiVersion: vignette.dev/v1alpha1
kind: Scenario
metadata: {name: company}
spec:
  format: synthetic
  synthetic: {pattern: AnglovaLike, platforms: 24, duration: 2h, seed: 1}
  propagation: {model: Diffraction, frequency: 300MHz, syntheticTerrain: 1}
`

func TestAPreviewEndsWithItsTimeAndWithTheBrowser(t *testing.T) {
	m := New()
	m.PreviewTime = 50 * time.Millisecond
	if _, err := m.Preview(t.Context(), []byte(company), PreviewQuery{}); err == nil || !strings.Contains(err.Error(), "takes more than 50ms to compile") {
		t.Errorf("%v; want that it takes too long", err)
	}
	gone, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := New().Preview(gone, []byte(company), PreviewQuery{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want the browser's end", err)
	}
}

func TestOnlySoManyPreviewsRunAtATime(t *testing.T) {
	m := New()
	for range maxWorking {
		if _, err := m.work(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Preview(gone, []byte(movingPair), PreviewQuery{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want to wait", err)
	}
}

func TestAPreviewOfAnotherMomentReadsItsScenarioNoMore(t *testing.T) {
	m := New()
	ask := func(text string, at time.Duration) *ScenarioPreview {
		made, err := m.Preview(t.Context(), []byte(text), PreviewQuery{LimitDB: 80, At: at})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first, later := ask(movingPair, 0), ask(movingPair, 50*time.Second)
	if kept := len(m.previews.kept); kept != 1 || len(first.Links) != 4 || len(later.Links) != 0 {
		t.Errorf("%d scenarios are kept, with %d links, then %d; want one with 4 and 0", kept, len(first.Links), len(later.Links))
	}
	moved := ask(strings.Replace(movingPair, "0,2,58.10,7.91,0", "0,2,58.10,7.90,0", 1), 0)
	if kept := len(m.previews.kept); kept != 2 || len(moved.Links) != 2 {
		t.Errorf("%d scenarios are kept, the other one with %d links; want two, with 2 links", kept, len(moved.Links))
	}
}

// dragged is the company's movement as waypoints, of which one is elsewhere each time.
func dragged(b *testing.B, made *ScenarioPreview, turn int) []byte {
	b.Helper()
	var text strings.Builder
	text.WriteString(strings.Replace(movingPair[:strings.Index(movingPair, "    0,1,")], "model: FreeSpace, frequency: 300MHz", "model: Diffraction, frequency: 300MHz, syntheticTerrain: 1", 1))
	for _, platform := range made.Platforms {
		for i, p := range platform.Track {
			if i == 1 && platform.Number == 1 {
				p[1] += 1e-5 * float64(turn)
			}
			fmt.Fprintf(&text, "    %v,%d,%v,%v,%v\n", p[0], platform.Number, p[1], p[2], p[3])
		}
	}
	return []byte(text.String())
}

// BenchmarkPreviewOfACompany is 24 platforms over two hours of hills: read for the first time, at another moment, and with a waypoint
// that is dragged.
func BenchmarkPreviewOfACompany(b *testing.B) {
	m := New()
	m.PreviewTime = 10 * time.Minute
	preview := func(b *testing.B, m *Maps, text []byte, at time.Duration) *ScenarioPreview {
		made, err := m.Preview(b.Context(), text, PreviewQuery{At: at, From: 1, To: 2})
		if err != nil {
			b.Fatal(err)
		}
		return made
	}
	preview(b, m, []byte(movingPair), 0) // the rules of objects are read once
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			preview(b, New(), []byte(company), 0)
		}
	})
	b.Run("another moment", func(b *testing.B) {
		preview(b, m, []byte(company), 0)
		at := time.Duration(0)
		for b.Loop() {
			at += time.Second
			preview(b, m, []byte(company), at)
		}
	})
	b.Run("dragged", func(b *testing.B) {
		made := preview(b, m, []byte(company), 0)
		for turn := 0; b.Loop(); turn++ {
			preview(b, m, dragged(b, made, turn), 0)
		}
	})
}
