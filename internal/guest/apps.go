package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/runapi"
)

const (
	// AppCommand makes `agent` the agent of one app, whose appSpec is on descriptor 3.
	AppCommand = "guest-app"
	specFD     = 3
	// agentGrace is how long agents may ship logs after SIGTERM, as in a pod.
	agentGrace = 5 * time.Second
	// defaultUser is the platform's user and group of apps.
	defaultUser = 65532
	// maxLastLines of a failed agent that are reported.
	maxLastLines = 3
	// reportTime is how long a failed report is repeated.
	reportTimeout = time.Minute
)

// appSpec is what an app's process needs before it becomes the agent.
type appSpec struct {
	App guestconfig.App
	// Root is an empty folder on which the app's root is mounted.
	Root string
	// State has the app's folders run, log and tmp, and token.
	State string
	// Tools is the folder of the platform's programs; Clock that of agentconfig.ClockFile.
	Tools, Clock string
}

// user of the app.
func (s appSpec) user() int {
	if s.App.RunAsUser != nil {
		return int(*s.App.RunAsUser)
	}
	return defaultUser
}

// runApps runs one agent for each app until ctx ends. Finished agents are not restarted.
func (g *guest) runApps(ctx context.Context) error {
	var running sync.WaitGroup
	var failed []error
	for _, app := range g.config.Apps {
		command, output, err := g.start(app)
		if err != nil {
			failed = append(failed, fmt.Errorf("app %s: %w", app.Agent.App, err))
			running.Go(func() { g.reportFailed(ctx, notStarted(app.Agent.App, g.config.Node, err)) })
			continue
		}
		running.Go(func() { g.supervise(ctx, app.Agent.App, command, output) })
	}
	for _, err := range failed {
		g.log.Error("apps", "error", err)
	}
	<-ctx.Done()
	running.Wait()
	return errors.Join(failed...)
}

// notStarted is the report for an app whose agent could not be started.
func notStarted(app, node string, why error) runapi.AgentReport {
	report := runapi.AgentReport{App: app, Phase: runapi.AgentFailed, Message: fmt.Sprintf("app %s on node %s: its agent could not be started in the virtual machine: %v", app, node, why)}
	if errors.As(why, &missingKey{}) {
		report.Reason, report.Message = runapi.ReasonKeyNotFound, fmt.Sprintf("node %s: app %s %v", node, app, why)
	}
	return report
}

// start the process that becomes the app's agent.
func (g *guest) start(app guestconfig.App) (*exec.Cmd, io.Reader, error) {
	app, err := g.withSecrets(app)
	if err != nil {
		return nil, nil, err
	}
	spec, err := g.prepare(app)
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	command := exec.Command(self, AppCommand)
	command.Env = []string{}
	// A process namespace, as for a container: the app's processes end with its agent.
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Setsid: true}
	output, err := command.StderrPipe()
	if err != nil {
		return nil, nil, err
	}
	return command, output, startWith(command, text)
}

// startWith starts a command that reads a text from descriptor 3.
func startWith(command *exec.Cmd, text []byte) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	command.ExtraFiles = []*os.File{read}
	err = command.Start()
	err = errors.Join(err, read.Close()) // else a command that ends early would leave the write waiting
	if err != nil {
		return errors.Join(err, write.Close())
	}
	_, err = write.Write(text)
	if err = errors.Join(err, write.Close()); err != nil {
		return errors.Join(err, command.Process.Kill(), command.Wait())
	}
	return nil
}

// prepare the app's folders.
func (g *guest) prepare(app guestconfig.App) (appSpec, error) {
	name := app.Agent.App
	spec := appSpec{App: app, Root: filepath.Join(g.runDir, "roots", name), State: filepath.Join(g.stateDir, g.config.RunUID, name),
		Tools: g.toolsDir, Clock: filepath.Join(g.runDir, "clock")}
	if err := os.MkdirAll(spec.Root, 0o700); err != nil {
		return spec, err
	}
	// The app sees them only in the namespace in which they are mounted.
	if err := os.MkdirAll(spec.State, 0o700); err != nil {
		return spec, err
	}
	for folder, mode := range map[string]os.FileMode{"run": 0o755, "log": 0o755, "tmp": 0o1777, "token": 0o555} {
		path := filepath.Join(spec.State, folder)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return spec, err
		}
		if err := errors.Join(os.Chmod(path, mode&0o777|os.ModeSticky*((mode>>9)&1)), os.Chown(path, spec.user(), defaultUser)); err != nil {
			return spec, err
		}
	}
	token, err := os.ReadFile(filepath.Join(g.configDir, guestconfig.TokenFile))
	if err != nil {
		return spec, fmt.Errorf("token for the server: %w", err)
	}
	path := filepath.Join(spec.State, "token", guestconfig.TokenFile)
	if err := replaceFile(path, token, 0o400); err != nil {
		return spec, err
	}
	return spec, os.Chown(path, spec.user(), defaultUser)
}

// supervise an agent until it or ctx ends.
func (g *guest) supervise(ctx context.Context, app string, command *exec.Cmd, output io.Reader) {
	read := make(chan agentOutput, 1)
	go func() { read <- g.readOutput(app, output) }()
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		_ = command.Process.Signal(syscall.SIGTERM) // it may just have ended
		select {
		case <-ended:
		case <-time.After(agentGrace):
			_ = command.Process.Kill()
		}
	}()
	words := <-read
	err := command.Wait()
	close(ended)
	g.log.Info("agent ended", "app", app, "state", command.ProcessState.String())
	if err == nil || words.finished || ctx.Err() != nil {
		return // it has sent its report itself
	}
	message := fmt.Sprintf("app %s on node %s: its agent ended in the virtual machine: %v", app, g.config.Node, command.ProcessState)
	if len(words.last) > 0 {
		message += ": " + strings.Join(words.last, "; ")
	}
	g.reportFailed(ctx, runapi.AgentReport{App: app, Phase: runapi.AgentFailed, Message: message})
}

// agentOutput is what an agent printed about itself.
type agentOutput struct {
	// finished is set if the agent finished regularly.
	finished bool
	last     []string
}

// agentPrefix of an agent's own lines. The others are the app's, which the agent ships.
const agentPrefix = "agent:"

// readOutput reads an agent's output until it ends, and logs the agent's own lines.
func (g *guest) readOutput(app string, output io.Reader) (words agentOutput) {
	lines := bufio.NewReaderSize(output, 64<<10)
	for {
		line, isPrefix, err := lines.ReadLine()
		if err != nil {
			return words
		}
		text := string(line)
		for isPrefix && err == nil { // skip the rest of a long line
			_, isPrefix, err = lines.ReadLine()
		}
		if !strings.HasPrefix(text, agentPrefix) {
			continue
		}
		text = strings.TrimSpace(strings.TrimPrefix(text, agentPrefix))
		g.log.Info("agent", "app", app, "says", text)
		words.finished = words.finished || strings.HasPrefix(text, "finished")
		if words.last = append(words.last, text); len(words.last) > maxLastLines {
			words.last = words.last[1:]
		}
	}
}

// reportFailed reports a failed agent in its place.
func (g *guest) reportFailed(ctx context.Context, report runapi.AgentReport) {
	g.log.Error("agent", "app", report.App, "error", report.Message)
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	for {
		err := g.client.Report(ctx, report)
		if err == nil {
			return
		}
		if !clock.Pause(ctx, time.Second) {
			g.log.Error("the failure could not be reported", "app", report.App, "error", err)
			return
		}
	}
}
