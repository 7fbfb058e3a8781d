// soak carries frames between nodes for a long time while radiod, or its data plane alone, is killed again and
// again, with captures on, and accounts for every frame: sent = received + dropped by a named reason + in a named
// gap. It fails if one is missing or if radiod's memory grows. It needs root.
//
//	go run ./test/bench/soak [-duration 60m] [-rate 2000] [-kill-every 5m]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	duration, killEvery time.Duration
	rate                float64
	nodes, frameBytes   int
	parentEvery         int
	growthMiB           float64
	captures            bool
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", time.Hour, "how long frames are sent")
	flag.DurationVar(&o.killEvery, "kill-every", 5*time.Minute, "time between two kills")
	flag.IntVar(&o.parentEvery, "parent-every", 4, "every so many kills radiod's parent is killed too; 0 for never")
	flag.Float64Var(&o.rate, "rate", 2000, "frames per second that all nodes send together")
	flag.IntVar(&o.nodes, "nodes", 24, "number of nodes")
	flag.IntVar(&o.frameBytes, "frame", 200, "bytes per frame with its Ethernet header")
	flag.Float64Var(&o.growthMiB, "growth", 8, "MiB by which the line fitted to the resident memory of all of radiod may rise over the second half")
	flag.BoolVar(&o.captures, "captures", true, "capture every frame at every node")
	flag.Parse()
	if err := soak(o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// settleTime after the last frame: what is under way arrives, and the last counters reach the archive.
const settleTime = 5 * time.Second

func soak(o options) (err error) {
	bed, err := newBed(o)
	if err != nil {
		return err
	}
	defer bed.close()
	if err := bed.attach(o.nodes); err != nil {
		return err
	}
	time.Sleep(settleTime) // what nodes say by themselves at first
	before, err := bed.log.read()
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes, %.0f frames/s of %d bytes, 20 ms ± 3 ms, 2 %% loss, captures %v; a kill every %v, for %v\n",
		o.nodes, o.rate, o.frameBytes, o.captures, o.killEvery, o.duration)
	memory, err := bed.run(o, before)
	if err != nil {
		return err
	}
	time.Sleep(settleTime)
	after, err := bed.log.read()
	if err != nil {
		return err
	}
	a := accountOf(bed, before, after)
	fmt.Println("at the end:")
	a.print()
	memory.print()
	return a.verdict(memory.verdict(o.growthMiB))
}

// run sends, kills, and prints a line each minute.
func (b *bed) run(o options, before totals) (memory *memory, err error) {
	end := time.Now().Add(o.duration)
	b.start(o)
	defer b.stop()
	memory = newMemory(end.Add(-o.duration / 2))
	kill, report, sample := time.NewTicker(o.killEvery), time.NewTicker(time.Minute), time.NewTicker(2*time.Second)
	defer kill.Stop()
	defer report.Stop()
	defer sample.Stop()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	for kills := 1; ; {
		select {
		case s := <-interrupted: // the bed is to be cleared away
			return memory, fmt.Errorf("ended by %v, with %v to go", s, time.Until(end).Round(time.Second))
		case <-time.After(time.Until(end)):
			return memory, nil
		case <-sample.C:
			memory.add(b.daemon)
		case <-report.C:
			now, err := b.log.read()
			if err != nil {
				return memory, err
			}
			fmt.Printf("%v: parent %.1f MiB, worker and data plane %.1f MiB; ", time.Until(end).Round(time.Second), memory.parent, memory.worker)
			accountOf(b, before, now).printLine()
		case <-kill.C:
			if time.Until(end) < settleTime {
				continue // its gap would not be over
			}
			if err := b.kill(o.parentEvery > 0 && kills%o.parentEvery == 0); err != nil {
				return memory, err
			}
			kills++
		}
	}
}
