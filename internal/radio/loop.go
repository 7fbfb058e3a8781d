package radio

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
)

const (
	// maxFrameLength that can be read: the largest Ethernet frame a TAP with the largest MTU can give.
	maxFrameLength = 65536
	// batch bounds how many frames one sender may hand in before others have their turn.
	batch = 16
	// burstGap in nanoseconds between two frames of a sender that hands in several at a time.
	burstGap = 100e3
	// turnPause in nanoseconds, after which a loop's thread looks again whether a guard has served it.
	turnPause = 50e3
	// trimInterval in nanoseconds, after which buffers of a past burst are given back.
	trimInterval = 5e9

	timerEvent, wakeEvent = -1, -2
)

// loop is an event loop: epoll over TAPs, one timer for the frame that is due first, and one
// descriptor through which other goroutines hand in work.
type loop struct {
	epoll, timer, wake int
	thread             int // 0 until it serves the loop
	ended              bool
	priorityError      error
	heap               heap
	pool               pool
	armed              int64 // time the timer is set to, 0 for none
	trimAt             int64
	ports              []*Port
	vacant             []int
	scratch            []byte
	frame              Frame   // the frame being read
	arrival            arrival // what has been read, while the model does not have it yet
	calls              calls
	handouts           handouts
	running            []func() // what is left of work that is being done
	// turn is held by who serves the loop: its thread, or for once a guard. What belongs to the loop's thread belongs to the holder.
	turn sync.Mutex
	// earliest time at which something is due as of the end of the last turn, or never; for the guards.
	earliest atomic.Int64
	timerOn  int // the processor on which the timer fires, -1 where that is not known
	watched  *watch

	mu   sync.Mutex
	work []func()
	// last is held by who does work as the loop ends, and after it has.
	last sync.Mutex
}

func newLoop() (*loop, error) {
	l := &loop{scratch: make([]byte, maxFrameLength)}
	l.earliest.Store(never)
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
	// Edge-triggered: setting the timer anew ends its event, so that it is never read.
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

// do runs f on the loop's thread and returns when it has run. After the loop has ended it runs f at once.
func (l *loop) do(f func()) {
	done := make(chan struct{})
	l.mu.Lock()
	if l.epoll < 0 {
		l.mu.Unlock()
		l.last.Lock()
		defer l.last.Unlock()
		f()
		_ = l.handOut() // nobody takes over from here
		return
	}
	l.work = append(l.work, func() { f(); close(done) })
	l.poke()
	l.mu.Unlock()
	<-done
}

func (l *loop) poke() {
	one := [8]byte{1}
	_, _ = unix.Write(l.wake, one[:]) // a full counter wakes it as well
}

func (l *loop) run(options Options) {
	runtime.LockOSThread() // never unlocked: the thread's priority is not for others
	l.turn.Lock()
	l.thread, l.priorityError = unix.Gettid(), Prioritise(options)
	l.turn.Unlock()
	events := make([]unix.EpollEvent, 64)
	for ended := false; !ended; {
		count := l.events(events, -1)
		l.takeTurn()
		if !l.serve(events[:count]) {
			continue
		}
		if ended = l.ended; ended && !l.close() {
			return
		}
		l.turn.Unlock()
	}
}

// takeTurn waits while a guard serves the loop. It does not queue for the turn, as it could be handed over while the thread stands still.
func (l *loop) takeTurn() {
	for !l.turn.TryLock() {
		pause := unix.NsecToTimespec(turnPause)
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &pause, nil) // a signal only shortens it
	}
}

// events waits for so many milliseconds, or, with -1, for as long as nothing happens.
func (l *loop) events(events []unix.EpollEvent, milliseconds int) (count int) {
	count, err := unix.EpollWait(l.epoll, events, milliseconds)
	if err != nil && err != unix.EINTR {
		panic(fmt.Sprintf("epoll_wait on the engine's own descriptor: %v", err))
	}
	return max(count, 0)
}

// serve releases what is due and answers events; the caller has the turn. False tells, here and below, that it has it no more: see calls.
func (l *loop) serve(events []unix.EpollEvent) (mine bool) {
	if !l.releaseDue(clock.Monotonic()) {
		return false
	}
	for i := range events {
		if !l.handle(&events[i]) {
			return false
		}
	}
	return l.arm()
}

