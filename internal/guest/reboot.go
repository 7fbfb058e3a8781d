package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bootIDPath differs from boot to boot (random(4)).
const bootIDPath = "/proc/sys/kernel/random/boot_id"

// boots of a machine: apps that one has started cannot be brought back by the next as they were, just as those of a pod that has ended.
type boots struct {
	// noted is the file with the boot that has started the run's apps; id the file that differs from boot to boot.
	noted, id string
}

func (g *guest) boots() boots {
	return boots{filepath.Join(g.stateDir, g.config.RunUID, ".boot"), bootIDPath}
}

// again tells whether an earlier boot has started apps of the run.
func (b boots) again() (bool, error) {
	before, err := os.ReadFile(b.noted)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	id, err := os.ReadFile(b.id)
	return string(before) != string(id), err
}

// note that this boot starts them. It is on the disk before any app is: a crash leaves what was synchronised.
func (b boots) note() error {
	id, err := os.ReadFile(b.id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(b.noted), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(b.noted, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(id); err != nil {
		return err
	}
	return f.Sync()
}

// end switches the machine off, which is how others see that the node has failed; the console says why. The agents report nothing: an app that fails
// ends the run, and a node that does is a gap in it.
func (g *guest) end(ctx context.Context) error {
	g.log.Error("the machine has started again in the middle of the run and is switched off: what ran has ended and is not started again")
	if out, err := exec.CommandContext(ctx, "poweroff").CombinedOutput(); err != nil {
		return fmt.Errorf("poweroff: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
