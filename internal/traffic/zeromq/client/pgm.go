package client

import (
	"fmt"
	"net"
	"net/netip"

	"vignette.dev/vignette/internal/traffic/zeromq"
	"vignette.dev/vignette/internal/traffic/zeromq/zmq"
)

const (
	// A sender keeps messages for repetition during the recovery interval, at its full rate. windowBits limits the memory for that.
	// The interval is a minute at low rates, as repetitions then wait behind long queues.
	windowBits       = 128 << 20
	minRecoverMillis = 10_000 // libzmq's default
	maxRecoverMillis = 60_000
)

// PGMOptions returns the options of a PGM socket. Senders and receivers need the same, as they set the windows.
func PGMOptions(options map[zmq.Option]int, rateKilobits int) {
	options[zmq.Rate] = rateKilobits
	options[zmq.RecoveryInterval] = min(max(windowBits/max(rateKilobits, 1), minRecoverMillis), maxRecoverMillis)
}

// schemes of ZeroMQ by transport.
var schemes = map[string]string{zeromq.TransportPGM: "epgm", zeromq.TransportPGMRaw: "pgm"}

// PGMEndpoints returns the endpoints of publishers and subscribers on an interface; empty without a group.
func PGMEndpoints(transport, name string, config zeromq.PGM) (publish, subscribe string, err error) {
	address, err := interfaceAddress(name)
	if err != nil {
		return "", "", err
	}
	if publish, err = PGMEndpoint(transport, address, config.Publish); err != nil {
		return "", "", err
	}
	subscribe, err = PGMEndpoint(transport, address, config.Subscribe)
	return publish, subscribe, err
}

// PGMEndpoint returns the endpoint of a group on the interface with an address. libzmq accepts no interface names.
func PGMEndpoint(transport string, local netip.Addr, group string) (string, error) {
	if group == "" {
		return "", nil
	}
	parsed, err := netip.ParseAddrPort(group)
	if err != nil || !parsed.Addr().Is4() || !parsed.Addr().IsMulticast() || parsed.Port() == 0 {
		return "", fmt.Errorf("pgm group %q: want an IPv4 multicast address:port, such as 239.255.9.1:5601", group)
	}
	return fmt.Sprintf("%s://%s;%s", schemes[transport], local, parsed), nil
}

// interfaceAddress returns an interface's first IPv4 address.
func interfaceAddress(name string) (netip.Addr, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("interface %q: want one of this node", name)
	}
	addresses, _ := device.Addrs() // an interface that is gone meanwhile has none
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			return prefix.Addr(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("interface %s has no IPv4 address", name)
}
