package node

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mountAll gives the node its own /var, /run, /tmp, /etc, /opt, /proc and
// /sys; all other folders are the machine's. It runs in the node's own mount
// namespace, so that the machine does not see these mounts.
func (c Config) mountAll() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// The new mounts may hide folders of the machine. They
	// are held by descriptors and bound into the node afterwards.
	held := map[string]string{"/var": filepath.Join(c.Dir, "var"), kubernetesDir: c.Kubernetes, pkiDir: c.PKI, ownDir + "/cni": c.CNI}
	descriptors := map[string]int{}
	if err := makeVar(held["/var"]); err != nil {
		return err
	}
	for inside, outside := range held {
		fd, err := unix.Open(outside, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", outside, err)
		}
		defer unix.Close(fd)
		descriptors[inside] = fd
	}
	if err := mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := mount("tmpfs", "/run", "tmpfs", 0, "mode=755,size=1g"); err != nil {
		return err
	}
	if err := mountSys(); err != nil {
		return err
	}
	for _, folder := range []string{"/etc", "/opt"} {
		if err := overlay(folder); err != nil {
			return err
		}
	}
	if err := mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777,size=1g"); err != nil {
		return err
	}
	for inside, fd := range descriptors {
		if err := bind(fmt.Sprintf("/proc/self/fd/%d", fd), inside); err != nil {
			return err
		}
	}
	if err := makeFolders(); err != nil {
		return err
	}
	// Mounts made in the node reach pods that ask for HostToContainer.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	return nil
}

func mount(source, target, kind string, flags uintptr, options string) error {
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", kind, target, err)
	}
	return nil
}

func bind(source, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
}

// mountSys mounts a /sys which shows the node's own network interfaces, and
// keeps the machine's control groups in it.
func mountSys() error {
	const aside = ownDir + "/cgroup"
	if err := bind("/sys/fs/cgroup", aside); err != nil {
		return err
	}
	if err := mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	return mount(aside, "/sys/fs/cgroup", "", unix.MS_MOVE, "")
}

// overlay keeps changes below folder within the node, and drops them with it.
func overlay(folder string) error {
	upper, work := filepath.Join(ownDir, "upper", folder), filepath.Join(ownDir, "work", folder)
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return mount("overlay", folder, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", folder, upper, work))
}

func makeVar(path string) error {
	for _, dir := range []string{"lib/containerd", "lib/kubelet", "lib/etcd", "log/devcluster", "log/pods", "cache"} {
		if err := os.MkdirAll(filepath.Join(path, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(path, "tmp"), 0o777|os.ModeSticky); err != nil {
		return err
	}
	// The pods from before the start are gone, and their addresses are free.
	if err := os.RemoveAll(filepath.Join(path, "lib/cni")); err != nil {
		return err
	}
	for link, target := range map[string]string{"run": "/run", "lock": "/run/lock"} {
		if _, err := os.Lstat(filepath.Join(path, link)); err == nil {
			continue
		}
		if err := os.Symlink(target, filepath.Join(path, link)); err != nil {
			return err
		}
	}
	return nil
}

func makeFolders() error {
	for _, dir := range []string{"/run/lock", configDir, cniBinDir, cniConfigDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}
