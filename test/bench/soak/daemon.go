package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// daemon is a radiod as its DaemonSet starts it, with the API server out of reach: it goes by its state folder.
type daemon struct {
	program, directory, server string
	command                    *exec.Cmd
	log                        *os.File
}

func build(directory string) (program string, err error) {
	command := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", directory, "vignette.dev/vignette/images/radiod", "vignette.dev/vignette/images/radiod/radio")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build radiod: %w\n%s", err, output)
	}
	return filepath.Join(directory, "radiod"), nil
}

func (d *daemon) path(name string) string { return filepath.Join(d.directory, name) }

func (d *daemon) start() error {
	d.command = exec.Command(d.program, "--host=host", "--namespace=platform", "--state-dir="+d.directory, "--socket="+d.path("radiod.sock"),
		"--metrics-address=127.0.0.1:0", "--kubeconfig="+d.path("kubeconfig"), "--server-url="+d.server, "--token-file="+d.path("token"))
	d.command.Stdout, d.command.Stderr = d.log, d.log
	d.command.SysProcAttr = &unix.SysProcAttr{Setpgid: true} // a signal from the terminal is for us
	d.command.WaitDelay = time.Second
	return d.command.Start()
}

func (d *daemon) end(signal os.Signal) {
	if d.command != nil {
		_ = d.command.Process.Signal(signal)
		_ = d.command.Wait()
		d.command = nil
	}
}

// child is the parent's worker or data plane, or 0.
func (d *daemon) child(what string) int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", d.command.Process.Pid))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(text)) {
			command, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if arguments := strings.Split(string(command), "\x00"); len(arguments) > 1 && arguments[1] == what {
				pid, _ := strconv.Atoi(child)
				return pid
			}
		}
	}
	return 0
}

// downTime of a radiod whose parent was killed, as with the kubelet.
const downTime = time.Second

// killPlane as the kernel would for want of memory.
func (d *daemon) killPlane() error {
	plane := d.child("plane")
	if plane == 0 {
		return errors.New("radiod has no data plane")
	}
	return unix.Kill(plane, unix.SIGKILL)
}

// killAll as when the container is killed.
func (d *daemon) killAll() {
	children := []int{d.child("worker"), d.child("plane")}
	d.end(unix.SIGKILL)
	for _, child := range children {
		if child != 0 {
			_ = unix.Kill(child, unix.SIGKILL) // it ends by itself, too
		}
	}
}

// resident memory of a process in MiB.
func resident(pid int) (mib float64) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, _ := process.Stat()
	return float64(stat.ResidentMemory()) / (1 << 20)
}

// memory is what the parent, and worker and data plane together, had resident, and a line fitted to the second half.
type memory struct {
	half                     time.Time
	pid                      int       // of the data plane
	started                  time.Time // when it was first seen
	parent, worker           float64   // newest, MiB
	mostParent, mostWorker   float64
	x, y                     []float64 // seconds since half, MiB
	n, sumX, sumY, sumXX, xy float64
}

// warm is how long a new worker's memory still grows to what it needs.
const warm = 20 * time.Second

func newMemory(half time.Time) *memory { return &memory{half: half} }

func (m *memory) add(d *daemon) {
	if d.command == nil {
		return
	}
	worker, plane := d.child("worker"), d.child("plane")
	if worker == 0 || plane == 0 {
		return
	}
	held, working := resident(d.command.Process.Pid), resident(worker)+resident(plane)
	if working == 0 {
		return // it has just been killed
	}
	m.parent, m.worker = held, working
	m.mostParent, m.mostWorker = max(m.mostParent, m.parent), max(m.mostWorker, m.worker)
	if plane != m.pid {
		m.pid, m.started = plane, time.Now()
	}
	since := time.Since(m.half)
	if since < 0 || time.Since(m.started) < warm {
		return
	}
	x, y := since.Seconds(), m.parent+m.worker
	m.n, m.sumX, m.sumY, m.sumXX, m.xy = m.n+1, m.sumX+x, m.sumY+y, m.sumXX+x*x, m.xy+x*y
	m.x, m.y = append(m.x, x), append(m.y, y)
}

// growth of the fitted line over the second half, MiB.
func (m *memory) growth() float64 {
	spread := m.n*m.sumXX - m.sumX*m.sumX
	if m.n < 3 || spread == 0 {
		return math.NaN()
	}
	return (m.n*m.xy - m.sumX*m.sumY) / spread * (m.x[len(m.x)-1] - m.x[0])
}

func (m *memory) print() {
	fmt.Printf("  memory: parent at most %.1f MiB, worker at most %.1f MiB; fitted growth over the second half %+.2f MiB (%d readings)\n",
		m.mostParent, m.mostWorker, m.growth(), len(m.y))
}

// shortest second half in which growth shows: several workers must have come and gone.
const shortest = 10 * time.Minute

func (m *memory) verdict(most float64) error {
	if time.Since(m.half) < shortest {
		fmt.Println("  too short to judge the growth of memory")
		return nil
	}
	if growth := m.growth(); !(growth <= most) {
		return fmt.Errorf("memory grew by %.2f MiB in the second half; want at most %.1f", growth, most)
	}
	return nil
}
