package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/picture"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

// chain returns a scenario of four platforms that drive apart.
func chain(t *testing.T, positions, pathloss bool) *scenario.Scenario {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	frame := geo.NewFrame(geo.Position{Latitude: 58.2, Longitude: 7.97})
	for second := range 121 {
		at := time.Duration(second) * time.Second
		for i := range 4 {
			if positions {
				if err := b.Position(at, 100+i, frame.Position(geo.Vector{X: float64(i * (100 + second)), Y: float64(second)})); err != nil {
					t.Fatal(err)
				}
			}
			for j := range 4 {
				if pathloss && i != j {
					if err := b.Pathloss(at, 100+i, 100+j, 100+float64((i-j)*(i-j))*float64(second)/8); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	return scenariotest.Open(t, b)
}

func draw(t *testing.T, s *scenario.Scenario, options picture.Options) []byte {
	t.Helper()
	var svg bytes.Buffer
	if err := picture.Write(t.Context(), &svg, s, options); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(svg.Bytes()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return svg.Bytes()
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

func TestThePictureIsAsAccepted(t *testing.T) {
	svg := draw(t, chain(t, true, true), picture.Options{At: time.Minute, LimitDB: 121, Points: 12})
	golden.Check(t, "chain.svg", string(svg))
}

func TestAPictureShowsWhatTheScenarioHas(t *testing.T) {
	for name, c := range map[string]struct {
		positions, pathloss bool
		circles, curves     int
	}{
		"positions and pathloss": {true, true, 4, 4 + 3},
		"positions":              {true, false, 4, 4},
		"pathloss":               {false, true, 0, 3},
		"nothing":                {false, false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			svg := string(draw(t, chain(t, c.positions, c.pathloss), picture.Options{At: time.Hour, LimitDB: 121}))
			if circles := strings.Count(svg, "<circle"); circles != c.circles {
				t.Errorf("%d platforms are drawn: want %d", circles, c.circles)
			}
			if curves := strings.Count(svg, "<polyline"); curves != c.curves {
				t.Errorf("%d tracks and curves are drawn: want %d", curves, c.curves)
			}
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Error("a coordinate is no number")
			}
		})
	}
}

func TestEveryPlatformIsOnTheMapAtAnyMoment(t *testing.T) {
	s := chain(t, true, false)
	for _, at := range []time.Duration{0, 119 * time.Second, s.Duration()} {
		svg := string(draw(t, s, picture.Options{At: at, Points: 7}))
		places := regexp.MustCompile(`<circle cx="([-.0-9]+)" cy="([-.0-9]+)"`).FindAllStringSubmatch(svg, -1)
		if len(places) != 4 {
			t.Fatalf("at %s %d platforms are drawn: want 4", at, len(places))
		}
		for _, place := range places {
			for _, text := range place[1:] {
				if pixel, err := strconv.ParseFloat(text, 64); err != nil || pixel < 59.9 || pixel > 680.1 {
					t.Errorf("at %s a platform is at pixel %s: want 60 to 680, the map", at, text)
				}
			}
		}
	}
}

func TestAPlatformThatStandsStillHasAPicture(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	if err := b.Position(0, 1, geo.Position{Latitude: 1, Longitude: 2}); err != nil {
		t.Fatal(err)
	}
	s := scenariotest.Open(t, b)
	if svg := string(draw(t, s, picture.Options{})); strings.Contains(svg, "NaN") || !strings.Contains(svg, "<circle") {
		t.Errorf("the picture is\n%s", svg)
	}
}
