package guest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radiod/podnet"
)

const (
	dnsPort = 53
	sshPort = 22
	// isolationInterval is how often the server's addresses are looked up again.
	isolationInterval = time.Minute
	lookupTimeout     = 10 * time.Second
	netNamespace      = "/proc/self/ns/net"
	// upstreamPath has the upstream name servers of systemd-resolved, if resolv.conf names only itself.
	upstreamPath = "/run/systemd/resolve/resolv.conf"
)

// isolation keeps all but the platform's traffic off the management interface. radiod does so too, outside of the machine, where it
// cannot be changed; the rules here give programs an error at once, and save packets that would be dropped.
type isolation struct {
	radios []int
	server *url.URL
	// openManagement has no rules.
	openManagement bool
	log            *slog.Logger
	applied        podnet.Allowed
}

// isolate sets the rules, for which the server's name must resolve.
func (g *guest) isolate(ctx context.Context, radios []radioLink, management netlink.Link) (*isolation, error) {
	server, err := url.Parse(g.config.Server)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	i := &isolation{server: server, openManagement: g.config.OpenManagement, log: g.log}
	for _, r := range radios {
		i.radios = append(i.radios, r.index)
	}
	if i.openManagement {
		return i, nil
	}
	for logged := false; ; logged = true {
		err := i.apply(ctx)
		if err == nil {
			return i, nil
		}
		if !logged {
			g.log.Warn("management interface", "interface", management.Attrs().Name, "error", err)
		}
		if !clock.Pause(ctx, time.Second) {
			return nil, ctx.Err()
		}
	}
}

// run keeps the rules up to date: a Service may get another address.
func (i *isolation) run(ctx context.Context) {
	for !i.openManagement && clock.Pause(ctx, isolationInterval) {
		if err := i.apply(ctx); err != nil && ctx.Err() == nil {
			i.log.Warn("management interface", "error", err)
		}
	}
}

func (i *isolation) apply(ctx context.Context) error {
	allowed, err := i.allowed(ctx)
	if err != nil {
		return err
	}
	if allowed.Equal(i.applied) {
		return nil
	}
	namespace, err := os.Open(netNamespace)
	if err != nil {
		return err
	}
	defer namespace.Close()
	if err := podnet.ApplyRules(namespace, i.radios, allowed); err != nil {
		return err
	}
	i.applied = allowed
	return nil
}

// allowed are the server's addresses and the name servers; from outside, SSH and the metrics of apps.
func (i *isolation) allowed(ctx context.Context) (podnet.Allowed, error) {
	a := podnet.Allowed{Ports: []uint16{sshPort}, AllScrapers: true}
	for _, file := range []string{resolvConfPath, upstreamPath} {
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			return a, err
		}
		for _, server := range podnet.NameServers(bytes.NewReader(text)) {
			a.DNS = append(a.DNS, netip.AddrPortFrom(server, dnsPort))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", i.server.Hostname())
	if err != nil {
		return a, fmt.Errorf("address of the server %s: %w", i.server, err)
	}
	port, err := portOf(i.server)
	if err != nil {
		return a, err
	}
	for _, address := range addresses {
		a.Servers = append(a.Servers, netip.AddrPortFrom(address.Unmap(), port))
	}
	return a.Normalise(), nil
}

func portOf(server *url.URL) (uint16, error) {
	switch text := server.Port(); {
	case text != "":
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("server %s: port %q: want 1 to 65535", server, text)
		}
		return uint16(port), nil
	case server.Scheme == "https":
		return 443, nil
	}
	return 80, nil
}
