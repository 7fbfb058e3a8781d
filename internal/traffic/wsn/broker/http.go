package broker

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"vignette.dev/vignette/internal/soap"
	"vignette.dev/vignette/internal/traffic/wsn/wire"
)

// Paths of resources created on request; the id follows.
const (
	subscriptionPath = "/wsn/subscriptions/"
	pullPointPath    = "/wsn/pullpoints/"
	publisherPath    = "/wsn/publishers/"
)

const (
	// maxReading is the most bytes of requests being read at once.
	maxReading = 128 << 20
	readPiece  = 16 << 10
	writePiece = 16 << 10
	// maxWait is the longest wait that a GetMessages may ask for.
	maxWait = 30 * time.Second
)

// operation answers a message with a body and its action, or none for a message without response.
type operation func(c *call) (string, error)

// call is one request.
type call struct {
	*soap.Message
	request *http.Request
	// base is the beginning of addresses in answers, such as http://nor:8080.
	base string
	id   string
}

// operations has each service's operations, by the element in the body.
func (b *Broker) operations(path string) (ops map[string]operation, id string) {
	switch {
	case path == wire.BrokerPath:
		return map[string]operation{"Notify": b.notify, "Subscribe": b.subscribe, "GetCurrentMessage": b.getCurrentMessage, "RegisterPublisher": b.registerPublisher}, ""
	case path == wire.PullPointPath:
		return map[string]operation{"CreatePullPoint": b.createPullPoint}, ""
	case strings.HasPrefix(path, subscriptionPath):
		return map[string]operation{"Renew": b.renew, "Unsubscribe": b.unsubscribe, "PauseSubscription": b.pause, "ResumeSubscription": b.resume}, path[len(subscriptionPath):]
	case strings.HasPrefix(path, pullPointPath):
		return map[string]operation{"GetMessages": b.getMessages, "DestroyPullPoint": b.destroyPullPoint, "Notify": b.notifyPullPoint}, path[len(pullPointPath):]
	case strings.HasPrefix(path, publisherPath):
		return map[string]operation{"DestroyRegistration": b.destroyRegistration}, path[len(publisherPath):]
	}
	return nil, ""
}

// ServeHTTP answers one request.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !b.authorized(r) {
		b.metrics.rejected.WithLabelValues("login").Inc()
		w.Header().Set("WWW-Authenticate", `Basic realm="WS-Notification"`)
		http.Error(w, "want the user name and password of the experiment", http.StatusUnauthorized)
		return
	}
	ops, id := b.operations(r.URL.Path)
	switch {
	case ops == nil:
		http.Error(w, fmt.Sprintf("want %s or %s, or an address that they gave", wire.BrokerPath, wire.PullPointPath), http.StatusNotFound)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want POST of a SOAP message", http.StatusMethodNotAllowed)
		return
	}
	data, release, err := b.read(w, r)
	defer release()
	if err != nil {
		reason, status := "cut", http.StatusBadRequest
		switch {
		case errors.Is(err, errTooLarge):
			reason, status = "size", http.StatusRequestEntityTooLarge
		case errors.Is(err, errTooMuch):
			reason, status = "memory", http.StatusServiceUnavailable
		}
		b.metrics.rejected.WithLabelValues(reason).Inc()
		http.Error(w, err.Error(), status)
		return
	}
	m, err := wire.ParseMessage(data)
	if err != nil {
		b.fault(w, m, "malformed", err)
		return
	}
	c := &call{Message: m, request: r, base: "http://" + r.Host, id: id}
	if r.TLS != nil {
		c.base = "https://" + r.Host
	}
	b.answer(w, c, ops)
}

func (b *Broker) answer(w http.ResponseWriter, c *call, ops map[string]operation) {
	if c.Body == nil {
		b.fault(w, c.Message, "malformed", &wire.Fault{Reason: "the body is empty: want a message of WS-Notification"})
		return
	}
	op, known := ops[c.Body.Name.Local]
	if !known || c.Body.Name.Space != wire.NSBase && c.Body.Name.Space != wire.NSBrokered {
		b.fault(w, c.Message, "malformed", &wire.Fault{Reason: fmt.Sprintf("{%s}%s is no message of this service", c.Body.Name.Space, c.Body.Name.Local)})
		return
	}
	body, err := op(c)
	switch {
	case err != nil:
		b.fault(w, c.Message, "fault", err)
	case body == "":
		w.WriteHeader(http.StatusAccepted)
	default:
		action := soap.ResponseAction(c.Action)
		w.Header().Set("Content-Type", c.SOAP.ContentType(action))
		b.write(w, http.StatusOK, wire.Envelope(c.SOAP, soap.Header{Action: action, MessageID: soap.NewMessageID(), RelatesTo: c.MessageID}, body))
	}
}

