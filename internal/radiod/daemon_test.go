package radiod_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testtool"
)

// programs builds radiod and the plugin once per test run.
var programs = sync.OnceValues(func() (string, error) {
	directory, err := os.MkdirTemp("", "radiod-test-*")
	if err != nil {
		return "", err
	}
	// As `make build` does, whose cache then serves here too.
	command := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", directory, "vignette.dev/vignette/images/radiod", "vignette.dev/vignette/images/radiod/radio")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, output)
	}
	return directory, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if directory, err := programs(); err == nil && directory != "" {
		_ = os.RemoveAll(directory)
	}
	os.Exit(code)
}

// daemon is a radiod whose API server is out of reach. It must then use its state folder.
type daemon struct {
	programs, directory string
	command             *exec.Cmd
	log                 *bytes.Buffer
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	directory, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{programs: directory, directory: t.TempDir(), log: &bytes.Buffer{}}
	d.write(t, "kubeconfig", `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],
		"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`)
	d.write(t, "networks/net-uid.json", `{"metadata":{"namespace":"platform","name":"run-vhf","uid":"net-uid"},"spec":{
		"experiment":{"namespace":"team","name":"exp","uid":"run"},"network":"vhf","mtu":1500,"seed":1,"waveform":{"link":{"delay":"1ms","loss":"0%","limit":1000}},
		"members":[
		{"node":"a","group":"a","nem":1,"mac":"02:02:00:00:00:01","address":"198.18.9.1/24","interface":"vhf","podUID":"pod-a","primary":true},
		{"node":"b","group":"b","nem":2,"mac":"02:02:00:00:00:02","address":"198.18.9.2/24","interface":"vhf","podUID":"pod-b","primary":true}]}}`)
	t.Cleanup(func() {
		d.stop(unix.SIGTERM)
		if t.Failed() {
			t.Logf("radiod's log:\n%s", d.log)
		}
	})
	d.start(t)
	return d
}

func (d *daemon) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(d.directory, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (d *daemon) socket() string { return filepath.Join(d.directory, "radiod.sock") }

func (d *daemon) start(t *testing.T) {
	t.Helper()
	d.command = exec.Command(filepath.Join(d.programs, "radiod"), "--host=host", "--namespace=platform", "--state-dir="+d.directory,
		"--socket="+d.socket(), "--metrics-address=127.0.0.1:0", "--kubeconfig="+filepath.Join(d.directory, "kubeconfig"))
	d.command.Stderr, d.command.Stdout = d.log, d.log
	d.command.WaitDelay = time.Second
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
}

func (d *daemon) stop(signal os.Signal) {
	if d.command == nil {
		return
	}
	_ = d.command.Process.Signal(signal)
	_ = d.command.Wait()
	d.command = nil
}

// child finds the parent's worker or data plane.
func (d *daemon) child(t *testing.T, what string) int {
	t.Helper()
	children := fmt.Sprintf("/proc/%d/task/*/children", d.command.Process.Pid)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		files, _ := filepath.Glob(children)
		for _, file := range files {
			text, _ := os.ReadFile(file)
			for _, pid := range strings.Fields(string(text)) {
				command, _ := os.ReadFile("/proc/" + pid + "/cmdline")
				if arguments := strings.Split(string(command), "\x00"); len(arguments) > 1 && arguments[1] == what {
					n, _ := strconv.Atoi(pid)
					return n
				}
			}
		}
	}
	t.Fatalf("radiod has no %s", what)
	return 0
}

// node is a pod's namespace.
type node struct {
	uid       string
	namespace *os.File
}

func newNode(t *testing.T, uid string) *node {
	t.Helper()
	namespace, err := radiotest.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	return &node{uid, namespace}
}

