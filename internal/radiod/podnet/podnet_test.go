package podnet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/golden"
)

func TestRulesForEth0(t *testing.T) {
	port, address := netip.MustParseAddrPort, netip.MustParseAddr
	for name, c := range map[string]struct {
		radios  []int
		allowed Allowed
	}{
		"one-radio": {[]int{3}, Allowed{DNS: []netip.AddrPort{port("10.96.0.10:53"), port("10.1.0.5:53")},
			Servers: []netip.AddrPort{port("10.96.7.7:80"), port("10.1.0.9:8080")}, Hosts: []netip.Addr{address("192.0.2.1")}, Scrapers: []netip.Addr{address("10.1.0.77")}}},
		"two-radios-and-ipv6":  {[]int{3, 5}, Allowed{DNS: []netip.AddrPort{port("[fd00::a]:53")}, Hosts: []netip.Addr{address("fe80::1")}}},
		"nothing-is-known-yet": {[]int{7}, Allowed{}},
	} {
		t.Run(name, func(t *testing.T) { golden.Check(t, name+".txt", textOf(chains(c.radios, c.allowed.Normalise()))) })
	}
}

// textOf chains, as nft(8) would show them.
func textOf(chains []chain) string {
	var b strings.Builder
	for _, c := range chains {
		policy := ""
		if c.hook != nil && c.policy == nftables.ChainPolicyDrop {
			policy = " (else drop)"
		}
		fmt.Fprintf(&b, "chain %s%s\n", c.name, policy)
		for _, r := range c.rules {
			b.WriteString("\t")
			for _, m := range r.matches {
				b.WriteString(m.text + " ")
			}
			b.WriteString(r.verdict + "\n")
		}
	}
	return b.String()
}

func TestOnlySSHAndMetricsReachAGuestFromOutside(t *testing.T) {
	text := textOf(chains([]int{2}, Allowed{Ports: []uint16{sshPort}, AllScrapers: true}.Normalise()))
	if !strings.Contains(text, "\ttcp dport 22 accept\n") || !strings.Contains(text, "\ttcp dport 9400-9499 accept\n") || strings.Count(text, "tcp dport") != 2 {
		t.Errorf("%s; want port 22 and those of metrics", text)
	}
}

func TestRulesForALauncher(t *testing.T) {
	port, address := netip.MustParseAddrPort, netip.MustParseAddr
	golden.Check(t, "launcher.txt", textOf(launcherChains(2, Allowed{DNS: []netip.AddrPort{port("10.96.0.10:53")},
		Servers: []netip.AddrPort{port("10.96.7.7:80")}, Hosts: []netip.Addr{address("192.0.2.1")}, Scrapers: []netip.Addr{address("fd00::77")}}.Normalise())))
}

func TestEqualSetsAreEqualHoweverTheyAreListed(t *testing.T) {
	a := Allowed{Hosts: []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.1")}}
	b := Allowed{Hosts: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}}
	if !a.Normalise().Equal(b.Normalise()) {
		t.Error("order or repetition made a difference")
	}
	b.Servers = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:80")}
	if a.Normalise().Equal(b.Normalise()) {
		t.Error("different sets are equal")
	}
}

func TestSettingsAreWrittenAndNoted(t *testing.T) {
	root := t.TempDir()
	for _, s := range settings {
		path := filepath.Join(root, strings.ReplaceAll(s.path, "IF", "vhf.1"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "ipv4/tcp_rmem"), []byte("4096\t131072\t6291456\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	values, err := applySettings(root, "vhf.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"net.ipv4.ip_forward": "1", "net.ipv4.conf.vhf/1.arp_ignore": "1",
		"net.ipv6.conf.vhf/1.disable_ipv6": "1", "net.ipv4.tcp_rmem": "4096 131072 6291456"} {
		if values[name] != want {
			t.Errorf("%s noted as %q; want %q", name, values[name], want)
		}
	}
	forward, earlier := filepath.Join(root, "ipv4/ip_forward"), time.Unix(1e9, 0)
	if written, _ := os.ReadFile(forward); string(written) != "1" {
		t.Errorf("ip_forward written as %q", written)
	}
	if err := os.Chtimes(forward, earlier, earlier); err != nil {
		t.Fatal(err)
	}
	if _, err := applySettings(root, "vhf.1"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(forward); err != nil || !info.ModTime().Equal(earlier) {
		t.Errorf("ip_forward was written again: %v, %v", info.ModTime(), err)
	}
	if err := os.RemoveAll(filepath.Join(root, "ipv6")); err != nil {
		t.Fatal(err)
	}
	if _, err := applySettings(root, "vhf.1"); err != nil {
		t.Errorf("a kernel without IPv6: %v", err)
	}
	if err := os.Remove(filepath.Join(root, "ipv4/conf/all/rp_filter")); err != nil {
		t.Fatal(err)
	}
	// WriteFile would create it; a folder in its place cannot be written.
	if err := os.Mkdir(filepath.Join(root, "ipv4/conf/all/rp_filter"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := applySettings(root, "vhf.1"); err == nil || !strings.Contains(err.Error(), "ipv4/conf/all/rp_filter = 0") {
		t.Errorf("error %v; want one that names the setting", err)
	}
}

func TestAnInterfaceThatComesLaterBeginsWithoutIPv6(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a network namespace")
	}
	runtime.LockOSThread() // not unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	if err := WithoutIPv6(); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "later"}}); err != nil {
		t.Fatal(err)
	}
	if off, err := os.ReadFile("/proc/sys/net/ipv6/conf/later/disable_ipv6"); strings.TrimSpace(string(off)) != "1" && !os.IsNotExist(err) {
		t.Errorf("disable_ipv6 is %q, %v; want 1", off, err)
	}
}

func TestParseInterfaceNamesWhatIsWrong(t *testing.T) {
	if i, err := ParseInterface("vhf", "02:02:00:00:00:01", "198.18.9.1/24", 1500, true); err != nil || i.Address.String() != "198.18.9.1/24" {
		t.Errorf("got %+v, %v", i, err)
	}
	for name, c := range map[string][2]string{"mac": {"02:02", "198.18.9.1/24"}, "address": {"02:02:00:00:00:01", "198.18.9.1"}} {
		if _, err := ParseInterface("vhf", c[0], c[1], 1500, true); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "want") {
			t.Errorf("bad %s: error %v; want one that names it and says what would be right", name, err)
		}
	}
}

func TestNodesMayChooseTheHostsCongestionControlsAndThoseOfTheChart(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, allowedCongestionControls)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("reno bbr\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"reno": "", "cubic": "",
		"vegas": `tcpCongestionControl is "vegas": want one that this host allows (reno, bbr), or of the chart's radiod.tcpCongestionControls (cubic)`} {
		got := ""
		if err := checkCongestionControl(root, name, []string{"cubic"}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
}

func TestACongestionControlIsAddedToThoseThatAreAllowedOnce(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "ipv4/tcp_allowed_congestion_control")
	if err := allowCongestionControl(root, "cubic"); err == nil {
		t.Error("allowed in a namespace that has no list; want an error")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("reno bbr\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"bbr": "reno bbr", "cubic": "reno bbr cubic"} {
		if err := os.WriteFile(path, []byte("reno bbr\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := allowCongestionControl(root, name); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); strings.TrimSpace(string(got)) != want {
			t.Errorf("%s: the list is %q; want %q", name, got, want)
		}
	}
}
