package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

type sshOptions struct {
	experiment, user, identity string
	port                       uint16
	// stdio connects to the port and runs no ssh.
	stdio bool
}

func newSSH(t *target) *cobra.Command {
	var o sshOptions
	cmd := &cobra.Command{
		Use:   "ssh NODE [-- COMMAND...]",
		Short: "Log in to a node that is a virtual machine, or run a command there",
		Long: "ssh runs this computer's ssh, connected to the SSH server of a virtual machine through the cluster's API server:\n" +
			"its traffic uses no radio, and no address of the machine need be reachable. It accepts the keys in vm.sshKeys\n" +
			"of the node. As with ssh, a command's words are joined and read by the guest's shell, and the exit code is the\n" +
			"command's. Host keys are remembered for each machine, in a separate file. With --stdio it runs no ssh but\n" +
			"connects its own input and output: a ProxyCommand for scp, rsync, sftp.",
		Example: "  vignette ssh veh-1\n" +
			"  vignette ssh veh-1 -- ip -s link show wan\n" +
			"  vignette ssh -e bft-live -i ~/.ssh/lab --user debian veh-1 -- uname -a\n" +
			"  scp -o ProxyCommand='vignette ssh --stdio %h' track.csv root@veh-1:",
		Args:              shellArguments,
		ValidArgsFunction: t.completeMachine(&o.experiment),
		RunE: t.run(func(c *cluster, cmd *cobra.Command, args []string) error {
			s := rawStreams(cmd)
			if o.stdio {
				return c.sshStdio(cmd.Context(), args[0], o, s)
			}
			return c.ssh(cmd.Context(), args[0], args[1:], o, t, s)
		}),
	}
	t.experimentFlag(cmd, &o.experiment)
	flags := cmd.Flags()
	flags.StringVarP(&o.user, "user", "l", "root", "`name` of the user in the guest")
	flags.StringVarP(&o.identity, "identity", "i", "", "`file` with the private key (default: what ssh and its agent have)")
	flags.Uint16Var(&o.port, "port", 22, "TCP `port` of the guest's SSH server; others than 22 need managementNetwork: Open")
	flags.BoolVar(&o.stdio, "stdio", false, "connect standard input and output to the port, for a ProxyCommand")
	noCompletion(cmd, "user", "port")
	complete(cmd, "identity", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	})
	return cmd
}

// sshStdio connects input and output to the machine's port.
func (c *cluster) sshStdio(ctx context.Context, node string, o sshOptions, s streams) error {
	m, err := c.machineUp(ctx, o.experiment, node, "ssh", s.err)
	if err != nil {
		return err
	}
	connection, err := c.portOnceOpen(ctx, m, o.port, s.err)
	if err != nil {
		return m.explain(err)
	}
	defer connection.Close()
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(s.out, connection)
		ended <- err
	}()
	go func() {
		_, err := io.Copy(connection, s.in)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return exit(exitDetached)
	}
}

// portTimeout is how long a guest that boots has for its SSH server. Its agent may be ready before.
const portTimeout = 30 * time.Second

// portOnceOpen connects to a machine's port, and waits for a server there, which notes announces.
func (c *cluster) portOnceOpen(ctx context.Context, m *machine, port uint16, notes io.Writer) (io.ReadWriteCloser, error) {
	for began, waits := time.Now(), false; ; waits = true {
		connection, err := c.machineStream(ctx, m, portForwardPath(port))
		if err == nil || !isClosedPort(err) || time.Since(began) > portTimeout {
			return connection, err
		}
		if !waits {
			fmt.Fprintf(notes, "Port %d of node %s is closed yet: waiting for up to %s (Ctrl-C leaves).\n", port, m.node.Name, portTimeout)
		}
		if pause(ctx, bootInterval) != nil {
			return nil, exit(exitDetached)
		}
	}
}

// ssh runs the user's ssh, with this program as its connection to the machine.
func (c *cluster) ssh(ctx context.Context, node string, command []string, o sshOptions, t *target, s streams) error {
	program, err := exec.LookPath("ssh")
	if err != nil {
		return errors.New("there is no ssh on this computer: install OpenSSH's client (Debian: apt install openssh-client)")
	}
	m, err := c.machineUp(ctx, o.experiment, node, "ssh", s.err)
	if err != nil {
		return err
	}
	arguments, err := sshArguments(m, command, o, t)
	if err != nil {
		return err
	}
	run := exec.CommandContext(ctx, program, arguments...)
	run.Stdin, run.Stdout, run.Stderr = s.in, s.out, s.err
	err = run.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	if ended.ExitCode() == sshFailed && len(m.sshKeys()) == 0 {
		fmt.Fprintf(s.err, "Node %s has no vm.sshKeys: only users that its image or cloud-init creates can log in.\n", node)
	}
	return exit(max(ended.ExitCode(), exitFailure))
}

// sshFailed is the exit code of ssh if it did not reach the command.
const sshFailed = 255

// sshKeys of the node in the spec.
func (m *machine) sshKeys() []string {
	if m.node.VM == nil {
		return nil
	}
	return m.node.VM.SSHKeys
}

func sshArguments(m *machine, command []string, o sshOptions, t *target) ([]string, error) {
	known, err := knownHostsFile()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments := []string{
		"-o", "ProxyCommand=" + proxyCommand(self, m, o, t),
		// Nodes of one name come and go with their experiments; the machine's UID identifies its key.
		"-o", "HostKeyAlias=" + string(m.object.Metadata.UID),
		"-o", "UserKnownHostsFile=" + quoteConfig(known),
		"-o", "StrictHostKeyChecking=accept-new",
		"-o", "LogLevel=ERROR",
		"-l", o.user,
	}
	if o.identity != "" {
		arguments = append(arguments, "-i", o.identity)
	}
	return append(append(arguments, m.node.Name), command...), nil
}

// proxyCommand is the shell command with which ssh reaches the machine: this program with --stdio.
func proxyCommand(self string, m *machine, o sshOptions, t *target) string {
	words := []string{self, "ssh", "--stdio", "--port", fmt.Sprint(o.port), "-n", m.site.Namespace, "-e", m.site.Name}
	for _, flag := range []struct{ name, value string }{{"--kubeconfig", t.kubeconfig}, {"--context", t.context}} {
		if flag.value != "" {
			words = append(words, flag.name, flag.value)
		}
	}
	words = append(words, m.node.Name)
	for i, word := range words {
		words[i] = "'" + strings.ReplaceAll(strings.ReplaceAll(word, "'", `'\''`), "%", "%%") + "'"
	}
	return strings.Join(words, " ")
}

// quoteConfig for ssh_config(5): in double quotes, with percent signs doubled.
func quoteConfig(word string) string { return `"` + strings.ReplaceAll(word, "%", "%%") + `"` }

// knownHostsFile has machines' host keys; its folder is created.
func knownHostsFile() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "vignette")
	return filepath.Join(folder, "known_hosts"), os.MkdirAll(folder, 0o700)
}