// cni runs the plugin as Multus does.
func (n *node) cni(d *daemon, command, args string) (result map[string]any, err error) {
	config := fmt.Sprintf(`{"cniVersion":"1.1.0","name":"exp-vhf","type":"radio","network":"vhf","socket":%q}`, d.socket())
	plugin := exec.Command(filepath.Join(d.programs, "radio"))
	plugin.Stdin = strings.NewReader(config)
	plugin.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_CONTAINERID=c-"+n.uid, "CNI_IFNAME=vhf", "CNI_PATH=/opt/cni/bin", "CNI_ARGS="+args,
		fmt.Sprintf("CNI_NETNS=/proc/%d/fd/%d", os.Getpid(), n.namespace.Fd()))
	output, err := plugin.Output()
	_ = json.Unmarshal(output, &result) // empty where there is no result
	if err != nil {
		return result, fmt.Errorf("%v: %v", err, result["msg"])
	}
	return result, nil
}

func (n *node) args() string {
	pod := "K8S_POD_NAMESPACE=team;K8S_POD_NAME=exp-" + n.uid + ";K8S_POD_UID=" + n.uid
	return "IgnoreUnknown=true;" + pod + ";" + strings.ReplaceAll(pod, n.uid, "somebody-else") // the first one counts
}

func (n *node) attach(t *testing.T, d *daemon) {
	t.Helper()
	result, err := n.cni(d, "ADD", n.args())
	if err != nil {
		t.Fatal(err)
	}
	interfaces, ips := fmt.Sprint(result["interfaces"]), fmt.Sprint(result["ips"])
	if !strings.Contains(interfaces, "name:vhf") || !strings.Contains(interfaces, "02:02:00:00:00:0") || !strings.Contains(ips, "198.18.9.") {
		t.Fatalf("result %v; want the interface with its MAC and its address", result)
	}
}

func (n *node) link(t *testing.T) (attributes *netlink.LinkAttrs) {
	t.Helper()
	err := netns.Do(n.namespace, func() error {
		link, err := netlink.LinkByName("vhf")
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return nil
		}
		if err == nil {
			attributes = link.Attrs()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return attributes
}

// traffic sends from one node to another every 5 ms and reports when each datagram arrived.
func traffic(t *testing.T, from, to *node) (arrivals func() []time.Time) {
	t.Helper()
	var in *net.UDPConn
	var out net.Conn
	err := netns.Do(to.namespace, func() (err error) {
		in, err = net.ListenUDP("udp4", &net.UDPAddr{Port: 1883})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := netns.Do(from.namespace, func() (err error) { out, err = net.Dial("udp4", "198.18.9.2:1883"); return err }); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []time.Time
	done := make(chan struct{})
	t.Cleanup(func() { close(done); _, _ = in.Close(), out.Close() })
	go func() {
		buffer := make([]byte, 64)
		for {
			if _, _, err := in.ReadFrom(buffer); err != nil {
				return
			}
			mu.Lock()
			all = append(all, time.Now())
			mu.Unlock()
		}
	}()
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				_, _ = out.Write([]byte("hello")) // fails while the carrier is gone
			}
		}
	}()
	return func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return append([]time.Time(nil), all...)
	}
}

// resumed waits until datagrams arrive after an instant, and returns how long that took.
func resumed(t *testing.T, arrivals func() []time.Time, after time.Time) time.Duration {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, at := range arrivals() {
			if at.After(after) {
				return at.Sub(after)
			}
		}
	}
	t.Fatal("no traffic any more")
	return 0
}

// newTalkingPair is a daemon with two nodes. Datagrams flow from one to the other, and arrivals tells when; the first node is returned.
func newTalkingPair(t *testing.T) (d *daemon, a *node, arrivals func() []time.Time) {
	t.Helper()
	d = newDaemon(t)
	a, b := newNode(t, "pod-a"), newNode(t, "pod-b")
	a.attach(t, d)
	b.attach(t, d)
	arrivals = traffic(t, a, b)
	resumed(t, arrivals, time.Now())
	return d, a, arrivals
}

