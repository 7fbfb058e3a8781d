package build

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTheVersionsThatProgramsNameAreThoseOfTheirModuleFiles(t *testing.T) {
	for file, line := range map[string]string{
		"../kubevirt/go.mod": kubeVirtModule + " " + kubeVirtVersion,
		"../argocd/go.mod":   argoCDModule + " " + argoCDVersion,
		"../helm/go.mod":     "helm.sh/helm/v3 " + helmVersion,
	} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), line+"\n") {
			t.Errorf("%s: error %v, or no line %q", file, err, line)
		}
	}
}

func TestKubeVirtIsNotCompiledAnewForAScriptOfItsImages(t *testing.T) {
	source := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "operator/main.go", "control.Dockerfile", "node.Dockerfile", "scripts/kvm-works"} {
		write(t, filepath.Join(source, "kubevirt", name), "", 0o644)
	}
	p := Products{Source: source}
	programs, images := key(t, p.KubeVirtPrograms()), key(t, p.KubeVirt())
	write(t, filepath.Join(source, "kubevirt", "scripts", "kvm-works"), "changed", 0o644)
	if key(t, p.KubeVirtPrograms()) != programs {
		t.Error("the programs are compiled again after a change of a script")
	}
	if key(t, p.KubeVirt()) == images {
		t.Error("the images stay as they are")
	}
	images = key(t, p.KubeVirt())
	write(t, filepath.Join(source, "kubevirt", "go.sum"), "changed", 0o644)
	if key(t, p.KubeVirtPrograms()) == programs || key(t, p.KubeVirt()) == images {
		t.Error("other dependencies change nothing")
	}
}

func TestKubeVirtsImagesCopyOnlyWhatTheProductHas(t *testing.T) {
	programs, dir := t.TempDir(), t.TempDir()
	for _, program := range append([]string{"container-disk"}, kubeVirtPrograms...) {
		write(t, filepath.Join(programs, "bin", filepath.Base(program)), "", 0o755)
	}
	for name, mode := range map[string]os.FileMode{"libvirt/qemu.conf": 0o644, "libvirt/hooks/qemu": 0o755, "nsswitch.conf": 0o644} {
		write(t, filepath.Join(programs, name), "", mode)
	}
	if err := (Products{Source: ".."}).kubeVirtContext(programs, dir); err != nil {
		t.Fatal(err)
	}
	copies := regexp.MustCompile(`(?m)^COPY (.*) \S+$`)
	for _, dockerfile := range []string{"control.Dockerfile", "node.Dockerfile"} {
		text, err := os.ReadFile(filepath.Join(dir, dockerfile))
		if err != nil {
			t.Fatal(err)
		}
		found := copies.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s copies nothing", dockerfile)
		}
		for _, line := range found {
			for source := range strings.FieldsSeq(line[1]) {
				if _, err := os.Stat(filepath.Join(dir, source)); err != nil {
					t.Errorf("%s: %v", dockerfile, err)
				}
			}
		}
	}
	for _, program := range []string{"scripts/virtqemud", "scripts/kvm-works", "scripts/node-labeller.sh", "libvirt/hooks/qemu"} {
		if info, err := os.Stat(filepath.Join(dir, program)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: error %v, or not executable", program, err)
		}
	}
}
