package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// comparisonForms of the output, with the server's names for them.
var comparisonForms = map[string]string{"table": "text", "json": "json", "csv": "csv", "latex": "latex", "html": "html"}

// comparisonOutputs in the order of the help.
var comparisonOutputs = []string{"table", "json", "csv", "latex", "html"}

type compareOptions struct {
	roundOptions
	output, by, campaign string
	reference            referenceFile
	uids                 []string
	// notes on what is compared.
	notes io.Writer
}

func newCompare(t *target) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare NAME[@UID]...",
		Short: "Compare runs: one table, effect sizes, tests",
		Long: "compare reads the archive: of every NAME the newest run, or the one whose UID begins as given. Runs are labelled\n" +
			"by what differs between their specs; those that differ only in the seed are repeats of one condition. --by makes\n" +
			"conditions of the values of one field instead, or of each run (--by run).\n" +
			"With --campaign it adds all runs of a campaign's round that have results, labelled by their levels.\n" +
			"With --reference published or earlier figures stand beside those of the runs, else those of the runs' campaigns do.\n" +
			"What the figures and tests mean, and the form of such a file: docs/reference/comparison.md.",
		Example: "  vignette compare lan satcom\n" +
			"  vignette compare quickstart@5f0c2a quickstart@9b1d44 --by run\n" +
			"  vignette compare e4-2s e4-10s -o html > e4.html\n" +
			"  vignette compare lan-1 lan-2 satcom-1 satcom-2 --by waveform -o latex > table.tex\n" +
			"  vignette compare --campaign e4-s1 --where period=2s --by link\n" +
			"  vignette compare lan satcom --reference published.csv\n" +
			"  vignette compare --uid 1c5e0b7e-65a7-4f0e-9d5f-2f4b8c1d3a90 --uid 7d0f3c52-93bb-4a55-8a43-b0a7e9e1c2f4 -o json",
		Args:              o.checkArguments,
		ValidArgsFunction: t.completeExperiments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.reference.read(); err != nil {
				return err
			}
			c, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			o.notes = cmd.ErrOrStderr()
			return t.explainComparison(c.compare(cmd.Context(), args, o, cmd.OutOrStdout()))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "table", "`form`: "+strings.Join(comparisonOutputs, ", "))
	flags.StringVar(&o.by, "by", "", "`field` of the spec, such as delay or apps.bft.publisher.period, whose values are compared; run: each run with each other")
	flags.StringSliceVar(&o.uids, "uid", nil, "`UID` of a further run of the namespace, of any name")
	flags.StringVar(&o.campaign, "campaign", "", "`NAME` of a campaign whose runs are compared")
	o.reference.addFlag(cmd)
	o.addFlags(cmd)
	complete(cmd, "campaign", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return t.completeCampaign(cmd, nil, typed)
	})
	complete(cmd, "output", cobra.FixedCompletions(comparisonOutputs, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "by", cobra.FixedCompletions([]string{"run"}, cobra.ShellCompDirectiveNoFileComp))
	noCompletion(cmd, "uid")
	return cmd
}

// completeExperiments offers the experiments of the namespace for every argument.
func (t *target) completeExperiments(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return t.completeNames(cmd, typed, v1alpha1.GroupVersion.WithKind("ExperimentList"), true)
}

// checkArguments refuses an invalid comparison before the cluster is asked.
func (o *compareOptions) checkArguments(cmd *cobra.Command, args []string) error {
	if _, known := comparisonForms[o.output]; !known {
		return fmt.Errorf("--output %q: want %s", o.output, strings.Join(comparisonOutputs, ", "))
	}
	for _, arg := range args {
		if arg == "" {
			return errors.New("one of the NAMEs is empty: want that of an experiment")
		}
		if isDirectory(arg) {
			return fmt.Errorf("%s is a folder: vignette compare takes runs in the archive; downloaded ones are compared by python3 -m vignette_analysis compare DIR DIR", arg)
		}
	}
	if o.campaign == "" && (o.round != 0 || len(o.where) > 0) {
		return errors.New("--round and --where are for --campaign")
	}
	if o.campaign == "" && len(args)+len(o.uids) < 2 {
		return fmt.Errorf("%s needs at least two runs, as NAME, NAME@UID or --uid UID, or --campaign NAME: see %[1]s --help", cmd.CommandPath())
	}
	return nil
}

func isDirectory(arg string) bool {
	if strings.ContainsRune(arg, filepath.Separator) {
		return true
	}
	_, err := os.Stat(filepath.Join(arg, "run.json"))
	return err == nil
}

func (c *cluster) compare(ctx context.Context, names []string, o compareOptions, out io.Writer) error {
	uids := slices.Clone(o.uids)
	for i, name := range names {
		uid, err := c.comparedRun(ctx, name)
		if err != nil {
			return err
		}
		if slices.Contains(uids, uid) {
			return fmt.Errorf("%s: run %s is there twice: NAME@UID chooses among the runs of a name", name, uid)
		}
		uids = slices.Insert(uids, i, uid)
	}
	if o.campaign != "" {
		measured, err := c.measuredRuns(ctx, o.campaign, o.roundOptions, o.notes)
		if err != nil {
			return err
		}
		if len(uids) == 0 { // runs that are named one by one may be of these points
			if err := o.reference.leaveOut(measured.pointsWithout, o.notes); err != nil {
				return err
			}
		}
		uids = append(uids, slices.DeleteFunc(measured.uids, func(uid string) bool { return slices.Contains(uids, uid) })...)
	}
	content, err := c.archive.Compare(ctx, uids, o.reference.with(comparisonForms[o.output], o.by))
	if err != nil {
		return err
	}
	defer content.Close()
	if o.output != "table" {
		out = contentWriter(out)
	}
	_, err = io.Copy(out, content)
	return err
}

// comparedRun returns the UID of the newest run of a name, or of NAME@UID, where the UID may be abbreviated.
func (c *cluster) comparedRun(ctx context.Context, which string) (string, error) {
	name, wanted, _ := strings.Cut(which, "@")
	if wanted == "" {
		return c.findRun(ctx, name, "")
	}
	runs, err := c.archive.Runs(ctx, c.namespace, name)
	if err != nil {
		return "", err
	}
	var known, found []string
	for _, run := range runs {
		known = append(known, run.UID)
		if strings.HasPrefix(run.UID, wanted) {
			found = append(found, run.UID)
		}
	}
	switch {
	case len(runs) == 0:
		return c.findRun(ctx, name, "")
	case len(found) == 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s: %d runs of %s in namespace %s have a UID with this beginning; want one of: %s", which, len(found), name, c.namespace, strings.Join(known, ", "))
}

// explainComparison adds what to do about an error, unless the server's message says it.
func (t *target) explainComparison(err error) error {
	if e := asServerError(err); e != nil && apiServerMessage(e) == "" {
		switch e.Status {
		case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusTooManyRequests,
			http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusInsufficientStorage:
			return errors.New(e.Message)
		}
	}
	return t.explainArchive(err)
}
