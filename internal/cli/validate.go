package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/validate"
)

func newValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Say everything that is wrong with files, without a cluster",
		Long: "validate judges Experiments, Campaigns, Waveforms and Scenarios by the same schemas and rules as the API server,\n" +
			"without a cluster, and says everything that is wrong at once, each with its line. - is standard input.\n" +
			"Of a Campaign it judges the experiment of every point, and says which one would be refused and why.\n" +
			"The exit code is 1 if the API server or the operator would refuse any object.",
		Example: "  vignette validate experiment.yaml\n" +
			"  vignette validate scenarios/e4/*.yaml\n" +
			"  kustomize build . | vignette validate -",
		Args: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				return fmt.Errorf("%s needs at least one FILE, or - for standard input", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, files []string) error {
			report, err := validate.Files(files, cmd.InOrStdin())
			if err != nil {
				return err
			}
			for _, finding := range report.Findings {
				fmt.Fprintln(cmd.OutOrStdout(), finding)
			}
			if report.Failed() {
				return exit(exitFailure)
			}
			for _, object := range report.Objects {
				fmt.Fprintln(cmd.OutOrStdout(), object, "is valid"+expansionText(report.Expansions, object))
			}
			return nil
		},
	}
}

// expansionText says what a campaign comes to; nothing of other objects.
func expansionText(expansions map[string]validate.Expansion, object string) string {
	e, ok := expansions[object]
	if !ok {
		return ""
	}
	text := fmt.Sprintf(": %d points, %d runs", e.Points, e.Runs)
	if e.Duration > 0 {
		text += fmt.Sprintf(", about %s with %d at a time, without starts and analyses", clock(e.Duration/time.Duration(min(e.Parallelism, e.Runs))), e.Parallelism)
	}
	return text
}
