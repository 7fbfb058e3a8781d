//go:build long

package worker

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// processorTime of this process and of the routers' so far.
func (m *Manager) processorTime(t *testing.T) (used time.Duration) {
	t.Helper()
	processes := []string{"self"}
	if routers := routersProcess(m); routers != 0 {
		processes = append(processes, strconv.Itoa(routers))
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
