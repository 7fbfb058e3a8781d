package cli

import (
	"fmt"
	"slices"

	"vignette.dev/vignette/internal/runapi"
)

// burstsTable has the times of bursts, with publishers' protocols by rows and subscribers' by columns. Where messages are missing it has how
// many came.
func burstsTable(bursts []runapi.BurstResult) table {
	var out, into []string
	cells := map[[2]string]string{}
	for _, b := range bursts {
		out, into = append(out, b.PublisherProtocol), append(into, b.SubscriberProtocol)
		text := fmt.Sprintf("%d of %d", b.Received, b.Messages)
		if b.Seconds != nil {
			text = seconds(*b.Seconds)
		}
		cells[[2]string{b.PublisherProtocol, b.SubscriberProtocol}] = text
	}
	slices.Sort(out)
	slices.Sort(into)
	into = slices.Compact(into)
	rows := table{figures("BURST FROM \\ TO", into...)}
	for _, protocol := range slices.Compact(out) {
		row := make([]string, len(into))
		for i, to := range into {
			if row[i] = cells[[2]string{protocol, to}]; row[i] == "" {
				row[i] = "-"
			}
		}
		rows = append(rows, figures(protocol, row...))
	}
	return rows
}
