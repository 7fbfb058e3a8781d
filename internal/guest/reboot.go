package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// bootIDPath differs from boot to boot (random(4)).
	bootIDPath = "/proc/sys/kernel/random/boot_id"
	// farewell is how long the server is told before the machine goes off.
	farewell = 15 * time.Second
)

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

// end tells the server of every app, and switches the machine off, which is how others see that the node has failed.
func (g *guest) end(ctx context.Context) error {
	message := fmt.Sprintf("node %s: its virtual machine has started again in the middle of the run", g.config.Node)
	g.log.Error("the machine has started again in the middle of the run and is switched off: what ran has ended and is not started again")
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	var told sync.WaitGroup
	for _, app := range g.config.Apps {
		told.Go(func() { g.tellFailed(ctx, app.Agent.App, message) })
	}
	told.Wait()
	if out, err := exec.Command("poweroff").CombinedOutput(); err != nil {
		return fmt.Errorf("poweroff: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
