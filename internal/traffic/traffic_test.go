package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/transport"
	"vignette.dev/vignette/internal/trafficconfig"
)

func startBroker(t *testing.T) *testtool.Broker { return testtool.Mosquitto(t, "allow_anonymous true") }

var waitFor = testtool.Eventually

// runner is one instance under test.
type runner struct {
	t     *testing.T
	log   *syncbuffer.Buffer
	told  *syncbuffer.Buffer
	quiet chan struct{}
	end   context.CancelFunc
	done  chan error
}

func run(t *testing.T, config trafficconfig.Config) *runner {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &runner{t: t, log: &syncbuffer.Buffer{}, told: &syncbuffer.Buffer{}, quiet: make(chan struct{}), end: cancel, done: make(chan error, 1)}
	go func() {
		log := messagelog.NewWriter(r.log)
		r.done <- errors.Join(Run(ctx, config, log, r.quiet, func(text string) { fmt.Fprintln(r.told, text) }), log.Flush())
	}()
	t.Cleanup(r.stop)
	return r
}

func (r *runner) stop() {
	if r.end == nil {
		return
	}
	r.end()
	r.end = nil
	select {
	case err := <-r.done:
		if err != nil {
			r.t.Errorf("run: %v", err)
		}
	case <-time.After(5 * time.Second):
		r.t.Error("did not end within 5 s")
	}
	if r.t.Failed() {
		r.t.Logf("told people: %s", r.told)
	}
}

func (r *runner) connected() {
	waitFor(r.t, "connected", func() bool {
		return strings.HasPrefix(r.told.String(), "connected") || strings.Contains(r.told.String(), "\nconnected")
	})
}

func (r *runner) records(status messagelog.Status) []messagelog.Record {
	var records []messagelog.Record
	bad, err := messagelog.Read(strings.NewReader(r.log.String()), func(m messagelog.Record) {
		if m.Status == status {
			records = append(records, m)
		}
	})
	if bad > 0 || err != nil {
		r.t.Errorf("message log: %d bad lines, %v", bad, err)
	}
	return records
}

func (r *runner) ids(status messagelog.Status) map[string]int {
	ids := map[string]int{}
	for _, m := range r.records(status) {
		ids[m.ID]++
	}
	return ids
}

func publisherOf(b string, entity, version string, qos int) trafficconfig.Config {
	return trafficconfig.Config{Instance: "n/" + entity, Protocol: "mqtt", Version: version, Broker: b, Country: "PRT", Unit: "PRT-UNIT001", Entity: entity, Seed: 7,
		Publish: &trafficconfig.Publish{Topic: "/PRT/PRT-UNIT001/" + entity + "/location", QoS: qos, Payload: "geojson", PeriodSeconds: 0.02, FirstAfterSeconds: 0.3}}
}

func subscriberOf(b, version string, qos int) trafficconfig.Config {
	return trafficconfig.Config{Instance: "n/picture", Protocol: "mqtt", Version: version, Broker: b, Subscribe: &trafficconfig.Subscribe{Topics: []string{"#"}, QoS: qos}}
}

func TestEveryMessageArrivesThroughARealBroker(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	for _, version := range []string{"3.1.1", "5"} {
		for qos := range 3 {
			t.Run(fmt.Sprintf("MQTT %s QoS %d", version, qos), func(t *testing.T) {
				entity := fmt.Sprintf("PRT-V%c%d", version[0], qos)
				config := subscriberOf(b.Address(), version, qos)
				config.Instance += entity // a client id of its own, and its own session
				config.Subscribe.Topics = []string{"/PRT/+/" + entity + "/#"}
				s := run(t, config)
				s.connected()
				time.Sleep(100 * time.Millisecond) // for the subscription
				publisher := publisherOf(b.Address(), entity, version, qos)
				publisher.Publish.FirstAfterSeconds = 1 // both are connected, and the subscription is made
				p := run(t, publisher)
				waitFor(t, "30 messages", func() bool { return len(p.records(messagelog.Sent)) >= 30 })
				p.stop()
				waitFor(t, "all messages received", func() bool { return len(s.records(messagelog.Processed)) >= len(p.records(messagelog.Sent)) })
				checkDeliveries(t, p, s)
			})
		}
	}
}