// write writes a response in pieces, of which each has its own time.
func (b *Broker) write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	control := http.NewResponseController(w)
	for piece := range slices.Chunk(body, writePiece) {
		_ = control.SetWriteDeadline(time.Now().Add(b.stall))
		if _, err := w.Write(piece); err != nil {
			return // a lost client needs no answer
		}
	}
}

// fault answers with a fault. The request may be parsed only in part.
func (b *Broker) fault(w http.ResponseWriter, m *soap.Message, reason string, err error) {
	b.metrics.rejected.WithLabelValues(reason).Inc()
	if m == nil {
		m = &soap.Message{}
	}
	fault, ok := errors.AsType[*wire.Fault](err)
	if !ok {
		fault = &wire.Fault{Reason: err.Error()}
	}
	// SOAP 1.1 has one status for all faults. SOAP 1.2 (its HTTP binding) has another for the sender's.
	status := http.StatusInternalServerError
	switch {
	case fault.Kind == wire.ServerBusy:
		status = http.StatusServiceUnavailable
	case m.SOAP == soap.SOAP12:
		status = http.StatusBadRequest
	}
	w.Header().Set("Content-Type", m.SOAP.ContentType(""))
	b.write(w, status, wire.FaultEnvelope(m.SOAP, m.MessageID, fault, b.now()))
}

// authorized compares in constant time.
func (b *Broker) authorized(r *http.Request) bool {
	if b.username == "" {
		return true
	}
	name, word, _ := r.BasicAuth()
	got, want := sha256.Sum256([]byte(name+"\x00"+word)), sha256.Sum256([]byte(b.username+"\x00"+b.password))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

var (
	errTooLarge = fmt.Errorf("the request is too large: want at most %d bytes", wire.MaxBytes)
	errTooMuch  = errors.New("too much is being read at once")
	errCut      = errors.New("the request ended before it was whole")
)

// read reads a request's body in pieces, and counts each when it arrives: a merely announced size uses no memory.
func (b *Broker) read(w http.ResponseWriter, r *http.Request) ([]byte, func(), error) {
	control := http.NewResponseController(w)
	var data []byte
	counted := int64(0)
	release := func() { b.reading.Add(-counted) }
	for {
		if cap(data)-len(data) < readPiece {
			more := int64(max(readPiece, cap(data)))
			if b.reading.Add(more) > maxReading {
				b.reading.Add(-more)
				return nil, release, errTooMuch
			}
			counted += more
			data = append(make([]byte, 0, len(data)+int(more)), data...)
		}
		until := time.Now().Add(b.stall) // also for the response, which comes after the last piece
		_, _ = control.SetReadDeadline(until), control.SetWriteDeadline(until)
		n, err := r.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case len(data) > wire.MaxBytes:
			return nil, release, errTooLarge
		case errors.Is(err, io.EOF):
			return data, release, nil
		case err != nil:
			return nil, release, errCut
		}
	}
}

func (b *Broker) notify(c *call) (string, error) {
	messages, err := wire.ParseNotify(c.Body)
	if err == nil {
		err = b.publish(messages)
	}
	return "", err
}

// termination reads a time that must not have passed; zero is never.
func (b *Broker) termination(text string, kind wire.FaultKind) (time.Time, error) {
	now := b.now()
	at, err := wire.ParseTermination(text, now)
	if err != nil {
		return at, &wire.Fault{Kind: kind, MinimumTime: now, Reason: err.Error()}
	}
	if !at.IsZero() && !at.After(now) {
		return at, &wire.Fault{Kind: kind, MinimumTime: now, Reason: fmt.Sprintf("termination time %s has passed: it is %s", text, wire.Time(now))}
	}
	return at, nil
}

