//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// commandTimeout is for a command that does not wait for the experiment.
const commandTimeout = 90 * time.Second

// buildVignette builds the command line as users have it.
var buildVignette = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "vignette-e2e-")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(folder, "vignette")
	text, err := exec.Command("go", "build", "-o", binary, "../../cmd/vignette").CombinedOutput()
	if err != nil {
		return "", errors.Join(err, errors.New(string(text)))
	}
	return binary, nil
})

// call is a running vignette command.
type call struct {
	*exec.Cmd
	out, err syncbuffer.Buffer
}

func start(t *testing.T, namespace, stdin string, args ...string) *call {
	t.Helper()
	binary, err := buildVignette()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	t.Cleanup(cancel)
	c := &call{Cmd: exec.CommandContext(ctx, binary, append([]string{"-n", namespace, "--platform-namespace", platformNamespace}, args...)...)}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &c.out, &c.err
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// vignette runs a command to its end and returns its output, error output and exit code.
func vignette(t *testing.T, namespace, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	c := start(t, namespace, stdin, args...)
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case err := <-done:
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatalf("vignette %v: %v", args, err)
		}
	case <-time.After(commandTimeout):
		_ = c.Process.Kill()
		t.Fatalf("vignette %v did not end within %v:\n%s%s", args, commandTimeout, c.out.String(), c.err.String())
	}
	return c.out.String(), c.err.String(), c.ProcessState.ExitCode()
}

func mustVignette(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	out, errs, code := vignette(t, namespace, "", args...)
	if code != 0 {
		t.Fatalf("vignette %v: exit code %d: %s%s", args, code, out, errs)
	}
	return out
}

// interrupt ends a command like Ctrl-C, and returns its exit code.
func (c *call) interrupt(t *testing.T) int {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the exit code shows the result
	return c.ProcessState.ExitCode()
}

// connectTimeNanoseconds is how long a vehicle takes to connect to the broker over the radio: at least twice the link's delay.
const connectTimeNanoseconds = `s=$(date +%s%N); exec 3<>/dev/tcp/hq/1883 && e=$(date +%s%N) && echo $((e - s))`

// TestLiveClusterByHand uses a live cluster as a laboratory does, with its commands.
func TestLiveClusterByHand(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	e := pair(namespace, "by-hand").Duration("").
		Image("ticker", mosquittoImage(t), "/bin/sh", "-c", "i=0; while :; do i=$((i + 1)); echo tick $i; sleep 0.5; done").Obj()
	e.Spec.Nodes[1].Apps = append(e.Spec.Nodes[1].Apps, "ticker")
	e.Spec.Timeline = e.Spec.Timeline[:1]
	mustCreate(t, e)
	waitForT0(t, e, time.Second)
	waitFor(t, e, startTimeout, v1alpha1.PhaseRunning)

	t.Run("shell", func(t *testing.T) { shellWorks(t, namespace) })
	t.Run("logs", func(t *testing.T) { logsAreFollowed(t, namespace) })
	var captured string
	t.Run("capture", func(t *testing.T) { captured = captureIsReadable(t, namespace) })
	t.Run("set", func(t *testing.T) { delayChanges(t, namespace) })
	t.Run("status", func(t *testing.T) {
		if out := mustVignette(t, namespace, "status", "by-hand"); !strings.Contains(out, "up until vignette stop") {
			t.Errorf("status of a live cluster:\n%s", out)
		}
	})
	followed := start(t, namespace, "", "logs", "veh/ticker", "--follow", "--tail", "1")
	mustVignette(t, namespace, "stop", "by-hand")
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	if err := followed.Wait(); err != nil {
		t.Errorf("logs --follow at the end of the run: %v: %s; want that it ends by itself", err, followed.err.String())
	}
	results := resultsOf(t, done.UID)
	if results.Messages.Received == 0 || results.Messages.Sent == 0 {
		t.Errorf("results of a stopped live cluster: %+v; want messages", results.Messages)
	}
	if changes := stateOf(t, done.UID).Plan.LiveChanges; len(changes) != 1 {
		t.Errorf("live changes on record: %+v; want the one that was made", changes)
	}
	if got := mustVignette(t, namespace, "results", "by-hand", "--files"); !strings.Contains(got, "captures/by-hand-") {
		t.Errorf("files of the run:\n%s\nwant the capture among them", got)
	}
	if path := archivedCapture(t, done); path != "" && mustVignette(t, namespace, "results", "by-hand", "--get", path) != captured {
		t.Error("the archived capture is not what was streamed")
	}
	if out := mustVignette(t, namespace, "logs", "-e", "by-hand", "veh/ticker", "--tail", "1"); !strings.HasPrefix(out, "tick ") {
		t.Errorf("logs after the end: %q", out)
	}
}

func archivedCapture(t *testing.T, e *v1alpha1.Experiment) string {
	t.Helper()
	for _, file := range manifestOf(t, e.UID).Files {
		if strings.HasPrefix(file.Path, "captures/by-hand-") {
			return file.Path
		}
	}
	t.Error("the archive has no capture")
	return ""
}

