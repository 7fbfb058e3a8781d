// Package cli is the command line `vignette`.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailure  = 1
	exitDetached = 130
)

// exit is an error that has been explained already, with the program's exit code.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the program and gives its exit code.
func Main(version string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(version, filepath.Base(args[0]))
	root.SetArgs(args[1:])
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var code exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(stderr, "Error:", err)
	return exitFailure
}

// newRoot makes the command tree. Called as kubectl-vignette it names itself as kubectl users type it.
func newRoot(version, program string) *cobra.Command {
	target := &target{}
	root := &cobra.Command{
		Use:   "vignette",
		Short: "Experiments on tactical networks, on Kubernetes",
		Long: "vignette runs experiments on tactical networks, on Kubernetes: nodes, radios between them,\n" +
			"messaging on them, measured results.",
		Example: "  vignette validate experiment.yaml\n" +
			"  vignette run experiment.yaml --watch\n" +
			"  vignette results quickstart",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	if strings.HasPrefix(program, "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl vignette"}
	}
	target.addFlags(root.PersistentFlags())
	complete(root, "namespace", target.completeNamespace)
	complete(root, "context", cobra.NoFileCompletions)
	complete(root, "platform-namespace", target.completeNamespace)
	root.AddCommand(newValidate(), newRun(target), newStatus(target), newStop(target), newResults(target), newVersion(version))
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Example = "  source <(vignette completion bash)"
		}
	}
	return root
}

func newVersion(version string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Example: "  vignette version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "vignette", version)
			return err
		},
	}
}
