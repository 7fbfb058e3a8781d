package doctor

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// developerSubnets are used by the first developer cluster of a machine.
var developerSubnets = netip.MustParsePrefix("10.128.0.0/14")

var versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// GatherMachine reads the facts about this machine; folder is the current one.
func GatherMachine(ctx context.Context, folder string) Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: firstLine("/proc/sys/kernel/osrelease"), Root: os.Geteuid() == 0, Checkout: checkoutAt(folder)}
	m.Programs = map[string]string{}
	for program := range Packages {
		if _, found := lookUp(program); found {
			m.Programs[program] = ""
		}
	}
	for _, tool := range tools {
		if path, found := lookUp(tool.program); found {
			m.Programs[tool.program] = versionOf(ctx, path, tool.program)
		}
	}
	_, m.CanInstall = lookUp("apt-get")
	m.Features = kernelFeatures("/", m.Kernel)
	m.Home, m.FreeDiskBytes = homeDisk()
	m.MemoryBytes = memoryBytes()
	m.OverlappingSubnets = overlappingSubnets()
	return m
}

// lookUp a program on the PATH, and in the folders of root's programs and Go.
func lookUp(program string) (path string, found bool) {
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin", "/usr/local/go/bin") {
		path := filepath.Join(folder, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

// versionOf a program, or its output if that contains none.
func versionOf(ctx context.Context, path, program string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	argument := "--version"
	if program == "go" {
		argument = "version"
	}
	command := exec.CommandContext(ctx, path, argument)
	command.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	out, err := command.CombinedOutput()
	if number := versionNumber.FindString(string(out)); err == nil && number != "" {
		return number
	}
	return "is unknown"
}

// checkoutAt returns the folder of the repository that contains a folder.
func checkoutAt(folder string) string {
	for {
		if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err == nil && strings.HasPrefix(string(text), "module vignette.dev/vignette\n") {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return ""
		}
		folder = parent
	}
}

// kernelOptions are the names of the features in a kernel's configuration.
var kernelOptions = map[string]string{
	"br_netfilter": "CONFIG_BRIDGE_NETFILTER", "overlay": "CONFIG_OVERLAY_FS", "veth": "CONFIG_VETH", "tun": "CONFIG_TUN", "nf_tables": "CONFIG_NF_TABLES",
	"nft_chain_nat": "CONFIG_NFT_NAT", "xt_comment": "CONFIG_NETFILTER_XT_MATCH_COMMENT",
}

// kernelFeatures below a root: loaded, configured, or available as modules.
func kernelFeatures(root, release string) Fact[map[string]bool] {
	modules := filepath.Join(root, "lib/modules", release)
	listed := readText(filepath.Join(modules, "modules.builtin")) + readText(filepath.Join(modules, "modules.dep"))
	configured := kernelConfig(root, release)
	filesystems := readText(filepath.Join(root, "proc/filesystems"))
	has, sure := map[string]bool{}, listed != "" || configured != ""
	for name := range KernelFeatures {
		has[name] = exists(filepath.Join(root, "sys/module", name)) || strings.Contains(listed, "/"+name+".ko") ||
			strings.Contains(configured, "\n"+kernelOptions[name]+"=y\n") || strings.Contains(configured, "\n"+kernelOptions[name]+"=m\n")
	}
	has["tun"] = has["tun"] || exists(filepath.Join(root, "dev/net/tun"))
	has["overlay"] = has["overlay"] || strings.Contains(filesystems, "\toverlay\n")
	has["cgroup"] = strings.Contains(filesystems, "\tcgroup")
	has["namespaces"] = exists(filepath.Join(root, "proc/self/ns/net")) && exists(filepath.Join(root, "proc/self/ns/pid"))
	for name := range KernelFeatures {
		if !has[name] && !sure {
			return unknown[map[string]bool]("there is no /lib/modules and no configuration")
		}
	}
	return known(has)
}

// kernelConfig of the running kernel; empty if it is not available.
func kernelConfig(root, release string) string {
	if text := readText(filepath.Join(root, "boot/config-"+release)); text != "" {
		return "\n" + text
	}
	file, err := os.Open(filepath.Join(root, "proc/config.gz"))
	if err != nil {
		return ""
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(unpacked, 1<<22))
	if err != nil {
		return ""
	}
	return "\n" + string(text)
}

func homeDisk() (home string, free int64) {
	home = os.Getenv("VIGNETTE_HOME")
	if cache, err := os.UserCacheDir(); home == "" && err == nil {
		home = filepath.Join(cache, "vignette")
	}
	for at := home; ; at = filepath.Dir(at) {
		var stat unix.Statfs_t
		if unix.Statfs(at, &stat) == nil {
			return home, int64(stat.Bavail) * int64(stat.Bsize)
		}
		if at == filepath.Dir(at) {
			return home, 0
		}
	}
}

// memoryBytes of the machine; 0 if the kernel does not say.
func memoryBytes() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// overlappingSubnets of the machine's interfaces, without the developer cluster's own bridges.
func overlappingSubnets() (taken []string) {
	interfaces, _ := net.Interfaces() // none: nothing is taken
	for _, i := range interfaces {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err == nil && prefix.Overlaps(developerSubnets) && !strings.HasPrefix(i.Name, "vgn") {
				taken = append(taken, fmt.Sprintf("%s has %s", i.Name, prefix))
			}
		}
	}
	return taken
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readText(path string) string {
	text, _ := os.ReadFile(path) // a missing file counts as empty
	return string(text)
}

func firstLine(path string) string {
	line, _, _ := strings.Cut(readText(path), "\n")
	return line
}
