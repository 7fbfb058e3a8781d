package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/radiod/podnet"
)

// deviceWait is how long the driver of a network interface may need.
const deviceWait = 30 * time.Second

// radioLink is a radio that was set up.
type radioLink struct {
	guestconfig.Interface
	index int
}

func (g *guest) setUpRadios(ctx context.Context) ([]radioLink, error) {
	if err := freeNames(ctx, g.config.Interfaces); err != nil {
		return nil, err
	}
	var radios []radioLink
	for _, i := range g.config.Interfaces {
		index, err := setUpRadio(ctx, i)
		if err != nil {
			return nil, err
		}
		radios = append(radios, radioLink{i, index})
		if err := podnet.SetCongestionControl(i.TCPCongestionControl); err != nil {
			g.log.Warn("radio", "error", err) // the agents check it and fail the run
		}
		g.log.Info("radio", "interface", i.Name, "address", i.Address, "mtu", i.MTU)
	}
	return radios, nil
}

// freeNames renames the radios that do not have their names yet. What the kernel calls one may be the name of another.
func freeNames(ctx context.Context, radios []guestconfig.Interface) error {
	for n, i := range radios {
		mac, err := net.ParseMAC(i.MAC)
		if err != nil {
			return fmt.Errorf("radio %s: %w", i.Name, err)
		}
		link, err := waitForLink(ctx, mac)
		if err != nil {
			return fmt.Errorf("radio %s: %w", i.Name, err)
		}
		if link.Attrs().Name == i.Name {
			continue
		}
		if err := errors.Join(netlink.LinkSetDown(link), netlink.LinkSetName(link, fmt.Sprint("vgradio", n))); err != nil {
			return fmt.Errorf("radio %s: take the name %s from it: %w", i.Name, link.Attrs().Name, err)
		}
	}
	return nil
}

// setUpRadio as podnet does for a pod.
func setUpRadio(ctx context.Context, i guestconfig.Interface) (index int, err error) {
	wanted, err := podnet.ParseInterface(i.Name, i.MAC, i.Address, i.MTU, i.Primary)
	if err != nil {
		return 0, err
	}
	link, err := waitForLink(ctx, wanted.MAC)
	if err != nil {
		return 0, fmt.Errorf("radio %s: %w", i.Name, err)
	}
	if err := clearLink(link); err != nil {
		return 0, fmt.Errorf("radio %s: %w", i.Name, err)
	}
	if err := netlink.LinkSetMTU(link, i.MTU); err != nil {
		return 0, fmt.Errorf("radio %s: mtu %d: %w", i.Name, i.MTU, err)
	}
	if err := netlink.LinkSetTxQLen(link, podnet.QueueLength); err != nil {
		return 0, fmt.Errorf("radio %s: txqueuelen %d: %w", i.Name, podnet.QueueLength, err)
	}
	if index, _, err = podnet.SetUp(link.Attrs().Name, wanted); err != nil {
		return 0, err
	}
	return index, addRoutes(index, i)
}

// clearLink removes the machine's own settings. A name can only be changed while an interface is down.
func clearLink(link netlink.Link) error {
	if err := netlink.LinkSetDown(link); err != nil {
		return fmt.Errorf("set down: %w", err)
	}
	addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("addresses: %w", err)
	}
	for _, a := range addresses {
		if err := netlink.AddrDel(link, &a); err != nil {
			return fmt.Errorf("address %v: %w", a.IPNet, err)
		}
	}
	return nil
}

// addRoutes of protocol static.
func addRoutes(index int, i guestconfig.Interface) error {
	for _, r := range i.Routes {
		_, to, err := net.ParseCIDR(r.To)
		if err != nil {
			return err
		}
		if err := netlink.RouteReplace(&netlink.Route{LinkIndex: index, Dst: to, Gw: net.ParseIP(r.Via)}); err != nil {
			return fmt.Errorf("route %s via %s at %s: %w", r.To, r.Via, i.Name, err)
		}
	}
	return nil
}

func waitForLink(ctx context.Context, mac net.HardwareAddr) (netlink.Link, error) {
	for end := time.Now().Add(deviceWait); ; {
		links, err := netlink.LinkList()
		if err != nil {
			return nil, fmt.Errorf("interfaces: %w", err)
		}
		for _, link := range links {
			if bytes.Equal(link.Attrs().HardwareAddr, mac) {
				return link, nil
			}
		}
		if time.Now().After(end) || !clock.Pause(ctx, diskInterval) {
			return nil, fmt.Errorf("no network interface has the MAC address %v", mac)
		}
	}
}

// isManagement reports whether the link may be the management interface: a device, or a container's end of a veth, that is no radio.
func isManagement(link netlink.Link, radios []guestconfig.Interface) bool {
	a := link.Attrs()
	if a.Flags&net.FlagLoopback != 0 || len(a.HardwareAddr) != 6 || link.Type() != "device" && link.Type() != "veth" {
		return false
	}
	for _, radio := range radios {
		if mac, err := net.ParseMAC(radio.MAC); err == nil && bytes.Equal(mac, a.HardwareAddr) {
			return false
		}
	}
	return true
}

// prefixOf a validated address.
func prefixOf(address string) netip.Prefix {
	prefix, _ := netip.ParsePrefix(address)
	return prefix
}
