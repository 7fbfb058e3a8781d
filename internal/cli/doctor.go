package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/doctor"
)

func newDoctor(t *target, version string) *cobra.Command {
	var local bool
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a cluster, or this machine, lacks for the platform",
		Long: "doctor checks what the cluster lacks for the platform and for you: versions, Multus, Argo Workflows, the\n" +
			"folder of CNI plugins, storage, the platform's own parts, clocks, your rights. Each line that is not ok says what to do.\n" +
			"It changes nothing, and cannot tell about objects that you may not read. With --local, or without a configured cluster,\n" +
			"it checks what this machine lacks for make demo. The exit code is 1 if something that is needed is missing.",
		Example: "  vignette doctor\n" +
			"  vignette doctor -n team-nor -o json\n" +
			"  vignette doctor --local",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			return noArguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := t.diagnose(cmd, local, version)
			if err != nil {
				return err
			}
			if err := printDiagnosis(cmd.OutOrStdout(), report, output); err != nil {
				return err
			}
			if !report.OK {
				return exit(exitFailure)
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&local, "local", false, "check this machine, for make demo")
	addOutput(cmd, &output)
	return cmd
}

// diagnose the cluster, or this machine if none is configured.
func (t *target) diagnose(cmd *cobra.Command, local bool, version string) (doctor.Report, error) {
	config, namespace, err := t.load()
	if !local && err == nil {
		return doctor.CheckCluster(doctor.Gather(cmd.Context(), config, namespace, t.platform, version)), nil
	}
	if !local && !errors.Is(err, errNotConfigured) {
		return doctor.Report{}, err
	}
	if !local {
		fmt.Fprintln(cmd.ErrOrStderr(), "No cluster is configured: this checks this machine for make demo.")
	}
	folder, err := os.Getwd()
	if err != nil {
		return doctor.Report{}, err
	}
	return doctor.CheckMachine(doctor.GatherMachine(cmd.Context(), folder)), nil
}

func printDiagnosis(out io.Writer, report doctor.Report, form string) error {
	if form == "json" {
		return writeJSON(out, report)
	}
	_, err := io.WriteString(out, diagnosisText(report))
	return err
}

func diagnosisText(report doctor.Report) string {
	rows, missing := table{left("CHECK", "STATE", "FOUND", "REMEDY")}, []string{}
	for _, c := range report.Checks {
		rows = append(rows, left(c.Name, string(c.State), c.Found, c.Remedy))
		if c.Needed && c.State == doctor.Missing {
			missing = append(missing, c.Name)
		}
	}
	if report.OK {
		return rows.String() + "\nNothing that is needed is missing.\n"
	}
	return rows.String() + "\nMissing and needed: " + strings.Join(missing, ", ") + ".\n"
}