func (l *loop) handle(event *unix.EpollEvent) (mine bool) {
	switch event.Fd {
	case timerEvent:
		l.armed = 0
	case wakeEvent:
		return l.runWork()
	default:
		if p := l.ports[event.Fd]; p != nil && !p.strayReads {
			return l.read(p)
		}
	}
	return true
}

// read takes frames from a port, and between them releases what has become due. Most senders send
// one frame at a time, after which a second read would be in vain; epoll tells when it would not.
func (l *loop) read(p *Port) (mine bool) {
	most := 1
	if p.bursts {
		most = batch
	}
	taken := 0
	for ; taken < most; taken++ {
		p.counters.reading = 1
		scratch := l.scratch // which another thread does not use
		call := l.calls.begin(p)
		length, err := rawRead(p.Descriptor, scratch)
		now := clock.Monotonic()
		if !l.calls.end(call) {
			l.astray(p, scratch[:max(length, 0)], err, now)
			return false
		}
		if err != 0 {
			l.notRead(p, err)
			break
		}
		p.bursts = p.bursts || now-p.latest < burstGap
		p.latest = now
		l.arrival = arrival{p, scratch[:length], now}
		if !l.acceptArrival() {
			return false
		}
	}
	if most == batch && taken < 2 {
		p.bursts = false
	}
	return true
}

// arrival of a frame from a port; none without one.
type arrival struct {
	port  *Port
	frame []byte
	at    int64
}

// acceptArrival, if there is one, after what was due before it: an alarm may be among that.
func (l *loop) acceptArrival() (mine bool) {
	a := &l.arrival
	if a.port == nil {
		return true
	}
	if len(l.heap.items) > 0 && l.heap.items[0].due <= a.at && !l.releaseDue(a.at) {
		return false
	}
	p, frame, at := a.port, a.frame, a.at
	*a = arrival{}
	l.accept(p, frame, at)
	return l.handOut()
}

// notRead tells why: there may be nothing to read, as where another thread has answered an event, or no interface any more.
func (l *loop) notRead(p *Port, err unix.Errno) {
	p.counters.reading = 0
	if err != unix.EAGAIN && err != unix.EINTR {
		l.gone(p)
	}
}

func (l *loop) accept(p *Port, data []byte, now int64) {
	l.frame = Frame{Source: p, Data: data, Sent: now}
	p.network.accept(now, &l.frame)
}

// gone stops watching a port whose interface the kernel has removed; the owner detaches it. The loop's thread may hold an event
// that a guard has answered already.
func (l *loop) gone(p *Port) {
	if p.gone {
		return
	}
	p.gone = true
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, p.Descriptor, nil)
	if p.Gone != nil {
		go p.Gone()
	}
}

func (l *loop) releaseDue(now int64) (mine bool) {
	for len(l.heap.items) > 0 && l.heap.items[0].due <= now {
		if !l.reckon(now, l.heap.items[0].frame) {
			return false
		}
		if f := l.heap.pop(); f.Source != nil {
			f.Source.network.due(now, f)
		} else if alarm, ok := f.Context.(func(int64)); ok {
			alarm(now)
		}
		if !l.handOut() {
			return false
		}
		now = clock.Monotonic()
	}
	if now >= l.trimAt {
		l.pool.trim()
		l.trimAt = now + trimInterval
	}
	return true
}

// reckon what is to be reckoned before a frame is released.
func (l *loop) reckon(now int64, f *Frame) (mine bool) {
	if f.Source == nil {
		return true
	}
	n := f.Source.network
	if n.reckoner == nil || n.closed {
		return true
	}
	reckoning := n.reckoner.Prepare(now, f)
	if reckoning == nil {
		return true
	}
	call := l.calls.begin(nil)
	reckoning.Reckon()
	if !l.calls.end(call) {
		l.calls.strays.returned()
		return false
	}
	return true
}

