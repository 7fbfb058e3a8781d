package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/transport"
)

// listener collects what a client tells.
type listener struct {
	mu             sync.Mutex
	received, sent []string
	up             bool
	warnings       []string
	dropped        int
}

func (l *listener) events() transport.Events {
	note := func(to *[]string) func(time.Time, string, []byte) {
		return func(_ time.Time, topic string, payload []byte) {
			l.mu.Lock()
			defer l.mu.Unlock()
			*to = append(*to, topic+"="+string(payload))
		}
	}
	return transport.Events{Sent: note(&l.sent), Received: note(&l.received),
		Connection: func(up bool, _ string) { l.mu.Lock(); defer l.mu.Unlock(); l.up = up },
		Dropped:    func(n int) { l.mu.Lock(); defer l.mu.Unlock(); l.dropped += n }}
}

func (l *listener) warn(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warnings = append(l.warnings, text)
}

func (l *listener) got() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.received)
}

func (l *listener) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

func client(t *testing.T, config Config) (*Client, *listener) {
	t.Helper()
	l := &listener{}
	config.Warn = l.warn
	c, err := New(config, l.events())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	waitFor(t, "open sockets", l.isUp)
	return c, l
}

var waitFor = testtool.Eventually

// freeBroadcast is the loopback's broadcast address with a port of nobody.
func freeBroadcast(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return fmt.Sprintf("127.255.255.255:%d", c.LocalAddr().(*net.UDPAddr).Port)
}

