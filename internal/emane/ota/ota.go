// Package ota reaches the over-the-air channel of EMANE's processes in a network namespace, which is a multicast group.
package ota

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// receiveBuffer in bytes holds what processes send while nobody reads.
const receiveBuffer = 4 << 20

// Channel receives what a network namespace's EMANE processes send, and sends to them.
type Channel struct {
	group    netip.AddrPort
	receiver *net.UDPConn
	sender   *net.UDPConn
	ownPort  uint16
}

// Open opens the channel on a device of the calling thread's network namespace. Datagrams sent here do not leave the host.
func Open(ctx context.Context, group netip.AddrPort, device string) (*Channel, error) {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("over-the-air channel: device %s: %w", device, err)
	}
	receiver, err := net.ListenMulticastUDP("udp4", i, net.UDPAddrFromAddrPort(group))
	if err != nil {
		return nil, fmt.Errorf("over-the-air channel: %w", err)
	}
	if raw, err := receiver.SyscallConn(); err == nil {
		// Without this option bursts may be lost.
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) })
	}
	sender, err := Sender(ctx, i, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("over-the-air channel: %w", err), receiver.Close())
	}
	return newChannel(group, receiver, sender), nil
}

func newChannel(group netip.AddrPort, receiver, sender *net.UDPConn) *Channel {
	return &Channel{group, receiver, sender, sender.LocalAddr().(*net.UDPAddr).AddrPort().Port()} //nolint:forcetypeassert // it is a UDP socket
}

// Sockets are the descriptors of a Channel, by which another process has it.
type Sockets struct {
	Group            netip.AddrPort
	Receiver, Sender int
}

// Sockets returns duplicates of the channel's descriptors, which the caller closes.
func (c *Channel) Sockets() (s Sockets, err error) {
	s = Sockets{c.group, -1, -1}
	if s.Receiver, err = duplicate(c.receiver); err != nil {
		return s, err
	}
	if s.Sender, err = duplicate(c.sender); err != nil {
		return s, errors.Join(err, unix.Close(s.Receiver))
	}
	return s, nil
}

func duplicate(c *net.UDPConn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	controlErr := raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(controlErr, err)
}

// Close closes the descriptors.
func (s Sockets) Close() error { return errors.Join(unix.Close(s.Receiver), unix.Close(s.Sender)) }

// Channel makes a channel of the descriptors, which it closes.
func (s Sockets) Channel() (*Channel, error) {
	receiver, err := connOf(s.Receiver)
	if err != nil {
		return nil, errors.Join(err, unix.Close(s.Sender))
	}
	sender, err := connOf(s.Sender)
	if err != nil {
		return nil, errors.Join(err, receiver.Close())
	}
	return newChannel(s.Group, receiver, sender), nil
}

func connOf(fd int) (*net.UDPConn, error) {
	file := os.NewFile(uintptr(fd), "over-the-air channel") //nolint:gosec // a descriptor
	defer file.Close()
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, fmt.Errorf("over-the-air channel: %w", err)
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(errors.New("over-the-air channel: want UDP sockets"), conn.Close())
	}
	return udp, nil
}

// Close also ends Receive.
func (c *Channel) Close() error { return errors.Join(c.receiver.Close(), c.sender.Close()) }

// Receive waits for a datagram of the processes, and returns its length.
func (c *Channel) Receive(buffer []byte) (int, error) {
	for {
		n, from, err := c.receiver.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return 0, fmt.Errorf("over-the-air channel: %w", err)
		}
		if from.Port() != c.ownPort { // the port is unique in the namespace
			return n, nil
		}
	}
}

// Send sends a datagram to the processes.
func (c *Channel) Send(datagram []byte) error {
	if _, err := c.sender.WriteToUDPAddrPort(datagram, c.group); err != nil {
		return fmt.Errorf("over-the-air channel: %w", err)
	}
	return nil
}

// Sender opens a socket that multicasts on a device: to its own host, and beyond it with a TTL above 0.
func Sender(ctx context.Context, device *net.Interface, ttl int) (*net.UDPConn, error) {
	connection, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", "0.0.0.0:0")
	if err != nil {
		return nil, err
	}
	options := ipv4.NewPacketConn(connection)
	if err := errors.Join(options.SetMulticastInterface(device), options.SetMulticastTTL(ttl), options.SetMulticastLoopback(true)); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection.(*net.UDPConn), nil //nolint:forcetypeassert // it is a UDP socket
}
