package rfpipe_test

import (
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/rfpipe"
)

// ends are nodes whose radios are pairs of sockets instead of TAPs, on a network of their own.
func ends(t testing.TB, nodes int, config rfpipe.Config) (network *radio.Network, sockets []int) {
	t.Helper()
	engine, err := radio.New(radio.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	network, err = engine.NewNetwork(radio.NetworkOptions{Model: rfpipe.New(config), MTU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := network.Attach(radio.PortOptions{Name: fmt.Sprint("n", i+1), NEM: i + 1, MAC: radio.MAC(i + 1), Descriptor: fds[1]})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			p.Detach()
			_, _ = unix.Close(fds[0]), unix.Close(fds[1])
		})
		sockets = append(sockets, fds[0])
	}
	return network, sockets
}

// broadcast a frame of 900 bytes from the first node, and take it at all others.
func broadcast(t testing.TB, sockets []int, frame, buffer []byte) {
	if _, err := unix.Write(sockets[0], frame); err != nil {
		t.Fatal(err)
	}
	poll := []unix.PollFd{{Events: unix.POLLIN}}
	for _, fd := range sockets[1:] {
		poll[0].Fd = int32(fd)
		for {
			if _, err := unix.Poll(poll, 5000); err == unix.EINTR {
				continue
			}
			break
		}
		if _, err := unix.Read(fd, buffer); err != nil {
			t.Fatal(err)
		}
	}
}

func broadcastFrame() []byte {
	frame := make([]byte, 900)
	copy(frame, []byte{255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 1, 8, 0})
	return frame
}

func TestAFrameAllocatesNothing(t *testing.T) {
	config := pipe(everywhere(5, 70), 100e6)
	config.PCR, config.Delay, config.Jitter = curve(t, linearPCR), 20e3, 10e3
	_, sockets := ends(t, 5, config)
	frame, buffer := broadcastFrame(), make([]byte, 2000)
	const frames = 300
	for range frames { // until all buffers have been made
		broadcast(t, sockets, frame, buffer)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range frames {
		broadcast(t, sockets, frame, buffer)
	}
	runtime.ReadMemStats(&after)
	if n := float64(after.Mallocs-before.Mallocs) / frames; n > 0.1 {
		t.Errorf("%.2f allocations per frame; want none", n)
	}
}
