package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/gpsd"
	"vignette.dev/vignette/internal/position"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
)

// fetchTimeout of one attempt to read the movement, which the server may have to make.
const fetchTimeout = 2 * time.Minute

// locator tells the node's programs where the node is.
type locator struct {
	agent    *Agent
	settings *agentconfig.Position // nil for a node without a position
	runDir   string
	address  string
	device   string
	// ready is closed once the movement is there, or will never be.
	ready    chan struct{}
	movement *position.Movement
}

func newLocator(a *Agent, o Options) *locator {
	l := &locator{agent: a, settings: a.config.Position, runDir: o.RunDir, address: o.GPSAddress, device: "vignette:fixed", ready: make(chan struct{})}
	if l.settings != nil && l.settings.Platform > 0 {
		l.device = "vignette:platform-" + strconv.Itoa(l.settings.Platform)
	}
	return l
}

// wait waits until the app may start, or for the end of ctx.
func (l *locator) wait(ctx context.Context) bool {
	select {
	case <-l.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// path of a file in the app's folder.
func (l *locator) path(of string) string { return filepath.Join(l.runDir, filepath.Base(of)) }

// movementFile is the file with the node's movement; empty for a node without a position.
func (l *locator) movementFile() string {
	select {
	case <-l.ready:
		if l.movement != nil {
			return l.path(agentconfig.MovementFile)
		}
	default:
	}
	return ""
}

// run finds the node's movement, and tells positions until ctx ends.
func (l *locator) run(ctx context.Context) {
	found := l.find(ctx)
	close(l.ready)
	if !found {
		return
	}
	tasks := []func(context.Context){l.serve}
	if l.settings.File {
		tasks = append(tasks, l.keepFile)
	}
	if l.settings.Log {
		tasks = append(tasks, l.keepLog)
	}
	var running []<-chan struct{}
	for _, task := range tasks {
		running = append(running, goDone(func() { task(ctx) }))
	}
	for _, done := range running {
		<-done
	}
}

// find gets the node's movement, and writes it for programs that evaluate it themselves. A scenario of which the server can make none
// leaves the node without a position, and its app runs.
func (l *locator) find(ctx context.Context) bool {
	if l.settings == nil {
		return false
	}
	content, err := l.content(ctx)
	if err == nil && len(content) == 0 {
		l.agent.events.add(runapi.AgentEvent{Event: eventNoPosition, Message: fmt.Sprintf("the scenario has no position of platform %d", l.settings.Platform)})
		return false
	}
	if client.HasStatus(err, http.StatusUnprocessableEntity) {
		l.agent.events.add(runapi.AgentEvent{Event: eventNoPosition, Message: err.Error()})
		return false
	}
	if err == nil {
		err = l.keep(content)
	}
	if err != nil && ctx.Err() == nil {
		l.agent.fail(fmt.Sprintf("app %s on node %s cannot know its position: %v", l.agent.config.App, l.agent.config.Node, err), 0)
	}
	return err == nil
}

func (l *locator) keep(content []byte) error {
	movement, err := position.New(content)
	if err != nil {
		return err
	}
	if err := writeAtomically(l.path(agentconfig.MovementFile), bytes.NewReader(content), 0o644); err != nil {
		return err
	}
	l.movement = movement
	return nil
}

// content of the movement. A server that is away, or still makes it, is asked again.
func (l *locator) content(ctx context.Context) ([]byte, error) {
	if p := l.settings; p.Platform == 0 {
		return position.Fixed(geo.Position{Latitude: p.LatitudeDegrees, Longitude: p.LongitudeDegrees, Altitude: p.AltitudeMetres})
	}
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		attempt, cancel := context.WithTimeout(ctx, fetchTimeout)
		content, err := l.agent.server.Movement(attempt)
		cancel()
		for _, final := range []int{http.StatusNotFound, http.StatusUnprocessableEntity} {
			if client.HasStatus(err, final) {
				return nil, err
			}
		}
		if err == nil || ctx.Err() != nil {
			return content, errors.Join(err, ctx.Err())
		}
		clock.Pause(ctx, retry)
	}
}

// report is the position at a time; before T0, or as long as T0 is not known, that of T0.
func (l *locator) report(at time.Time) gpsd.TPV {
	since := time.Duration(0)
	if t0 := l.agent.schedule.zero(); !t0.IsZero() {
		since = at.Sub(t0)
	}
	place, known, err := l.movement.At(since)
	return gpsd.NewTPV(l.device, at, place, known && err == nil)
}

// serve serves gpsd's protocol. A node's apps have one loopback interface: the agent of one app serves, until it ends. Then that of
// another takes over.
func (l *locator) serve(ctx context.Context) {
	server := &gpsd.Server{Device: l.device, Report: l.report, Now: wallClock}
	for ctx.Err() == nil {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
		if err == nil {
			err = server.Serve(ctx, listener)
		}
		if err != nil {
			clock.Pause(ctx, checkPeriod)
		}
	}
}

// keepFile writes the position each second.
func (l *locator) keepFile(ctx context.Context) {
	path := l.path(agentconfig.PositionFile)
	for said := false; ctx.Err() == nil; {
		at := wallClock().Truncate(gpsd.Interval)
		text, err := json.Marshal(l.report(at))
		if err == nil {
			err = writeAtomically(path, bytes.NewReader(append(text, '\n')), 0o644)
		}
		if err != nil && !said {
			said = true
			l.agent.events.add(runapi.AgentEvent{Event: eventNoPosition, Message: err.Error()})
		}
		clock.Pause(ctx, min(at.Add(gpsd.Interval).Sub(wallClock()), gpsd.Interval)) // the clock may have been set back
	}
}

// keepLog logs each position with the time from which it holds, at most one in a second. A restarted agent goes on after the last line.
func (l *locator) keepLog(ctx context.Context) {
	for l.agent.schedule.zero().IsZero() {
		if clock.Pause(ctx, checkPeriod); ctx.Err() != nil {
			return
		}
	}
	file, err := os.OpenFile(filepath.Join(l.agent.logDir, runapi.PositionsLog), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err == nil {
		err = errors.Join(l.log(ctx, l.agent.schedule.zero(), file), file.Close())
	}
	if err != nil {
		l.agent.events.add(runapi.AgentEvent{Event: eventNoPosition, Message: "the node's positions are not logged to the end: " + err.Error()})
	}
}

func (l *locator) log(ctx context.Context, t0 time.Time, file *os.File) error {
	logged, err := lastLogged(file)
	if err != nil {
		return err
	}
	out := json.NewEncoder(file)
	last, at := runapi.NodePosition{}, time.Duration(0)
	if logged != nil {
		last.Position, at = logged.Position, max(0, time.Unix(0, logged.TimeNanoseconds).Sub(t0))
	}
	for {
		if clock.SleepUntil(ctx, t0.Add(at)) != nil {
			return nil // the run ended
		}
		place, known, err := l.movement.At(at)
		if err != nil {
			return err
		}
		line := runapi.NodePosition{Position: [3]float64{place.Latitude, place.Longitude, math.Round(place.Altitude*100) / 100}}
		if known && line != last {
			last = line
			line.TimeNanoseconds = t0.Add(at).UnixNano()
			if err := out.Encode(line); err != nil {
				return err
			}
		}
		next, more, err := l.movement.Next(at)
		if err != nil || !more {
			return err
		}
		at = max(next, at+gpsd.Interval)
	}
}

// lastLogged is the last line of a log, nil if there is none. It cuts off what follows the last whole line.
func lastLogged(file *os.File) (*runapi.NodePosition, error) {
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	whole := content[:bytes.LastIndexByte(content, '\n')+1]
	if len(whole) < len(content) {
		if err := file.Truncate(int64(len(whole))); err != nil {
			return nil, err
		}
	}
	if len(whole) == 0 {
		return nil, nil
	}
	line := whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1:]
	var last runapi.NodePosition
	if json.Unmarshal(line, &last) != nil {
		return nil, fmt.Errorf("the last line of %s is %q: want a position", filepath.Base(file.Name()), line)
	}
	return &last, nil
}
