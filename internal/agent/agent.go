// Package agent is process 1 of every app's container. It starts and stops the app at absolute times (T0 + x) that it knows
// beforehand, so that no delay of the control plane shows in a result; restarts what fails; and ships every log to the archive.
//
// Armed actions need no server: logs stay in the spool until one answers.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/gpsd"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

const (
	heartbeat = 5 * time.Second
	// checkPeriod is how often an agent checks what sends no notification.
	checkPeriod   = time.Second
	reportTimeout = 10 * time.Second
	// pollTimeout is longer than the 30 s for which the server may delay its answer.
	pollTimeout = 45 * time.Second
	firstRetry  = 200 * time.Millisecond
	lastRetry   = 5 * time.Second
	// After a signal to end, instances have signalGrace, and shipping signalShipTime: together less than the pod's 5 s.
	signalGrace    = 1500 * time.Millisecond
	signalShipTime = 3 * time.Second
	// defaultSpoolLimit of all logs of a container.
	defaultSpoolLimit = 512 << 20
)

// server is the part of runapi's client that the agent uses.
type server interface {
	AgentPlan(ctx context.Context, app string, revision int64) (runapi.AgentPlan, error)
	Report(ctx context.Context, report runapi.AgentReport) error
	AppendLogs(ctx context.Context, app string, parts []client.LogPart) ([]client.LogResult, error)
	Movement(ctx context.Context, instance string) ([]byte, error)
}

// wallClock is the time that all nodes share. Go's monotonic reading would hide steps of the clock.
func wallClock() time.Time { return time.Now().Round(0) }

// Options differ only in tests and unusual environments; the zero value suits a node's container.
type Options struct {
	LogDir, RunDir, TokenFile, CgroupDir, ClockFile, SysctlDir string
	// GPSAddress on which the node's position is served.
	GPSAddress     string
	Stdout, Stderr io.Writer
	// NeverHold starts every process at its planned time, without preparing and holding it before.
	NeverHold bool
}

func (o Options) withDefaults() Options {
	fallback := func(value *string, otherwise string) {
		if *value == "" {
			*value = otherwise
		}
	}
	fallback(&o.LogDir, agentconfig.LogDir)
	fallback(&o.RunDir, agentconfig.RunDir)
	fallback(&o.GPSAddress, gpsd.Address)
	fallback(&o.TokenFile, agentconfig.TokenFile)
	fallback(&o.CgroupDir, "/sys/fs/cgroup")
	fallback(&o.ClockFile, agentconfig.ClockFile)
	fallback(&o.SysctlDir, "/proc/sys/net/ipv4")
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	return o
}

// Agent runs the instances of one app on one node.
type Agent struct {
	config    agentconfig.Config
	logDir    string
	cgroupDir string
	clockFile string
	sysctlDir string
	server    server
	events    *eventLog
	ledger    *ledger
	schedule  *schedule
	state     *state
	shipper   *shipper
	instances []*instance
	children  children
	budget    spoolBudget
	locator   *locator
	neverHold bool
	// phase is locked from looking at the instances to setting the phase; else an older look could win.
	phase sync.Mutex
	// endBySignal is set when a signal told the agent to end.
	endBySignal atomic.Bool
}

// New opens the agent's logs. It fails if the log folder cannot be written: nothing could be measured.
func New(config agentconfig.Config, o Options) (*Agent, error) {
	o = o.withDefaults()
	if err := os.MkdirAll(o.LogDir, 0o755); err != nil {
		return nil, fmt.Errorf("log folder: %w", err)
	}
	events, err := openEvents(o.LogDir, o.Stderr, clock.Realtime)
	if err != nil {
		return nil, err
	}
	executed, err := openLedger(o.LogDir)
	if err != nil {
		return nil, err
	}
	a := &Agent{config: config, logDir: o.LogDir, cgroupDir: o.CgroupDir, clockFile: o.ClockFile, sysctlDir: o.SysctlDir, events: events, ledger: executed,
		schedule: newSchedule(), state: newState(config.App), neverHold: o.NeverHold,
		server: client.New(config.Server, httpClient(), client.TokenFile(o.TokenFile))}
	a.locator = newLocator(a, o)
	executed.onSyncError = func(err error) {
		a.fail(fmt.Sprintf("app %s on node %s: the executed action could not be synced to disk and may be repeated after a restart: %v", a.config.App, a.config.Node, err), 0)
	}
	a.shipper = newShipper(o.LogDir, config.App, a.server, events)
	a.shipper.now, a.shipper.onArchivedUntil, a.shipper.budget = clock.Realtime, a.state.archivedUntil, &a.budget
	// Half of the spool is for output; message logs, which results need, have the rest.
	a.budget.bytesLeft.Store(a.spoolLimit() / 2)
	stdout, stderr := &lockedWriter{w: o.Stdout}, &lockedWriter{w: o.Stderr}
	for i, spec := range config.Instances {
		in, err := a.newInstance(i+1, spec, stdout, stderr)
		if err != nil {
			return nil, err
		}
		a.instances = append(a.instances, in)
	}
	return a, nil
}

