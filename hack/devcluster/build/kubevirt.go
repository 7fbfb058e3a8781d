package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vignette.dev/vignette/hack/devcluster/machine"
	"vignette.dev/vignette/hack/devcluster/progress"
	"vignette.dev/vignette/hack/devcluster/run"
)

const (
	kubeVirtModule  = "kubevirt.io/kubevirt"
	kubeVirtVersion = "v1.7.0"
)

// The images of KubeVirt: of what talks to the API server only, and of what works on a node.
const (
	KubeVirtControlImage = "localhost/devcluster/kubevirt-control:" + kubeVirtVersion
	KubeVirtNodeImage    = "localhost/devcluster/kubevirt-node:" + kubeVirtVersion
)

// kubeVirtPrograms are packages of KubeVirt's module.
var kubeVirtPrograms = []string{
	"cmd/virt-operator", "cmd/virt-api", "cmd/virt-controller", "cmd/virt-handler", "cmd/virt-chroot",
	"cmd/virt-launcher", "cmd/virt-launcher-monitor", "cmd/virt-probe", "cmd/virt-tail", "cmd/virt-freezer", "cmd/virtctl",
}

// KubeVirt is the context of KubeVirt's images, with their Dockerfiles; virtctl in bin; and kubevirt.yaml with its operator. It is no
// part of a plain cluster.
func (p Products) KubeVirt() Product {
	return Product{
		Name: "kubevirt", Recipe: "1 " + kubeVirtVersion,
		Label: "build KubeVirt", Expect: 8 * time.Minute,
		Inputs: []string{p.source("kubevirt")},
		Make:   p.makeKubeVirt,
	}
}

func (p Products) makeKubeVirt(ctx context.Context, h *progress.Handle, dir, log string) error {
	if err := machine.Install(ctx, h, log, machine.CompilerPackages); err != nil {
		return err
	}
	bin := filepath.Join(dir, "bin") + "/"
	packages := []string{"./operator"}
	for _, program := range kubeVirtPrograms {
		packages = append(packages, kubeVirtModule+"/"+program)
	}
	// One call, as nearly all that virt-launcher, which needs C, is made from is in the others too.
	err := goBuild{dir: p.source("kubevirt"), out: bin, packages: packages, ldflags: kubeVirtVersionFlags(), cgo: true}.run(ctx, h, log)
	if err != nil {
		return err
	}
	module, err := moduleDir(ctx, p.source("kubevirt"), kubeVirtModule, "")
	if err != nil {
		return err
	}
	// It runs in a guest's own image, where there may be no C library.
	h.Detail("container-disk")
	err = run.Logged(ctx, log, run.Command{
		Name: "gcc", Args: []string{"-O2", "-s", "-static", "-o", bin + "container-disk", filepath.Join(module, "cmd", "container-disk-v2alpha", "main.c")},
	})
	if err != nil {
		return err
	}
	if err := p.kubeVirtFiles(module, dir); err != nil {
		return err
	}
	return kubeVirtManifest(ctx, bin+"operator", filepath.Join(dir, "kubevirt.yaml"))
}

func kubeVirtVersionFlags() string {
	const p = "kubevirt.io/client-go/version"
	return strings.Join([]string{
		"-X " + p + ".gitVersion=" + kubeVirtVersion, "-X " + p + ".gitCommit=modproxy",
		"-X " + p + ".gitTreeState=clean", "-X " + p + ".buildDate=1970-01-01T00:00:00Z",
	}, " ")
}

// kubeVirtFiles copies what the images have besides programs: ours, and libvirt's configuration of the module.
func (p Products) kubeVirtFiles(module, dir string) error {
	launcher := filepath.Join(module, "cmd", "virt-launcher")
	for _, file := range []struct {
		from, to string
		mode     os.FileMode
	}{
		{p.source("kubevirt", "control.Dockerfile"), "control.Dockerfile", 0o644},
		{p.source("kubevirt", "node.Dockerfile"), "node.Dockerfile", 0o644},
		{p.source("kubevirt", "scripts", "virtqemud"), "scripts/virtqemud", 0o755},
		{p.source("kubevirt", "scripts", "kvm-works"), "scripts/kvm-works", 0o755},
		{p.source("kubevirt", "scripts", "node-labeller.sh"), "scripts/node-labeller.sh", 0o755},
		{filepath.Join(launcher, "qemu.conf"), "libvirt/qemu.conf", 0o644},
		{filepath.Join(launcher, "virtqemud.conf"), "libvirt/virtqemud.conf", 0o644},
		{filepath.Join(launcher, "qemu"), "libvirt/hooks/qemu", 0o755},
		{filepath.Join(launcher, "nsswitch.conf"), "nsswitch.conf", 0o644},
	} {
		text, err := os.ReadFile(file.from)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, file.to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, file.mode); err != nil {
			return err
		}
	}
	return nil
}

// kubeVirtManifest writes what the generator, a program of ours with KubeVirt's own, prints.
func kubeVirtManifest(ctx context.Context, generator, to string) error {
	defer os.Remove(generator)
	text, err := run.Output(ctx, run.Command{Name: generator, Args: []string{KubeVirtControlImage, KubeVirtNodeImage, kubeVirtVersion}})
	if err != nil {
		return fmt.Errorf("the manifest of KubeVirt's operator: %w", err)
	}
	return os.WriteFile(to, []byte(text), 0o644)
}
