//go:build guest

// Package guest boots the image for virtual machines in QEMU, without acceleration, and holds it against the real server. `make test-guest`
// runs it with the disks of the images in the folder VIGNETTE_GUEST_DISKS.
package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/gpsd/gpsdtest"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	runUID = "run-1"
	// host is this machine as QEMU's own network shows it to the guest.
	host = "10.0.2.2"
	// bootTime is how long a machine that is busy with other things may take; what an idle one takes is printed.
	bootTime = 5 * time.Minute
	// behind is the guest's clock when it is switched on.
	behind = 7 * time.Minute
)

// TestAVirtualMachineIsANode from power on to power off.
func TestAVirtualMachineIsANode(t *testing.T) {
	disks := disksFor(t, "mke2fs")
	b := newBed(t, runapi.PlannedApp{Name: "probe", Kind: "image", Instances: []string{"veh-1/probe"}}, runapi.PlannedApp{Name: "tool", Kind: "traffic", Instances: []string{"veh-1/tool"}})
	b.config = b.guest()
	m := b.start(disks)
	ready := b.waitForAgents(m, runapi.AgentReady)
	t.Logf("agents ready %.1f s after power on; QEMU had used %.1f s of processor time", time.Since(m.began).Seconds(), m.processorTime().Seconds())
	b.checkClock(ready)
	if text, _ := os.ReadFile(m.console()); !strings.Contains(string(text), "routing protocol=olsrv2") {
		t.Errorf("no word of routing by olsrv2\n%s", m.consoleEnd())
	}

	due := b.startApps()
	b.checkStart(m, due, ready[0].Clock)
	b.waitForLog(m, "probe", "stdout-1.log", "all seen\n")
	b.checkProbe()
	b.waitForLog(m, "probe", "stdout-1.log", gpsdtest.End)
	gpsdtest.CheckNorthward(t, b.log("probe", "stdout-1.log"), *b.plan.T0)
	b.waitForLog(m, "tool", "stderr-1.log", "traffic")

	m.powerButton()
	b.waitForAgents(m, runapi.AgentDone)
	m.waitForEnd(time.Minute)
	if log := b.log("probe", "agent.jsonl"); !strings.Contains(log, `"event":"finished"`) {
		t.Errorf("the agent's log does not end as it should when the machine is switched off:\n%s", log)
	}
}

// disksFor gives the folder of the disks, where what boots them is there too.
func disksFor(t *testing.T, programs ...string) string {
	t.Helper()
	disks := os.Getenv("VIGNETTE_GUEST_DISKS")
	if disks == "" {
		t.Skip("VIGNETTE_GUEST_DISKS is empty: want the folder with guest.qcow2, debian.qcow2 and tools.img, which make test-guest makes")
	}
	for _, program := range append(programs, "qemu-system-x86_64", "qemu-img") {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (hack/test-packages guest)", program)
		}
	}
	return disks
}

// bed is the server with one run of one node.
type bed struct {
	t      *testing.T
	dir    string
	http   *httptest.Server
	plan   runapi.Plan
	client *client.Client
	config guestconfig.Config

	mu     sync.Mutex
	marked time.Time // when the probe asked for /mark
}

// people are the operator and the node's launcher.
type people struct{}

func (people) Authenticate(_ context.Context, token string) (server.Identity, error) {
	switch token {
	case "operator":
		return server.Identity{Username: "operator"}, nil
	case "node":
		return server.Identity{Username: "system:serviceaccount:team:default", PodUID: "launcher-1"}, nil
	}
	return server.Identity{}, server.ErrBadToken
}

func newBed(t *testing.T, apps ...runapi.PlannedApp) *bed {
	b := &bed{t: t, dir: t.TempDir()}
	archive := filepath.Join(b.dir, "archive")
	if err := os.Mkdir(archive, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Dir: archive, Authenticator: people{}, Policy: server.Policy{OperatorUser: "operator"},
		LongPoll: 5 * time.Second, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	b.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mark" {
			b.mu.Lock()
			b.marked = time.Now()
			b.mu.Unlock()
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { b.http.CloseClientConnections(); b.http.Close(); _ = s.Close() })
	b.client = client.New(b.http.URL, nil, func() (string, error) { return "operator", nil })
	digest, scenario := gpsdtest.Northward(t)
	if err := b.client.PutScenario(t.Context(), digest, bytes.NewReader(scenario)); err != nil {
		t.Fatal(err)
	}
	platform := int32(3)
	b.plan = runapi.Plan{Namespace: "team", Name: "vm", UID: runUID, Phase: "Provisioning", Scenario: &runapi.PlannedScenario{Name: "north", Digest: digest},
		Nodes: []runapi.PlannedNode{{Name: "veh-1", Group: "veh", NEM: 1, PodUID: "launcher-1", Platform: &platform, Apps: apps}}}
	b.put(func(*runapi.Plan) {})
	return b
}

