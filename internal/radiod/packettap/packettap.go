// Package packettap copies the frames of an existing network interface to a tap, for radios whose frames another
// program carries. It reads them from a packet socket, so that no frame waits for it.
package packettap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/netns"
)

const (
	// socketBuffer holds what an interface carries while the host is busy.
	socketBuffer = 8 << 20
	// longestFrame is above every MTU.
	longestFrame = 1 << 16
	// batch of frames after which other interfaces have their turn.
	batch = 256
	// dropInterval between two readings of the number of frames that found no room in the socket.
	dropInterval = time.Second
	// stampBytes of the kernel's time of a frame: seconds and nanoseconds.
	stampBytes = 16
)

// Tap takes an interface's frames.
type Tap interface {
	// FrameAt takes a frame that the node sent (out) or received at a time of the monotonic clock.
	FrameAt(monotonicNanoseconds int64, out bool, data []byte)
	// Miss counts frames that could not be read.
	Miss(frames uint64)
}

// Watch of one interface.
type Watch struct {
	file       *os.File
	connection syscall.RawConn
	done       chan struct{}

	lock          *sync.Mutex
	tap           Tap
	data, control []byte
	// last is the time of the last frame: frames of two processors may be a little out of order.
	last int64
	// countedDrops is when the dropped frames were last counted.
	countedDrops time.Time
}

// Open begins to watch an interface of a namespace. lock is held for each call of a tap, and may be that of several
// watches. Without a tap, frames are read and forgotten.
func Open(namespace *os.File, name string, lock *sync.Mutex) (*Watch, error) {
	socket, err := netns.Get(namespace, func() (int, error) { return open(name) })
	if err != nil {
		return nil, fmt.Errorf("capture of interface %s: %w", name, err)
	}
	w := &Watch{file: os.NewFile(uintptr(socket), "capture of "+name), done: make(chan struct{}), lock: lock, //nolint:gosec // a descriptor
		data: make([]byte, longestFrame), control: make([]byte, unix.CmsgSpace(stampBytes)), countedDrops: time.Now()}
	if w.connection, err = w.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("capture of interface %s: %w", name, err), w.file.Close())
	}
	go w.run()
	return w, nil
}

func open(name string) (socket int, err error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = errors.Join(unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer),
		unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1),
		unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: everyProtocol, Ifindex: link.Index}))
	if err != nil {
		return -1, errors.Join(err, unix.Close(socket))
	}
	return socket, nil
}

// everyProtocol is ETH_P_ALL in the order of the network.
const everyProtocol = unix.ETH_P_ALL << 8

// SetTap replaces the tap; nil is none. The one before gets the frames up to now, and none after SetTap returns.
func (w *Watch) SetTap(tap Tap) {
	w.lock.Lock()
	defer w.lock.Unlock()
	_ = w.connection.Control(func(fd uintptr) { // it fails once the socket is closed
		for w.read(int(fd)) { //nolint:gosec // a descriptor
		}
		w.countDrops(int(fd)) //nolint:gosec // a descriptor
	})
	w.tap = tap
}

// Close ends the watch.
func (w *Watch) Close() error {
	err := w.file.Close()
	<-w.done
	return err
}

// run reads frames until the socket is closed. A removed interface leaves the socket open without frames.
func (w *Watch) run() {
	defer close(w.done)
	for {
		err := w.connection.Read(func(fd uintptr) bool {
			return w.readBatch(int(fd)) //nolint:gosec // a descriptor
		})
		if err != nil {
			return
		}
	}
}

// readBatch reports whether there may be more frames.
func (w *Watch) readBatch(socket int) (more bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for range batch {
		if !w.read(socket) {
			return false
		}
	}
	if time.Since(w.countedDrops) >= dropInterval {
		w.countDrops(socket)
	}
	return true
}

// read passes one frame to the tap, and reports whether there was one. The lock is held.
func (w *Watch) read(socket int) bool {
	size, controlSize, _, from, err := unix.Recvmsg(socket, w.data, w.control, 0)
	if err != nil {
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EBADF) // others, such as ENETDOWN, come once
	}
	link, ok := from.(*unix.SockaddrLinklayer)
	if w.tap != nil && ok && link.Pkttype != unix.PACKET_LOOPBACK {
		w.last = max(w.last, stamp(w.control[:controlSize]))
		w.tap.FrameAt(w.last, link.Pkttype == unix.PACKET_OUTGOING, w.data[:size])
	}
	return true
}

// countDrops counts the frames that found no room in the socket; the kernel then counts from 0.
func (w *Watch) countDrops(socket int) {
	w.countedDrops = time.Now()
	statistics, err := unix.GetsockoptTpacketStats(socket, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err == nil && w.tap != nil && statistics.Drops > 0 {
		w.tap.Miss(uint64(statistics.Drops))
	}
}

// stamp returns the kernel's time of a frame by the monotonic clock, else the current time. A time that is still to come is
// none: the real-time clock was set back since.
func stamp(control []byte) int64 {
	now := clock.Monotonic()
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return now
	}
	for i := range messages {
		m := &messages[i]
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS_NEW && len(m.Data) >= stampBytes {
			seconds, nanoseconds := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			return min(int64(seconds)*1e9+int64(nanoseconds)-clock.EpochOffset(), now) //nolint:gosec // the kernel's own time
		}
	}
	return now
}
