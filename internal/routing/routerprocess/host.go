// Package routerprocess runs the routing of nodes (package routing) in a process of its own. A radio's loop cannot
// wait. In one process with hundreds of routers it would have to, whenever Go's garbage collector scans their
// tables. A separate process also has its own memory, and if it ends, the radios continue.
//
// The process is the same program, started with the argument Command. It ends with the one that started it.
package routerprocess

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/olsr"
	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radiod/holder"
	"vignette.dev/vignette/internal/routing"
)

// Command is the argument that makes a program the routers' process; Serve's arguments follow.
const Command = "routers"

const (
	controlSocket, reportSocket = 3, 4
	// answerTimeout for its reports, which the process answers at once, and for its end.
	answerTimeout = 10 * time.Second
)

// Options of a process.
type Options struct {
	// Engine whose loops the process must not disturb. The process has the priority of the rest of the
	// engine's process.
	Engine driver.Options
	// Ended is called when the process has ended, for whatever reason. Nil is allowed.
	Ended func()
}

// Host is the routers' process, as seen from the process that started it.
type Host struct {
	log     *slog.Logger
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	exit    error         // set before ended is closed

	calling sync.Mutex // one call at a time
	control *channel

	refreshing sync.Mutex // for reports, one at a time
	reports    *channel
	scratch    report

	mu        sync.Mutex // protects the rest, and the instances' own
	next      uint64
	instances map[uint64]*Instance
	seen      int64
}

// Start the process.
func Start(log *slog.Logger, o Options) (h *Host, err error) {
	h = &Host{log: log, ended: make(chan struct{}), instances: map[uint64]*Instance{}, seen: clock.Realtime()}
	h.process = exec.Command("/proc/self/exe", Command, "--nice", strconv.Itoa(o.Engine.Nice), "--realtime", strconv.Itoa(o.Engine.Realtime))
	h.process.Stdout, h.process.Stderr = os.Stdout, os.Stderr
	// Signals to the group are for this process, which ends the other.
	h.process.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	var theirs [2]*os.File
	if h.control, theirs[0], err = newSocketPair(); err != nil {
		return nil, err
	}
	defer theirs[0].Close()
	if h.reports, theirs[1], err = newSocketPair(); err != nil {
		return nil, errors.Join(err, h.control.conn.Close())
	}
	defer theirs[1].Close()
	h.process.ExtraFiles = theirs[:]
	if err := startOnProcessors(routersProcessors(max(o.Engine.Loops, 1)), h.process); err != nil {
		return nil, errors.Join(fmt.Errorf("routers' process: %w", err), h.closeSockets())
	}
	go h.wait(o.Ended)
	return h, nil
}

// routersProcessors returns the processors of the routers: all but one for each loop, and at least half of
// all. Their garbage collections would otherwise take all processors, and loops would only run at the
// kernel's ticks. It returns nil if there is only one.
func routersProcessors(loops int) []int {
	all, err := clock.Processors()
	if err != nil || len(all) < 2 {
		return nil
	}
	return all[min(loops, len(all)/2):]
}

// startOnProcessors starts a process on some processors only, unless they are nil.
func startOnProcessors(processors []int, process *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread, whose processors the process inherits, ends with the goroutine
		if processors != nil {
			_ = clock.Bind(0, processors...) // a refusal only costs lateness, which is measured
		}
		started <- process.Start()
	}()
	return <-started
}

// newSocketPair returns the two ends of a socket.
func newSocketPair() (ours *channel, theirs *os.File, err error) {
	conn, theirs, err := holder.SocketPair(unix.SOCK_STREAM)
	return &channel{conn: conn}, theirs, err
}

func (h *Host) wait(told func()) {
	h.exit = h.process.Wait()
	close(h.ended)
	if told != nil {
		told()
	}
}

// Ended is closed when the process has ended. Requests fail then. Routes in nodes' kernels and babeld stay.
func (h *Host) Ended() <-chan struct{} { return h.ended }

// Process returns its process id.
func (h *Host) Process() int { return h.process.Process.Pid }

// Seen returns when the process last answered, by CLOCK_REALTIME.
func (h *Host) Seen() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

// Close ends the process. Instances must have been left or stopped before. It returns errors of the process's
// end.
func (h *Host) Close() error {
	err := h.closeSockets() // this ends the process
	select {
	case <-h.ended:
	case <-time.After(answerTimeout):
		err = errors.Join(err, fmt.Errorf("routers' process %d did not end and was killed", h.Process()), h.process.Process.Kill())
		<-h.ended
	}
	return errors.Join(err, h.exit)
}

func (h *Host) closeSockets() error {
	return errors.Join(h.control.conn.Close(), h.reports.conn.Close())
}

