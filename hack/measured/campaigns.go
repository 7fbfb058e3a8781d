package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// campaign is what is kept of vignette campaign results -o json.
type campaign struct {
	Campaign string   `json:"campaign"`
	Axes     []string `json:"axes"`
	Runs     []run    `json:"runs"`
}

type run struct {
	Levels             map[string]string `json:"levels"`
	Repeat             int               `json:"repeat,omitempty"`
	Seed               int64             `json:"seed"`
	Phase              string            `json:"phase"`
	Messages           *messages         `json:"messages"`
	DeliveredPercent   *float64          `json:"deliveredPercent"`
	MedianDelaySeconds *float64          `json:"medianDelaySeconds"`
	MeanDelaySeconds   *float64          `json:"meanDelaySeconds"`
	// ReceiptPercent and MeanResponseSeconds are of requests; nil if there were none.
	ReceiptPercent      *float64 `json:"receiptPercent,omitempty"`
	MeanResponseSeconds *float64 `json:"meanResponseSeconds,omitempty"`
	Gaps                int      `json:"gaps"`
	KeptUp              *bool    `json:"keptUp"`
	OffByAtMost         string   `json:"offByAtMost,omitempty"`
}

type messages struct {
	Sent     int64 `json:"sent"`
	Offered  int64 `json:"offered"`
	Received int64 `json:"received"`
}

func readCampaign(file string) (*campaign, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &campaign{}
	if err := json.Unmarshal(text, c); err != nil || c.Campaign == "" || len(c.Runs) == 0 {
		return nil, fmt.Errorf("%s: want what vignette campaign results NAME -o json prints (%v)", file, err)
	}
	return c, nil
}

const campaignHead = `# Campaigns of the studies

Results of campaigns of the [studies](../../../../scenarios/README.md), of one run each unless there is a column of repeats: full forms, or short ones where so named.
They are from the machine of [the studies' page](../../studies.md). The files beside this page have the same figures. Delays are from sent to received; waiting before that is not in them.

**To repeat:** ` + "`vignette run scenarios/STUDY/campaigns/FILE.yaml --watch`, `vignette campaign results NAME -o json > NAME.json`, `go run ./hack/measured NAME.json`." + `
`

