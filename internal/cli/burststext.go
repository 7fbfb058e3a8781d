package cli

import "vignette.dev/vignette/internal/runapi"

// burstsTable has the times of bursts, with publishers' protocols by rows and subscribers' by columns. Where messages are missing it has how
// many came.
func burstsTable(bursts []runapi.BurstResult) table {
	publishers, subscribers := runapi.BurstProtocols(bursts)
	rows := table{figures("BURST FROM \\ TO", subscribers...)}
	for _, publisher := range publishers {
		row := make([]string, len(subscribers))
		for i, subscriber := range subscribers {
			row[i] = runapi.BurstCell(bursts, publisher, subscriber, seconds)
		}
		rows = append(rows, figures(publisher, row...))
	}
	return rows
}
