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

// interrupted runs a command and sends it one Ctrl-C once it has taken what feed gives it.
func interrupted(t *testing.T, stdin io.Reader, feed func() error, args ...string) (code int, errs string) {
	t.Helper()
	caught := make(chan os.Signal, 8) // so that the signal does not end the test
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	var out, stderr bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- Main("test", append([]string{"vignette"}, args...), stdin, &out, &stderr) }()
	if err := feed(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-done:
		return code, stderr.String()
	case <-time.After(time.Minute):
		t.Fatal("it goes on after Ctrl-C")
		return 0, ""
	}
}

func TestOneCtrlCEndsWhatLeavesNothingBehind(t *testing.T) {
	stdin, typed := io.Pipe() // of which no end ever comes
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := syscall.Mkfifo(large, 0o600); err != nil {
		t.Fatal(err)
	}
	const object = "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: large}\n" +
		"spec: {format: synthetic, synthetic: {pattern: RandomWaypoint, platforms: 1000, duration: 24h}}\n"
	for _, c := range []struct {
		feed func() error
		args []string
	}{
		{func() error { _, err := io.WriteString(typed, object); return err }, []string{"validate", "-"}},
		{func() error { return os.WriteFile(large, []byte(object), 0o600) }, []string{"scenario", "inspect", large}},
	} {
		if code, errs := interrupted(t, stdin, c.feed, c.args...); code != exitDetached || strings.TrimSpace(errs) != "interrupted" {
			t.Errorf("%q: exit code %d, %q", c.args, code, errs)
		}
	}
}
