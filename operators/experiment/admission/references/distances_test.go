package references

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"testing"
	"time"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/operators/experiment/scenarios"
)

// store has one compiled scenario.
type store struct {
	text      []byte
	downloads int
	// asked gets each request; held ones wait until release is closed. nil holds none.
	asked, release chan struct{}
}

func (s *store) Scenario(context.Context, string) (io.ReadCloser, error) {
	s.downloads++
	if s.release != nil {
		s.asked <- struct{}{}
		<-s.release
	}
	if s.text == nil {
		return nil, errors.New("connection refused")
	}
	return io.NopCloser(bytes.NewReader(s.text)), nil
}

// apart is a scenario with two platforms and its digest.
func apart(t *testing.T) (digest string, text []byte) {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	for platform := range 2 {
		if err := b.Position(0, platform+1, geo.Position{Latitude: 58, Longitude: 8 + float64(platform)}); err != nil {
			t.Fatal(err)
		}
	}
	var to bytes.Buffer
	digest, err := b.Write(&to)
	if err != nil {
		t.Fatal(err)
	}
	return digest, to.Bytes()
}

// vhf is a network of both platforms for a run until a time.
func vhf(until time.Duration) []render.Roaming {
	return []render.Roaming{{Network: "vhf", Nodes: []string{"a", "b"}, Platforms: []int{1, 2}, Until: until}}
}

func TestRunsOverOneScenarioShareItsDistances(t *testing.T) {
	digest, text := apart(t)
	s, d := &store{text: text}, &distances{}
	first, err := d.of(t.Context(), s, digest, vhf(time.Minute))
	if err != nil || first["vhf"].Metres < 50_000 {
		t.Fatalf("%+v, %v; want more than 50 km", first, err)
	}
	second, err := d.of(t.Context(), s, digest, vhf(time.Minute))
	if err != nil || s.downloads != 1 || !maps.Equal(first, second) {
		t.Errorf("%+v, %v after %d downloads; want %+v after one", second, err, s.downloads, first)
	}
	if _, err := d.of(t.Context(), s, digest, vhf(time.Hour)); err != nil || s.downloads != 2 {
		t.Errorf("%v after %d downloads for a longer run; want a second one", err, s.downloads)
	}
}

func TestAServerThatIsAwayIsAskedAgain(t *testing.T) {
	digest, text := apart(t)
	s, d := &store{}, &distances{}
	var unavailable *scenarios.UnavailableError
	if _, err := d.of(t.Context(), s, digest, vhf(time.Minute)); !errors.As(err, &unavailable) {
		t.Fatalf("%v, want that the scenario is unavailable", err)
	}
	s.text = text
	if far, err := d.of(t.Context(), s, digest, vhf(time.Minute)); err != nil || far["vhf"].Metres < 50_000 {
		t.Errorf("%+v, %v; want the distance once the server is back", far, err)
	}
}

func TestASlowServerHoldsUpOneWorkerAtMost(t *testing.T) {
	digest, text := apart(t)
	s, d := &store{text: text, asked: make(chan struct{}), release: make(chan struct{})}, &distances{}
	first := make(chan error)
	go func() {
		_, err := d.of(t.Context(), s, digest, vhf(time.Minute))
		first <- err
	}()
	<-s.asked
	if _, err := d.of(t.Context(), s, digest, vhf(time.Hour)); !errors.Is(err, errMeasuring) {
		t.Errorf("%v, want that it does not wait", err)
	}
	close(s.release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
