package emane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// otaBuffer in bytes holds what processes send while nobody reads.
const otaBuffer = 4 << 20

// OTAChannel is the over-the-air channel of a network namespace's EMANE processes, for receiving what they send and
// for sending to them.
type OTAChannel struct {
	group    *net.UDPAddr
	receiver *net.UDPConn
	sender   net.PacketConn
	ownPort  uint16
}

// OpenOTAChannel opens it on a device of the calling thread's network namespace. Datagrams sent here do not leave
// the host.
func OpenOTAChannel(ctx context.Context, group netip.AddrPort, device string) (*OTAChannel, error) {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("over-the-air channel: device %s: %w", device, err)
	}
	a := &OTAChannel{group: net.UDPAddrFromAddrPort(group)}
	if a.receiver, err = net.ListenMulticastUDP("udp4", i, a.group); err != nil {
		return nil, fmt.Errorf("over-the-air channel: %w", err)
	}
	if raw, err := a.receiver.SyscallConn(); err == nil {
		// Without this option bursts may be lost.
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, otaBuffer) })
	}
	if a.sender, err = openSender(ctx, i, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("over-the-air channel: %w", err), a.receiver.Close())
	}
	a.ownPort = a.sender.LocalAddr().(*net.UDPAddr).AddrPort().Port() //nolint:forcetypeassert // it is a UDP socket
	return a, nil
}

// Close also ends Receive.
func (a *OTAChannel) Close() error { return errors.Join(a.receiver.Close(), a.sender.Close()) }

// Receive waits for a datagram of the processes, and returns its length.
func (a *OTAChannel) Receive(buffer []byte) (int, error) {
	for {
		n, from, err := a.receiver.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return 0, fmt.Errorf("over-the-air channel: %w", err)
		}
		if from.Port() != a.ownPort { // the port is unique in the namespace
			return n, nil
		}
	}
}

// Send sends a datagram to the processes.
func (a *OTAChannel) Send(datagram []byte) error {
	if _, err := a.sender.WriteTo(datagram, a.group); err != nil {
		return fmt.Errorf("over-the-air channel: %w", err)
	}
	return nil
}

// openSender opens a socket that multicasts on a device: to its own host, and beyond it with a TTL above 0.
func openSender(ctx context.Context, device *net.Interface, ttl int) (net.PacketConn, error) {
	connection, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", "0.0.0.0:0")
	if err != nil {
		return nil, err
	}
	options := ipv4.NewPacketConn(connection)
	if err := errors.Join(options.SetMulticastInterface(device), options.SetMulticastTTL(ttl), options.SetMulticastLoopback(true)); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection, nil
}
