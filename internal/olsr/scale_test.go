package olsr_test

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/olsr/olsrtest"
	"vignette.dev/vignette/internal/testtool"
)

// BenchmarkSecondOf243Nodes measures the processor time of one simulated second of 243 nodes with about ten
// neighbours each. They are at rest, or half of the links change every ten seconds. The simulation itself is
// included.
func BenchmarkSecondOf243Nodes(b *testing.B) {
	for name, moving := range map[string]bool{"at rest": false, "changing": true} {
		b.Run(name, func(b *testing.B) {
			net, err := olsrtest.New(243, 1, olsr.Config{TC: 8 * time.Second, TCValidity: 80 * time.Second, HelloValidity: 20 * time.Second}, olsr.New)
			if err != nil {
				b.Fatal(err)
			}
			net.Random(1, 10)
			net.Run(30 * time.Second)
			before := net.Counters()
			used := testtool.ProcessorTime(b)
			b.ResetTimer()
			for i := range b.N {
				if moving && i%10 == 9 {
					net.Random(int64(i), 10)
				}
				net.Run(time.Second)
			}
			b.ReportMetric(float64((testtool.ProcessorTime(b)-used).Milliseconds())/float64(b.N), "processor-ms/s")
			after := net.Counters()
			per := 1 / (float64(b.N) * 243)
			b.ReportMetric(float64(after.BytesSent-before.BytesSent)*per, "B/s/node")
			b.ReportMetric(float64(after.PacketsSent-before.PacketsSent)*per, "packets/s/node")
			b.ReportMetric(float64(after.RouteCalculations-before.RouteCalculations)*per, "calculations/s/node")
		})
	}
}
