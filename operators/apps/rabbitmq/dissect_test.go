package rabbitmq_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/testcapture"
)

// It captures clients of QoS 1 from their first packet to their last. For STOMP Wireshark has no dissector.
func TestTsharkDissectsThePacketsOfAMQPClients(t *testing.T) {
	b := startOpen(t)
	capture := testcapture.Start(t, fmt.Sprintf("tcp port %d", b.ports.amqp))
	s := open(t, b.subscriber("amqp", "nor/dissected", 1, "dissected/#")).waitConnected(t)
	p := open(t, b.publisher("amqp", "prt/dissected", 1)).waitConnected(t)
	const messages = 20
	for i := range messages {
		if err := p.Publish("dissected/x", bytes.Repeat([]byte{'a', 0, 0xff}, i*500)); err != nil {
			t.Fatal(err)
		}
	}
	reached(func() bool { return len(s.receivedMessages()) == messages })
	p.close()
	s.close()
	read := capture.Dissect("-d", fmt.Sprintf("tcp.port==%d,amqp", b.ports.amqp))
	for want, times := range map[string]int{
		"Method: Publish (40)": messages, "Method: Deliver (60)": messages, "Method: Ack (80)": messages, "Method: Select (10)": 1, "Method: Close (50)": 2,
	} {
		if n := strings.Count(read, want); n < times {
			t.Errorf("tshark finds %q %d times; want %d at least", want, n, times)
		}
	}
}