func TestEveryClientOnAHostGetsEachBroadcastThatItsFiltersMatch(t *testing.T) {
	broadcast := freeBroadcast(t)
	sender, own := client(t, Config{Broadcast: broadcast, Interface: "lo", Filters: []string{"#"}})
	_, all := client(t, Config{Broadcast: broadcast, Interface: "lo", Filters: []string{"#"}})
	_, some := client(t, Config{Broadcast: broadcast, Filters: []string{"/PRT/+/location", "/PRT/#"}})
	for i := range 50 {
		topic := [...]string{"/PRT/a/location", "/NOR/a/location"}[i%2]
		if err := sender.Publish(topic, []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "50 messages at two, 25 at one", func() bool { return len(all.got()) == 50 && len(own.got()) == 50 && len(some.got()) == 25 })
	if got := some.got()[1]; got != "/PRT/a/location=2" {
		t.Errorf("second message %q; want the third that was sent", got)
	}
	if len(own.sent) != 50 {
		t.Errorf("told of %d sent messages; want 50", len(own.sent))
	}
}

func TestDatagramsThatAreNoMessagesAreIgnoredWithAWarning(t *testing.T) {
	broadcast := freeBroadcast(t)
	sender, l := client(t, Config{Broadcast: broadcast, Filters: []string{"#"}})
	raw, err := net.Dial("udp4", strings.Replace(broadcast, "127.255.255.255", "127.0.0.1", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	// Garbage; a ping of MQTT/UDP; then the reference implementation's form with a packet number and no signature.
	for _, datagram := range []string{"hello", "\xc0\x00", "\x30\x08\x00\x03a/bheyn\x04\x00\x00\x00\x07"} {
		if _, err := raw.Write([]byte(datagram)); err != nil {
			t.Fatal(err)
		}
	}
	if err := sender.Publish("end", nil); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the last message", func() bool { return slices.Contains(l.got(), "end=") })
	if got := l.got(); !slices.Equal(got, []string{"a/b=hey", "end="}) || len(l.warnings) != 1 {
		t.Errorf("received %q, warned %q; want a/b=hey and end=, one warning", got, l.warnings)
	}
}

// TestDatagramsAreThoseOfTheReference compares with what the reference's Python module sent: number 7, then signed too.
func TestDatagramsAreThoseOfTheReference(t *testing.T) {
	packet := "\x30\x08\x00\x03a/bhey"
	numbered := packet + "n\x04\x00\x00\x00\x07"
	signed := numbered + "s\x10\xfd\xa9\x10\x15\xea\xd4\x85y'\xe5wUBH\x92\x96"
	for key, want := range map[string]string{"": numbered, "signPassword": signed} {
		if got := string(appendTail([]byte(packet), 7, []byte(key))); got != want {
			t.Errorf("key %q: %q; want %q", key, got, want)
		}
	}
	if err := checkSignature([]byte(signed), len(packet), []byte("signPassword")); err != nil {
		t.Errorf("the reference's signature: %v", err)
	}
}

func TestMessagesOfAPublisherAreNumberedOneByOne(t *testing.T) {
	broadcast := freeBroadcast(t)
	raw, err := net.ListenPacket("udp4", broadcast)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	sender, _ := client(t, Config{Broadcast: broadcast, Interface: "lo"})
	datagram, numbers := make([]byte, 100), []uint32{}
	for range 3 {
		if err := sender.Publish("a", []byte("x")); err != nil {
			t.Fatal(err)
		}
		n, _, err := raw.ReadFrom(datagram)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, binary.BigEndian.Uint32(datagram[n-numberBytes:n]))
	}
	if numbers[1] != numbers[0]+1 || numbers[2] != numbers[1]+1 {
		t.Errorf("numbers %d; want each one more than the last", numbers)
	}
}

func TestASubscriberWithAKeyTakesOnlyWhatIsSignedWithIt(t *testing.T) {
	broadcast := freeBroadcast(t)
	_, l := client(t, Config{Broadcast: broadcast, Interface: "lo", Filters: []string{"#"}, SignatureKey: "ours"})
	_, all := client(t, Config{Broadcast: broadcast, Interface: "lo", Filters: []string{"#"}})
	for _, key := range []string{"", "theirs", "ours"} {
		sender, _ := client(t, Config{Broadcast: broadcast, Interface: "lo", SignatureKey: key})
		if err := sender.Publish("key", []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the signed message, and all three where there is no key", func() bool { return len(l.got()) > 0 && len(all.got()) == 3 })
	if got := l.got(); !slices.Equal(got, []string{"key=ours"}) || len(l.warnings) != 1 {
		t.Errorf("received %q, warned %q; want key=ours alone, and one warning", got, l.warnings)
	}
}

func TestTailsThatAreCutOrChangedHaveNoValidSignature(t *testing.T) {
	packet, key := []byte("\x30\x04\x00\x01ab"), []byte("ours")
	good := appendTail(slices.Clone(packet), 7, key)
	for cut := len(packet); cut < len(good); cut++ {
		if err := checkSignature(good[:cut], len(packet), key); err == nil {
			t.Errorf("accepted with %d of %d bytes", cut, len(good))
		}
	}
	for at := range good {
		changed := slices.Clone(good)
		changed[at] ^= 1
		if err := checkSignature(changed, len(packet), key); err == nil {
			t.Errorf("accepted with byte %d changed", at)
		}
	}
}

func TestWhatDoesNotFitIsRefusedByName(t *testing.T) {
	for want, c := range map[string]Config{
		"at most 65507": {Broadcast: "198.18.9.255:1883", Topic: "/x", PayloadBytes: 65500},
		"no +, # or":    {Broadcast: "198.18.9.255:1883", Topic: "/x/#"},
		"topic filter":  {Broadcast: "198.18.9.255:1883", Filters: []string{"#/a"}},
		"address:port":  {Broadcast: "somewhere:1883"},
	} {
		if _, err := New(c, transport.Events{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want an error with %q", c, err, want)
		}
	}
	largest := MaxDatagram - 1 - 3 - 2 - len("/x") - tailBytes(nil)
	if c, err := New(Config{Broadcast: "127.255.255.255:9", Topic: "/x", PayloadBytes: largest}, (&listener{}).events()); err != nil {
		t.Errorf("%d bytes just fit: %v", largest, err)
	} else {
		c.Close(context.Background())
	}
}

func TestAnInterfaceThatIsMissingIsWaitedForAndMessagesAreRefused(t *testing.T) {
	l := &listener{}
	c, err := New(Config{Broadcast: freeBroadcast(t), Interface: "nosuch0", Topic: "t", Warn: l.warn}, l.events())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if err := c.Publish("t", nil); !errors.Is(err, transport.ErrNotConnected) {
		t.Errorf("publish: %v; want %v", err, transport.ErrNotConnected)
	}
	if len(l.sent) != 0 {
		t.Errorf("told of sent %q", l.sent)
	}
}

func TestBroadcastsCrossFromNamespaceToNamespace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip (iproute2)")
	}
	a, b := fmt.Sprintf("vgt%da", os.Getpid()), fmt.Sprintf("vgt%db", os.Getpid())
	must := func(arguments ...string) {
		t.Helper()
		if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
			t.Skipf("ip %v: %v: %s", arguments, err, out)
		}
	}
	for _, name := range []string{a, b} {
		must("netns", "add", name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	}
	must("-n", a, "link", "add", "wan", "type", "veth", "peer", "name", "wan", "netns", b)
	for i, name := range []string{a, b} {
		must("-n", name, "addr", "add", fmt.Sprintf("198.18.9.%d/24", i+1), "broadcast", "198.18.9.255", "dev", "wan")
		must("-n", name, "link", "set", "wan", "up")
	}
	// One client in a, two in b; each ends well once it has heard two others.
	clients := map[string]*exec.Cmd{}
	for name, namespace := range map[string]string{"one": a, "two": b, "three": b} {
		c := exec.Command("ip", "netns", "exec", namespace, os.Args[0])
		c.Env = append(os.Environ(), roleEnv+"="+name)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		clients[name] = c
	}
	for name, c := range clients {
		if err := c.Wait(); err != nil {
			t.Errorf("client %s: %v; want it to hear both others", name, err)
		}
	}
}

const roleEnv = "MQTTUDP_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(beClient(role))
	}
	os.Exit(m.Run())
}

// beClient is a client without any privilege that says its name until it has heard two others.
func beClient(name string) int {
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(65532, 65532, 65532), syscall.Setresuid(65532, 65532, 65532)); err != nil {
		fmt.Println(err)
		return 1
	}
	l := &listener{}
	c, err := New(Config{Broadcast: "198.18.9.255:1883", Interface: "wan", Filters: []string{"#"}, Warn: l.warn}, l.events())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer c.Close(context.Background())
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		_ = c.Publish(name, nil) // refused until the sockets are open
		heard := map[string]bool{}
		for _, message := range l.got() {
			heard[message] = true
		}
		if len(heard) == 3 { // its own counts
			for range 20 { // the others may still need to hear this one
				_ = c.Publish(name, nil)
				time.Sleep(50 * time.Millisecond)
			}
			return 0
		}
	}
	fmt.Println(name, "heard", l.got(), "warned", l.warnings)
	return 1
}
