package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/hack/devcluster/store"
)

func startSleeper(t *testing.T) (*exec.Cmd, process) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p, err := describeProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, p
}

func TestOnlyTheVeryProcessThatWasStartedIsKilled(t *testing.T) {
	_, p := startSleeper(t)
	for name, other := range map[string]process{
		"its id was used again":    {PID: p.PID, StartTime: p.StartTime + "1", BootID: p.BootID},
		"the machine has rebooted": {PID: p.PID, StartTime: p.StartTime, BootID: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			if other.alive() {
				t.Error("it counts as the same process")
			}
			if err := other.kill(); err != nil || !p.alive() {
				t.Errorf("error %v, still alive: %v", err, p.alive())
			}
		})
	}
	if err := p.kill(); err != nil || p.alive() {
		t.Errorf("error %v, still alive: %v", err, p.alive())
	}
	if err := p.kill(); err != nil {
		t.Errorf("killing it twice: %v", err)
	}
}

func TestAProgramsNameCannotConfuseItsStartTime(t *testing.T) {
	start, state, err := parseStat("42 (a ) b (c) R 1 " + strings.Repeat("0 ", 17) + "777 9 9")
	if err != nil || start != "777" || state != "R" {
		t.Errorf("start %q, state %q, error %v", start, state, err)
	}
	if _, _, err := parseStat("42 (x) R"); err == nil {
		t.Error("a short line was accepted")
	}
}

func TestNodesTogetherPromiseNoMoreMemoryThanThereIs(t *testing.T) {
	const gib = 1 << 30
	for _, nodes := range []int{1, 3, 8} {
		perNode := 24*gib - reserved(24*gib, nodes)
		if total := perNode * int64(nodes); total > 24*gib-reservedMemory || perNode < minimalNodeSize {
			t.Errorf("%d nodes promise %d bytes each", nodes, perNode)
		}
	}
}

func TestAPodCountsAsReadyOnlyInItsNodesPresentLife(t *testing.T) {
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	since := func(_ string, at time.Time) bool { return !at.Before(began) }
	pod := func(ready bool, started string) string {
		text, err := json.Marshal(ready)
		if err != nil {
			t.Fatal(err)
		}
		return `{"metadata":{},"spec":{"nodeName":"n1"},"status":{"containerStatuses":[{"ready":` + string(text) + `,"state":{"running":{"startedAt":"` + started + `"}}}]}}`
	}
	const before, after = "2026-01-01T11:59:59Z", "2026-01-01T12:00:05Z"
	for name, test := range map[string]struct {
		items string
		want  bool
	}{
		"ready and new":            {pod(true, after), true},
		"what is remembered":       {pod(true, before), false},
		"started, but not ready":   {pod(false, after), false},
		"one of two is remembered": {pod(true, after) + "," + pod(true, before), false},
		"no pod":                   {"", false},
		"only one that is going":   {`{"metadata":{"deletionTimestamp":"` + after + `"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var list pods
			if err := json.Unmarshal([]byte(`{"items":[`+test.items+`]}`), &list); err != nil {
				t.Fatal(err)
			}
			if got := list.ready(since); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestOurManifestsAreFilledIn(t *testing.T) {
	c, err := Open(store.Home(t.TempDir()), "x", "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.ownManifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`clusterIP: "10.130.0.10"`, "kind: StorageClass", "is-default-class", "devcluster:multus"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(text, "{{") {
		t.Error("something is not filled in")
	}
}

func TestAClustersNameCannotLeaveItsFolder(t *testing.T) {
	for _, name := range []string{"", "..", "a/b", ".x", "A", "-a", "a-", strings.Repeat("a", 33)} {
		if _, err := Open(store.Home(t.TempDir()), name, ""); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestAClusterThatNeverWasCannotBeEntered(t *testing.T) {
	c, err := Open(store.Home(t.TempDir()), "x", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Enter(1); err == nil {
		t.Error("no error")
	}
	if entries, err := os.ReadDir(string(c.Home)); err != nil || len(entries) > 0 {
		t.Errorf("looking wrote %v (error %v)", entries, err)
	}
}
