package vernemq

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	mqtt "vignette.dev/vignette/internal/traffic/mqtt/client"
	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/apps"
)

// image is the path of VerneMQ, as in upstream's image.
const image = "/vernemq"

// waitTimeout is long enough for a busy host.
const waitTimeout = 3 * time.Minute

// realBroker is a running VerneMQ with a rendered configuration, at an address.
type realBroker struct {
	site    apps.Site
	address string
	within  []string // command that runs others in the broker's network namespace
	dir     string
	port    int
	epmd    int
	log     syncbuffer.Buffer
	kill    func()
	ended   <-chan struct{}
}

// network connects this process's network namespace to a new one, and returns its name. Their addresses are firstAt and
// memberAt.
func network(t *testing.T) (name string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for network namespaces")
	}
	name = fmt.Sprintf("vernemq-%d", os.Getpid())
	link := fmt.Sprintf("vmq%d", os.Getpid())
	for _, words := range []string{
		"netns add " + name, "link add " + link + " type veth peer name radio0 netns " + name,
		"addr add " + firstAt + "/30 dev " + link, "link set " + link + " up",
		"-n " + name + " addr add " + memberAt + "/30 dev radio0", "-n " + name + " link set radio0 up", "-n " + name + " link set lo up",
	} {
		if out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", words, err, out)
		}
		if strings.HasPrefix(words, "netns add") {
			t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
		}
	}
	return name
}

const firstAt, memberAt = "198.18.251.1", "198.18.251.2"

// startReal starts brokers at their addresses, and Erlang's name service only for them. The second one has a network namespace
// of its own.
func startReal(t *testing.T, nodes ...*realBroker) {
	t.Helper()
	found, err := filepath.Glob(image + "/erts-*/bin/epmd")
	if err != nil || len(found) != 1 {
		t.Skipf("needs VerneMQ 2.0.1 in %s, as its image has it, which no package registry has", image)
	}
	epmd, hosts := testport.Free(t), ""
	for _, r := range nodes {
		hosts += r.address + " " + r.site.Node + "\n"
	}
	for i, r := range nodes {
		r.dir, r.port, r.epmd = t.TempDir(), testport.Free(t), epmd
		if i > 0 {
			r.within = []string{"ip", "netns", "exec", network(t)}
		}
		names := append(slices.Clone(r.within), found[0], "-port", fmt.Sprint(epmd))
		kill, _, err := testtool.Child(exec.Command(names[0], names[1:]...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(kill)
	}
	for _, r := range nodes {
		r.write(t, hosts)
		r.start(t)
		t.Cleanup(func() {
			r.kill()
			if t.Failed() {
				t.Logf("%s says\n%s", r.address, r.log.String())
			}
		})
	}
}

// write writes the rendered files as the agent would.
func (r *realBroker) write(t *testing.T, hosts string) {
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

func (r *realBroker) start(t *testing.T) {
	t.Helper()
	command := append(slices.Clone(r.within), "/bin/sh", filepath.Join(r.dir, "vernemq.sh"))
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH"), fmt.Sprintf("ERL_EPMD_PORT=%d", r.epmd)}, &r.log, &r.log
	var err error
	if r.kill, r.ended, err = testtool.Child(cmd); err != nil {
		t.Fatal(err)
	}
}

// testClient is a client of a broker that subscribes to everything, with its output.
type testClient struct {
	transport.Client
	broker *realBroker

	mu    sync.Mutex
	words []string
	heard map[string]bool
	up    bool
}

func (r *realBroker) newClient(t *testing.T, version string) *testClient {
	t.Helper()
	u := &testClient{broker: r, heard: map[string]bool{}}
	locked := func(do func()) { u.mu.Lock(); defer u.mu.Unlock(); do() }
	config := trafficconfig.Config{Version: version, Broker: fmt.Sprintf("%s:%d", r.address, r.port),
		Publish: &trafficconfig.Publish{}, Subscribe: &trafficconfig.Subscribe{Topics: []string{"#"}}}
	if r.site.App.Security != nil {
		config.Security = &protocol.Security{UsernameFile: filepath.Join(r.dir, "security/username"), PasswordFile: filepath.Join(r.dir, "security/password")}
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

// waitReceived publishes by another client until this one has received a message.
func (u *testClient) waitReceived(t *testing.T, from *testClient, what string) {
	t.Helper()
	late := time.After(waitTimeout)
	for {
		_ = from.Publish("a/b", []byte(what)) // without a connection it is refused
		u.mu.Lock()
		heard := u.heard[what]
		u.mu.Unlock()
		if heard {
			return
		}
		select {
		case <-late:
			t.Fatalf("never came: %s", what)
		case <-u.broker.ended:
			t.Fatalf("the broker ended before: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// refusals are the warnings about what the client's broker has refused.
func (u *testClient) refusals() (words []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, word := range u.words {
		if strings.Contains(word, "is refused") || strings.Contains(strings.ToLower(word), "authoriz") || strings.Contains(strings.ToLower(word), "bad user") {
			words = append(words, word)
		}
	}
	return words
}

func TestRealBrokersFormOneMeshAlsoAfterARestart(t *testing.T) {
	first, member := &realBroker{site: sites()["cluster-first"], address: firstAt}, &realBroker{site: sites()["cluster"], address: memberAt}
	first.site.ClusterPeers, member.site.ClusterPeers = []string{"nor"}, []string{"deu"}
	startReal(t, first, member)
	deu, nor := first.newClient(t, mqtt.Version311), member.newClient(t, mqtt.Version5)
	nor.waitReceived(t, deu, "from the first to the member")
	deu.waitReceived(t, nor, "from the member to the first")
	member.kill()
	member.start(t)
	nor.waitReceived(t, deu, "from the first to the member that was started again")
	deu.waitReceived(t, nor, "from the member that was started again to the first")
	if refused := append(deu.refusals(), nor.refusals()...); len(refused) > 0 {
		t.Errorf("brokers refused %q", refused)
	}
}

func TestARealBrokerRefusesNoClientWhileItStartsAndLogsLittle(t *testing.T) {
	broker := &realBroker{site: sites()["login"], address: loopback}
	startReal(t, broker)
	for _, version := range []string{mqtt.Version311, mqtt.Version5} {
		u := broker.newClient(t, version)
		u.waitReceived(t, u, "from MQTT "+version)
		if refused := u.refusals(); len(refused) > 0 {
			t.Errorf("the broker refused %q", refused)
		}
	}
	before := len(broker.log.String())
	time.Sleep(5 * time.Second)
	if after := len(broker.log.String()); after-before > 1000 {
		t.Errorf("the broker wrote %d bytes in 5 s while nothing happened:\n%s", after-before, broker.log.String()[before:])
	}
}
