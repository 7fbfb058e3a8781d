package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
	"github.com/insomniacslk/dhcp/rfc1035label"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/agent"
	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/routing"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// TestMain is also the program that becomes an app's agent, and the agent.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "run" {
		config, err := agentconfig.FromEnv()
		a, newErr := agent.New(config, agent.Options{})
		if err = errors.Join(err, newErr); err != nil {
			_, _ = io.WriteString(os.Stderr, "agent: "+err.Error()+"\n")
			os.Exit(1)
		}
		os.Exit(a.Run(context.Background(), agent.Signals()))
	}
	if len(os.Args) == 2 && os.Args[1] == AppCommand {
		_, _ = io.WriteString(os.Stderr, "agent: "+Enter().Error()+"\n")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func needRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
}

func TestAnAgentThatEndsBeforeItReadsWhatToRunIsAnErrorAtOnce(t *testing.T) {
	done := make(chan error, 1)
	go func() { done <- startWith(exec.Command("true"), make([]byte, 1<<20)) }() // more than a pipe holds
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("error %v; want that of a broken pipe", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the start still waits for a program that has ended")
	}
}

func TestPeersAreInTheFileOfHostsBesideWhatWasThere(t *testing.T) {
	hosts := []guestconfig.Host{{Address: "198.18.9.1", Names: []string{"veh-1"}}, {Address: "198.18.9.2", Names: []string{"hq", "veh-2"}}}
	const ours = "# vignette: begin\n198.18.9.1 veh-1\n198.18.9.2 hq veh-2\n# vignette: end\n"
	for name, c := range map[string]struct{ before, want string }{
		"nothing":                    {"", "127.0.0.1 localhost\n::1 localhost\n" + ours},
		"what others wrote":          {"127.0.0.1 localhost\n10.0.0.9 mirror # of Debian", "127.0.0.1 localhost\n10.0.0.9 mirror # of Debian\n" + ours},
		"another boot's":             {"127.0.0.1 localhost\n# vignette: begin\n1.2.3.4 old\n# vignette: end\n::1 ip6\n", "127.0.0.1 localhost\n::1 ip6\n" + ours},
		"its own name by Debian":     {"127.0.0.1 localhost\n127.0.1.1\tveh-1\n", "127.0.0.1 localhost\n" + ours},
		"its own name by cloud-init": {"127.0.1.1 veh-1.localdomain veh-1\n127.0.0.1 localhost\n127.0.1.1 veh-1 veh-1\n", "127.0.0.1 localhost\n" + ours},
		"another's of its beginning": {"127.0.0.1 localhost\n127.0.1.1 veh-10 veh-1x.lan\n", "127.0.0.1 localhost\n127.0.1.1 veh-10 veh-1x.lan\n" + ours},
		"its own name among more":    {"127.0.0.1 localhost veh-1\n", "127.0.0.1 localhost veh-1\n" + ours},
	} {
		t.Run(name, func(t *testing.T) {
			got := hostsWith(c.before, hosts, "veh-1")
			if got != c.want {
				t.Errorf("%q; want %q", got, c.want)
			}
			if again := hostsWith(got, hosts, "veh-1"); again != got {
				t.Errorf("the second time %q; want %q", again, got)
			}
		})
	}
}

func TestTheImageWaitsForTheDiskWithThePrograms(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	programs := t.TempDir()
	for name, script := range map[string]string{
		"findfs": `echo >> "$0.asked"; [ $(wc -l < "$0.asked") -gt 2 ] && echo /dev/vdc`,
		"mount":  `[ "$3" = /dev/vdc ] && printf '#!/bin/sh\necho "$@"\n' > "$4/agent" && chmod +x "$4/agent"`,
	} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	const boot = `mount -t tmpfs tmpfs /run && PATH="$0:$PATH" exec sh ../../images/guest/system/usr/lib/vignette/guest`
	said, err := exec.Command("unshare", "--mount", "sh", "-c", boot, programs).CombinedOutput()
	if want := "guest --tools /run/vignette/tools\n"; err != nil || string(said) != want {
		t.Errorf("%q, %v; want the agent with %q", said, err, want)
	}
}

