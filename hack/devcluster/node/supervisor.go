package node

import (
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"vignette.dev/vignette/hack/devcluster/cgroup"
)

const (
	restartDelay    = time.Second
	shortLife       = 10 * time.Second
	shortLivesLimit = 4
	logLimitBytes   = 64 << 20
	logCheck        = time.Minute
)

// supervisor starts programs, restarts them when they end, and, being
// PID 1, reaps every orphan of the node. It does not use os/exec's wait,
// which would compete with the reaping.
type supervisor struct {
	logDir      string
	hierarchies cgroup.Hierarchies
	mu          sync.Mutex
	ended       map[int]chan syscall.WaitStatus
}

func newSupervisor(logDir string, hierarchies cgroup.Hierarchies) *supervisor {
	s := &supervisor{logDir: logDir, hierarchies: hierarchies, ended: map[int]chan syscall.WaitStatus{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go func() {
		for range signals {
			s.reap()
		}
	}()
	go s.limitLogs()
	return s
}

func (s *supervisor) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 {
			return
		}
		if waiter := s.ended[pid]; waiter != nil {
			waiter <- status
			delete(s.ended, pid)
		}
	}
}

// start starts a program in a control group with its output appended to its log.
func (s *supervisor) start(name string, command []string, group string) (<-chan syscall.WaitStatus, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(filepath.Join(s.logDir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	// Held over the fork, so that the program is not reaped before it is known.
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(),
		Files: []uintptr{null.Fd(), out.Fd(), out.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	if err := s.hierarchies.Enter(group, pid); err != nil {
		log.Printf("%s: %v", name, err) // it may have ended already
	}
	ended := make(chan syscall.WaitStatus, 1)
	s.ended[pid] = ended
	return ended, nil
}

// keep keeps a program running in a control group. It calls onShortLives when the program has ended soon
// after its start several times in a row, before any longer life.
func (s *supervisor) keep(name string, command []string, group string, onShortLives func()) {
	go func() {
		for short := 0; ; {
			began := time.Now()
			ended, err := s.start(name, command, group)
			if err != nil {
				log.Printf("%s: %v", name, err)
			} else {
				status := <-ended
				log.Printf("%s ended after %s (status %d, signal %d): starting it again",
					name, time.Since(began).Round(time.Second), status.ExitStatus(), status.Signal())
			}
			short++
			if time.Since(began) > shortLife {
				short, onShortLives = 0, nil
			}
			if short == shortLivesLimit && onShortLives != nil {
				onShortLives()
			}
			time.Sleep(restartDelay)
		}
	}()
}

// limitLogs keeps one old copy of a log that is too long.
func (s *supervisor) limitLogs() {
	for ; ; time.Sleep(logCheck) {
		logs, err := filepath.Glob(filepath.Join(s.logDir, "*.log"))
		if err != nil {
			continue
		}
		for _, path := range logs {
			if info, err := os.Stat(path); err == nil && info.Size() > logLimitBytes {
				if err := copyAndTruncate(path); err != nil {
					log.Printf("shorten %s: %v", path, err)
				}
			}
		}
	}
}

// copyAndTruncate truncates the file, as the program keeps it open for appending.
func copyAndTruncate(path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(path + ".1")
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	return os.Truncate(path, 0)
}

// repeat repeats a task forever at an interval. It logs an error only if it is new.
func repeat(name string, interval time.Duration, task func() error) {
	told := ""
	for ; ; time.Sleep(interval) {
		text := ""
		if err := task(); err != nil {
			text = err.Error()
		}
		if text != "" && text != told {
			log.Printf("%s: %s", name, text)
		}
		told = text
	}
}