func (a *Agent) newInstance(number int, spec agentconfig.Instance, stdout, stderr io.Writer) (*instance, error) {
	in := &instance{agent: a, number: number, spec: spec}
	for name, stream := range map[string]struct {
		to        **tee
		container io.Writer
	}{"stdout": {&in.stdout, stdout}, "stderr": {&in.stderr, stderr}} {
		file := fmt.Sprintf("%s-%d.log", name, number)
		spool, err := openSpool(filepath.Join(a.logDir, file))
		if err != nil {
			return nil, err
		}
		*stream.to = &tee{spool: spool, container: stream.container, budget: &a.budget, onFull: func() {
			a.events.add(runapi.AgentEvent{Event: eventSpoolFull, Instance: spec.Name,
				Message: file + " is cut off here: the spool for output is full; the container's log continues"})
		}}
	}
	if a.config.MessagesOnStdout {
		messages, err := openSpool(in.messagesFile())
		if err != nil {
			return nil, err
		}
		in.messages = messagelog.NewBacklog(messages, maxWaitingMessages)
		in.splitter = a.newSplitter(spec.Name, in.messages, in.stdout)
	}
	return in, nil
}

// httpClient needs no proxies and no certificates, and notices a server that is gone.
func httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		ResponseHeaderTimeout: pollTimeout,
		MaxIdleConnsPerHost:   3, // poll, report and shipping
		IdleConnTimeout:       time.Minute,
	}}
}

func (a *Agent) spoolLimit() int64 {
	if a.config.SpoolLimitBytes > 0 {
		return a.config.SpoolLimitBytes
	}
	return defaultSpoolLimit
}

// grace from SIGTERM to SIGKILL.
func (a *Agent) grace() time.Duration {
	grace := time.Duration(a.config.StopGraceSeconds * float64(time.Second))
	if a.endBySignal.Load() {
		return min(grace, signalGrace)
	}
	return grace
}

// fail reports that the app cannot run as it should. Other processes continue until the run is finished.
func (a *Agent) fail(message string, code int) {
	if a.state.fail(message, code) {
		a.events.add(runapi.AgentEvent{Event: eventFailed, Message: message})
	}
}

// updatePhase follows the instances: running while any is active, else stopped.
func (a *Agent) updatePhase() {
	a.phase.Lock()
	defer a.phase.Unlock()
	for _, in := range a.instances {
		if in.isActive() && !in.spec.Aside {
			a.state.phase(runapi.AgentRunning)
			return
		}
	}
	a.state.phase(runapi.AgentStopped)
}

