package server

import (
	"slices"

	"vignette.dev/vignette/internal/live"
	"vignette.dev/vignette/internal/runapi"
)

// liveState returns the live figures of a run; nil after they were dropped.
func (t *tally) liveState() *runapi.LiveFigures {
	figures := t.liveFigures()
	if figures == nil {
		return nil
	}
	now := figures.Figures()
	head := now.Headline
	f := &runapi.LiveFigures{Triggered: now.Triggered, Sent: now.Sent, Headline: head.Name, Offered: head.Offered, Expected: head.Expected, Received: head.Received}
	if head.DelaySeconds != nil {
		at := func(quantile float64) float64 { return head.DelaySeconds[slices.Index(live.Quantiles, quantile)] }
		f.DelaySeconds = &runapi.LiveDelays{Min: at(0), Median: at(0.5), P95: at(0.95), Max: at(1)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	queues := map[string]int64{}
	for key, radio := range t.radios {
		node := key[1]
		queues[node] += int64(radio.queue)
		f.QueueFrames += int64(radio.queue)
		f.LateReleases += radio.lateReleases
		f.SlotsMissed += radio.slotsMissed
		f.WorstLatenessSeconds = max(f.WorstLatenessSeconds, radio.worstSeconds)
	}
	for node, frames := range queues {
		if frames > f.DeepestFrames || frames == f.DeepestFrames && frames > 0 && node < f.DeepestQueue {
			f.DeepestQueue, f.DeepestFrames = node, frames
		}
	}
	return f
}
