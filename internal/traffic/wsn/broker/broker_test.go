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
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"vignette.dev/vignette/internal/soap"
	wsn "vignette.dev/vignette/internal/traffic/wsn/wire"
)

// service is a broker on loopback.
type service struct {
	*Broker
	t   *testing.T
	url string
}

func start(t *testing.T, limits Limits) *service {
	t.Helper()
	b, err := New(Config{Instance: "nor/broker", Listen: ":0", Limits: limits})
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
	envelope := wsn.Envelope(soap.SOAP12, soap.Header{Action: "urn:test", MessageID: soap.NewMessageID()}, body)
	response, err := http.Post(address, "application/soap+xml", bytes.NewReader(envelope))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := wsn.Response{Status: response.StatusCode, Body: data}.Message()
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
	s.must(s.url+wsn.BrokerPath, wsn.NotifyBody(wsn.NotificationMessage{Topic: wsn.TopicOf(topic).Expression(), Message: soap.Embed([]byte(content))}))
}

func (s *service) subscribe(consumer, termination string, filters ...string) wsn.Subscribed {
	s.t.Helper()
	request := wsn.Subscribe{Consumer: soap.EPR{Address: consumer}, Topics: []wsn.TopicExpression{wsn.FilterOf(filters...)}, Termination: termination}
	subscribed, err := wsn.ParseSubscribed(s.must(s.url+wsn.BrokerPath, request.Body()))
	if err != nil {
		s.t.Fatal(err)
	}
	return subscribed
}

func (s *service) pullPoint() string {
	s.t.Helper()
	epr, err := wsn.ParsePullPoint(s.must(s.url+wsn.PullPointPath, wsn.EmptyBody("CreatePullPoint")))
	if err != nil {
		s.t.Fatal(err)
	}
	return epr.Address
}

// pull fetches the contents of waiting messages.
func (s *service) pull(pullPoint string, most int) (contents []string) {
	s.t.Helper()
	messages, err := wsn.ParseMessages(s.must(pullPoint, wsn.GetMessagesBody(most)))
	if err != nil {
		s.t.Fatal(err)
	}
	return contentsOf(s.t, messages)
}

func contentsOf(t *testing.T, messages []wsn.NotificationMessage) (contents []string) {
	for _, m := range messages {
		content, err := soap.Extract(m.Message)
		if err != nil {
			t.Error(err)
		}
		contents = append(contents, string(content))
	}
	return contents
}

func wantFault(t *testing.T, err error, kind wsn.FaultKind) {
	t.Helper()
	if fault, ok := errors.AsType[*wsn.Fault](err); !ok || fault.Kind != kind {
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
		m, err := wsn.ParseMessage(data)
		if err != nil {
			t.Error(err)
			return
		}
		messages, err := wsn.ParseNotify(m.Body)
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

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("does not happen: %s", what)
		}
	}
}

func numbers(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprint(i))
	}
	return texts
}

func TestConsumersGetWhatTheySubscribedToInOrder(t *testing.T) {
	s := start(t, Limits{})
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
	s := start(t, Limits{})
	var offset atomic.Int64
	s.now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	c := newConsumer(t, accepts)
	relative := s.subscribe(c.URL, "PT60S", "#")
	absolute := s.subscribe(c.URL, wsn.Time(s.now().Add(time.Hour)), "#")
	if got := relative.Termination.Sub(relative.Now); got < 59*time.Second || got > 61*time.Second {
		t.Errorf("terminates after %v; want 60 s", got)
	}
	offset.Add(int64(50 * time.Second))
	s.must(relative.Subscription.Address, wsn.RenewBody("PT60S"))
	offset.Add(int64(50 * time.Second))
	s.expireAt(s.now())
	s.must(relative.Subscription.Address, wsn.RenewBody("PT60S"))
	offset.Add(int64(70 * time.Second))
	_, err := s.call(relative.Subscription.Address, wsn.RenewBody("PT60S"))
	wantFault(t, err, wsn.ResourceUnknown)
	s.expireAt(s.now())
	_, err = s.call(absolute.Subscription.Address, wsn.RenewBody(wsn.Time(s.now().Add(-time.Second))))
	wantFault(t, err, wsn.UnacceptableTermination)
	s.must(absolute.Subscription.Address, wsn.EmptyBody("Unsubscribe"))
	_, err = s.call(absolute.Subscription.Address, wsn.EmptyBody("Unsubscribe"))
	wantFault(t, err, wsn.ResourceUnknown)
	for reason, want := range map[string]float64{"expired": 1, "unsubscribed": 1} {
		if got := testutil.ToFloat64(s.metrics.ended.WithLabelValues(reason)); got != want {
			t.Errorf("%v subscriptions %s; want %v", got, reason, want)
		}
	}
}

