// starve checks the bounds of verdicts by starving the radio of processor time. A real radio engine with its
// worker carries the messages of real clients. Unstarved runs of the same seed show what the figures should
// be. It needs root.
//
//	go run ./test/starve [-rounds 10] [-seed 7]
//	go run ./test/starve -tcp
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/traffic/program"
)

var (
	rounds   = flag.Int("rounds", 1, "how often everything is done, each time with another seed")
	seed     = flag.Int64("seed", time.Now().Unix(), "of the first round: of messages, losses and the moments of starving")
	duration = flag.Duration("duration", 10*time.Second, "how long messages are sent in a run")
	tcp      = flag.Bool("tcp", false, "streams over TCP instead, without a judgement: a bound cannot cover what TCP waits for")
	keep     = flag.String("keep", "", "leave the runs' folders below this one")
)

func main() {
	run := starve
	switch command := os.Args[min(1, len(os.Args)-1)]; command {
	case clientCommand:
		program.Main(nil)
		return
	case streamCommand:
		run = stream
	case carrierCommand:
		run = carry
	default:
		flag.Parse()
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "starve:", err)
		os.Exit(1)
	}
}

func starve() error {
	if err := radiotest.Missing(); err != nil {
		return err
	}
	directory, err := filepath.Abs(*keep)
	if *keep == "" {
		directory, err = os.MkdirTemp("", "starve-*")
		defer os.RemoveAll(directory)
	}
	if err != nil {
		return err
	}
	cases, kinds := allCases, kindsHere()
	if *tcp {
		cases, kinds = tcpCases, kinds[1:3]
	}
	fmt.Printf("seed %d\n", *seed)
	var runs []*run
	for round := range *rounds {
		for i, k := range slices.Concat([]*kind{unstarved}, kinds, []*kind{unstarved}) {
			some, err := runTogether(filepath.Join(directory, fmt.Sprintf("%d-%d-%s", round, i, k.name)), cases, k, *seed+int64(round))
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			runs = append(runs, some...)
		}
	}
	return checkBounds(runs)
}
