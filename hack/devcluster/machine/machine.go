// Package machine checks a cluster's requirements of the machine, and installs
// missing ones from Debian's packages.
package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
)

// packages maps the required programs to their Debian packages.
var packages = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "runc": "runc",
	"iptables": "iptables", "nft": "nftables", "ip": "iproute2", "nsenter": "util-linux",
}

// ImagePackages are those for building images.
var ImagePackages = map[string]string{"buildah": "buildah", "mmdebstrap": "mmdebstrap"}

// modules are loaded if the kernel has them as modules; most have some built in.
var modules = []string{"br_netfilter", "overlay", "veth", "tun", "nf_tables", "nft_chain_nat", "xt_comment"}

// Prepare returns a step that prepares the machine for a cluster.
func Prepare(log string) func(context.Context, *progress.Handle) error {
	return func(ctx context.Context, h *progress.Handle) error {
		if os.Geteuid() != 0 {
			return errors.New("this must run as root: it makes namespaces, interfaces and control groups")
		}
		if err := Install(ctx, h, log, packages); err != nil {
			return err
		}
		loadModules(ctx)
		if err := raiseLimits("/proc/sys"); err != nil {
			h.Result("large experiments may suffer: %v", err)
		}
		return nil
	}
}

// CompilerPackages are those for compiling programs that call libvirt.
var CompilerPackages = map[string]string{
	"gcc": "gcc", "pkg-config": "pkg-config", "/usr/include/stdio.h": "libc6-dev", "/usr/include/libvirt/libvirt.h": "libvirt-dev",
}

// Install installs the packages of missing programs, or of files by their complete path.
func Install(ctx context.Context, h *progress.Handle, log string, programs map[string]string) error {
	missing := missingPackages(programs, present)
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing: %s, and there is no apt-get to install them", list)
	}
	h.Detail("apt-get install %s", list)
	h.Result("installed %s", list)
	environment := []string{"DEBIAN_FRONTEND=noninteractive"}
	if err := run.Logged(ctx, log, run.Command{Name: "apt-get", Args: []string{"update"}, Env: environment}); err != nil {
		return err
	}
	// A fresh machine may install its own updates just then.
	arguments := append([]string{"install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"}, missing...)
	return run.Logged(ctx, log, run.Command{Name: "apt-get", Args: arguments, Env: environment})
}

func present(program string) bool {
	_, err := exec.LookPath(program)
	if filepath.IsAbs(program) {
		_, err = os.Stat(program)
	}
	return err == nil
}

func missingPackages(programs map[string]string, present func(string) bool) []string {
	var missing []string
	for program, name := range programs {
		if !present(program) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// loadModules ignores failures: a module may be built in, or its absence shows as a
// clear error of the first program that needs it.
func loadModules(ctx context.Context) {
	if _, err := exec.LookPath("modprobe"); err != nil {
		return
	}
	for _, module := range modules {
		if _, err := os.Stat("/sys/module/" + module); err == nil {
			continue
		}
		_, _ = run.Output(ctx, run.Command{Name: "modprobe", Args: []string{"-q", module}})
	}
}

// MemoryBytes is the size of the machine's memory.
func MemoryBytes() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, err
	}
	return int64(info.Totalram) * int64(info.Unit), nil
}
