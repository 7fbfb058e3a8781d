//go:build e2e

// Package e2e tests hack/cluster on this machine, with clusters of its own.
// It needs root and takes some minutes: go test -tags e2e ./e2e
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	upWindow     = 20 * time.Minute // a first run builds everything
	settleWindow = 30 * time.Second // until the kernel has torn down the last namespace
)

// testCluster is a cluster which a test brings up; it is purged at the end.
type testCluster struct {
	t    *testing.T
	name string
}

func newCluster(t *testing.T, name string) testCluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("clusters can be made by root only")
	}
	c := testCluster{t, name}
	c.run("down", "--purge")
	t.Cleanup(func() { c.command(context.Background(), "down", "--purge").Run() })
	return c
}

func (c testCluster) command(ctx context.Context, arguments ...string) *exec.Cmd {
	arguments = append([]string{arguments[0], "--name", c.name}, arguments[1:]...)
	return exec.CommandContext(ctx, "../../cluster", arguments...)
}

// run runs hack/cluster and returns its standard output and how long it took.
func (c testCluster) run(arguments ...string) (string, time.Duration) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), upWindow)
	defer cancel()
	cmd := c.command(ctx, arguments...)
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	began := time.Now()
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("hack/cluster %s: %v\n%s", strings.Join(arguments, " "), err, progress.String())
	}
	took := time.Since(began)
	c.t.Logf("hack/cluster %s %s: %.1f s", arguments[0], c.name, took.Seconds())
	return out.String(), took
}

func (c testCluster) kubectl(arguments ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(c.dir(), "bin", "kubectl"), arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.dir(), "kubeconfig"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// dir is the cluster's folder, from the KUBECONFIG that "env" prints.
func (c testCluster) dir() string {
	home := os.Getenv("VIGNETTE_HOME")
	if home == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			c.t.Fatal(err)
		}
		home = filepath.Join(cache, "vignette")
	}
	return filepath.Join(home, "clusters", c.name)
}

func (c testCluster) nodePID(node string) int {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir(), "nodes", node, "process.json"))
	if err != nil {
		c.t.Fatal(err)
	}
	var process struct{ PID int }
	if err := json.Unmarshal(data, &process); err != nil {
		c.t.Fatal(err)
	}
	return process.PID
}

func (c testCluster) kill(node string) {
	c.t.Helper()
	if err := syscall.Kill(c.nodePID(node), syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
}

// processes are the ids of the cluster's processes, found by their control group.
func (c testCluster) processes() []int {
	var found []int
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var pid int
		if err == nil && strings.Contains(string(text), "/vignette-"+c.name+"-") {
			if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil {
				found = append(found, pid)
			}
		}
	}
	return found
}

// namespaces are the namespaces in which any of these processes is, without the machine's own.
func namespaces(t *testing.T, pids []int) map[string]bool {
	found := map[string]bool{}
	for _, pid := range pids {
		for _, kind := range []string{"mnt", "pid", "net", "uts", "ipc"} {
			one, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
			if own, ownErr := os.Readlink("/proc/self/ns/" + kind); err == nil && ownErr == nil && one != own {
				found[one] = true
			}
		}
	}
	return found
}

// machine is the state of the machine that clusters could change, as sorted lines.
func machine(t *testing.T) []string {
	t.Helper()
	lines := []string{}
	for _, command := range []string{
		"cat /proc/self/mounts", "ip -o link", "ip -o address", "ip route", "ip rule", "ip neigh show nud permanent",
		"nft list ruleset", "sysctl -a -r 'ip_forward|bridge-nf-call|hostname'",
		"find /sys/fs/cgroup -maxdepth 3 -type d -path '*vignette*'", "ls /run/netns /var/lib/containers /etc/cni /opt/cni /var/lib/cni",
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command+" 2>/dev/null").Output()
		if _, failed := err.(*exec.ExitError); err != nil && !failed {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(out), "\n") {
			lines = append(lines, command+": "+line)
		}
	}
	slices.Sort(lines)
	return lines
}

func difference(before, after []string) []string {
	var lines []string
	for _, line := range after {
		if !slices.Contains(before, line) {
			lines = append(lines, "+ "+line)
		}
	}
	for _, line := range before {
		if !slices.Contains(after, line) {
			lines = append(lines, "- "+line)
		}
	}
	return lines
}