func TestDisksAreFoundByTheirLabels(t *testing.T) {
	dir := t.TempDir()
	iso := make([]byte, 20*2048)
	copy(iso[isoAt:], "\x01CD001\x01")
	copy(iso[isoAt+isoLabelAt:], "vignette                        ")
	ext := make([]byte, 8192)
	copy(ext[extAt+extMagicAt:], "\x53\xef")
	copy(ext[extAt+extLabelAt:], "vgtools")
	for name, content := range map[string][]byte{"vda": make([]byte, 65536), "vdb": iso, "vdc": ext, "vdd": nil, "vde": []byte("short")} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "class-"+name), 0o700), os.WriteFile(filepath.Join(dir, name), content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	class := filepath.Join(dir, "class")
	if err := os.Mkdir(class, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vda", "vdb", "vdc", "vdd", "vde", "gone"} {
		if err := os.Mkdir(filepath.Join(class, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for label, want := range map[string]string{"vignette": "vdb iso9660", "vgtools": "vdc ext4", "cidata": ". "} {
		device, kind := findDisk(class, dir, label)
		if got := filepath.Base(device) + " " + kind; got != want {
			t.Errorf("%s: %q; want %q", label, got, want)
		}
	}
}

// fakeClockServer is a server whose clock is behind the machine's, at the end of paths that take their time.
type fakeClockServer struct {
	realtime     int64
	behind       int64
	there, thine []time.Duration
	exchange     int
	fail         error
	stepped      []time.Duration
	slewed       []time.Duration
}

func (p *fakeClockServer) now() int64 { return p.realtime }

func (p *fakeClockServer) Clock(context.Context) (runapi.ClockReading, error) {
	i := p.exchange % len(p.there)
	p.exchange++
	p.realtime += p.there[i].Nanoseconds()
	reading := runapi.ClockReading{ReceivedNanoseconds: p.realtime - p.behind}
	p.realtime += 1000
	reading.SentNanoseconds = p.realtime - p.behind
	p.realtime += p.thine[i].Nanoseconds()
	return reading, p.fail
}

func (p *fakeClockServer) step(by time.Duration) error {
	p.stepped = append(p.stepped, by)
	p.realtime += by.Nanoseconds()
	p.behind += by.Nanoseconds()
	return nil
}

func (p *fakeClockServer) slew(by time.Duration) error { p.slewed = append(p.slewed, by); return nil }

func keeperOf(t *testing.T, p *fakeClockServer) *clockKeeper {
	p.realtime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano()
	return &clockKeeper{server: p, file: filepath.Join(t.TempDir(), "clock.json"), log: quiet(), adjust: p, realtime: p.now}
}

func TestTheShortestExchangeGivesTheClocksOffset(t *testing.T) {
	ms := func(values ...time.Duration) []time.Duration {
		for i := range values {
			values[i] *= time.Millisecond
		}
		return values
	}
	for name, p := range map[string]*fakeClockServer{
		"even paths":             {behind: 5e6, there: ms(2), thine: ms(2)},
		"one that is short":      {behind: -3e9, there: ms(50, 2, 30), thine: ms(1, 2, 70)},
		"uneven paths":           {behind: 40e6, there: ms(9), thine: ms(1)},
		"half a century between": {behind: 50 * 365 * 24 * 3600e9, there: ms(2), thine: ms(3)},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := keeperOf(t, p).measure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if wrong := (m.offset - time.Duration(p.behind)).Abs(); wrong > m.uncertainty+time.Nanosecond {
				t.Errorf("offset %v for %v, wrong by %v; says it is known within %v", m.offset, time.Duration(p.behind), wrong, m.uncertainty)
			}
			if m.uncertainty > 6*time.Millisecond {
				t.Errorf("known within %v; want half the shortest round trip", m.uncertainty)
			}
		})
	}
}

func TestAClockIsSetOnceAndSlewedAfterwards(t *testing.T) {
	p := &fakeClockServer{behind: -7 * 60e9, there: []time.Duration{time.Millisecond}, thine: []time.Duration{time.Millisecond}}
	k := keeperOf(t, p)
	if err := k.set(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.stepped, []time.Duration{7 * time.Minute}) || !slices.Equal(p.slewed, []time.Duration{0}) {
		t.Fatalf("stepped by %v, slewed by %v; want 7m0s, and a look at what is left", p.stepped, p.slewed)
	}
	p.behind = 20e6
	if err := k.correct(t.Context()); err != nil || p.slewed[1] != -20*time.Millisecond || len(p.stepped) != 1 {
		t.Errorf("20 ms ahead: stepped by %v, slewed by %v, %v; want a slew of -20ms", p.stepped, p.slewed, err)
	}
	p.behind = 2e9
	if err := k.correct(t.Context()); err != nil || len(p.stepped) != 2 || p.stepped[1] != -2*time.Second {
		t.Errorf("2 s ahead, as after a pause: stepped by %v, %v; want -2s", p.stepped, err)
	}
	if k.state.SetSeconds != 420 || k.state.WorstOffsetSeconds != 2 || k.state.Measurements != 3 || k.state.WorstUncertaintySeconds != 0.001 {
		t.Errorf("%+v; want what was measured", k.state)
	}
	if text, err := os.ReadFile(k.file); err != nil || !strings.Contains(string(text), `"worstOffsetSeconds":2,`) {
		t.Errorf("for the agents: %s, %v", text, err)
	}
}

func TestAClockThatMayBeRightIsNotStepped(t *testing.T) {
	p := &fakeClockServer{there: []time.Duration{600 * time.Millisecond}, thine: []time.Duration{0}} // on a busy host
	k := keeperOf(t, p)
	if err := k.correct(t.Context()); err != nil || len(p.stepped) > 0 || len(p.slewed) != 1 {
		t.Errorf("a right clock, 0.3 s off within 0.3 s as measured: stepped by %v, slewed by %v, %v; want a slew", p.stepped, p.slewed, err)
	}
	p.behind = 2e9
	if err := k.correct(t.Context()); err != nil || len(p.stepped) != 1 {
		t.Errorf("2 s off: stepped by %v, %v; want a step", p.stepped, err)
	}
}

func TestNetworksOfOneProtocolAreOneRouter(t *testing.T) {
	olsr := func(hello string) *v1alpha1.Routing {
		d := v1alpha1.Duration(hello)
		return &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: &d, Metric: v1alpha1.MetricDAT}
	}
	radio := func(name string, primary bool, r *v1alpha1.Routing, index int) radioLink {
		return radioLink{guestconfig.Interface{Name: name, Address: "198.18.9.1/24", MTU: 1500, Primary: primary, Routing: r, Seed: int64(index)}, index}
	}
	domains := domainsOf([]radioLink{radio("none", true, nil, 6), radio("z", false, olsr("1s"), 5), radio("a", false, olsr("3s"), 4),
		radio("fixed", false, &v1alpha1.Routing{Protocol: v1alpha1.RoutingStatic}, 7), radio("b", false, &v1alpha1.Routing{Protocol: v1alpha1.RoutingBabel}, 8)})
	if len(domains) != 2 {
		t.Fatalf("%+v; want one of olsrv2 and one of babel", domains)
	}
	names := func(c routing.Config) (names []string) {
		for _, i := range c.Interfaces {
			names = append(names, i.Name)
		}
		return names
	}
	if d := domains[0]; !slices.Equal(names(d), []string{"z", "a"}) || d.Seed != 5 || d.Interfaces[1].Index != 4 {
		t.Errorf("%+v; want the networks in the order of the node", d)
	} else if d.Interfaces[0].Hello != time.Second || d.Interfaces[1].Hello != 3*time.Second {
		t.Errorf("HELLOs every %v and %v; want those of each network, 1 s and 3 s", d.Interfaces[0].Hello, d.Interfaces[1].Hello)
	}
	if d := domains[1]; !slices.Equal(names(d), []string{"b"}) {
		t.Errorf("%+v; want b alone", d)
	}
}

