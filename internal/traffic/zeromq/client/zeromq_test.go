package client

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/traffic/zeromq"
	"vignette.dev/vignette/internal/traffic/zeromq/zmq"
	"vignette.dev/vignette/internal/trafficconfig"
)

func TestPrefixes(t *testing.T) {
	for filter, want := range map[string]string{
		"#": "", "+": "", "a/#": "a", "/a/#": "/a", "/#": "", "a/+/c": "a/", "a/+": "a/", "+/b": "", "/PRT/u/s/location": "/PRT/u/s/location",
	} {
		if got := Prefix(filter); got != want {
			t.Errorf("%s: %q; want %q", filter, got, want)
		}
	}
}

// TestEveryTopicThatAFilterMatchesBeginsWithItsPrefix uses random filters and topics of few different levels.
func TestEveryTopicThatAFilterMatchesBeginsWithItsPrefix(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	levels := func(of ...string) string {
		parts := make([]string, 1+random.IntN(4))
		for i := range parts {
			parts[i] = of[random.IntN(len(of))]
		}
		return strings.Join(parts, "/")
	}
	matched := 0
	for range 20_000 {
		filter, topic := levels("a", "b", "", "+"), levels("a", "b", "", "ab")
		if random.IntN(2) == 0 {
			filter += "/#"
		}
		if mqtttopic.ValidFilter(filter) != nil || !mqtttopic.Match(filter, topic) {
			continue
		}
		matched++
		if !strings.HasPrefix(topic, Prefix(filter)) {
			t.Errorf("filter %q matches topic %q, which does not begin with %q", filter, topic, Prefix(filter))
		}
	}
	if matched < 500 {
		t.Errorf("%d matches; want 500 at least, or nothing is tested", matched)
	}
}

func TestFramesOfAMessageCutShortDoNotHideTheNext(t *testing.T) {
	frames := func(texts ...string) (f [][]byte) {
		for _, text := range texts {
			f = append(f, []byte(text))
		}
		return f
	}
	for name, c := range map[string]struct {
		transport      string
		frames         [][]byte
		topic, content string
		fails          bool
	}{
		"topic and content":                         {zeromq.TransportTCP, frames("/a", "x"), "/a", "x", false},
		"content may be empty":                      {zeromq.TransportTCP, frames("/a", ""), "/a", "", false},
		"one frame is no message":                   {zeromq.TransportTCP, frames("/a"), "", "", true},
		"three frames over TCP are somebody else's": {zeromq.TransportTCP, frames("/a", "x", "y"), "", "", true},
		"over PGM the first may be a leftover":      {zeromq.TransportPGM, frames("/lost", "/a", "x"), "/a", "x", false},
		"a topic with a wildcard is none":           {zeromq.TransportPGM, frames("/a/#", "x"), "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			client := &Client{setup: transport.Setup{Config: trafficconfig.Config{Transport: c.transport}}}
			topic, content, err := client.parse(c.frames)
			if (err != nil) != c.fails || !c.fails && (topic != c.topic || string(content) != c.content) {
				t.Errorf("%q %q, %v", topic, content, err)
			}
		})
	}
}

func TestPGMEndpointsAndTheirWindow(t *testing.T) {
	local := netip.MustParseAddr("198.18.9.1")
	for transport, want := range map[string]string{zeromq.TransportPGM: "epgm://198.18.9.1;239.255.9.1:5601", zeromq.TransportPGMRaw: "pgm://198.18.9.1;239.255.9.1:5601"} {
		if got, err := PGMEndpoint(transport, local, "239.255.9.1:5601"); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", transport, got, err, want)
		}
	}
	for _, bad := range []string{"198.18.9.2:5601", "239.255.9.1", "239.255.9.1:0", "[ff02::1]:5601"} {
		if got, err := PGMEndpoint(zeromq.TransportPGM, local, bad); err == nil || !strings.Contains(err.Error(), "want an IPv4 multicast address:port") {
			t.Errorf("%s: %s, %v; want an error", bad, got, err)
		}
	}
	if _, _, err := PGMEndpoints(zeromq.TransportPGM, "nosuch0", zeromq.PGM{}); err == nil || err.Error() != `interface "nosuch0": want one of this node` {
		t.Errorf("%v; want an error that names the interface", err)
	}
	for rate, want := range map[int]int{12: 60_000, 1000: 60_000, 10_000: 13_421, 100_000: 10_000} {
		options := map[zmq.Option]int{}
		PGMOptions(options, rate)
		if got := options[zmq.RecoveryInterval]; got != want || options[zmq.Rate] != rate {
			t.Errorf("at %d kbit/s what was sent is kept for %d ms; want %d", rate, got, want)
		}
	}
}

func TestWhatWaitsIsBoundedInMessagesAndInBytes(t *testing.T) {
	for bytes, want := range map[int]int{0: 1000, 255: 1000, 100_000: 167, 50 << 20: 16} {
		if got := highWater(bytes); got != want {
			t.Errorf("%d messages of %d bytes may wait; want %d", got, bytes, want)
		}
	}
}

func TestAFullQueueHasNoRoom(t *testing.T) {
	library, err := zmq.Open()
	if err != nil {
		t.Skipf("libzmq is not installed (Debian package libzmq5): %v", err)
	}
	publisher, err := library.Socket(zmq.XPUB)
	if err != nil {
		t.Fatal(err)
	}
	subscriber, err := library.Socket(zmq.SUB)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		publisher.Close()
		subscriber.Close()
		if err := library.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := errors.Join(publisher.SetAll(map[zmq.Option]int{zmq.SendHighWater: 2, zmq.NoDrop: 1}), subscriber.Set(zmq.ReceiveHighWater, 2),
		publisher.Bind("inproc://full"), subscriber.Connect("inproc://full"), subscriber.Subscribe(""), publisher.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := publisher.Receive(); err != nil { // the subscription
		t.Fatal(err)
	}
	c := &Client{publisher: publisher, setup: transport.Setup{Warn: func(string) {}}, events: transport.Events{Sent: func(time.Time, string, []byte) {}}}
	for range 100 {
		if err = c.Publish("t", nil); err != nil {
			break
		}
	}
	if !errors.Is(err, transport.ErrNoRoom) {
		t.Errorf("%v; want %v", err, transport.ErrNoRoom)
	}
}