func TestDownLeavesNothingBehind(t *testing.T) {
	c := newCluster(t, "e2e-a")
	before := machine(t)
	c.run("up", "--nodes", "2")
	if nodes := c.kubectl("get", "nodes", "-o", "name"); nodes != "node/n1\nnode/n2\n" {
		t.Errorf("nodes %q", nodes)
	}
	pids := c.processes()
	used := namespaces(t, pids)
	if len(pids) < 15 || len(used) < 15 || len(difference(before, machine(t))) == 0 {
		t.Fatalf("%d processes, %d namespaces: too few to prove anything", len(pids), len(used))
	}

	if _, took := c.run("down"); took > 20*time.Second {
		t.Errorf("down took %s", took)
	}
	var left []string
	for deadline := time.Now().Add(settleWindow); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		left = difference(before, machine(t))
		for _, pid := range c.processes() {
			left = append(left, fmt.Sprintf("process %d", pid))
		}
		for one := range namespaces(t, allProcesses(t)) {
			if used[one] {
				left = append(left, "namespace "+one)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
}

func allProcesses(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscanf(entry.Name(), "%d", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestASecondUpIsQuickAndWhatWasThereComesBackAfterDown(t *testing.T) {
	c := newCluster(t, "e2e-a")
	c.run("up")
	c.kubectl("create", "configmap", "keepsake", "--from-literal=a=b")
	if _, took := c.run("up"); took > 15*time.Second {
		t.Errorf("a second up took %s", took)
	}
	c.run("down")
	c.run("down")
	c.run("up")
	c.kubectl("get", "configmap", "keepsake")
	c.run("down", "--purge")
	if _, err := os.Stat(c.dir()); !os.IsNotExist(err) {
		t.Errorf("the cluster's folder is still there (error %v)", err)
	}
}

func TestTwoClustersDoNotDisturbEachOther(t *testing.T) {
	a, b := newCluster(t, "e2e-a"), newCluster(t, "e2e-b")
	a.run("up")
	b.run("up")
	a.kubectl("create", "namespace", "only-in-a")
	if strings.Contains(b.kubectl("get", "namespaces", "-o", "name"), "only-in-a") {
		t.Error("the second cluster is the first")
	}
	pid := b.nodePID("n1")
	a.run("down", "--purge")
	if b.nodePID("n1") != pid || len(b.processes()) < 8 {
		t.Error("the second cluster's node has changed")
	}
	b.kubectl("get", "--raw", "/readyz")
}

func TestUpHealsAClusterWhoseNodeWasKilled(t *testing.T) {
	c := newCluster(t, "e2e-a")
	c.run("up", "--nodes", "2")
	c.kubectl("create", "configmap", "keepsake", "--from-literal=a=b")
	for _, node := range []string{"n2", "n1"} {
		c.kill(node)
		c.run("up")
		c.kubectl("get", "configmap", "keepsake")
		c.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=10s")
		c.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=10s")
	}
}

func TestUpStartsAnewWhenEtcdLostItsData(t *testing.T) {
	c := newCluster(t, "e2e-a")
	c.run("up")
	c.run("down")
	etcd := filepath.Join(c.dir(), "nodes", "n1", "var", "lib", "etcd")
	for _, pattern := range []string{"member/wal/*.wal", "member/snap/db"} {
		files, err := filepath.Glob(filepath.Join(etcd, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, error %v", pattern, files, err)
		}
		for _, file := range files {
			if err := os.WriteFile(file, bytes.Repeat([]byte("garbage "), 8192), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.run("up")
	kept, err := filepath.Glob(etcd + ".broken-*")
	if err != nil || len(kept) != 1 {
		t.Errorf("the broken data is not kept: %v, error %v", kept, err)
	}
}

// TestUpCanBeKilledAtAnyMoment kills hack/cluster up again and again, with
// all that it started and that is not yet a node, and then lets one go through.
func TestUpCanBeKilledAtAnyMoment(t *testing.T) {
	c := newCluster(t, "e2e-a")
	before := machine(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		cmd := c.command(t.Context(), "up")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pause := time.Duration(500+random.IntN(5000)) * time.Millisecond
		time.Sleep(pause)
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		t.Logf("killed after %s", pause)
		if random.IntN(3) == 0 {
			c.run("down")
		}
	}
	c.run("up")
	c.kubectl("get", "--raw", "/readyz")
	c.run("down", "--purge")
	if left := difference(before, machine(t)); len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

func TestConcurrentUpsOfOneClusterMakeOneCluster(t *testing.T) {
	c := newCluster(t, "e2e-a")
	results := make(chan error, 2)
	for range 2 {
		go func() {
			out, err := c.command(t.Context(), "up").CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, out)
			}
			results <- err
		}()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if nodes := c.kubectl("get", "nodes", "-o", "name"); nodes != "node/n1\n" {
		t.Errorf("nodes %q", nodes)
	}
}

func TestKubeVirtTakesMachinesAlsoAfterDownAndTriesAccelerationByAProgramThatEndsWhenEmulated(t *testing.T) {
	c := newCluster(t, "e2e-a")
	c.run("up", "--with", "kubevirt")
	// Where QEMU runs the very same sector emulated, a failure with KVM is KVM's.
	c.kubectl("-n", "kubevirt", "exec", "daemonset/virt-handler", "--", "kvm-works", "tcg")
	machine := filepath.Join(t.TempDir(), "machine.yaml")
	text := "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: machine}\n" +
		"spec: {domain: {memory: {guest: 64Mi}, devices: {interfaces: [{name: radio, binding: {name: vignette-radio}}]}}, networks: [{name: radio, multus: {networkName: radio}}]}\n"
	if err := os.WriteFile(machine, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	accepted := func() {
		if phase := c.kubectl("-n", "kubevirt", "get", "kubevirt", "kubevirt", "-o", "jsonpath={.status.phase}"); phase != "Deployed" {
			t.Errorf("KubeVirt is %q", phase)
		}
		c.kubectl("create", "--dry-run=server", "-f", machine)
	}
	accepted()
	c.run("down")
	c.run("up")
	c.kubectl("-n", "kubevirt", "rollout", "status", "deployment/virt-api", "--timeout=3m")
	c.kubectl("-n", "kubevirt", "rollout", "status", "daemonset/virt-handler", "--timeout=3m")
	accepted()
}
