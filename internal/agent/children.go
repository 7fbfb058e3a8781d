package agent

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// children knows the processes that an instance waits for. All others are orphans that the kernel has given to process 1.
type children struct {
	mu   sync.Mutex
	pids map[int]bool
}

// start starts a command. The lock prevents reapOrphans from taking its exit status before its pid is known.
func (c *children) start(command *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := command.Start(); err != nil {
		return err
	}
	if c.pids == nil {
		c.pids = map[int]bool{}
	}
	c.pids[command.Process.Pid] = true
	return nil
}

func (c *children) forget(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pids, pid)
}

// reapOrphans reaps ended processes that nobody waits for, until ctx ends.
func (c *children) reapOrphans(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	tick := time.NewTicker(checkPeriod) // signals of children that end at the same time merge
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-tick.C:
		}
		c.reap()
	}
}

// reap waits for every zombie child that belongs to no instance.
func (c *children) reap() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // without /proc zombies stay until the container ends
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || c.pids[pid] {
			continue
		}
		if isZombieOf(pid, os.Getpid()) {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// isZombieOf reads /proc/PID/stat: pid (name) state ppid …, where the name may contain anything.
func isZombieOf(pid, parent int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	rest := string(text)
	fields := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
	return len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(parent)
}
