package coaplink

import (
	"net"
	"testing"
	"time"

	"vignette.dev/vignette/internal/proxy/link"
	"vignette.dev/vignette/internal/proxyconfig"
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
