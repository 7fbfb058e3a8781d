package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
)

func TestTheStateOfARunHasItsFiguresSoFar(t *testing.T) {
	r := liveRun(t, func() time.Time { return time.Unix(1010, 0) })
	archiveLines(t, r, "radio/host-b.jsonl",
		`{"ts":1002000000000,"network":"vhf","node":"veh","queueDepth":9,"lateReleases":2,"worstLatenessSeconds":0.013}`,
		`{"ts":1003000000000,"network":"vhf","node":"veh","queueDepth":4,"lateReleases":1,"worstLatenessSeconds":0.004,"slotsMissed":3}`,
		`{"ts":1003000000000,"network":"vhf","node":"hq","queueDepth":1}`)
	got := r.tally.liveState()
	if got == nil || got.DelaySeconds == nil || got.DelaySeconds.Median < 0.0997 || got.DelaySeconds.P95 > 0.1003 {
		t.Fatalf("%+v; want delays of 0.1 s", got)
	}
	got.DelaySeconds = nil
	want := &runapi.LiveFigures{Triggered: 4, Sent: 3, Headline: "radio", Offered: 4, Expected: 3, Received: 2, QueueFrames: 5, DeepestQueue: "veh", DeepestFrames: 4, LateReleases: 3, SlotsMissed: 3, WorstLatenessSeconds: 0.013}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.tally.forgetLive()
	if got := r.tally.liveState(); got != nil {
		t.Errorf("once nobody asks any more: %+v; want nothing", got)
	}
}
