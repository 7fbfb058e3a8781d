package driver

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
)

const (
	// maxFrameLength is the longest frame that a TAP can give.
	maxFrameLength = 65536
	// batch bounds how many frames one sender may hand in before others are served.
	batch = 16
	// burstGap in nanoseconds: frames of a sender that follow each other faster belong to one burst.
	burstGap = 100e3
	// pulse in nanoseconds bounds how far ahead the timer of a loop with ports is set. A loop that was
	// stopped notices it that soon.
	pulse = 50e6
	// maxEvents bounds the events of one poll.
	maxEvents = 256

	timerEvent, wakeEvent = -1, -2
)

// loop is an event loop on a thread of its own: epoll over TAPs, one timer for what the engine does next, and one
// descriptor through which other goroutines hand in work.
type loop struct {
	engine             *radio.Engine
	epoll, timer, wake int
	ended              bool
	priorityError      error
	armed              int64 // time to which the timer is set, 0 for none
	ports              []*Port
	vacant             []int
	scratch            []byte
	events             []unix.EpollEvent
	late               radio.Intervals
	// polledAt is when the loop last polled. A port without an event then had no frame waiting at drainedAt.
	// iteration counts the polls.
	polledAt, drainedAt int64
	iteration           uint64

	load atomic.Int64 // local ports
	mu   sync.Mutex
	work []func()
	// ending is held while work is done during and after the loop's end.
	ending sync.Mutex
}

func newLoop() (*loop, error) {
	l := &loop{scratch: make([]byte, maxFrameLength), events: make([]unix.EpollEvent, maxEvents)}
	l.engine = radio.NewEngine(l)
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if l.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	// Edge-triggered: setting the timer again clears its event, so that it is never read.
	if err = l.add(l.timer, unix.EPOLLIN|unix.EPOLLET, timerEvent); err != nil {
		return nil, err
	}
	return l, l.add(l.wake, unix.EPOLLIN|unix.EPOLLET, wakeEvent)
}

func (l *loop) add(fd int, events uint32, token int) error {
	event := unix.EpollEvent{Events: events, Fd: int32(token)}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("epoll: watch descriptor %d: %w", fd, err)
	}
	return nil
}

// do runs f on the loop's thread and returns when f has run. After the loop's end it runs f directly.
func (l *loop) do(f func()) {
	done := make(chan struct{})
	l.mu.Lock()
	if l.epoll < 0 {
		l.mu.Unlock()
		l.ending.Lock()
		defer l.ending.Unlock()
		f()
		return
	}
	l.work = append(l.work, func() { f(); close(done) })
	l.wakeUp()
	l.mu.Unlock()
	<-done
}

// post queues f for the loop's thread and does not wait. After the loop's end f is dropped.
func (l *loop) post(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoll >= 0 {
		l.work = append(l.work, f)
		l.wakeUp()
	}
}

func (l *loop) wakeUp() {
	one := [8]byte{1}
	_, _ = unix.Write(l.wake, one[:]) // a full counter wakes it as well
}

func (l *loop) run(options Options) {
	runtime.LockOSThread() // never unlocked: the thread's priority is not for others
	l.priorityError = SetThreadPriority(options)
	l.polledAt = clock.Monotonic()
	for !l.ended {
		events, now := l.next()
		l.serve(events, now)
	}
	l.close()
}

// next returns the next events and the time. If a poll gives none at once, the loop has caught up.
func (l *loop) next() ([]unix.EpollEvent, int64) {
	before := l.polledAt
	count := l.poll()
	now := clock.Monotonic()
	l.iteration++
	if count == 0 {
		before = now
		count = l.wait()
		now = clock.Monotonic()
		l.iteration++ // so that no port seems to have had frames in two iterations in a row
		l.drainedAt = now
	} else if count < len(l.events) { // all pending events were taken
		l.drainedAt = before
	}
	if l.armed != 0 && radio.IsLate(l.armed, now) {
		l.late.Add(radio.Interval{From: before, To: now, Worst: now - l.armed})
		l.armed = 0
	}
	l.polledAt = now
	return l.events[:count], now
}

// wait for events until there are any.
func (l *loop) wait() (count int) {
	count, err := unix.EpollWait(l.epoll, l.events, -1)
	if err != nil && err != unix.EINTR {
		panic(fmt.Sprintf("epoll_wait on the loop's own descriptor: %v", err))
	}
	return max(count, 0)
}

// poll returns the number of pending events without waiting.
func (l *loop) poll() (count int) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events[0])), uintptr(len(l.events)), 0, 0, 0)
	if errno != 0 {
		return 0 // wait reports the error
	}
	return int(n)
}

// serve ticks the engine and handles events.
func (l *loop) serve(events []unix.EpollEvent, now int64) {
	l.tick(now)
	for i := range events {
		l.handle(&events[i])
	}
	l.arm(now)
}