func (b *Broker) subscribe(c *call) (string, error) {
	request, err := wire.ParseSubscribe(c.Body)
	if err != nil {
		return "", err
	}
	s := &subscription{id: newID(), consumer: request.Consumer, soap: c.SOAP}
	for _, x := range request.Topics {
		filter, err := x.Filter()
		if err != nil {
			return "", err
		}
		s.filters = append(s.filters, filter)
	}
	if s.endpoint, err = wire.ParseEndpoint(request.Consumer.Address); err != nil {
		return "", &wire.Fault{Kind: wire.SubscribeCreationFailed, Reason: "consumer reference: " + err.Error()}
	}
	if s.termination, err = b.termination(request.Termination, wire.UnacceptableInitialTermination); err != nil {
		return "", err
	}
	s.reference.Address = c.base + subscriptionPath + s.id
	ctx, cancel := context.WithCancel(b.ctx)
	s.cancel = cancel
	if err := b.addSubscription(s); err != nil {
		cancel()
		return "", err
	}
	if s.pullPoint == nil {
		go b.deliver(ctx, s)
	}
	return wire.Subscribed{Subscription: s.reference, Now: b.now(), Termination: s.termination}.Body(), nil
}

// addSubscription adds a subscription of a pull point of this broker, under any of the broker's names, or of a remote consumer.
func (b *Broker) addSubscription(s *subscription) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id, ok := strings.CutPrefix(s.endpoint.Path, pullPointPath); ok {
		s.pullPoint = b.pullPoints[id]
	}
	switch {
	case len(b.subscriptions) >= b.limits.Subscriptions:
		return &wire.Fault{Kind: wire.SubscribeCreationFailed, Reason: fmt.Sprintf("there are %d subscriptions: want no more", len(b.subscriptions))}
	case s.pullPoint == nil && s.endpoint.Secure && b.tls == nil:
		return &wire.Fault{Kind: wire.SubscribeCreationFailed, Reason: fmt.Sprintf("consumer %s: the broker has no certificates to check its own against", s.consumer.Address)}
	case s.pullPoint == nil:
		s.queue = newQueue(b.limits.QueueMessages)
	}
	b.subscriptions[s.id] = s
	b.metrics.subscriptions.Set(float64(len(b.subscriptions)))
	return nil
}

// find finds the called subscription.
func (b *Broker) find(c *call) (*subscription, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	s, ok := b.subscriptions[c.id]
	if !ok || s.expired(b.now()) {
		return nil, &wire.Fault{Kind: wire.ResourceUnknown, Reason: fmt.Sprintf("there is no subscription %.40q", c.id)}
	}
	return s, nil
}

func (b *Broker) renew(c *call) (string, error) {
	s, err := b.find(c)
	if err != nil {
		return "", err
	}
	text, err := wire.ParseRenew(c.Body)
	if err != nil {
		return "", err
	}
	at, err := b.termination(text, wire.UnacceptableTermination)
	if err != nil {
		return "", err
	}
	s.setTermination(at)
	return wire.RenewedBody(at, b.now()), nil
}

func (b *Broker) unsubscribe(c *call) (string, error) {
	if _, err := b.find(c); err != nil {
		return "", err
	}
	b.endSubscription(c.id, "unsubscribed")
	return wire.EmptyBody("UnsubscribeResponse"), nil
}

func (b *Broker) pause(c *call) (string, error)  { return b.setPaused(c, true) }
func (b *Broker) resume(c *call) (string, error) { return b.setPaused(c, false) }

// setPaused pauses or resumes a subscription. Messages of a paused one are queued. Pull points have no pause, as nothing is sent to them.
func (b *Broker) setPaused(c *call, paused bool) (string, error) {
	s, err := b.find(c)
	if err != nil {
		return "", err
	}
	s.setPaused(paused)
	return wire.EmptyBody(c.Body.Name.Local + "Response"), nil
}

func (b *Broker) createPullPoint(c *call) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pullPoints) >= b.limits.Subscriptions {
		return "", &wire.Fault{Kind: wire.UnableToCreatePullPoint, Reason: fmt.Sprintf("there are %d pull points: want no more", len(b.pullPoints))}
	}
	id := newID()
	b.pullPoints[id] = &pullPoint{queue: newQueue(b.limits.QueueMessages), last: b.now()}
	b.metrics.pullPoints.Set(float64(len(b.pullPoints)))
	return wire.PullPointBody(soap.EPR{Address: c.base + pullPointPath + id}), nil
}

func (b *Broker) findPullPoint(c *call) (*pullPoint, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	p, ok := b.pullPoints[c.id]
	if !ok {
		return nil, &wire.Fault{Kind: wire.ResourceUnknown, Reason: fmt.Sprintf("there is no pull point %.40q", c.id)}
	}
	return p, nil
}

