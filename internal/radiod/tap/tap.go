// Package tap makes TAP interfaces and takes them over again.
//
// Closing the last descriptor of a persistent TAP drops its carrier. A descriptor that was opened inside a
// namespace keeps that namespace alive. Opening by name in the wrong namespace silently makes a new
// interface. So TAPs are created in the host's namespace and moved. An existing one is only opened after its
// index was checked.
package tap

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// TemporaryPrefix of names in the host's namespace, before a TAP is moved into its pod's.
const TemporaryPrefix = "vgtap"

// device is the clone device, which radiod's privileged container has.
const device = "/dev/net/tun"

// Create makes a persistent TAP without offloads in the calling thread's namespace, under a
// temporary name of the kernel's choice. The descriptor does not block.
func Create() (fd int, name string, err error) {
	return open(TemporaryPrefix + "%d")
}

// Open takes over the TAP with that name and index in the calling thread's namespace. The
// descriptor keeps the namespace alive until it is closed.
func Open(name string, index int) (fd int, err error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return -1, fmt.Errorf("interface %s: %w", name, err)
	}
	if link.Index != index {
		return -1, fmt.Errorf("interface %s: has index %d, ours had %d", name, link.Index, index)
	}
	fd, _, err = open(name)
	return fd, err
}

// RemoveUnused removes the TAP with that name and index in the calling thread's namespace if no process holds it.
// A TAP that is just being made is held by its maker.
func RemoveUnused(name string, index int) (removed bool, err error) {
	if link, err := net.InterfaceByName(name); err != nil || link.Index != index {
		return false, nil // it has gone meanwhile
	}
	fd, err := Open(name, index)
	if errors.Is(err, unix.EBUSY) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, Destroy(fd)
}

func open(pattern string) (fd int, name string, err error) {
	fd, err = unix.Open(device, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, "", fmt.Errorf("open %s: %w", device, err)
	}
	name, err = attach(fd, pattern)
	if err != nil {
		return -1, "", errors.Join(fmt.Errorf("TAP %s: %w", pattern, err), os.NewSyscallError("close", unix.Close(fd)))
	}
	return fd, name, nil
}

func attach(fd int, pattern string) (name string, err error) {
	request, err := unix.NewIfreq(pattern)
	if err != nil {
		return "", err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return "", os.NewSyscallError("TUNSETIFF", err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1); err != nil {
		return "", os.NewSyscallError("TUNSETPERSIST", err)
	}
	// Without offloads no frame is longer than MTU and header.
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, 0); err != nil {
		return "", os.NewSyscallError("TUNSETOFFLOAD", err)
	}
	return request.Name(), nil
}

// Destroy makes the TAP non-persistent and closes the descriptor. The interface vanishes with its last
// descriptor.
func Destroy(fd int) error {
	err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 0)
	if errors.Is(err, unix.EBADFD) {
		err = nil // it went with its namespace
	}
	return errors.Join(os.NewSyscallError("TUNSETPERSIST", err), os.NewSyscallError("close", unix.Close(fd)))
}