func TestFramesFlowWhateverBecomesOfTheWorker(t *testing.T) {
	d, a, arrivals := newTalkingPair(t)
	carrier, plane := carrierChanges(t, a), d.child(t, "plane")
	for range 3 {
		worker := d.child(t, "worker")
		if err := unix.Kill(worker, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		resumed(t, arrivals, time.Now().Add(50*time.Millisecond)) // what was under way in the kernel has arrived by then
		if err := unix.Kill(worker, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		resumed(t, arrivals, time.Now().Add(50*time.Millisecond))
		eventually(t, "there is another worker", func() bool { return d.child(t, "worker") != worker })
		if _, err := a.cni(d, "CHECK", a.args()); err != nil {
			t.Errorf("the next worker does not know the attachment: %v", err)
		}
	}
	resumed(t, arrivals, time.Now())
	if now := d.child(t, "plane"); now != plane {
		t.Errorf("data plane %d, then %d; want the same", plane, now)
	}
	if after := carrierChanges(t, a); after != carrier {
		t.Errorf("the carrier changed %s times before, %s after; want no change", carrier, after)
	}
	if gaps := d.gaps(t); len(gaps) > 0 {
		t.Errorf("gaps %+v; want none, as frames went on", gaps)
	}
	if _, err := a.cni(d, "DEL", a.args()); err != nil {
		t.Fatal(err)
	}
	if a.link(t) != nil {
		t.Error("the interface stays, as if the data plane held it")
	}
}

func TestAKilledDataPlaneIsReplacedAndNoCarrierDrops(t *testing.T) {
	d, a, arrivals := newTalkingPair(t)
	carrier := carrierChanges(t, a)
	fastest := time.Hour
	const kills = 5
	for kill := range kills {
		if err := unix.Kill(d.child(t, "plane"), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		// Frames under way in the kernel may still arrive at once.
		took := resumed(t, arrivals, killed.Add(20*time.Millisecond)) + 20*time.Millisecond
		t.Logf("traffic resumed %v after the data plane was killed", took)
		fastest = min(fastest, took)
		eventually(t, "every restart is a gap in the results", func() bool { return len(d.gaps(t)) == kill+1 })
	}
	// A busy machine slows some of them down, not all.
	if fastest > 200*time.Millisecond {
		t.Errorf("of %d restarts the fastest took %v; want 200 ms", kills, fastest)
	}
	if after := carrierChanges(t, a); after != carrier {
		t.Errorf("the carrier changed %s times before, %s after; want no change", carrier, after)
	}
	for _, gap := range d.gaps(t) {
		if gap.Gap != "radiodRestarted" || gap.Node != "" || gap.FromNanoseconds >= gap.ToNanoseconds {
			t.Errorf("gap %+v; want radiodRestarted at all nodes from the last sign of life on", gap)
		}
	}
}

// gaps that the run's log names.
func (d *daemon) gaps(t *testing.T) (gaps []runapi.RadioGap) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.directory, "spool", "run.0.jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var gap runapi.RadioGap
		if err := json.Unmarshal([]byte(line), &gap); err == nil && gap.Gap != "" { // the last line may be half written
			gaps = append(gaps, gap)
		}
	}
	return gaps
}

// carrierChanges as the kernel counts them.
func carrierChanges(t *testing.T, n *node) (count string) {
	t.Helper()
	read := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here, in a mount namespace of its own
		read <- func() error {
			if err := errors.Join(unix.Setns(int(n.namespace.Fd()), unix.CLONE_NEWNET), unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS),
				unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("sysfs", "/sys", "sysfs", 0, "")); err != nil {
				return err
			}
			text, err := os.ReadFile("/sys/class/net/vhf/carrier_changes")
			count = strings.TrimSpace(string(text))
			return err
		}()
	}()
	if err := <-read; err != nil {
		t.Fatal("the kernel's count of carrier changes: ", err)
	}
	return count
}

func TestAKilledParentsTAPsAreAdopted(t *testing.T) {
	d, a, arrivals := newTalkingPair(t)
	before, worker, plane := a.link(t), d.child(t, "worker"), d.child(t, "plane")
	d.stop(unix.SIGKILL)
	eventually(t, "the orphaned processes end", func() bool { return unix.Kill(worker, 0) != nil && unix.Kill(plane, 0) != nil })
	eventually(t, "the carrier drops, as nobody holds the TAP", func() bool { return a.link(t).RawFlags&unix.IFF_LOWER_UP == 0 })
	d.start(t)
	started := time.Now()
	t.Logf("traffic resumed %v after the start", resumed(t, arrivals, started))
	if after := a.link(t); after.Index != before.Index {
		t.Errorf("interface index %d, then %d; want the same interface", before.Index, after.Index)
	}
}