// call makes the process handle a request, which may take long.
func (h *Host) call(r request, namespace *os.File) (a answer, err error) {
	h.calling.Lock()
	defer h.calling.Unlock()
	payload, err := cbor.Marshal(r)
	if err != nil {
		return a, fmt.Errorf("%s: %w", r.Do, err)
	}
	fd := -1
	if namespace != nil {
		fd = int(namespace.Fd())
	}
	if err = h.control.send(payload, fd); err == nil {
		payload, _, err = h.control.receive()
	}
	if err == nil {
		err = cbor.Unmarshal(payload, &a)
	}
	if err != nil {
		return a, fmt.Errorf("request %s to the routers' process: %w", r.Do, err)
	}
	if a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// Adopt implements routing.Host.Adopt in the process.
func (h *Host) Adopt(namespace *os.File, c routing.Config, s routing.State, absent time.Duration) (*Instance, error) {
	h.mu.Lock()
	h.next++
	i := &Instance{host: h, id: h.next}
	h.instances[i.id] = i // before the process has it, because routes are reported once
	h.mu.Unlock()
	if _, err := h.call(request{Do: doAdopt, ID: i.id, Config: &c, State: &s, Absent: absent}, namespace); err != nil {
		i.unregister()
		return nil, err
	}
	return i, nil
}

// Refresh reads the counters and routes of all instances. Until the next call, instances return these.
func (h *Host) Refresh() error {
	h.refreshing.Lock()
	defer h.refreshing.Unlock()
	_ = h.reports.conn.SetDeadline(time.Now().Add(answerTimeout)) // fails only if the rest fails
	err := h.reports.send(nil, -1)
	var payload []byte
	if err == nil {
		payload, _, err = h.reports.receive()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.Join(fmt.Errorf("routers' process %d did not answer and was killed", h.Process()), h.process.Process.Kill())
	}
	if err != nil {
		return fmt.Errorf("reports of the routers' process: %w", err)
	}
	return h.readReports(payload)
}

// readReports reads reports. Those of ending instances are ignored.
func (h *Host) readReports(payload []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = clock.Realtime()
	for r := (&reader{rest: payload}); len(r.rest) > 0; {
		if err := r.report(&h.scratch); err != nil {
			return fmt.Errorf("reports of the routers' process: %w", err)
		}
		if i := h.instances[h.scratch.id]; i != nil {
			i.applyReport(&h.scratch)
		}
	}
	return nil
}

// Instance is a node's part in one routing domain, as routing.Instance. Its data is that of the last
// Host.Refresh.
type Instance struct {
	host *Host
	id   uint64
	// The rest is protected by the host's mu.
	process  int
	trouble  error
	counters []routing.Counters
	routes   []byte
}

func (i *Instance) applyReport(r *report) {
	i.process = r.process
	if text := string(r.trouble); text == "" {
		i.trouble = nil
	} else if i.trouble == nil || i.trouble.Error() != text {
		i.trouble = errors.New(text)
	}
	i.counters = append(i.counters[:0], r.counters...)
	if r.changed {
		i.routes = append(i.routes[:0], r.routes...)
	}
}

// State implements routing.Instance.State.
func (i *Instance) State() (routing.State, error) {
	a, err := i.host.call(request{Do: doState, ID: i.id}, nil)
	return a.State, err
}

// Transmit implements routing.Instance.Transmit.
func (i *Instance) Transmit(number int, allowed bool) error {
	_, err := i.host.call(request{Do: doTransmit, ID: i.id, Interface: number, Allowed: allowed}, nil)
	return err
}

// Leave implements routing.Instance.Leave.
func (i *Instance) Leave() error { return i.end(doLeave) }

// Stop implements routing.Instance.Stop.
func (i *Instance) Stop() error { return i.end(doStop) }

func (i *Instance) end(how string) error {
	i.unregister()
	_, err := i.host.call(request{Do: how, ID: i.id}, nil)
	return err
}

func (i *Instance) unregister() {
	i.host.mu.Lock()
	defer i.host.mu.Unlock()
	delete(i.host.instances, i.id)
}

// AppendRoutes implements routing.Instance.AppendRoutes.
func (i *Instance) AppendRoutes(to []olsr.Route) []olsr.Route {
	i.host.mu.Lock()
	defer i.host.mu.Unlock()
	r := reader{rest: i.routes}
	to, err := r.routes(to)
	if err != nil {
		i.host.log.Error("routes of the routers' process", "error", err)
	}
	return to
}

// Counters implements routing.Instance.Counters.
func (i *Instance) Counters(number int) routing.Counters {
	i.host.mu.Lock()
	defer i.host.mu.Unlock()
	if number >= len(i.counters) {
		return routing.Counters{}
	}
	return i.counters[number]
}

// Err returns the instance's current error, or nil.
func (i *Instance) Err() error {
	i.host.mu.Lock()
	defer i.host.mu.Unlock()
	return i.trouble
}

// Process returns babeld's process id; 0 for none.
func (i *Instance) Process() int {
	i.host.mu.Lock()
	defer i.host.mu.Unlock()
	return i.process
}
