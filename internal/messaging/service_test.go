package messaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/syncbuffer"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/traffic/request"
)

// network carries requests between services in memory: each takes delay, both ways.
type network struct {
	delay    time.Duration
	mu       sync.Mutex
	services map[string]*memoryPeer
}

type memoryPeer struct {
	network *network
	setup   request.Setup
}

func (n *network) open(address string) request.Open {
	return func(s request.Setup) (request.Peer, error) {
		p := &memoryPeer{network: n, setup: s}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.services[address] = p
		return p, nil
	}
}

func (p *memoryPeer) Do(ctx context.Context, to string, r request.Request, e request.Events) (request.Response, time.Time, error) {
	p.network.mu.Lock()
	addressee, found := p.network.services[to]
	p.network.mu.Unlock()
	if !found {
		return request.Response{}, time.Time{}, &request.Failure{Reason: request.Refused, Detail: to}
	}
	e.Sent(time.Now())
	if strings.HasPrefix(to, "lossy") {
		time.Sleep(p.network.delay)
		e.Retransmitted(time.Now())
	}
	if strings.HasPrefix(to, "silent") {
		<-ctx.Done()
		return request.Response{}, time.Time{}, &request.Failure{Reason: request.Cancelled}
	}
	time.Sleep(p.network.delay)
	response := addressee.setup.Handler(time.Now(), r)
	time.Sleep(p.network.delay)
	return response, time.Now(), nil
}

func (p *memoryPeer) Close(context.Context) {}

// log is a service's message log as it was written.
type log struct{ bytes.Buffer }

func (l *log) events(t *testing.T, begin time.Time) (events []string) {
	t.Helper()
	bad, err := messagelog.Read(&l.Buffer, func(r messagelog.Record) {
		at := time.Unix(0, r.TimeNanoseconds).Sub(begin)
		events = append(events, strings.TrimSpace(fmt.Sprintf("%v %s %s %s %s", at, r.Status, r.ID, r.Topic, r.Text)))
	})
	if err != nil || bad > 0 {
		t.Fatalf("%d bad lines, %v", bad, err)
	}
	return events
}

// run runs services by their addresses until after, and returns what they logged.
func run(t *testing.T, after time.Duration, configs map[string]messagingconfig.Config) map[string][]string {
	t.Helper()
	events := map[string][]string{}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(1_700_000_000, 0))) // it is 2000, and a log's times are later
		n := &network{delay: time.Second, services: map[string]*memoryPeer{}}
		begin := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		logs, done := map[string]*log{}, make(chan error)
		for address, config := range configs {
			logs[address] = &log{}
			s, schedule, err := newService(config, messagelog.NewWriter(logs[address]), func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			s.sleep = sleepVirtually
			if s.peer, err = s.open(n.open(address)); err != nil {
				t.Fatal(err)
			}
			go func() {
				s.run(ctx, schedule, begin, make(chan struct{}))
				done <- s.log.Flush()
			}()
		}
		time.Sleep(after)
		stop()
		for range configs {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for address, l := range logs {
			events[address] = l.events(t, begin)
		}
	})
	return events
}

func sleepVirtually(ctx context.Context, until time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(until)):
		return nil
	}
}

func configOf(node string) messagingconfig.Config {
	return messagingconfig.Config{
		Instance: node + "/chat", Transport: "coap", Port: 5683, Model: "military", Receipt: true, TimeoutSeconds: 60, Topic: "messaging/chat/to/" + node,
	}
}

// addressed adds a destination with some nodes, and returns its name.
func addressed(config *messagingconfig.Config, to string, nodes ...string) string {
	var all []messagingconfig.Addressee
	for _, node := range nodes {
		all = append(all, messagingconfig.Addressee{Address: node + ":5683", Topic: "messaging/chat/to/" + node})
	}
	config.AddDestination(to, all)
	return to
}

