package build

import (
	"context"
	"fmt"
	"io/fs"
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

// KubeVirt's images: one of the programs that talk only to the API server, and one of those that work on a node.
const (
	KubeVirtControlImage = "localhost/devcluster/kubevirt-control:" + kubeVirtVersion
	KubeVirtNodeImage    = "localhost/devcluster/kubevirt-node:" + kubeVirtVersion
)

// kubeVirtPrograms are packages of KubeVirt's module.
var kubeVirtPrograms = []string{
	"cmd/virt-operator", "cmd/virt-api", "cmd/virt-controller", "cmd/virt-handler", "cmd/virt-chroot",
	"cmd/virt-launcher", "cmd/virt-launcher-monitor", "cmd/virt-probe", "cmd/virt-tail", "cmd/virt-freezer", "cmd/virtctl",
}

// KubeVirtPrograms has in bin KubeVirt's programs and virtctl, libvirt's configuration, and kubevirt.yaml with the operator.
func (p Products) KubeVirtPrograms() Product {
	return Product{
		Name: "kubevirt-programs", Recipe: "1 " + kubeVirtVersion,
		Label: "build KubeVirt", Expect: 8 * time.Minute,
		Inputs: []string{p.source("kubevirt", "go.mod"), p.source("kubevirt", "go.sum"), p.source("kubevirt", "operator")},
		Make:   p.makeKubeVirtPrograms,
	}
}

// KubeVirt is the build context of KubeVirt's images, with Dockerfiles, programs and our additions. A plain cluster does not have it.
func (p Products) KubeVirt() Product {
	return Product{
		Name: "kubevirt", Recipe: p.recipeOf("2", p.KubeVirtPrograms()),
		Label: "gather what KubeVirt's images are made from", Expect: time.Second,
		Inputs: []string{p.source("kubevirt", "control.Dockerfile"), p.source("kubevirt", "node.Dockerfile"), p.source("kubevirt", "scripts")},
		Make: func(_ context.Context, _ *progress.Handle, dir, _ string) error {
			programs, err := p.Cache.Path(p.KubeVirtPrograms())
			if err != nil {
				return err
			}
			return p.kubeVirtContext(programs, dir)
		},
	}
}

func (p Products) makeKubeVirtPrograms(ctx context.Context, h *progress.Handle, dir, log string) error {
	if err := machine.Install(ctx, h, log, machine.CompilerPackages); err != nil {
		return err
	}
	bin := filepath.Join(dir, "bin") + "/"
	packages := []string{"./operator"}
	for _, program := range kubeVirtPrograms {
		packages = append(packages, kubeVirtModule+"/"+program)
	}
	// One call, as all programs share most of the code of virt-launcher, which needs C.
	err := goBuild{dir: p.source("kubevirt"), out: bin, packages: packages, ldflags: kubeVirtVersionFlags(), cgo: true}.run(ctx, h, log)
	if err != nil {
		return err
	}
	module, err := moduleDir(ctx, p.source("kubevirt"), kubeVirtModule, "")
	if err != nil {
		return err
	}
	// It runs in a guest's own image, which may lack a C library.
	h.Detail("container-disk")
	err = run.Logged(ctx, log, run.Command{
		Name: "gcc", Args: []string{"-O2", "-s", "-static", "-o", bin + "container-disk", filepath.Join(module, "cmd", "container-disk-v2alpha", "main.c")},
	})
	if err != nil {
		return err
	}
	launcher := filepath.Join(module, "cmd", "virt-launcher")
	err = copyFiles(dir, []file{
		{filepath.Join(launcher, "qemu.conf"), "libvirt/qemu.conf", 0o644},
		{filepath.Join(launcher, "virtqemud.conf"), "libvirt/virtqemud.conf", 0o644},
		{filepath.Join(launcher, "qemu"), "libvirt/hooks/qemu", 0o755},
		{filepath.Join(launcher, "nsswitch.conf"), "nsswitch.conf", 0o644},
	})
	if err != nil {
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

// kubeVirtContext links the programs, which are large, and copies our additions.
func (p Products) kubeVirtContext(programs, dir string) error {
	err := filepath.WalkDir(programs, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(programs, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(dir, name), 0o755)
		}
		return os.Link(path, filepath.Join(dir, name))
	})
	if err != nil {
		return err
	}
	return copyFiles(dir, []file{
		{p.source("kubevirt", "control.Dockerfile"), "control.Dockerfile", 0o644},
		{p.source("kubevirt", "node.Dockerfile"), "node.Dockerfile", 0o644},
		{p.source("kubevirt", "scripts", "virtqemud"), "scripts/virtqemud", 0o755},
		{p.source("kubevirt", "scripts", "kvm-works"), "scripts/kvm-works", 0o755},
		{p.source("kubevirt", "scripts", "node-labeller.sh"), "scripts/node-labeller.sh", 0o755},
	})
}

// file is a file to copy, and its path below a folder.
type file struct {
	from, to string
	mode     os.FileMode
}

func copyFiles(dir string, files []file) error {
	for _, f := range files {
		text, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, f.to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// kubeVirtManifest writes the output of the generator, our program with KubeVirt's own.
func kubeVirtManifest(ctx context.Context, generator, to string) error {
	defer os.Remove(generator)
	text, err := run.Output(ctx, run.Command{Name: generator, Args: []string{KubeVirtControlImage, KubeVirtNodeImage, kubeVirtVersion}})
	if err != nil {
		return fmt.Errorf("the manifest of KubeVirt's operator: %w", err)
	}
	return os.WriteFile(to, []byte(text), 0o644)
}