// arm sets the timer for the first frame, and has a guard look whether it was released. A timer that fires too early, as its frame has
// gone, is cheaper than setting it anew for every frame.
func (l *loop) arm() (mine bool) {
	if len(l.heap.items) == 0 {
		if l.earliest.Load() != never {
			l.earliest.Store(never)
			l.watched.spare()
		}
		return true
	}
	due := l.heap.items[0].due
	l.earliest.Store(due)
	sooner := l.armed == 0 || l.armed > due
	if sooner {
		l.armed = due
	}
	timerOn := l.timerOn
	call := l.calls.begin(nil)
	if sooner {
		setTimer(l.timer, due)
		timerOn = clock.Processor() // where the kernel has it, as this thread runs there
	}
	l.watched.tell(due, timerOn)
	if !l.calls.end(call) {
		l.refresh()
		return false
	}
	l.timerOn = timerOn
	return true
}

// setTimer has a timerfd fire at a time of CLOCK_MONOTONIC, or never.
func setTimer(fd int, due int64) {
	var value unix.ItimerSpec // zero: never
	if due != never {
		value.Value = unix.NsecToTimespec(max(due, 1))
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), unix.TFD_TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&value)), 0, 0, 0)
	if errno != 0 {
		panic(fmt.Sprintf("timerfd_settime to %d: %v", due, errno))
	}
}

func (l *loop) runWork() (mine bool) {
	l.mu.Lock()
	l.running = append(l.running, l.work...)
	l.work = nil
	l.mu.Unlock()
	for len(l.running) > 0 {
		f := l.running[0]
		l.running = l.running[1:]
		f()
		if !l.handOut() {
			return false
		}
	}
	l.running = nil
	return true
}

func (l *loop) close() (mine bool) {
	l.calls.strays.wait()
	l.mu.Lock()
	for _, fd := range []int{l.epoll, l.timer, l.wake} {
		_ = unix.Close(fd)
	}
	l.epoll = -1
	l.last.Lock()
	defer l.last.Unlock()
	l.mu.Unlock()
	return l.runWork() // what was handed in meanwhile
}

func (l *loop) watch(p *Port) error {
	if len(l.vacant) == 0 {
		l.ports = append(l.ports, nil)
		l.vacant = append(l.vacant, len(l.ports)-1)
	}
	p.index = l.vacant[len(l.vacant)-1]
	if l.epoll >= 0 {
		if err := l.add(p.Descriptor, unix.EPOLLIN, p.index); err != nil {
			return err
		}
	}
	l.vacant = l.vacant[:len(l.vacant)-1]
	l.ports[p.index] = p
	p.watched = true
	return nil
}

// listen to a watched port, or not while a stray thread reads it.
func (l *loop) listen(p *Port) {
	if l.epoll < 0 || p.detached.Load() || p.gone {
		return
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.index)} //nolint:gosec // few ports
	if p.strayReads {
		event.Events = 0
	}
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, p.Descriptor, &event) // fails where the interface is gone already
}

func (l *loop) unwatch(p *Port) {
	if l.epoll >= 0 {
		// Fails where the interface is gone already, and is not needed then.
		_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, p.Descriptor, nil)
	}
	l.ports[p.index] = nil
	l.vacant = append(l.vacant, p.index)
}

// rawRead and writeFrame enter the kernel without telling Go's scheduler: the descriptors never
// block, and its bookkeeping would be a good part of a frame's cost.
func rawRead(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

// What becomes of a frame at a port without being dropped: its node has it, or is on another host, which has got it by Ship.
const (
	written Reason = -1 - iota
	notHere
)

func writeFrame(fd int, data []byte) Reason {
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)))
	switch errno {
	case 0:
		return written
	case unix.EIO: // what a TAP answers while its interface is down
		return InterfaceDown
	case unix.EBADFD:
		return Detached
	default:
		return WriteFailed
	}
}

// monitorSlack in nanoseconds by which the kernel may wake up the monitor of Go's runtime later than it asks for. From whenever a thread
// comes back from a wait the monitor looks at the threads every 20 µs, for milliseconds. With loops that wake up for single frames that is
// most of the time, takes more of the processor than the frames do, and has the loops preempted, as they never give way. Of what the
// monitor is for only one thing matters here: when threads that stay in the kernel hold all Ps, other goroutines wait for one until it
// looks. The loops do not: theirs is taken away less often.
//
// mostSlack is what other threads may have, the kernel's default. One that the monitor has started inherits the monitor's; it would then sleep
// for that long where the runtime has it spin for 3 µs, with a P in its hands that a garbage collection has to wait for, and all loops with it.
const (
	monitorSlack = 50e6
	mostSlack    = 50e3
)