// inNamespace runs f in a network namespace of its own, on a thread that ends with it.
func inNamespace(t *testing.T, f func()) {
	needRoot(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("namespace: %v", err)
			return
		}
		f()
	}()
	<-done
}

func TestARadioIsSetUpAsInAPod(t *testing.T) {
	inNamespace(t, func() {
		pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth7", HardwareAddr: []byte{2, 2, 0, 0, 0, 1}}, PeerName: "peer"}
		if err := netlink.LinkAdd(pair); err != nil {
			t.Error(err)
			return
		}
		peer, err := netlink.LinkByName("peer")
		if err == nil {
			err = errors.Join(netlink.LinkSetUp(peer), netlink.LinkSetUp(pair))
		}
		address, _ := netlink.ParseAddr("192.0.2.9/24")
		if err = errors.Join(err, netlink.AddrAdd(pair, address)); err != nil { // of a machine that had set it up
			t.Error(err)
			return
		}
		index, err := setUpRadio(t.Context(), guestconfig.Interface{Name: "vhf", MAC: "02:02:00:00:00:01", Address: "198.18.9.1/24", MTU: 1400, Primary: true,
			Routes: []v1alpha1.MemberRoute{{To: "198.18.77.0/24", Via: "198.18.9.2"}}})
		if err != nil {
			t.Error(err)
			return
		}
		link, err := netlink.LinkByName("vhf")
		if err != nil || link.Attrs().Index != index || link.Attrs().MTU != 1400 {
			t.Errorf("%+v, %v; want vhf with MTU 1400", link, err)
			return
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
		if err != nil || len(addresses) != 1 || addresses[0].IPNet.String() != "198.18.9.1/24" {
			t.Errorf("addresses %v, %v; want 198.18.9.1/24 alone", addresses, err)
		}
		routes, err := netlink.RouteList(link, netlink.FAMILY_V4)
		var found []string
		for _, r := range routes {
			found = append(found, r.Dst.String())
		}
		for _, want := range []string{"198.18.9.0/24", "224.0.0.0/4", "255.255.255.255/32", "198.18.77.0/24"} {
			if !slices.Contains(found, want) {
				t.Errorf("routes %v, %v; want one to %s", found, err, want)
			}
		}
		if isManagement(link, []guestconfig.Interface{{MAC: "02:02:00:00:00:01"}}) || !isManagement(peer, []guestconfig.Interface{{MAC: "02:02:00:00:00:01"}}) {
			t.Error("the radio is taken for the management interface, or the other one is not")
		}
	})
}

func TestRadiosMayHaveTheNamesThatTheKernelGaveToOthers(t *testing.T) {
	inNamespace(t, func() {
		g := &guest{log: quiet()}
		for n, name := range []string{"eth2", "eth1", "wan"} { // of the networks
			mac := net.HardwareAddr{2, 2, 0, 0, byte(n), 1}
			if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("eth", n+1), HardwareAddr: mac}, PeerName: fmt.Sprint("peer", n)}); err != nil {
				t.Error(err)
				return
			}
			g.config.Interfaces = append(g.config.Interfaces, guestconfig.Interface{Name: name, MAC: mac.String(), Address: fmt.Sprintf("198.18.%d.1/24", n), MTU: 1400})
		}
		for _, start := range []string{"the first", "another"} {
			radios, err := g.setUpRadios(t.Context())
			if err != nil {
				t.Errorf("%s start of the agent: %v", start, err)
				return
			}
			for _, r := range radios {
				if link, err := netlink.LinkByName(r.Name); err != nil || link.Attrs().HardwareAddr.String() != r.MAC || link.Attrs().Index != r.index {
					t.Errorf("%s start of the agent: %s is %+v, %v; want the radio %s", start, r.Name, link, err, r.MAC)
				}
			}
		}
	})
}

