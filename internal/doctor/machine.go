package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Machine is what is known of the machine that `make demo` would run on.
type Machine struct {
	OS, Arch, Kernel string
	Root             bool
	// Checkout is the folder of the repository, empty outside of one.
	Checkout string
	// Programs that are there, with their versions where those count.
	Programs map[string]string
	// Features of the kernel that are there, by the names of KernelFeatures.
	Features Fact[map[string]bool]
	// Home is the folder that builds and the cluster's data go to, with the room left on its disk.
	Home          string
	FreeDiskBytes int64
	MemoryBytes   int64
	// TakenSubnets are addresses of this machine that the developer cluster would use, and whose they are.
	TakenSubnets []string
	// Installs tells that missing packages can be installed: apt-get is there.
	Installs bool
}

// What the developer cluster takes (hack/README.md).
const (
	leastDiskBytes   = 15 << 30
	leastMemoryBytes = 2 << 30
	// builtDiskBytes is what a cluster that was built needs.
	builtDiskBytes = 2 << 30
)

var (
	leastGo     = version.MustParseGeneric("1.26")
	leastPython = version.MustParseGeneric("3.11")
)

// tools that the user brings, with the least version.
var tools = []struct {
	program, packaged string
	least             *version.Version
}{
	{"go", "https://go.dev/dl", leastGo},
	{"python3", "apt-get install python3", leastPython},
	{"make", "apt-get install make", nil},
}

// Packages of Debian with the programs that the developer cluster runs. hack/cluster installs what is missing; a test holds this list
// against its own.
var Packages = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "runc": "runc", "iptables": "iptables", "nft": "nftables", "ip": "iproute2",
	"nsenter": "util-linux", "buildah": "buildah", "mmdebstrap": "mmdebstrap",
}

// KernelFeatures that the developer cluster needs, and what of the kernel has each.
var KernelFeatures = map[string]string{
	"br_netfilter": "module br_netfilter", "overlay": "overlayfs", "veth": "module veth", "tun": "TUN/TAP", "nf_tables": "nftables",
	"nft_chain_nat": "nftables' NAT", "xt_comment": "iptables' comments", "namespaces": "namespaces", "cgroup": "control groups",
}

// CheckMachine says what a machine lacks for `make demo`.
func CheckMachine(m Machine) Report {
	checks := []Check{m.system(), m.user(), m.checkout()}
	for _, tool := range tools {
		checks = append(checks, m.tool(tool.program, tool.packaged, tool.least))
	}
	return reportOf("this machine", append(checks, m.packages(), m.kernel(), m.disk(), m.memory(), m.addresses()))
}

func (m Machine) system() Check {
	k := check("system", true)
	found := strings.Join(strings.Fields(m.OS+" "+m.Arch+" "+m.Kernel), " ")
	if m.OS != "linux" {
		return k.lacks(found, "the developer cluster needs Linux: use a cluster that you have (docs/how-to/install.md), or a machine with Debian 12")
	}
	return k.fine(found)
}

func (m Machine) user() Check {
	k := check("user", true)
	if !m.Root {
		return k.lacks("not root", "run make demo as root: it makes namespaces, interfaces and control groups")
	}
	return k.fine("root")
}

func (m Machine) checkout() Check {
	k := check("repository", true)
	if m.Checkout == "" {
		return k.lacks("not in a folder of it", "make demo is run in a checkout of the repository")
	}
	return k.fine(m.Checkout)
}

func (m Machine) tool(program, remedy string, least *version.Version) Check {
	k := check(program, true)
	found, there := m.Programs[program]
	if !there {
		return k.lacks("not on the PATH", "install it: "+remedy)
	}
	v, err := version.ParseGeneric(found)
	switch {
	case least == nil:
		return k.fine("is there")
	case err != nil:
		return k.unread("version " + found)
	case v.LessThan(least):
		return k.lacks(found, fmt.Sprintf("install %s or newer: %s", least, remedy))
	}
	return k.fine(found)
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
		return k.fine("all are installed")
	case m.Installs:
		return k.fine("make demo installs " + strings.Join(missing, ", "))
	}
	return k.lacks("without "+strings.Join(missing, ", "), "there is no apt-get to install them: install them by your system's own means")
}

func (m Machine) kernel() Check {
	k := check("kernel", true)
	if m.Features.Unread() {
		return k.unread(m.Features.Why)
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(KernelFeatures)) {
		if !m.Features.Value[name] {
			missing = append(missing, KernelFeatures[name])
		}
	}
	if len(missing) > 0 {
		return k.lacks("without "+strings.Join(missing, ", "), "use a kernel that has them, such as Debian's linux-image-amd64; in a container the host has to load them (modprobe)")
	}
	return k.fine("has all that is needed")
}

func (m Machine) disk() Check {
	k := check("disk", true)
	found := fmt.Sprintf("%s free at %s", gib(m.FreeDiskBytes), m.Home)
	switch {
	case m.FreeDiskBytes < builtDiskBytes:
		return k.lacks(found, fmt.Sprintf("make room: the first build takes %s; VIGNETTE_HOME names another folder", gib(leastDiskBytes)))
	case m.FreeDiskBytes < leastDiskBytes:
		return k.doubtful(found, fmt.Sprintf("the first build takes %s, most of it Go's caches; VIGNETTE_HOME names another folder", gib(leastDiskBytes)))
	}
	return k.fine(found)
}

func (m Machine) memory() Check {
	k := check("memory", true)
	if m.MemoryBytes < leastMemoryBytes {
		return k.lacks(gib(m.MemoryBytes), fmt.Sprintf("one node takes %s, each further one 0.15 GiB", gib(leastMemoryBytes)))
	}
	return k.fine(gib(m.MemoryBytes))
}

// addresses: the cluster opens no port of the machine, but takes subnets.
func (m Machine) addresses() Check {
	k := check("addresses", false)
	if len(m.TakenSubnets) > 0 {
		return k.lacks(some(m.TakenSubnets), "the developer cluster takes 10.128.0.0/14: what the machine reaches there it cannot reach while the cluster is up")
	}
	return k.fine("10.128.0.0/14 is free; no port of the machine is taken")
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
