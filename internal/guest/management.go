package guest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"

	"vignette.dev/vignette/internal/clock"
)

const (
	// dhcpTimeout of one exchange for a lease.
	dhcpTimeout = 10 * time.Second
	// minRenewal prevents constant requests for very short leases.
	minRenewal     = 10 * time.Second
	resolvConfPath = "/etc/resolv.conf"
)

// setUpManagement finds the interface that is no radio, and sets it up by DHCP unless the machine has done so.
func (g *guest) setUpManagement(ctx context.Context, background *sync.WaitGroup) (netlink.Link, error) {
	link, err := g.managementLink(ctx)
	if err != nil {
		return nil, err
	}
	name := link.Attrs().Name
	addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", name, err)
	}
	if len(addresses) > 0 {
		g.log.Info("management interface, set up by the machine", "interface", name, "address", addresses[0].IPNet.String())
		return link, nil
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("management interface %s: set up: %w", name, err)
	}
	lease, err := g.firstLease(ctx, link)
	if err != nil {
		return nil, err
	}
	background.Go(func() { g.renew(ctx, link, lease) })
	return link, nil
}

func (g *guest) managementLink(ctx context.Context) (netlink.Link, error) {
	for end := time.Now().Add(deviceWait); ; {
		links, err := netlink.LinkList()
		if err != nil {
			return nil, fmt.Errorf("interfaces: %w", err)
		}
		for _, link := range links {
			if isManagement(link, g.config.Interfaces) {
				return link, nil
			}
		}
		if time.Now().After(end) || !clock.Pause(ctx, diskInterval) {
			return nil, fmt.Errorf("every network interface is a radio: want one more, for management")
		}
	}
}

func (g *guest) firstLease(ctx context.Context, link netlink.Link) (*nclient4.Lease, error) {
	logged := false
	for {
		lease, err := g.obtain(ctx, link, nil)
		if err == nil {
			return lease, nil
		}
		if !logged {
			g.log.Warn("no lease for the management interface yet", "interface", link.Attrs().Name, "error", err)
			logged = true
		}
		if !clock.Pause(ctx, time.Second) {
			return nil, ctx.Err()
		}
	}
}

// obtain a lease, or renew one, and apply it.
func (g *guest) obtain(ctx context.Context, link netlink.Link, before *nclient4.Lease) (*nclient4.Lease, error) {
	client, err := nclient4.New(link.Attrs().Name)
	if err != nil {
		return nil, fmt.Errorf("DHCP: %w", err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, dhcpTimeout)
	defer cancel()
	var lease *nclient4.Lease
	if before != nil {
		lease, err = client.Renew(ctx, before)
	} else {
		lease, err = client.Request(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("DHCP: %w", err)
	}
	if before == nil || !before.ACK.YourIPAddr.Equal(lease.ACK.YourIPAddr) {
		g.log.Info("management", "interface", link.Attrs().Name, "address", lease.ACK.YourIPAddr.String(), "lease", lease.ACK.IPAddressLeaseTime(0).String())
	}
	return lease, applyLease(link, lease.ACK, g.resolvConf)
}

// renew the lease at half its time, as in RFC 2131, and get another one if that fails finally.
func (g *guest) renew(ctx context.Context, link netlink.Link, lease *nclient4.Lease) {
	for {
		life := lease.ACK.IPAddressLeaseTime(time.Hour)
		if !clock.Pause(ctx, max(life/2, minRenewal)) {
			return
		}
		for next := lease; ; {
			renewed, err := g.obtain(ctx, link, next)
			if err == nil {
				lease = renewed
				break
			}
			g.log.Warn("the management interface's lease is not renewed", "error", err)
			if time.Since(lease.CreationTime) > life*7/8 {
				next = nil
			}
			if !clock.Pause(ctx, minRenewal) {
				return
			}
		}
	}
}

// applyLease sets address, routes, MTU and name servers.
func applyLease(link netlink.Link, ack *dhcpv4.DHCPv4, resolvConf string) error {
	name, mask := link.Attrs().Name, ack.SubnetMask()
	if mask == nil {
		mask = ack.YourIPAddr.DefaultMask()
	}
	if mtu, err := dhcpv4.GetUint16(dhcpv4.OptionInterfaceMTU, ack.Options); err == nil && mtu > 0 {
		if err := netlink.LinkSetMTU(link, int(mtu)); err != nil {
			return fmt.Errorf("management interface %s: mtu %d: %w", name, mtu, err)
		}
	}
	address := &net.IPNet{IP: ack.YourIPAddr, Mask: mask}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: address}); err != nil {
		return fmt.Errorf("management interface %s: address %v: %w", name, address, err)
	}
	for _, r := range leaseRoutes(ack) {
		r.LinkIndex = link.Attrs().Index
		if err := netlink.RouteReplace(&r); err != nil {
			return fmt.Errorf("management interface %s: route to %v via %v: %w", name, r.Dst, r.Gw, err)
		}
	}
	if text := resolvConfText(ack); text != "" {
		return replaceFile(resolvConf, []byte(text), 0o644)
	}
	return nil
}

// leaseRoutes are the classless ones (RFC 3442), which override the router, or the default route.
func leaseRoutes(ack *dhcpv4.DHCPv4) (routes []netlink.Route) {
	for _, r := range ack.ClasslessStaticRoute() {
		route := netlink.Route{Dst: r.Dest, Gw: r.Router}
		if r.Router == nil || r.Router.IsUnspecified() {
			route.Gw, route.Scope = nil, netlink.SCOPE_LINK
		}
		routes = append(routes, route)
	}
	if routers := ack.Router(); len(routes) == 0 && len(routers) > 0 {
		routes = append(routes, netlink.Route{Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}, Gw: routers[0]})
	}
	return routes
}

// resolvConfText has the name servers in the form of resolv.conf(5).
func resolvConfText(ack *dhcpv4.DHCPv4) string {
	var b strings.Builder
	for _, server := range ack.DNS() {
		fmt.Fprintf(&b, "nameserver %v\n", server)
	}
	var domains []string
	if search := ack.DomainSearch(); search != nil {
		domains = search.Labels
	}
	if domain := ack.DomainName(); len(domains) == 0 && domain != "" {
		domains = []string{domain}
	}
	if b.Len() > 0 && len(domains) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(domains, " "))
	}
	return b.String()
}
