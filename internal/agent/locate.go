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
	// ready is closed once the movements are there, or will never be.
	ready chan struct{}
	// movement of the node; nil for none.
	movement *position.Movement
	// reported are the movements of platforms that instances report instead of the node's, by the instances' numbers from 1.
	reported map[int]*position.Movement
}

func newLocator(a *Agent, o Options) *locator {
	l := &locator{agent: a, settings: a.config.Position, runDir: o.RunDir, address: o.GPSAddress, device: "vignette:fixed",
		ready: make(chan struct{}), reported: map[int]*position.Movement{}}
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

// movementFile is the file with the movement that an instance reports, by its number from 1; empty for none. Call wait before it.
func (l *locator) movementFile(instance int) string {
	switch own := l.agent.config.Instances[instance-1].Platform > 0; {
	case own && l.reported[instance] != nil:
		return l.path(reportedFile(instance))
	case !own && l.movement != nil:
		return l.path(agentconfig.MovementFile)
	}
	return ""
}

// reportedFile has the movement that an instance reports instead of the node's.
func reportedFile(instance int) string {
	return fmt.Sprintf("%s-%d", agentconfig.MovementFile, instance)
}

// run finds the movements, and tells positions until ctx ends.
func (l *locator) run(ctx context.Context) {
	if l.settings != nil {
		l.movement = l.find(ctx, l.settings.Platform, "", agentconfig.MovementFile)
	}
	for i, in := range l.agent.config.Instances {
		if in.Platform == 0 {
			continue
		}
		if m := l.find(ctx, in.Platform, in.Name, reportedFile(i+1)); m != nil {
			l.reported[i+1] = m
		}
	}
	close(l.ready)
	var running []<-chan struct{}
	for _, task := range l.tasks() {
		running = append(running, goDone(func() { task(ctx) }))
	}
	for _, done := range running {
		<-done
	}
}

// tasks tell the positions of the movements that were found.
func (l *locator) tasks() (tasks []func(context.Context)) {
	for instance, movement := range l.reported {
		tasks = append(tasks, func(ctx context.Context) { l.keepLog(ctx, movement, runapi.PlatformLog(instance)) })
	}
	if l.movement == nil {
		return tasks
	}
	tasks = append(tasks, l.serve)
	if l.settings.File {
		tasks = append(tasks, l.keepFile)
	}
	if l.settings.Log {
		tasks = append(tasks, func(ctx context.Context) { l.keepLog(ctx, l.movement, runapi.PositionsLog) })
	}
	return tasks
}

// find gets the movement of a node, or of the platform that an instance reports, and writes it for programs that evaluate it
// themselves. A scenario of which the server can make none leaves them without a position, and the app runs.
func (l *locator) find(ctx context.Context, platform int, instance, file string) *position.Movement {
	content, err := l.content(ctx, platform, instance)
	if err == nil && len(content) == 0 {
		l.agent.events.add(runapi.AgentEvent{Event: eventNoPosition, Message: fmt.Sprintf("the scenario has no position of platform %d", platform)})
		return nil
	}
	if client.HasStatus(err, http.StatusUnprocessableEntity) {
		l.agent.events.add(runapi.AgentEvent{Event: eventNoPosition, Message: err.Error()})
		return nil
	}
	var movement *position.Movement
	if err == nil {
		movement, err = l.keep(content, file)
	}
	if err != nil && ctx.Err() == nil {
		l.agent.fail(fmt.Sprintf("app %s on node %s cannot know its position: %v", l.agent.config.App, l.agent.config.Node, err), 0)
	}
	return movement
}

// keep writes a movement, and returns none that could not be written.
func (l *locator) keep(content []byte, file string) (*position.Movement, error) {
	movement, err := position.New(content)
	if err != nil {
		return nil, err
	}
	if err := writeAtomically(l.path(file), bytes.NewReader(content), 0o644); err != nil {
		return nil, err
	}
	return movement, nil
}

// content of a movement; that of platform 0 is the place of a fixed node. A server that is away, or still makes it, is asked again.
func (l *locator) content(ctx context.Context, platform int, instance string) ([]byte, error) {
	if p := l.settings; platform == 0 {
		return position.Fixed(geo.Position{Latitude: p.LatitudeDegrees, Longitude: p.LongitudeDegrees, Altitude: p.AltitudeMetres})
	}
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		attempt, cancel := context.WithTimeout(ctx, fetchTimeout)
		content, err := l.agent.server.Movement(attempt, instance)
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

// keepLog logs each position of a movement with the time from which it holds, at most one in a second. A restarted agent goes on after
// the last line.
func (l *locator) keepLog(ctx context.Context, movement *position.Movement, name string) {
	for l.agent.schedule.zero().IsZero() {
		if clock.Pause(ctx, checkPeriod); ctx.Err() != nil {
			return
		}
	}
	file, err := os.OpenFile(filepath.Join(l.agent.logDir, name), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err == nil {
		err = errors.Join(logPositions(ctx, movement, l.agent.schedule.zero(), file), file.Close())
	}
	if err != nil {
		l.agent.events.add(runapi.AgentEvent{Event: eventNoPosition, Message: fmt.Sprintf("positions are not logged to the end, in %s: %v", name, err)})
	}
}

func logPositions(ctx context.Context, movement *position.Movement, t0 time.Time, file *os.File) error {
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
		place, known, err := movement.At(at)
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
		next, more, err := movement.Next(at)
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
