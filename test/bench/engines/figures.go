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
	PayloadBytes      int
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

	all []delay
}

func (f *figures) delays(all []reception, cpu time.Duration) {
	if len(all) == 0 {
		return
	}
	ms := make([]float64, len(all))
	for i, r := range all {
		ms[i] = float64(r.arrived-r.sent) / 1e6
		f.all = append(f.all, delay{r.sequence, ms[i]})
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
	f.ThroughputBitsPerSecond = 8e9 * float64(f.PayloadBytes) * float64(len(all)-1-i) / float64(all[len(all)-1].arrived-all[i].arrived)
}

// comparison of two engines with the same load.
type comparison struct {
	Engines             [2]string
	Model               string
	Nodes, PayloadBytes int
	Distances           *distances // nil where one delivered nothing

	first, second *figures
}

func newComparison(first, second *figures, seed uint64) comparison {
	c := comparison{Engines: [2]string{first.Engine, second.Engine}, Model: first.Model, Nodes: first.Nodes, PayloadBytes: first.PayloadBytes, first: first, second: second}
	if len(first.all) > 0 && len(second.all) > 0 {
		d := distancesOf(first.all, second.all, first.Sent, seed)
		c.Distances = &d
	}
	return c
}

// table returns a table in Markdown, with each figure's requirement.
func table(all []comparison) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| model | nodes | bytes | | %s | %s | difference | wanted |\n|---|---|---|---|---|---|---|---|\n", all[0].Engines[0], all[0].Engines[1])
	for _, c := range all {
		c.rows(&b)
	}
	return b.String()
}

func (c *comparison) rows(b *strings.Builder) {
	e, n := c.first, c.second
	begin := fmt.Sprintf("| %s | %d | %d ", c.Model, c.Nodes, c.PayloadBytes)
	row := func(what, format string, of func(*figures) float64, difference, wanted string) {
		fmt.Fprintf(b, begin+"| %s | "+format+" | "+format+" | %s | %s |\n", what, of(e), of(n), difference, wanted)
	}
	relative := func(of func(*figures) float64) string { return fmt.Sprintf("%+.1f %%", 100*(of(n)/of(e)-1)) }
	median, p95 := func(f *figures) float64 { return f.MedianMilliseconds }, func(f *figures) float64 { return f.P95Milliseconds }
	row("median delay, ms", "%.2f", median, relative(median), "5 %")
	row("p95 delay, ms", "%.2f", p95, relative(p95), "")
	if d := c.Distances; d != nil {
		fmt.Fprintf(b, begin+"| Wasserstein distance of delays, ms | | | %s | |\n", d.WassersteinMilliseconds.text("%.2f"))
		fmt.Fprintf(b, begin+"| Kolmogorov–Smirnov distance | | | %s | |\n", d.KolmogorovSmirnov.text("%.3f"))
	}
	row("delivered, %", "%.2f", func(f *figures) float64 { return f.DeliveredPercent },
		fmt.Sprintf("%+.2f points (standard error %.2f)", n.DeliveredPercent-e.DeliveredPercent, math.Hypot(n.StandardError, e.StandardError)), "1 point")
	throughput := func(f *figures) float64 { return f.ThroughputBitsPerSecond / 1e3 }
	row("saturated pair, kbit/s", "%.1f", throughput, relative(throughput), "3 %")
	cost := func(f *figures) float64 { return f.MicrosecondsPerDelivery }
	row("CPU per delivery, µs", "%.1f", cost, fmt.Sprintf("1 / %.1f", cost(e)/cost(n)), "1 / 6")
}

// text of a distance in a format.
func (d *distance) text(format string) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+"), by chance up to "+format, d.Value, d.Low, d.High, d.ByChance)
}
