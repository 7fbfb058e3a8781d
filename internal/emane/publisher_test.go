package emane

import (
	"context"
	"net"
	"testing"
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

func TestAStepThatFallsDueWhileAllIsPublishedAgainHasItsLateness(t *testing.T) {
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
	p := &Publisher{connection: connection, group: connection.LocalAddr().(*net.UDPAddr)}
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	steps := 0
	const always = time.Nanosecond // so that all is published again whenever the step falls due
	err = p.Replay(ctx, feedOf(t, measured(2), scenariotest.Open(t, b)), 0, always, func(late time.Duration) {
		if steps++; late < 0 {
			t.Errorf("it is %v early", -late)
		}
		cancel()
	})
	if err != nil || steps != 1 {
		t.Errorf("%v; %d late steps, want 1", err, steps)
	}
}