func TestAMessageToSeveralIsARequestToEachWithItsReceipt(t *testing.T) {
	a := configOf("a")
	a.Messages = []messagingconfig.Message{{AtSeconds: 2, To: addressed(&a, "all", "b", "lossy"), Type: "TEXT", From: "a", Text: "hello"}}
	events := run(t, 10*time.Second, map[string]messagingconfig.Config{"a:5683": a, "b:5683": configOf("b"), "lossy:5683": configOf("lossy")})
	want := []string{
		"2s sent a/chat_1 messaging/chat/to/b", "2s sent a/chat_2 messaging/chat/to/lossy",
		"2s triggered a/chat_1 messaging/chat/to/b", "2s triggered a/chat_2 messaging/chat/to/lossy",
		"3s retransmitted a/chat_2 messaging/chat/to/lossy", "4s receipt a/chat_1 messaging/chat/to/b", "5s receipt a/chat_2 messaging/chat/to/lossy",
	}
	if got := events["a:5683"]; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("the sender logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	want = []string{"3s received a/chat_1 messaging/chat/to/b", "3s processed a/chat_1 messaging/chat/to/b"}
	if got := events["b:5683"]; !slices.Equal(got, want) {
		t.Errorf("the addressee logged %q; want %q", got, want)
	}
}

func TestARequestThatFailsSaysWhy(t *testing.T) {
	a := configOf("a")
	a.Messages = []messagingconfig.Message{
		{AtSeconds: 1, To: addressed(&a, "nobody", "nobody"), Type: "TEXT", From: "a"}, {AtSeconds: 2, To: addressed(&a, "silent", "silent"), Type: "TEXT", From: "a"},
	}
	events := run(t, 5*time.Second, map[string]messagingconfig.Config{"a:5683": a, "silent:5683": configOf("silent")})
	want := []string{
		"1s triggered a/chat_1 messaging/chat/to/nobody", "1s failed a/chat_1 messaging/chat/to/nobody refused: nobody:5683",
		"2s triggered a/chat_2 messaging/chat/to/silent", "2s sent a/chat_2 messaging/chat/to/silent", "6.5s failed a/chat_2 messaging/chat/to/silent cancelled",
	}
	if got := events["a:5683"]; !slices.Equal(got, want) {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhyRequestsAreNeverSentIsToldOnce(t *testing.T) {
	var told []string
	r := newRecorder("a/chat", messagelog.NewWriter(&log{}), func(text string) { told = append(told, text) })
	for i, detail := range []string{"no way to the host", "no way to the network", "no way to the host"} {
		r.neverSent(time.Now(), fmt.Sprint("a/chat_", i+1), "t", request.Failed(request.Unreachable, detail))
	}
	want := []string{
		"message a/chat_1 is not sent, and perhaps others, which are only logged: unreachable: no way to the host",
		"message a/chat_2 is not sent, and perhaps others, which are only logged: unreachable: no way to the network",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q\nwant %q", told, want)
	}
}

func TestARequestBeyondThoseOutstandingFails(t *testing.T) {
	a := configOf("a")
	all := addressed(&a, "all", slices.Repeat([]string{"silent"}, maxOutstanding+1)...)
	a.Messages = []messagingconfig.Message{{AtSeconds: 1, To: all, Type: "TEXT", From: "a"}}
	events := run(t, 5*time.Second, map[string]messagingconfig.Config{"a:5683": a, "silent:5683": configOf("silent")})
	want := fmt.Sprintf("1s failed a/chat_%d messaging/chat/to/silent cancelled: %d requests are outstanding", maxOutstanding+1, maxOutstanding)
	if got := events["a:5683"]; !slices.Contains(got, want) {
		t.Errorf("the log of %d events does not have %q", len(got), want)
	}
}

func TestOutstandingRequestsAreBoundedInBytesButForOneAlone(t *testing.T) {
	const large = maxOutstandingBytes + 1
	var underWay outstanding
	if full := underWay.begin(large); full != "" {
		t.Errorf("a request alone: %s; want it sent", full)
	}
	if full, want := underWay.begin(1), "256 MiB of requests are outstanding"; full != want {
		t.Errorf("a second request: %q; want %q", full, want)
	}
	underWay.end(large)
	if full := underWay.begin(1); full != "" {
		t.Errorf("a request after the first: %s; want it sent", full)
	}
}

func TestAPushGoesToEachAddresseeEachPeriod(t *testing.T) {
	a := configOf("a")
	a.Country, a.Unit, a.Entity = "NOR", "NOR-UNIT001", "NOR-S001"
	a.Push = &messagingconfig.Push{To: addressed(&a, "all", "b", "c"), PeriodSeconds: 10, Payload: "geojson", FirstAfterSeconds: 3}
	events := run(t, 20*time.Second, map[string]messagingconfig.Config{"a:5683": a, "b:5683": configOf("b"), "c:5683": configOf("c")})
	if got, want := events["c:5683"], []string{
		"4s received a/chat_2 messaging/chat/to/c", "4s processed a/chat_2 messaging/chat/to/c",
		"14s received a/chat_4 messaging/chat/to/c", "14s processed a/chat_4 messaging/chat/to/c",
	}; !slices.Equal(got, want) {
		t.Errorf("c logged %q; want %q", got, want)
	}
}

func TestAServiceAnswersWithItsReply(t *testing.T) {
	b := configOf("b")
	b.Reply = "bytes:2000"
	s, _, err := newService(b, messagelog.NewWriter(&log{}), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	response := s.handle(time.Now(), request.Request{Path: "/anything", Body: []byte("a/chat_1 1588759108433\n")})
	if response.Status != 200 || len(response.Body) != 2000 || response.ContentType != "application/octet-stream" {
		t.Errorf("status %d, %d bytes, %s; want 200, 2000 bytes, application/octet-stream", response.Status, len(response.Body), response.ContentType)
	}
}

func TestAMessageToAGroupIsForItsMembersOnly(t *testing.T) {
	written := &log{}
	config := configOf("b")
	config.Groups = []messagingconfig.Group{{Name: "red", Address: "239.253.0.1", Topic: "messaging/chat/to/red"}}
	s, _, err := newService(config, messagelog.NewWriter(written), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 0)
	body := []byte(`{"msgType":"TEXT","from":"a","to":"red","text":"","sendingTime":1,"msgId":"a/chat_1"}`)
	own := []byte(`{"msgType":"TEXT","from":"b","to":"red","text":"","sendingTime":1,"msgId":"b/chat_1"}`)
	for _, r := range []request.Request{{Path: "/messages/red", Body: body}, {Path: "/messages/blue", Body: body}, {Path: "/messages/red", Body: own}} {
		s.handle(at, r)
	}
	if err := s.log.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := written.events(t, at); len(got) != 2 || got[0] != "0s received a/chat_1 messaging/chat/to/red" {
		t.Errorf("logged %q; want the reception of one message", got)
	}
}

func TestARestartedServiceGoesOnWithTheNextMessage(t *testing.T) {
	config := configOf("a")
	for at := range 5 {
		config.Messages = append(config.Messages, messagingconfig.Message{AtSeconds: float64(at), To: addressed(&config, "b", "b"), From: "a"})
	}
	schedule, err := newSchedule(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before, last int64
		elapsed      time.Duration
		want         int64
	}{
		{0, 0, time.Hour, 1}, {0, 2, 1500 * time.Millisecond, 3}, {0, 2, 3500 * time.Millisecond, 5}, {0, 2, time.Hour, 6},
		{5, 5, time.Hour, 6}, {5, 7, 3500 * time.Millisecond, 10},
	} {
		if got := firstNumber(schedule, messagelog.Numbers{Before: c.before, Last: c.last}, c.elapsed); got != c.want {
			t.Errorf("after message %d and %v: goes on with %d; want %d", c.last, c.elapsed, got, c.want)
		}
	}
}

func TestAScriptBeginsAnewAtASecondStartWithIdsOfItsOwn(t *testing.T) {
	t.Setenv(messagelog.EnvPath, filepath.Join(t.TempDir(), "messages-1.jsonl"))
	config := configOf("a")
	config.Port = testport.Free(t)
	config.Messages = []messagingconfig.Message{{AtSeconds: 0, To: addressed(&config, "b", "127.0.0.1"), From: "a"}, {AtSeconds: 0.1, To: "b", From: "a"}}
	for life, want := range [][]string{{"a/chat_1", "a/chat_2"}, {"a/chat_3", "a/chat_4"}} {
		t.Setenv(appinstance.EnvStart, fmt.Sprint(time.Now().UnixNano()))
		written := &syncbuffer.Buffer{}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			log := messagelog.NewWriter(written)
			if err := errors.Join(serve(ctx, config, log, make(chan struct{}), func(string) {}), log.Flush()); err != nil {
				t.Error(err)
			}
		})
		for deadline := time.Now().Add(10 * time.Second); strings.Count(written.String(), `"triggered"`) < 2 && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
		stop()
		running.Wait()
		var ids []string
		_, _ = messagelog.Read(strings.NewReader(written.String()), func(r messagelog.Record) {
			if r.Status == messagelog.Triggered {
				ids = append(ids, r.ID)
			}
		})
		if !slices.Equal(ids, want) {
			t.Errorf("life %d has messages %v; want %v", life+1, ids, want)
		}
	}
}

func TestAServiceThatCannotReadItsNumbersSendsNothing(t *testing.T) {
	t.Setenv(messagelog.EnvPath, filepath.Join(t.TempDir(), "missing", "messages-1.jsonl"))
	if err := serve(t.Context(), configOf("a"), messagelog.NewWriter(&log{}), nil, func(string) {}); err == nil || !strings.Contains(err.Error(), "numbers of messages") {
		t.Errorf("serves with the error %v; want one of the numbers of messages", err)
	}
}
