package cli

import "vignette.dev/vignette/internal/runapi"

// pictureTable has the error and the age of the positions that subscribers had of other nodes, by the nodes' groups.
func pictureTable(groups []runapi.PictureGroup) table {
	rows := table{figures("PICTURE OF", "pairs", "known %", "error median", "mean", "p95", "max", "age median", "mean", "p95", "max")}
	for _, g := range groups {
		cells := []string{count(g.Pairs), percentText(g.KnownPercent)}
		cells = append(cells, pictureCells(g.ErrorMetres, metres)...)
		rows = append(rows, figures(g.Name, append(cells, pictureCells(g.AgeSeconds, seconds)...)...))
	}
	return rows
}

// pictureCells are the figures in words, dashes where no position was known.
func pictureCells(f *runapi.PictureFigures, write func(float64) string) []string {
	if f == nil {
		return []string{"-", "-", "-", "-"}
	}
	return []string{write(f.Median), write(f.Mean), write(f.P95), write(f.Max)}
}

func metres(m float64) string { return significant(m) + " m" }
