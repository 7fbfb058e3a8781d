package mediator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/trafficconfig"
)

func TestTopicAndContentAreKeptApart(t *testing.T) {
	if fingerprintOf("ab", []byte("c")) == fingerprintOf("a", []byte("bc")) {
		t.Error("topic ab with content c is the same as topic a with content bc")
	}
}

func TestAsManyEchoesAreTakenAsWerePublished(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	e, awaited := newEchoes(), map[string]int{}
	for range 20_000 {
		topic := fmt.Sprint(random.IntN(20))
		switch print := fingerprintOf(topic, nil); random.IntN(4) {
		case 0, 1:
			e.add(print)
			awaited[topic]++
		case 2:
			if got, want := e.take(print), awaited[topic] > 0; got != want {
				t.Fatalf("taken %v; want %v", got, want)
			}
			awaited[topic] = max(0, awaited[topic]-1)
		case 3:
			e.forget(print)
			awaited[topic] = max(0, awaited[topic]-1)
		}
	}
}

func TestEchoesThatNeverComeTakeNoMoreThanTheirMemory(t *testing.T) {
	e := newEchoes()
	for i := range 2*maxEchoes + 10 {
		e.add(fingerprintOf(fmt.Sprint(i), nil))
		if len(e.awaited) > maxEchoes || len(e.byPrint) > maxEchoes {
			t.Fatalf("%d echoes of %d kinds are awaited; want %d at most", len(e.awaited), len(e.byPrint), maxEchoes)
		}
	}
	if e.take(fingerprintOf("0", nil)) || !e.take(fingerprintOf(fmt.Sprint(2*maxEchoes), nil)) {
		t.Error("want the oldest given up and the newest awaited")
	}
}

func TestEchoesAreGivenUpInTime(t *testing.T) {
	now := time.Now()
	e := newEchoes()
	e.now = func() time.Time { return now }
	a, b := fingerprintOf("a", nil), fingerprintOf("b", nil)
	e.add(a)
	now = now.Add(2 * echoTimeout) // in an outage
	e.sent(a)
	now = now.Add(echoTimeout - time.Second)
	if !e.take(a) {
		t.Error("want the time of an echo to begin when its message is sent")
	}
	e.add(a)
	e.sent(a)
	now = now.Add(echoTimeout - time.Second)
	e.add(b)
	e.sent(b)
	e.add(a)
	e.sent(a)
	now = now.Add(2 * time.Second)
	if !e.take(a) || e.take(a) || !e.take(b) {
		t.Error("want the young a and b awaited, the old a given up")
	}
	now = now.Add(echoTimeout)
	if e.take(a); e.awaited != nil || len(e.byPrint) != 0 {
		t.Errorf("%d echoes are left: want none", len(e.awaited))
	}
}

// FuzzMessages publishes arbitrary messages to three brokers that a mediator joins: each broker must see each message as often as it was
// published, under the topic that the prefixes make of it, and nothing else.
func FuzzMessages(f *testing.F) {
	f.Add("a/", "b/", "t/u", []byte("1\n2\n1\n"))
	f.Add("", "", "", []byte("\x00\n\n\n"))
	f.Add("x/", "", "x/", []byte("0x/"))
	f.Fuzz(func(t *testing.T, prefixA, prefixB, topic string, contents []byte) {
		legs := []trafficconfig.Leg{{Name: "a", Prefix: prefixA}, {Name: "b", Prefix: prefixB}, {Name: "c"}}
		w, m := newWorld(), &mediator{}
		config := trafficconfig.Mediator{Instance: "i", Legs: legs}
		for i := range config.Legs {
			l := &config.Legs[i]
			l.Protocol, l.Broker, l.Topics = "mqtt", l.Name, []string{"#"}
		}
		if config.Validate() != nil || strings.ContainsAny(topic, "+#") || strings.HasPrefix(topic, "$") || strings.HasPrefix(prefixA+prefixB, "$") {
			t.Skip()
		}
		metrics := newMetrics("i")
		for i := range config.Legs {
			m.legs = append(m.legs, newLeg(config, i, metrics, func(string) {}))
		}
		for i, l := range m.legs {
			l.client, _ = w.open(l.setup(config, i), m.events(l))
		}
		published := strings.Split(string(contents), "\n")
		for i, content := range published {
			leg := legs[i%len(legs)]
			w.broker(leg.Name).publish(leg.Prefix+topic, []byte(content))
		}
		settle(m)
		want := len(published)
		for i, leg := range legs {
			if topic == "" { // nothing is left of it without the prefix: it goes nowhere
				want = (len(published) + len(legs) - 1 - i) / len(legs)
			}
			seen := w.broker(leg.Name).messages()
			if len(seen) != want {
				t.Errorf("broker %s had %d messages; want %d", leg.Name, len(seen), want)
			}
			for _, s := range seen {
				if !strings.HasPrefix(s, leg.Prefix+topic+" ") {
					t.Errorf("broker %s had %q; want topic %q", leg.Name, s, leg.Prefix+topic)
				}
			}
		}
	})
}

// settle carries out what waits, as the legs' writers would.
func settle(m *mediator) {
	for range 1000 {
		idle := true
		for _, l := range m.legs {
			for l.queue.length() > 0 {
				next, _ := l.queue.take()
				l.publish(next)
				idle = false
			}
		}
		if idle {
			return
		}
	}
}
