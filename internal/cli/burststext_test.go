package cli

import (
	"strings"
	"testing"

	"vignette.dev/vignette/internal/runapi"
)

func TestTimesOfBurstsAreAMatrixOfProtocols(t *testing.T) {
	half := 0.5
	text := burstsTable([]runapi.BurstResult{
		{PublisherProtocol: "stomp", SubscriberProtocol: "mqtt", Messages: 100, Received: 99},
		{PublisherProtocol: "amqp", SubscriberProtocol: "xmpp", Messages: 100, Received: 100, Seconds: &half},
		{PublisherProtocol: "amqp", SubscriberProtocol: "mqtt", Messages: 100, Received: 100, Seconds: &half},
	}).String()
	var rows []string
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{`BURST FROM \ TO mqtt xmpp`, "amqp 500 ms 500 ms", "stomp 99 of 100 -"}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q; want %q", rows, want)
	}
}
