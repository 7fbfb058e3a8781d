package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bootIDPath has an id that differs after each boot (random(4)).
const bootIDPath = "/proc/sys/kernel/random/boot_id"

// bootRecord remembers which boot started the run's apps: like those of an ended pod, they cannot be restored by another boot.
type bootRecord struct {
	// path is the file with the id of that boot; idPath has the present id.
	path, idPath string
}

func (g *guest) bootRecord() bootRecord {
	return bootRecord{filepath.Join(g.stateDir, g.config.RunUID, ".boot"), bootIDPath}
}

// restarted reports whether an earlier boot started apps of the run.
func (b bootRecord) restarted() (bool, error) {
	before, err := os.ReadFile(b.path)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	id, err := os.ReadFile(b.idPath)
	return string(before) != string(id), err
}

// record that this boot starts them, synced to disk before any app starts: it must survive a crash.
func (b bootRecord) record() error {
	id, err := os.ReadFile(b.idPath)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(b.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(id); err != nil {
		return err
	}
	return f.Sync()
}

// powerOff switches the machine off, which shows that the node has failed; the console says why. The agents report nothing: a failed
// app would end the run, but a failed node is a gap.
func (g *guest) powerOff(ctx context.Context) error {
	g.log.Error("the machine was rebooted during the run and is switched off: its apps have ended and are not started again")
	if out, err := exec.CommandContext(ctx, "poweroff").CombinedOutput(); err != nil {
		return fmt.Errorf("poweroff: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