// startApps sets T0, and has every app start 4 s after it.
func (b *bed) startApps() (due time.Time) {
	t0 := time.Now().Add(3 * time.Second).Truncate(time.Millisecond)
	due = t0.Add(4 * time.Second)
	b.put(func(p *runapi.Plan) {
		p.T0, p.ArmedVersion = &t0, 1
		for _, app := range p.Nodes[0].Apps {
			p.Armed = append(p.Armed, runapi.Action{ID: "start-" + app.Name, AtNanoseconds: due.Sub(t0).Nanoseconds(), Verb: runapi.VerbStart,
				Targets: []runapi.Target{{Node: "veh-1", App: app.Name}}})
		}
	})
	return due
}

func (b *bed) port() string {
	_, port, _ := net.SplitHostPort(b.http.Listener.Addr().String())
	return port
}

func (b *bed) put(change func(p *runapi.Plan)) {
	b.t.Helper()
	change(&b.plan)
	if _, err := b.client.PutPlan(b.t.Context(), b.plan); err != nil {
		b.t.Fatal(err)
	}
}

// probe tells what an app sees.
const probe = `exec 3<>/dev/tcp/%s/%s; printf 'GET /mark HTTP/1.0\r\n\r\n' >&3; exec 3>&-
echo "user $(id -u) group $(id -g)"; grep CapBnd /proc/self/status; grep NoNewPrivs /proc/self/status
echo "host $(hostname)"; echo "peer $(getent hosts hq | tr -s ' ')"; ip -o -4 addr show vhf; ip link show vhf
echo "group route $(ip route get 239.1.1.1)"; echo "static $(ip route get 198.18.77.1)"
timeout 3 bash -c '</dev/tcp/%s/9' 2>/dev/null; echo "elsewhere $?"
echo "file $(cat /etc/probe/config)"; cat /vignette/security/ca.crt; echo "env $WHO"; ls /vignette/token
for other in /run/vignette/config/guest.json /var/lib/vignette/run-1/tool/token/token; do cat $other >/dev/null 2>&1 && echo "read $other"; done
touch /tmp/x && echo "tmp is ours"; echo "processes $(ls -d /proc/[0-9]* | wc -l)"; echo "all seen"
` + gpsdtest.Script

func (b *bed) guest() guestconfig.Config {
	url := "http://" + net.JoinHostPort(host, b.port())
	agent := func(app string, command ...string) agentconfig.Config {
		return agentconfig.Config{Server: url, RunUID: runUID, Node: "veh-1", App: app, StopGraceSeconds: 1,
			Position:  &agentconfig.Position{Platform: 3, File: app == "probe", Log: app == "probe"},
			Instances: []agentconfig.Instance{{Name: "veh-1/" + app, Command: command}}}
	}
	return guestconfig.Config{
		Node: "veh-1", Server: url, RunUID: runUID,
		Interfaces: []guestconfig.Interface{{Name: "vhf", MAC: "02:02:00:00:00:01", Address: "198.18.9.1/24", MTU: 1400, Primary: true,
			Routing: &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2}, Routes: []v1alpha1.MemberRoute{{To: "198.18.77.0/24", Via: "198.18.9.2"}}}},
		Hosts: []guestconfig.Host{{Address: "198.18.9.1", Names: []string{"veh-1"}}, {Address: "198.18.9.2", Names: []string{"hq"}}},
		Apps: []guestconfig.App{
			{Agent: agent("probe", "/bin/bash", "-c", fmt.Sprintf(probe, host, b.port(), host)), Env: map[string]string{"WHO": "vera"}, Files: []guestconfig.File{
				{Path: "/etc/probe/config", Content: []byte("given")}, {Path: "/vignette/security/ca.crt", Content: []byte("certificate\n")}}},
			{Agent: agent("tool", "/traffic", "--help"), Tools: guestconfig.ToolsTraffic},
		},
	}
}

