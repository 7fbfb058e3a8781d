package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/wire"
)

// node is a namespace with a socket at its radio.
type node struct {
	namespace *os.File
	socket    int
}

func macOf(i int) net.HardwareAddr { return net.HardwareAddr{2, 2, 0, 0, 0, byte(i + 1)} }

func podUID(i int) string { return fmt.Sprintf("pod-%d", i+1) }

// attachPatience with a radiod that is just starting.
const attachPatience = 20 * time.Second

// attach makes the nodes and has radiod give them their radios, as the CNI plugin does.
func (b *bed) attach(nodes int) error {
	for i := range nodes {
		namespace, err := radiotest.Namespace()
		if err != nil {
			return err
		}
		n := &node{namespace, -1}
		b.nodes = append(b.nodes, n)
		if err := b.askForRadio(i, n); err != nil {
			return err
		}
		err = netns.Do(namespace, func() error {
			link, err := net.InterfaceByName("vhf")
			if err != nil {
				return err
			}
			n.socket, err = radiotest.Socket(link.Index)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bed) askForRadio(i int, n *node) error {
	request := wire.Request{Command: "ADD", Configuration: "soak", Network: "vhf", Attachment: wire.Attachment{ContainerID: "c-" + podUID(i), Interface: "vhf"},
		PodUID: podUID(i), PodNamespace: "team", PodName: podUID(i), Namespace: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.namespace.Fd())}
	for deadline := time.Now().Add(attachPatience); ; time.Sleep(50 * time.Millisecond) {
		answer, err := wire.Ask(b.daemon.path("radiod.sock"), time.Second, request, n.namespace)
		if err == nil && answer.Error != "" {
			err = fmt.Errorf("attach node %d: %s", i+1, answer.Error)
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// start sends and receives until stop.
func (b *bed) start(o options) {
	b.done = make(chan struct{})
	b.times = make([]int64, 0, int(o.rate*o.duration.Seconds()*1.1))
	b.received.Store(0)
	b.receiving.Go(b.receive)
	b.sending.Go(func() { b.send(o) })
}

// stop ends the sending; the nodes still receive.
func (b *bed) stop() {
	close(b.done)
	b.sending.Wait()
}

const sendInterval = 2 * time.Millisecond

// send hands in frames evenly, each from and to a node chosen at random.
func (b *bed) send(o options) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	ticker := time.NewTicker(sendInterval)
	defer ticker.Stop()
	frame := make([]byte, max(o.frameBytes, radio.HeaderLength+8))
	binary.BigEndian.PutUint16(frame[12:], radiotest.EtherType)
	begin, sequence := time.Now(), uint64(0)
	for {
		select {
		case <-b.done:
			return
		case <-ticker.C:
		}
		for due := uint64(time.Since(begin).Seconds() * o.rate); sequence < due; sequence++ {
			from := random.IntN(len(b.nodes))
			to := (from + 1 + random.IntN(len(b.nodes)-1)) % len(b.nodes)
			copy(frame, macOf(to))
			copy(frame[6:], macOf(from))
			binary.BigEndian.PutUint64(frame[radio.HeaderLength:], sequence)
			b.sendOne(from, frame)
		}
	}
}

func (b *bed) sendOne(from int, frame []byte) {
	at := clock.Realtime()
	if _, err := unix.Write(b.nodes[from].socket, frame); err != nil {
		b.refused.Add(1) // by the sender's kernel, whose interface has no carrier: never on the radio
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.times = append(b.times, at)
}

// receive counts what arrives until the sockets are closed.
func (b *bed) receive() {
	poll := make([]unix.PollFd, len(b.nodes))
	for i, n := range b.nodes {
		poll[i] = unix.PollFd{Fd: int32(n.socket), Events: unix.POLLIN} //nolint:gosec // a descriptor
	}
	buffer := make([]byte, 2048)
	for {
		count, err := unix.Poll(poll, 100)
		select {
		case <-b.closed:
			return
		default:
		}
		if err != nil || count == 0 {
			continue // EINTR
		}
		for i := range poll {
			for poll[i].Revents != 0 {
				if _, _, err := unix.Recvfrom(int(poll[i].Fd), buffer, unix.MSG_DONTWAIT); err != nil {
					break
				}
				b.received.Add(1)
			}
		}
	}
}

// sentBetween counts the frames that were sent in a time, nanoseconds of the real-time clock.
func (b *bed) sentBetween(from, to int64) (frames uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.times {
		if at >= from && at <= to {
			frames++
		}
	}
	return frames
}

func (b *bed) sent() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return uint64(len(b.times))
}
