package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
)

type reportOptions struct {
	reportFile
	uid string
}

// reportFile is where a report goes, and whether it is opened.
type reportFile struct {
	output string
	open   bool
}

// addFlags for a command whose reports go to a file of the default name.
func (f *reportFile) addFlags(cmd *cobra.Command, name string) {
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "`file` to write, - for standard output (default: "+name+")")
	flags.BoolVar(&f.open, "open", false, "open it in the browser of BROWSER, or the system's")
	complete(cmd, "output", cobra.FixedCompletions([]string{"html"}, cobra.ShellCompDirectiveFilterFileExt))
}

// fetch a report: get writes it and returns the file's name, none for standard output.
func (f *reportFile) fetch(cmd *cobra.Command, t *target, name string, explain func(error) error, get func(*cluster) (string, error)) error {
	if f.open && f.output == "-" {
		return fmt.Errorf("--open needs a file: omit -o -")
	}
	c, err := t.connect(cmd.Context())
	if err != nil {
		return err
	}
	file, err := get(c)
	if err != nil || file == "" {
		return explain(err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "the report of %s is in %s\n", name, file)
	if f.open {
		return openInBrowser(cmd.Context(), file)
	}
	return nil
}

// write a report and return its file's name, by default the given one; none for standard output.
func (f *reportFile) write(content io.Reader, name string, out io.Writer) (file string, err error) {
	if f.output == "-" {
		_, err := io.Copy(contentWriter(out), content)
		return "", err
	}
	if file = f.output; file == "" {
		file = name
	}
	return file, writeAtomically(file, func(w io.Writer) error {
		_, err := io.Copy(w, content)
		return err
	})
}

func newReport(t *target) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Fetch the report of an experiment, one HTML file that needs no network",
		Long: "report fetches the report of a run: what was run, the verdict of the emulation, tables and\n" +
			"plots, in one file that needs nothing else. Of several runs of one name it takes the newest, or that of --uid.",
		Example: "  vignette report quickstart\n" +
			"  vignette report quickstart --open\n" +
			"  vignette report quickstart -o - > quickstart.html",
		Args:              oneArgument("the NAME of an experiment"),
		ValidArgsFunction: t.completeExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.fetch(cmd, t, args[0], t.explainArchive, func(c *cluster) (string, error) {
				return c.report(cmd.Context(), args[0], o, cmd.OutOrStdout())
			})
		},
	}
	o.addFlags(cmd, "NAME-report.html")
	cmd.Flags().StringVar(&o.uid, "uid", "", "`UID` of the run, if the name has several")
	noCompletion(cmd, "uid")
	return cmd
}

// report writes the report and returns its file's name; none for standard output. It reads the file, not the server's page: the API
// server's proxy rewrites pages.
func (c *cluster) report(ctx context.Context, name string, o reportOptions, out io.Writer) (file string, err error) {
	uid, err := c.findRun(ctx, name, o.uid)
	if err != nil {
		return "", err
	}
	content, err := c.archive.File(ctx, uid, runapi.ReportFile)
	if runclient.IsNotFound(err) {
		return "", c.withoutReport(ctx, name, uid)
	}
	if err != nil {
		return "", err
	}
	defer content.Close()
	return o.write(content, name+"-report.html", out)
}

// withoutReport explains why a run has none.
func (c *cluster) withoutReport(ctx context.Context, name, uid string) error {
	manifest, err := c.archive.Files(ctx, uid)
	if err != nil {
		return err
	}
	for _, file := range manifest.Files {
		if file.Path == "results/results.json" {
			folder := runapi.FolderName(name, uid)
			return fmt.Errorf("run %s was analysed without a report, by an older platform, or its results say why under gaps: vignette results -n %[2]s %[3]s; "+
				"to make one: vignette results -n %[2]s %[3]s --uid %[1]s --download, then python3 -m vignette_analysis analyse --directory %[4]s", uid, c.namespace, name, folder)
		}
	}
	return c.withoutResults(ctx, name, uid)
}

// openInBrowser shows a file.
func openInBrowser(ctx context.Context, file string) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	return showInBrowser(ctx, path)
}

// showInBrowser opens a file or an address.
func showInBrowser(ctx context.Context, what string) error {
	words := browserCommand()
	output, err := exec.CommandContext(ctx, words[0], append(words[1:], what)...).CombinedOutput() //nolint:gosec // the user's own browser
	if err != nil {
		return fmt.Errorf("%s cannot show %s: %w %s: open it by hand, or set BROWSER", strings.Join(words, " "), what, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// browserCommand is that of BROWSER, or the system's.
func browserCommand() []string {
	browser, _, _ := strings.Cut(os.Getenv("BROWSER"), ":")
	if words := strings.Fields(browser); len(words) > 0 {
		return words
	}
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return []string{"xdg-open"}
}
