package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Machine has the facts about the machine for `make demo`.
type Machine struct {
	OS, Arch, Kernel string
	Root             bool
	// Checkout is the folder of the repository; empty outside of one.
	Checkout string
	// Programs that exist, with their versions if they matter.
	Programs map[string]string
	// Features of the kernel, by the names of KernelFeatures.
	Features Fact[map[string]bool]
	// Home is the folder for builds and the cluster's data, with the space left on its disk.
	Home          string
	FreeDiskBytes int64
	MemoryBytes   int64
	// OverlappingSubnets are addresses of this machine that the developer cluster would use, with their interfaces.
	OverlappingSubnets []string
	// CanInstall is set if missing packages can be installed: apt-get exists.
	CanInstall bool
}

// Requirements of the developer cluster (hack/README.md).
const (
	minDiskBytes   = 15 << 30
	minMemoryBytes = 2 << 30
	// builtDiskBytes are needed by a cluster that is already built.
	builtDiskBytes = 2 << 30
)

var (
	minGo     = version.MustParseGeneric("1.26")
	minPython = version.MustParseGeneric("3.11")
)

// tools that the user must install, with the least version.
var tools = []struct {
	program, packaged string
	least             *version.Version
}{
	{"go", "https://go.dev/dl", minGo},
	{"python3", "apt-get install python3", minPython},
	{"make", "apt-get install make", nil},
}

// Packages of Debian with the programs that the developer cluster runs. hack/cluster installs missing ones; a test compares this list
// with its list.
var Packages = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "runc": "runc", "iptables": "iptables", "nft": "nftables", "ip": "iproute2",
	"nsenter": "util-linux", "buildah": "buildah", "mmdebstrap": "mmdebstrap",
}

// KernelFeatures that the developer cluster needs, and what they belong to.
var KernelFeatures = map[string]string{
	"br_netfilter": "module br_netfilter", "overlay": "overlayfs", "veth": "module veth", "tun": "TUN/TAP", "nf_tables": "nftables",
	"nft_chain_nat": "nftables' NAT", "xt_comment": "iptables' comments", "namespaces": "namespaces", "cgroup": "control groups",
}

// CheckMachine reports what a machine lacks for `make demo`.
func CheckMachine(m Machine) Report {
	checks := []Check{m.system(), m.user(), m.checkout()}
	for _, tool := range tools {
		checks = append(checks, m.tool(tool.program, tool.packaged, tool.least))
	}
	return newReport("this machine", append(checks, m.packages(), m.kernel(), m.disk(), m.memory(), m.addresses()))
}

func (m Machine) system() Check {
	k := check("system", true)
	found := strings.Join(strings.Fields(m.OS+" "+m.Arch+" "+m.Kernel), " ")
	if m.OS != "linux" {
		return k.missing(found, "the developer cluster needs Linux: use an existing cluster (docs/how-to/install.md), or a machine with Debian 12")
	}
	return k.ok(found)
}

func (m Machine) user() Check {
	k := check("user", true)
	if !m.Root {
		return k.missing("not root", "run make demo as root: it makes namespaces, interfaces and control groups")
	}
	return k.ok("root")
}

func (m Machine) checkout() Check {
	k := check("repository", true)
	if m.Checkout == "" {
		return k.missing("not in a checkout", "run make demo in a checkout of the repository")
	}
	return k.ok(m.Checkout)
}

func (m Machine) tool(program, remedy string, least *version.Version) Check {
	k := check(program, true)
	found, there := m.Programs[program]
	if !there {
		return k.missing("not on the PATH", "install it: "+remedy)
	}
	v, err := version.ParseGeneric(found)
	switch {
	case least == nil:
		return k.ok("installed")
	case err != nil:
		return k.unknown("version " + found)
	case v.LessThan(least):
		return k.missing(found, fmt.Sprintf("install %s or newer: %s", least, remedy))
	}
	return k.ok(found)
}

func (m Machine) packages() Check {
	k := check("packages", true)
	var missing []string
	for program, name := range Packages {
		if _, there := m.Programs[program]; !there && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	switch {
	case len(missing) == 0:
		return k.ok("all installed")
	case m.CanInstall:
		return k.ok("make demo installs " + strings.Join(missing, ", "))
	}
	return k.missing("without "+strings.Join(missing, ", "), "there is no apt-get: install them with your system's package manager")
}

func (m Machine) kernel() Check {
	k := check("kernel", true)
	if m.Features.IsUnknown() {
		return k.unknown(m.Features.Why)
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(KernelFeatures)) {
		if !m.Features.Value[name] {
			missing = append(missing, KernelFeatures[name])
		}
	}
	if len(missing) > 0 {
		return k.missing("without "+strings.Join(missing, ", "), "use a kernel that has them, such as Debian's linux-image-amd64; in a container the host has to load them (modprobe)")
	}
	return k.ok("has all needed features")
}

func (m Machine) disk() Check {
	k := check("disk", true)
	found := fmt.Sprintf("%s free at %s", gib(m.FreeDiskBytes), m.Home)
	switch {
	case m.FreeDiskBytes < builtDiskBytes:
		return k.missing(found, fmt.Sprintf("free some space: the first build needs %s; VIGNETTE_HOME can name another folder", gib(minDiskBytes)))
	case m.FreeDiskBytes < minDiskBytes:
		return k.warning(found, fmt.Sprintf("the first build needs %s, mostly for Go's caches; VIGNETTE_HOME can name another folder", gib(minDiskBytes)))
	}
	return k.ok(found)
}

func (m Machine) memory() Check {
	k := check("memory", true)
	if m.MemoryBytes < minMemoryBytes {
		return k.missing(gib(m.MemoryBytes), fmt.Sprintf("one node needs %s, each further one 0.15 GiB", gib(minMemoryBytes)))
	}
	return k.ok(gib(m.MemoryBytes))
}

// addresses: the cluster opens no port of the machine, but uses subnets.
func (m Machine) addresses() Check {
	k := check("addresses", false)
	if len(m.OverlappingSubnets) > 0 {
		return k.missing(listNames(m.OverlappingSubnets), "the developer cluster uses 10.128.0.0/14: the machine cannot reach other hosts there while the cluster is up")
	}
	return k.ok("10.128.0.0/14 is free; the cluster uses no port of the machine")
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
