package routing

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/netns"
)

// babeldPath is Debian's path.
const babeldPath = "/usr/sbin/babeld"

// babel supervises one node's babeld.
type babel struct {
	log       *slog.Logger
	arguments []string
	namespace *os.File
	stop      chan struct{}
	ended     chan struct{}

	mu   sync.Mutex
	pid  int
	err  error
	kill bool // at the end
}

// startBabel starts babeld in the namespace, or continues with one of an earlier instance that still runs.
func startBabel(namespace *os.File, c *Config, before int, log *slog.Logger) (*babel, error) {
	if _, err := os.Stat(babeldPath); err != nil {
		return nil, fmt.Errorf("routing.protocol babel: radiod has no %s: use its image, or install Debian's package babeld", babeldPath)
	}
	identity, err := netns.Of(namespace)
	if err != nil {
		return nil, err
	}
	if err := netns.Do(namespace, func() error { return enableIPv6(c) }); err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(namespace.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	b := &babel{log: log, arguments: babelArguments(c), namespace: os.NewFile(uintptr(fd), namespace.Name()), stop: make(chan struct{}), ended: make(chan struct{})}
	if before > 0 && isBabeld(before, identity) {
		b.pid = before
	}
	go b.run()
	return b, nil
}

// enableIPv6 on the interfaces, because Babel's packets use link-local addresses (RFC 8966 section 4).
// Nothing else may send.
func enableIPv6(c *Config) error {
	for n := range c.Interfaces {
		for _, setting := range []struct{ name, value string }{
			{"accept_ra", "0"}, {"router_solicitations", "0"}, {"dad_transmits", "0"}, {"accept_redirects", "0"}, {"disable_ipv6", "0"}} {
			path := filepath.Join("/proc/sys/net/ipv6/conf", c.Interfaces[n].Name, setting.name)
			if err := os.WriteFile(path, []byte(setting.value), 0o600); err != nil {
				return fmt.Errorf("routing.protocol babel needs IPv6: %w", err)
			}
		}
	}
	return nil
}

// babelArguments for one node: only its own addresses are announced.
func babelArguments(c *Config) []string {
	arguments := []string{"-I", "", "-S", "", "-d", "0", "-L", "/dev/null"}
	for n := range c.Interfaces {
		i := &c.Interfaces[n]
		line := "interface " + i.Name + " type wireless"
		if i.Hello > 0 {
			line += fmt.Sprintf(" hello-interval %.2f", i.Hello.Seconds())
		}
		arguments = append(arguments, "-C", line, "-C", fmt.Sprintf("redistribute local ip %v/32 allow", i.Address.Addr()))
	}
	arguments = append(arguments, "-C", "redistribute local deny")
	for n := range c.Interfaces {
		arguments = append(arguments, c.Interfaces[n].Name)
	}
	return arguments
}

// isBabeld reports whether the process is a babeld in that namespace.
func isBabeld(pid int, namespace netns.Identity) bool {
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil || strings.TrimSpace(string(name)) != "babeld" {
		return false
	}
	var stat unix.Stat_t
	err = unix.Stat(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"), &stat)
	return err == nil && netns.Identity{Device: stat.Dev, Inode: stat.Ino} == namespace
}

// run keeps babeld running until end.
func (b *babel) run() {
	defer close(b.ended)
	defer b.namespace.Close()
	if pid := b.process(); pid != 0 && b.watch(pid) {
		return
	}
	for pause := retryInterval; ; pause = min(2*pause, time.Minute) {
		began := time.Now()
		exited, err := b.start()
		if err == nil {
			err = b.wait(exited)
		}
		if b.isEnding() {
			return
		}
		b.fail(err)
		b.log.Warn("babeld ended", "error", err)
		if time.Since(began) > time.Minute {
			pause = retryInterval
		}
		select {
		case <-b.stop:
			return
		case <-time.After(pause):
		}
	}
}

// watch watches a babeld that is not a child of this process, and reports whether this instance is ending.
func (b *babel) watch(pid int) (over bool) {
	ticker := time.NewTicker(retryInterval)
	defer ticker.Stop()
	for syscall.Kill(pid, 0) == nil {
		select {
		case <-b.stop:
			if b.mustKill() {
				_ = terminate(pid, func() bool { return syscall.Kill(pid, 0) != nil }) // it has ended already
			}
			return true
		case <-ticker.C:
		}
	}
	return b.isEnding()
}

func (b *babel) start() (exited chan error, err error) {
	process := exec.Command(babeldPath, b.arguments...)
	process.Env = []string{}
	// Signals for radiod's worker must not reach it.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := netns.Do(b.namespace, process.Start); err != nil {
		return nil, fmt.Errorf("babeld: %w", err)
	}
	b.mu.Lock()
	b.pid, b.err = process.Process.Pid, nil
	b.mu.Unlock()
	exited = make(chan error, 1)
	go func() { exited <- process.Wait() }()
	return exited, nil
}

// wait for babeld's end, or that of this instance.
func (b *babel) wait(exited chan error) error {
	select {
	case err := <-exited:
		return fmt.Errorf("babeld ended by itself: %v", err)
	case <-b.stop:
	}
	if !b.mustKill() {
		return nil
	}
	gone := false
	return terminate(b.process(), func() bool {
		select {
		case <-exited:
			gone = true
		default:
		}
		return gone
	})
}

// terminateTimeout is the time that babeld has to remove its routes.
const terminateTimeout = 2 * time.Second

func terminate(pid int, gone func() bool) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return nil // it has ended
	}
	for deadline := time.Now().Add(terminateTimeout); !gone(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return nil
}

// end releases babeld for a successor, or stops it.
func (b *babel) end(kill bool) error {
	b.mu.Lock()
	b.kill = kill
	b.mu.Unlock()
	close(b.stop)
	<-b.ended
	return nil
}

func (b *babel) isEnding() bool {
	select {
	case <-b.stop:
		return true
	default:
		return false
	}
}

func (b *babel) mustKill() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kill
}

func (b *babel) process() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pid
}

func (b *babel) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pid, b.err = 0, err
}

func (b *babel) trouble() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
