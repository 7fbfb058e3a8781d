package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// escapeKey leaves a console: Ctrl-], as in telnet and virsh.
const escapeKey = 0x1d

func newConsole(t *target) *cobra.Command {
	var experiment string
	cmd := &cobra.Command{
		Use:   "console NODE",
		Short: "Open the serial console of a node that is a virtual machine",
		Long: "console connects to the first serial port of a virtual machine:\n" +
			"it needs no network and no key in the guest, and works while the guest still boots. A guest that waits for a login\n" +
			"shows its prompt again after Enter. Ctrl-] leaves. Opening a console closes another user's.\n" +
			"Without a terminal, input is passed on unchanged, and output shown until Ctrl-C or the end of the machine.",
		Example: "  vignette console veh-1\n" +
			"  vignette console -e bft-live hq\n" +
			"  vignette console veh-1 > boot.log",
		Args:              oneArgument("a NODE"),
		ValidArgsFunction: t.completeMachine(&experiment),
		RunE: t.run(func(c *cluster, cmd *cobra.Command, args []string) error {
			return c.console(cmd.Context(), experiment, args[0], rawStreams(cmd))
		}),
	}
	t.experimentFlag(cmd, &experiment)
	return cmd
}

func (c *cluster) console(ctx context.Context, experiment, node string, s streams) error {
	m, err := c.machineUp(ctx, experiment, node, "console", s.err)
	if err != nil {
		return err
	}
	connection, err := c.machineStream(ctx, m, "console")
	if err != nil {
		return m.explain(err)
	}
	defer connection.Close()
	fmt.Fprintf(s.err, "Console of node %s. Ctrl-] leaves it; Enter may bring a prompt.\n", node)
	attach := func() error { return attachConsole(ctx, connection, s) }
	if terminal := terminalOf(s); terminal != nil {
		err = terminal.raw(attach)
		fmt.Fprintln(s.err)
	} else {
		err = attach()
	}
	if errors.Is(err, errHungUp) {
		return fmt.Errorf("the console of node %s was closed: its machine has ended, or somebody else opened its console (see vignette status -n %s %s)",
			node, m.site.Namespace, m.site.Name)
	}
	return err
}

// errHungUp: the other side ended the stream.
var errHungUp = errors.New("the other side hung up")

// attachConsole copies both ways until the escape key, the end of the machine or Ctrl-C. The end of the input does not end it.
func attachConsole(ctx context.Context, connection io.ReadWriteCloser, s streams) error {
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(s.out, connection)
		ended <- errors.Join(errHungUp, err)
	}()
	go func() {
		if escaped, err := copyTyped(connection, s.in); escaped || err != nil {
			ended <- err
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return exit(exitDetached)
	}
}

// copyTyped copies input up to the escape key.
func copyTyped(to io.Writer, from io.Reader) (escaped bool, err error) {
	keys := make([]byte, 4096)
	for {
		n, readErr := from.Read(keys)
		until := bytes.IndexByte(keys[:n], escapeKey)
		if until >= 0 {
			n = until
		}
		if n > 0 {
			if _, err := to.Write(keys[:n]); err != nil {
				return false, errHungUp
			}
		}
		switch {
		case until >= 0:
			return true, nil
		case errors.Is(readErr, io.EOF):
			return false, nil
		case readErr != nil:
			return false, readErr
		}
	}
}

// bootInterval is how often a machine that does not run yet is checked.
const bootInterval = 500 * time.Millisecond