// Run works until the plan finishes, when every log is shipped, or until a signal to end, after which 3 s are left for
// shipping. The exit code is 0, or that of an app that was given up.
func (a *Agent) Run(ctx context.Context, signals <-chan os.Signal) (exitCode int) {
	work, stopWork := context.WithCancel(ctx)
	defer stopWork()
	before := readCPU(a.cgroupDir)
	a.prepareApp()
	if os.Getpid() == 1 {
		go a.children.reapOrphans(work)
	}
	executing, stopExecuting := context.WithCancel(work)
	instancesEnded := make(chan struct{})
	defer close(instancesEnded)
	executingDone := a.startExecutor(executing, instancesEnded)
	go a.watchClock(work)
	shipping, stopShipping := context.WithCancel(work)
	shippingDone := goDone(func() { a.shipAndWatchSpool(shipping) })
	reporting, stopReporting := context.WithCancel(work)
	requests, abandonReport := context.WithCancel(work)
	defer abandonReport()
	locating, stopLocating := context.WithCancel(work)
	locatingDone := goDone(func() { a.locator.run(locating) })
	reportingDone := goDone(func() {
		if a.locator.wait(reporting) {
			a.report(reporting, requests)
		}
	})
	finish := make(chan struct{})
	go a.poll(work, finish)

	finished := a.awaitEnd(ctx, finish, signals)
	a.endBySignal.Store(!finished)
	stopExecuting() // first, so that no instance starts after it was stopped
	<-executingDone
	a.stopAll()
	stopLocating()
	<-locatingDone
	a.reportCPU(before, readCPU(a.cgroupDir))
	a.events.add(runapi.AgentEvent{Event: eventFinished, Message: a.schedule.notExecuted()})
	a.flushLogs()
	stopShipping()
	<-shippingDone
	stopReporting()
	if !finished {
		abandonReport() // too little time is left to wait for an answer
	}
	<-reportingDone
	a.shipRest(ctx, finished, signals)
	return a.state.exitCode()
}

// goDone runs f, and returns a channel that is closed when f has returned.
func goDone(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// prepareApp writes the app's files and looks for its programs. If an earlier agent of this container has executed actions, its
// instances are lost.
func (a *Agent) prepareApp() {
	for _, f := range a.config.Files {
		if err := writeAtomically(f.Path, strings.NewReader(f.Content), 0o644); err != nil {
			a.fail(fmt.Sprintf("app %s on node %s: %v", a.config.App, a.config.Node, err), 0)
			return
		}
	}
	if wanted := a.config.TCPCongestionControl; wanted != "" {
		if err := a.checkCongestionControl(wanted); err != nil {
			a.fail(fmt.Sprintf("app %s on node %s: %v", a.config.App, a.config.Node, err), 0)
			return
		}
	}
	if len(a.ledger.ids) > 0 {
		a.fail(fmt.Sprintf("app %s on node %s: its container was restarted during the run; the app has ended and is not started again", a.config.App, a.config.Node), 0)
	}
	place := "the app's image"
	if readClock(a.clockFile) != nil {
		place = "the virtual machine"
	}
	for _, in := range a.config.Instances {
		if err := checkProgram(in.Command[0], place); err != nil && !in.Aside {
			a.fail(fmt.Sprintf("app %s on node %s cannot run: %v", a.config.App, a.config.Node, err), exitCannotStart)
			return
		}
	}
}

// checkCongestionControl returns why the node's kernel does not have what the experiment asks for.
func (a *Agent) checkCongestionControl(wanted string) error {
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(a.sysctlDir, name)) // unreadable: empty in the message
		return strings.Join(strings.Fields(string(text)), ", ")
	}
	if has := read("tcp_congestion_control"); has != wanted {
		return fmt.Errorf("tcpCongestionControl: the kernel did not take %s and has %s: it knows %s, and allows programs %s; take one of these, or have "+
			"the administrator add %[1]s to the chart's radiod.tcpCongestionControls", wanted, has, read("tcp_available_congestion_control"), read("tcp_allowed_congestion_control"))
	}
	return nil
}

// poll follows the plan until it finishes.
func (a *Agent) poll(ctx context.Context, finish chan<- struct{}) {
	revision, retry, reported := int64(0), firstRetry, false
	for ctx.Err() == nil {
		request, cancel := context.WithTimeout(ctx, pollTimeout)
		plan, err := a.server.AgentPlan(request, a.config.App, revision)
		cancel()
		if err != nil {
			if !reported && ctx.Err() == nil {
				a.events.add(runapi.AgentEvent{Event: eventDisconnected, Message: err.Error()})
				reported = true
			}
			// A restarted server may count from the beginning; actions are known by their ids.
			revision = 0
			clock.Pause(ctx, retry)
			retry = min(2*retry, lastRetry)
			continue
		}
		if reported {
			a.events.add(runapi.AgentEvent{Event: eventConnected})
			reported = false
		}
		if plan.Revision == revision {
			clock.Pause(ctx, firstRetry) // in case the server answers polls at once
		}
		revision, retry = plan.Revision, firstRetry
		a.accept(plan)
		if plan.Finish {
			close(finish)
			return
		}
	}
}

