package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAGroupHoldsAProcessAndIsRemovedWithAllBelowIt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("control groups can be made by root only")
	}
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	top := fmt.Sprintf("/vignette-cgrouptest-%d", os.Getpid())
	t.Cleanup(func() { _ = Remove(top) })
	for range 2 {
		if err := h.Create(top + "/n1/system"); err != nil {
			t.Skipf("this machine's control groups cannot be written: %v", err)
		}
	}
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Wait() }()
	defer func() { _ = sleeper.Process.Kill() }()
	if err := h.Enter(top+"/n1/system", sleeper.Process.Pid); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", sleeper.Process.Pid))
	if err != nil || strings.Count(string(text), top+"/n1/system") != len(h.Mounts) {
		t.Errorf("want it in %d hierarchies (error %v):\n%s", len(h.Mounts), err, text)
	}
	_ = sleeper.Process.Kill()
	if err := Remove(top); err != nil {
		t.Fatal(err)
	}
	for _, mount := range h.Mounts {
		if _, err := os.Stat(filepath.Join(mount, top)); !os.IsNotExist(err) {
			t.Errorf("%s%s is left (error %v)", mount, top, err)
		}
	}
}

func TestRemovingWhatIsNotThereIsFine(t *testing.T) {
	if err := Remove("/vignette-never-was"); err != nil {
		t.Error(err)
	}
}
