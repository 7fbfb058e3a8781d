package cli

import (
	"fmt"

	"vignette.dev/vignette/internal/runapi"
)

// burstsTable has the times of bursts, with publishers' protocols by rows and subscribers' by columns. Where messages are missing it has how
// many came.
func burstsTable(bursts []runapi.BurstResult) table {
	publishers, subscribers := runapi.BurstProtocols(bursts)
	rows := table{figures("BURST FROM \\ TO", subscribers...)}
	for _, publisher := range publishers {
		row := make([]string, len(subscribers))
		for i, subscriber := range subscribers {
			row[i] = burstText(runapi.BurstBetween(bursts, publisher, subscriber))
		}
		rows = append(rows, figures(publisher, row...))
	}
	return rows
}

func burstText(b *runapi.BurstResult) string {
	switch {
	case b == nil:
		return "-"
	case b.Seconds == nil:
		return fmt.Sprintf("%d of %d", b.Received, b.Messages)
	}
	return seconds(*b.Seconds)
}