// report sends every change at once, and a heartbeat every 5 s, until ctx ends. It then awaits the last answer, unless requests ends, too.
// A server may read a cancelled request after the next one, and would keep the older state.
func (a *Agent) report(ctx, requests context.Context) {
	first, retry := true, firstRetry
	for ctx.Err() == nil {
		wait := heartbeat
		if err := a.reportOnce(requests); err != nil {
			wait, retry = retry, min(2*retry, lastRetry)
			clock.Pause(ctx, wait) // reporting a change would fail too
			continue
		}
		retry = firstRetry
		if first {
			a.events.add(runapi.AgentEvent{Event: eventReady})
			first = false
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.state.changed:
		}
		timer.Stop()
	}
}

func (a *Agent) reportOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	report := a.state.snapshot()
	report.Clock = readClock(a.clockFile)
	return a.server.Report(ctx, report)
}

// shipAndWatchSpool ships logs, and logs once when the spool exceeds its limit.
func (a *Agent) shipAndWatchSpool(ctx context.Context) {
	done := goDone(func() { a.shipper.run(ctx) })
	defer func() { <-done }()
	disk := diskWatch{state: a.state, free: func() int64 { return freeBytes(a.logDir) }, lastRoom: clock.Realtime()}
	reported := false
	clock.Every(ctx, checkPeriod, func() {
		disk.check(clock.Realtime())
		a.flushLogs()
		if size := spoolBytes(a.logDir); size > a.spoolLimit() && !reported {
			reported = true
			a.budget.bytesLeft.Store(0) // the rest is for message logs
			a.events.add(runapi.AgentEvent{Event: eventSpoolFull,
				Message: fmt.Sprintf("logs that wait for the archive take %d bytes, the limit is %d: output is no longer spooled, message logs still are", size, a.spoolLimit())})
		}
	})
}

// flushLogs writes what waited for room on the disk.
func (a *Agent) flushLogs() {
	_ = a.events.file.Flush() // what still waits is written with the next event, or by the next call
	for _, in := range a.instances {
		if in.messages != nil {
			_ = in.messages.Flush()
		}
	}
}

// awaitEnd waits for the plan's finish (true), or for a signal or ctx (false). Other signals are passed to the app.
func (a *Agent) awaitEnd(ctx context.Context, finish <-chan struct{}, signals <-chan os.Signal) bool {
	for {
		select {
		case <-finish:
			return true
		case <-ctx.Done():
			return false
		case s := <-signals:
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				return false
			}
			if number, ok := s.(syscall.Signal); ok {
				for _, in := range a.instances {
					in.signal(number)
				}
			}
		}
	}
}

// stopAll ends every instance and waits for that within the grace. An instance that is ending may have had a longer grace.
func (a *Agent) stopAll() {
	var ends []<-chan struct{}
	for _, in := range a.instances {
		end := in.endedChannel()
		if end == nil {
			continue
		}
		ends = append(ends, end)
		if in.isWanted() {
			in.halt(syscall.SIGTERM)
		} else {
			in.killAfterGrace(syscall.SIGTERM)
		}
	}
	limit := time.After(a.grace() + pipeDelay + time.Second)
	for _, end := range ends {
		select {
		case <-end:
		case <-limit:
			return
		}
	}
}

// shipRest ships the remaining logs. After finish it has no limit; after a signal, 3 s.
func (a *Agent) shipRest(ctx context.Context, finished bool, signals <-chan os.Signal) {
	if !finished {
		// ctx itself may have ended, and 3 s are left.
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), signalShipTime)
		defer cancel()
		a.shipAndReportDone(short)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				if s == syscall.SIGTERM || s == syscall.SIGINT {
					time.AfterFunc(signalShipTime, cancel)
				}
			}
		}
	}()
	a.shipAndReportDone(ctx)
}

func (a *Agent) shipAndReportDone(ctx context.Context) {
	if err := a.shipper.shipAll(ctx); err != nil {
		fmt.Fprintf(a.events.console, "agent: logs were not shipped completely: %v\n", err)
		if !errors.Is(err, errNoRoom) {
			return
		}
	}
	a.state.phase(runapi.AgentDone)
	for retry := firstRetry; ctx.Err() == nil; retry = min(2*retry, lastRetry) {
		if a.reportOnce(ctx) == nil {
			return
		}
		clock.Pause(ctx, retry)
	}
}

// Signals are those that the agent handles or passes to the app.
func Signals() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT)
	return signals
}
