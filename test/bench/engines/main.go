// engines compares radiod's own radio models with EMANE. For the same scenario it sends the same load through
// each, one after the other. It prints the delay and how far its distributions are apart, the delivered share, the
// throughput of a saturated pair, and CPU time per delivered frame. It needs root, an installed EMANE, and a quiet
// machine. Without EMANE it says so and measures nothing.
//
//	go run ./test/bench/engines [-emane PREFIX] [-models rfpipe,tdma] [-nodes 4,24] [-sizes 900] [-engines emane,native] [-json FILE]
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
	"slices"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/test/bench/carrier"
)

// settings of a run.
type settings struct {
	prefix   string        // of EMANE's installation, empty for the system's
	rate     int           // bit/s
	period   time.Duration // 0 for that of the number of nodes
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
	sizes := flag.String("sizes", "900", "payloads of the UDP packets in bytes, with a comma between each")
	flag.DurationVar(&s.period, "period", 0, "each node broadcasts once in this time, which must be no multiple of a slot of 10ms; by default 2.618 TDMA frames of a slot for each node")
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
		err = compare(&s, selection{strings.Split(*models, ","), strings.Split(*engines, ","), strings.Split(*counts, ","), strings.Split(*sizes, ",")}, *file)
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

// selection of what is measured.
type selection struct{ models, engines, nodes, sizes []string }

// run is one load, for each engine.
type run struct {
	model        string
	nodes, bytes int
}

// runs are all combinations, after checks of each.
func (w *selection) runs(s *settings) (all []run, err error) {
	if s.period < 0 || s.period > 0 && s.period%slotDuration == 0 {
		return nil, fmt.Errorf("period %v: want one that is no multiple of the slot of %v, such as %v, as all messages of a node would meet the same part of their frame",
			s.period, slotDuration, s.period.Abs()+slotDuration/10+time.Millisecond/10)
	}
	for _, engine := range w.engines {
		if !slices.Contains([]string{"emane", "emane-two", "native"}, engine) {
			return nil, fmt.Errorf("engine %q: want emane, emane-two or native", engine)
		}
	}
	for _, model := range w.models {
		if !slices.Contains([]string{"rfpipe", "tdma"}, model) {
			return nil, fmt.Errorf("model %q: want rfpipe or tdma", model)
		}
		for _, count := range w.nodes {
			nodes, err := strconv.Atoi(count)
			if err != nil || nodes < 2 || nodes > 1000 {
				return nil, fmt.Errorf("nodes %q: want a number from 2 to 1000", count)
			}
			for _, size := range w.sizes {
				bytes, err := strconv.Atoi(size)
				if err != nil || bytes < headerBytes || bytes > carrier.MTU-28 {
					return nil, fmt.Errorf("size %q: want a number of bytes from %d to %d", size, headerBytes, carrier.MTU-28)
				}
				all = append(all, run{model, nodes, bytes})
			}
		}
	}
	return all, nil
}

func compare(s *settings, w selection, file string) error {
	runs, err := w.runs(s)
	if err != nil {
		return err
	}
	var all []*figures
	compared := make([][]comparison, len(w.engines)) // with the first engine, by engine
	for _, r := range runs {
		for i, engine := range w.engines {
			f, err := measure(s, engine, r)
			if err != nil {
				return fmt.Errorf("%s by %s with %d nodes: %w", r.model, engine, r.nodes, err)
			}
			if all = append(all, f); i > 0 {
				compared[i] = append(compared[i], newComparison(all[len(all)-1-i], f, s.seed))
			}
			fmt.Fprintf(os.Stderr, "%s by %s with %d nodes and %d bytes: measured\n", r.model, engine, r.nodes, r.bytes)
		}
	}
	for _, with := range compared[1:] {
		fmt.Print(table(with))
	}
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(struct {
		Figures     []*figures
		Comparisons []comparison
	}{all, slices.Concat(compared...)}, "", "  ")
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

func measure(s *settings, engine string, r run) (f *figures, err error) {
	spec, paths, err := newScenario(s, r.model, r.nodes)
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
		b, err = newNative(s, r.model, r.nodes)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, b.close()) }()
	l, err := newLoad(b.nodes(), r.bytes)
	if err != nil {
		return nil, err
	}
	defer l.close()
	f = &figures{Engine: engine, Model: r.model, Nodes: r.nodes, PayloadBytes: r.bytes, RateBitsPerSecond: s.rate, Period: cmp.Or(s.period, periodOf(r.nodes)), Duration: s.duration}
	return f, l.run(s, b, f)
}
