package mosquitto

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/credentials"
	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

var (
	tlsOnly      = &v1alpha1.Security{TLS: true}
	passwordOnly = &v1alpha1.Security{Password: true}
	both         = &v1alpha1.Security{TLS: true, Password: true}
)

func sites() map[string]apps.Site {
	return map[string]apps.Site{
		"single":     site(nil, nil),
		"everything": site(nil, nil, v1alpha1.Bridge{To: "nor/broker"}),
		"chosen": site(nil, nil,
			v1alpha1.Bridge{To: "nor/broker", Topics: []v1alpha1.BridgeTopic{{Filter: "/NOR/#", Direction: "in"}, {Filter: "/PRT/+/+/location", Direction: "out", QoS: 2}}},
			v1alpha1.Bridge{To: "usa/broker", Topics: []v1alpha1.BridgeTopic{{Filter: "chat/#", Direction: "both", QoS: 1}}}),
		"prefixed": site(nil, nil,
			v1alpha1.Bridge{To: "nor/broker", Topics: []v1alpha1.BridgeTopic{{Filter: "#", Direction: "out", LocalPrefix: "bft/", RemotePrefix: "prt/"},
				{Filter: "chat/+", Direction: "in", QoS: 1, RemotePrefix: "nor/"}, {Filter: "#", Direction: "both", LocalPrefix: "shared/"}}}),
		"kept":                site(nil, nil, v1alpha1.Bridge{To: "nor/broker", Session: v1alpha1.SessionAuto, Topics: []v1alpha1.BridgeTopic{{Filter: "#", QoS: 1}}}),
		"tls":                 site(tlsOnly, tlsOnly, v1alpha1.Bridge{To: "nor/broker"}),
		"password":            site(passwordOnly, nil, v1alpha1.Bridge{To: "nor/broker"}),
		"secure":              site(both, both, v1alpha1.Bridge{To: "nor/broker"}),
		"bridge-with-a-login": site(nil, passwordOnly, v1alpha1.Bridge{To: "nor/broker"}),
	}
}

// site of a broker in Portugal with bridges to others, all of which have one security.
func site(own, peers *v1alpha1.Security, bridges ...v1alpha1.Bridge) apps.Site {
	s := apps.Site{App: v1alpha1.App{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{Bridges: bridges}, Security: own}, Node: "prt", Instances: []string{"prt/broker"}}
	for _, b := range bridges {
		node, _, _ := strings.Cut(b.To, "/")
		peer := v1alpha1.App{Name: "broker", Security: peers}
		s.Servers = append(s.Servers, apps.Server{Address: fmt.Sprintf("%s:%d", node, apps.Port(v1alpha1.ProtocolMQTT, peer)), Node: node, App: peer})
	}
	return s
}

func TestConfigurationsMatchTheirGoldenFiles(t *testing.T) {
	for name, site := range sites() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".conf", Config(site))
		})
	}
}

// broker is a running Mosquitto of a site, with temporary folders and on loopback.
type broker struct {
	port int
	// security is the folder of the Secret.
	security string
}

// run runs the real broker as the agent would. peers are the ports of the other ends of its bridges.
func run(t *testing.T, site apps.Site, credentials map[string][]byte, peers ...int) broker {
	t.Helper()
	for _, program := range []string{program, "/usr/bin/mosquitto_passwd"} {
		if _, err := os.Stat(program); err != nil {
			t.Skip("mosquitto is not installed (Debian package mosquitto)")
		}
	}
	b, own := broker{port: testport.Free(t), security: t.TempDir()}, t.TempDir()
	for name, content := range credentials {
		write(t, filepath.Join(b.security, name), string(content))
	}
	var moves []string
	for i, peer := range site.Servers {
		moves = append(moves, "address "+peer.Address+"\n", fmt.Sprintf("address 127.0.0.1:%d\n", peers[i]))
	}
	// Run by root, Mosquitto would become another user, who cannot read the files.
	listener := fmt.Sprintf("user root\nlistener %d 127.0.0.1\n", b.port)
	moves = append(moves, agentconfig.RunDir, own, agentconfig.SecurityDir, b.security, fmt.Sprintf("listener %d\n", apps.Port(v1alpha1.ProtocolMQTT, site.App)), listener)
	move := strings.NewReplacer(moves...)
	r := Kind{}.Render(site)
	for _, file := range r.Files {
		write(t, move.Replace(file.Path), move.Replace(file.Content))
	}
	command := r.Instances[0].Command
	for i := range command {
		command[i] = move.Replace(command[i])
	}
	output := &syncbuffer.Buffer{}
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	// Mosquitto loses a signal that comes while it prints that it is running.
	c.Stdout, c.Stderr, c.Cancel, c.WaitDelay = output, output, func() error { return c.Process.Signal(os.Interrupt) }, time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Wait() }) // the context has ended it
	for deadline := time.Now().Add(time.Minute); !strings.Contains(output.String(), "running"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("mosquitto does not run:\n%s", output.String())
		}
	}
	return b
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func secrets(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := credentials.Make("bft", []string{"prt", "nor"}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	files[credentials.Password] = []byte(`pass:w/or&d\:`) // characters of the shell, of sed and of password files
	return files
}

func TestMosquittoAcceptsTheGoldenFiles(t *testing.T) {
	for name, site := range sites() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, site, secrets(t), 9, 9) // nobody listens on port 9 of loopback
		})
	}
}

