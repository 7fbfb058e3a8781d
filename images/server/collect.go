package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

// collectOptions of `server collect`.
type collectOptions struct {
	server, run, tokenFile string
	wait                   time.Duration
}

func collectCommand() *cobra.Command {
	var c collectOptions
	command := &cobra.Command{
		Use:   "collect",
		Short: "Wait until every log of a run is archived, and seal it",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return collect(command.Context(), c, time.Second, command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&c.server, "server", "", "base URL of the server")
	flags.StringVar(&c.run, "run", "", "UID of the run")
	flags.StringVar(&c.tokenFile, "token-file", "/vignette/token/token", "file with the token for the server")
	flags.DurationVar(&c.wait, "wait", time.Minute, "longest time to wait for agents that have not shipped everything")
	_ = command.MarkFlagRequired("server")
	_ = command.MarkFlagRequired("run")
	return command
}

// retryTimeout is how long collect retries an unreachable server, beyond the wait for agents.
const retryTimeout = 2 * time.Minute

// collect seals a run; it retries after a pause if the server restarts meanwhile.
func collect(ctx context.Context, c collectOptions, pause time.Duration, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, c.wait+retryTimeout)
	defer cancel()
	api := client.New(c.server, nil, client.TokenFile(c.tokenFile))
	fmt.Fprintf(out, "waiting up to %s until every log of run %s is archived\n", c.wait, c.run)
	for {
		manifest, err := api.Seal(ctx, c.run, runapi.SealRequest{WaitSeconds: c.wait.Seconds()})
		if err == nil {
			printManifest(out, manifest)
			return nil
		}
		if isFinal(err) {
			return err
		}
		fmt.Fprintf(out, "retrying: %v\n", err)
		if !clock.Pause(ctx, pause) {
			return fmt.Errorf("gave up: %w", err)
		}
	}
}

// isFinal reports whether a retry would fail too.
func isFinal(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Status < http.StatusInternalServerError && answer.Status != http.StatusTooManyRequests
}

func printManifest(out io.Writer, manifest runapi.Manifest) {
	var size int64
	for _, file := range manifest.Files {
		size += file.Bytes
	}
	fmt.Fprintf(out, "sealed: %d files, %d bytes\n", len(manifest.Files), size)
	for _, gap := range manifest.Gaps {
		fmt.Fprintf(out, "missing: %s (node %q): %s\n", gap.What, gap.Node, gap.Reason)
	}
}
