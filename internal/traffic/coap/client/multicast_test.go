package client

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"

	"vignette.dev/vignette/internal/traffic/request"
)

const (
	roleEnv = "COAP_TEST_ROLE"
	group   = "224.0.1.187"
	near    = "198.18.9.1"
	far     = "198.18.9.2"
	nobody  = "198.18.9.77"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// gather asks a group, and calls each with every response until ctx ends. It needs no peer, whose requests to groups have no responses.
func gather(ctx context.Context, s socket, to, path string, each func(at time.Time, r request.Response)) error {
	m := message.Message{Type: message.NonConfirmable, Code: codes.GET, MessageID: 1, Token: message.Token("ask")}
	if err := addTarget(&m, path); err != nil {
		return err
	}
	datagram, err := format(m)
	if err != nil {
		return err
	}
	if err := s.write(datagram, origin{remote: netip.MustParseAddrPort(to)}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = s.close() })()
	for b := make([]byte, maxDatagram); ; {
		n, _, err := s.read(b)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if m, err := parse(bytes.Clone(b[:n])); err == nil && isResponse(m.Code) && string(m.Token) == "ask" {
			each(time.Now(), responseOf(m))
		}
	}
}

// askGroup prints the first response of the group.
func askGroup() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return err
	}
	return gather(ctx, groupSocket{conn}, group+":5683", "/state", func(_ time.Time, r request.Response) {
		if ctx.Err() == nil {
			fmt.Printf("response %d %s\n", r.Status, r.Body)
		}
		cancel()
	})
}

// play is a peer in a namespace of the test: a server, or a client that sends to the group. Or it asks the group.
func play(role string) int {
	if role == "ask" { // without a server of its own, which would answer too
		if err := askGroup(); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	}
	setup := request.Setup{Listen: ":5683", Interface: "wan", MulticastGroups: []string{group}, TimeoutSeconds: 10, Receipt: true}
	setup.CoAP.LeisureSeconds = 0.5
	setup.Handler = func(at time.Time, r request.Request) request.Response {
		if r.Body != nil {
			fmt.Printf("received %d\n", len(r.Body))
		}
		return echo(at, r)
	}
	opened := Open
	if role == "no neighbour by TCP" {
		opened, setup.MulticastGroups, setup.Interface = OpenTCP, nil, ""
	}
	p, err := opened(setup)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer p.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	switch role {
	case "serve":
		fmt.Println("ready")
		<-ctx.Done()
	case "send":
		for _, n := range []int{100, 20_000} { // the longer one in fragments
			if _, _, err := p.Do(ctx, group+":5683", request.Request{Path: "/messages", Body: body(n)}, request.Events{}); err != nil {
				fmt.Println(err)
				return 1
			}
		}
		time.Sleep(time.Second)
	case "no neighbour", "no neighbour by TCP":
		_, _, err = p.Do(ctx, nobody+":5683", request.Request{Path: "/"}, request.Events{})
	case "no route":
		_, _, err = p.Do(ctx, "203.0.113.1:5683", request.Request{Path: "/"}, request.Events{})
	}
	if err != nil {
		fmt.Println(err)
	}
	return 0
}

// twoNamespaces are two nodes on one network.
func twoNamespaces(t *testing.T) (a, b []string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip (iproute2)")
	}
	names := []string{fmt.Sprintf("vgc%da", os.Getpid()), fmt.Sprintf("vgc%db", os.Getpid())}
	must := func(arguments ...string) {
		t.Helper()
		if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
			t.Skipf("ip %v: %v: %s", arguments, err, out)
		}
	}
	for _, name := range names {
		must("netns", "add", name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	}
	must("-n", names[0], "link", "add", "wan", "type", "veth", "peer", "name", "wan", "netns", names[1])
	for i, name := range names {
		must("-n", name, "addr", "add", []string{near, far}[i]+"/24", "dev", "wan")
		must("-n", name, "link", "set", "wan", "up")
		must("-n", name, "link", "set", "lo", "up") // over it the kernel reports unreachable addresses
		must("-n", name, "route", "add", "224.0.0.0/4", "dev", "wan")
	}
	return []string{"ip", "netns", "exec", names[0]}, []string{"ip", "netns", "exec", names[1]}
}

