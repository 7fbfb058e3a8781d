package main

import (
	"fmt"
	"time"

	"vignette.dev/vignette/internal/radio/link"
	"vignette.dev/vignette/test/bench/carrier"
)

// baseline is the baseline LAN of EXPERIMENTS.md.
var baseline = link.Parameters{RateBitsPerSecond: 1e9, Delay: time.Millisecond, Limit: 1000}

// runCarrier carries frames between inherited TAPs and reports on every line it reads.
func runCarrier(kind string, nodes int) error {
	var measure carrier.Measure
	var err error
	if kind == "hub" {
		measure, err = carrier.Hub(nodes, engineOptions)
	} else {
		measure, err = carrier.Engine(nodes, engineOptions, link.New(link.Config{Default: baseline}))
	}
	if err != nil {
		return err
	}
	return carrier.Serve(measure)
}

// benchCost compares the CPU time per delivered frame of the engine and of a bare hub.
func benchCost(s scale) error {
	const count = 24
	nodes, err := carrier.Quiet(count)
	for _, n := range nodes {
		defer n.Close()
	}
	if err != nil {
		return err
	}
	t := newTable(fmt.Sprintf("CPU per delivered frame, %d nodes broadcasting 900-byte frames, baseline link, beside a bare TAP hub on the same TAPs", count),
		"frames/s in all\tdeliveries/s\thub\tengine\tratio\tengine's lateness p99\tlate > 2 ms")
	for _, rate := range []int{120, 1200, 4000} {
		arguments := []string{"-nodes", fmt.Sprint(count), "-realtime", fmt.Sprint(engineOptions.Realtime), "-carrier"}
		hub, err := carrier.Cost(nodes, rate, s.loadTime, append(arguments, "hub")...)
		if err != nil {
			return fmt.Errorf("hub at %d frames/s: %w", rate, err)
		}
		engine, err := carrier.Cost(nodes, rate, s.loadTime, append(arguments, "engine")...)
		if err != nil {
			return fmt.Errorf("engine at %d frames/s: %w", rate, err)
		}
		p99, late := engine.Tail()
		t.row("%d\t%.0f\t%.1f µs\t%.1f µs\t%.2f\t≤ %v\t%.3f %%", rate, float64(engine.Delivered)/s.loadTime.Seconds(),
			hub.PerFrame(), engine.PerFrame(), engine.PerFrame()/hub.PerFrame(), p99, 100*late)
	}
	t.end()
	return nil
}
