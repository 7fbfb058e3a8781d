package networks

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/podradio"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// full is a data plane that takes no more ports.
type full struct{ dataplane.Plane }

func (full) Attach(*dataplane.Port) (dataplane.PortID, error) {
	return 0, errors.New("the engine is full")
}

// capturing begins captures, and writes them until the test ends.
func capturing(t *testing.T) *capture.Recorder {
	t.Helper()
	r, err := capture.Open(capture.Options{Directory: t.TempDir(), SpoolBytes: 1 << 20, Monotonic: clock.Monotonic, Realtime: clock.Realtime, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

func radioOf(node string, nem int32) *podradio.Radio {
	r := podradio.New(membership.Attachment{NetworkUID: "run", RunUID: "experiment", PodUID: node, Interface: "wan",
		Member: v1alpha1.Member{Node: node, NEM: nem, MAC: "02:02:00:00:00:03"}}, -1)
	r.Counters = dataplane.CountersInMemory()
	return r
}

func TestCapturesEndWithARadioThatTheDataPlaneDoesNotTake(t *testing.T) {
	o := newOnAir(t, instant(time.Now()))
	o.Captures, o.Plane = capturing(t), full{o.Plane}
	o.network.object.Spec.Experiment.UID = "experiment"
	o.network.object.Spec.Captures = []v1alpha1.RadioCapture{{Name: "all"}}
	for range 2 { // the CNI plugin tries again
		if err := o.Join(radioOf("green", 3)); err == nil {
			t.Fatal("it joined")
		}
	}
	eventually(t, "the capture ends", func() bool {
		samples := o.Captures.Samples("experiment", clock.Realtime())
		return len(samples) == 1 && samples[0].Ended == capture.EndDetached
	})
}
