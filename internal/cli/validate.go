package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/validate"
)

func newValidate() *cobra.Command {
	var named []string
	output := "text"
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Say everything that is wrong with files, without a cluster",
		Long: "validate checks the platform's objects by the same schemas and rules as the API server and the operator,\n" +
			"without a cluster, and says everything that is wrong at once, each with its line. - is standard input.\n" +
			"A folder stands for the YAML and JSON files in it. Objects may name others of their namespace in any of the files.\n" +
			"Of a Campaign it checks the experiment of every point, and says which one would be refused and why.\n" +
			"The exit code is 1 if the API server or the operator would refuse any object.",
		Example: "  vignette validate experiment.yaml\n" +
			"  vignette validate -f scenarios/e4\n" +
			"  kustomize build . | vignette validate -",
		Args: func(cmd *cobra.Command, files []string) error {
			if len(files)+len(named) == 0 {
				return fmt.Errorf("%s needs at least one FILE, or - for standard input", cmd.CommandPath())
			}
			if output != "text" && output != "json" {
				return fmt.Errorf("--output is %q: want text or json", output)
			}
			return nil
		},
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, files []string) error {
			report, err := validate.Files(slices.Concat(named, files), cmd.InOrStdin(), tellProgress(cmd.ErrOrStderr(), time.Now))
			if err != nil {
				return err
			}
			if err := printReport(cmd.OutOrStdout(), report, output); err != nil {
				return err
			}
			if report.Failed() {
				return exit(exitFailure)
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&named, "filename", "f", nil, "`file` or folder, as for kubectl; may be given several times")
	complete(cmd, "filename", completeYAML)
	cmd.Flags().StringVarP(&output, "output", "o", output, "`form`: text or json")
	complete(cmd, "output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// progressEvery is the time between two lines about a check that takes long.
const progressEvery = 10 * time.Second

// tellProgress says how far a check is that takes long.
func tellProgress(out io.Writer, now func() time.Time) func(done, all int) {
	next := now().Add(progressEvery)
	return func(done, all int) {
		if at := now(); at.After(next) && done < all {
			next = at.Add(progressEvery)
			fmt.Fprintf(out, "checked %d of %d objects\n", done, all)
		}
	}
}

func printReport(out io.Writer, report validate.Report, form string) error {
	if form == "json" {
		return writeJSON(out, report.Summary())
	}
	for _, finding := range report.Findings {
		fmt.Fprintln(out, finding)
	}
	if report.Failed() {
		return nil
	}
	for _, object := range report.Objects {
		fmt.Fprintln(out, object, "is valid"+expansionText(report.Expansions, object))
	}
	return nil
}

// expansionText says what a campaign comes to; nothing of other objects.
func expansionText(expansions map[string]validate.Expansion, object string) string {
	e, ok := expansions[object]
	if !ok {
		return ""
	}
	text := fmt.Sprintf(": %d points, %d runs", e.Points, e.Runs)
	if e.Duration > 0 {
		text += fmt.Sprintf(", about %s with %d at a time, without starts and analyses", clock(e.Takes()), e.Parallelism)
	}
	return text
}
