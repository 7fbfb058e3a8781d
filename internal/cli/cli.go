// Package cli is the command line `vignette`.
package cli

import (
	"cmp"
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

	"vignette.dev/vignette/internal/safetext"
	"vignette.dev/vignette/internal/wording"
)

// Exit codes.
const (
	exitFailure  = 1
	exitDetached = 130
)

// exit is an error that was explained already, with the program's exit code.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the program and returns its exit code. Output is escaped for terminals, unless a command uses the raw stream.
func Main(version string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	out := safetext.NewWriter(stdout)
	stderr = safetext.NewWriter(stderr)
	root := newRoot(version, filepath.Base(args[0]), out)
	root.SetArgs(args[1:])
	root.SetIn(stdin)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var code exit
	if err == nil || errors.As(err, &code) {
		err = cmp.Or(out.Err(), err) // what was not written, such as on a full disk, must not look like all
	}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "interrupted")
		return exitDetached
	}
	fmt.Fprintln(stderr, "Error:", explainFlags(err))
	return exitFailure
}

// endOnInterrupt ends a command with its context, whatever it waits for: for commands that leave nothing behind.
func endOnInterrupt(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return untilInterrupt(cmd.Context(), func() error { return run(cmd, args) })
	}
	return cmd
}

// untilInterrupt runs f, and returns when ctx ends, whatever f waits for.
func untilInterrupt(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Command is the command tree, for its reference.
func Command() *cobra.Command { return newRoot("", "vignette", io.Discard) }

// newRoot makes the command tree. As kubectl-vignette it calls itself what kubectl users type.
func newRoot(version, program string, out io.Writer) *cobra.Command {
	target := &target{}
	root := &cobra.Command{
		Use:   "vignette",
		Short: "Experiments on tactical networks, on Kubernetes",
		Long: "vignette runs experiments on tactical networks, on Kubernetes: nodes, radios between them,\n" +
			"messaging on them, measured results.",
		Example: "  vignette validate experiment.yaml\n" +
			"  vignette run experiment.yaml --watch\n" +
			"  vignette results quickstart",
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(out) // first, as the library's commands keep the writer
	root.SetFlagErrorFunc(flagError)
	if strings.HasPrefix(program, "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl vignette"}
	}
	target.addFlags(root.PersistentFlags())
	complete(root, "namespace", target.completeNamespace)
	noCompletion(root, "context")
	complete(root, "platform-namespace", target.completeNamespace)
	root.AddCommand(endOnInterrupt(newValidate()), newRun(target), newStatus(target), newStop(target), newResults(target), newReport(target), newRuns(target), newRerun(target),
		newShell(target), newConsole(target), newSSH(target), newLogs(target), newCapture(target), newSet(target), newScenario(target), newCompare(target), newCampaign(target), newCapacity(target), newUI(target, version), newDoctor(target, version), newVersion(version))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		c.Example = cmp.Or(c.Example, cobraExamples[c.Name()])
		for _, shell := range c.Commands() {
			shell.Example = cmp.Or(shell.Example, cobraExamples[shell.Name()])
		}
	}
	namePages(root)
	return root
}

// cobraExamples are those of the commands that cobra adds.
var cobraExamples = map[string]string{
	"help": "  vignette help run",
	"completion": "  source <(vignette completion bash)\n" +
		"  vignette completion zsh > \"${fpath[1]}/_vignette\"\n" +
		"  vignette completion fish > ~/.config/fish/completions/vignette.fish\n" +
		"  vignette completion powershell | Out-String | Invoke-Expression",
	"bash":       "  source <(vignette completion bash)\n  vignette completion bash > /etc/bash_completion.d/vignette",
	"zsh":        "  vignette completion zsh > \"${fpath[1]}/_vignette\"",
	"fish":       "  vignette completion fish > ~/.config/fish/completions/vignette.fish",
	"powershell": "  vignette completion powershell | Out-String | Invoke-Expression",
}

// addOutput adds --output to a command that prints a table or JSON.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "`form`: table or json")
	complete(cmd, "output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// checkOutput checks the value of addOutput's flag.
func checkOutput(output string) error {
	if output != "table" && output != "json" {
		return fmt.Errorf("--output %q: want table or json", output)
	}
	return nil
}

// noSuchCommand refuses an unknown command, and suggests similar ones.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, command := range cmd.Commands() {
		names = append(names, command.Name())
	}
	near := cmp.Or(strings.Join(cmd.SuggestionsFor(args[0]), " or "), wording.Nearest(args[0], names))
	return fmt.Errorf("%s has no command %q: %s", cmd.CommandPath(), args[0], seeHelp(cmd, near))
}

// seeHelp says what a misspelt word may mean, if anything, and where the right ones are.
func seeHelp(cmd *cobra.Command, near string) string {
	return strings.TrimLeft(wording.Meant(near)+" see "+cmd.CommandPath()+" --help", " ")
}

func newVersion(version string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArguments, Example: "  vignette version",
		Long:              "version prints the version of this program.",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "vignette", version)
			return err
		},
	}
}