// ours is the command of this test's program in a role.
func ours(inside []string, role string) []string {
	return append(append([]string{}, inside...), "env", roleEnv+"="+role, os.Args[0])
}

func inside(namespace []string, command ...string) []string {
	return append(append([]string{}, namespace...), command...)
}

func TestMulticastReachesAGroupOnItsInterface(t *testing.T) {
	a, b := twoNamespaces(t)
	server := start(t, "ready", ours(b, "serve")...)
	if out := run(t, ours(a, "send")...); out != "" { // not even by its own server
		t.Errorf("the sender says %q", out)
	}
	says(t, server, "received 100\n")
	says(t, server, "received 20000\n")
	if got := run(t, ours(a, "ask")...); got != "response 200 state of /state\n" {
		t.Errorf("the group answers %q", got)
	}
	if got := run(t, ours(a, "no route")...); !strings.HasPrefix(got, "unreachable") {
		t.Errorf("an address without a route: %q", got)
	}
}

func TestAnAddressThatNobodyHasOnAWorkingLinkIsUnreachableByTCPOnly(t *testing.T) {
	a, _ := twoNamespaces(t)
	for role, want := range map[string]string{
		"no neighbour by TCP": "unreachable: no way to the host\n",
		"no neighbour":        "timeout: no response in time\n", // the kernel tells UDP of ports only, so that retransmissions go on
	} {
		if got := run(t, ours(a, role)...); got != want {
			t.Errorf("%s: %q; want %q", role, got, want)
		}
	}
}

func TestMulticastWithLibcoap(t *testing.T) {
	a, b := twoNamespaces(t)
	client, program := libcoap(t, "coap-client"), libcoap(t, "coap-server")
	ourServer := start(t, "ready", ours(b, "serve")...)
	if got := run(t, inside(a, client, "-N", "-B", "3", "-m", "get", "coap://"+group+"/state")...); !strings.Contains(got, "state of /state") {
		t.Errorf("our server answers coap-client %q", got)
	}
	run(t, inside(a, client, "-N", "-B", "1", "-m", "post", "-e", "0123456789", "coap://"+group+"/messages")...)
	says(t, ourServer, "received 10\n")

	a, b = twoMore(t)
	theirs := start(t, "created TCP", inside(b, program, "-v", "7", "-g", group, "-G", "wan", "-d", "10")...)
	run(t, ours(a, "send")...)
	says(t, theirs, "c:POST")
	says(t, theirs, "Uri-Path:messages")
}

// twoMore are two namespaces where the port is free again.
func twoMore(t *testing.T) (a, b []string) {
	t.Helper()
	for _, suffix := range []string{"a", "b"} {
		_ = exec.Command("ip", "netns", "del", fmt.Sprintf("vgc%d%s", os.Getpid(), suffix)).Run()
	}
	return twoNamespaces(t)
}

func TestMulticastWithCalifornium(t *testing.T) {
	a, b := twoNamespaces(t)
	program := californium(t)
	start(t, "ready", ours(b, "serve")...)
	if got := run(t, inside(a, append(program, "ask-group", near, "coap://"+group+"/state")...)...); got != "response 2.05 state of /state\n" {
		t.Errorf("our server answers Californium %q", got)
	}
	a, b = twoMore(t)
	theirs := start(t, "ready", inside(b, append(program, "serve-group", far, "5683", group, "wan")...)...)
	run(t, ours(a, "send")...)
	says(t, theirs, "received 100\n")
	if got := run(t, ours(a, "ask")...); got != "response 200 state of /state\n" {
		t.Errorf("Californium answers %q", got)
	}
}