// client runs mosquitto_pub or mosquitto_sub.
func (b broker) client(t *testing.T, program string, arguments ...string) (output string, err error) {
	t.Helper()
	path := testtool.Need(t, program)
	arguments = append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(b.port)}, arguments...)
	text, err := exec.CommandContext(t.Context(), path, arguments...).CombinedOutput()
	return string(text), err
}

func TestOnlyClientsWithThePasswordAndTheAuthorityAreServed(t *testing.T) {
	files := secrets(t)
	b := run(t, site(both, nil), files)
	ca := []string{"--cafile", filepath.Join(b.security, "ca.crt")}
	login := []string{"-u", string(files["username"]), "-P", string(files["password"])}
	others := filepath.Join(t.TempDir(), "ca.crt")
	write(t, others, string(secrets(t)["ca.crt"]))
	cases := map[string]struct {
		arguments []string
		refused   string
	}{
		"with both":                       {slices.Concat(ca, login), ""},
		"without the password":            {ca, "not authorised"},
		"with a wrong password":           {slices.Concat(ca, login[:3], []string{"guess"}), "not authorised"},
		"in clear text":                   {login, "lost"},
		"by another experiment's word":    {slices.Concat([]string{"--cafile", others}, login), "TLS error"},
		"with TLS, as somebody else says": {slices.Concat(ca, []string{"-u", "admin"}, login[2:]), "not authorised"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			output, err := b.client(t, "mosquitto_pub", append(c.arguments, "-t", "a", "-m", "b", "-q", "1")...)
			if (err == nil) != (c.refused == "") || !strings.Contains(output, c.refused) {
				t.Errorf("mosquitto_pub says %v: %q; want %q", err, output, c.refused)
			}
		})
	}
}

func TestABridgeBetweenBrokersWithSecurityPassesMessages(t *testing.T) {
	files := secrets(t)
	hub := run(t, site(both, nil), files)
	spoke := run(t, site(both, both, v1alpha1.Bridge{To: "nor/broker"}), files, hub.port)
	login := []string{"--cafile", filepath.Join(hub.security, "ca.crt"), "-u", string(files["username"]), "-P", string(files["password"])}
	// The hub retains it, so the spoke gets it once its bridge has connected.
	if output, err := hub.client(t, "mosquitto_pub", append(login, "-t", "IST150/NOR", "-m", "hello", "-r", "-q", "1")...); err != nil {
		t.Fatal(err, output)
	}
	if output, err := spoke.client(t, "mosquitto_sub", append(login, "-t", "IST150/#", "-C", "1", "-W", "60")...); err != nil || output != "hello\n" {
		t.Errorf("the spoke has %q: %v", output, err)
	}
}

func TestABridgeWithPrefixesChangesTopicsAsMessagesCross(t *testing.T) {
	hub := run(t, site(nil, nil), nil)
	spoke := run(t, site(nil, nil, v1alpha1.Bridge{To: "nor/broker", Topics: []v1alpha1.BridgeTopic{
		{Filter: "#", Direction: "out", LocalPrefix: "bft/", RemotePrefix: "prt/"}, {Filter: "chat/#", Direction: "in", LocalPrefix: "far/", RemotePrefix: "nor/"}}}), nil, hub.port)
	// The brokers retain it, so the other one gets it once the bridge has connected.
	if output, err := hub.client(t, "mosquitto_pub", "-t", "nor/chat/1", "-m", "hello", "-r", "-q", "1"); err != nil {
		t.Fatal(err, output)
	}
	if output, err := spoke.client(t, "mosquitto_sub", "-v", "-t", "#", "-C", "1", "-W", "60"); err != nil || output != "far/chat/1 hello\n" {
		t.Errorf("the spoke has %q: %v; want far/chat/1", output, err)
	}
	if output, err := spoke.client(t, "mosquitto_pub", "-t", "bft/veh-1", "-m", "here", "-r", "-q", "1"); err != nil {
		t.Fatal(err, output)
	}
	if output, err := hub.client(t, "mosquitto_sub", "-v", "-t", "prt/#", "-C", "1", "-W", "60"); err != nil || output != "prt/veh-1 here\n" {
		t.Errorf("the hub has %q: %v; want prt/veh-1", output, err)
	}
}

