// Package messaging is a node's messaging service: it serves requests of other nodes, and sends its own by a script or each period. A request
// is a message, its response the receipt. Both, and every failure, are in the message log.
package messaging

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/messaging/content"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/request"
)

const (
	// maxOutstanding requests of one service, and bytes of theirs. Further ones fail and are never sent.
	maxOutstanding      = 4096
	maxOutstandingBytes = 256 << 20
	// closeTimeout is how long to wait for outstanding requests: less than the 2 s of grace of instances.
	closeTimeout = 1500 * time.Millisecond
)

// Serve runs the service of a configuration file until ctx ends. SIGUSR1 stops sending only.
func Serve(ctx context.Context, file string) error {
	runtime.GOMAXPROCS(1) // as other clients: with more, idle threads would wake for each message
	config, err := appinstance.ReadConfig[messagingconfig.Config](file)
	if err != nil {
		return err
	}
	log, err := messagelog.Open()
	if err != nil {
		return err
	}
	err = serve(ctx, config, log, appinstance.QuietOn(syscall.SIGUSR1), func(text string) {
		fmt.Fprintf(os.Stderr, "messaging %s: %s\n", config.Instance, text)
	})
	return errors.Join(err, log.Flush())
}

// service is one running messaging service.
type service struct {
	config messagingconfig.Config
	*recorder
	peer request.Peer
	// replies makes the content of responses; nil for receipts only. replied counts them.
	replies  content.Content
	replying sync.Mutex
	replied  int64
	// numbers of messages go on after a start by the timeline, at which the schedule begins anew.
	numbers messagelog.Numbers
	// topics of messages to multicast groups, by the groups' names.
	topics map[string]string
	now    func() time.Time
	sleep  func(context.Context, time.Time) error
}

// serve answers and sends until ctx ends. When quiet is closed it sends no more, and serves on.
func serve(ctx context.Context, config messagingconfig.Config, log *messagelog.Writer, quiet <-chan struct{}, warn func(string)) error {
	start, err := appinstance.Start()
	if err != nil {
		return err
	}
	open, ok := Transports[config.Transport]
	if !ok {
		return fmt.Errorf("transport %q: this program has %s", config.Transport, strings.Join(slices.Sorted(maps.Keys(Transports)), ", "))
	}
	s, schedule, err := newService(config, log, warn)
	if err != nil {
		return err
	}
	if s.numbers, err = messagelog.OpenNumbers(config.Instance, start); err != nil {
		return err
	}
	s.metrics.Serve(ctx, config.MetricsPort, warn)
	if s.peer, err = s.open(open); err != nil {
		return err
	}
	s.run(ctx, schedule, start, quiet)
	return nil
}

// newService makes a service without its peer, and its schedule.
func newService(config messagingconfig.Config, log *messagelog.Writer, warn func(string)) (*service, schedule, error) {
	if err := config.Validate(); err != nil {
		return nil, nil, err
	}
	s := &service{config: config, recorder: newRecorder(config.Instance, log, warn), topics: map[string]string{}, now: time.Now}
	for _, g := range config.Groups {
		s.topics[g.Name] = g.Topic
	}
	var err error
	if s.sleep, err = appinstance.Sleep(); err != nil {
		return nil, nil, err
	}
	schedule, err := newSchedule(config)
	if err == nil && config.Reply != "" {
		s.replies, err = content.OfKind(config, content.ReplySender(config.Instance), config.Reply)
	}
	return s, schedule, err
}

// open starts the protocol's client and server.
func (s *service) open(open request.Open) (request.Peer, error) {
	setup := request.Setup{
		Handler: s.handle, Receipt: s.config.Receipt, TimeoutSeconds: s.config.TimeoutSeconds,
		Interface: s.config.Interface, Seed: s.config.Seed, HTTP: s.config.HTTP, CoAP: s.config.CoAP, SOAP: s.config.SOAP, Warn: s.warn,
	}
	if !s.config.ClientOnly {
		setup.Listen = fmt.Sprintf(":%d", s.config.Port)
	}
	for _, g := range s.config.Groups {
		setup.MulticastGroups = append(setup.MulticastGroups, g.Address)
	}
	return open(setup)
}

// run sends the messages of a schedule, and serves until ctx ends.
func (s *service) run(ctx context.Context, schedule schedule, start time.Time, quiet <-chan struct{}) {
	sending, stopSending := appinstance.UntilQuiet(ctx, quiet)
	defer stopSending()
	// Requests outlive ctx for a short time, in which their responses may come.
	requests, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	var sent sync.WaitGroup
	sent.Go(func() { s.send(sending, requests, &sent, schedule, start) })
	<-ctx.Done()
	finished := make(chan struct{})
	go func() { sent.Wait(); close(finished) }()
	waitFor(finished, closeTimeout)
	cancelRequests()
	waitFor(finished, closeTimeout/10) // for their failures to be logged
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout/10)
	defer cancel()
	s.peer.Close(closing)
}

func waitFor(done <-chan struct{}, longest time.Duration) {
	select {
	case <-done:
	case <-time.After(longest):
	}
}