func TestSubscriptionsThatCannotBeAreFaults(t *testing.T) {
	s := start(t, Limits{Subscriptions: 1})
	c := newConsumer(t, accepts)
	epr := soap.EPR{Address: c.URL}
	for name, test := range map[string]struct {
		request wsn.Subscribe
		kind    wsn.FaultKind
	}{
		"no address":     {wsn.Subscribe{Consumer: soap.EPR{Address: "mailto:a@b"}}, wsn.SubscribeCreationFailed},
		"https":          {wsn.Subscribe{Consumer: soap.EPR{Address: "https://a/"}}, wsn.SubscribeCreationFailed},
		"a past time":    {wsn.Subscribe{Consumer: epr, Termination: "2020-01-01T00:00:00Z"}, wsn.UnacceptableInitialTermination},
		"no time":        {wsn.Subscribe{Consumer: epr, Termination: "soon"}, wsn.UnacceptableInitialTermination},
		"a foreign word": {wsn.Subscribe{Consumer: epr, Topics: []wsn.TopicExpression{{Dialect: "urn:x", Text: "a"}}}, wsn.TopicExpressionDialectUnknown},
		"no expression":  {wsn.Subscribe{Consumer: epr, Topics: []wsn.TopicExpression{{Dialect: wsn.DialectFull, Text: "a//"}}}, wsn.InvalidTopicExpression},
	} {
		_, err := s.call(s.url+wsn.BrokerPath, test.request.Body())
		t.Log(name)
		wantFault(t, err, test.kind)
	}
	filter := strings.Replace(wsn.Subscribe{Consumer: epr, Topics: []wsn.TopicExpression{wsn.FilterOf("a")}}.Body(), "wsnt:TopicExpression", "wsnt:MessageContent", 2)
	_, err := s.call(s.url+wsn.BrokerPath, filter)
	wantFault(t, err, wsn.InvalidFilter)
	s.subscribe(c.URL, "", "#")
	_, err = s.call(s.url+wsn.BrokerPath, wsn.Subscribe{Consumer: epr}.Body())
	wantFault(t, err, wsn.SubscribeCreationFailed)
}

func TestPausedSubscriptionsGetTheirMessagesLater(t *testing.T) {
	s := start(t, Limits{})
	c := newConsumer(t, accepts)
	subscription := s.subscribe(c.URL, "", "#").Subscription.Address
	s.must(subscription, wsn.EmptyBody("PauseSubscription"))
	s.publish("a", "0")
	time.Sleep(50 * time.Millisecond)
	if got := c.received(); len(got) > 0 {
		t.Errorf("received %v while paused", got)
	}
	s.must(subscription, wsn.EmptyBody("ResumeSubscription"))
	eventually(t, "the message", func() bool { return slices.Equal(c.received(), numbers(1)) })
}

