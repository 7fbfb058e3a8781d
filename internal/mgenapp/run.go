package mgenapp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/mgen"
)

// leads are the start times ahead that are tried for mgen, one after the other. It takes 10 to 20 ms to start, on a busy machine more, and ends
// if the time has passed.
var leads = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}

const (
	// maxLine is the longest line of mgen's log. Longer ones, which it never writes, end the reading.
	maxLine = 1 << 20
	// killAfter is how long mgen may take to end after a SIGTERM.
	killAfter = time.Second
	// stopLead is how long before the planned stop flows end. Else chance would decide on a message that is due then.
	stopLead = 100 * time.Microsecond
)

// Runner runs mgen for one instance.
type Runner struct {
	Config Config
	// Program is mgen's path.
	Program string
	// Start is the planned start, from which the script's times count; Stop the planned stop, zero for none.
	Start, Stop time.Time
	// Dir has the script and the count of starts, which outlive a restart of the app.
	Dir string
	Log *messagelog.Writer
	// Out gets mgen's other log lines, such as JOIN and LISTEN.
	Out  io.Writer
	Warn func(string)

	// running is mgen's script; begun: mgen has started it.
	running *mgen.Script
	begun   bool
}

// Run runs until ctx ends. When quiet is closed, flows are turned off and messages in flight are received. An mgen with
// nothing left to do ends by itself; the app does not.
func (r *Runner) Run(ctx context.Context, quiet <-chan struct{}) error {
	script, err := mgen.Parse(r.Config.Script)
	if err != nil {
		return fmt.Errorf("script: %w", err)
	}
	select {
	case <-quiet: // from the start: without flows, as a new one sends before it can be turned off
		script.Events = slices.DeleteFunc(script.Events, func(e mgen.Event) bool { return e.Flow != 0 })
	default:
	}
	if !r.Stop.IsZero() {
		script = script.Until(r.Stop.Sub(r.Start) - stopLead)
	}
	// mgen is killed when the thread that started it ends, and runs in that thread's namespaces.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	starts, again, err := r.countStarts()
	if err != nil {
		return err
	}
	for i, lead := range leads {
		begin := time.Now().Add(lead).Truncate(time.Microsecond)
		err = r.once(ctx, quiet, script.Run(max(0, begin.Sub(r.Start)), starts, again), begin)
		if err == nil || r.begun || ctx.Err() != nil {
			break
		}
		r.Warn(fmt.Sprintf("try %d: %v before it began, %s after its start", i+1, err, lead))
	}
	return err
}

// once runs mgen with a script that begins at a time.
func (r *Runner) once(ctx context.Context, quiet <-chan struct{}, script *mgen.Script, begin time.Time) error {
	command, output, err := r.command(script, begin)
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("mgen: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = command.Process.Signal(syscall.SIGTERM) // an mgen that has ended needs none
		time.AfterFunc(killAfter, func() { _ = command.Process.Kill() })
	})
	defer stop()
	read := make(chan error, 1)
	go func() { read <- r.read(output, quiet) }()
	hush := quiet
	for {
		select {
		case <-hush:
			hush = nil
			r.turnOff()
		case err := <-read:
			return r.ended(ctx, command.Wait(), err)
		}
	}
}

// ended returns why mgen ended.
func (r *Runner) ended(ctx context.Context, waited, read error) error {
	var exit *exec.ExitError
	switch {
	case read != nil:
		return fmt.Errorf("reading mgen's log: %w", read)
	case ctx.Err() != nil:
		return nil
	case errors.As(waited, &exit):
		return fmt.Errorf("mgen ended with %s", exit)
	case waited != nil:
		return fmt.Errorf("mgen: %w", waited)
	}
	<-ctx.Done() // all flows have ended, and no port is open
	return nil
}

// command returns mgen's command for a script that begins at a time.
func (r *Runner) command(script *mgen.Script, begin time.Time) (*exec.Cmd, io.Reader, error) {
	r.running = script
	path := filepath.Join(r.Dir, "script.mgn")
	if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
		return nil, nil, err
	}
	command := exec.Command(r.Program, "ipv4", "flush", "txlog", "instance", r.socket(), "input", path, "start", begin.UTC().Format("15:04:05.000000")+"GMT")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.Stderr = r.Out
	output, err := command.StdoutPipe()
	return command, output, err
}

// socket is the name of mgen's control socket in /tmp.
func (r *Runner) socket() string { return "mgen-" + strings.ReplaceAll(r.Config.Instance, "/", "-") }

// countStarts returns how often the app was started before, and whether it has the planned start of the last time: then it failed.
// It counts this start.
func (r *Runner) countStarts() (before int, again bool, err error) {
	path := filepath.Join(r.Dir, "starts")
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return 0, false, err
	}
	var planned int64
	_, _ = fmt.Sscan(string(text), &before, &planned) // no file: 0
	if again = before > 0 && planned == r.Start.UnixNano(); again {
		r.Warn("was restarted: goes on in the script, and flows have new numbers")
	}
	return before, again, os.WriteFile(path, fmt.Appendf(nil, "%d %d", before+1, r.Start.UnixNano()), 0o600)
}

// read converts mgen's log to records until it ends. Lines that arrive together are one write.
func (r *Runner) read(log io.Reader, quiet <-chan struct{}) error {
	c := newConverter(r.Config, r.Warn)
	lines := bufio.NewReaderSize(log, maxLine)
	var records []messagelog.Record
	for {
		line, err := lines.ReadString('\n')
		record, ok, bad := c.convert(line)
		switch {
		case bad != nil:
			r.Warn(fmt.Sprintf("mgen's log has %q: %v", strings.TrimSpace(line), bad))
		case ok:
			records = append(records, record)
		default:
			r.other(line, quiet)
		}
		if len(records) > 0 && (lines.Buffered() == 0 || err != nil) {
			if err := r.Log.Write(records...); err != nil {
				r.Warn("message log: " + err.Error())
			}
			records = records[:0]
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// other logs lines that are no messages, and turns off a flow that starts after quiet.
func (r *Runner) other(line string, quiet <-chan struct{}) {
	words := strings.Fields(line)
	if len(words) < 2 || words[1] == "SEND" || words[1] == "RECV" {
		return
	}
	r.begun = r.begun || words[1] == "START"
	fmt.Fprintln(r.Out, strings.TrimSpace(line))
	select {
	case <-quiet:
		if words[1] == "ON" {
			r.control("OFF " + fields(words)["flow"])
		}
	default:
	}
}

// turnOff turns off all lives of all flows; mgen ignores those that are not on.
func (r *Runner) turnOff() {
	var events []string
	for _, flow := range r.running.Flows() {
		events = append(events, fmt.Sprintf("OFF %d", flow))
	}
	if len(events) > 0 {
		r.control(events...)
	}
}

// control sends events to the running mgen. Without one, the command would become an mgen itself.
func (r *Runner) control(events ...string) {
	if _, err := os.Stat(filepath.Join("/tmp", r.socket())); err != nil {
		return
	}
	arguments := []string{"instance", r.socket()}
	for _, event := range events {
		arguments = append(arguments, "event", event)
	}
	ctx, cancel := context.WithTimeout(context.Background(), killAfter)
	defer cancel()
	if output, err := exec.CommandContext(ctx, r.Program, arguments...).CombinedOutput(); err != nil {
		r.Warn(fmt.Sprintf("mgen did not take %s: %v %s", strings.Join(events, ", "), err, strings.TrimSpace(string(output))))
	}
}
