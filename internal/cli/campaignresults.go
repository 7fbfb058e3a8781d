package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/confidence"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/safetext"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// campaignForms of the output.
var campaignForms = []string{"table", "wide", "json", "csv"}

type campaignResultsOptions struct {
	roundOptions
	output string
	runs   bool
}

func newCampaignResults(t *target) *cobra.Command {
	var o campaignResultsOptions
	cmd := &cobra.Command{
		Use:   "results NAME",
		Short: "Show what a campaign has measured: a row for each point, or for each run",
		Long: "results shows a row for each point: its levels, how many of its runs have been measured, and over these the share delivered and\n" +
			"the mean of the runs' median and mean delays, with the half width of the 95 % confidence interval (by Wilson's score, and by\n" +
			"Student's t) where there are at least two runs. Campaigns with requests also have their share of receipts, and the mean response\n" +
			"time. With --runs it shows each run. Runs of deleted experiments and campaigns, and of earlier rounds,\n" +
			"are read from the archive.",
		Example: "  vignette campaign results e4-s1\n" +
			"  vignette campaign results e4-s1 --runs -o wide\n" +
			"  vignette campaign results nightly --round 3 --where link=tactical-1 --where period=2s\n" +
			"  vignette campaign results e4-s1 -o csv > e4-s1.csv",
		Args:              oneArgument(nameOfCampaign),
		ValidArgsFunction: t.completeCampaign,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(campaignForms, o.output) {
				return fmt.Errorf("--output %q: want %s", o.output, strings.Join(campaignForms, ", "))
			}
			c, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			return t.explainArchive(c.campaignResults(cmd.Context(), args[0], o, cmd.OutOrStdout()))
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "`form`: "+strings.Join(campaignForms, ", "))
	cmd.Flags().BoolVar(&o.runs, "runs", false, "a row for each run")
	complete(cmd, "output", cobra.FixedCompletions(campaignForms, cobra.ShellCompDirectiveNoFileComp))
	o.addFlags(cmd)
	return cmd
}

