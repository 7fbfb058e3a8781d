// Package ownapp holds the example programs of docs/how-to/run-own-app.md; this test runs them on the loopback interface.
package ownapp

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testtool"
)

func start(t *testing.T, instance string, env []string, command ...string) (*exec.Cmd, *syncbuffer.Buffer) {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skipf("needs %s", command[0])
	}
	out := &syncbuffer.Buffer{}
	c := exec.Command(command[0], command[1:]...)
	node, _, _ := strings.Cut(instance, "/")
	c.Env = append(append(os.Environ(), "VIGNETTE_INSTANCE="+instance, "VIGNETTE_NODE="+node), env...)
	c.Stdout, c.Stderr = out, out
	c.WaitDelay = 2 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c, out
}

// stop ends a program as the agent does.
func stop(t *testing.T, c *exec.Cmd, out *syncbuffer.Buffer) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%s: %v: %s", c.Path, err, out.String())
	}
}

// records of a log. An event may lack its instance, as the agent fills it in.
func records(t *testing.T, text, instance string) (found []messagelog.Record) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			lines = append(lines, strings.Replace(line, `{"ts"`, fmt.Sprintf(`{"instance":%q,"ts"`, instance), 1))
		}
	}
	bad, err := messagelog.Read(strings.NewReader(strings.Join(lines, "")), func(r messagelog.Record) { found = append(found, r) })
	if bad > 0 || err != nil {
		t.Errorf("%d lines of %s are no message events (%v): %s", bad, instance, err, text)
	}
	return found
}

var waitFor = testtool.Eventually

func freePort(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return strconv.Itoa(c.LocalAddr().(*net.UDPAddr).Port)
}

func TestEveryExampleLogsWhatItSendsAndTheReceiverWhatItGets(t *testing.T) {
	goProgram := filepath.Join(t.TempDir(), "go-reporter")
	if out, err := exec.Command("go", "build", "-o", goProgram, "./go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, c := range map[string]struct {
		command func(port string) []string
		topic   string
	}{
		"python": {func(port string) []string {
			return []string{"python3", "report.py", "send", "127.255.255.255:" + port, "0.05"}
		}, "own/unit/python"},
		"go":    {func(port string) []string { return []string{goProgram, "127.255.255.255:" + port, "50ms"} }, "own/unit/go"},
		"shell": {func(port string) []string { return []string{"bash", "heartbeat.sh", "127.0.0.1", port} }, "beat/unit"},
	} {
		for _, file := range []bool{false, true} {
			if file && name == "shell" {
				continue // it knows standard output only
			}
			t.Run(fmt.Sprintf("%s, file %v", name, file), func(t *testing.T) {
				port, log := freePort(t), filepath.Join(t.TempDir(), "messages")
				env := []string{"PERIOD=0.05"}
				if file {
					env = append(env, messagelog.EnvPath+"="+log)
				}
				receiver, heard := start(t, "hq/receiver", nil, "python3", "report.py", "receive", port)
				waitFor(t, "the receiver", func() bool { return strings.Contains(heard.String(), "listening") })
				sender, said := start(t, "unit/"+name, env, c.command(port)...)
				waitFor(t, "five messages", func() bool { return strings.Count(heard.String(), "received") >= 5 })
				stop(t, sender, said)
				text := said.String()
				if file {
					content, err := os.ReadFile(log)
					if err != nil || text != "" {
						t.Fatalf("%v; printed %q", err, text)
					}
					text = string(content)
				}
				sent := records(t, text, "unit/"+name)
				waitFor(t, "every message", func() bool { return strings.Count(heard.String(), "received") >= len(sent) })
				_ = receiver.Process.Kill()
				received := records(t, heard.String(), "hq/receiver")
				if len(sent) != len(received) {
					t.Fatalf("%d sent and %d received", len(sent), len(received))
				}
				for i := range sent {
					s, r := sent[i], received[i]
					if s.ID != r.ID || s.Topic != c.topic || r.Topic != c.topic || s.Status != messagelog.Sent || r.TimeNanoseconds < s.TimeNanoseconds {
						t.Errorf("sent %+v, received %+v; want one message on topic %s, received after it was sent", s, r, c.topic)
					}
				}
			})
		}
	}
}
