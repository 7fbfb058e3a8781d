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

func TestKubeVirtsImagesCopyOnlyWhatTheProductHas(t *testing.T) {
	module, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"qemu.conf", "virtqemud.conf", "qemu", "nsswitch.conf"} {
		write(t, filepath.Join(module, "cmd", "virt-launcher", name), name, 0o644)
	}
	if err := (Products{Source: ".."}).kubeVirtFiles(module, dir); err != nil {
		t.Fatal(err)
	}
	for _, program := range append([]string{"container-disk"}, kubeVirtPrograms...) {
		write(t, filepath.Join(dir, "bin", filepath.Base(program)), "", 0o755)
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
