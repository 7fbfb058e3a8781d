package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// tables of the analysis that are CSV files.
var tables = []string{"deliveries", "messages", "publishers", "groups"}

// forms of the output.
var forms = []string{"table", "json", "csv"}

type resultsOptions struct {
	output, table, uid, save, get string
	files                         bool
}

func newResults(t *target) *cobra.Command {
	var o resultsOptions
	cmd := &cobra.Command{
		Use:   "results NAME",
		Short: "Show or save the results of an experiment",
		Long: "results reads the archive, which keeps the results of experiments that are deleted too. Of several runs of\n" +
			"one name it takes the newest, or the one that --uid names.",
		Example: "  vignette results quickstart\n" +
			"  vignette results quickstart -o json | jq .messages.lostPercent\n" +
			"  vignette results quickstart -o csv --table publishers\n" +
			"  vignette results quickstart --save quickstart-files\n" +
			"  vignette results quickstart --files\n" +
			"  vignette results quickstart --get results/deliveries.parquet > deliveries.parquet",
		Args:              oneArgument("the NAME of an experiment"),
		ValidArgsFunction: t.completeExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := t.connect()
			if err != nil {
				return err
			}
			return t.explainArchive(c.results(cmd.Context(), args[0], o, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "table", "`form`: table, json or csv")
	flags.StringVar(&o.table, "table", "deliveries", "with -o csv, the `table`: "+strings.Join(tables, ", "))
	flags.StringVar(&o.uid, "uid", "", "`UID` of the run, where there are several of the name")
	flags.StringVar(&o.save, "save", "", "save all files of the run to a `folder`, too")
	flags.BoolVar(&o.files, "files", false, "list the archived files of the run instead")
	flags.StringVar(&o.get, "get", "", "write one archived `file`, as --files lists it, to standard output instead")
	cmd.MarkFlagsMutuallyExclusive("files", "get", "output")
	cmd.MarkFlagsMutuallyExclusive("files", "get", "table")
	complete(cmd, "get", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return t.completeFile(cmd, args, o.uid, typed)
	})
	complete(cmd, "output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "table", cobra.FixedCompletions(tables, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "uid", cobra.NoFileCompletions)
	complete(cmd, "save", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	return cmd
}

func (o resultsOptions) check() error {
	if !slices.Contains(forms, o.output) {
		return fmt.Errorf("--output %q: want table, json or csv", o.output)
	}
	if !slices.Contains(tables, o.table) {
		return fmt.Errorf("--table %q: want %s", o.table, strings.Join(tables, ", "))
	}
	return nil
}

func (c *cluster) results(ctx context.Context, name string, o resultsOptions, out, notes io.Writer) error {
	uid, err := c.findRun(ctx, name, o.uid)
	if err != nil {
		return err
	}
	if o.save != "" {
		if err := c.save(ctx, uid, o.save, notes); err != nil {
			return err
		}
	}
	switch {
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
		_, err := io.Copy(out, content)
		return err
	}
	var results runapi.Results
	if err := json.NewDecoder(content).Decode(&results); err != nil {
		return fmt.Errorf("%s of run %s: %w", file, uid, err)
	}
	_, err = io.WriteString(out, resultsText(results))
	return err
}

// findRun gives the UID of the newest run of a name, or checks the one that was asked for.
func (c *cluster) findRun(ctx context.Context, name, uid string) (string, error) {
	runs, err := c.archive.Runs(ctx, c.namespace, name)
	if err != nil {
		return "", err
	}
	if len(runs) == 0 {
		return "", fmt.Errorf("the archive has no run of %s in namespace %s: vignette status lists the experiments that are there, -n names another namespace", name, c.namespace)
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
	if state.Plan.Phase == v1alpha1.PhaseFailed {
		return fmt.Errorf("%s failed before it was analysed: %s; its logs: vignette results -n %s %s --save DIR",
			name, state.Plan.Message, c.namespace, name)
	}
	if state.Plan.Phase == v1alpha1.PhaseRunning && state.Plan.Spec.Duration == "" {
		return fmt.Errorf("%[2]s has no results yet, it is a live cluster that is up: vignette stop -n %[1]s %[2]s ends and analyses it", c.namespace, name)
	}
	return fmt.Errorf("%s has no results yet, it is %s: follow it with vignette status -n %s %s", name, state.Plan.Phase, c.namespace, name)
}

// listFiles lists what the archive has of a run.
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
	_, err = io.Copy(out, content)
	return err
}

// completeFile offers the archived files of the run.
func (t *target) completeFile(cmd *cobra.Command, args []string, uid, typed string) (names []string, directive cobra.ShellCompDirective) {
	directive = cobra.ShellCompDirectiveNoFileComp
	c, err := t.connect()
	if err != nil || len(args) == 0 {
		return nil, directive
	}
	ctx, cancel := completionContext(cmd)
	defer cancel()
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
	return beginning(typed, names), directive
}

// save writes every file of a run to a folder.
func (c *cluster) save(ctx context.Context, uid, folder string, notes io.Writer) error {
	manifest, err := c.archive.Files(ctx, uid)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	var bytes int64
	for _, file := range manifest.Files {
		n, err := c.saveFile(ctx, root, uid, file.Path)
		if err != nil {
			return fmt.Errorf("%s: %w", file.Path, err)
		}
		bytes += n
	}
	_, err = fmt.Fprintf(notes, "%d files, %s, saved to %s\n", len(manifest.Files), size(bytes), filepath.Clean(folder))
	return err
}

// saveFile keeps within the root whatever the server says the file is called.
func (c *cluster) saveFile(ctx context.Context, root *os.Root, uid, name string) (n int64, err error) {
	content, err := c.archive.File(ctx, uid, name)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return 0, err
	}
	file, err := root.Create(name)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(file, content)
	return n, errors.Join(err, file.Close())
}

func asServerError(err error) *runclient.Error {
	var e *runclient.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
