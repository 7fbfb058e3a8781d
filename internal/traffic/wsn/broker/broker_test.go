package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
)

// service is a broker on loopback.
type service struct {
	*Broker
	t   *testing.T
	url string
}

func start(t *testing.T, limits wsn.Limits) *service {
	t.Helper()
	b, err := New(wsn.BrokerConfig{Instance: "nor/broker", Listen: ":0", Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b)
	t.Cleanup(func() { b.stop(); server.Close() })
	return &service{b, t, server.URL}
}

// call posts a body and returns the answer's.
func (s *service) call(address, body string) (*soap.Element, error) {
	s.t.Helper()
	envelope := wire.Envelope(soap.SOAP12, soap.Header{Action: "urn:test", MessageID: soap.NewMessageID()}, body)
	response, err := http.Post(address, "application/soap+xml", bytes.NewReader(envelope))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := wire.Response{Status: response.StatusCode, Body: data}.Message()
	if m == nil || err != nil {
		return nil, err
	}
	return m.Body, nil
}

func (s *service) must(address, body string) *soap.Element {
	s.t.Helper()
	answer, err := s.call(address, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func (s *service) publish(topic, content string) {
	s.t.Helper()
	s.must(s.url+wire.BrokerPath, wire.NotifyBody(wire.NotificationMessage{Topic: wire.TopicOf(topic).Expression(), Message: soap.Embed([]byte(content))}))
}

func (s *service) subscribe(consumer, termination string, filters ...string) wire.Subscribed {
	s.t.Helper()
	request := wire.Subscribe{Consumer: soap.EPR{Address: consumer}, Topics: []wire.TopicExpression{wire.FilterOf(filters...)}, Termination: termination}
	body := s.must(s.url+wire.BrokerPath, request.Body())
	reference, err := wire.ParseSubscribed(body)
	if err != nil {
		s.t.Fatal(err)
	}
	at := func(name string) time.Time {
		e := body.Child(wire.NSBase, name)
		if e == nil || e.IsNil() {
			return time.Time{}
		}
		t, err := wire.ParseTermination(e.Text, time.Time{})
		if err != nil {
			s.t.Fatal(err)
		}
		return t
	}
	return wire.Subscribed{Subscription: reference, Now: at("CurrentTime"), Termination: at("TerminationTime")}
}

// currentMessage requests the last message of a topic without prefixes.
func currentMessage(topic wire.TopicExpression) string {
	return fmt.Sprintf(`<wsnt:GetCurrentMessage><wsnt:Topic Dialect="%s">%s</wsnt:Topic></wsnt:GetCurrentMessage>`, topic.Dialect, topic.Text)
}

// registration requests that a publisher of topic a/b is registered.
func registration(demand bool) string {
	topic := wire.TopicOf("a/b").Expression()
	return fmt.Sprintf(`<wsbr:RegisterPublisher xmlns:wsbr="%s"><wsbr:Topic Dialect="%s">%s</wsbr:Topic><wsbr:Demand>%t</wsbr:Demand>`+
		`<wsbr:InitialTerminationTime>%s</wsbr:InitialTerminationTime></wsbr:RegisterPublisher>`,
		wire.NSBrokered, topic.Dialect, topic.Text, demand, wire.Time(time.Now().Add(time.Hour)))
}

func (s *service) pullPoint() string {
	s.t.Helper()
	epr, err := wire.ParsePullPoint(s.must(s.url+wire.PullPointPath, wire.EmptyBody("CreatePullPoint")))
	if err != nil {
		s.t.Fatal(err)
	}
	return epr.Address
}

// pull fetches the contents of waiting messages.
func (s *service) pull(pullPoint string, most int) (contents []string) {
	s.t.Helper()
	messages, err := wire.ParseMessages(s.must(pullPoint, wire.GetMessagesBody(most)))
	if err != nil {
		s.t.Fatal(err)
	}
	return contentsOf(s.t, messages)
}

func contentsOf(t *testing.T, messages []wire.NotificationMessage) (contents []string) {
	for _, m := range messages {
		content, err := soap.Extract(m.Message)
		if err != nil {
			t.Error(err)
		}
		contents = append(contents, string(content))
	}
	return contents
}

func wantFault(t *testing.T, err error, kind wire.FaultKind) {
	t.Helper()
	if fault, ok := errors.AsType[*wire.Fault](err); !ok || fault.Kind != kind {
		t.Errorf("%v; want fault %s", err, kind)
	}
}

// consumer receives messages, and answers with status.
type consumer struct {
	*httptest.Server
	status func(n int) int
	mu     sync.Mutex
	got    []string
	n      int
}

func newConsumer(t *testing.T, status func(n int) int) *consumer {
	c := &consumer{status: status}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		m, err := wire.ParseMessage(data)
		if err != nil {
			t.Error(err)
			return
		}
		messages, err := wire.ParseNotify(m.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n++
		code := c.status(c.n)
		if code == http.StatusAccepted {
			c.got = append(c.got, contentsOf(t, messages)...)
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(c.Close)
	return c
}

func accepts(int) int { return http.StatusAccepted }

func (c *consumer) received() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

var eventually = testtool.Eventually

func numbers(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprint(i))
	}
	return texts
}

func TestConsumersGetWhatTheySubscribedToInOrder(t *testing.T) {
	s := start(t, wsn.Limits{})
	flaky := newConsumer(t, func(n int) int {
		if n%3 == 0 {
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	})
	steady := newConsumer(t, accepts)
	s.subscribe(flaky.URL, "", "a/#")
	s.subscribe(steady.URL, "", "+/b", "c")
	for _, text := range numbers(6) {
		s.publish("a/b", text)
		s.publish("a", "x")
		s.publish("d", "y")
	}
	eventually(t, "twelve messages, some repeated", func() bool { return len(flaky.received()) == 12 })
	eventually(t, "six messages", func() bool { return len(steady.received()) == 6 })
	if got := steady.received(); !slices.Equal(got, numbers(6)) {
		t.Errorf("received %v", got)
	}
	if got := slices.DeleteFunc(flaky.received(), func(c string) bool { return c == "x" }); !slices.Equal(got, numbers(6)) {
		t.Errorf("received %v", got)
	}
}

func TestSubscriptionsLiveAsLongAsTheyAreRenewed(t *testing.T) {
	s := start(t, wsn.Limits{})
	var offset atomic.Int64
	s.now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	c := newConsumer(t, accepts)
	relative := s.subscribe(c.URL, "PT60S", "#")
	absolute := s.subscribe(c.URL, wire.Time(s.now().Add(time.Hour)), "#")
	if got := relative.Termination.Sub(relative.Now); got < 59*time.Second || got > 61*time.Second {
		t.Errorf("terminates after %v; want 60 s", got)
	}
	offset.Add(int64(50 * time.Second))
	s.must(relative.Subscription.Address, wire.RenewBody("PT60S"))
	offset.Add(int64(50 * time.Second))
	s.expireAt(s.now())
	s.must(relative.Subscription.Address, wire.RenewBody("PT60S"))
	offset.Add(int64(70 * time.Second))
	_, err := s.call(relative.Subscription.Address, wire.RenewBody("PT60S"))
	wantFault(t, err, wire.ResourceUnknown)
	s.expireAt(s.now())
	_, err = s.call(absolute.Subscription.Address, wire.RenewBody(wire.Time(s.now().Add(-time.Second))))
	wantFault(t, err, wire.UnacceptableTermination)
	s.must(absolute.Subscription.Address, wire.EmptyBody("Unsubscribe"))
	_, err = s.call(absolute.Subscription.Address, wire.EmptyBody("Unsubscribe"))
	wantFault(t, err, wire.ResourceUnknown)
	for reason, want := range map[string]float64{"expired": 1, "unsubscribed": 1} {
		if got := testutil.ToFloat64(s.metrics.ended.WithLabelValues(reason)); got != want {
			t.Errorf("%v subscriptions %s; want %v", got, reason, want)
		}
	}
}

func TestSubscriptionsThatCannotBeAreFaults(t *testing.T) {
	s := start(t, wsn.Limits{Subscriptions: 1})
	c := newConsumer(t, accepts)
	epr := soap.EPR{Address: c.URL}
	for name, test := range map[string]struct {
		request wire.Subscribe
		kind    wire.FaultKind
	}{
		"no address":     {wire.Subscribe{Consumer: soap.EPR{Address: "mailto:a@b"}}, wire.SubscribeCreationFailed},
		"https":          {wire.Subscribe{Consumer: soap.EPR{Address: "https://a/"}}, wire.SubscribeCreationFailed},
		"a past time":    {wire.Subscribe{Consumer: epr, Termination: "2020-01-01T00:00:00Z"}, wire.UnacceptableInitialTermination},
		"no time":        {wire.Subscribe{Consumer: epr, Termination: "soon"}, wire.UnacceptableInitialTermination},
		"a foreign word": {wire.Subscribe{Consumer: epr, Topics: []wire.TopicExpression{{Dialect: "urn:x", Text: "a"}}}, wire.TopicExpressionDialectUnknown},
		"no expression":  {wire.Subscribe{Consumer: epr, Topics: []wire.TopicExpression{{Dialect: wire.DialectFull, Text: "a//"}}}, wire.InvalidTopicExpression},
	} {
		_, err := s.call(s.url+wire.BrokerPath, test.request.Body())
		t.Log(name)
		wantFault(t, err, test.kind)
	}
	filter := strings.Replace(wire.Subscribe{Consumer: epr, Topics: []wire.TopicExpression{wire.FilterOf("a")}}.Body(), "wsnt:TopicExpression", "wsnt:MessageContent", 2)
	_, err := s.call(s.url+wire.BrokerPath, filter)
	wantFault(t, err, wire.InvalidFilter)
	s.subscribe(c.URL, "", "#")
	_, err = s.call(s.url+wire.BrokerPath, wire.Subscribe{Consumer: epr}.Body())
	wantFault(t, err, wire.SubscribeCreationFailed)
}

func TestPausedSubscriptionsGetTheirMessagesLater(t *testing.T) {
	s := start(t, wsn.Limits{})
	c := newConsumer(t, accepts)
	subscription := s.subscribe(c.URL, "", "#").Subscription.Address
	s.must(subscription, wire.EmptyBody("PauseSubscription"))
	s.publish("a", "0")
	time.Sleep(50 * time.Millisecond)
	if got := c.received(); len(got) > 0 {
		t.Errorf("received %v while paused", got)
	}
	s.must(subscription, wire.EmptyBody("ResumeSubscription"))
	eventually(t, "the message", func() bool { return slices.Equal(c.received(), numbers(1)) })
}

func TestPullPointsKeepMessagesUntilTheyAreFetched(t *testing.T) {
	s := start(t, wsn.Limits{QueueMessages: 5})
	p := s.pullPoint()
	s.subscribe(p, "", "a/+")
	for _, text := range numbers(7) {
		s.publish("a/b", text)
	}
	if got := s.pull(p, 2); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("first %v", got)
	}
	if got := s.pull(p, 0); !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("then %v", got)
	}
	if got := s.pull(p, 9); len(got) != 0 {
		t.Errorf("at last %v", got)
	}
	if got := testutil.ToFloat64(s.metrics.dropped.WithLabelValues(dropQueue)); got != 2 {
		t.Errorf("%v messages counted as dropped; want 2", got)
	}
	s.must(p, wire.NotifyBody(wire.NotificationMessage{Message: []byte("<a/>")}))
	if got := s.pull(p, 9); !slices.Equal(got, []string{"<a/>"}) {
		t.Errorf("from another producer %v", got)
	}
	s.must(p, wire.EmptyBody("DestroyPullPoint"))
	_, err := s.call(p, wire.GetMessagesBody(1))
	wantFault(t, err, wire.ResourceUnknown)
	if len(s.subscriptions) != 0 {
		t.Error("the pull point's subscription lives on")
	}
}

func TestAResponseHasNoMoreMessagesThanASlowLinkCarriesInTime(t *testing.T) {
	s := start(t, wsn.Limits{})
	p := s.pullPoint()
	s.subscribe(p, "", "a")
	var want, got []string
	for i := range 7 {
		want = append(want, strings.Repeat(fmt.Sprint(i), 10_000))
		s.publish("a", want[i])
	}
	for _, most := range []int{3, 3, 1} {
		pulled := s.pull(p, 1000)
		if len(pulled) != most {
			t.Errorf("a response of %d messages of 10 kB; want %d", len(pulled), most)
		}
		got = append(got, pulled...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d messages; want all %d in their order", len(got), len(want))
	}
	large := strings.Repeat("x", 1<<20)
	s.publish("a", large)
	if got := s.pull(p, 1000); !slices.Equal(got, []string{large}) {
		t.Errorf("%d messages; want the one that is larger than a response", len(got))
	}
}

func TestAClientMayWaitForMessages(t *testing.T) {
	s := start(t, wsn.Limits{})
	p := s.pullPoint()
	s.subscribe(p, "", "#")
	time.AfterFunc(100*time.Millisecond, func() { s.publish("a", "late") })
	request, _ := http.NewRequest(http.MethodPost, p, bytes.NewReader(wire.Envelope(soap.SOAP11, soap.Header{}, wire.GetMessagesBody(1))))
	request.Header.Set("Prefer", "respond-async, wait=20")
	began := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	if took := time.Since(began); !bytes.Contains(data, []byte("late")) || took < 90*time.Millisecond || took > 10*time.Second {
		t.Errorf("answered %s after %v", data, took)
	}
}

func TestTheLastMessageOfATopicIsKept(t *testing.T) {
	s := start(t, wsn.Limits{Topics: 2})
	get := func(topic string) (string, error) {
		body, err := s.call(s.url+wire.BrokerPath, currentMessage(wire.TopicOf(topic).Expression()))
		if err != nil {
			return "", err
		}
		content, err := soap.Extract(body.Children[0].Standalone())
		return string(content), err
	}
	s.publish("/a", "1")
	s.publish("/b", "2")
	s.publish("/a", "3")
	s.publish("/c", "4") // /b is the topic that was heard of longest ago
	for topic, want := range map[string]string{"/a": "3", "/c": "4"} {
		if got, err := get(topic); got != want || err != nil {
			t.Errorf("%s has %q (%v); want %q", topic, got, err, want)
		}
	}
	_, err := get("/b")
	wantFault(t, err, wire.NoCurrentMessageOnTopic)
	_, err = s.call(s.url+wire.BrokerPath, currentMessage(wire.FilterOf("#")))
	wantFault(t, err, wire.InvalidTopicExpression)
}

func TestLastMessagesMakeRoomForNewOnes(t *testing.T) {
	s := start(t, wsn.Limits{HeldMiB: 1})
	for _, topic := range numbers(40) {
		s.publish(topic, strings.Repeat("x", 60000))
	}
	_, err := s.call(s.url+wire.BrokerPath, currentMessage(wire.TopicOf("0").Expression()))
	wantFault(t, err, wire.NoCurrentMessageOnTopic)
	s.must(s.url+wire.BrokerPath, currentMessage(wire.TopicOf("39").Expression()))
}

func TestLastMessagesThatWaitForAConsumerTooAreKept(t *testing.T) {
	s := start(t, wsn.Limits{HeldMiB: 1})
	s.subscribe(s.pullPoint(), "PT1H", "waits")
	s.publish("waits", strings.Repeat("x", 600_000))
	s.publish("free", strings.Repeat("x", 300_000))
	s.publish("new", strings.Repeat("x", 300_000)) // in the place of free
	_, err := s.call(s.url+wire.BrokerPath, currentMessage(wire.TopicOf("free").Expression()))
	wantFault(t, err, wire.NoCurrentMessageOnTopic)
	_, err = s.call(s.url+wire.BrokerPath, wire.NotifyBody(wire.NotificationMessage{Topic: wire.TopicOf("large").Expression(), Message: soap.Embed([]byte(strings.Repeat("x", 1<<20)))}))
	wantFault(t, err, wire.ServerBusy)
	for _, topic := range []string{"waits", "new"} {
		s.must(s.url+wire.BrokerPath, currentMessage(wire.TopicOf(topic).Expression()))
	}
}

func TestMessagesThatAreSentToAPullPointAreHeldWithinTheLimit(t *testing.T) {
	s := start(t, wsn.Limits{HeldMiB: 1})
	p := s.pullPoint()
	notify := wire.NotifyBody(wire.NotificationMessage{Message: soap.Embed([]byte(strings.Repeat("x", 60000)))})
	err := error(nil)
	for i := 0; err == nil && i < 40; i++ {
		_, err = s.call(p, notify)
	}
	wantFault(t, err, wire.ServerBusy)
	if held := s.held.Load(); held > 1<<20 {
		t.Errorf("%d bytes are held; want at most 1 MiB", held)
	}
}

func TestPublishersRegister(t *testing.T) {
	s := start(t, wsn.Limits{})
	answer := s.must(s.url+wire.BrokerPath, registration(false))
	registered := soap.ParseEPR(answer.Child(wire.NSBrokered, "PublisherRegistrationReference"))
	s.must(registered.Address, wire.BrokeredBody("DestroyRegistration"))
	_, err := s.call(registered.Address, wire.BrokeredBody("DestroyRegistration"))
	wantFault(t, err, wire.ResourceUnknown)
	_, err = s.call(s.url+wire.BrokerPath, registration(true))
	wantFault(t, err, wire.PublisherRegistrationFailed)
}

func TestASlowConsumerHoldsNobody(t *testing.T) {
	s := start(t, wsn.Limits{QueueMessages: 10})
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer slow.Close()
	defer close(release)
	quick := newConsumer(t, accepts)
	s.subscribe(slow.URL, "", "#")
	s.subscribe(quick.URL, "", "#")
	for i, text := range numbers(100) {
		s.publish("a", text)
		eventually(t, "message at the quick consumer", func() bool { return len(quick.received()) == i+1 })
	}
	if got := testutil.ToFloat64(s.metrics.dropped.WithLabelValues(dropQueue)); got != 90 {
		t.Errorf("%v messages dropped for the slow consumer; want 90", got)
	}
}

func TestConsumersThatFailOrAreGoneLoseTheirSubscription(t *testing.T) {
	s := start(t, wsn.Limits{Failures: 3})
	failing := newConsumer(t, func(int) int { return http.StatusInternalServerError })
	gone := newConsumer(t, func(int) int { return http.StatusGone })
	picky := newConsumer(t, func(n int) int {
		if n == 1 {
			return http.StatusBadRequest
		}
		return http.StatusAccepted
	})
	s.subscribe(failing.URL, "", "#")
	s.subscribe(gone.URL, "", "#")
	s.subscribe(picky.URL, "", "#")
	s.publish("a", "0")
	s.publish("a", "1")
	eventually(t, "one subscription is left", func() bool { s.mu.RLock(); defer s.mu.RUnlock(); return len(s.subscriptions) == 1 })
	eventually(t, "the message after the refused one", func() bool { return slices.Equal(picky.received(), []string{"1"}) })
	for reason, want := range map[string]float64{"failed": 1, "gone": 1} {
		if got := testutil.ToFloat64(s.metrics.ended.WithLabelValues(reason)); got != want {
			t.Errorf("%v subscriptions %s; want %v", got, reason, want)
		}
	}
	if got := testutil.ToFloat64(s.metrics.failures); got != 3 {
		t.Errorf("%v failures; want 3", got)
	}
	if dropped := testutil.ToFloat64(s.metrics.dropped.WithLabelValues(dropRefused)); dropped != 1 {
		t.Errorf("%v messages refused; want 1", dropped)
	}
}

func TestMalformedRequestsAreAnsweredAndCounted(t *testing.T) {
	s := start(t, wsn.Limits{})
	for name, body := range map[string]string{
		"no XML": "hello", "a bomb": `<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`, "empty": "",
		"not of this service": string(wire.Envelope(soap.SOAP11, soap.Header{}, wire.RenewBody("PT1S"))), "no message": string(wire.Envelope(soap.SOAP11, soap.Header{}, "<wsnt:Notify/>")),
		"a wildcard topic": string(wire.Envelope(soap.SOAP12, soap.Header{}, wire.NotifyBody(wire.NotificationMessage{Topic: wire.FilterOf("#"), Message: []byte("<a/>")}))),
	} {
		response, err := http.Post(s.url+wire.BrokerPath, "text/xml", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if _, err := wire.ParseMessage(data); response.StatusCode < 400 || err == nil {
			t.Errorf("%s: status %d, %s", name, response.StatusCode, data)
		} else if fault, ok := errors.AsType[*wire.Fault](err); !ok {
			t.Errorf("%s: %v", name, fault)
		}
	}
	if got := testutil.ToFloat64(s.metrics.rejected.WithLabelValues("malformed")) + testutil.ToFloat64(s.metrics.rejected.WithLabelValues("fault")); got != 6 {
		t.Errorf("%v requests counted; want 6", got)
	}
	for path, want := range map[string]int{"/": http.StatusNotFound, wire.BrokerPath: http.StatusMethodNotAllowed} {
		response, err := http.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("GET %s: status %d; want %d", path, response.StatusCode, want)
		}
	}
}

func TestARequestOverTheLimitIsAnsweredAsTooLarge(t *testing.T) {
	s := start(t, wsn.Limits{})
	for name, size := range map[string]int{"by a byte": wire.MaxBytes + 1, "by far": 2 * wire.MaxBytes} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, wire.BrokerPath, strings.NewReader(strings.Repeat("x", size))))
		if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "want at most 8388608 bytes") {
			t.Errorf("%s: status %d, %s; want 413 with the limit", name, w.Code, w.Body)
		}
	}
	if got := testutil.ToFloat64(s.metrics.rejected.WithLabelValues("size")); got != 2 {
		t.Errorf("%v requests counted as too large; want 2", got)
	}
	if s.reading.Load() != 0 {
		t.Errorf("%d bytes count as being read", s.reading.Load())
	}
}

