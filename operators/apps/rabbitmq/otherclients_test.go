package rabbitmq_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/transport"
)

// python is Debian's, for which there are packages of pika and stomp.py.
const python = "/usr/bin/python3"

// otherClients are clients of other projects: pika, stomp.py and mosquitto_sub, subscribed to everything.
type otherClients struct {
	to io.Writer
	b  *broker

	mu    sync.Mutex
	heard map[string]map[string]int // by client, how often each "topic payload"
}

func startOtherClients(t *testing.T, b *broker) *otherClients {
	t.Helper()
	requirePrograms(t, python, "/usr/lib/python3/dist-packages/pika", "/usr/lib/python3/dist-packages/stomp", "mosquitto_sub", "mosquitto_pub")
	s := &otherClients{b: b, heard: map[string]map[string]int{}}
	peers := exec.Command(python, "testdata/peers.py", fmt.Sprint(b.ports.amqp), fmt.Sprint(b.ports.stomp))
	to, err := peers.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.to = to
	s.listen(t, peers, func(line string) (client, topic, payload string) {
		var words [3]string
		if err := json.Unmarshal([]byte(line), &words); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		return words[0], transport.Topic(words[1]), words[2]
	})
	s.listen(t, exec.Command("mosquitto_sub", "-p", fmt.Sprint(b.ports.mqtt), "-t", "#", "-F", "%t\t%p"), func(line string) (client, topic, payload string) {
		topic, payload, _ = strings.Cut(line, "\t")
		return "mosquitto_sub", topic, payload
	})
	return s
}

// listen reads a program's output until the test ends.
func (s *otherClients) listen(t *testing.T, program *exec.Cmd, parse func(line string) (client, topic, payload string)) {
	t.Helper()
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	kill, _, err := testtool.Child(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kill)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			client, topic, payload := parse(lines.Text())
			s.mu.Lock()
			if s.heard[client] == nil {
				s.heard[client] = map[string]int{}
			}
			s.heard[client][topic+" "+payload]++
			s.mu.Unlock()
		}
	}()
}

func (s *otherClients) of(client string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.heard[client])
}

// publish publishes by one of the clients.
func (s *otherClients) publish(t *testing.T, client, topic, payload string) {
	t.Helper()
	if client == "mosquitto_pub" {
		if out, err := exec.Command("mosquitto_pub", "-p", fmt.Sprint(s.b.ports.mqtt), "-t", topic, "-m", payload).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_pub: %v\n%s", err, out)
		}
		return
	}
	line, err := json.Marshal([]string{client, transport.RoutingKey(topic), payload})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(s.to, "%s\n", line); err != nil {
		t.Fatal(err)
	}
}

// of selects messages by their prefix, without the probes and the messages of other tests.
func of(prefix string, heard map[string]int) map[string]int {
	maps.DeleteFunc(heard, func(message string, _ int) bool { return !strings.HasPrefix(message, prefix) })
	return heard
}

// The platform's and other clients of AMQP, STOMP and MQTT publish and subscribe to everything. Each receives every message
// exactly once, on the same topic.
func TestAllProtocolsReceiveFromEachOther(t *testing.T) {
	b := startOpen(t)
	s := startOtherClients(t, b)
	publishers, listeners := map[string]*client{}, map[string]func() map[string]int{}
	for _, protocol := range append([]string{"mqtt"}, protocols...) {
		for qos := range 2 {
			name := fmt.Sprintf("%s QoS %d", protocol, qos)
			publishers[name] = open(t, b.publisher(protocol, fmt.Sprintf("prt/%s%d", protocol, qos), qos)).waitConnected(t)
			listeners[name] = open(t, b.subscriber(protocol, fmt.Sprintf("nor/%s%d", protocol, qos), qos, "#")).waitConnected(t).receivedMessages
		}
	}
	for _, name := range []string{"pika", "stomp.py", "mosquitto_sub"} {
		listeners[name] = func() map[string]int { return s.of(name) }
	}
	for name, heard := range listeners { // wait until all are subscribed
		if !reached(func() bool {
			_ = publishers["amqp QoS 0"].Publish("probe", []byte("p"))
			return heard()["probe p"] > 0
		}) {
			t.Fatalf("%s hears nothing", name)
		}
	}
	want := map[string]int{}
	for _, topic := range []string{"all/PRT/PRT-UNIT001/PRT-S003/location", "all//b", "all/", "all/é/ß x", `all/x:y\z,%?=`, "all/$x"} {
		for name, p := range publishers {
			want[topic+" from "+name] = 1
			if err := p.Publish(topic, []byte("from "+name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, name := range []string{"pika", "stomp.py", "mosquitto_pub"} {
			want[topic+" from "+name] = 1
			s.publish(t, name, topic, "from "+name)
		}
	}
	for name, heard := range listeners {
		reached(func() bool { return len(of("all", heard())) >= len(want) })
		if got := of("all", heard()); !maps.Equal(got, want) {
			t.Errorf("%s heard %v; want %v", name, got, want)
		}
	}
}
