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

// earlierBoot tells whether apps of this run have been started in an earlier boot: they cannot be brought back as they were, just as those of
// a pod that has ended. It notes this one.
func earlierBoot(stateDir, runUID, bootIDFile string) (bool, error) {
	id, err := os.ReadFile(bootIDFile)
	if err != nil {
		return false, err
	}
	file := filepath.Join(stateDir, runUID, ".boot")
	before, err := os.ReadFile(file)
	if err == nil {
		return string(before) != string(id), nil
	}
	if !os.IsNotExist(err) {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return false, err
	}
	// On the disk before any app is: a crash leaves what was synchronised.
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if _, err := f.Write(id); err != nil {
		return false, err
	}
	return false, f.Sync()
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