// checkDeliveries wants each message at every measuring point once, in order of time.
func checkDeliveries(t *testing.T, p, s *runner) {
	t.Helper()
	triggered, sent, received := p.records(messagelog.Triggered), p.records(messagelog.Sent), s.records(messagelog.Received)
	if len(triggered) != len(sent) || len(sent) != len(received) {
		t.Fatalf("triggered %d, sent %d, received %d; want the same", len(triggered), len(sent), len(received))
	}
	when := map[string]int64{}
	for i, m := range sent {
		if m.ID != triggered[i].ID || m.TimeNanoseconds < triggered[i].TimeNanoseconds || m.Topic == "" || m.Bytes < 200 {
			t.Errorf("sent %+v after triggered %+v", m, triggered[i])
		}
		when[m.ID] = m.TimeNanoseconds
	}
	for _, m := range received {
		if at, ok := when[m.ID]; !ok || m.TimeNanoseconds < at {
			t.Errorf("received %+v, sent at %d (%v); want sent before", m, at, ok)
		}
		delete(when, m.ID)
	}
}

func TestAPublisherMayWaitForItsConnection(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	b.Kill()
	config := publisherOf(b.Address(), "PRT-S009", "3.1.1", 0)
	config.Publish = &trafficconfig.Publish{Topic: "/t", Pattern: "0.0 ON 1 PERIODIC [100000 255] COUNT 10", AfterConnection: true}
	p := run(t, config)
	time.Sleep(300 * time.Millisecond)
	if early := p.records(messagelog.Triggered); len(early) > 0 {
		t.Fatalf("%d messages without a connection; want none before it", len(early))
	}
	b.Start()
	waitFor(t, "10 messages", func() bool { return len(p.records(messagelog.Sent)) == 10 })
	if got := len(p.records(messagelog.Triggered)); got != 10 {
		t.Errorf("%d messages were due; want 10, and each of them sent", got)
	}
}

func TestAMessageThatIsDueAtTheStartIsSentWhereNoConnectionIsNeeded(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]trafficconfig.Config{
		"mqtt-udp":        {Protocol: "mqtt-udp", Broadcast: "127.255.255.255:9", Interface: "lo", Publish: &trafficconfig.Publish{}},
		"mqtt-sn, QoS -1": {Protocol: "mqtt-sn", Broker: "127.0.0.1:9", Publish: &trafficconfig.Publish{QoS: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range 20 {
				config := config
				config.Instance, config.Entity = fmt.Sprintf("n/bft/%d", i), fmt.Sprintf("S%d", i)
				config.Publish.Topic, config.Publish.Payload, config.Publish.PeriodSeconds = "ab", "geojson", 0.02
				p := run(t, config)
				waitFor(t, "a message", func() bool { return len(p.records(messagelog.Sent)) > 0 })
				if first := p.records(messagelog.Sent)[0]; first.ID != config.Entity+"_1" {
					t.Errorf("the first message that was sent is %s; want %s_1", first.ID, config.Entity)
				}
				p.stop()
			}
		})
	}
}

func TestASubscriberGetsMessagesAfterTheBrokerWasKilled(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.1.1", "5"} {
		t.Run("MQTT "+version, func(t *testing.T) {
			b := startBroker(t)
			s := run(t, subscriberOf(b.Address(), version, 0))
			p := run(t, publisherOf(b.Address(), "PRT-S001", version, 0))
			waitFor(t, "messages before", func() bool { return len(s.records(messagelog.Received)) > 5 })
			b.Kill()
			time.Sleep(400 * time.Millisecond)
			before := len(s.records(messagelog.Received))
			b.Start()
			waitFor(t, "messages after", func() bool { return len(s.records(messagelog.Received)) > before+10 })
			p.stop()
			triggered, sent := len(p.records(messagelog.Triggered)), p.ids(messagelog.Sent)
			if triggered-len(sent) < 10 {
				t.Errorf("%d triggered, %d sent; want the messages of the outage triggered and never sent", triggered, len(sent))
			}
			for id := range s.ids(messagelog.Received) {
				if sent[id] != 1 {
					t.Errorf("%s was received, but logged as sent %d times", id, sent[id])
				}
			}
		})
	}
}