// guestWith is a guest in a folder, with files in it.
func guestWith(t *testing.T, dir string, files map[string]string) *guest {
	t.Helper()
	for _, folder := range []string{"config", "tools/traffic", "tools/zeromq", "run/clock", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &guest{log: quiet(), configDir: filepath.Join(dir, "config"), toolsDir: filepath.Join(dir, "tools"), runDir: filepath.Join(dir, "run"), stateDir: filepath.Join(dir, "state"),
		config: guestconfig.Config{Node: "veh-1", RunUID: "run-1"}}
}

func TestOnlyRootMayReadTheFolderWithTheToken(t *testing.T) {
	dir := t.TempDir()
	g := guestWith(t, dir, map[string]string{"config/" + guestconfig.TokenFile: "secret", "config/" + guestconfig.ConfigFile: `{"node":"veh-1","server":"https://server","runUID":"run-1"}`})
	if err := g.open(Options{ConfigDir: filepath.Join(dir, "config"), ToolsDir: filepath.Join(dir, "tools")}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(g.runDir)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("a folder that was there with 0755 has %#o; want 0700", mode)
	}
}

// TestAnAppSeesWhatAContainerHas with a script in the agent's place.
func TestAnAppSeesWhatAContainerHas(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	const script = `#!/bin/sh
say() { echo "agent: $*" >&2; }
say args $*, user $(id -u):$(id -g) groups $(id -G), process $$; say $(grep CapBnd /proc/self/status) $(grep CapEff /proc/self/status) $(grep NoNewPrivs /proc/self/status)
say $(cat /vignette/token/token) $(cat /traffic) $(cat /vignette/security/key) $(cat /srv/vignette-test/deep/config) $WHO $VIGNETTE_NODE
touch /vignette/run/x /vignette/log/x /tmp/x && say folders are ours
echo y > /srv/vignette-test/deep/config 2>/dev/null || say files are not
ls ` + "%DIR%" + `/state/run-1/bft/token >/dev/null 2>&1 || say nothing of the machine is ours
say $VIGNETTE_AGENT
`
	files := map[string]string{"config/token": "secret", "tools/traffic/traffic": "program", "tools/agent": strings.ReplaceAll(script, "%DIR%", dir)}
	t.Cleanup(func() { os.RemoveAll("/srv/vignette-test") })
	g := guestWith(t, dir, files)
	command, output, err := g.start(guestconfig.App{Agent: agentconfig.Config{App: "bft", Node: "veh-1"}, Tools: "traffic", Env: map[string]string{"WHO": "vera"},
		Files: []guestconfig.File{{Path: "/vignette/security/key", Content: []byte("key")}, {Path: "/srv/vignette-test/deep/config", Content: []byte("given")}}})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(output)
	if err := command.Wait(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	for _, want := range []string{"args run, user 65532:65532 groups 65532, process 1\n", "CapBnd: 0000000000000000 CapEff: 0000000000000000 NoNewPrivs: 1\n",
		"agent: secret program key given vera veh-1\n", "folders are ours\n", "files are not\n", "nothing of the machine is ours\n", `"app":"bft"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the app saw\n%s; want %q", text, want)
		}
	}
}

func TestAnAppsOwnVariablesReplaceTheMachines(t *testing.T) {
	own := map[string]string{"PATH": "/opt/tracker/bin", "HOME": "/var/tracker", "LEVEL": "debug"}
	environment, err := appSpec{App: guestconfig.App{Agent: agentconfig.Config{App: "bft", Node: "veh-1"}, Env: own}}.environment()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		got[name] = append(got[name], value)
	}
	for name, want := range map[string]string{"PATH": own["PATH"], "HOME": own["HOME"], "LEVEL": "debug", "HOSTNAME": "veh-1", "VIGNETTE_NODE": "veh-1"} {
		if !slices.Equal(got[name], []string{want}) {
			t.Errorf("%s is %q; want %q alone", name, got[name], want)
		}
	}
}

func TestAFileOfAnAppMayLieBehindALinkOfTheMachine(t *testing.T) {
	needRoot(t)
	folder, err := os.MkdirTemp("/srv", "vignette-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	link := folder + "/link" // absolute, as Debian's /var/run
	if err := errors.Join(os.Mkdir(folder+"/place", 0o755), os.Chmod(folder, 0o755), os.Symlink(folder+"/place", link)); err != nil {
		t.Fatal(err)
	}
	g := guestWith(t, t.TempDir(), map[string]string{"config/token": "secret", "tools/agent": "#!/bin/sh\necho agent: has $(cat " + link + "/config) >&2\n"})
	command, output, err := g.start(guestconfig.App{Agent: agentconfig.Config{App: "bft", Node: "veh-1"}, Files: []guestconfig.File{{Path: link + "/config", Content: []byte("given")}}})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(output)
	if err := command.Wait(); err != nil || string(text) != "agent: has given\n" {
		t.Errorf("%v: the app saw %q; want its file's content", err, text)
	}
}

func TestAnAppHasTheRightToRawSocketsOnlyIfItIsGivenIt(t *testing.T) {
	needRoot(t)
	const script = "#!/bin/sh\nsh -c 'echo agent: user $(id -u) $(grep CapPrm /proc/self/status) $(grep CapEff /proc/self/status) $(grep CapBnd /proc/self/status)' >&2\n"
	for rawSockets, want := range map[bool]string{
		false: "user 65532 CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000\n",
		true:  "user 65532 CapPrm: 0000000000002000 CapEff: 0000000000002000 CapBnd: 0000000000002000\n", // capability 13
	} {
		g := guestWith(t, t.TempDir(), map[string]string{"config/token": "secret", "tools/agent": script})
		command, output, err := g.start(guestconfig.App{Agent: agentconfig.Config{App: "broker", Node: "veh-1"}, Tools: "zeromq", RawSockets: rawSockets})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(output)
		if err := command.Wait(); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("raw sockets %t: %v, %s; want %s", rawSockets, err, text, want)
		}
	}
}

func TestAnAgentsOutputShowsWhetherItFinished(t *testing.T) {
	g := &guest{log: quiet()}
	words := g.readOutput("bft", strings.NewReader("output\nagent: ready\nagent: "+strings.Repeat("x", 100000)+"\nmore\nagent: b\nagent: finished: not carried out\n"))
	if !words.finished || len(words.last) != maxLastLines || words.last[1] != "b" {
		t.Errorf("finished %v, %d lines kept; want yes and the last %d", words.finished, len(words.last), maxLastLines)
	}
}

func TestARebootDuringARunIsDetected(t *testing.T) {
	dir := t.TempDir()
	boot := filepath.Join(dir, "boot_id")
	for _, step := range []struct {
		what, run, boot string
		want, starts    bool
	}{
		{"the first boot", "run-1", "a", false, false}, {"another before any app", "run-1", "b", false, true}, {"agent guest started again", "run-1", "b", false, true},
		{"a boot after apps", "run-1", "c", true, false}, {"and another", "run-1", "d", true, false}, {"another run on the same disk", "run-2", "d", false, true},
	} {
		if err := os.WriteFile(boot, []byte(step.boot), 0o600); err != nil {
			t.Fatal(err)
		}
		b := bootRecord{filepath.Join(dir, step.run, ".boot"), boot}
		if got, err := b.restarted(); err != nil || got != step.want {
			t.Errorf("%s: %v, %v; want %v", step.what, got, err, step.want)
		}
		if step.starts {
			if err := b.record(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// serveLease answers as KubeVirt's launcher does.
func serveLease(conn net.PacketConn, peer net.Addr, m *dhcpv4.DHCPv4) {
	answer, err := dhcpv4.NewReplyFromRequest(m, dhcpv4.WithYourIP(net.IPv4(10, 0, 2, 2)), dhcpv4.WithNetmask(net.CIDRMask(24, 32)), dhcpv4.WithLeaseTime(3600),
		dhcpv4.WithRouter(net.IPv4(10, 0, 2, 1)), dhcpv4.WithServerIP(net.IPv4(10, 0, 2, 1)), dhcpv4.WithDNS(net.IPv4(10, 96, 0, 10)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 2, 1))), dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, []byte{1450 >> 8, 1450 & 0xff}),
		dhcpv4.WithOption(dhcpv4.OptDomainSearch(&rfc1035label.Labels{Labels: []string{"team.svc.cluster.local", "cluster.local"}})))
	if err != nil {
		return
	}
	answer.UpdateOption(dhcpv4.OptMessageType(map[dhcpv4.MessageType]dhcpv4.MessageType{dhcpv4.MessageTypeDiscover: dhcpv4.MessageTypeOffer,
		dhcpv4.MessageTypeRequest: dhcpv4.MessageTypeAck}[m.MessageType()]))
	_, _ = conn.WriteTo(answer.ToBytes(), peer)
}

func TestTheManagementInterfaceIsSetUpByDHCP(t *testing.T) {
	inNamespace(t, func() {
		err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "launcher"})
		link, linkErr := netlink.LinkByName("eth0")
		launcher, launcherErr := netlink.LinkByName("launcher")
		if err = errors.Join(err, linkErr, launcherErr); err != nil {
			t.Error(err)
			return
		}
		address, _ := netlink.ParseAddr("10.0.2.1/24")
		if err := errors.Join(netlink.AddrAdd(launcher, address), netlink.LinkSetUp(launcher), netlink.LinkSetUp(link)); err != nil {
			t.Error(err)
			return
		}
		server, err := server4.NewServer("launcher", nil, serveLease)
		if err != nil {
			t.Error(err)
			return
		}
		defer server.Close()
		go func() { _ = server.Serve() }()
		g := &guest{log: quiet(), resolvConf: filepath.Join(t.TempDir(), "resolv.conf")}
		lease, err := g.obtain(t.Context(), link, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := g.obtain(t.Context(), link, lease); err != nil {
			t.Errorf("renewal: %v", err)
		}
		link, _ = netlink.LinkByName("eth0")
		addresses, _ := netlink.AddrList(link, netlink.FAMILY_V4)
		gateways, _ := podnet.Gateways()
		if len(addresses) != 1 || addresses[0].IPNet.String() != "10.0.2.2/24" || len(gateways) != 1 || !gateways[0].Equal(net.IPv4(10, 0, 2, 1)) || link.Attrs().MTU != 1450 {
			t.Errorf("addresses %v, gateways %v, MTU %d; want 10.0.2.2/24, 10.0.2.1 and 1450", addresses, gateways, link.Attrs().MTU)
		}
		text, _ := os.ReadFile(g.resolvConf)
		if want := "nameserver 10.96.0.10\nsearch team.svc.cluster.local cluster.local\n"; string(text) != want {
			t.Errorf("resolv.conf %q; want %q", text, want)
		}
		if servers := podnet.NameServers(strings.NewReader(string(text))); !slices.Equal(servers, []netip.Addr{netip.MustParseAddr("10.96.0.10")}) {
			t.Errorf("name servers %v", servers)
		}
	})
}