// send starts a request for each message at its time. A message whose time has passed is sent at once; none is left out.
func (s *service) send(ctx, requests context.Context, running *sync.WaitGroup, schedule schedule, start time.Time) {
	var underWay outstanding
	for number := firstNumber(schedule, s.numbers, s.now().Sub(start)); ; number++ {
		m, ok := schedule.message(number - s.numbers.Before)
		if !ok || s.sleep(ctx, start.Add(m.after)) != nil {
			return
		}
		p, err := s.prepare(number, m, start)
		if err != nil {
			s.neverSent(s.now(), p.id, p.to.Topic, request.Failed(request.Cancelled, err.Error()))
			continue
		}
		if full := underWay.begin(len(p.request.Body)); full != "" {
			s.neverSent(s.now(), p.id, p.to.Topic, request.Failed(request.Cancelled, full))
			continue
		}
		running.Go(func() {
			defer underWay.end(len(p.request.Body))
			s.exchange(requests, p)
		})
	}
}

// outstanding counts the requests under way.
type outstanding struct {
	mu              sync.Mutex
	requests, bytes int
}

// begin counts a request, or returns why there is no room for it. One alone always has room.
func (o *outstanding) begin(bytes int) (full string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.requests == maxOutstanding:
		return fmt.Sprintf("%d requests are outstanding", maxOutstanding)
	case o.requests > 0 && o.bytes+bytes > maxOutstandingBytes:
		return fmt.Sprintf("%d MiB of requests are outstanding", maxOutstandingBytes>>20)
	}
	o.requests, o.bytes = o.requests+1, o.bytes+bytes
	return ""
}

func (o *outstanding) end(bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests, o.bytes = o.requests-1, o.bytes-bytes
}

// outgoing is one request to send.
type outgoing struct {
	id      string
	to      messagingconfig.Addressee
	request request.Request
}

// prepare makes a message's content, and logs it as triggered.
func (s *service) prepare(number int64, m scheduled, start time.Time) (outgoing, error) {
	at := s.now()
	p := outgoing{id: messagelog.MessageID(s.config.Instance, number), to: m.to, request: request.Request{Path: content.PathOf(s.config)}}
	if m.to.Group != "" {
		p.request.Path = path.Join(content.BasePath, m.to.Group)
	}
	p.request.ContentType, p.request.ContentEncoding = m.content.Media()
	body, err := m.content.Append(nil, p.id, at)
	p.request.Body = body
	if err := s.numbers.Note(number); err != nil {
		s.notLogged(err)
	}
	s.triggered(at, p.id, m.to.Topic, len(body), content.Reported(m.content, at))
	s.metrics.lateness.Observe(max(0, at.Sub(start.Add(m.after)).Seconds()))
	return p, err
}

// exchange sends a request and logs what becomes of it.
func (s *service) exchange(ctx context.Context, p outgoing) {
	sent := false
	events := request.Events{
		Sent: func(at time.Time) {
			sent = true
			s.sent(at, p.id, p.to.Topic, len(p.request.Body))
		},
		Retransmitted: func(at time.Time) { s.retransmitted(at, p.id, p.to.Topic) },
	}
	response, at, err := s.peer.Do(ctx, p.to.Address, p.request, events)
	switch {
	case err != nil && !sent:
		s.neverSent(s.now(), p.id, p.to.Topic, err)
	case err != nil:
		s.failed(s.now(), p.id, p.to.Topic, err)
	case response.Status != 0:
		s.receipt(at, p.id, p.to.Topic, len(response.Body))
	}
}

// handle is the request.Handler of the service.
func (s *service) handle(at time.Time, r request.Request) request.Response {
	topic, ok := s.topicOf(r.Path)
	if !ok {
		return request.Response{Status: 404}
	}
	id, made := payload.Parse(r.Body)
	processed := s.now()
	if _, own := messagelog.MessageNumber(s.config.Instance, id); own {
		return request.Response{Status: 204} // its own message to a multicast group
	}
	s.received(at, processed, id, topic, len(r.Body), made)
	if s.replies == nil {
		return request.Response{Status: 204}
	}
	return s.reply(processed)
}

// reply makes a response with content. Requests come at any time, and content is made one after the other.
func (s *service) reply(at time.Time) request.Response {
	s.replying.Lock()
	defer s.replying.Unlock()
	s.replied++
	body, err := s.replies.Append(nil, messagelog.MessageID(content.ReplySender(s.config.Instance), s.replied), at)
	if err != nil {
		s.warn("reply: " + err.Error())
		return request.Response{Status: 500}
	}
	contentType, contentEncoding := s.replies.Media()
	return request.Response{Status: 200, Body: body, ContentType: contentType, ContentEncoding: contentEncoding}
}

// topicOf returns the topic of messages to a path. Other clients may use any path below their own.
func (s *service) topicOf(requested string) (topic string, ok bool) {
	requested, _, _ = strings.Cut(requested, "?")
	if group, ok := strings.CutPrefix(requested, content.BasePath+"/"); ok {
		topic, ok := s.topics[group]
		return topic, ok
	}
	return s.config.Topic, true
}