func TestQoS1KeepsItsPromiseOverAnOutage(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.1.1", "5"} {
		t.Run("MQTT "+version, func(t *testing.T) {
			b := startBroker(t)
			p := run(t, publisherOf(b.Address(), "PRT-S001", version, 1))
			waitFor(t, "messages before", func() bool { return len(p.records(messagelog.Sent)) > 5 })
			b.Kill()
			time.Sleep(400 * time.Millisecond)
			b.Start()
			outage := len(p.records(messagelog.Triggered))
			waitFor(t, "messages after", func() bool { return len(p.records(messagelog.Sent)) > outage+10 })
			p.stop()
			sent := p.ids(messagelog.Sent)
			for _, m := range p.records(messagelog.Triggered) {
				if sent[m.ID] != 1 {
					t.Errorf("%s is logged as sent %d times; want once", m.ID, sent[m.ID])
				}
			}
		})
	}
}

func TestAClientThatDoesBothIgnoresItsOwnMessagesAndFallsQuiet(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	var clients []*runner
	for _, entity := range []string{"PRT-S001", "PRT-S002"} {
		c := publisherOf(b.Address(), entity, "3.1.1", 0)
		c.Subscribe = &trafficconfig.Subscribe{Topics: []string{"#", "/PRT/#"}} // overlapping: each message counts once
		clients = append(clients, run(t, c))
	}
	one, two := clients[0], clients[1]
	waitFor(t, "messages of each other", func() bool { return len(one.ids(messagelog.Received)) > 5 && len(two.ids(messagelog.Received)) > 5 })
	close(one.quiet)
	quiet := -1
	waitFor(t, "quiet for five periods", func() bool {
		before := quiet
		quiet = len(one.records(messagelog.Triggered))
		time.Sleep(100 * time.Millisecond)
		return quiet == before
	})
	heard := len(one.ids(messagelog.Received))
	waitFor(t, "the quiet one to receive on", func() bool { return len(one.ids(messagelog.Received)) > heard+5 })
	if now := len(one.records(messagelog.Triggered)); now != quiet {
		t.Errorf("%d messages triggered after it was told to be quiet", now-quiet)
	}
	for id := range one.ids(messagelog.Received) {
		if !strings.HasPrefix(id, "PRT-S002_") {
			t.Errorf("one received %s; want only messages of the other", id)
		}
	}
}

func TestForeignClientsUnderstandUsAndWeThem(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	sub, pub := testtool.Need(t, "mosquitto_sub"), testtool.Need(t, "mosquitto_pub")
	listener := exec.Command(sub, "-p", fmt.Sprint(b.Port), "-t", "/PRT/#", "-C", "3", "-W", "15", "-V", "5")
	out := &syncbuffer.Buffer{}
	listener.Stdout = out
	if err := listener.Start(); err != nil {
		t.Fatal(err)
	}
	run(t, publisherOf(b.Address(), "PRT-S001", "3.1.1", 1))
	if err := listener.Wait(); err != nil {
		t.Fatalf("mosquitto_sub: %v, %q", err, out)
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if id, _ := payload.Parse([]byte(line)); !json.Valid([]byte(line)) || !strings.HasPrefix(id, "PRT-S001_") {
			t.Errorf("mosquitto_sub printed %q", line)
		}
	}
	s := run(t, subscriberOf(b.Address(), "5", 2))
	waitFor(t, "a message of mosquitto_pub", func() bool {
		if err := exec.Command(pub, "-p", fmt.Sprint(b.Port), "-t", "foreign/x", "-m", "21.5 degrees").Run(); err != nil {
			t.Fatal(err)
		}
		for id, count := range s.ids(messagelog.Processed) {
			if strings.HasPrefix(id, payload.Unknown) && count > 0 {
				return true
			}
		}
		return false
	})
}

