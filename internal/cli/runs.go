package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/wording"
)

func newRuns(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List and delete the runs that the archive keeps",
		Long:  "runs looks after the runs in the archive, which keeps them when their experiments are deleted.",
		Example: "  vignette runs list\n" +
			"  vignette runs delete quickstart",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRunsList(t), newRunsDelete(t))
	return cmd
}

func newRunsList(t *target) *cobra.Command {
	var output string
	var all bool
	cmd := &cobra.Command{
		Use: "list [NAME]", Aliases: []string{"ls"}, Short: "List the archived runs of a namespace",
		Long: "list shows the archived runs of a namespace, or those of one name, the newest first: their phase, whether the emulation\n" +
			"kept up, T0, campaign, the size of all their files, and UID.",
		Example: "  vignette runs list\n" +
			"  vignette runs list quickstart\n" +
			"  vignette runs list --all-namespaces\n" +
			"  vignette runs list -o json | jq -r '.[].name'",
		Args:              atMostOne("the NAME of an experiment"),
		ValidArgsFunction: t.completeArchived,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			config, namespace, err := t.load()
			if err != nil {
				return err
			}
			if all {
				namespace = "" // a namespace's archive lists only its own runs
			}
			c, err := dial(cmd.Context(), config, namespace)
			if err != nil {
				return err
			}
			err = c.listRuns(cmd.Context(), strings.Join(args, ""), output, cmd.OutOrStdout())
			if e := asServerError(err); all && e != nil && e.Status == http.StatusForbidden {
				return fmt.Errorf("%s: --all-namespaces needs the role vignette-viewer in all namespaces; -n lists the runs of one", e.Said())
			}
			return t.explainArchive(err)
		},
	}
	addOutput(cmd, &output)
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the runs of all namespaces, with the right to read them all")
	return cmd
}

func newRunsDelete(t *target) *cobra.Command {
	var uids []string
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete archived runs with all their files",
		Long: "delete shows the archived runs of a name, and with --yes deletes all of them, or those of --uid: records, logs, captures\n" +
			"and results. Nothing brings them back. A run that goes on must end first. It needs the role vignette-admin.",
		Example: "  vignette runs delete quickstart\n" +
			"  vignette runs delete quickstart --yes\n" +
			"  vignette runs delete quickstart --uid 0b6fd5cc-5c1e-4f5e-9d43-6a0f3c5f6d11 --yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("uid") && (len(uids) == 0 || slices.Contains(uids, "")) { // such as that of an unset variable
				return errors.New("--uid is empty: want the UID of a run, as vignette runs list shows it; without --uid all runs of the name are deleted")
			}
			return oneArgument("the NAME of an experiment")(cmd, args)
		},
		ValidArgsFunction: t.completeArchived,
		RunE: t.run(func(c *cluster, cmd *cobra.Command, args []string) error {
			return t.explainArchive(c.deleteRuns(cmd.Context(), args[0], uids, yes, cmd.OutOrStdout()))
		}),
	}
	cmd.Flags().StringSliceVar(&uids, "uid", nil, "delete only the run with this `UID`; may be repeated")
	cmd.Flags().BoolVar(&yes, "yes", false, "delete the runs, not only show them")
	noCompletion(cmd, "uid")
	return cmd
}

// completeArchived offers the names of the archived runs; none if the archive does not answer.
func (t *target) completeArchived(cmd *cobra.Command, args []string, typed string) (names []string, directive cobra.ShellCompDirective) {
	directive = cobra.ShellCompDirectiveNoFileComp
	ctx, cancel := completionContext(cmd)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil || len(args) > 0 {
		return nil, directive
	}
	runs, _ := c.archive.Runs(ctx, c.namespace, "") // completion cannot show errors
	for _, run := range runs {
		names = append(names, run.Name)
	}
	slices.Sort(names)
	return withPrefix(typed, slices.Compact(names)), directive
}

func (c *cluster) listRuns(ctx context.Context, name, output string, out io.Writer) error {
	runs, err := c.archive.Runs(ctx, c.namespace, name)
	if err != nil {
		return err
	}
	if output == "json" {
		return writeJSON(out, runs)
	}
	if len(runs) == 0 {
		where := "namespace " + c.namespace
		if c.namespace == "" {
			where = "any namespace"
		}
		_, err := fmt.Fprintf(out, "The archive has no such runs in %s\n", where)
		return err
	}
	_, err = io.WriteString(out, runsTable(runs, c.namespace == ""))
	return err
}

// runsTable shows runs; with their namespaces if they may be in several.
func runsTable(runs []runapi.RunSummary, namespaces bool) string {
	rows, problems := table{inNamespace("NAMESPACE", namespaces, left("NAME", "PHASE", "KEPT UP", "T0", "CAMPAIGN", "SIZE", "UID"))}, ""
	for _, run := range runs {
		t0, campaign, keptUp := "-", "-", "-"
		if run.T0 != nil {
			t0 = run.T0.UTC().Format("2006-01-02 15:04:05Z")
		}
		if run.KeptUp != nil {
			keptUp = yesNo(*run.KeptUp)
		}
		if of := run.Campaign; of != nil {
			campaign = fmt.Sprintf("%s, round %d", of.Name, of.Round)
		}
		if run.Problem != "" {
			problems += fmt.Sprintf("Run %s has damaged records: %s\n", run.UID, oneLine(run.Problem))
		}
		rows = append(rows, inNamespace(run.Namespace, namespaces, left(run.Name, cmp.Or(string(run.Phase), "-"), keptUp, t0, campaign, wording.Bytes(run.Bytes), run.UID)))
	}
	return rows.String() + problems
}

// deleteRuns of a name, or those with the given UIDs. Without yes it only shows them.
func (c *cluster) deleteRuns(ctx context.Context, name string, uids []string, yes bool, out io.Writer) error {
	for _, uid := range append(uids, "") { // refuses an unknown UID, and a name without runs
		if _, err := c.findRun(ctx, name, uid); err != nil {
			return err
		}
	}
	runs, err := c.archive.Runs(ctx, c.namespace, name)
	if err != nil {
		return err
	}
	if len(uids) > 0 {
		runs = slices.DeleteFunc(runs, func(run runapi.RunSummary) bool { return !slices.Contains(uids, run.UID) })
	}
	if !yes {
		if _, err := io.WriteString(out, runsTable(runs, false)); err != nil {
			return err
		}
		return errors.New("nothing was deleted: --yes deletes these runs with all their files, and nothing brings them back")
	}
	var failed []error
	for _, run := range runs {
		err := c.archive.Delete(ctx, run.UID)
		if err == nil {
			_, err = fmt.Fprintf(out, "run %s of %s deleted\n", run.UID, name)
		}
		failed = append(failed, explainDeletion(err))
	}
	return errors.Join(failed...)
}

// explainDeletion says what to do about a run that the archive keeps.
func explainDeletion(err error) error {
	switch e := asServerError(err); {
	case e == nil:
		return err
	case e.Status == http.StatusForbidden:
		return fmt.Errorf("%s: deleting runs needs the role vignette-admin in the namespace (docs/how-to/share-a-cluster.md)", e.Said())
	case e.Status == http.StatusConflict: // it goes on
		return errors.New(e.Said())
	}
	return err
}
