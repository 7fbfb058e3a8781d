package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// figures of one engine.
type figures struct {
	Engine, Model     string
	Nodes             int
	RateBitsPerSecond int
	Period, Duration  time.Duration
	// Sent broadcasts, and Delivered of them, counted at every receiver.
	Sent, Delivered int
	// DeliveredPercent of Sent·(Nodes - 1), and its standard error.
	DeliveredPercent, StandardError     float64
	MedianMilliseconds, P95Milliseconds float64
	P99Milliseconds                     float64
	LeastMilliseconds, MostMilliseconds float64
	ThroughputBitsPerSecond             float64 // of UDP payload
	MicrosecondsPerDelivery             float64
	CPUPercent                          float64 // of one processor
	// TimerLatenessMicroseconds is the average of the first node's model, as EMANE reports it; 0 for native.
	TimerLatenessMicroseconds float64
}

func (f *figures) delays(all []reception, cpu time.Duration) {
	if len(all) == 0 {
		return
	}
	ms := make([]float64, len(all))
	for i, r := range all {
		ms[i] = float64(r.arrived-r.sent) / 1e6
	}
	slices.Sort(ms)
	f.Delivered = len(all)
	due := float64(f.Sent * (f.Nodes - 1))
	share := float64(f.Delivered) / due
	f.DeliveredPercent = 100 * share
	f.StandardError = 100 * standardError(f.Sent, f.Nodes)
	f.LeastMilliseconds, f.MedianMilliseconds = ms[0], quantile(ms, 0.5)
	f.P95Milliseconds, f.P99Milliseconds, f.MostMilliseconds = quantile(ms, 0.95), quantile(ms, 0.99), ms[len(ms)-1]
	f.MicrosecondsPerDelivery = float64(cpu.Microseconds()) / float64(f.Delivered)
	f.CPUPercent = 100 * cpu.Seconds() / f.Duration.Seconds()
}

// standardError of the delivered share, a sum of independent draws by the curve of each pair.
func standardError(sent, nodes int) float64 {
	variance, each := 0.0, float64(sent)/float64(nodes)
	for from := 1; from <= nodes; from++ {
		for to := 1; to <= nodes; to++ {
			if from == to {
				continue
			}
			p := min(max((110-pathlossOf(from, to))/20, 0), 1)
			variance += each * p * (1 - p)
		}
	}
	return math.Sqrt(variance) / float64(sent*(nodes-1))
}

// quantile of sorted values by linear interpolation.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// throughput of the receptions from the second second on.
func (f *figures) throughput(all []reception) {
	slices.SortFunc(all, func(a, b reception) int { return int(a.arrived - b.arrived) })
	i := 0
	for i < len(all) && all[i].arrived < all[0].arrived+int64(time.Second) {
		i++
	}
	if i+1 >= len(all) {
		return
	}
	f.ThroughputBitsPerSecond = 8e9 * payloadBytes * float64(len(all)-1-i) / float64(all[len(all)-1].arrived-all[i].arrived)
}

// table returns a table in Markdown, with a row for each model and number of nodes, and each figure's
// requirement.
func table(all []*figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| model | nodes | | %s | %s | difference | wanted |\n|---|---|---|---|---|---|---|\n", all[0].Engine, all[1].Engine)
	for i := 0; i+1 < len(all); i += 2 {
		e, n := all[i], all[i+1]
		row := func(what, format string, of func(*figures) float64, difference, wanted string) {
			fmt.Fprintf(&b, "| %s | %d | %s | "+format+" | "+format+" | %s | %s |\n", e.Model, e.Nodes, what, of(e), of(n), difference, wanted)
		}
		relative := func(of func(*figures) float64) string { return fmt.Sprintf("%+.1f %%", 100*(of(n)/of(e)-1)) }
		median, p95 := func(f *figures) float64 { return f.MedianMilliseconds }, func(f *figures) float64 { return f.P95Milliseconds }
		row("median delay, ms", "%.2f", median, relative(median), "5 %")
		row("p95 delay, ms", "%.2f", p95, relative(p95), "")
		row("delivered, %", "%.2f", func(f *figures) float64 { return f.DeliveredPercent },
			fmt.Sprintf("%+.2f points (standard error %.2f)", n.DeliveredPercent-e.DeliveredPercent, math.Hypot(n.StandardError, e.StandardError)), "1 point")
		throughput := func(f *figures) float64 { return f.ThroughputBitsPerSecond / 1e3 }
		row("saturated pair, kbit/s", "%.1f", throughput, relative(throughput), "3 %")
		cost := func(f *figures) float64 { return f.MicrosecondsPerDelivery }
		row("CPU per delivery, µs", "%.1f", cost, fmt.Sprintf("1 / %.1f", cost(e)/cost(n)), "1 / 6")
	}
	return b.String()
}