func TestPullPointsKeepMessagesUntilTheyAreFetched(t *testing.T) {
	s := start(t, Limits{QueueMessages: 5})
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
	s.must(p, wsn.NotifyBody(wsn.NotificationMessage{Message: []byte("<a/>")}))
	if got := s.pull(p, 9); !slices.Equal(got, []string{"<a/>"}) {
		t.Errorf("from another producer %v", got)
	}
	s.must(p, wsn.EmptyBody("DestroyPullPoint"))
	_, err := s.call(p, wsn.GetMessagesBody(1))
	wantFault(t, err, wsn.ResourceUnknown)
	if len(s.subscriptions) != 0 {
		t.Error("the pull point's subscription lives on")
	}
}

func TestAClientMayWaitForMessages(t *testing.T) {
	s := start(t, Limits{})
	p := s.pullPoint()
	s.subscribe(p, "", "#")
	time.AfterFunc(100*time.Millisecond, func() { s.publish("a", "late") })
	request, _ := http.NewRequest(http.MethodPost, p, bytes.NewReader(wsn.Envelope(soap.SOAP11, soap.Header{}, wsn.GetMessagesBody(1))))
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
	s := start(t, Limits{Topics: 2})
	get := func(topic string) (string, error) {
		body, err := s.call(s.url+wsn.BrokerPath, wsn.GetCurrentMessageBody(wsn.TopicOf(topic).Expression()))
		if err != nil {
			return "", err
		}
		element, err := wsn.ParseCurrentMessage(body)
		if err != nil {
			t.Fatal(err)
		}
		content, err := soap.Extract(element)
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
	wantFault(t, err, wsn.NoCurrentMessageOnTopic)
	_, err = s.call(s.url+wsn.BrokerPath, wsn.GetCurrentMessageBody(wsn.FilterOf("#")))
	wantFault(t, err, wsn.InvalidTopicExpression)
}

func TestPublishersRegister(t *testing.T) {
	s := start(t, Limits{})
	request := wsn.RegisterPublisher{Topics: []wsn.TopicExpression{wsn.TopicOf("a/b").Expression()}, Termination: wsn.Time(time.Now().Add(time.Hour))}
	registration, err := wsn.ParseRegistered(s.must(s.url+wsn.BrokerPath, request.Body()))
	if err != nil {
		t.Fatal(err)
	}
	s.must(registration.Address, wsn.BrokeredBody("DestroyRegistration"))
	_, err = s.call(registration.Address, wsn.BrokeredBody("DestroyRegistration"))
	wantFault(t, err, wsn.ResourceUnknown)
	request.Demand = true
	_, err = s.call(s.url+wsn.BrokerPath, request.Body())
	wantFault(t, err, wsn.PublisherRegistrationFailed)
}

func TestASlowConsumerHoldsNobody(t *testing.T) {
	s := start(t, Limits{QueueMessages: 10})
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
	s := start(t, Limits{Failures: 3})
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
	s := start(t, Limits{})
	for name, body := range map[string]string{
		"no XML": "hello", "a bomb": `<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`, "empty": "",
		"not of this service": string(wsn.Envelope(soap.SOAP11, soap.Header{}, wsn.RenewBody("PT1S"))), "no message": string(wsn.Envelope(soap.SOAP11, soap.Header{}, "<wsnt:Notify/>")),
		"a wildcard topic": string(wsn.Envelope(soap.SOAP12, soap.Header{}, wsn.NotifyBody(wsn.NotificationMessage{Topic: wsn.FilterOf("#"), Message: []byte("<a/>")}))),
	} {
		response, err := http.Post(s.url+wsn.BrokerPath, "text/xml", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if _, err := wsn.ParseMessage(data); response.StatusCode < 400 || err == nil {
			t.Errorf("%s: status %d, %s", name, response.StatusCode, data)
		} else if fault, ok := errors.AsType[*wsn.Fault](err); !ok {
			t.Errorf("%s: %v", name, fault)
		}
	}
	if got := testutil.ToFloat64(s.metrics.rejected.WithLabelValues("malformed")) + testutil.ToFloat64(s.metrics.rejected.WithLabelValues("fault")); got != 6 {
		t.Errorf("%v requests counted; want 6", got)
	}
	for path, want := range map[string]int{"/": http.StatusNotFound, wsn.BrokerPath: http.StatusMethodNotAllowed} {
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

func heapMiB() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc+m.StackInuse) >> 20
}

func TestTenThousandSubscriptionsAndBadRequestsTakeBoundedMemory(t *testing.T) {
	s := start(t, Limits{HeldMiB: 4, QueueMessages: 100})
	before := heapMiB()
	// All are paused, so everything is queued.
	for range 10000 {
		request := wsn.Subscribe{Consumer: soap.EPR{Address: "http://127.0.0.1:9/"}, Topics: []wsn.TopicExpression{wsn.FilterOf("a/+")}}
		s.handle(request.Body())
	}
	for _, subscription := range s.subscriptions {
		subscription.setPaused(true)
	}
	subscribed := heapMiB()
	refused := 0
	content := strings.Repeat("x", 60000)
	for i := range 100 {
		topic := wsn.TopicOf(fmt.Sprintf("b/%d", i)).Expression()
		if i%25 == 0 {
			topic = wsn.TopicOf(fmt.Sprintf("a/%d", i)).Expression()
		}
		if s.handle(wsn.NotifyBody(wsn.NotificationMessage{Topic: topic, Message: soap.Embed([]byte(content))})) == http.StatusServiceUnavailable {
			refused++
		}
		s.handle("<wsnt:Notify><" + strings.Repeat("a", 10000))
	}
	after := heapMiB()
	t.Logf("heap and stacks: %d MiB, with 10000 subscriptions %d, after messages %d; %d messages refused", before, subscribed, after, refused)
	if refused == 0 || after > before+200 || s.held.Load() > 5<<20 {
		t.Errorf("%d refused, %d MiB more, %d bytes held; want some, at most 200, at most 5 MiB", refused, after-before, s.held.Load())
	}
	if s.reading.Load() != 0 {
		t.Errorf("%d bytes count as being read", s.reading.Load())
	}
}

// handle handles a request without the network.
func (s *service) handle(body string) int {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, wsn.BrokerPath, bytes.NewReader(wsn.Envelope(soap.SOAP11, soap.Header{}, body))))
	return w.Code
}

