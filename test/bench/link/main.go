// link measures the link model through real TAPs: its delay, rate, loss, jitter and duplicates against closed forms, and what
// it carries. It needs root and a quiet machine: other programs show in the tails.
//
//	go run ./test/bench/link [-quick]
package main

import (
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"vignette.dev/vignette/internal/radio/driver"
)

// scale of the measurements: full, or short for a look.
type scale struct {
	delayFrames, lossFrames int
	rateTime, loadTime      time.Duration
	attachments             int
}

var (
	full  = scale{delayFrames: 400, lossFrames: 20000, rateTime: 10 * time.Second, loadTime: 8 * time.Second, attachments: 24}
	quick = scale{delayFrames: 60, lossFrames: 4000, rateTime: 3 * time.Second, loadTime: 2 * time.Second, attachments: 12}
)

// engineOptions as radiod has them by default.
var engineOptions = driver.Options{Nice: driver.DefaultNice}

func main() {
	short := flag.Bool("quick", false, "measure for about half a minute only")
	flag.IntVar(&engineOptions.Realtime, "realtime", 0, "priority 1 to 99 of the engine under SCHED_FIFO, as radiod's option; 0 for the normal scheduler")
	flag.Parse()
	s := full
	if *short {
		s = quick
	}
	if err := bench(s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// table prints rows in columns as soon as flush is called.
type table struct{ w *tabwriter.Writer }

func newTable(title, header string) table {
	fmt.Printf("\n%s\n", title)
	t := table{tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t.w, header)
	return t
}

func (t table) row(format string, values ...any) { fmt.Fprintf(t.w, format+"\n", values...) }

func (t table) end() { _ = t.w.Flush() }

func bench(s scale) error {
	for _, part := range []func(scale) error{benchAccuracy, benchSpread, benchThroughput, benchAttach} {
		if err := part(s); err != nil {
			return err
		}
	}
	return nil
}