func (c *cluster) campaignResults(ctx context.Context, name string, o campaignResultsOptions, out io.Writer) error {
	r, err := c.readRound(ctx, name, o.roundOptions)
	if err != nil {
		return err
	}
	if err := c.readFigures(ctx, r); err != nil {
		return err
	}
	switch {
	case o.output == "json":
		return writeJSON(out, r.document())
	case o.output == "csv" && o.runs:
		return writeCSV(out, r.runRecords())
	case o.output == "csv":
		return writeCSV(out, r.pointRecords())
	}
	rows := r.pointTable(o.output == "wide")
	if o.runs {
		rows = r.runTable(o.output == "wide")
	}
	_, err = io.WriteString(out, r.title()+"\n\n"+rows.String()+r.footnotes(!o.runs))
	return err
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func writeCSV(out io.Writer, records [][]string) error {
	w := csv.NewWriter(out)
	for _, record := range records {
		for i, cell := range record {
			record[i] = safetext.CSVCell(cell)
		}
	}
	return w.WriteAll(records)
}

// point of a round, with what its runs have measured together.
type point struct {
	// first of its runs, for its name and levels.
	first campaignRun
	runs  []campaignRun
	// measured are its runs with figures. Those with a spec that was edited since are counted in earlierSpec instead.
	measured             []campaignRun
	earlierSpec          int
	delivered            estimate
	medianDelay          estimate
	meanDelay            estimate
	receipts             estimate
	meanResponse         estimate
	failed, skipped      int
	gaps, warnings, late int
	// offBy says of each late run by how much its figures are off at most.
	offBy []string
}

// estimate of a figure by the mean of repeats. A half width of NaN is unknown.
type estimate struct {
	n               int
	mean, halfWidth float64
}

func estimateMean(values []float64) estimate {
	mean, halfWidth := confidence.Mean(values)
	return estimate{len(values), mean, halfWidth}
}

// points of the round in the order in which they first appear.
func (r *round) points() (points []point) {
	at := map[string]int{}
	for _, run := range r.runs {
		i, known := at[run.point]
		if !known {
			i = len(points)
			at[run.point] = i
			points = append(points, point{first: run})
		}
		points[i].runs = append(points[i].runs, run)
	}
	for i := range points {
		points[i].sum()
	}
	return points
}

// estimateShare estimates the share delivered in per cent. Its half width is the wider side of the interval.
func estimateShare(runs []confidence.Counts) estimate {
	share, low, high := confidence.Share(runs)
	return estimate{len(runs), 100 * share, 100 * max(share-low, high-share)}
}

func (p *point) sum() {
	var delivered, receipts []confidence.Counts
	var medians, means, responses []float64
	for _, run := range p.runs {
		switch v1alpha1.RunPhase(run.phase) {
		case v1alpha1.RunFailed, v1alpha1.RunLost:
			p.failed++
		case v1alpha1.RunSkipped:
			p.skipped++
		}
		if f := run.figures; f != nil && f.keptUp != nil && !*f.keptUp {
			p.late++
			p.offBy = append(p.offBy, f.offBy)
		}
	}
	p.choose()
	for _, run := range p.measured {
		f := run.figures
		p.gaps += f.gaps
		p.warnings += f.warnings
		if f.deliveredPercent != nil {
			delivered = append(delivered, confidence.Counts{Received: f.received, Offered: f.offered, Messages: f.triggered})
		}
		if f.medianDelaySeconds != nil {
			medians = append(medians, *f.medianDelaySeconds)
		}
		if f.meanDelaySeconds != nil {
			means = append(means, *f.meanDelaySeconds)
		}
		if f.receiptPercent != nil {
			receipts = append(receipts, confidence.Counts{Received: f.receipts, Offered: f.requests, Messages: f.requests})
		}
		if f.meanResponseSeconds != nil {
			responses = append(responses, *f.meanResponseSeconds)
		}
	}
	p.delivered, p.medianDelay, p.meanDelay = estimateShare(delivered), estimateMean(medians), estimateMean(means)
	p.receipts, p.meanResponse = estimateShare(receipts), estimateMean(responses)
}

// choose the runs whose figures count: those with the point's last spec, as for stopWhen.
func (p *point) choose() {
	last := ""
	for _, run := range p.runs {
		last = cmp.Or(run.specDigest, last)
	}
	for _, run := range p.runs {
		switch {
		case run.figures == nil:
		case run.specDigest == last:
			p.measured = append(p.measured, run)
		default:
			p.earlierSpec++
		}
	}
}

// nameHeads are the heads of the columns that name a point.
func (r *round) nameHeads() []string {
	heads := slices.Clone(r.axes)
	if r.named {
		heads = append([]string{"POINT"}, heads...)
	}
	for i := range heads {
		heads[i] = strings.ToUpper(heads[i])
	}
	return heads
}

// nameCells are the cells below those heads.
func (r *round) nameCells(run campaignRun) []string {
	if r.named {
		return append([]string{run.point}, r.levelsOf(run)...)
	}
	return r.levelsOf(run)
}

// row of names, aligned to the left, and figures, aligned to the right.
func row(names []string, figures ...string) []cell {
	cells := left(names...)
	for _, figure := range figures {
		cells = append(cells, cell{text: figure, right: true})
	}
	return cells
}

func (r *round) pointTable(wide bool) table {
	heads := slices.Concat([]string{"RUNS", "DELIVERED %", "MEDIAN DELAY", "MEAN DELAY"}, r.requestHeads(), []string{"WARNINGS", "GAPS"})
	if wide {
		heads = append(heads, "FAILED", "SKIPPED", "LATE", "SENT", "OFFERED", "RECEIVED")
	}
	rows := table{row(r.nameHeads(), heads...)}
	for _, p := range r.points() {
		cells := []string{fmt.Sprintf("%d/%d", len(p.measured), len(p.runs)), p.delivered.text(percentText), p.medianDelay.text(seconds), p.meanDelay.text(seconds)}
		if r.hasRequests() {
			cells = append(cells, p.receipts.text(percentText), p.meanResponse.text(seconds))
		}
		cells = append(cells, count(int64(p.warnings)), count(int64(p.gaps)))
		if wide {
			var sent, offered, received int64
			for _, run := range p.measured {
				f := run.figures
				sent, offered, received = sent+f.sent, offered+f.offered, received+f.received
			}
			cells = append(cells, count(int64(p.failed)), count(int64(p.skipped)), count(int64(p.late)), count(sent), count(offered), count(received))
		}
		rows = append(rows, row(r.nameCells(p.first), cells...))
	}
	return rows
}

// text of a mean with its interval, if there is one.
func (e estimate) text(write func(float64) string) string {
	switch {
	case e.n == 0:
		return "-"
	case math.IsNaN(e.halfWidth):
		return write(e.mean)
	}
	return write(e.mean) + " ± " + write(e.halfWidth)
}

func percentText(percent float64) string {
	text := strconv.FormatFloat(percent, 'f', 2, 64)
	if text == "100.00" && percent < 100 {
		return "99.99" // a single loss or arrival must stay visible
	}
	if text == "0.00" && percent > 0 {
		return "0.01"
	}
	return text
}

func (r *round) runTable(wide bool) table {
	heads := append(r.nameHeads(), "REPEAT", "PHASE")
	figureHeads := slices.Concat([]string{"DELIVERED %", "MEDIAN DELAY", "MEAN DELAY"}, r.requestHeads(), []string{"WARNINGS", "GAPS"})
	var tail []string
	if wide {
		figureHeads = append(figureHeads, "SEED", "SENT", "OFFERED", "RECEIVED", "TOOK")
		tail = []string{"EXPERIMENT", "UID", "MESSAGE"}
	}
	rows := table{append(row(heads, figureHeads...), left(tail...)...)}
	for _, run := range r.runs {
		cells := runCells(run, r.hasRequests())
		if wide {
			cells = append(cells, wideCells(run)...)
			tail = []string{run.name, run.uid, oneLine(run.message)}
		}
		names := append(r.nameCells(run), orDash(int64(run.repeat)), run.phase)
		rows = append(rows, append(row(names, cells...), left(tail...)...))
	}
	return rows
}

func runCells(run campaignRun, requests bool) []string {
	f := run.figures
	if f == nil {
		f = &runFigures{}
	}
	cells := []string{textOf(f.deliveredPercent, percentText), textOf(f.medianDelaySeconds, seconds), textOf(f.meanDelaySeconds, seconds)}
	if requests {
		cells = append(cells, textOf(f.receiptPercent, percentText), textOf(f.meanResponseSeconds, seconds))
	}
	if run.figures == nil {
		return append(cells, "-", "-")
	}
	return append(cells, count(int64(f.warnings)), count(int64(f.gaps)))
}

// textOf a figure; a dash if it is unknown.
func textOf(figure *float64, write func(float64) string) string {
	if figure == nil {
		return "-"
	}
	return write(*figure)
}

// hasRequests reports whether some run measured requests.
func (r *round) hasRequests() bool {
	return slices.ContainsFunc(r.runs, func(run campaignRun) bool { return run.figures != nil && run.figures.receiptPercent != nil })
}

// requestHeads of the columns of requests; none if no run has any.
func (r *round) requestHeads() []string {
	if !r.hasRequests() {
		return nil
	}
	return []string{"RECEIPTS %", "MEAN RESPONSE"}
}

func wideCells(run campaignRun) []string {
	cells := []string{orDash(run.seed), "-", "-", "-", "-"}
	if f := run.figures; f != nil {
		cells = []string{orDash(run.seed), count(f.sent), count(f.offered), count(f.received), "-"}
	}
	if run.took > 0 {
		cells[4] = clock(run.took)
	}
	return cells
}

// orDash writes a number, or a dash if it is unknown.
func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return count(n)
}