func shellWorks(t *testing.T, namespace string) {
	out := mustVignette(t, namespace, "shell", "veh", "--", "cat", "/etc/hosts")
	if !strings.Contains(out, "198.18.9.1") || !strings.Contains(out, "hq") {
		t.Errorf("/etc/hosts of veh:\n%s\nwant the radio address of hq", out)
	}
	if out := mustVignette(t, namespace, "shell", "hq", "--", "getent", "hosts", "hq"); !strings.HasPrefix(out, "198.18.9.1 ") {
		t.Errorf("hq on hq: %q; want its radio address first", out)
	}
	if out := mustVignette(t, namespace, "shell", "--toolbox", "veh", "--", "ping", "-c", "1", "hq.wan"); !strings.Contains(out, "198.18.9.1") || !strings.Contains(out, " 0% packet loss") {
		t.Errorf("ping in the toolbox:\n%s\nwant an answer of hq's radio", out)
	}
	if out, errs, code := vignette(t, namespace, "through a pipe\n", "shell", "hq", "--", "cat"); out != "through a pipe\n" || code != 0 {
		t.Errorf("cat in a pipe: %q, %q, exit code %d", out, errs, code)
	}
	if _, _, code := vignette(t, namespace, "", "shell", "hq", "--", "/bin/sh", "-c", "exit 42"); code != 42 {
		t.Errorf("exit code %d; want the command's 42", code)
	}
	if out, errs, code := vignette(t, namespace, "echo from a shell; exit 3\n", "shell", "hq"); out != "from a shell\n" || code != 3 {
		t.Errorf("a shell that reads a pipe: %q, %q, exit code %d", out, errs, code)
	}
	if _, errs, code := vignette(t, namespace, "", "shell", "veh", "--app", "bft"); code != 1 || !strings.Contains(errs, "image of app bft has no shell") {
		t.Errorf("a shell where there is none: exit code %d, %s", code, errs)
	}
}

func logsAreFollowed(t *testing.T, namespace string) {
	c := start(t, namespace, "", "logs", "veh/ticker", "--follow")
	eventually(t, commandTimeout, "the next tick", func() error {
		if lines := strings.Count(c.out.String(), "tick "); lines < 4 {
			return errorf("%d lines so far: %s", lines, c.err.String())
		}
		return nil
	})
	before := strings.Count(c.out.String(), "\n")
	eventually(t, commandTimeout, "more ticks", func() error {
		if now := strings.Count(c.out.String(), "\n"); now < before+4 {
			return errorf("%d lines, %d before", now, before)
		}
		return nil
	})
	if code := c.interrupt(t); code != 130 {
		t.Errorf("exit code %d after Ctrl-C; want 130: %s", code, c.err.String())
	}
	for i, line := range strings.Split(strings.TrimSpace(c.out.String()), "\n") {
		if line != "tick "+strconv.Itoa(i+1) {
			t.Fatalf("line %d is %q; want every tick once and in order", i+1, line)
		}
	}
	eventually(t, commandTimeout, "message events of the publisher", func() error {
		out, errs, _ := vignette(t, namespace, "", "logs", "veh/bft", "--stream", "messages", "--since", "1m")
		if !strings.Contains(out, `"status":"sent"`) {
			return errorf("%q, %q", out, errs)
		}
		return nil
	})
}

// captureIsReadable returns the captured packets.
func captureIsReadable(t *testing.T, namespace string) string {
	c := start(t, namespace, "", "capture", "hq", "wan", "-w", "-", "--filter", "tcp port 1883")
	frames := func() uint64 {
		var whole pcapng.BlockScanner
		_, err := whole.Write([]byte(c.out.String()))
		if err != nil {
			t.Fatalf("the stream is no capture: %v", err)
		}
		return whole.Frames
	}
	eventually(t, commandTimeout, "frames while the capture runs", func() error {
		if n := frames(); n < 4 {
			return errorf("%d frames so far: %s", n, c.err.String())
		}
		return nil
	})
	if code := c.interrupt(t); code != 0 {
		t.Errorf("exit code %d after Ctrl-C; want 0: %s", code, c.err.String())
	}
	t.Logf("capture: %s", c.err.String())
	if !strings.Contains(c.err.String(), " 0 dropped") {
		t.Errorf("last words %q; want how many frames were dropped", c.err.String())
	}
	if tcpdump, err := exec.LookPath("tcpdump"); err == nil {
		read := exec.Command(tcpdump, "-n", "-r", "-")
		read.Stdin = strings.NewReader(c.out.String())
		text, err := read.Output()
		if lines := uint64(bytes.Count(text, []byte("\n"))); err != nil || lines != frames() || !bytes.Contains(text, []byte("198.18.9.1.1883")) {
			t.Errorf("tcpdump reads %d of %d frames, %v:\n%s", lines, frames(), err, text)
		}
	}
	return c.out.String()
}

func delayChanges(t *testing.T, namespace string) {
	const delay = 400 * time.Millisecond
	connect := func() time.Duration {
		out := mustVignette(t, namespace, "shell", "veh", "--", "/bin/bash", "-c", connectTimeNanoseconds)
		n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		if err != nil {
			t.Fatalf("connect: %q", out)
		}
		return time.Duration(n)
	}
	eventually(t, commandTimeout, "a fast connection", func() error { // a busy machine may delay any single one
		if took := connect(); took >= 2*delay {
			return errorf("it took %v", took)
		}
		return nil
	})
	out := mustVignette(t, namespace, "set", "wan", "delay=400ms")
	if !strings.HasPrefix(out, "wan: delay=400ms holds from ") || !strings.Contains(out, "T0 + ") {
		t.Errorf("set says %q; want from when on the change holds", out)
	}
	time.Sleep(2 * time.Second) // the change is announced a moment ahead
	if took := connect(); took < 2*delay {
		t.Errorf("connecting takes %v with a delay of %v each way; want %v at least", took, delay, 2*delay)
	} else {
		t.Logf("connecting takes %v with a delay of %v each way", took, delay)
	}
	if out := mustVignette(t, namespace, "set", "wan"); !strings.Contains(out, "by hand") || !strings.Contains(out, "delay=400ms") {
		t.Errorf("set without keys:\n%s\nwant the change", out)
	}
}
