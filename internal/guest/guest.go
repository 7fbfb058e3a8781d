// Package guest makes a running Linux a node like a pod: it sets up radios, names, the clock and the rules that keep traffic on the
// radios. Then it runs each app's agent in a mount namespace in which everything is where a container has it. It needs root in
// the machine, and does not touch anything else.
package guest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/runapi/client"
)

// Paths in a guest.
const (
	// RunDir is for files until the next boot; only root may read it.
	RunDir = "/run/vignette"
	// StateDir has the apps' files by run and app: after a boot during the run the agent finds what it had executed.
	StateDir = "/var/lib/vignette"
)

// Options of a guest; an empty folder means that its disk is searched.
type Options struct {
	// ConfigDir has guestconfig.ConfigFile and guestconfig.TokenFile.
	ConfigDir string
	// ToolsDir has the platform's programs.
	ToolsDir string
	Log      *slog.Logger
}

// guest is one machine.
type guest struct {
	config    guestconfig.Config
	log       *slog.Logger
	configDir string
	toolsDir  string
	runDir    string
	stateDir  string
	// resolvConf is where a lease's name servers are written.
	resolvConf string
	// openDisk mounts a Secret's disk, by its label, until done.
	openDisk func(label string) (folder string, done func() error, err error)
	client   *client.Client
	clock    *clockKeeper
}

// Run sets up the machine and runs its apps until ctx ends; then agents get SIGTERM and their grace.
func Run(ctx context.Context, o Options) error {
	g := &guest{log: o.Log, runDir: RunDir, stateDir: StateDir, resolvConf: resolvConfPath}
	g.openDisk = g.mountSecret
	if err := g.open(o); err != nil {
		return err
	}
	g.log.Info("guest", "node", g.config.Node, "apps", len(g.config.Apps), "radios", len(g.config.Interfaces))
	if err := nameHost(g.config, "/etc/hostname", "/etc/hosts"); err != nil {
		return err
	}
	radios, err := g.setUpRadios(ctx)
	if err != nil {
		return err
	}
	var background sync.WaitGroup
	defer background.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	management, err := g.setUpManagement(ctx, &background)
	if err != nil {
		return err
	}
	isolation, err := g.isolate(ctx, radios, management)
	if err != nil {
		return err
	}
	background.Go(func() { isolation.run(ctx) })
	again, err := g.bootRecord().restarted()
	if err != nil {
		return err
	}
	if again {
		return g.powerOff(ctx)
	}
	background.Go(func() { g.serveSSH(ctx) })
	closeRouting, err := g.startRouting(radios)
	if err != nil {
		return err
	}
	defer closeRouting()
	if err := g.clock.set(ctx); err != nil {
		return err
	}
	background.Go(func() { g.clock.run(ctx) })
	if err := g.bootRecord().record(); err != nil {
		return err
	}
	return g.runApps(ctx)
}

// open finds the disks and reads the configuration.
func (g *guest) open(o Options) (err error) {
	if err := os.MkdirAll(g.runDir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(g.runDir, 0o700); err != nil { // what started this program has made it for its tools
		return err
	}
	if g.configDir, err = folderOrDisk(o.ConfigDir, guestconfig.ConfigLabel, filepath.Join(g.runDir, "config")); err != nil {
		return err
	}
	if g.toolsDir, err = folderOrDisk(o.ToolsDir, guestconfig.ToolsLabel, filepath.Join(g.runDir, "tools")); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(g.configDir, guestconfig.ConfigFile))
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if g.config, err = guestconfig.Parse(text); err != nil {
		return err
	}
	token := filepath.Join(g.configDir, guestconfig.TokenFile)
	if _, err := os.Stat(token); err != nil {
		return fmt.Errorf("token for the server: %w", err)
	}
	g.client = client.New(g.config.Server, httpClient(), client.TokenFile(token))
	g.clock = newClockKeeper(g.client, filepath.Join(g.runDir, "clock", "clock.json"), g.log)
	return os.MkdirAll(filepath.Join(g.runDir, "clock"), 0o755)
}