func TestABridgeKeepsItsSessionWhenItIsToldTo(t *testing.T) {
	acknowledged, unacknowledged := []v1alpha1.BridgeTopic{{Filter: "#", QoS: 1}}, []v1alpha1.BridgeTopic{{Filter: "#"}}
	for name, c := range map[string]struct {
		bridge v1alpha1.Bridge
		want   bool
	}{
		"by default":                         {v1alpha1.Bridge{Topics: acknowledged}, false},
		"never":                              {v1alpha1.Bridge{Session: v1alpha1.SessionClean, Topics: acknowledged}, false},
		"where a topic has QoS 1":            {v1alpha1.Bridge{Session: v1alpha1.SessionAuto, Topics: acknowledged}, true},
		"where no topic has more than QoS 0": {v1alpha1.Bridge{Session: v1alpha1.SessionAuto, Topics: unacknowledged}, false},
		"where there are no topics":          {v1alpha1.Bridge{Session: v1alpha1.SessionAuto}, false},
		"always":                             {v1alpha1.Bridge{Session: v1alpha1.SessionPersistent}, true},
	} {
		if got := c.bridge.KeepsSession(); got != c.want {
			t.Errorf("%s: %t; want %t", name, got, c.want)
		}
	}
}

// way is a TCP relay to a port, which can be cut.
type way struct {
	to       int
	listener net.Listener
	mu       sync.Mutex
	open     []net.Conn
}

func (w *way) join(t *testing.T, port int) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	w.listener = listener
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", w.to))
			if err != nil {
				_ = near.Close()
				return
			}
			w.mu.Lock()
			w.open = append(w.open, near, far)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(near, far) }()
			go func() { _, _ = io.Copy(far, near) }()
		}
	}()
}

func (w *way) cut() {
	_ = w.listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		_ = c.Close()
	}
}

func TestABridgeWithAPersistentSessionCarriesWhatCameWhileItWasAway(t *testing.T) {
	hub := run(t, site(nil, nil), nil)
	between, port := way{to: hub.port}, testport.Free(t)
	between.join(t, port)
	spoke := run(t, site(nil, nil, v1alpha1.Bridge{To: "nor/broker", Session: v1alpha1.SessionPersistent, Topics: []v1alpha1.BridgeTopic{{Filter: "#", QoS: 1}}}), nil, port)
	publish := func(b broker, topic string, options ...string) {
		t.Helper()
		if output, err := b.client(t, "mosquitto_pub", append(options, "-t", topic, "-m", "hello", "-q", "1")...); err != nil {
			t.Fatal(err, output)
		}
	}
	receive := func(b broker, topic string) {
		t.Helper()
		if output, err := b.client(t, "mosquitto_sub", "-t", topic, "-q", "1", "-C", "1", "-W", "60"); err != nil || output != "hello\n" {
			t.Errorf("%q arrives on %s: %v", output, topic, err)
		}
	}
	publish(hub, "ready", "-r")
	receive(spoke, "ready")
	between.cut()
	publish(hub, "down", "-r")
	publish(spoke, "up") // not retained: what is retained crosses again in any case
	var arrived sync.WaitGroup
	arrived.Go(func() { receive(hub, "up") })
	time.Sleep(time.Second) // until that has subscribed
	between.join(t, port)
	arrived.Wait()
	receive(spoke, "down")
}

func TestTheBrokerRunsOnceAndReadsItsFile(t *testing.T) {
	r := Kind{}.Render(sites()["single"])
	if len(r.Instances) != 1 || r.Instances[0].Command[2] != r.Files[0].Path || r.Topics != nil || r.Subscriptions != nil {
		t.Errorf("rendered %+v", r)
	}
}

func TestTheScriptWithThePasswordMatchesItsGoldenFile(t *testing.T) {
	r := Kind{}.Render(sites()["secure"])
	golden.Check(t, "start.sh", r.Files[1].Content)
}

func TestASeparateProcessServesTheBrokersStatistics(t *testing.T) {
	s := site(both, nil)
	if r := (Kind{}).Render(s); len(r.Instances) != 1 || len(r.MetricsPorts) != 0 {
		t.Errorf("without a port: %+v, ports %v; want the broker alone", r.Instances, r.MetricsPorts)
	}
	s.MetricsPorts = []int{9464}
	r := Kind{}.Render(s)
	if len(r.Instances) != 2 || r.Instances[0].Aside || !r.Instances[1].Aside || !slices.Equal(r.MetricsPorts, []int{9464}) {
		t.Fatalf("%+v, ports %v; want the broker and a process aside, and the port", r.Instances, r.MetricsPorts)
	}
	golden.Check(t, "statistics.json", r.Files[len(r.Files)-1].Content)
}
