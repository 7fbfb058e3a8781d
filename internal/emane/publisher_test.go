package emane

import (
	"context"
	"net"
	"testing"
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

// replayable is a feed whose pathloss changes after 30 ms, and a publisher to itself.
func replayable(t *testing.T) (*Publisher, *Feed) {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	for at, dB := range map[time.Duration]float64{0: 80, 30 * time.Millisecond: 90} {
		if err := b.Pathloss(at, 1, 2, dB); err != nil {
			t.Fatal(err)
		}
	}
	connection, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return &Publisher{connection: connection, group: connection.LocalAddr().(*net.UDPAddr)}, feedOf(t, measured(2), scenariotest.Open(t, b))
}

func TestAStepThatFallsDueWhileAllIsPublishedAgainHasItsLateness(t *testing.T) {
	p, f := replayable(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	steps := 0
	const always = time.Nanosecond // so that all is published again whenever the step falls due
	err := p.Replay(ctx, f, 0, 0, always, func(late time.Duration) {
		if steps++; late < 0 {
			t.Errorf("it is %v early", -late)
		}
		cancel()
	})
	if err != nil || steps != 1 {
		t.Errorf("%v; %d late steps, want 1", err, steps)
	}
}

func TestTheFirstPassCountsAStepThatNoEarlierReplayPublished(t *testing.T) {
	const from = 5 * time.Second
	for published, want := range map[time.Duration]int{0: 1, time.Second: 0, from: 0} {
		p, f := replayable(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // after the first pass
		steps := 0
		err := p.Replay(ctx, f, published, from, time.Hour, func(late time.Duration) {
			if steps++; late < from-30*time.Millisecond {
				t.Errorf("it is %v late; want %v at least", late, from-30*time.Millisecond)
			}
		})
		if err != nil || steps != want {
			t.Errorf("published up to %v: %v; %d late steps, want %d", published, err, steps, want)
		}
	}
}
