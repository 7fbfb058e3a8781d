package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// process in a made-up proc, with a control group and a namespace.
func process(t *testing.T, proc string, pid int, group, namespace string) {
	t.Helper()
	folder := filepath.Join(proc, fmt.Sprint(pid))
	if err := os.MkdirAll(filepath.Join(folder, "ns"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "cgroup"), []byte(group), 0o600), os.Symlink(namespace, filepath.Join(folder, "ns", "net"))); err != nil {
		t.Fatal(err)
	}
}

func TestAPodsNamespaceIsFoundByTheKubeletsControlGroupAlone(t *testing.T) {
	const uid = "0e3a0000-1111-2222-3333-444444444444"
	underscored := strings.ReplaceAll(uid, "-", "_")
	// Any other namespace file will do for the pod's.
	const pods, hosts = "/proc/self/ns/uts", "/proc/self/ns/net"
	for name, c := range map[string]struct {
		group, namespace string
		found            bool
	}{
		"cgroupfs, version 1":         {"3:cpu:/kubepods/besteffort/pod" + uid + "/12ab\n1:name=systemd:/\n", pods, true},
		"cgroupfs, version 2":         {"0::/kubepods/pod" + uid + "/12ab\n", pods, true},
		"systemd":                     {"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + underscored + ".slice/cri-containerd-12ab.scope\n", pods, true},
		"seen from another root":      {"0::/../../kubepods-pod" + underscored + ".slice/cri-containerd-12ab.scope\n", pods, true},
		"another pod":                 {"0::/kubepods/podffffffff-1111-2222-3333-444444444444/12ab\n", pods, false},
		"a name that has it in it":    {"0::/kubepods/mypod" + uid + "/12ab\n", pods, false},
		"a process not yet moved in":  {"0::/kubepods/pod" + uid + "/12ab\n", hosts, false},
		"a process of nobody's group": {"0::/\n", pods, false},
	} {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			process(t, proc, 42, c.group, c.namespace)
			file, err := Finder{Proc: proc}.OfPod(uid)
			if found := err == nil; found != c.found || !found && !errors.Is(err, ErrGone) {
				t.Errorf("found: %v (%v), want %v", found, err, c.found)
			}
			if file != nil {
				_ = file.Close()
			}
		})
	}
}