func TestMetricsTellWhatHappensWhileItRuns(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	config := publisherOf(b.Address(), "PRT-S001", "5", 0)
	config.MetricsPort = testport.Free(t)
	other := publisherOf(b.Address(), "PRT-S002", "5", 0)
	config.Subscribe = &trafficconfig.Subscribe{Topics: []string{"#"}}
	r := run(t, config)
	run(t, other)
	waitFor(t, "a received message", func() bool { return len(r.records(messagelog.Processed)) > 0 })
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", config.MetricsPort))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	for _, name := range []string{"messages_sent_total", "messages_received_total", "delay_seconds_count", "lateness_seconds_bucket", "connected", "messages_unsent_total"} {
		if !strings.Contains(string(text), "vignette_traffic_"+name+"{") || !strings.Contains(string(text), `instance="n/PRT-S001"`) {
			t.Errorf("metrics lack vignette_traffic_%s{instance=…}", name)
		}
	}
	if strings.Contains(string(text), `vignette_traffic_messages_received_total{instance="n/PRT-S001"} 0`) {
		t.Error("messages were received, but the metric is 0")
	}
}

func TestAMessageThatTheProtocolDropsIsForgottenAndCounted(t *testing.T) {
	r := newRecorder("n/x", "X", messagelog.NewWriter(&syncbuffer.Buffer{}), newMetrics("n/x"), func(string) {})
	content := []byte("X_1 and more")
	r.triggered(time.Now(), "X_1", "t", content, nil)
	r.neverSent("t", content)
	if len(r.pending) != 0 || len(r.ids) != 0 {
		t.Errorf("still has %v and its content", r.pending)
	}
	if n := testutil.ToFloat64(r.metrics.unsent); n != 1 {
		t.Errorf("%v messages counted as never sent; want 1", n)
	}
}

// refusingClient refuses each message for the next reason.
type refusingClient struct{ reasons []error }

func (c *refusingClient) Publish(string, []byte) error {
	reason := c.reasons[0]
	c.reasons = c.reasons[1:]
	return reason
}
func (*refusingClient) Close(context.Context) {}

func TestWhyMessagesAreRefusedIsToldOnce(t *testing.T) {
	t.Parallel()
	var told []string
	r := newRecorder("n/x", "X", messagelog.NewWriter(io.Discard), newMetrics("n/x"), func(text string) { told = append(told, text) })
	unreachable := &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.ENETUNREACH)}
	p := publisher{entity: "X", timetable: &periodic{periodSeconds: 10, to: "t", maker: fixedMaker{}}, recorder: r, now: time.Now,
		client: &refusingClient{[]error{transport.ErrNotConnected, transport.ErrNoRoom, transport.ErrNotConnected, transport.ErrNoRoom, unreachable}}}
	for number := range int64(5) {
		p.publish(number+1, time.Now())
	}
	want := []string{
		"message X_2 is refused, and perhaps others, which are only counted: the connection takes no more: the message is not sent",
		"message X_5 is refused, and perhaps others, which are only counted: no way to the network",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q\nwant %q", told, want)
	}
	if n := testutil.ToFloat64(r.metrics.unsent); n != 5 || r.unsent() != 0 {
		t.Errorf("%v counted as never sent, %d pending; want all 5, and none", n, r.unsent())
	}
}

func TestTheScheduleIsAbsoluteAndCountsFromThePlannedStart(t *testing.T) {
	start := time.Now().Add(-45 * time.Millisecond).Round(0) // started late: two messages are due at once
	t.Setenv(appinstance.EnvStart, fmt.Sprint(start.UnixNano()))
	config := publisherOf("127.0.0.1:1", "PRT-S001", "3.1.1", 0)
	config.Publish.FirstAfterSeconds = 0.01
	r := run(t, config)
	lateness := func(i int, m messagelog.Record) time.Duration {
		return time.Duration(m.TimeNanoseconds - start.Add(10*time.Millisecond+time.Duration(i)*20*time.Millisecond).UnixNano())
	}
	// Other programs may hold the processors for a while. A schedule that drifts is never on time again.
	waitFor(t, "a message on time, long after the late start", func() bool {
		for i, m := range r.records(messagelog.Triggered) {
			if i >= 17 && lateness(i, m) < 5*time.Millisecond {
				return true
			}
		}
		return false
	})
	r.stop()
	for i, m := range r.records(messagelog.Triggered) {
		if m.ID != fmt.Sprintf("PRT-S001_%d", i+1) || lateness(i, m) < 0 {
			t.Errorf("message %d has id %s and is %v late; want its number as id, and none early", i+1, m.ID, lateness(i, m))
		}
	}
	if n := len(r.records(messagelog.Sent)); n != 0 {
		t.Errorf("%d messages sent without a broker", n)
	}
}

