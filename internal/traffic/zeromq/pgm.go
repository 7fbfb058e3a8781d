package zeromq

import (
	"fmt"
	"net"
	"net/netip"

	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/internal/zmq"
)

const (
	// A sender keeps what it sent, to repeat it, for the recovery interval at its full rate: windowBits bound the memory for that. The
	// interval is a minute where the rate is low: repetitions then wait behind long queues.
	windowBits       = 128 << 20
	minRecoverMillis = 10_000 // libzmq's default
	maxRecoverMillis = 60_000
)

// PGMOptions are added for a socket of PGM. Senders and receivers must have the same, as they make their windows by them.
func PGMOptions(options map[zmq.Option]int, rateKilobits int) {
	options[zmq.Rate] = rateKilobits
	options[zmq.RecoveryInterval] = min(max(windowBits/max(rateKilobits, 1), minRecoverMillis), maxRecoverMillis)
}

// PGMEndpoints of publishers and subscribers on a network interface; empty where there is no group.
func PGMEndpoints(name string, config trafficconfig.PGM) (publish, subscribe string, err error) {
	address, err := interfaceAddress(name)
	if err != nil {
		return "", "", err
	}
	if publish, err = PGMEndpoint(address, config.Publish); err != nil {
		return "", "", err
	}
	subscribe, err = PGMEndpoint(address, config.Subscribe)
	return publish, subscribe, err
}

// PGMEndpoint of a group on the interface with an address: libzmq takes no interface's name.
func PGMEndpoint(local netip.Addr, group string) (string, error) {
	if group == "" {
		return "", nil
	}
	parsed, err := netip.ParseAddrPort(group)
	if err != nil || !parsed.Addr().Is4() || !parsed.Addr().IsMulticast() || parsed.Port() == 0 {
		return "", fmt.Errorf("pgm group %q: want an IPv4 multicast address:port, such as 239.255.9.1:5601", group)
	}
	return fmt.Sprintf("epgm://%s;%s", local, parsed), nil
}

// interfaceAddress is the first IPv4 address of an interface.
func interfaceAddress(name string) (netip.Addr, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("interface %s: %w", name, err)
	}
	addresses, err := device.Addrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("interface %s: %w", name, err)
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			return prefix.Addr(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("interface %s has no IPv4 address", name)
}
