package guest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	sshd      = "/usr/sbin/sshd"
	hostKey   = "/etc/ssh/ssh_host_ed25519_key"
	rootKeys  = "/root/.ssh/authorized_keys"
	systemdIs = "/run/systemd/system"
)

// serveSSH lets root log in with the given keys, where there is a server for it. Nothing of the node depends on it.
func (g *guest) serveSSH(ctx context.Context) {
	if len(g.config.SSHKeys) == 0 {
		return
	}
	if err := addKeys(rootKeys, g.config.SSHKeys); err != nil {
		g.log.Warn("keys for SSH", "error", err)
		return
	}
	if _, err := os.Stat(sshd); err != nil {
		g.log.Warn("there are keys for SSH and no server", "program", sshd)
		return
	}
	if _, err := os.Stat(hostKey); err != nil {
		g.runQuietly(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", hostKey)
	}
	if _, err := os.Stat(systemdIs); err == nil {
		g.runQuietly(ctx, "systemctl", "start", "ssh.service")
		return
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		g.log.Warn("SSH", "error", err)
	}
	// With no other host key the server looks for none of the kinds that take long to make.
	g.runQuietly(ctx, sshd, "-o", "HostKey="+hostKey)
}

func (g *guest) runQuietly(ctx context.Context, program string, arguments ...string) {
	if out, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput(); err != nil && ctx.Err() == nil {
		g.log.Warn(program, "error", err, "output", strings.TrimSpace(string(out)))
	}
}

// addKeys to those that may log in already.
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