func TestAMessageThatIsDueAtThePlannedStopIsNotSent(t *testing.T) {
	start := time.Now().Add(-time.Second).Round(0)
	t.Setenv(appinstance.EnvStart, fmt.Sprint(start.UnixNano()))
	t.Setenv(appinstance.EnvStop, fmt.Sprint(start.Add(60*time.Millisecond).UnixNano()))
	config := publisherOf("127.0.0.1:1", "PRT-S001", "3.1.1", 0)
	config.Publish.FirstAfterSeconds = 0
	r := run(t, config)
	waitFor(t, "the message before it", func() bool { return len(r.records(messagelog.Triggered)) >= 3 })
	time.Sleep(100 * time.Millisecond)
	r.stop()
	if n := len(r.records(messagelog.Triggered)); n != 3 {
		t.Errorf("%d messages; want those due 0, 20 and 40 ms after the start", n)
	}
}

func TestARestartedPublisherUsesNoIdTwiceAndSendsNoBurst(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	p := publisher{firstAfterSeconds: 1, timetable: &periodic{periodSeconds: 2}, start: start}
	for name, c := range map[string]struct {
		now          time.Duration
		before, last int64
		want         int64
	}{
		"first life, even when late":           {100 * time.Second, 0, 0, 1},
		"restarted at once":                    {5500 * time.Millisecond, 0, 3, 4},
		"restarted after three missed periods": {12 * time.Second, 0, 3, 7},
		"restarted before its next is due":     {6 * time.Second, 0, 9, 10},
		"second start":                         {0, 60, 60, 61},
		"second start, even when late":         {100 * time.Second, 60, 60, 61},
		"crashed three periods ago after that": {12 * time.Second, 60, 63, 67},
	} {
		p.now, p.numbers = func() time.Time { return start.Add(c.now) }, messagelog.Numbers{Before: c.before, Last: c.last}
		if got := p.firstNumber(); got != c.want {
			t.Errorf("%s: begins with %d; want %d", name, got, c.want)
		}
	}
}

func TestAScriptBeginsAnewAtASecondStartWithIdsOfItsOwn(t *testing.T) {
	t.Setenv(messagelog.EnvPath, filepath.Join(t.TempDir(), "messages-1.jsonl"))
	config := script()
	config.Version, config.Broker = "3.1.1", "127.0.0.1:1"
	for life, want := range []string{"a1/chat_1 to b1, a1/chat_2 to all, ", "a1/chat_3 to b1, a1/chat_4 to all, "} {
		t.Setenv(appinstance.EnvStart, fmt.Sprint(time.Now().UnixNano()))
		r := run(t, config)
		waitFor(t, "the whole script", func() bool { return len(r.records(messagelog.Triggered)) == 2 })
		r.stop()
		got := ""
		for _, m := range r.records(messagelog.Triggered) {
			got += m.ID + " to " + path.Base(m.Topic) + ", "
		}
		if got != want {
			t.Errorf("life %d has messages %s; want %s", life+1, got, want)
		}
	}
}

