package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// csvTables of the analysis.
var csvTables = []string{"deliveries", "messages", "requests", "publishers", "groups", "pairs", "stages", "sequences", "order", "age", "bursts",
	"links", "hops", "hop-histogram", "positions", "reports", "picture", "picture-times", "networks", "volume", "tcp", "packets", "headline"}

// resultForms of the output.
var resultForms = []string{"table", "json", "csv"}

type resultsOptions struct {
	output, table, uid, get string
	files, download         bool
	// destination of a download; empty for a folder named after the run.
	destination string
	selection   runapi.Selection
}

func newResults(t *target) *cobra.Command {
	var o resultsOptions
	cmd := &cobra.Command{
		Use:   "results NAME [FOLDER | FILE.tar.gz]",
		Short: "Show or download the results of an experiment",
		Long: "results reads the archive, which also keeps the results of deleted experiments. Of several runs of\n" +
			"one name it takes the newest, or that of --uid.\n" +
			"With --download it fetches all files of the run into a folder, by default NAME-UID, or into one\n" +
			"compressed file. Every file is checked against the SHA-256 that it has in the archive. Files that a folder\n" +
			"already has are kept, so that repeating an interrupted download continues it.",
		Example: "  vignette results quickstart\n" +
			"  vignette results quickstart -o json | jq .messages.lostPercent\n" +
			"  vignette results quickstart -o csv --table publishers\n" +
			"  vignette results quickstart --download\n" +
			"  vignette results quickstart --download quickstart.tar.gz --without captures\n" +
			"  vignette results quickstart --download tables --only results\n" +
			"  vignette results quickstart --files\n" +
			"  vignette results quickstart --get results/deliveries.parquet > deliveries.parquet",
		Args:              nameAndDestination,
		ValidArgsFunction: t.completeDownload,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.destination = strings.Join(args[1:], "")
			if err := o.check(); err != nil {
				return err
			}
			if cmd.Flags().Changed("table") && o.output != "csv" {
				return fmt.Errorf("--table %s is for -o csv", o.table)
			}
			c, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			return t.explainArchive(c.results(cmd.Context(), args[0], o, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "table", "`form`: table, json or csv")
	flags.StringVar(&o.table, "table", "deliveries", "with -o csv, the `table`: "+strings.Join(csvTables, ", "))
	flags.StringVar(&o.uid, "uid", "", "`UID` of the run, if the name has several")
	flags.BoolVar(&o.download, "download", false, "fetch the files of the run instead")
	flags.StringSliceVar(&o.selection.Only, "only", nil, "with --download, fetch these `kinds` of files: "+strings.Join(runapi.FileKinds, ", "))
	flags.StringSliceVar(&o.selection.Without, "without", nil, "with --download, omit these `kinds` of files")
	flags.BoolVar(&o.files, "files", false, "list the archived files of the run instead")
	flags.StringVar(&o.get, "get", "", "write one archived `file`, as --files lists it, to standard output instead")
	cmd.MarkFlagsMutuallyExclusive("files", "get", "download", "output")
	cmd.MarkFlagsMutuallyExclusive("files", "get", "download", "table")
	cmd.MarkFlagsMutuallyExclusive("only", "without")
	complete(cmd, "get", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return t.completeFile(cmd, args, o.uid, typed)
	})
	complete(cmd, "output", cobra.FixedCompletions(resultForms, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "table", cobra.FixedCompletions(csvTables, cobra.ShellCompDirectiveNoFileComp))
	noCompletion(cmd, "uid")
	for _, flag := range []string{"only", "without"} {
		complete(cmd, flag, cobra.FixedCompletions(runapi.FileKinds, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// nameAndDestination of a download.
func nameAndDestination(cmd *cobra.Command, args []string) error {
	if len(args) > 2 {
		return fmt.Errorf("%s takes at most two arguments, a NAME and a destination; %q is too much", cmd.CommandPath(), args[2])
	}
	if downloading, err := cmd.Flags().GetBool("download"); err == nil && !downloading {
		return oneArgument("the NAME of an experiment")(cmd, args)
	}
	return oneArgument("the NAME of an experiment")(cmd, args[:min(len(args), 1)])
}

// completeDownload offers the experiments, then folders.
func (t *target) completeDownload(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if downloading, err := cmd.Flags().GetBool("download"); err == nil && downloading && len(args) == 1 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return t.completeExperiment(cmd, args, typed)
}

func (o resultsOptions) check() error {
	if !slices.Contains(resultForms, o.output) {
		return fmt.Errorf("--output %q: want table, json or csv", o.output)
	}
	if !slices.Contains(csvTables, o.table) {
		return fmt.Errorf("--table %q: want %s", o.table, strings.Join(csvTables, ", "))
	}
	if !o.download && len(o.selection.Only)+len(o.selection.Without) > 0 {
		return errors.New("--only and --without are for --download")
	}
	if o.get != "" && (!fs.ValidPath(o.get) || o.get == ".") {
		return fmt.Errorf("--get %s: want the path of a file of the run, such as results/results.json: no / at its beginning or end, no . or .. in it; --files lists them", o.get)
	}
	return o.selection.Check()
}

func (c *cluster) results(ctx context.Context, name string, o resultsOptions, out, notes io.Writer) error {
	uid, err := c.findRun(ctx, name, o.uid)
	if err != nil {
		return err
	}
	switch {
	case o.download:
		return c.download(ctx, name, uid, o.destination, o.selection, notes)
	case o.files:
		return c.listFiles(ctx, uid, out)
	case o.get != "":
		return c.getFile(ctx, name, uid, o.get, out)
	}
	file := "results/results.json"
	if o.output == "csv" {
		file = "results/" + o.table + ".csv"
	}
	content, err := c.archive.File(ctx, uid, file)
	if runclient.IsNotFound(err) {
		return c.withoutResults(ctx, name, uid)
	}
	if err != nil {
		return err
	}
	defer content.Close()
	if o.output != "table" {
		_, err := io.Copy(contentWriter(out), content)
		return err
	}
	var results runapi.Results
	if err := json.NewDecoder(content).Decode(&results); err != nil {
		return fmt.Errorf("%s of run %s: %w", file, uid, err)
	}
	if err := runapi.CheckVersion(file+" of run "+uid, results.SchemaVersion, runapi.ResultsVersion); err != nil {
		return err
	}
	_, err = io.WriteString(out, resultsText(results))
	return err
}

// findRun returns the UID of the newest run of a name, or checks the requested one.
func (c *cluster) findRun(ctx context.Context, name, uid string) (string, error) {
	runs, err := c.archive.Runs(ctx, c.namespace, name)
	if err != nil {
		return "", err
	}
	if len(runs) == 0 {
		return "", fmt.Errorf("the archive has no run of %s in namespace %s: vignette runs list shows those that it has, -n chooses another namespace", name, c.namespace)
	}
	if uid == "" {
		return runs[0].UID, nil
	}
	known := make([]string, len(runs))
	for i, run := range runs {
		known[i] = run.UID
	}
	if !slices.Contains(known, uid) {
		return "", fmt.Errorf("--uid %s is no run of %s in namespace %s: want one of %s", uid, name, c.namespace, strings.Join(known, ", "))
	}
	return uid, nil
}

// withoutResults explains why a run has none.
func (c *cluster) withoutResults(ctx context.Context, name, uid string) error {
	state, err := c.archive.State(ctx, uid)
	if err != nil {
		return err
	}
	if state.Results != nil {
		return fmt.Errorf("run %s was analysed without this table, by an older platform: vignette results -n %s %s --uid %[1]s --files lists what it has", uid, c.namespace, name)
	}
	if state.Plan.Phase == v1alpha1.PhaseFailed {
		return fmt.Errorf("%s failed before it was analysed: %s; its logs: vignette results -n %s %s --uid %s --download",
			name, state.Plan.Message, c.namespace, name, uid)
	}
	if state.Plan.Phase == v1alpha1.PhaseRunning && state.Plan.Spec.Duration == "" {
		return fmt.Errorf("%[2]s has no results yet, it is a live cluster that is up: vignette stop -n %[1]s %[2]s ends and analyses it", c.namespace, name)
	}
	return fmt.Errorf("%s has no results yet, it is %s: follow it with vignette status -n %s %s", name, state.Plan.Phase, c.namespace, name)
}

// listFiles lists the archived files of a run.
func (c *cluster) listFiles(ctx context.Context, uid string, out io.Writer) error {
	manifest, err := c.archive.Files(ctx, uid)
	if err != nil {
		return err
	}
	rows := table{figures("FILE", "SIZE")}
	for _, file := range manifest.Files {
		rows = append(rows, figures(file.Path, size(file.Bytes)))
	}
	_, err = io.WriteString(out, rows.String())
	return err
}

func (c *cluster) getFile(ctx context.Context, name, uid, file string, out io.Writer) error {
	content, err := c.archive.File(ctx, uid, file)
	if runclient.IsNotFound(err) {
		return fmt.Errorf("--get %s: run %s has no such file: vignette results -n %s %s --files lists those it has", file, uid, c.namespace, name)
	}
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(contentWriter(out), content)
	return err
}

// completeFile offers the archived files of the run.
func (t *target) completeFile(cmd *cobra.Command, args []string, uid, typed string) (names []string, directive cobra.ShellCompDirective) {
	directive = cobra.ShellCompDirectiveNoFileComp
	ctx, cancel := completionContext(cmd)
	defer cancel()
	c, err := t.connect(ctx)
	if err != nil || len(args) == 0 {
		return nil, directive
	}
	if uid, err = c.findRun(ctx, args[0], uid); err != nil {
		return nil, directive
	}
	manifest, err := c.archive.Files(ctx, uid)
	if err != nil {
		return nil, directive
	}
	for _, file := range manifest.Files {
		names = append(names, file.Path)
	}
	return withPrefix(typed, names), directive
}