// checkClock: it was set, and is known well enough.
func (b *bed) checkClock(agents []runapi.AgentState) {
	for _, a := range agents {
		c := a.Clock
		if c == nil {
			b.t.Fatalf("agent %s reports no clock", a.App)
		}
		b.t.Logf("clock set by %.3f s; then off by %.6f s, known within %.6f s", c.SetSeconds, c.OffsetSeconds, c.UncertaintySeconds)
		if set := time.Duration(c.SetSeconds * 1e9); set < behind-time.Minute || set > behind+time.Minute {
			b.t.Errorf("the clock was set by %v; want about %v, which it was behind", set, behind)
		}
		if c.UncertaintySeconds <= 0 || c.UncertaintySeconds > 1 || c.OffsetSeconds > c.UncertaintySeconds+1 || c.OffsetSeconds < -c.UncertaintySeconds-1 {
			b.t.Errorf("%+v; want an offset that is small and known", *c)
		}
	}
}

// checkStart by this machine's clock: never earlier than the guest's clock is known, and in time but for what a busy machine does.
func (b *bed) checkStart(m *machine, due time.Time, c *runapi.AgentClock) {
	var marked time.Time
	m.wait("the probe's mark", time.Minute, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		marked = b.marked
		return !marked.IsZero()
	})
	late := marked.Sub(due)
	b.t.Logf("the app spoke %v after its planned start, by this machine's clock", late)
	if bound := time.Duration((c.WorstUncertaintySeconds + c.WorstOffsetSeconds) * 1e9); late < -bound {
		b.t.Errorf("it was %v early; the guest's clock is said to be known within %v", -late, bound)
	}
	if late > 10*time.Second {
		b.t.Errorf("it was %v late", late)
	}
}

func (b *bed) checkProbe() {
	seen := b.log("probe", "stdout-1.log")
	b.t.Logf("the probe:\n%s", seen)
	for _, want := range []string{"user 65532 group 65532\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n", "host veh-1\n", "peer 198.18.9.2 hq\n",
		"inet 198.18.9.1/24", "mtu 1400", "group route multicast 239.1.1.1 dev vhf", "static 198.18.77.1 via 198.18.9.2 dev vhf", "file given\n", "certificate\n",
		"env vera\n", "token\n", "tmp is ours\n"} {
		if !strings.Contains(seen, want) {
			b.t.Errorf("the probe did not see %q", want)
		}
	}
	if strings.Contains(seen, "read /") {
		b.t.Error("the app read what is another's")
	}
	if strings.Contains(seen, "elsewhere 0") {
		b.t.Error("the app reached another port of this machine than the server's")
	}
}

func (b *bed) log(app, file string) string {
	text, err := os.ReadFile(b.path(app, file))
	if err != nil {
		return ""
	}
	return string(text)
}

