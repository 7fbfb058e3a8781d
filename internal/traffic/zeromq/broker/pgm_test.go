package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/zeromq"
	zeromqclient "vignette.dev/vignette/internal/traffic/zeromq/client"
	"vignette.dev/vignette/internal/traffic/zeromq/zmq"
	"vignette.dev/vignette/internal/trafficconfig"
)

// The test's own program also runs broker and clients in other namespaces, with no privilege but that of raw sockets where they need it.
const (
	roleEnv   = "ZEROMQ_TEST_ROLE"
	configEnv = "ZEROMQ_TEST_CONFIG"
	// pgmMessages is the number of messages of each publisher.
	pgmMessages = 60
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := play(role, os.Getenv(configEnv)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role, path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if role == "broker" {
		return Serve(ctx, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	setup := transport.Setup{LargestTopic: "topic", LargestBytes: 300, Warn: func(text string) { fmt.Println(text) }}
	if err := json.Unmarshal(text, &setup.Config); err != nil {
		return err
	}
	up := make(chan struct{}, 10)
	c, err := zeromqclient.Open(setup, transport.Events{Sent: func(time.Time, string, []byte) {}, Dropped: func(int) {},
		Received: func(_ time.Time, topic string, payload []byte) {
			fmt.Printf("%s=%s\n", topic, strings.TrimSpace(string(payload)))
		},
		Connection: func(bool, string) { up <- struct{}{} }})
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	<-up
	fmt.Println("ready")
	if setup.Publish != nil {
		// Receivers request repetitions of what follows a sender's first received packet, and of nothing before.
		for range 20 {
			if err := c.Publish("/OURS/first", nil); err != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
		for i := range pgmMessages {
			if err := c.Publish(setup.Publish.Topic, fmt.Appendf(nil, "%d%200s", i, "")); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	<-ctx.Done()
	return nil
}

// hosts are two network namespaces with a lossy cable between them: a for the broker, b for the clients.
type hosts struct{ a, b string }

func makeHosts(t *testing.T) hosts {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	h := hosts{fmt.Sprintf("vgz%da", os.Getpid()), fmt.Sprintf("vgz%db", os.Getpid())}
	must := func(command string, arguments ...string) {
		t.Helper()
		if out, err := exec.Command(command, arguments...).CombinedOutput(); err != nil {
			t.Skipf("%s %v: %v: %s", command, arguments, err, out)
		}
	}
	for _, name := range []string{h.a, h.b} {
		must("ip", "netns", "add", name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	}
	must("ip", "-n", h.a, "link", "add", "wan", "type", "veth", "peer", "name", "wan", "netns", h.b)
	for i, name := range []string{h.a, h.b} {
		must("ip", "-n", name, "addr", "add", fmt.Sprintf("198.18.9.%d/24", i+1), "dev", "wan")
		must("ip", "-n", name, "link", "set", "wan", "up")
		must("ip", "-n", name, "route", "add", "224.0.0.0/4", "dev", "wan")
		loss := "add table ip t; add chain ip t in { type filter hook input priority 0; }; " +
			"add rule ip t in udp dport 5000-6000 numgen random mod 10 == 0 drop; add rule ip t in ip protocol 113 numgen random mod 10 == 0 drop"
		if out, err := exec.Command("ip", "netns", "exec", name, "nft", loss).CombinedOutput(); err != nil {
			t.Logf("nothing gets lost on the way, so nothing is repeated: nft: %v: %s", err, out)
		}
	}
	return h
}

// way is a way of PGM over the network.
type way struct {
	transport, scheme string
	// ipProtocol is the number of its packets in IP.
	ipProtocol string
	// privileges are options of setpriv.
	privileges []string
}

var ways = []way{
	{zeromq.TransportPGM, "epgm", "17", []string{"--bounding-set=-all"}},
	// As the guest gives them to ZeroMQ's programs in a virtual machine.
	{zeromq.TransportPGMRaw, "pgm", "113", []string{"--bounding-set=-all,+net_raw", "--inh-caps=-all,+net_raw", "--ambient-caps=-all,+net_raw"}},
}

// in returns the beginning of a command in a namespace, as a user with the way's privileges.
func (w way) in(namespace string) []string {
	return slices.Concat([]string{"ip", "netns", "exec", namespace, "setpriv", "--no-new-privs", "--reuid", "65532", "--regid", "65532", "--clear-groups"}, w.privileges)
}

// program copies the test's own program to where any user may execute it.
func program(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zeromq-") // the test's own directory is for its user only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	content, err := os.ReadFile(os.Args[0])
	path := filepath.Join(dir, "test")
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.WriteFile(path, content, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a role with a configuration; in is the beginning of its command.
func start(t *testing.T, in []string, role string, config any) *syncbuffer.Buffer {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp("", "zeromq-*.json") // the test's own directory is for its user only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	if _, err := f.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(in[0], in[1:]...)
	c.Env = append(os.Environ(), roleEnv+"="+role, configEnv+"="+f.Name())
	told := &syncbuffer.Buffer{}
	c.Stdout, c.Stderr = told, told
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil || t.Failed() {
			t.Errorf("%s: %v: %s", role, err, told.String()[max(0, len(told.String())-2000):])
		}
	})
	return told
}

func (w way) client(publish, subscribe string) trafficconfig.Config {
	c := trafficconfig.Config{Protocol: "zeromq", Transport: w.transport, Broker: "198.18.9.1:5555", Interface: "wan", PGM: &zeromq.PGM{RateKilobits: 1000}}
	if publish != "" {
		c.PGM.Publish, c.Publish = "239.255.9.1:"+publish, &trafficconfig.Publish{Topic: "/OURS/" + publish}
	}
	if subscribe != "" {
		c.PGM.Subscribe, c.Subscribe = "239.254.9.1:5556", &trafficconfig.Subscribe{Topics: []string{subscribe}}
	}
	return c
}

func TestPGMRepeatsWhatIsLostForOursAndPyzmqsClientsOnOneNode(t *testing.T) {
	needLibrary(t)
	if has, _ := zmq.Has("pgm"); !has {
		t.Skip("libzmq is installed without PGM")
	}
	for _, w := range ways {
		t.Run(w.transport, func(t *testing.T) { w.repeatsWhatIsLost(t) })
	}
}

func (w way) broker() zeromq.BrokerConfig {
	return zeromq.BrokerConfig{Instance: "hq/broker", Transport: w.transport, PGM: &zeromq.BrokerPGM{Interface: "wan", RateKilobits: 1000,
		Publishers: []string{"239.255.9.1:5601", "239.255.9.1:5602", "239.255.9.1:5603"}, Subscribers: "239.254.9.1:5556", Filters: []string{"/OURS/#", "/PY/+"}}}
}

func (w way) repeatsWhatIsLost(t *testing.T) {
	h, ours := makeHosts(t), program(t)
	packets := w.captureIn(t, h.b)
	server, clients := append(w.in(h.a), ours), append(w.in(h.b), ours)
	start(t, server, "broker", w.broker())
	subscriber := start(t, clients, "subscriber", w.client("", "#"))
	theirs := pythonAt(t, w.in(h.b), pySubscribe, w.scheme+"://198.18.9.2;239.254.9.1:5556", "/OURS/")
	waitFor(t, "subscribers", func() bool {
		return strings.Contains(subscriber.String(), "ready") && strings.Contains(theirs.String(), "ready")
	})
	both := start(t, clients, "publisher", w.client("5601", "/PY/a"))
	start(t, clients, "publisher", w.client("5602", ""))
	pythonAt(t, w.in(h.b), pyPublish, w.scheme+"://198.18.9.2;239.255.9.1:5603", fmt.Sprint(2*pgmMessages))
	for what, c := range map[string]struct {
		at     *syncbuffer.Buffer
		prefix string
	}{
		"our first publisher's messages here":     {subscriber, "/OURS/5601="},
		"our second publisher's messages here":    {subscriber, "/OURS/5602="},
		"pyzmq's messages here":                   {subscriber, "/PY/a="},
		"pyzmq's messages at a publisher of ours": {both, "/PY/a="},
		"our first publisher's messages there":    {theirs, "/OURS/5601="},
		"our second publisher's messages there":   {theirs, "/OURS/5602="},
	} {
		waitFor(t, what, func() bool { return distinct(c.at, c.prefix) == pgmMessages })
	}
	if strings.Contains(subscriber.String(), "/other=") {
		t.Error("a message that no filter of the broker matches came through")
	}
	packets()
}

// distinct returns the distinct messages of a topic.
func distinct(told *syncbuffer.Buffer, prefix string) int {
	var found []string
	for line := range strings.Lines(told.String()) {
		if strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	slices.Sort(found)
	return len(slices.Compact(found))
}

// captureIn captures the packets on a namespace's cable. The returned function has tshark dissect them.
func (w way) captureIn(t *testing.T, namespace string) func() {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Log("tshark is not installed (Debian package tshark): packets are not dissected")
		return func() {}
	}
	path := filepath.Join(t.TempDir(), "pgm.pcapng")
	capture := exec.Command("ip", "netns", "exec", namespace, tshark, "-q", "-i", "wan", "-w", path, "-f", "udp or ip proto 113")
	told := &syncbuffer.Buffer{}
	capture.Stderr = told
	if err := capture.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = capture.Process.Kill() })
	waitFor(t, "tshark to capture", func() bool { return strings.Contains(told.String(), "Capturing") })
	return func() {
		_ = capture.Process.Signal(os.Interrupt)
		_ = capture.Wait()
		out, err := exec.Command(tshark, "-n", "-r", path, "-Y", "pgm", "-d", "udp.port==5556,pgm", "-d", "udp.port==5601-5603,pgm",
			"-T", "fields", "-e", "pgm.hdr.type", "-e", "ip.proto", "-e", "_ws.malformed").Output()
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for line := range strings.Lines(string(out)) {
			kind, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
			ipProtocol, malformed, _ := strings.Cut(rest, "\t")
			kinds[kind]++
			if ipProtocol != w.ipProtocol || malformed != "" {
				t.Errorf("packet of type %s in IP protocol %s, malformed %q; want %s, and none malformed", kind, ipProtocol, malformed, w.ipProtocol)
			}
		}
		if kinds["0x04"] < pgmMessages { // ODATA
			t.Errorf("tshark finds packets by type %v; want %d of type 0x04 at least", kinds, pgmMessages)
		}
		t.Logf("PGM packets by type: %v", kinds)
	}
}