// campaignPage returns the page of all campaigns of a directory.
func campaignPage(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(campaignHead)
	for _, file := range files {
		c, err := readCampaign(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s", c.Campaign, c.points())
		if len(c.Runs) > mostRows && len(c.Axes) > 1 && !c.repeated() {
			b.WriteString(c.grid())
		} else {
			b.WriteString(c.table())
		}
	}
	return b.String(), nil
}

// mostRows is the number of runs above which a campaign becomes a grid: a row for each run would hide what differs.
const mostRows = 24

// table has a row for each run.
func (c *campaign) table() string {
	rows := [][]string{append(slices.Clone(c.Axes), "repeat", "delivered", "%", "median", "mean", "receipts", "mean response", "gaps", "kept up")}
	for i := range c.Runs {
		r := &c.Runs[i]
		if !r.ended() {
			continue
		}
		repeat := ""
		if c.repeated() {
			repeat = strconv.Itoa(r.Repeat)
		}
		rows = append(rows, slices.Concat(r.levels(c.Axes), []string{repeat}, r.figures()))
	}
	return markdownTable(rows)
}

// repeated reports whether points have several runs: a cell of a grid has room for one.
func (c *campaign) repeated() bool {
	return slices.ContainsFunc(c.Runs, func(r run) bool { return r.Repeat > 1 })
}

// grid has a column for each level of the first axis, and a row for each combination of the others.
func (c *campaign) grid() string {
	across, down := c.Axes[0], c.Axes[1:]
	rows := [][]string{slices.Clone(down)}
	columns, byLevels := map[string]int{}, map[string]int{}
	for i := range c.Runs {
		r := &c.Runs[i]
		if !r.ended() {
			continue
		}
		column, known := columns[r.Levels[across]]
		if !known {
			column = len(down) + len(columns)
			columns[r.Levels[across]] = column
			rows[0] = append(rows[0], r.Levels[across])
		}
		levels := r.levels(down)
		key := strings.Join(levels, "\x00")
		row, known := byLevels[key]
		if !known {
			row = len(rows)
			byLevels[key] = row
			rows = append(rows, levels)
		}
		rows[row] = append(rows[row], make([]string, max(0, column+1-len(rows[row])))...)
		rows[row][column] = r.cell()
	}
	return "Each cell has what was delivered and the median delay; of requests what had a receipt, and the mean response time.\n" +
		"An asterisk marks a run that did not keep up; the file says how far its figures may be off.\n\n" + markdownTable(rows)
}

// levels are those of some axes, in their order.
func (r *run) levels(axes []string) (levels []string) {
	for _, axis := range axes {
		levels = append(levels, r.Levels[axis])
	}
	return levels
}

// cell is a run in a grid.
func (r *run) cell() string {
	if r.Messages == nil {
		return r.Phase
	}
	share, delay := r.DeliveredPercent, r.MedianDelaySeconds
	if r.ReceiptPercent != nil {
		share, delay = r.ReceiptPercent, r.MeanResponseSeconds
	}
	text := optional(share, percent) + " %"
	if delay != nil {
		text += ", " + seconds(*delay)
	}
	if r.KeptUp != nil && !*r.KeptUp {
		text += " *"
	}
	return text
}

// markdownTable returns rows, the first of which is the head. It drops columns without a figure, and puts a dash into other empty cells.
func markdownTable(rows [][]string) string {
	lines := make([]string, len(rows))
	rule := "|"
	for column, head := range rows[0] {
		used := false
		for _, row := range rows[1:] {
			used = used || column < len(row) && row[column] != ""
		}
		if !used {
			continue
		}
		rule += "---|"
		for i, row := range rows {
			cell := head
			if i > 0 {
				cell = "-"
				if column < len(row) {
					cell = cmp.Or(row[column], cell)
				}
			}
			lines[i] += "| " + cell + " "
		}
	}
	return strings.Join(slices.Insert(lines, 1, strings.TrimSuffix(rule, "|")), "|\n") + "|\n"
}

// ended reports whether a run has results or has failed.
func (r *run) ended() bool { return r.Messages != nil || r.Phase == "Failed" }

// points says how many of a campaign's points are in its table, where some are not.
func (c *campaign) points() string {
	ended := 0
	for i := range c.Runs {
		if c.Runs[i].ended() {
			ended++
		}
	}
	if ended == len(c.Runs) {
		return ""
	}
	return fmt.Sprintf("%d of %d points have been run.\n\n", ended, len(c.Runs))
}

// figures are the cells of a run behind its levels.
func (r *run) figures() []string {
	if r.Messages == nil {
		return []string{r.Phase}
	}
	return []string{fmt.Sprintf("%d of %d", r.Messages.Received, r.Messages.Offered), optional(r.DeliveredPercent, percent), optional(r.MedianDelaySeconds, seconds),
		optional(r.MeanDelaySeconds, seconds), optional(r.ReceiptPercent, percent), optional(r.MeanResponseSeconds, seconds), fmt.Sprint(r.Gaps), verdict(r.KeptUp, r.OffByAtMost)}
}

// optional words a figure, and is empty without one.
func optional(value *float64, text func(float64) string) string {
	if value == nil {
		return ""
	}
	return text(*value)
}

// percent is rounded to 0 or 100 only if it is exactly that.
func percent(v float64) string {
	switch text := fmt.Sprintf("%.1f", v); {
	case text == "100.0" && v < 100:
		return "99.9"
	case text == "0.0" && v > 0:
		return "0.1"
	default:
		return text
	}
}
