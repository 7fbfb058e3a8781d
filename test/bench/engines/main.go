// engines compares radiod's own radio models with EMANE. For the same scenario it sends the same load through
// each, one after the other. It prints the delay, the delivered share, the throughput of a saturated pair,
// and CPU time per delivered frame. It needs root, an installed EMANE, and a quiet machine. Without EMANE it
// says so and measures nothing.
//
//	go run ./test/bench/engines [-emane PREFIX] [-models rfpipe,tdma] [-nodes 4,24] [-engines emane,native] [-json FILE]
//
// Engine emane has an EMANE process for each node. Engine emane-two has one for the two saturated nodes,
// which has its own processor meanwhile, and one for the others. With -engines native it measures that engine
// only, needs no EMANE, and prints its figures instead of the table.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settings of a run.
type settings struct {
	prefix   string // of EMANE's installation, empty for the system's
	rate     int    // bit/s
	period   time.Duration
	duration time.Duration // of the periodic load
	saturate time.Duration
	logs     string
	realtime int // priority of the native engine, 0 for the normal scheduler
	seed     uint64
}

func main() {
	var s settings
	flag.StringVar(&s.prefix, "emane", os.Getenv("VIGNETTE_EMANE"), "prefix of EMANE's installation; by default $VIGNETTE_EMANE, else the emane on PATH")
	models := flag.String("models", "rfpipe,tdma", "radio models, with a comma between each")
	counts := flag.String("nodes", "4,24", "numbers of nodes, with a comma between each")
	engines := flag.String("engines", "emane,native", "engines, with a comma between each: emane has a process for each node, emane-two one for the saturated pair and one for the others, native none of EMANE's")
	flag.IntVar(&s.rate, "rate", 1e6, "rate of the radios, bit/s")
	flag.DurationVar(&s.period, "period", time.Second, "each node broadcasts 900 bytes by UDP once in this time")
	flag.DurationVar(&s.duration, "duration", 40*time.Second, "length of that load")
	flag.DurationVar(&s.saturate, "saturate", 20*time.Second, "length of the load that saturates a pair")
	flag.StringVar(&s.logs, "logs", "", "keep EMANE's files and logs in this folder")
	flag.IntVar(&s.realtime, "realtime", 50, "priority 1 to 99 of the native engine under SCHED_FIFO, as radiod's option; EMANE has 50 by its -r; 0 for the normal scheduler")
	flag.Uint64Var(&s.seed, "seed", 1, "of the times at which nodes send")
	file := flag.String("json", "", "write the figures to this file as well")
	child := flag.String("carrier", "", "internal: carry frames between inherited TAPs by this model")
	nodes := flag.Int("carrier-nodes", 0, "internal: number of inherited TAPs")
	flag.Parse()
	var err error
	switch {
	case *child != "":
		err = carry(&s, *child, *nodes)
	case strings.Contains(*engines, "emane") && !s.installed():
		fmt.Println("EMANE not installed: nothing to hold the native models against (-emane PREFIX, $VIGNETTE_EMANE, or emane on PATH)")
	default:
		err = compare(&s, strings.Split(*models, ","), strings.Split(*counts, ","), strings.Split(*engines, ","), *file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func (s *settings) installed() bool {
	if s.prefix != "" {
		_, err := os.Stat(filepath.Join(s.prefix, "bin", "emane"))
		return err == nil
	}
	_, err := exec.LookPath("emane")
	return err == nil
}

func compare(s *settings, models, counts, engines []string, file string) error {
	var all []*figures
	for _, model := range models {
		for _, count := range counts {
			nodes, err := strconv.Atoi(count)
			if err != nil || nodes < 2 {
				return fmt.Errorf("nodes %q: want a number from 2 on", count)
			}
			for _, engine := range engines {
				f, err := measure(s, engine, model, nodes)
				if err != nil {
					return fmt.Errorf("%s by %s with %d nodes: %w", model, engine, nodes, err)
				}
				all = append(all, f)
				fmt.Fprintf(os.Stderr, "%+v\n", *f)
			}
		}
	}
	if len(engines) == 2 {
		fmt.Print(table(all))
	}
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // figures are public
}

// bed carries the frames of nodes by one engine.
type bed interface {
	nodes() []node
	// cpu returns the time that the engine has taken so far.
	cpu() (time.Duration, error)
	close() error
}

func measure(s *settings, engine, model string, nodes int) (f *figures, err error) {
	spec, paths, err := newScenario(s, model, nodes)
	if err != nil {
		return nil, err
	}
	var b bed
	switch engine {
	case "emane":
		b, err = newEMANE(s, spec, paths)
	case "emane-two":
		b, err = newSharedEMANE(s, spec, paths, 2)
	case "native":
		b, err = newNative(s, model, nodes)
	default:
		err = fmt.Errorf("engine %q: want emane, emane-two or native", engine)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, b.close()) }()
	l, err := newLoad(b.nodes())
	if err != nil {
		return nil, err
	}
	defer l.close()
	f = &figures{Engine: engine, Model: model, Nodes: nodes, RateBitsPerSecond: s.rate, Period: s.period, Duration: s.duration}
	return f, l.run(s, b, f)
}
