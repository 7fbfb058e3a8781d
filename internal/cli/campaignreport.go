package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

type campaignReportOptions struct {
	roundOptions
	reportFile
	by        string
	reference referenceFile
}

func newCampaignReport(t *target) *cobra.Command {
	var o campaignReportOptions
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Fetch the comparison of a campaign's runs, one HTML file that needs no network",
		Long: "report has the analysis compare the runs of a round that have results, labelled by their levels, and writes one HTML\n" +
			"file. Repeats of a point are one condition. --where selects points, --by compares the levels of one axis.\n" +
			"--reference takes the reference figures from a file, in place of the campaign's.\n" +
			"Other forms: vignette compare --campaign NAME -o csv. What the figures and tests mean: docs/reference/comparison.md.",
		Example: "  vignette campaign report e4-s1\n" +
			"  vignette campaign report e4-s1 --where period=2s --open\n" +
			"  vignette campaign report nightly --round 3 --by link -o - > nightly.html",
		Args:              oneArgument(nameOfCampaign),
		ValidArgsFunction: t.completeCampaign,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.reference.read(); err != nil {
				return err
			}
			return o.fetch(cmd, t, args[0], t.explainComparison, func(c *cluster) (string, error) {
				return c.campaignReport(cmd.Context(), args[0], o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			})
		},
	}
	o.reportFile.addFlags(cmd, "NAME-ROUND-report.html")
	cmd.Flags().StringVar(&o.by, "by", "", "`axis` whose levels are compared; run: each run with each other")
	complete(cmd, "by", cobra.FixedCompletions([]string{"run"}, cobra.ShellCompDirectiveNoFileComp))
	o.reference.addFlag(cmd)
	o.roundOptions.addFlags(cmd)
	return cmd
}

// campaignReport writes the comparison and returns its file's name; none for standard output.
func (c *cluster) campaignReport(ctx context.Context, name string, o campaignReportOptions, out, notes io.Writer) (file string, err error) {
	measured, err := c.measuredRuns(ctx, name, o.roundOptions, notes)
	if err != nil {
		return "", err
	}
	if err := o.reference.leaveOut(measured.pointsWithout, notes); err != nil {
		return "", err
	}
	content, err := c.archive.Compare(ctx, measured.uids, o.reference.with("html", o.by))
	if err != nil {
		return "", err
	}
	defer content.Close()
	return o.write(content, fmt.Sprintf("%s-%d-report.html", name, measured.number), out)
}

// measuredRound has the runs of a round that are compared.
type measuredRound struct {
	number int64
	// uids of the runs that have results, in the order of the matrix.
	uids []string
	// pointsWithout a run among them.
	pointsWithout []string
}

func (c *cluster) measuredRuns(ctx context.Context, name string, o roundOptions, notes io.Writer) (*measuredRound, error) {
	r, err := c.readRound(ctx, name, o)
	if err != nil {
		return nil, err
	}
	measured := &measuredRound{number: r.number}
	with := map[string]bool{}
	for _, run := range r.inOrder() {
		if run.uid != "" && run.phase == string(v1alpha1.RunSucceeded) {
			measured.uids = append(measured.uids, run.uid)
			with[run.point] = true
		}
	}
	for _, run := range slices.Concat(r.runs, r.others) {
		if !with[run.point] && !slices.Contains(measured.pointsWithout, run.point) {
			measured.pointsWithout = append(measured.pointsWithout, run.point)
		}
	}
	uids := measured.uids
	switch {
	case len(uids) < 2:
		return nil, fmt.Errorf("a comparison needs at least two runs with results, and round %d of campaign %s has %d: vignette campaign status -n %s %[2]s",
			r.number, name, len(uids), r.namespace)
	case len(uids) > runapi.MaxCompared:
		return nil, fmt.Errorf("round %d of campaign %s has %d runs with results, and a comparison has at most %d: choose some with --where AXIS=LEVEL, of axes %s",
			r.number, name, len(uids), runapi.MaxCompared, strings.Join(r.axes, ", "))
	case len(uids) < len(r.runs):
		fmt.Fprintf(notes, "%d of %d runs have results and are compared\n", len(uids), len(r.runs))
	}
	return measured, nil
}

// inOrder returns the runs point by point, in whatever order they were started.
func (r *round) inOrder() (runs []campaignRun) {
	for _, p := range r.points() {
		slices.SortStableFunc(p.runs, func(a, b campaignRun) int { return int(a.repeat) - int(b.repeat) })
		runs = append(runs, p.runs...)
	}
	return runs
}