func (b *bed) path(app, file string) string {
	found, _ := filepath.Glob(filepath.Join(b.dir, "archive", "*", "*", "*", "logs", "veh-1", app, file))
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

func (b *bed) waitForLog(m *machine, app, file, want string) {
	m.wait(file+" of "+app+" with "+strconv.Quote(want), bootTime, func() bool { return strings.Contains(b.log(app, file), want) })
}

func (b *bed) waitForAgents(m *machine, phase runapi.AgentPhase) (agents []runapi.AgentState) {
	m.wait(fmt.Sprintf("two agents that are %s", phase), bootTime, func() bool {
		state, err := b.client.State(context.Background(), runUID)
		if err != nil {
			return false
		}
		agents = state.Agents
		count := 0
		for _, a := range agents {
			if a.Phase == runapi.AgentFailed {
				b.t.Fatalf("agent %s failed: %s\n%s", a.App, a.Message, m.consoleEnd())
			}
			if a.Phase == phase {
				count++
			}
		}
		return count == 2
	})
	return agents
}

// machine is a QEMU.
type machine struct {
	t       *testing.T
	dir     string
	began   time.Time
	process *exec.Cmd
	ended   chan struct{}
	// ssh is the port of this machine that leads to the guest's server for SSH.
	ssh int
}

// start switches a machine on.
func (b *bed) start(disks string) *machine {
	m := b.newMachine()
	text, err := guestconfig.Encode(b.config)
	m.do(err)
	folder := filepath.Join(b.dir, "config")
	m.do(os.Mkdir(folder, 0o700))
	m.do(os.WriteFile(filepath.Join(folder, guestconfig.ConfigFile), text, 0o600))
	m.do(os.WriteFile(filepath.Join(folder, guestconfig.TokenFile), []byte("node"), 0o600))
	config, root := filepath.Join(b.dir, "config.img"), filepath.Join(b.dir, "root.qcow2")
	m.run("mke2fs", "-q", "-t", "ext4", "-L", guestconfig.ConfigLabel, "-d", folder, config, "4M")
	m.run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", filepath.Join(disks, "guest.qcow2"), root)
	m.switchOn("-m", "256",
		"-drive", "if=virtio,file="+root, "-drive", "if=virtio,format=raw,readonly=on,file="+config,
		"-drive", "if=virtio,format=raw,readonly=on,file="+filepath.Join(disks, "tools.img"),
		"-netdev", "user,id=radio,restrict=on", "-device", "virtio-net-pci,netdev=radio,mac=02:02:00:00:00:01,romfile=",
		"-netdev", "user,id=management", "-device", "virtio-net-pci,netdev=management,mac=52:54:00:00:00:01,romfile=")
	return m
}

func (b *bed) newMachine() *machine { return &machine{t: b.t, dir: b.dir, ended: make(chan struct{})} }

// switchOn starts QEMU with what is this machine's, beside what all have.
func (m *machine) switchOn(devices ...string) {
	m.process = exec.Command("qemu-system-x86_64", append([]string{"-accel", "tcg", "-cpu", "max", "-display", "none", "-no-reboot",
		"-serial", "file:" + m.console(), "-qmp", "unix:" + m.socket() + ",server=on,wait=off",
		"-rtc", "base=" + time.Now().Add(-behind).UTC().Format("2006-01-02T15:04:05")}, devices...)...)
	m.process.Stderr = os.Stderr
	m.began = time.Now()
	m.do(m.process.Start())
	go func() { _ = m.process.Wait(); close(m.ended) }()
	m.t.Cleanup(func() { _ = m.process.Process.Kill(); <-m.ended })
}

func (m *machine) console() string { return filepath.Join(m.dir, "console.log") }
func (m *machine) socket() string  { return filepath.Join(m.dir, "qmp") }

func (m *machine) do(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) run(program string, arguments ...string) {
	m.t.Helper()
	if out, err := exec.Command(program, arguments...).CombinedOutput(); err != nil {
		m.t.Fatalf("%s: %v: %s", program, err, out)
	}
}

func (m *machine) wait(what string, limit time.Duration, there func() bool) {
	m.t.Helper()
	for end := time.Now().Add(limit); !there(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("waited %v for %s\n%s", limit, what, m.consoleEnd())
		}
	}
}

// consoleEnd are the console's last lines.
func (m *machine) consoleEnd() string {
	text, _ := os.ReadFile(m.console())
	lines := strings.Split(string(text), "\n")
	return "the console's end:\n" + strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// processorTime that QEMU has used (proc(5), stat).
func (m *machine) processorTime() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.process.Process.Pid))
	m.do(err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		m.do(err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// powerButton presses it (QEMU's QMP, system_powerdown).
func (m *machine) powerButton() {
	connection, err := net.Dial("unix", m.socket())
	m.do(err)
	defer connection.Close()
	answers := json.NewDecoder(connection)
	for _, command := range []string{"", "qmp_capabilities", "system_powerdown"} {
		if command != "" {
			_, err := fmt.Fprintf(connection, `{"execute": %q}`, command)
			m.do(err)
		}
		var answer map[string]any
		m.do(answers.Decode(&answer))
	}
}

func (m *machine) waitForEnd(limit time.Duration) {
	select {
	case <-m.ended:
	case <-time.After(limit):
		m.t.Errorf("the machine is not off %v after its agents had ended\n%s", limit, m.consoleEnd())
	}
}
