package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/hack/devcluster/store"
)

const killWindow = 20 * time.Second

// process identifies a process for certain: its id may be used again, but not with
// the same start time in the same boot.
type process struct {
	PID       int    `json:"pid"`
	StartTime string `json:"startTime"` // clock ticks since boot, as in /proc/PID/stat
	BootID    string `json:"bootID"`
	// Started is when this node started, by the wall clock.
	Started time.Time `json:"started"`
	// Built names the products from which the node was started.
	Built string `json:"built"`
}

func describeProcess(pid int) (process, error) {
	start, state, err := startTime(pid)
	if err != nil {
		return process{}, err
	}
	if state == "Z" || state == "X" {
		return process{}, fmt.Errorf("process %d has ended", pid)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, err
	}
	return process{PID: pid, StartTime: start, BootID: strings.TrimSpace(string(boot))}, nil
}

// startTime reads fields 22 and 3 of /proc/PID/stat; the second field, the
// program's name, may itself hold spaces and brackets.
func startTime(pid int) (start, state string, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	return parseStat(string(data))
}

func parseStat(text string) (start, state string, err error) {
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	if len(fields) < 20 {
		return "", "", fmt.Errorf("process status %q: too short", text)
	}
	return fields[19], fields[0], nil
}

func (p process) alive() bool {
	now, err := describeProcess(p.PID)
	return err == nil && now.StartTime == p.StartTime && now.BootID == p.BootID
}

// kill ends the process if it is still the same one, and waits for its end.
func (p process) kill() error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", p.PID, err)
	}
	defer unix.Close(fd)
	// Checked after opening the descriptor, as from now on the id cannot be reused.
	if !p.alive() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	for deadline := time.Now().Add(killWindow); p.alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not end", p.PID)
		}
	}
	return nil
}

func (p process) write(path string) error { return writeJSON(path, p) }

func readProcess(path string) (process, error) {
	var p process
	return p, readJSON(path, &p)
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return store.WriteFile(path, append(data, '\n'), 0o644)
}

func readJSON(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}
