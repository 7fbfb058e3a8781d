package server

import (
	"maps"
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
	f.Networks = networksOf(t.radios)
	return f
}

// networksOf adds up what the radios of each network have carried.
func networksOf(radios map[[2]string]radioTally) (networks []runapi.LiveNetwork) {
	sums := map[string]carried{}
	for key, radio := range radios {
		sums[key[0]] = sums[key[0]].plus(radio.carriedBefore).plus(radio.carried)
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if sum := sums[name]; sum != (carried{}) {
			networks = append(networks, runapi.LiveNetwork{Name: name, FramesSent: sum.FramesSent, BytesSent: sum.BytesSent, FramesReceived: sum.FramesReceived, BytesReceived: sum.BytesReceived})
		}
	}
	return networks
}
