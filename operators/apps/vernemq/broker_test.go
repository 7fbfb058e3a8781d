package vernemq

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/mqtt"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/apps"
)

// image is where VerneMQ is, as in the image that its makers publish.
const image = "/vernemq"

// patience with what happens on a busy host.
const patience = 3 * time.Minute

// real is a VerneMQ that runs what the kind renders, on a loopback address of its own.
type real struct {
	site    apps.Site
	address string
	dir     string
	port    int
	epmd    int
	log     syncbuffer.Buffer
	kill    func()
}

// child runs a program until kill is called, or this process ends in any way: the kernel ends it with the thread that started it.
func child(cmd *exec.Cmd) (kill func(), err error) {
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { _ = cmd.Process.Kill(); <-ended }), nil
}

// startReal starts the brokers of nodes, by the nodes' names, and Erlang's name service for them alone.
func startReal(t *testing.T, nodes map[string]apps.Site) map[string]*real {
	t.Helper()
	found, err := filepath.Glob(image + "/erts-*/bin/epmd")
	if err != nil || len(found) != 1 {
		t.Skipf("needs VerneMQ 2.0.1 in %s, as its image has it, which no package registry has", image)
	}
	epmd := testport.Free(t)
	kill, err := child(exec.Command(found[0], "-port", fmt.Sprint(epmd), "-address", loopback))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kill)
	brokers, hosts := map[string]*real{}, ""
	for i, node := range slices.Sorted(maps.Keys(nodes)) {
		r := &real{site: nodes[node], address: fmt.Sprintf("127.0.0.%d", i+1), dir: t.TempDir(), port: testport.Free(t), epmd: epmd}
		brokers[node] = r
		hosts += r.address + " " + node + "\n"
	}
	for _, r := range brokers {
		r.write(t, hosts)
		r.start(t)
		t.Cleanup(func() {
			r.kill()
			if t.Failed() {
				t.Logf("%s says\n%s", r.address, r.log.String())
			}
		})
	}
	return brokers
}

// write what is rendered as the agent would.
func (r *real) write(t *testing.T, hosts string) {
	t.Helper()
	r.site.MetricsPorts = []int{0}
	write(t, filepath.Join(r.dir, "hosts"), hosts, 0o644)
	write(t, filepath.Join(r.dir, "security/username"), "user", 0o644)
	write(t, filepath.Join(r.dir, "security/password"), "sec:ret", 0o644)
	moved := strings.NewReplacer("/vignette/run", r.dir, "/vignette/security", r.dir+"/security", "/etc/hosts", r.dir+"/hosts",
		"address=0.0.0.0", "address="+r.address, "port=1883", fmt.Sprintf("port=%d", r.port), fmt.Sprintf(":%d", clusterPort), fmt.Sprintf(":%d", testport.Free(t)))
	for _, f := range (Kind{}).Render(r.site).Files {
		write(t, moved.Replace(f.Path), moved.Replace(f.Content), 0o644)
	}
}

func (r *real) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/bin/sh", filepath.Join(r.dir, "vernemq.sh"))
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH"), fmt.Sprintf("ERL_EPMD_PORT=%d", r.epmd)}, &r.log, &r.log
	var err error
	if r.kill, err = child(cmd); err != nil {
		t.Fatal(err)
	}
}

// user is a client of a broker that hears all, and what it tells.
type user struct {
	transport.Client
	mu    sync.Mutex
	words []string
	heard map[string]bool
	up    bool
}

func (r *real) user(t *testing.T, version string) *user {
	t.Helper()
	u := &user{heard: map[string]bool{}}
	locked := func(do func()) { u.mu.Lock(); defer u.mu.Unlock(); do() }
	config := trafficconfig.Config{Version: version, Broker: fmt.Sprintf("%s:%d", r.address, r.port),
		Publish: &trafficconfig.Publish{}, Subscribe: &trafficconfig.Subscribe{Topics: []string{"#"}}}
	if r.site.App.Security != nil {
		config.Security = &trafficconfig.Security{UsernameFile: filepath.Join(r.dir, "security/username"), PasswordFile: filepath.Join(r.dir, "security/password")}
	}
	client, err := mqtt.Open(transport.Setup{Config: config, ClientID: r.address + version, Warn: func(text string) { locked(func() { u.words = append(u.words, text) }) }}, transport.Events{
		Sent:     func(time.Time, string, []byte) {},
		Received: func(_ time.Time, _ string, payload []byte) { locked(func() { u.heard[string(payload)] = true }) },
		Connection: func(up bool, reason string) {
			locked(func() { u.up, u.words = up, append(u.words, fmt.Sprintf("connected %v: %s", up, reason)) })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	u.Client = client
	t.Cleanup(func() {
		ending, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		client.Close(ending)
		if t.Failed() {
			t.Logf("the client of %s says\n%s", r.address, strings.Join(u.words, "\n"))
		}
	})
	return u
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// hears waits until it has heard one of the messages of another client.
func (u *user) hears(t *testing.T, from *user, what string) {
	t.Helper()
	eventually(t, what, func() bool {
		_ = from.Publish("a/b", []byte(what)) // without a connection it is refused
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.heard[what]
	})
}

// wasRefused tells what a broker refused that served the client.
func (u *user) wasRefused() (words []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, word := range u.words {
		if strings.Contains(word, "is refused") || strings.Contains(strings.ToLower(word), "authoriz") || strings.Contains(strings.ToLower(word), "bad user") {
			words = append(words, word)
		}
	}
	return words
}

func TestRealBrokersWhoseClientsDoNotWaitFormOneMeshAlsoAfterARestart(t *testing.T) {
	first, member := sites()["cluster-first"], sites()["cluster"]
	first.ClusterPeers, member.ClusterPeers = []string{"nor"}, []string{"deu"}
	brokers := startReal(t, map[string]apps.Site{"deu": first, "nor": member})
	deu, nor := brokers["deu"].user(t, mqtt.Version311), brokers["nor"].user(t, mqtt.Version5)
	nor.hears(t, deu, "from the first to the member")
	deu.hears(t, nor, "from the member to the first")
	brokers["nor"].kill()
	brokers["nor"].start(t)
	nor.hears(t, deu, "from the first to the member that was started again")
	deu.hears(t, nor, "from the member that was started again to the first")
	if refused := append(deu.wasRefused(), nor.wasRefused()...); len(refused) > 0 {
		t.Errorf("brokers refused %q", refused)
	}
}

func TestARealBrokerRefusesNobodyWhileItStartsAndIsQuiet(t *testing.T) {
	login := sites()["login"]
	broker := startReal(t, map[string]apps.Site{"nor": login})["nor"]
	for _, version := range []string{mqtt.Version311, mqtt.Version5} {
		u := broker.user(t, version)
		u.hears(t, u, "from MQTT "+version)
		if refused := u.wasRefused(); len(refused) > 0 {
			t.Errorf("the broker refused %q", refused)
		}
	}
	before := len(broker.log.String())
	time.Sleep(5 * time.Second)
	if after := len(broker.log.String()); after-before > 1000 {
		t.Errorf("the broker wrote %d bytes in 5 s while nothing happened:\n%s", after-before, broker.log.String()[before:])
	}
}
