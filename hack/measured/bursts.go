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
		if len(run.Bursts) > 0 {
			fmt.Fprintf(&b, "\nBursts of %s, from a publisher's start to the arrival of its last message:\n\n%s", run.Experiment, burstTable(run.Bursts))
		}
	}
	return b.String()
}

func burstTable(bursts []runapi.BurstResult) string {
	publishers, subscribers := runapi.BurstProtocols(bursts)
	text := `| from \ to | ` + strings.Join(subscribers, " | ") + " |\n|---|" + strings.Repeat("---|", len(subscribers)) + "\n"
	for _, publisher := range publishers {
		text += "| " + publisher + " |"
		for _, subscriber := range subscribers {
			text += " " + runapi.BurstCell(bursts, publisher, subscriber, seconds) + " |"
		}
		text += "\n"
	}
	return text
}
