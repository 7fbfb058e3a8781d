package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
)

func TestTheStateOfARunHasItsFiguresSoFar(t *testing.T) {
	r := liveRun(t, func() time.Time { return time.Unix(1_700_001_010, 0) })
	archiveLines(t, r, "radio/host-b.jsonl",
		`{"ts":1700001002000000000,"network":"vhf","node":"veh","queueDepth":9,"lateReleases":2,"worstLatenessSeconds":0.013,"framesSent":10,"bytesSent":1000,"framesReceived":5,"bytesReceived":500}`,
		`{"ts":1700001003000000000,"network":"vhf","node":"veh","queueDepth":4,"lateReleases":1,"worstLatenessSeconds":0.004,"slotsMissed":3,"framesSent":12,"bytesSent":1200,"framesReceived":6,"bytesReceived":600}`,
		`{"ts":1700001003000000000,"node":"hq","routing":"olsrv2","routes":{}}`,
		`{"ts":1700001003000000000,"network":"uhf","node":"hq","framesSent":1,"bytesSent":64,"framesReceived":0,"bytesReceived":0}`,
		`{"ts":1700001003000000000,"network":"vhf","node":"hq","queueDepth":1,"framesSent":1,"bytesSent":90,"framesReceived":2,"bytesReceived":180}`)
	got := r.tally.liveState()
	if got == nil || got.DelaySeconds == nil || got.DelaySeconds.Median < 0.0997 || got.DelaySeconds.P95 > 0.1003 {
		t.Fatalf("%+v; want delays of 0.1 s", got)
	}
	got.DelaySeconds = nil
	want := &runapi.LiveFigures{Triggered: 4, Sent: 3, Headline: "radio", Offered: 4, Expected: 3, Received: 2, QueueFrames: 5, DeepestQueue: "veh", DeepestFrames: 4, LateReleases: 3, SlotsMissed: 3, WorstLatenessSeconds: 0.013,
		Networks: []runapi.LiveNetwork{{Name: "uhf", FramesSent: 1, BytesSent: 64}, {Name: "vhf", FramesSent: 13, BytesSent: 1290, FramesReceived: 8, BytesReceived: 780}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.tally.forgetLive()
	if got := r.tally.liveState(); got != nil {
		t.Errorf("once nobody asks any more: %+v; want nothing", got)
	}
}

func TestTheVolumeOfANetworkSurvivesThatANodeIsAttachedAgain(t *testing.T) {
	r := liveRun(t, func() time.Time { return time.Unix(1_700_001_010, 0) })
	archiveLines(t, r, "radio/host-b.jsonl",
		`{"ts":1700001002000000000,"network":"vhf","node":"veh","framesSent":10,"bytesSent":1000,"framesReceived":5,"bytesReceived":500}`,
		`{"ts":1700001003000000000,"network":"vhf","node":"veh","framesSent":2,"bytesSent":200,"framesReceived":1,"bytesReceived":100}`,
		`{"ts":1700001001000000000,"network":"vhf","node":"veh","framesSent":9,"bytesSent":900,"framesReceived":4,"bytesReceived":400}`)
	want := []runapi.LiveNetwork{{Name: "vhf", FramesSent: 12, BytesSent: 1200, FramesReceived: 6, BytesReceived: 600}}
	if diff := cmp.Diff(want, r.tally.liveState().Networks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
