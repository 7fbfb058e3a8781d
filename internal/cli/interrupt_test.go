package cli

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// interrupted runs a command and sends it one Ctrl-C once it is at work.
func interrupted(t *testing.T, args ...string) (code int, errs string) {
	t.Helper()
	caught := make(chan os.Signal, 8) // so that the signal does not end the test
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	stdin, _ := io.Pipe() // nothing ever comes
	var out, stderr bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- Main("test", append([]string{"vignette"}, args...), stdin, &out, &stderr) }()
	time.Sleep(300 * time.Millisecond)
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-done:
		return code, stderr.String()
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on after Ctrl-C")
		return 0, ""
	}
}

func TestOneCtrlCEndsWhatLeavesNothingBehind(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	const object = "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: large}\n" +
		"spec: {format: synthetic, synthetic: {pattern: RandomWaypoint, platforms: 1000, duration: 24h}}\n"
	if err := os.WriteFile(large, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", "-"}, {"scenario", "inspect", large}} {
		if code, errs := interrupted(t, args...); code != exitDetached || strings.TrimSpace(errs) != "interrupted" {
			t.Errorf("%q: exit code %d, %q", args, code, errs)
		}
	}
}
