package carrier

import (
	"errors"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
)

// Cost starts a carrier with the arguments and reports its work while the nodes in turn broadcast so many 900-byte
// frames a second in all.
func Cost(nodes []*radiotest.Node, framesPerSecond int, duration time.Duration, arguments ...string) (r Report, err error) {
	c, err := Start(nodes, arguments...)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	sockets, err := broadcasters(nodes)
	if err != nil {
		return r, err
	}
	defer closeAll(sockets)
	load(sockets, framesPerSecond, time.Second) // to warm up
	before, err := c.Report()
	if err != nil {
		return r, err
	}
	load(sockets, framesPerSecond, duration)
	after, err := c.Report()
	if err != nil {
		return r, err
	}
	r = Report{CPU: after.CPU - before.CPU, Delivered: after.Delivered - before.Delivered, Lateness: after.Lateness, ResidentBytes: after.ResidentBytes}
	r.Lateness.Count -= before.Lateness.Count
	for i, n := range before.Lateness.Buckets {
		r.Lateness.Buckets[i] -= n
	}
	if r.Delivered == 0 {
		return r, errors.New("nothing was delivered")
	}
	return r, nil
}

func broadcasters(nodes []*radiotest.Node) (sockets []int, err error) {
	for _, n := range nodes {
		err := netns.Do(n.Namespace, func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			sockets = append(sockets, fd)
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
				return err
			}
			to := &unix.SockaddrInet4{Port: 1883}
			copy(to.Addr[:], net.IPv4(198, 18, 255, 255).To4())
			return unix.Connect(fd, to)
		})
		if err != nil {
			closeAll(sockets)
			return nil, err
		}
	}
	return sockets, nil
}

func closeAll(sockets []int) {
	for _, fd := range sockets {
		_ = unix.Close(fd)
	}
}

// load sends frames at even intervals, the nodes in turn.
func load(sockets []int, framesPerSecond int, duration time.Duration) {
	const udpPayload = 900 - radio.HeaderLength - 28
	payload := make([]byte, udpPayload)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock.SetTimerSlack(1)
	start, interval := clock.Monotonic(), int64(time.Second)/int64(framesPerSecond)
	for i := range int64(duration) / interval {
		due := unix.NsecToTimespec(start + i*interval)
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &due, nil) // an early wake-up affects evenness only
		_, _ = unix.Write(sockets[int(i)%len(sockets)], payload)                     // the deliveries show what is missing
	}
}