// restSlice in nanoseconds is the time slice of the threads that are not loops': short, as loops have to wait for them at times, and longer than a
// loop's own. A thread that wakes up breaks off another one's slice only where its own is shorter (PREEMPT_SHORT of EEVDF); with equal ones
// a loop waited for the next tick, 4 ms at 250 Hz.
const restSlice = 5 * clock.LeastSlice

// restPolicy of those threads: they break off nobody's slice when they wake up. EEVDF is fair: a loop that has had more than its share lately, as it
// has after every burst of frames, is broken off by any thread that wakes up, for all its priority, and has the processor again at the next tick.
const restPolicy = unix.SCHED_BATCH

// RaiseProcess gives every thread of this process the options' niceness and a short time slice, or, where the loops are to be under
// SCHED_FIFO, its lowest priority. Threads that they start inherit these, but not all that is to be theirs: see monitorSlack. The loops' own
// threads have to wait for the others whenever Go's garbage collector stops all of them for a moment: one that got no processor then would
// make frames late. The runtime's monitor, which nothing waits for, is never a real-time thread, as real-time threads have no timer slack.
func RaiseProcess(options Options) error {
	ids, err := threads()
	if err != nil {
		return err
	}
	monitor := monitorOf(os.Getpid(), ids)
	for _, id := range ids {
		of := options
		if id == monitor {
			of.Realtime = 0
		}
		if setErr := errors.Join(raiseThread(id, of), setSlack(id, monitor)); setErr != nil && !hasEnded(setErr) {
			err = errors.Join(err, setErr)
		}
	}
	return err
}

// hasEnded tells that an error is about a thread that has ended meanwhile.
func hasEnded(err error) bool { return errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) }

// setSlack of one thread to what it is to have, unless it has less, as those have that keep to instants.
func setSlack(id, monitor int) error {
	want := uint64(mostSlack)
	if id == monitor {
		want = monitorSlack
	}
	file := fmt.Sprintf("/proc/%d/timerslack_ns", id)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	has, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || has == want || has < want && id != monitor {
		return err
	}
	return os.WriteFile(file, strconv.AppendUint(nil, want, 10), 0)
}

// threads of this process by their ids.
func threads() (ids []int, err error) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, err
	}
	for _, thread := range entries {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// monitorOf a process is the thread that Go's runtime starts first: the one with the next id, which the kernel gives in ascending order
// and then from the lowest on again.
func monitorOf(process int, ids []int) (monitor int) {
	const beyond = 1 << 22 // the most ids that kernels can have
	least := beyond
	for _, id := range ids {
		if after := (id - process + beyond) % beyond; after > 0 && after < least {
			monitor, least = id, after
		}
	}
	return monitor
}

func raiseThread(id int, options Options) error {
	has, err := unix.SchedGetAttr(id, 0)
	if err != nil || has.Policy == unix.SCHED_FIFO || has.Nice < int32(options.Nice) || has.Runtime == clock.LeastSlice { // a loop's
		return os.NewSyscallError("sched_getattr", err)
	}
	attributes := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: restPolicy, Nice: int32(options.Nice), Runtime: restSlice}
	if options.Realtime > 0 {
		attributes.Policy, attributes.Nice, attributes.Runtime, attributes.Priority = unix.SCHED_FIFO, 0, 0, 1
	}
	return os.NewSyscallError("sched_setattr", unix.SchedSetAttr(id, attributes, 0))
}

// loopLead is the niceness by which a loop goes before its process's other threads: nine times their weight. Else it would have to wait for
// them after a burst of frames, where they are busy themselves.
const loopLead = 10

// loopNice is the niceness of loops.
func loopNice(options Options) int {
	if options.Nice == 0 {
		return 0
	}
	return max(options.Nice-loopLead, -20)
}

// Prioritise gives the calling thread what the options ask for loops. What the kernel refuses costs
// lateness, which is measured, and is no reason not to run.
func Prioritise(options Options) error {
	clock.SetTimerSlack(1)
	attributes := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: int32(loopNice(options)), Runtime: clock.LeastSlice}
	err := os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, attributes, 0))
	if options.Realtime > 0 {
		attributes = &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(options.Realtime), Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		err = errors.Join(err, os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, attributes, 0)))
	}
	return err
}
