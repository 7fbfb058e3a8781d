//go:build long

package worker

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/radiod/dataplane"
)

// processorTime of this process and of its data plane's so far.
func (m *Manager) processorTime(t *testing.T) (used time.Duration) {
	t.Helper()
	processes := []string{"self"}
	if plane, ok := m.Options.Plane.(*dataplane.Client); ok {
		id, _ := plane.Process()
		processes = append(processes, strconv.Itoa(id))
	}
	for _, process := range processes {
		text, err := os.ReadFile("/proc/" + process + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		// After the name in parentheses come the state and ten more fields, then the times (proc(5)).
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, ticks := range fields[11:13] {
			n, err := strconv.Atoi(ticks)
			if err != nil {
				t.Fatal(err)
			}
			used += time.Duration(n) * time.Second / ticksPerSecond
		}
	}
	return used
}

// ticksPerSecond of the kernel's figures for user space, which may differ from its own.
const ticksPerSecond = 100