func heapMiB() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc+m.StackInuse) >> 20
}

func TestTenThousandSubscriptionsAndBadRequestsTakeBoundedMemory(t *testing.T) {
	s := start(t, wsn.Limits{HeldMiB: 1, QueueMessages: 100})
	before := heapMiB()
	// All are paused, so everything is queued.
	for range 10000 {
		request := wire.Subscribe{Consumer: soap.EPR{Address: "http://127.0.0.1:9/"}, Topics: []wire.TopicExpression{wire.FilterOf("a/+")}}
		s.handle(request.Body())
	}
	for _, subscription := range s.subscriptions {
		subscription.setPaused(true)
	}
	subscribed := heapMiB()
	refused := 0
	content := strings.Repeat("x", 60000)
	for i := range 100 {
		topic := wire.TopicOf(fmt.Sprintf("b/%d", i)).Expression()
		if i%4 == 0 {
			topic = wire.TopicOf(fmt.Sprintf("a/%d", i)).Expression()
		}
		if s.handle(wire.NotifyBody(wire.NotificationMessage{Topic: topic, Message: soap.Embed([]byte(content))})) == http.StatusServiceUnavailable {
			refused++
		}
		s.handle("<wsnt:Notify><" + strings.Repeat("a", 10000))
	}
	after := heapMiB()
	t.Logf("heap and stacks: %d MiB, with 10000 subscriptions %d, after messages %d; %d messages refused", before, subscribed, after, refused)
	if refused == 0 || after > before+200 || s.held.Load() > 1<<20 {
		t.Errorf("%d refused, %d MiB more, %d bytes held; want some, at most 200, at most 1 MiB", refused, after-before, s.held.Load())
	}
	if s.reading.Load() != 0 {
		t.Errorf("%d bytes count as being read", s.reading.Load())
	}
}

