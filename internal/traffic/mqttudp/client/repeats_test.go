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

	"vignette.dev/vignette/internal/traffic/mqttudp"
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
			r.run(ctx, func(one repeat) { got = append(got, fmt.Sprintf("%s %.0f", one.packet, time.Since(begun).Seconds())) })
		}()
		r.add(begun, []byte("a"), nil, 2)
		time.Sleep(15 * time.Second)
		r.add(time.Now(), []byte("b"), nil, 1)
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
	for r.add(time.Now(), packet, nil, 1) {
		count++
	}
	if count != maxRepeatBytes>>20 {
		t.Errorf("%d packets of 1 MiB wait; want %d", count, maxRepeatBytes>>20)
	}
	for due := true; due; {
		_, due = r.takeDue(time.Now().Add(time.Minute))
	}
	if !r.add(time.Now(), packet, nil, 1) {
		t.Error("no further packet is taken after all were sent")
	}
}

func TestNumbersOfSendersAreTheirOwnAndForgottenInTheEnd(t *testing.T) {
	had := newReceived(func(text string) { t.Error(text) })
	datagram := func(number uint32) []byte { return appendTail([]byte("\x30\x04\x00\x01ab"), number, nil) }
	sender := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("198.18.9.1"), port) }
	if !had.first(sender(1), datagram(7), 6) || had.first(sender(1), datagram(7), 6) || !had.first(sender(2), datagram(7), 6) {
		t.Error("number 7 is to be new once for each sender")
	}
	for range 2 {
		if !had.first(sender(1), []byte("\x30\x04\x00\x01ab"), 6) {
			t.Error("a datagram without a number was taken for a repeat")
		}
	}
	for number := range uint32(mqttudp.Remembered) {
		had.first(sender(1), datagram(100+number), 6)
	}
	if !had.first(sender(1), datagram(7), 6) {
		t.Errorf("number 7 is still known after %d others", mqttudp.Remembered)
	}
	for port := range 3 * maxSenders {
		had.first(sender(uint16(port)), datagram(1), 6)
	}
	if len(had.senders) > maxSenders {
		t.Errorf("%d senders are kept; want at most %d", len(had.senders), maxSenders)
	}
}

func TestMessagesOfASenderWhoseNumberNeverChangesAllCountWithOneWarning(t *testing.T) {
	var warnings []string
	had := newReceived(func(text string) { warnings = append(warnings, text) })
	datagram := func(content string) []byte { return appendTail([]byte("\x30\x04\x00\x01a"+content), 0, nil) }
	for _, port := range []uint16{5000, 5001} {
		sender := netip.AddrPortFrom(netip.MustParseAddr("198.18.9.1"), port)
		for i, content := range []string{"1", "0", "1", "1"} {
			if !had.first(sender, datagram(content), 6) {
				t.Errorf("message %d, which is %s, does not count", i, content)
			}
		}
	}
	if want := []string{"sender 198.18.9.1:5000 gives packet number 0 to several messages: all of its datagrams count, as of other such senders"}; !slices.Equal(warnings, want) {
		t.Errorf("warned %q; want %q", warnings, want)
	}
}

func TestAfterASocketFailedNothingIsRepeatedFromAnotherOne(t *testing.T) {
	broadcast := freeBroadcast(t)
	_, l := client(t, Config{Broadcast: broadcast, Interface: "lo", Filters: []string{"#"}})
	sender, told := client(t, Config{Broadcast: broadcast, Interface: "lo", Repeats: 1, RepeatInterval: 100 * time.Millisecond})
	for _, payload := range []string{"before", "also before"} {
		if err := sender.Publish("t", []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	other, err := sender.listen(netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
	if err != nil {
		t.Fatal(err)
	}
	sender.mu.Lock()
	failed := sender.sender
	sender.sender = other
	sender.mu.Unlock()
	failed.Close()
	defer other.Close()
	if err := sender.Publish("t", []byte("after")); err != nil {
		t.Fatal(err)
	}
	sender.Close(t.Context()) // which waits for the repeats
	waitFor(t, "the last message", func() bool { return slices.Contains(l.got(), "t=after") })
	if want := []string{"t=before", "t=also before", "t=after"}; !slices.Equal(l.got(), want) {
		t.Errorf("received %q; want %q", l.got(), want)
	}
	if len(told.warnings) != 1 || !strings.Contains(told.warnings[0], "its socket failed") {
		t.Errorf("warned %q; want once of the socket", told.warnings)
	}
}

func TestAClientThatEndsSaysHowManyRepeatsAreNotSent(t *testing.T) {
	sender, told := client(t, Config{Broadcast: freeBroadcast(t), Interface: "lo", Repeats: 3, RepeatInterval: time.Minute})
	for range 2 {
		if err := sender.Publish("t", nil); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	sender.Close(ended)
	if want := []string{"6 repeats of messages are not sent: they fall due after the client's end"}; !slices.Equal(told.warnings, want) {
		t.Errorf("warned %q; want %q", told.warnings, want)
	}
}
