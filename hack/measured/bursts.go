package main

import (
	"fmt"
	"strings"

	"vignette.dev/vignette/internal/runapi"
)

// burstTables are the times of bursts of each run that has some: publishers' protocols by rows, subscribers' by columns.
func burstTables(runs []*runapi.Results) string {
	var b strings.Builder
	for _, run := range runs {
		if len(run.Bursts) == 0 {
			continue
		}
		rows := runapi.BurstTable(run.Bursts, seconds)
		rows[0][0] = `from \ to`
		fmt.Fprintf(&b, "\nBursts of %s, from a publisher's start to the arrival of its last message:\n\n%s", run.Experiment, markdownTable(rows))
	}
	return b.String()
}
