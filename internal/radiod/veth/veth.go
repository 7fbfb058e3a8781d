// Package veth makes the radios of nodes whose frames another program carries. They are veth pairs with one
// end in the node's network namespace and one in the program's. If either end or its namespace goes, the
// other end goes too, so that nothing remains to be cleaned up.
package veth

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
)

// ParkedName returns the name of an attachment's far end while it waits in radiod's own namespace. It is always
// the same for an attachment.
func ParkedName(attachment string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(attachment)) // never fails
	return fmt.Sprintf("vgn%012x", h.Sum64()>>16)
}

// Create makes a pair. The near end is in the node's namespace under a temporary name, for podnet.SetUp. The
// far end is parked in the calling thread's namespace. A parked end of an earlier worker is removed.
func Create(namespace *os.File, temporary, parked string, i podnet.Interface) error {
	if err := Remove(parked); err != nil {
		return err
	}
	pair := netlink.NewVeth(netlink.LinkAttrs{Name: parked, MTU: i.MTU, TxQLen: podnet.QueueLength})
	pair.PeerName, pair.PeerHardwareAddr, pair.PeerMTU, pair.PeerTxQLen = temporary, i.MAC, uint32(i.MTU), podnet.QueueLength //nolint:gosec // checked when it was read
	pair.PeerNamespace = netlink.NsFd(int(namespace.Fd()))
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("pair of interfaces %s: %w", parked, err)
	}
	return errors.Join(withoutOffloads(parked), netns.Do(namespace, func() error { return withoutOffloads(temporary) }))
}

// Place moves a parked end to the program's namespace, names it, and sets it up. An end that is there already
// is accepted.
func Place(parked string, namespace *os.File, name string) error {
	// The kernel there must not send on the radio.
	if err := netns.Do(namespace, podnet.WithoutIPv6); err != nil {
		return err
	}
	if err := move(parked, namespace); err != nil {
		return err
	}
	return netns.Do(namespace, func() error {
		if link, err := netlink.LinkByName(name); err == nil {
			return setUp(link)
		}
		link, err := netlink.LinkByName(parked)
		if err != nil {
			return fmt.Errorf("interface %s: neither it nor %s is where it should be: %w", name, parked, err)
		}
		if err := netlink.LinkSetName(link, name); err != nil {
			return fmt.Errorf("interface %s: rename to %s: %w", parked, name, err)
		}
		return errors.Join(netlink.LinkSetARPOff(link), setUp(link))
	})
}

func setUp(link netlink.Link) error {
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("interface %s: set up: %w", link.Attrs().Name, err)
	}
	return nil
}

// move moves a parked end, if it is still there.
func move(parked string, namespace *os.File) error {
	link, err := netlink.LinkByName(parked)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("interface %s: %w", parked, err)
	}
	if err := netlink.LinkSetNsFd(link, int(namespace.Fd())); err != nil {
		return fmt.Errorf("interface %s: move to the pod of EMANE: %w", parked, err)
	}
	return nil
}

// Remove the pair by its near end, on a thread in the node's namespace.
func Remove(name string) error {
	return podnet.RemoveIf(name, func(link netlink.Link) bool { return link.Type() == "veth" })
}

// ethtoolValue is the kernel's struct ethtool_value.
type ethtoolValue struct {
	command uint32
	_       uint32 // data: 0 is off
}

// The commands that disable offloads, which would let frames leave longer than the MTU or without checksums.
var offloads = map[string]uint32{"rx checksums": 0x15, "tx checksums": 0x17, "scatter-gather": 0x19, "TSO": 0x1f, "GSO": 0x24, "GRO": 0x2c}

// withoutOffloads disables the offloads of an interface in the calling thread's namespace, because programs
// that read its frames expect complete ones.
func withoutOffloads(name string) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("ethtool: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	for what, command := range offloads {
		value := ethtoolValue{command: command}
		request := struct {
			name [unix.IFNAMSIZ]byte
			data *ethtoolValue
			_    [16]byte // the rest of struct ifreq
		}{data: &value}
		copy(request.name[:unix.IFNAMSIZ-1], name)
		//nolint:gosec // the kernel's way
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
		if errno != 0 && errno != unix.EOPNOTSUPP {
			err = errors.Join(err, fmt.Errorf("interface %s: switch off %s: %w", name, what, errno))
		}
	}
	return err
}
