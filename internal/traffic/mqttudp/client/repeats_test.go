package client

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

// lossy passes datagrams of one broadcast address on to another one: those for which pass returns true for how often the same has come.
func lossy(t *testing.T, pass func(time int) bool) (from, to string) {
	t.Helper()
	from, to = freeBroadcast(t), freeBroadcast(t)
	in, err := net.ListenPacket("udp4", from)
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("udp4", strings.Replace(to, "127.255.255.255", "127.0.0.1", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	go func() {
		datagram, times := make([]byte, 100), map[string]int{}
		for {
			n, _, err := in.ReadFrom(datagram)
			if err != nil {
				return
			}
			key := string(datagram[:n])
			if times[key]++; pass(times[key]) {
				_, _ = out.Write(datagram[:n])
			}
		}
	}()
	return from, to
}

func TestRepeatedMessagesArriveOnceWhicheverOfTheirDatagramsIsLost(t *testing.T) {
	for name, pass := range map[string]func(time int) bool{
		"none":             func(int) bool { return true },
		"the first":        func(time int) bool { return time > 1 },
		"all but the last": func(time int) bool { return time == 3 },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := lossy(t, pass)
			_, l := client(t, Config{Broadcast: to, Interface: "lo", Filters: []string{"#"}})
			sender, sent := client(t, Config{Broadcast: from, Interface: "lo", Repeats: 2, RepeatInterval: 20 * time.Millisecond})
			var want []string
			for i := range 30 {
				want = append(want, fmt.Sprintf("t=%d", i))
				if err := sender.Publish("t", []byte(fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
			sender.Close(t.Context()) // which sends the repeats that are due yet
			waitFor(t, "30 messages", func() bool { return len(l.got()) >= 30 })
			if got := l.got(); !slices.Equal(got, want) {
				t.Errorf("received %q; want each of 30 messages once", got)
			}
			if len(sent.sent) != 30 {
				t.Errorf("told of %d sent messages; want 30, as repeats are none", len(sent.sent))
			}
		})
	}
}

func TestAPublishersConfigurationSaysHowOftenItRepeats(t *testing.T) {
	config := trafficconfig.Config{Broadcast: freeBroadcast(t), Publish: &trafficconfig.Publish{Repeat: &trafficconfig.Repeat{Times: 2, IntervalSeconds: 1.5}}}
	opened, err := Open(transport.Setup{Config: config, Warn: func(string) {}}, (&listener{}).events())
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close(t.Context())
	if c := opened.(*Client); c.config.Repeats != 2 || c.config.RepeatInterval != 1500*time.Millisecond {
		t.Errorf("repeats %d times, one every %v; want 2, one every 1.5 s", c.config.Repeats, c.config.RepeatInterval)
	}
}

func TestRepeatsAreSentAtTheirIntervalsInTheOrderOfTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, begun := newRepeats(10*time.Second), time.Now()
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.run(ctx, func(packet []byte) { got = append(got, fmt.Sprintf("%s %.0f", packet, time.Since(begun).Seconds())) })
		}()
		r.add(begun, []byte("a"), 2)
		time.Sleep(15 * time.Second)
		r.add(time.Now(), []byte("b"), 1)
		r.drain(t.Context())
		if want := []string{"a 10", "a 20", "b 25"}; !slices.Equal(got, want) {
			t.Errorf("sent %q; want %q", got, want)
		}
		cancel()
		<-ended
	})
}

func TestWhatWaitsToBeRepeatedIsBounded(t *testing.T) {
	r, packet, count := newRepeats(time.Second), make([]byte, 1<<20), 0
	for r.add(time.Now(), packet, 1) {
		count++
	}
	if count != maxRepeatBytes>>20 {
		t.Errorf("%d packets of 1 MiB wait; want %d", count, maxRepeatBytes>>20)
	}
	for r.takeDue(time.Now().Add(time.Minute)) != nil {
	}
	if !r.add(time.Now(), packet, 1) {
		t.Error("no further packet is taken after all were sent")
	}
}

func TestNumbersOfSendersAreTheirOwnAndForgottenInTheEnd(t *testing.T) {
	had := received{}
	datagram := func(number uint32) []byte { return appendTail([]byte("\x30\x04\x00\x01ab"), number, nil) }
	sender := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("198.18.9.1"), port) }
	if !had.first(sender(1), datagram(7)) || had.first(sender(1), datagram(7)) || !had.first(sender(2), datagram(7)) {
		t.Error("number 7 is to be new once for each sender")
	}
	for range 2 {
		if !had.first(sender(1), []byte("\x30\x04\x00\x01ab")) {
			t.Error("a datagram without a number was taken for a repeat")
		}
	}
	for number := range uint32(window) {
		had.first(sender(1), datagram(100+number))
	}
	if !had.first(sender(1), datagram(7)) {
		t.Errorf("number 7 is still known after %d others", window)
	}
	for port := range 3 * maxSenders {
		had.first(sender(uint16(port)), datagram(1))
	}
	if len(had) > maxSenders {
		t.Errorf("%d senders are kept; want at most %d", len(had), maxSenders)
	}
}