func (l *loop) handle(event *unix.EpollEvent) {
	switch event.Fd {
	case timerEvent:
		l.armed = 0
	case wakeEvent:
		l.runWork()
	default:
		if p := l.ports[event.Fd]; p != nil {
			l.read(p)
		}
	}
}

// read takes frames from a port, and ticks the engine before each. Most senders send one frame at a time. A
// second read would then find nothing, and epoll reports if there is more.
func (l *loop) read(p *Port) {
	if p.lastIteration+1 != l.iteration {
		p.waitingSince = l.drainedAt
	}
	p.lastIteration = l.iteration
	most := 1
	if p.bursts {
		most = batch
	}
	taken := 0
	for ; taken < most; taken++ {
		p.MarkReading(true)
		length, err := rawRead(p.Handle, l.scratch)
		now := clock.Monotonic()
		if err != 0 {
			p.MarkReading(false)
			if err == unix.EAGAIN {
				p.waitingSince = now
			} else if err != unix.EINTR {
				l.interfaceGone(p)
			}
			break
		}
		if radio.IsLate(p.waitingSince, now) {
			l.late.Add(radio.Interval{From: p.waitingSince, To: now, Worst: now - p.waitingSince})
		}
		p.bursts = p.bursts || now-p.lastFrameAt < burstGap
		p.lastFrameAt = now
		if l.engine.Next() <= now {
			l.tick(now) // leaves nothing that Receive would release at a time that has passed
		}
		l.engine.Receive(now, p.Port, l.scratch[:length])
	}
	if most == batch && taken < 2 {
		p.bursts = false
	}
}

// interfaceGone stops watching a port whose interface the kernel has removed. The owner detaches it.
func (l *loop) interfaceGone(p *Port) {
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, p.Handle, nil)
	if p.gone != nil {
		go p.gone()
	}
}

// tick ticks the engine until nothing is due. It reads the clock for each release, so that lateness is exact.
func (l *loop) tick(now int64) {
	for l.engine.Next() <= now {
		l.engine.Tick(now)
		now = clock.Monotonic()
	}
	l.engine.Tick(now) // frees buffers, even if nothing was due
}

// Late implements radio.Output.
func (l *loop) Late(due, now int64) { l.late.Add(radio.Interval{From: due, To: now, Worst: now - due}) }

// arm sets the timer for what the engine does next, or for the pulse. If that is not to be done any more, the timer fires
// too early, which is cheaper than setting it for every frame.
func (l *loop) arm(now int64) {
	due := l.engine.Next()
	if len(l.ports) > len(l.vacant) {
		due = min(due, now+pulse)
	}
	if due == radio.Never || l.armed != 0 && l.armed <= due {
		return
	}
	// Frames whose time had passed before were not late because of the timer.
	l.armed = max(due, clock.Monotonic())
	setTimer(l.timer, due)
}

// setTimer sets a timerfd to a time of CLOCK_MONOTONIC.
func setTimer(fd int, due int64) {
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(max(due, 1))}
	_, _, errno := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), unix.TFD_TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&value)), 0, 0, 0)
	if errno != 0 {
		panic(fmt.Sprintf("timerfd_settime to %d: %v", due, errno))
	}
}

func (l *loop) runWork() {
	l.mu.Lock()
	work := l.work
	l.work = nil
	l.mu.Unlock()
	for _, f := range work {
		f()
	}
}

func (l *loop) close() {
	l.mu.Lock()
	for _, fd := range []int{l.epoll, l.timer, l.wake} {
		_ = unix.Close(fd)
	}
	l.epoll = -1
	l.ending.Lock()
	defer l.ending.Unlock()
	l.mu.Unlock()
	l.runWork() // work handed in meanwhile
}

// watch the descriptor of a port.
func (l *loop) watch(p *Port, descriptor int) error {
	if len(l.vacant) == 0 {
		l.ports = append(l.ports, nil)
		l.vacant = append(l.vacant, len(l.ports)-1)
	}
	p.index = l.vacant[len(l.vacant)-1]
	if l.epoll >= 0 {
		if err := l.add(descriptor, unix.EPOLLIN, p.index); err != nil {
			return err
		}
	}
	l.vacant = l.vacant[:len(l.vacant)-1]
	l.ports[p.index] = p
	p.watched = true
	return nil
}

func (l *loop) unwatch(p *Port, descriptor int) {
	if l.epoll >= 0 {
		// Fails if the interface is gone, and is not needed then.
		_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, descriptor, nil)
	}
	l.ports[p.index] = nil
	l.vacant = append(l.vacant, p.index)
}

// rawRead, Write and poll enter the kernel without notifying Go's scheduler. The descriptors never
// block, and the scheduler's work would be a good part of a frame's cost.
func rawRead(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

// Write implements radio.Output.
func (l *loop) Write(p *radio.Port, data []byte) radio.Reason {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(p.Handle), uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)))
	switch errno {
	case 0:
		return radio.Written
	case unix.EIO: // a TAP whose interface is down
		return radio.InterfaceDown
	case unix.EBADFD:
		return radio.Detached
	default:
		return radio.WriteFailed
	}
}
