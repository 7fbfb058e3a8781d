package packettap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/testtool"
)

// frame as a tap got it.
type frame struct {
	stamp int64
	out   bool
	data  []byte
}

// record is a tap that keeps the frames with the test's marker.
type record struct {
	frames []frame
	missed uint64
}

var marker = []byte("of the test")

func (r *record) FrameAt(monotonicNanoseconds int64, out bool, data []byte) {
	if bytes.Contains(data, marker) {
		r.frames = append(r.frames, frame{monotonicNanoseconds, out, bytes.Clone(data)})
	}
}

func (r *record) Miss(frames uint64) { r.missed += frames }

// cable has the interface near0 in one namespace and far0 in another.
type cable struct {
	near, far *os.File
	lock      sync.Mutex
}

func newCable(t *testing.T) *cable {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	c := &cable{}
	for _, namespace := range []**os.File{&c.near, &c.far} {
		file, err := radiotest.Namespace()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		*namespace = file
	}
	err := netns.Do(c.near, func() error {
		pair := netlink.NewVeth(netlink.LinkAttrs{Name: "near0"})
		pair.PeerName, pair.PeerNamespace = "far0", netlink.NsFd(int(c.far.Fd()))
		return errors.Join(netlink.LinkAdd(pair), up("near0"), netns.Do(c.far, func() error { return up("far0") }))
	})
	if err != nil {
		t.Fatal(err)
	}
	// The kernel finds out later that the cable is whole. Until then it drops what is sent.
	testtool.Eventually(t, "both ends have a carrier", func() bool { return c.isUp(t, c.near, "near0") && c.isUp(t, c.far, "far0") })
	return c
}

func (c *cable) isUp(t *testing.T, namespace *os.File, name string) (isUp bool) {
	t.Helper()
	err := netns.Do(namespace, func() error {
		link, err := netlink.LinkByName(name)
		isUp = err == nil && link.Attrs().OperState == netlink.OperUp
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return isUp
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func (c *cable) watch(t *testing.T) *Watch {
	t.Helper()
	w, err := Open(c.near, "near0", &c.lock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// send frames with numbers from an interface.
func send(t *testing.T, namespace *os.File, name string, from, count, length int) {
	t.Helper()
	err := netns.Do(namespace, func() error {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		for n := from; n < from+count; n++ {
			data := make([]byte, length)
			copy(data, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5})
			copy(data[14:], fmt.Sprintf("%06d %s", n, marker))
			if err := unix.Sendto(socket, data, 0, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestATapGetsAllFramesInOrderWithTheirDirectionAndTime(t *testing.T) {
	c := newCable(t)
	w, r := c.watch(t), &record{}
	w.SetTap(r)
	start := clock.Monotonic()
	send(t, c.near, "near0", 0, 500, 900)
	send(t, c.far, "far0", 500, 300, 60)
	testtool.Eventually(t, "all frames have crossed the cable, on whatever processor", func() bool {
		c.lock.Lock()
		defer c.lock.Unlock()
		return len(r.frames)+int(r.missed) >= 800
	})
	end := clock.Monotonic()
	w.SetTap(nil)
	send(t, c.near, "near0", 800, 10, 60)
	if len(r.frames) != 800 || r.missed != 0 {
		t.Fatalf("%d frames and %d missed; want 800 and none", len(r.frames), r.missed)
	}
	last := start - int64(time.Millisecond)
	for n, f := range r.frames {
		length := 900
		if n >= 500 {
			length = 60
		}
		if want := fmt.Sprintf("%06d", n); string(f.data[14:20]) != want || f.out != (n < 500) || len(f.data) != length {
			t.Fatalf("frame %d is %q of %d bytes, out %t", n, f.data[14:20], len(f.data), f.out)
		}
		if f.stamp < last || f.stamp > end+int64(time.Millisecond) {
			t.Fatalf("frame %d has time %d: want from %d to %d, in order", n, f.stamp, last, end)
		}
		last = f.stamp
	}
}

func TestFramesWithoutRoomInTheSocketAreCounted(t *testing.T) {
	c := newCable(t)
	w, r := c.watch(t), &record{}
	w.SetTap(r)
	c.lock.Lock() // as if the host had no time
	const count = 40000
	send(t, c.near, "near0", 0, count, 1500)
	c.lock.Unlock()
	w.SetTap(nil)
	if r.missed == 0 || uint64(len(r.frames))+r.missed < count {
		t.Errorf("%d frames and %d missed; want %d in all, and some missed", len(r.frames), r.missed, count)
	}
}

func TestAWatchOutlivesItsInterfaceAndCloses(t *testing.T) {
	c := newCable(t)
	w, r := c.watch(t), &record{}
	w.SetTap(r)
	err := netns.Do(c.near, func() error {
		link, err := netlink.LinkByName("near0")
		return errors.Join(err, netlink.LinkDel(link))
	})
	if err != nil {
		t.Fatal(err)
	}
	w.SetTap(nil)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// The kernel's time is of before the step, and would hold for all frames of the next hour.
func TestAClockThatIsSetBackPutsNoFrameIntoTheFuture(t *testing.T) {
	control := make([]byte, unix.CmsgSpace(stampBytes))
	binary.NativeEndian.PutUint64(control, uint64(unix.CmsgLen(stampBytes)))
	binary.NativeEndian.PutUint32(control[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(control[12:], unix.SO_TIMESTAMPNS_NEW)
	for before, want := range map[time.Duration]time.Duration{time.Hour: 0, -time.Second: -time.Second} {
		earliest := clock.Monotonic() + int64(want)
		at := clock.Realtime() + int64(before)
		binary.NativeEndian.PutUint64(control[unix.CmsgLen(0):], uint64(at/1e9))
		binary.NativeEndian.PutUint64(control[unix.CmsgLen(0)+8:], uint64(at%1e9))
		got := stamp(control)
		latest := clock.Monotonic() + int64(want)
		const slack = int64(10 * time.Millisecond) // of the offset between the clocks
		if got < earliest-slack || got > latest+slack || got > clock.Monotonic() {
			t.Errorf("a frame of %v from now: its time is %v too early, or %v too late; want %v", before, time.Duration(earliest-got), time.Duration(got-latest), want)
		}
	}
}

func TestAnInterfaceThatIsNotThereIsNamed(t *testing.T) {
	c := newCable(t)
	if _, err := Open(c.near, "other0", &c.lock); err == nil || !bytes.Contains([]byte(err.Error()), []byte("other0")) {
		t.Errorf("error %v; want one that names other0", err)
	}
}