func TestHalfOpenAndSlowClientsDoNotStopTheService(t *testing.T) {
	b, err := New(Config{Instance: "nor/broker", Listen: ":0"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n<", wsn.BrokerPath)
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

func TestConfigurationsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"instance": func(c *Config) { c.Instance = "" }, "listen": func(c *Config) { c.Listen = "8080" }, "keyFile": func(c *Config) { c.CertFile = "x" },
		"passwordFile": func(c *Config) { c.UsernameFile = "x" }, "metricsPort": func(c *Config) { c.MetricsPort = -1 }, "topics": func(c *Config) { c.Topics = -1 },
	} {
		c := Config{Instance: "a/b", Listen: ":8080"}
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want an error that names %s", err, want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		wsn.NotifyBody(wsn.NotificationMessage{Topic: wsn.TopicOf("/a/b").Expression(), Message: []byte("<a/>")}), wsn.EmptyBody("CreatePullPoint"), wsn.RegisterPublisher{}.Body(),
		wsn.GetCurrentMessageBody(wsn.TopicOf("a").Expression()), wsn.RenewBody("PT1S"), wsn.GetMessagesBody(1),
	} {
		f.Add(wsn.BrokerPath, wsn.Envelope(soap.SOAP11, soap.Header{}, body))
	}
	f.Fuzz(func(t *testing.T, path string, data []byte) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \r\n\t%?#") || bytes.Contains(data, []byte("Subscribe")) {
			return // the broker must not call a foreign consumer
		}
		b, err := New(Config{Instance: "a/b", Listen: ":0"})
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
