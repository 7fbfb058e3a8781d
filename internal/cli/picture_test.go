package cli

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/runapi"
)

// terminalPicture is text as a terminal shows it, as SVG. Each line has a fixed width, so that columns align in any font.
func terminalPicture(title, text string) string {
	const (
		columnWidth = 7.4
		lineHeight  = 17
		margin      = 16
		baseline    = 13
	)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	columns := 0
	for _, line := range lines {
		columns = max(columns, utf8.RuneCountInString(line))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" font-family="ui-monospace, 'DejaVu Sans Mono', monospace" font-size="12" fill="#e6edf3">`+"\n",
		2*margin+columnWidth*float64(columns), 2*margin+lineHeight*len(lines))
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n", title)
	for i, line := range lines {
		width := columnWidth * float64(utf8.RuneCountInString(line))
		if width == 0 {
			continue
		}
		color := ""
		if strings.HasPrefix(line, "$ ") {
			color = ` fill="#7ee787"`
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%.1f" xml:space="preserve"%s>`, margin, margin+baseline+lineHeight*i, width, color)
		_ = xml.EscapeText(&b, []byte(line)) // a Builder takes everything
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// The results are those of a real run of E4, docs/notebooks/runs/mqtt-udp.tar.xz, with four of its publishers.
func TestThePictureOfResultsShowsWhatIsPrinted(t *testing.T) {
	var results runapi.Results
	if err := json.Unmarshal([]byte(readText(t, "testdata/e4-results.json")), &results); err != nil {
		t.Fatal(err)
	}
	picture := terminalPicture("Results in a terminal", "$ vignette results "+results.Experiment+"\n"+resultsText(results))
	golden.Check(t, filepath.Join("..", "..", "..", "docs", "pictures", "results-cli.svg"), picture)
}
