package rabbitmq_test

import (
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The client's queue exists with other properties, until it is deleted.
func TestARefusedSubscriptionIsReportedAndTriedAgain(t *testing.T) {
	b := startOpen(t)
	connection, err := amqp.Dial("amqp://guest:guest@" + b.of("amqp") + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for protocol, queue := range map[string]string{
		"amqp": "amqp-subscription-nor:refused", "stomp": "stomp-subscription-nor:refused",
	} {
		t.Run(protocol, func(t *testing.T) {
			if _, err := channel.QueueDeclare(queue, false, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
			c := open(t, b.subscriber(protocol, "nor/refused", 1, "refused/#"))
			said := func(text string) func() bool {
				return func() bool {
					return slices.ContainsFunc(c.stateChanges(), func(s string) bool { return strings.HasPrefix(s, "warning: the subscription to refused/# is "+text) })
				}
			}
			if !reached(said("refused: ")) {
				t.Fatalf("told %q; want the refusal", c.stateChanges())
			}
			if _, err := channel.QueueDelete(queue, false, false, false); err != nil {
				t.Fatal(err)
			}
			if c.waitConnected(t); !reached(said("made")) {
				t.Errorf("told %q; want that it is made", c.stateChanges())
			}
		})
	}
}
