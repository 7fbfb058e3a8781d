// radio measures the cost of the radio models link, rfpipe and tdma beside a bare hub on the same TAPs. 24 nodes
// broadcast 900-byte frames, 0.5, 5 and 50 a second each. It prints CPU time per delivered frame, the
// lateness of frames, and resident memory. Hub and models are measured alternately. It needs root and a quiet
// machine, because other programs show in the tails.
//
//	go run ./test/bench/radio [-quick] [-json FILE]
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/test/bench/carrier"
)

const nodeCount = 24

// framesPerSecond of each node.
var framesPerSecond = []float64{0.5, 5, 50}

// hub is the kind of carrier without a model.
const hub = "hub"

var (
	engineOptions = driver.Options{Nice: driver.DefaultNice}
	quick         = flag.Bool("quick", false, "measure for about a minute only")
	jsonFile      = flag.String("json", "", "write the figures to this file as well")
	kindList      = flag.String("kinds", "hub,link,rfpipe,tdma", "what carries the frames, with a comma between each")
	kind          = flag.String("carrier", "", "internal: carry frames between inherited TAPs, as hub or a model")
	nodes         = flag.Int("nodes", 0, "internal: number of inherited TAPs")
)

func main() {
	flag.IntVar(&engineOptions.Realtime, "realtime", 0, "priority 1 to 99 of the engine under SCHED_FIFO, as radiod's option; 0 for the normal scheduler")
	flag.Parse()
	run := bench
	if *kind != "" {
		run = carry
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// carry is the child of this program.
func carry() error {
	if *kind == hub {
		measure, err := carrier.Hub(*nodes, engineOptions)
		if err != nil {
			return err
		}
		return carrier.Serve(measure)
	}
	model, err := newModel(*kind, *nodes)
	if err != nil {
		return err
	}
	measure, err := carrier.Engine(*nodes, engineOptions, model)
	if err != nil {
		return err
	}
	return carrier.Serve(measure)
}

// figures of one kind of carrier at one load.
type figures struct {
	Kind                    string
	FramesPerSecond         float64 // in all
	DeliveriesPerSecond     float64
	MicrosecondsPerDelivery float64
	OfHub                   float64 // ratio of the CPU time per delivery to the hub's
	LatenessP99Milliseconds float64 // upper bound of its bucket; 0 for the hub, which has no times
	LateShare               float64 // of releases, more than 2 ms late
	ResidentMegabytes       float64
	MegabytesPerFurtherNode float64 `json:",omitempty"`
	reports                 []carrier.Report
}

func bench() error {
	all, err := measureAll(strings.Split(*kindList, ","))
	if err != nil {
		return err
	}
	printTable(all)
	if *jsonFile == "" {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*jsonFile, append(text, '\n'), 0o644) //nolint:gosec // figures are public
}

func measureAll(kinds []string) ([]*figures, error) {
	duration, rounds := 8*time.Second, 3
	if *quick {
		duration, rounds = 3*time.Second, 1
	}
	all, err := carrier.Quiet(nodeCount)
	for _, n := range all {
		defer n.Close()
	}
	if err != nil {
		return nil, err
	}
	var measured []*figures
	for _, perNode := range framesPerSecond {
		rate := int(perNode * nodeCount)
		row := make([]*figures, len(kinds))
		for i, k := range kinds {
			row[i] = &figures{Kind: k, FramesPerSecond: float64(rate)}
		}
		for range rounds {
			for _, f := range row {
				r, err := carrier.Cost(all, rate, duration, arguments(f.Kind, nodeCount)...)
				if err != nil {
					return nil, fmt.Errorf("%s at %d frames/s: %w", f.Kind, rate, err)
				}
				f.reports = append(f.reports, r)
			}
		}
		summarise(row, duration)
		measured = append(measured, row...)
	}
	return measured, furtherNodes(measured[:len(kinds)])
}

func arguments(kind string, nodes int) []string {
	return []string{"-carrier", kind, "-nodes", strconv.Itoa(nodes), "-realtime", strconv.Itoa(engineOptions.Realtime)}
}

// summarise takes the round with the median cost of each kind, and compares it with the hub's.
func summarise(row []*figures, duration time.Duration) {
	floor := 0.0
	for _, f := range row {
		slices.SortFunc(f.reports, func(a, b carrier.Report) int { return cmp.Compare(a.PerFrame(), b.PerFrame()) })
		r := f.reports[len(f.reports)/2]
		f.DeliveriesPerSecond = float64(r.Delivered) / duration.Seconds()
		f.MicrosecondsPerDelivery = r.PerFrame()
		f.ResidentMegabytes = float64(r.ResidentBytes) / 1e6
		if f.Kind == hub {
			floor = f.MicrosecondsPerDelivery
		} else {
			var p99 time.Duration
			p99, f.LateShare = r.Tail()
			f.LatenessP99Milliseconds = p99.Seconds() * 1e3
		}
		if floor > 0 {
			f.OfHub = f.MicrosecondsPerDelivery / floor
		}
	}
}

// furtherNodes measures the memory of each node beyond nodeCount, at the least load.
func furtherNodes(row []*figures) error {
	const more = 72
	all, err := carrier.Quiet(more)
	for _, n := range all {
		defer n.Close()
	}
	if err != nil {
		return err
	}
	for _, f := range row {
		few, err := residentOf(f.Kind, all[:nodeCount])
		if err != nil {
			return err
		}
		many, err := residentOf(f.Kind, all)
		if err != nil {
			return err
		}
		f.MegabytesPerFurtherNode = (many - few) / 1e6 / (more - nodeCount)
	}
	return nil
}

func residentOf(kind string, nodes []*radiotest.Node) (float64, error) {
	r, err := carrier.Cost(nodes, 120, 2*time.Second, arguments(kind, len(nodes))...)
	return float64(r.ResidentBytes), err
}

func printTable(all []*figures) {
	fmt.Printf("%d nodes broadcast 900-byte frames; hub and models carry them in turns on the same TAPs\n", nodeCount)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "frames/s in all\tcarrier\tdeliveries/s\tCPU per delivery\tof the hub's\tlateness p99\tlate > 2 ms\tresident\tper further node")
	for _, f := range all {
		fmt.Fprintf(w, "%.0f\t%s\t%.0f\t%.1f µs\t%.2f\t", f.FramesPerSecond, f.Kind, f.DeliveriesPerSecond, f.MicrosecondsPerDelivery, f.OfHub)
		if f.Kind == hub {
			fmt.Fprint(w, "-\t-\t")
		} else {
			fmt.Fprintf(w, "≤ %g ms\t%.3f %%\t", f.LatenessP99Milliseconds, 100*f.LateShare)
		}
		fmt.Fprintf(w, "%.1f MB\t", f.ResidentMegabytes)
		if f.MegabytesPerFurtherNode != 0 {
			fmt.Fprintf(w, "%.2f MB", f.MegabytesPerFurtherNode)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
}