func TestAPublisherThatStartsWithItsConnectionGoesOnWithoutAPauseAfterARestart(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		before, last int64
		now          time.Duration
		want         []time.Duration
	}{
		"second start":           {30, 30, 5 * time.Second, []time.Duration{5 * time.Second, 15 * time.Second}},
		"first life":             {0, 0, 5 * time.Second, []time.Duration{5 * time.Second, 15 * time.Second}},
		"restarted in mid-run":   {0, 30, 305 * time.Second, []time.Duration{305 * time.Second, 315 * time.Second}},
		"connected late by much": {0, 30, 900 * time.Second, []time.Duration{900 * time.Second, 910 * time.Second}},
	} {
		r := newRecorder("n/x", "X", messagelog.NewWriter(&syncbuffer.Buffer{}), newMetrics("n/x"), func(string) {})
		close(r.connectedOnce)
		ctx, cancel := context.WithCancel(t.Context())
		var dues []time.Duration
		p := publisher{entity: "X", afterConnection: true, timetable: &periodic{periodSeconds: 10, to: "t", maker: fixedMaker{}}, recorder: r, client: instantClient{r}, start: start,
			numbers: messagelog.Numbers{Before: c.before, Last: c.last},
			now:     func() time.Time { return start.Add(c.now) }, sleep: func(ctx context.Context, until time.Time) error {
				if dues = append(dues, until.Sub(start)); len(dues) == len(c.want) {
					cancel()
				}
				return ctx.Err()
			}}
		p.run(ctx, p.firstNumber())
		if !slices.Equal(dues, c.want) {
			t.Errorf("%s: messages are due after %v; want %v", name, dues, c.want)
		}
	}
}

func TestConfigurationsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	udp := func(f func(*trafficconfig.Config)) trafficconfig.Config {
		c := trafficconfig.Config{Instance: "n/x", Protocol: "mqtt-udp", Broadcast: "127.255.255.255:1883", Entity: "X",
			Publish: &trafficconfig.Publish{Topic: "t", Payload: "geojson", PeriodSeconds: 1}}
		f(&c)
		return c
	}
	mqtt := func(f func(*trafficconfig.Config)) trafficconfig.Config {
		c := publisherOf("127.0.0.1:1", "X", "3.1.1", 0)
		f(&c)
		return c
	}
	for want, c := range map[string]trafficconfig.Config{
		"bytes:65500":       udp(func(c *trafficconfig.Config) { c.Publish.Payload = "bytes:65500"; c.Publish.Topic = "/a/longer/topic" }),
		"broadcast":         udp(func(c *trafficconfig.Config) { c.Broadcast = "nowhere" }),
		"publish.qos":       udp(func(c *trafficconfig.Config) { c.Publish.QoS = 1 }),
		"publish.repeat is": udp(func(c *trafficconfig.Config) { c.Publish.Repeat = &trafficconfig.Repeat{Times: 1} }),
		"want a period, and at most 1024": udp(func(c *trafficconfig.Config) {
			c.Publish.PeriodSeconds, c.Publish.Repeat = 0.05, &trafficconfig.Repeat{Times: 1, IntervalSeconds: 60}
		}),
		"does not repeat": mqtt(func(c *trafficconfig.Config) { c.Publish.Repeat = &trafficconfig.Repeat{Times: 1, IntervalSeconds: 1} }),
		"topic filter":    udp(func(c *trafficconfig.Config) { c.Subscribe = &trafficconfig.Subscribe{Topics: []string{"a/#/b"}} }),
		"MQTT version":    mqtt(func(c *trafficconfig.Config) { c.Version = "4" }),
		"host:port":       mqtt(func(c *trafficconfig.Config) { c.Broker = "nor" }),
		"protocol":        mqtt(func(c *trafficconfig.Config) { c.Protocol = "smoke signals" }),
		"periodSeconds":   mqtt(func(c *trafficconfig.Config) { c.Publish.PeriodSeconds = 0 }),
		"several of":      mqtt(func(c *trafficconfig.Config) { c.Publish.Pattern = "0 ON 1 PERIODIC [1 100]" }),
		"line 1: ON": mqtt(func(c *trafficconfig.Config) {
			c.Publish.PeriodSeconds = 0
			c.Publish.Pattern = "0 ON 1 PERIODIC [0 100]"
		}),
		"messages[0]": mqtt(func(c *trafficconfig.Config) {
			c.Publish.PeriodSeconds = 0
			c.Publish.Messages = []trafficconfig.Message{{AtSeconds: 1}}
		}),
		"bytes:8":         mqtt(func(c *trafficconfig.Config) { c.Publish.Payload = "bytes:8" }),
		"neither publish": mqtt(func(c *trafficconfig.Config) { c.Publish = nil }),
	} {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := Run(ctx, c, messagelog.NewWriter(io.Discard), nil, func(string) {})
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(want, "bytes:")) {
			t.Errorf("%s: %v; want an error that names it", want, err)
		}
	}
}

