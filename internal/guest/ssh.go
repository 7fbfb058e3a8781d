package guest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	sshd        = "/usr/sbin/sshd"
	hostKey     = "/etc/ssh/ssh_host_ed25519_key"
	rootKeys    = "/root/.ssh/authorized_keys"
	systemdRuns = "/run/systemd/system"
)

// serveSSH lets root log in with the given keys, if the machine has an SSH server. The node does not depend on it.
func (g *guest) serveSSH(ctx context.Context) {
	if len(g.config.SSHKeys) == 0 {
		return
	}
	if err := addKeys(rootKeys, g.config.SSHKeys); err != nil {
		g.log.Warn("keys for SSH", "error", err)
		return
	}
	if _, err := os.Stat(sshd); err != nil {
		g.log.Warn("there are keys for SSH but no SSH server", "program", sshd)
		return
	}
	if _, err := os.Stat(hostKey); err != nil {
		g.runQuietly(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", hostKey)
	}
	if _, err := os.Stat(systemdRuns); err == nil {
		// A server that has failed for want of a host key is not started again so soon without this.
		g.runQuietly(ctx, "systemctl", "reset-failed", "ssh.service")
		g.runQuietly(ctx, "systemctl", "start", "ssh.service")
		return
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		g.log.Warn("SSH", "error", err)
	}
	// With this host key the server does not generate slower kinds.
	g.runQuietly(ctx, sshd, "-o", "HostKey="+hostKey)
}

func (g *guest) runQuietly(ctx context.Context, program string, arguments ...string) {
	if out, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput(); err != nil && ctx.Err() == nil {
		g.log.Warn(program, "error", err, "output", strings.TrimSpace(string(out)))
	}
}

// addKeys to the file, and keep those in it.
func addKeys(file string, keys []string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	before, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	text := string(before)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for _, key := range keys {
		if key = strings.TrimSpace(key); !strings.Contains("\n"+text, "\n"+key+"\n") {
			text += key + "\n"
		}
	}
	return replaceFile(file, []byte(text), 0o600)
}
