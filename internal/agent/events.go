package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
)

// eventsFile is the agent's own log, shipped like the app's.
const eventsFile = "agent.jsonl"

// Events of the agent; see also runapi.AgentEvent.
const (
	eventReady        = "ready"
	eventArmed        = "armed"
	eventStarted      = "started"
	eventStopped      = "stopped"
	eventExited       = "exited"
	eventRestarted    = "restarted"
	eventArmedTooLate = "armedTooLate"
	eventFailed       = "failed"
	eventSpoolFull    = "spoolFull"
	eventNotArchived  = "notArchived"
	eventResumed      = "resumed"
	// eventKilled: an instance did not end within its grace and got SIGKILL.
	eventKilled = "killed"
	// eventNoPosition: the node's position is not known, or not told as it should be.
	eventNoPosition = "noPosition"
	// eventNotHeld: a process could not be prepared and held before its start; it is started at the planned time.
	eventNotHeld = "notHeld"
	// eventClockStep: CLOCK_REALTIME jumped against CLOCK_MONOTONIC; LatenessSeconds is the jump, with its sign.
	eventClockStep = "clockStep"
	// eventCPUThrottled and eventCPUPressure: at the end of a run, LatenessSeconds is the total time in which the cgroup was
	// throttled, or in which one of its tasks waited for a processor.
	eventCPUThrottled = "cpuThrottled"
	eventCPUPressure  = "cpuPressure"
	// eventNoMessage: a line of standard output looks like a message event and is invalid.
	eventNoMessage = "noMessage"
	// eventStamped: message events on standard output have no time.
	eventStamped = "stamped"
	// eventDisconnected and eventConnected: the server stopped and resumed answering.
	eventDisconnected = "disconnected"
	eventConnected    = "connected"
	// eventFinished: everything has ended; the last line of a complete log.
	eventFinished = "finished"
)

// eventLog appends events to agent.jsonl, and prints them on the container's log.
type eventLog struct {
	mu      sync.Mutex
	file    *messagelog.Backlog
	closer  io.Closer
	console io.Writer
	now     func() int64
}

// maxWaitingEvents are the bytes of events that wait for a full disk.
const maxWaitingEvents = 256 << 10

func openEvents(logDir string, people io.Writer, now func() int64) (*eventLog, error) {
	f, err := os.OpenFile(filepath.Join(logDir, eventsFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("agent's own log: %w", err)
	}
	return &eventLog{file: messagelog.NewBacklog(f, maxWaitingEvents), closer: f, console: people, now: now}, nil
}

// add gives the event the present time, unless it has one, and writes it as one line.
func (l *eventLog) add(e runapi.AgentEvent) {
	if e.TimeNanoseconds == 0 {
		e.TimeNanoseconds = l.now()
	}
	line, err := json.Marshal(e)
	if err != nil {
		line = []byte(fmt.Sprintf(`{"ts":%d,"event":%q,"message":"event could not be encoded"}`, e.TimeNanoseconds, e.Event))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		fmt.Fprintf(l.console, "agent: agent.jsonl: %v\n", err)
	}
	fmt.Fprintln(l.console, "agent:", describe(e))
}

func describe(e runapi.AgentEvent) string {
	text := e.Event
	if e.Instance != "" {
		text += " " + e.Instance
	}
	if e.ActionID != "" {
		text += " by action " + e.ActionID
	}
	if e.PlannedNanoseconds != 0 {
		text += fmt.Sprintf(", %.3f ms late", e.LatenessSeconds*1e3)
	}
	if e.ExitCode != nil {
		text += fmt.Sprintf(", exit code %d", *e.ExitCode)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}