// handle handles a request without the network.
func (s *service) handle(body string) int {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, wire.BrokerPath, bytes.NewReader(wire.Envelope(soap.SOAP11, soap.Header{}, body))))
	return w.Code
}

func TestHalfOpenAndSlowClientsDoNotStopTheService(t *testing.T) {
	b, err := New(wsn.BrokerConfig{Instance: "nor/broker", Listen: ":0"})
	if err != nil {
		t.Fatal(err)
	}
	listener := testport.Listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx, listener) }()
	for i := range 200 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 { // a large body is announced, and a small one sent
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n<", wire.BrokerPath)
		}
	}
	s := &service{b, t, "http://" + listener.Addr().String()}
	p := s.pullPoint()
	s.subscribe(p, "", "#")
	s.publish("a", "0")
	if got := s.pull(p, 1); !slices.Equal(got, numbers(1)) {
		t.Errorf("got %v", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestALargeMessageTakesItsTimeWhileItMoves(t *testing.T) {
	t.Parallel()
	b, err := New(wsn.BrokerConfig{Instance: "nor/broker", Listen: ":0"})
	if err != nil {
		t.Fatal(err)
	}
	b.stall = 3 * time.Second
	listener := testport.Listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx, listener) }()
	s := &service{b, t, "http://" + listener.Addr().String()}
	p := s.pullPoint()
	s.subscribe(p, "", "a")
	content := strings.Repeat("x", 4<<20)
	post := func(path, body string) (net.Conn, []byte) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		envelope := wire.Envelope(soap.SOAP11, soap.Header{}, body)
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", path, len(envelope))
		return conn, envelope
	}
	conn, envelope := post(wire.BrokerPath, wire.NotifyBody(wire.NotificationMessage{Topic: wire.TopicOf("a").Expression(), Message: soap.Embed([]byte(content))}))
	defer conn.Close()
	for piece := range slices.Chunk(envelope, len(envelope)/20+1) {
		time.Sleep(b.stall / 10)
		_, _ = conn.Write(piece)
	}
	if answer, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 202")) {
		t.Errorf("%v, answered %.100q; want 202", err, answer)
	}
	conn, envelope = post(strings.TrimPrefix(p, s.url), wire.GetMessagesBody(1))
	defer conn.Close()
	_, _ = conn.Write(envelope)
	var answer bytes.Buffer
	for {
		time.Sleep(b.stall / 10)
		if _, err := io.CopyN(&answer, conn, 256<<10); err != nil {
			break
		}
	}
	if answer.Len() < len(content) {
		t.Errorf("the response ends after %d bytes; want the whole message of %d", answer.Len(), len(content))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*wsn.BrokerConfig){
		"instance": func(c *wsn.BrokerConfig) { c.Instance = "" }, "listen": func(c *wsn.BrokerConfig) { c.Listen = "8080" }, "keyFile": func(c *wsn.BrokerConfig) { c.CertFile = "x" },
		"passwordFile": func(c *wsn.BrokerConfig) { c.UsernameFile = "x" }, "metricsPort": func(c *wsn.BrokerConfig) { c.MetricsPort = -1 }, "topics": func(c *wsn.BrokerConfig) { c.Topics = -1 },
	} {
		c := wsn.BrokerConfig{Instance: "a/b", Listen: ":8080"}
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error that names %s", err, want)
		}
	}
}

