package coaplink

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/proxy/link"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/traffic/request"
)

// emptyACK is the first byte of an empty acknowledgement; its message id is in the last two of four.
const emptyACK = 0x60

func TestTheNextFrameWaitsForTheAcknowledgementOfTheOneBefore(t *testing.T) {
	t.Parallel()
	far, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	config := proxyconfig.Config{Near: &proxyconfig.Near{Peer: far.LocalAddr().String()}, CoAP: proxyconfig.CoAP{ACKTimeoutSeconds: 60}}.WithDefaults()
	near, err := Dial(link.Setup{Config: config, Warn: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	const frames = 3
	for i := range byte(frames) {
		go func() { _, _ = near.Carry(t.Context(), []byte{0, i, i, i, i}, func(time.Time) {}) }()
	}
	datagram := make([]byte, 2000)
	for range frames {
		_, from, err := far.ReadFrom(datagram)
		if err != nil {
			t.Fatal(err)
		}
		id := [2]byte{datagram[2], datagram[3]}
		_ = far.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if n, _, err := far.ReadFrom(datagram); err == nil && [2]byte{datagram[2], datagram[3]} != id {
			t.Errorf("another message of %d bytes goes out before the acknowledgement", n)
		}
		_ = far.SetReadDeadline(time.Now().Add(15 * time.Second))
		if _, err := far.WriteTo([]byte{emptyACK, 0, id[0], id[1]}, from); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARequestThatWaitsForItsTurnIsNotGivenUpAsSilent(t *testing.T) {
	t.Parallel()
	far, err := net.ListenPacket("udp", "127.0.0.1:0") // it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	config := proxyconfig.Config{Near: &proxyconfig.Near{Peer: far.LocalAddr().String()}, CoAP: proxyconfig.CoAP{ACKTimeoutSeconds: 60},
		Retry: proxyconfig.Retry{SilenceSeconds: 0.2}}.WithDefaults()
	near, err := Dial(link.Setup{Config: config, Warn: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	const frames = 4
	handedOver := make(chan bool, frames)
	for i := range byte(frames) {
		go func() {
			sent := false
			_, _ = near.Carry(t.Context(), []byte{0, i, i, i, i}, func(time.Time) { sent = true })
			handedOver <- sent
		}()
	}
	for range frames {
		if !<-handedOver {
			t.Error("an attempt ended before its frame was handed over; want the silence to count from then on")
		}
	}
}

// slowPeer answers a request in blocks, with a pause after each.
type slowPeer struct {
	request.Peer
	blocks int
	pause  time.Duration
}

func (p slowPeer) Do(ctx context.Context, _ string, _ request.Request, e request.Events) (request.Response, time.Time, error) {
	for range p.blocks {
		e.Progress()
		select {
		case <-time.After(p.pause):
		case <-ctx.Done():
			return request.Response{}, time.Time{}, request.ContextFailure(ctx)
		}
	}
	return request.Response{Body: []byte("answer")}, time.Now(), nil
}

func TestAnAttemptLastsAsLongAsItsBlocksKeepComing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pause, want time.Duration
		reason      request.Reason
	}{
		"blocks keep coming": {50 * time.Second, 500 * time.Second, ""},
		"blocks stop coming": {70 * time.Second, 60 * time.Second, request.Timeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &sender{peer: slowPeer{blocks: 10, pause: c.pause}, silence: time.Minute, attempts: map[string]int{}}
			begun := time.Now()
			_, err := s.Carry(t.Context(), []byte{0, 1, 2, 3, 4}, func(time.Time) {})
			if request.ReasonOf(err) != c.reason || time.Since(begun) != c.want {
				t.Errorf("%s: %v after %v; want reason %q after %v", name, err, time.Since(begun), c.reason, c.want)
			}
		})
	}
}

func TestAttemptsOfARequestAreForgottenWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sender{peer: slowPeer{blocks: 1, pause: time.Hour}, silence: time.Minute, attempts: map[string]int{}}
		ctx, end := context.WithCancel(t.Context())
		for range 2 {
			_, _ = s.Carry(ctx, []byte{0, 1, 2, 3, 4}, func(time.Time) {})
		}
		if len(s.attempts) != 1 {
			t.Fatalf("attempts of %d requests; want those of one", len(s.attempts))
		}
		end() // as its deadline does in the pause before the next attempt
		synctest.Wait()
		if len(s.attempts) != 0 {
			t.Errorf("attempts of %d requests; want none", len(s.attempts))
		}
	})
}
