package traffic

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/trafficconfig"
)

func TestAPatternSaysWhenMessagesAreDueAndHowLargeTheyAre(t *testing.T) {
	t.Parallel()
	config := publisherOf("", "PRT-S001", "3.1.1", 0)
	config.Publish = &trafficconfig.Publish{Topic: "t", Pattern: "0.5 ON 1 PERIODIC [4 100]\n1.1 MOD 1 PERIODIC [2 300]\n2.5 OFF 1"}
	table, err := newTimetable(config)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for k := int64(1); ; k++ {
		due, ok := table.due(k)
		if !ok {
			break
		}
		id := messagelog.MessageID("PRT-S001", k)
		content := table.content(nil, k, id, time.UnixMilli(5))
		if parsed, _ := payload.Parse(content); parsed != id || table.topic(k) != "t" {
			t.Errorf("message %d says it is %s, on topic %s", k, parsed, table.topic(k))
		}
		got = append(got, fmt.Sprintf("%s %d", due, len(content)))
	}
	if diff := cmp.Diff([]string{"500ms 100", "750ms 100", "1s 100", "1.25s 300", "1.75s 300", "2.25s 300"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if topic, size := table.largest(); topic != "t" || size != 300 {
		t.Errorf("the largest has %d bytes on %s", size, topic)
	}
}

func script() trafficconfig.Config {
	return trafficconfig.Config{Instance: "a1/chat", Entity: "a1/chat", Protocol: "mqtt", Publish: &trafficconfig.Publish{Messages: []trafficconfig.Message{
		{AtSeconds: 0.1, Topic: "script/chat/to/b1", Type: "TEXT", From: "a1", To: "b1", Text: "move to \"grid\" 7 <now>"},
		{AtSeconds: 0.3, Topic: "script/chat/to/all", Type: "ALERT", From: "a1", To: "all", Text: "contact", Bytes: 400},
	}}}
}

func TestAScriptsMessagesSayWhatTheScriptDoes(t *testing.T) {
	t.Parallel()
	table, err := newTimetable(script())
	if err != nil {
		t.Fatal(err)
	}
	if due, ok := table.due(2); due != 300*time.Millisecond || !ok || table.topic(2) != "script/chat/to/all" {
		t.Errorf("message 2 is due at %s, %v, on %s", due, ok, table.topic(2))
	}
	if _, ok := table.due(3); ok {
		t.Error("there is a third message")
	}
	var said map[string]any
	first := table.content(nil, 1, "a1/chat_1", time.UnixMilli(1588759108433))
	if err := json.Unmarshal(first, &said); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"msgType": "TEXT", "from": "a1", "to": "b1", "text": "move to \"grid\" 7 <now>", "sendingTime": 1588759108433., "msgId": "a1/chat_1"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if id, at := payload.Parse(first); id != "a1/chat_1" || at.UnixMilli() != 1588759108433 {
		t.Errorf("read as %s of %s", id, at)
	}
	if n := len(table.content(nil, 2, "a1/chat_2", time.Now())); n != 400 {
		t.Errorf("a message that is to have 400 bytes has %d", n)
	}
	if need := military.Size(military.Message{From: "a1", To: "b1", Text: "x"}, "a1/chat"); need < len(military.Append(nil, military.Message{Type: "TEXT", From: "a1", To: "b1", Text: "x"}, "a1/chat_999999", time.Now(), 0)) {
		t.Errorf("a message may have more than the %d bytes that Size says", need)
	}
}

func TestAScriptReachesThoseWhomItAddressesThroughARealBroker(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	addressed := subscriberOf(b.Address(), "3.1.1", 0)
	addressed.Instance, addressed.Subscribe.Topics = "b1/chat", []string{"script/chat/to/b1", "script/chat/to/b", "script/chat/to/all"}
	other := subscriberOf(b.Address(), "3.1.1", 0)
	other.Instance, other.Subscribe.Topics = "b2/chat", []string{"script/chat/to/b2", "script/chat/to/b", "script/chat/to/all"}
	r1, r2 := run(t, addressed), run(t, other)
	waitFor(t, "the subscriptions", func() bool {
		return len(r1.records(messagelog.Subscribed)) == 3 && len(r2.records(messagelog.Subscribed)) == 3
	})
	config := script()
	config.Version, config.Broker = "3.1.1", b.Address()
	config.Publish.AfterConnection = true
	config.Subscribe = &trafficconfig.Subscribe{Topics: []string{"script/chat/to/a1", "script/chat/to/all"}}
	sender := run(t, config)
	waitFor(t, "both messages at the one, and one at the other", func() bool { return len(r1.ids(messagelog.Received)) == 2 && len(r2.ids(messagelog.Received)) == 1 })
	sender.stop()
	if n := len(sender.records(messagelog.Sent)); n != 2 || len(sender.records(messagelog.Received)) != 0 {
		t.Errorf("%d sent, and its own received: %v; want 2 and none", n, sender.records(messagelog.Received))
	}
	if ids := r2.ids(messagelog.Received); ids["a1/chat_2"] != 1 {
		t.Errorf("the other received %v; want the message to all", ids)
	}
}

func TestARestartedPublisherGoesOnInItsPattern(t *testing.T) {
	t.Parallel()
	config := publisherOf("", "X", "3.1.1", 0)
	config.Publish = &trafficconfig.Publish{Topic: "t", Pattern: "0 ON 1 PERIODIC [2 100] COUNT 10"}
	table, err := newTimetable(config)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1000, 0)
	p := publisher{timetable: table, start: start, numbers: messagelog.Numbers{Last: 2}, now: func() time.Time { return start.Add(2200 * time.Millisecond) }}
	if got := p.firstNumber(); got != 6 {
		t.Errorf("goes on with message %d; want 6, due after 2.5 s", got)
	}
	p.now = func() time.Time { return start.Add(time.Hour) }
	if got := p.firstNumber(); got != 11 {
		t.Errorf("after the last it goes on with %d; want 11, which there is none of", got)
	}
}