func TestAPortInUseIsToldInPlainWords(t *testing.T) {
	taken := testport.Listen(t)
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"instance": "nor/broker", "listen": %q}`, taken.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err, want := Serve(t.Context(), file), fmt.Sprintf("listen at %q: another program uses the port", taken.Addr()); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		wire.NotifyBody(wire.NotificationMessage{Topic: wire.TopicOf("/a/b").Expression(), Message: []byte("<a/>")}), wire.EmptyBody("CreatePullPoint"), registration(false),
		currentMessage(wire.TopicOf("a").Expression()), wire.RenewBody("PT1S"), wire.GetMessagesBody(1),
	} {
		f.Add(wire.BrokerPath, wire.Envelope(soap.SOAP11, soap.Header{}, body))
	}
	f.Fuzz(func(t *testing.T, path string, data []byte) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \r\n\t%?#") || bytes.Contains(data, []byte("Subscribe")) {
			return // the broker must not call a foreign consumer
		}
		b, err := New(wsn.BrokerConfig{Instance: "a/b", Listen: ":0"})
		if err != nil {
			t.Fatal(err)
		}
		defer b.stop()
		w := httptest.NewRecorder()
		b.ServeHTTP(w, &http.Request{Method: http.MethodPost, URL: httptest.NewRequest(http.MethodPost, "http://a", nil).URL.JoinPath(path), Body: io.NopCloser(bytes.NewReader(data)), Header: http.Header{}})
		if w.Code == 0 {
			t.Fatal("no answer")
		}
		if b.reading.Load() != 0 {
			t.Fatalf("%d bytes count as being read", b.reading.Load())
		}
	})
}

func TestARequestThatIsCutOffIsNotCountedForMemory(t *testing.T) {
	s := start(t, wsn.Limits{})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, wire.BrokerPath, io.MultiReader(strings.NewReader("<s:Envelope"), iotest.ErrReader(io.ErrUnexpectedEOF))))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "the request ended before it was whole") {
		t.Errorf("status %d, %s; want 400 in words", w.Code, w.Body)
	}
	for reason, want := range map[string]float64{"memory": 0, "cut": 1} {
		if got := testutil.ToFloat64(s.metrics.rejected.WithLabelValues(reason)); got != want {
			t.Errorf("%v requests counted for %s; want %v", got, reason, want)
		}
	}
}