// wait returns the client's preferred wait (RFC 7240), up to maxWait.
func wait(r *http.Request) time.Duration {
	for _, header := range r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(header, ",") {
			if text, ok := strings.CutPrefix(strings.TrimSpace(preference), "wait="); ok {
				if seconds, err := strconv.ParseUint(text, 10, 16); err == nil {
					return min(time.Duration(seconds)*time.Second, maxWait)
				}
			}
		}
	}
	return 0
}

func (b *Broker) getMessages(c *call) (string, error) {
	p, err := b.findPullPoint(c)
	if err != nil {
		return "", err
	}
	most, err := wire.ParseGetMessages(c.Body)
	if err != nil {
		return "", err
	}
	p.use(b.now())
	items := p.get(c.request.Context(), most, wait(c.request))
	messages := make([]wire.NotificationMessage, len(items))
	for i, item := range items {
		messages[i] = item.notification()
	}
	b.metrics.pulled.Add(float64(len(items)))
	return wire.MessagesBody(messages...), nil
}

func (b *Broker) destroyPullPoint(c *call) (string, error) {
	if !b.endPullPoint(c.id) {
		return "", &wire.Fault{Kind: wire.ResourceUnknown, Reason: fmt.Sprintf("there is no pull point %.40q", c.id)}
	}
	return wire.EmptyBody("DestroyPullPointResponse"), nil
}

// notifyPullPoint accepts messages that another producer sends to a pull point.
func (b *Broker) notifyPullPoint(c *call) (string, error) {
	p, err := b.findPullPoint(c)
	if err != nil {
		return "", err
	}
	messages, err := wire.ParseNotify(c.Body)
	if err != nil {
		return "", err
	}
	var items []item
	var size int64
	for _, n := range messages {
		m := &message{topic: n.Topic, producer: n.Producer, content: append([]byte(nil), n.Message...), held: &b.held}
		items, size = append(items, item{m, n.Subscription}), size+m.size()
	}
	if err := b.makeRoom(size); err != nil {
		return "", err
	}
	for _, i := range items {
		if !p.queue.push(i) {
			b.metrics.dropped.WithLabelValues(dropQueue).Inc()
		}
	}
	return "", nil
}

func (b *Broker) getCurrentMessage(c *call) (string, error) {
	x, err := wire.ParseGetCurrentMessage(c.Body)
	if err != nil {
		return "", err
	}
	topic, err := x.Topic()
	if err != nil {
		return "", err
	}
	content, ok := b.current(topic)
	if !ok {
		return "", &wire.Fault{Kind: wire.NoCurrentMessageOnTopic, Reason: fmt.Sprintf("no message has come on topic %s", x.Text)}
	}
	return wire.CurrentMessageBody(content), nil
}

func (b *Broker) registerPublisher(c *call) (string, error) {
	r, err := wire.ParseRegisterPublisher(c.Body)
	if err != nil {
		return "", err
	}
	if r.Demand {
		return "", &wire.Fault{Kind: wire.PublisherRegistrationFailed, Reason: "demand-based publishing is not offered: want Demand false"}
	}
	for _, x := range r.Topics {
		if _, err := x.Filter(); err != nil {
			return "", err
		}
	}
	end, err := b.termination(r.Termination, wire.UnacceptableInitialTermination)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.registrations) >= b.limits.Subscriptions {
		return "", &wire.Fault{Kind: wire.PublisherRegistrationFailed, Reason: fmt.Sprintf("there are %d publishers: want no more", len(b.registrations))}
	}
	id := newID()
	b.registrations[id] = end
	b.metrics.registrations.Set(float64(len(b.registrations)))
	return wire.RegisteredBody(soap.EPR{Address: c.base + publisherPath + id}, soap.EPR{Address: c.base + wire.BrokerPath}), nil
}

func (b *Broker) destroyRegistration(c *call) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.registrations[c.id]; !ok {
		return "", &wire.Fault{Kind: wire.ResourceUnknown, Reason: fmt.Sprintf("there is no publisher %.40q", c.id)}
	}
	delete(b.registrations, c.id)
	b.metrics.registrations.Set(float64(len(b.registrations)))
	return wire.BrokeredBody("DestroyRegistrationResponse"), nil
}
