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

func TestAGroupHasTheWeightThatItWasGiven(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("control groups can be made by root only")
	}
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	group := fmt.Sprintf("/vignette-cgroupweight-%d", os.Getpid())
	t.Cleanup(func() { _ = Remove(group) })
	if err := h.Create(group); err != nil {
		t.Skipf("this machine's control groups cannot be written: %v", err)
	}
	if err := h.Weigh(group, 25); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{"/sys/fs/cgroup" + group + "/cpu.weight": "25", "/sys/fs/cgroup/*" + group + "/cpu.shares": "256"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if got, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s: %q (error %v), want %s", file, got, err, want)
			}
		}
	}
}

func TestAProcessMovesForProcessorTimeOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("control groups can be made by root only")
	}
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	if h.Unified {
		t.Skip("version 2 control groups cannot be split by controller")
	}
	top := fmt.Sprintf("/vignette-cgroupcpu-%d", os.Getpid())
	t.Cleanup(func() { _ = Remove(top) })
	for _, group := range []string{"/kubepods/pod1/app", "/radio"} {
		if err := h.Create(top + group); err != nil {
			t.Skipf("this machine's control groups cannot be written: %v", err)
		}
	}
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() }()
	if err := h.Enter(top+"/kubepods/pod1/app", sleeper.Process.Pid); err != nil {
		t.Fatal(err)
	}
	containers, err := h.Children(top + "/kubepods/pod1")
	if err != nil || len(containers) != 1 || containers[0] != top+"/kubepods/pod1/app" {
		t.Fatalf("containers %v (error %v), want one", containers, err)
	}
	if ids, err := h.Processes(containers[0]); err != nil || len(ids) != 1 || ids[0] != sleeper.Process.Pid {
		t.Fatalf("processes %v (error %v), want %d", ids, err, sleeper.Process.Pid)
	}
	if err := h.EnterCPU(top+"/radio", sleeper.Process.Pid); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", sleeper.Process.Pid))
	if err != nil || strings.Count(string(text), top+"/radio") != 1 || strings.Count(string(text), top+"/kubepods/pod1/app") != len(h.Mounts)-1 {
		t.Errorf("want it in the group radio of one of %d hierarchies (error %v):\n%s", len(h.Mounts), err, text)
	}
	if ids, err := h.Processes(containers[0]); err != nil || len(ids) != 0 {
		t.Errorf("processes left %v (error %v), want none", ids, err)
	}
}

func TestRemovingWhatIsNotThereIsFine(t *testing.T) {
	if err := Remove("/vignette-never-was"); err != nil {
		t.Error(err)
	}
}
