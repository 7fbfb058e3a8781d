package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// campaign is what is kept of vignette campaign results -o json.
type campaign struct {
	Campaign string   `json:"campaign"`
	Axes     []string `json:"axes"`
	Runs     []run    `json:"runs"`
}

type run struct {
	Levels   map[string]string `json:"levels"`
	Repeat   int               `json:"repeat,omitempty"`
	Seed     int64             `json:"seed"`
	Phase    string            `json:"phase"`
	Messages *struct {
		Sent     int64 `json:"sent"`
		Offered  int64 `json:"offered"`
		Received int64 `json:"received"`
	} `json:"messages"`
	DeliveredPercent   *float64 `json:"deliveredPercent"`
	MedianDelaySeconds *float64 `json:"medianDelaySeconds"`
	MeanDelaySeconds   *float64 `json:"meanDelaySeconds"`
	Gaps               int      `json:"gaps"`
	KeptUp             *bool    `json:"keptUp"`
	OffByAtMost        string   `json:"offByAtMost,omitempty"`
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

Results of the [further studies](../../../../scenarios/further/README.md) in their short form, a row for each point, of one run each. They are from the machine of [the studies' page](../../studies.md).
The files beside this page have the same figures. Delays are from sent to received; waiting before that is not in them.

**To repeat:** ` + "`vignette run scenarios/further/campaigns/NAME.yaml --watch`, `vignette campaign results NAME -o json > NAME.json`, `go run ./hack/measured NAME.json`." + `
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
		fmt.Fprintf(&b, "\n## %s\n\n%s%s", strings.TrimSuffix(c.Campaign, "-short"), c.points(), c.table())
	}
	return b.String(), nil
}

func (c *campaign) table() string {
	rows := [][]string{append(slices.Clone(c.Axes), "delivered", "%", "median", "mean", "gaps", "kept up")}
	for i := range c.Runs {
		r := &c.Runs[i]
		if !r.ended() {
			continue
		}
		var cells []string
		for _, axis := range c.Axes {
			cells = append(cells, r.Levels[axis])
		}
		rows = append(rows, append(cells, r.figures()...))
	}
	return markdownTable(rows)
}

// markdownTable returns rows, the first of which is the head.
func markdownTable(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return b.String()
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
		return []string{r.Phase, "-", "-", "-", "-", "-"}
	}
	optional := func(value *float64, text func(float64) string) string {
		if value == nil {
			return "-"
		}
		return text(*value)
	}
	return []string{fmt.Sprintf("%d of %d", r.Messages.Received, r.Messages.Offered), optional(r.DeliveredPercent, func(v float64) string { return fmt.Sprintf("%.1f", v) }),
		optional(r.MedianDelaySeconds, seconds), optional(r.MeanDelaySeconds, seconds), fmt.Sprint(r.Gaps), verdict(r.KeptUp, r.OffByAtMost)}
}
