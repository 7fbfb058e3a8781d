package podnet

import (
	"bufio"
	"io"
	"net/netip"
	"strings"
)

// NameServers of a resolv.conf(5); entries that are no address are left out.
func NameServers(file io.Reader) (servers []netip.Addr) {
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if address, err := netip.ParseAddr(fields[1]); err == nil {
			servers = append(servers, address.Unmap())
		}
	}
	return servers
}

// ParseAddresses returns the addresses among texts.
func ParseAddresses(texts []string) (addresses []netip.Addr) {
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, address.Unmap())
		}
	}
	return addresses
}
