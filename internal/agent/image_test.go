package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/runapi"
)

// An image with nothing in it but the /dev that runtimes give it: no shell, no /etc, no /proc, a read-only
// root, an odd user without any privilege. The app is the agent itself, which can tell how it is used.
func TestTheProgramWorksInAnEmptyImageOfAnyUser(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"unshare", "chroot", "mount", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("needs root for a pid namespace and a read-only root")
	}
	s := newFakeServer(t)
	root := t.TempDir()
	for dir := root; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755) // the odd user has to get there
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(root, "vignette/bin/agent"), "vignette.dev/vignette/images/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, dir := range []string{"log", "run", "token"} {
		path := filepath.Join(root, "vignette", dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "vignette/token/token"), []byte("t"), 0o644); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"server":%q,"runUID":"u","node":"nor","app":"bft","stopGraceSeconds":1,"files":[{"path":"/vignette/run/app.conf","content":"x"}],`+
		`"instances":[{"name":"nor/bft","command":["/vignette/bin/agent","--help"]}]}`, s.URL)
	if err := os.Mkdir(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := `mount --make-rprivate / && mount --bind "$0" "$0" && mount --bind /dev "$0/dev" && mount -o remount,ro,bind "$0" && ` +
		`for d in log run; do mount -t tmpfs -o mode=0777 tmpfs "$0/vignette/$d"; done && exec chroot --userspec=12345:12345 "$0" /vignette/bin/agent run`
	command := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, root)
	command.Env = append(os.Environ(), agentconfig.Env+"="+config)
	command.Stdout, command.Stderr = testWriter{t}, testWriter{t}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	n := &node{t: t, server: s}
	n.waitPhase(runapi.AgentReady)
	s.arm("a1", runapi.VerbStart, 2*time.Second)
	n.waitPhase(runapi.AgentStopped)
	s.finish()
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	if got := s.log("stdout-1.log"); !strings.Contains(got, "agent install DIR") {
		t.Errorf("archived output of the app %q; want the agent's help", got)
	}
	if events := s.event(t, eventNotHeld); len(events) != 0 {
		t.Errorf("events %+v; want the app held ready in this image, too", events)
	}
	if s.lastReport().Phase != runapi.AgentDone {
		t.Errorf("phase %s; want done", s.lastReport().Phase)
	}
}
