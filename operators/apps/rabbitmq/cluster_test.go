package rabbitmq_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// metrics are a broker's metrics for Prometheus.
func (b *broker) metrics(t *testing.T) string {
	t.Helper()
	answer, err := http.Get("http://" + b.at(b.ports.metrics) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheBrokersOwnStatisticsAreServed(t *testing.T) {
	b := startOpen(t)
	open(t, b.subscriber("amqp", "nor/counted", 0, "#")).waitConnected(t)
	if !reached(func() bool { // RabbitMQ counts every 5 s
		text := b.metrics(t)
		return strings.Contains(text, "\nrabbitmq_queues ") && !strings.Contains(text, "\nrabbitmq_connections 0\n")
	}) {
		t.Error("no queues or no connections in the metrics")
	}
}

// The brokers have the rendered configuration and names on loopback.
func TestBrokersThatStartAtOnceFormOneCluster(t *testing.T) {
	start(t)
	first, second := &nor, &usa
	first.wait(t)
	second.wait(t)
	for _, protocol := range append([]string{"mqtt"}, protocols...) {
		t.Run(protocol, func(t *testing.T) {
			topic := protocol + "/mesh"
			s := open(t, second.subscriber(protocol, "usa/mesh", 0, topic)).waitConnected(t)
			p := open(t, first.publisher(protocol, "nor/mesh", 0)).waitConnected(t)
			reached(func() bool {
				_ = p.Publish(topic, []byte("probe"))
				return len(s.receivedMessages()) > 0
			})
			want := map[string]int{}
			for i := range 100 {
				message := fmt.Append(nil, i)
				_ = p.Publish(topic, message)
				want[topic+" "+string(message)] = 1
			}
			heard := func() map[string]int {
				h := s.receivedMessages()
				delete(h, topic+" probe")
				return h
			}
			reached(func() bool { return len(heard()) == len(want) })
			if got := heard(); !maps.Equal(got, want) {
				t.Errorf("a subscriber of the other broker heard %v; the brokers say\n%s\n%s", got, first.log.String(), second.log.String())
			}
		})
	}
}