func TestAllAreKilledTwiceInARow(t *testing.T) {
	d, a, arrivals := newTalkingPair(t)
	before := a.link(t)
	for range 2 {
		children := []int{d.child(t, "worker"), d.child(t, "plane")}
		d.stop(unix.SIGKILL)
		for _, child := range children {
			if err := unix.Kill(child, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				t.Fatal(err)
			}
		}
		d.start(t) // they may still be ending
		t.Logf("traffic resumed %v after the start", resumed(t, arrivals, time.Now()))
	}
	if after := a.link(t); after.Index != before.Index {
		t.Errorf("interface index %d, then %d; want the same interface", before.Index, after.Index)
	}
	eventually(t, "both are gaps that have ended", func() bool {
		ended := 0
		for _, gap := range d.gaps(t) {
			if gap.Gap == "radiodRestarted" && gap.ToNanoseconds > gap.FromNanoseconds {
				ended++
			}
		}
		return ended == 2
	})
}

func TestAPodGoesWhileRadiodIsDown(t *testing.T) {
	d := newDaemon(t)
	a, b := newNode(t, "pod-a"), newNode(t, "pod-b")
	a.attach(t, d)
	b.attach(t, d)
	d.stop(unix.SIGTERM)
	if a.link(t) == nil {
		t.Fatal("the interface went with radiod")
	}
	for _, command := range []string{"DEL", "GC"} {
		if _, err := a.cni(d, command, a.args()); err != nil {
			t.Errorf("%s while radiod is down: %v", command, err)
		}
	}
	if a.link(t) != nil {
		t.Error("DEL left the interface")
	}
	d.start(t)
	for _, state := range []string{"attachments/pod-a_vhf.json", "counters/pod-a_vhf.json"} {
		eventually(t, "radiod forgets "+state, func() bool {
			_, err := os.Stat(filepath.Join(d.directory, state))
			return errors.Is(err, os.ErrNotExist)
		})
	}
	if b.link(t) == nil {
		t.Error("the other pod lost its interface")
	}
	eventually(t, "the results name the node that lost its radio", func() bool {
		return slices.ContainsFunc(d.gaps(t), func(g runapi.RadioGap) bool {
			return g.Gap == "attachmentLost" && g.Node == "a" && g.ToNanoseconds == 0
		})
	})
}

func TestAPodThatIsNoMemberIsRefused(t *testing.T) {
	d := newDaemon(t)
	a, impostor := newNode(t, "pod-a"), newNode(t, "impostor")
	a.attach(t, d)
	_, err := impostor.cni(d, "ADD", "K8S_POD_UID=impostor;"+a.args())
	if err == nil || !strings.Contains(err.Error(), "pod UID impostor is not a member") {
		t.Errorf("error %v; want a refusal that names the pod UID", err)
	}
	if impostor.link(t) != nil {
		t.Error("the impostor has an interface")
	}
	if _, err := impostor.cni(d, "ADD", "K8S_POD_NAME=x"); err == nil || !strings.Contains(err.Error(), "K8S_POD_UID is missing") {
		t.Errorf("without a pod UID: error %v; want one that says so", err)
	}
}

func TestDelAndCheckAndStatus(t *testing.T) {
	d := newDaemon(t)
	a := newNode(t, "pod-a")
	a.attach(t, d)
	for _, command := range []string{"STATUS", "CHECK", "GC", "DEL", "DEL"} {
		if _, err := a.cni(d, command, a.args()); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
	if a.link(t) != nil {
		t.Error("DEL left the interface")
	}
}

func TestAddWaitsForRadiod(t *testing.T) {
	d := newDaemon(t)
	d.stop(unix.SIGTERM)
	a := newNode(t, "pod-a")
	failed := make(chan error, 1)
	go func() {
		_, err := a.cni(d, "ADD", a.args())
		failed <- err
	}()
	time.Sleep(300 * time.Millisecond)
	d.start(t)
	if err := <-failed; err != nil {
		t.Errorf("ADD while radiod was being replaced: %v", err)
	}
}

var eventually = testtool.Eventually
