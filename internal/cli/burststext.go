package cli

import "vignette.dev/vignette/internal/runapi"

// burstsTable has the times of bursts, with publishers' protocols by rows and subscribers' by columns. Where messages are missing it has how
// many came.
func burstsTable(bursts []runapi.BurstResult) (rows table) {
	texts := runapi.BurstTable(bursts, seconds)
	texts[0][0] = "BURST FROM \\ TO"
	for _, row := range texts {
		rows = append(rows, figures(row[0], row[1:]...))
	}
	return rows
}
