package routing

import (
	"container/heap"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

// Host runs the routing of all nodes of this machine: their routers on one thread, and a goroutine that
// writes routes.
type Host struct {
	log    *slog.Logger
	epoll  int
	wake   int // eventfd: there are jobs
	ended  chan struct{}
	writer *writer

	mu     sync.Mutex // protects jobs and closed
	jobs   []func()
	closed bool

	// The rest belongs to the thread.
	now       time.Time // of this iteration
	yieldedAt int64     // when the thread last yielded, by clock.Monotonic
	ports     map[int32]*port
	timers    timerHeap
	pending   []*Instance
	events    []unix.EpollEvent
	buffer    []byte
}

// NewHost starts the thread, which sleeps until there is work.
func NewHost(log *slog.Logger) (*Host, error) {
	h := &Host{log: log, ended: make(chan struct{}), writer: newWriter(), ports: map[int32]*port{},
		events: make([]unix.EpollEvent, 256), buffer: make([]byte, 1<<16)}
	var err error
	if h.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if h.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(h.epoll))
	}
	if err := h.add(h.wake); err != nil {
		return nil, errors.Join(err, unix.Close(h.wake), unix.Close(h.epoll))
	}
	go h.run()
	return h, nil
}

func (h *Host) add(fd int) error {
	err := unix.EpollCtl(h.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// Close ends the thread; instances must have been left or stopped before.
func (h *Host) Close() error {
	h.do(func() {
		h.mu.Lock()
		h.closed = true
		h.mu.Unlock()
	})
	<-h.ended
	h.writer.close()
	return errors.Join(unix.Close(h.wake), unix.Close(h.epoll))
}

// do runs f on the thread and waits for it.
func (h *Host) do(f func()) {
	done := make(chan struct{})
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.jobs = append(h.jobs, func() { f(); close(done) })
	h.mu.Unlock()
	one := [8]byte{1} // not 0 in any byte order
	_, _ = unix.Write(h.wake, one[:])
	select {
	case <-done:
	case <-h.ended:
	}
}

func (h *Host) run() {
	runtime.LockOSThread() // never unlocked: the thread's priority is not for others
	raiseThreadPriority()
	defer close(h.ended)
	for !h.isClosed() {
		n, err := unix.EpollWait(h.epoll, h.events, h.timeout())
		if err != nil && !errors.Is(err, unix.EINTR) {
			h.log.Error("routing ends: epoll", "error", err)
			return
		}
		h.now = time.Now()
		packets := false
		for k := range max(n, 0) {
			if fd := h.events[k].Fd; fd == int32(h.wake) {
				h.runJobs()
			} else if p := h.ports[fd]; p != nil {
				h.receive(p)
				packets = true
			}
			h.yield()
		}
		h.tickAll()
		if packets && n < len(h.events) {
			_ = unix.Nanosleep(&packetPauseTime, nil) // a signal only shortens it
		}
	}
}

// tickAll calls the routers that have received packets, and those whose time has come.
func (h *Host) tickAll() {
	for _, i := range h.pending {
		if i.pending { // else it has been removed since
			i.pending = false
			h.tick(i)
			h.yield()
		}
	}
	h.pending = h.pending[:0]
	for len(h.timers) > 0 && !h.timers[0].nextTick.After(h.now) {
		h.tick(h.timers[0])
		h.yield()
	}
}

// yieldInterval in nanoseconds bounds how long a radio's loop waits for the routers' thread on a processor.
// Without it that is the thread's complete time slice, or until the kernel's next tick.
const yieldInterval = 200e3

// yield yields to waiting threads of higher priority now and then. EEVDF makes them wait if they have had
// more than their share.
func (h *Host) yield() {
	if now := clock.Monotonic(); now-h.yieldedAt > yieldInterval {
		h.yieldedAt = now
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // cannot fail
	}
}

// niceAdvantage is the niceness by which the routers' thread goes before the rest of a process with a priority: three
// times its weight. A garbage collection takes all processors for tens of milliseconds. Delayed routers would
// then send all at once, and the radio's loop would be late for these frames.
const niceAdvantage = 5

func raiseThreadPriority() {
	has, err := unix.SchedGetAttr(0, 0)
	if err != nil || has.Nice >= 0 {
		return
	}
	has.Nice = max(has.Nice-niceAdvantage, -20)
	_ = unix.SchedSetAttr(0, has, 0) // a refusal only costs lateness, which is measured
}

func (h *Host) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// timeout returns the time until the next router must be called, milliseconds, rounded up; -1 for none.
func (h *Host) timeout() int {
	if len(h.timers) == 0 {
		return -1
	}
	return int(max(time.Until(h.timers[0].nextTick)+time.Millisecond-1, 0) / time.Millisecond)
}

func (h *Host) runJobs() {
	var count [8]byte
	_, _ = unix.Read(h.wake, count[:])
	h.mu.Lock()
	jobs := h.jobs
	h.jobs = nil
	h.mu.Unlock()
	for _, job := range jobs {
		job()
	}
}

// packetPause is the thread's sleep after packets, so that it wakes up once for all that come meanwhile. Otherwise
// nearly every frame of a large network would wake it on another processor, which costs the radio's loop more
// than the frame. Routers' own timers are in milliseconds.
const packetPause = 2 * time.Millisecond

var packetPauseTime = unix.NsecToTimespec(int64(packetPause))

const (
	// batch is the most packets of one socket before others are served.
	batch = 16
	// burstGap is the time after which a packet is taken to come alone, as most do. A second read would then
	// find nothing, and epoll reports if there is more.
	burstGap = 5 * time.Millisecond
)

func (h *Host) receive(p *port) {
	i := p.instance
	now := i.time(h.now)
	most := 1
	if now.Sub(p.lastPacketAt) < burstGap {
		most = batch
	}
	p.lastPacketAt = now
	for range most {
		from, n, err := p.read(h.buffer)
		if err != nil {
			return // nothing more, or the interface is about to go
		}
		// The router counts refused packets.
		_ = i.router.Receive(now, p.number, from, h.buffer[:n])
		if !i.pending {
			i.pending = true
			h.pending = append(h.pending, i)
		}
	}
}

// tick runs a router's timers, and schedules the next call.
func (h *Host) tick(i *Instance) {
	now := h.now
	// An interval that the router thinks is over would keep the thread busy.
	next := i.router.Tick(i.time(now)).Add(i.absent)
	i.nextTick = laterOf(next, now.Add(time.Millisecond))
	if i.heapIndex < 0 {
		heap.Push(&h.timers, i)
	} else {
		heap.Fix(&h.timers, i.heapIndex)
	}
	if g := i.router.Generation(); g != i.generation {
		i.generation = g
		i.kernel.setWanted(i.router.Routes(), i.keepUntil)
		h.writer.add(i.kernel)
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// watch a socket on the thread.
func (h *Host) watch(p *port) error {
	if err := h.add(p.fd); err != nil {
		return err
	}
	h.ports[int32(p.fd)] = p
	return nil
}

// removeInstance removes an instance on the thread, and closes its sockets.
func (h *Host) removeInstance(i *Instance) (err error) {
	for _, p := range i.ports {
		delete(h.ports, int32(p.fd))
		err = errors.Join(err, unix.Close(p.fd)) // which also removes it from the epoll
	}
	i.pending = false
	if i.heapIndex >= 0 {
		heap.Remove(&h.timers, i.heapIndex)
	}
	return err
}

// timerHeap orders the instances by when they must be called.
type timerHeap []*Instance

func (d timerHeap) Len() int           { return len(d) }
func (d timerHeap) Less(a, b int) bool { return d[a].nextTick.Before(d[b].nextTick) }
func (d timerHeap) Swap(a, b int) {
	d[a], d[b] = d[b], d[a]
	d[a].heapIndex, d[b].heapIndex = a, b
}

// Push implements heap.Interface.
func (d *timerHeap) Push(x any) {
	i := x.(*Instance)
	i.heapIndex = len(*d)
	*d = append(*d, i)
}

// Pop implements heap.Interface.
func (d *timerHeap) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	last.heapIndex = -1
	return last
}