func (r *round) title() string {
	done := 0
	for _, run := range r.runs {
		switch v1alpha1.RunPhase(run.phase) {
		case v1alpha1.RunSucceeded, v1alpha1.RunFailed, v1alpha1.RunSkipped, v1alpha1.RunLost:
			done++
		}
	}
	text := fmt.Sprintf("%s in namespace %s: round %d, %d of %d runs done", r.campaign, r.namespace, r.number, done, len(r.runs))
	if r.phase != "" {
		text += ", " + r.phase
	}
	return text
}

// footnotes explain the figures.
func (r *round) footnotes(means bool) string {
	var failed, late, earlier, repeated int
	unknown := false
	var offBy []string
	for _, p := range r.points() {
		offBy = append(offBy, p.offBy...)
		failed, late, earlier = failed+p.failed, late+p.late, earlier+p.earlierSpec
		repeated = max(repeated, len(p.measured))
		unknown = unknown || len(p.measured) > 1 && p.measured[0].specDigest == ""
	}
	text := "\n"
	if means && repeated > 1 {
		text += "±: half of the 95 % confidence interval over repeats (times: Student's t; shares: Wilson's score, the wider side)\n" +
			"times are means of the runs' own; vignette campaign report takes the deliveries of all runs of a point together\n"
		if repeated < confidence.FewestRepeats {
			text += fmt.Sprintf("%s of a point are too few to estimate the spread: make %d or more\n", countRuns(repeated), confidence.FewestRepeats)
		}
	}
	if failed > 0 {
		text += fmt.Sprintf("%s failed or lost, without figures: vignette campaign status -n %s %s\n", countRuns(failed), r.namespace, r.campaign)
	}
	if means && earlier > 0 {
		text += fmt.Sprintf("Left out: %s with an earlier spec, see vignette campaign results -n %s %s --runs\n", countRuns(earlier), r.namespace, r.campaign)
	}
	if means && unknown {
		text += fmt.Sprintf("Repeats without a digest of their spec in the record may have different specs: vignette campaign report -n %s %s\n", r.namespace, r.campaign)
	}
	if late > 0 {
		off := "losses and delays may be those of an overloaded machine"
		if worst := runapi.WorstBounds(offBy); worst != "" {
			off = "figures are off by at most " + worst
		}
		text += fmt.Sprintf("In %s the emulation did NOT keep up: %s\n", countRuns(late), off)
	}
	if text == "\n" {
		return ""
	}
	return text
}

func countRuns(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}