// instantClient sends at once to nowhere.
type instantClient struct{ r *recorder }

func (c instantClient) Publish(topic string, content []byte) error {
	c.r.sent(time.Now(), topic, content)
	return nil
}
func (instantClient) Close(context.Context) {}

// keepingClient keeps messages, as WS-Notification does behind one that is under way.
type keepingClient struct{ kept [][]byte }

func (c *keepingClient) Publish(_ string, content []byte) error {
	c.kept = append(c.kept, content)
	return nil
}
func (*keepingClient) Close(context.Context) {}

type largeMaker struct{}

func (largeMaker) Append([]byte, string, time.Time) []byte { return make([]byte, 100<<20) }

func TestMessagesThatWaitForABrokerAreBounded(t *testing.T) {
	t.Parallel()
	var warnings []string
	r := newRecorder("n/x", "X", messagelog.NewWriter(&syncbuffer.Buffer{}), newMetrics("n/x"), func(text string) { warnings = append(warnings, text) })
	client := &keepingClient{}
	p := publisher{entity: "X", timetable: &periodic{periodSeconds: 10, to: "t", maker: largeMaker{}}, recorder: r, client: client, now: time.Now}
	for number := range int64(4) {
		p.publish(number+1, time.Now())
	}
	if want := "message X_3 is refused, and perhaps others, which are only counted: 256 MiB of messages wait for the broker: the message is not sent"; len(client.kept) != 2 || !slices.Equal(warnings, []string{want}) {
		t.Errorf("%d messages wait, with the warnings %q; want 2, and %q", len(client.kept), warnings, want)
	}
	r.sent(time.Now(), "t", client.kept[0])
	p.publish(5, time.Now())
	if len(client.kept) != 3 {
		t.Errorf("%d messages were kept; want a third when one is sent", len(client.kept))
	}
}

func TestTheLogSaysWhichBrokerAnInstanceWasConnectedTo(t *testing.T) {
	t.Parallel()
	one, two := startBroker(t), startBroker(t)
	config := publisherOf(one.Address(), "PRT-S001", "5", 0)
	config.Failover = []string{two.Address()}
	r := run(t, config)
	waitFor(t, "a connection", func() bool { return len(r.records(messagelog.Connected)) == 1 })
	one.Kill()
	waitFor(t, "another one", func() bool { return len(r.records(messagelog.Connected)) == 2 })
	r.stop()
	connected, lost := r.records(messagelog.Connected), r.records(messagelog.Disconnected)
	if connected[0].ID != one.Address() || connected[1].ID != two.Address() || len(lost) != 1 || lost[0].ID != one.Address() || lost[0].Text == "" {
		t.Errorf("connected %+v, lost %+v; want the first broker, its loss with a reason, the second, and no loss at the end", connected, lost)
	}
}

func TestTheLogSaysWhichSubscriptionsWereRefusedAndMade(t *testing.T) {
	t.Parallel()
	log := &syncbuffer.Buffer{}
	writer := messagelog.NewWriter(log)
	r := newRecorder("nor/picture", "", writer, newMetrics("nor/picture"), func(string) {})
	r.subscription("/PRT/#", "not authorized")
	r.subscription("/PRT/#", "")
	r.end()
	r.subscription("/PRT/#", "the broker is being stopped")
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	var got []string
	if _, err := messagelog.Read(strings.NewReader(log.String()), func(m messagelog.Record) {
		got = append(got, string(m.Status)+" "+m.ID+" "+m.Text)
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"refused /PRT/# not authorized", "subscribed /PRT/# "}; !slices.Equal(got, want) {
		t.Errorf("the log has %q; want %q", got, want)
	}
}
