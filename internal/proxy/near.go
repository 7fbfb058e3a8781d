package proxy

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/proxy/link"
	"vignette.dev/vignette/internal/proxy/store"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/traffic/request"
)

// near is the proxy that HTTP clients use. It accepts a request by writing it to the disk. It carries the request until there is a
// response, or its deadline is past.
type near struct {
	config  proxyconfig.Config
	store   *store.Store
	sender  link.Sender
	metrics *metrics
	log     *recorder
	ctx     context.Context

	mu sync.Mutex
	// reading is the number of requests that are being read from clients.
	reading int
	// entries have all accepted requests, and responses that are kept, by id.
	entries map[frame.ID]*entry
	// unanswered has entries without a response, in the order of acceptance; waiting those of them that no worker carries.
	unanswered, waiting list.List
	arrived             *sync.Cond
	// acknowledge has requests whose responses are here, for the far proxy to remove.
	acknowledge []store.Record
	// carried is closed and replaced when the link carried something.
	carried chan struct{}
}

// entry is one accepted request.
type entry struct {
	request  store.Record
	response store.Record
	safe     bool
	accepted time.Time
	// ctx ends at the deadline, and when there is an outcome.
	ctx    context.Context
	cancel context.CancelFunc

	// counted: the metrics have its bytes. Only the worker that carries the request uses it.
	counted bool

	// Below near.mu.
	// handedOver: the whole request was sent once, or may have been.
	handedOver bool
	// loggedSent: this process logged that it was sent. A later one is logged as a retransmission.
	loggedSent bool
	// keyed: its client may repeat it, so that the response is kept.
	keyed bool
	// closed: its deadline is past, or it was abandoned. A repetition is a new request.
	closed              bool
	clients             int
	unanswered, waiting *list.Element
	done                bool
	ended               chan struct{}
	wake                map[*client]func()
	// refusal is the proxy's own response; held a service's that the disk has no room for. Without both the response is on the disk.
	refusal *refusal
	held    []byte
}

// openNear takes up what an earlier process accepted. The caller starts its workers.
func openNear(ctx context.Context, config proxyconfig.Config, s *store.Store, records []store.Record, sender link.Sender, m *metrics, log *recorder) *near {
	n := &near{config: config, store: s, sender: sender, metrics: m, log: log, ctx: ctx, entries: map[frame.ID]*entry{}, carried: make(chan struct{})}
	n.arrived = sync.NewCond(&n.mu)
	m.watch(n)
	for _, r := range records {
		if r.State == store.Response {
			e := n.newEntry(r, false)
			n.entries[r.ID] = e
			e.done = true
			close(e.ended)
			n.forgetLater(e)
		}
	}
	for _, r := range records {
		if r.State == store.Request {
			n.takeUp(r)
		}
	}
	return n
}

// takeUp goes on with a request of an earlier process. Its client is gone.
func (n *near) takeUp(r store.Record) {
	n.mu.Lock()
	e, answered := n.entries[r.ID]
	n.mu.Unlock()
	if answered && e.done {
		n.store.Remove(r)
		return
	}
	safe := true
	if file, err := n.store.Open(r); err == nil {
		if c, err := frame.ReadContent(file); err == nil {
			safe = requestOf(c).Safe()
		}
		file.Close()
	}
	e = n.newEntry(r, safe)
	e.handedOver = true // an earlier process may have sent it
	e.keyed = true      // it does not say whether it was
	e.accepted = r.Deadline.Add(-secondsOf(n.config.Near.DeadlineSeconds))
	n.enqueue(e)
	if safe {
		n.abandon(e, "the proxy was stopped before there was a response, and the client is gone")
	}
}

func (n *near) newEntry(r store.Record, safe bool) *entry {
	e := &entry{safe: safe, accepted: time.Now(), ended: make(chan struct{}), wake: map[*client]func(){}}
	e.request, e.response = r, r
	e.request.State, e.response.State = store.Request, store.Response
	e.ctx, e.cancel = context.WithDeadline(n.ctx, r.Deadline)
	return e
}

// enqueue has an accepted request carried.
func (n *near) enqueue(e *entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.enqueueLocked(e)
}

// enqueueLocked is enqueue for a caller with the lock.
func (n *near) enqueueLocked(e *entry) {
	n.entries[e.request.ID] = e
	e.unanswered, e.waiting = n.unanswered.PushBack(e), n.waiting.PushBack(e)
	n.arrived.Signal()
	context.AfterFunc(e.ctx, func() { n.expire(e) })
}

// expire answers a request whose deadline is past.
func (n *near) expire(e *entry) {
	if !errors.Is(e.ctx.Err(), context.DeadlineExceeded) {
		return
	}
	r := &refusal{504, errorLink, fmt.Sprintf("The link to the far proxy did not carry the request in the %s until its deadline. "+
		"It was not run.", e.request.Deadline.Sub(e.accepted).Round(time.Millisecond))}
	if e.sentOnce(n) {
		r.kind, r.text = errorResponseTimeout, "The request was sent to the far proxy, and no response came before its deadline. Whether the service acted on it is unknown."
	}
	if n.finish(e, outcomeExpired, r, nil) {
		n.log.failed(e.request.ID, request.Timeout, r.text)
	}
}

func (e *entry) sentOnce(n *near) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return e.handedOver
}

// abandon drops a safe request that was not sent yet, as no client waits for its response. At the proxy's own end the request stays for the
// next process.
func (n *near) abandon(e *entry, why string) {
	n.mu.Lock()
	free := e.clients == 0 && (e.waiting != nil || !e.handedOver) && n.ctx.Err() == nil
	n.mu.Unlock()
	if free && n.finish(e, outcomeAbandoned, &refusal{504, errorLink, "The client did not wait for the response."}, nil) {
		n.log.failed(e.request.ID, request.Cancelled, why)
	}
}

// finish ends a request with a response of the proxy's own, one that is held in memory, or one on the disk. It reports whether the request
// had no outcome yet.
func (n *near) finish(e *entry, outcome string, own *refusal, held []byte) bool {
	n.mu.Lock()
	abandoned := outcome == outcomeAbandoned
	if e.done || abandoned && e.clients > 0 { // one has asked again meanwhile
		n.mu.Unlock()
		return false
	}
	if held != nil && e.clients == 0 { // as many might collect until their deadlines
		own, held = &refusal{502, errorInternal, "There was a response, which the proxy could not keep on its full disk."}, nil
	}
	e.done, e.refusal, e.held, e.closed = true, own, held, abandoned
	unwanted := n.dropLocked(e)
	n.unanswered.Remove(e.unanswered)
	if e.waiting != nil {
		n.waiting.Remove(e.waiting)
		e.waiting = nil
	}
	for _, wake := range e.wake {
		wake()
	}
	e.wake = nil
	n.mu.Unlock()
	close(e.ended)
	e.cancel()
	n.metrics.requests.WithLabelValues(outcome).Inc()
	n.store.Remove(e.request)
	if unwanted {
		n.store.Remove(e.response)
		return true
	}
	n.forgetLater(e)
	return true
}

// forgetLater removes a response at its deadline. Clients that wait for it then still get it.
func (n *near) forgetLater(e *entry) {
	time.AfterFunc(time.Until(e.request.Deadline), func() {
		n.mu.Lock()
		e.closed = true
		unwanted := n.dropLocked(e)
		n.mu.Unlock()
		if unwanted {
			n.store.Remove(e.response)
		}
	})
}

// dropLocked drops a request for whose response nobody can ask any more. It reports whether the caller is to remove the response:
// nobody reads it either.
func (n *near) dropLocked(e *entry) bool {
	if !e.done || e.keyed && !e.closed {
		return false
	}
	if n.entries[e.request.ID] == e {
		delete(n.entries, e.request.ID)
	}
	if e.clients > 0 {
		return false
	}
	e.held = nil
	return true
}

// work carries requests until the proxy ends.
func (n *near) work() {
	for {
		e := n.take()
		if e == nil {
			return
		}
		atStep(stepTaken)
		n.carry(e)
	}
}

// take waits for the request that has waited longest; nil at the proxy's end.
func (n *near) take() *entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.waiting.Len() == 0 {
		if n.ctx.Err() != nil {
			return nil
		}
		n.arrived.Wait()
	}
	if n.ctx.Err() != nil {
		return nil
	}
	e := n.waiting.Remove(n.waiting.Front()).(*entry)
	e.waiting = nil
	return e
}

// carry tries until there is an outcome.
func (n *near) carry(e *entry) {
	content, err := n.read(e.request)
	if err != nil {
		if e.ctx.Err() == nil && n.finish(e, outcomeDisk, &refusal{500, errorInternal, "The proxy cannot read the request from its disk."}, nil) {
			n.log.failed(e.request.ID, request.Invalid, "the request cannot be read from the disk")
		}
		return
	}
	wait := n.config.Retry.FirstSeconds
	for e.ctx.Err() == nil {
		n.mu.Lock()
		carried := n.carried
		n.mu.Unlock()
		err := n.attempt(e, content)
		if err == nil {
			return
		}
		if e.ctx.Err() != nil {
			return
		}
		n.log.warnOnce(err)
		n.metrics.retries.Inc()
		n.pause(e, wait, carried)
		wait = min(wait*n.config.Retry.Factor, n.config.Retry.MaxSeconds)
	}
}

// pause waits before the next attempt. When the link carried another request meanwhile, the wait is the first one again.
func (n *near) pause(e *entry, seconds float64, carried <-chan struct{}) {
	select {
	case <-e.ctx.Done():
		return
	case <-time.After(secondsOf(seconds)):
		return
	case <-carried:
	}
	select {
	case <-e.ctx.Done():
	case <-time.After(secondsOf(n.config.Retry.FirstSeconds)):
	}
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// attempt carries a request once. If the far proxy may have it already, a query asks so first, which is shorter.
func (n *near) attempt(e *entry, content []byte) error {
	if e.sentOnce(n) {
		answer, err := n.exchange(e, frame.Frame{Kind: frame.Query, ID: e.request.ID, Deadline: e.request.Deadline})
		if err != nil {
			return err
		}
		if answer.Kind != frame.Unknown {
			return n.answered(e, answer)
		}
	}
	answer, err := n.exchange(e, frame.Frame{Kind: frame.Request, ID: e.request.ID, Deadline: e.request.Deadline, Content: content})
	if err != nil {
		return err
	}
	return n.answered(e, answer)
}

// exchange carries one frame and its answer.
func (n *near) exchange(e *entry, out frame.Frame) (answer frame.Frame, err error) {
	acknowledged := n.takeAcknowledged()
	for _, r := range acknowledged {
		out.Acknowledged = append(out.Acknowledged, r.ID)
	}
	defer func() {
		if err != nil { // it may not have arrived
			n.addAcknowledged(acknowledged...)
		}
	}()
	b := out.Append(nil, n.config.Compression)
	if out.Kind == frame.Request && !e.counted {
		e.counted = true
		n.metrics.carried(toFar, len(out.Content), len(b))
	}
	n.metrics.link.WithLabelValues(toFar).Add(float64(len(b)))
	received, err := n.sender.Carry(e.ctx, b, func(at time.Time) { n.sent(e, out, at) })
	if err != nil {
		return answer, err
	}
	answer, err = frame.Parse(received, frame.ContentLimit(n.config.Limits.BodyBytes))
	if err != nil || answer.ID != e.request.ID {
		return answer, &request.Failure{Reason: request.Invalid, Detail: "the far proxy's answer is malformed, too large, or of another version of the proxy"}
	}
	if answer.Kind == frame.Response || answer.Kind == frame.Failure {
		n.metrics.carried(toNear, len(answer.Content), len(received))
	}
	return answer, nil
}

// addAcknowledged has a later frame tell the far proxy that it may remove responses.
func (n *near) addAcknowledged(records ...store.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acknowledge = append(n.acknowledge, records...)
}

// takeAcknowledged returns the oldest of them that a frame has room for. At their deadlines the far proxy removes responses by itself.
func (n *near) takeAcknowledged() []store.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	n.acknowledge = slices.DeleteFunc(n.acknowledge, func(r store.Record) bool { return now.After(r.Deadline) })
	count := min(len(n.acknowledge), frame.MaxAcknowledged)
	taken := slices.Clone(n.acknowledge[:count])
	n.acknowledge = slices.Delete(n.acknowledge, 0, count)
	return taken
}

// sent notes that a frame was handed over.
func (n *near) sent(e *entry, out frame.Frame, at time.Time) {
	if out.Kind != frame.Request {
		return
	}
	n.mu.Lock()
	status := messagelog.Sent
	if e.loggedSent {
		status = messagelog.Retransmitted
	}
	e.handedOver, e.loggedSent = true, true
	n.mu.Unlock()
	n.log.record(at, status, e.request.ID, len(out.Content), "")
	atStep(stepSent)
}

// answered ends a request with the far proxy's answer.
func (n *near) answered(e *entry, answer frame.Frame) error {
	switch answer.Kind {
	case frame.Response, frame.Failure:
	case frame.Busy:
		return &request.Failure{Reason: request.Rejected, Detail: answer.Text}
	default:
		return &request.Failure{Reason: request.Invalid, Detail: "the far proxy's answer is malformed"}
	}
	at := time.Now()
	atStep(stepAnswered)
	var held []byte
	if err := n.store.Put(e.response, answer.Content); err != nil {
		n.log.warn("a response cannot be kept for a client that does not wait for it: " + err.Error())
		held = answer.Content
	}
	atStep(stepStored)
	n.hasCarried()
	n.addAcknowledged(e.request) // before its client has the response, whose next request says so to the far proxy
	outcome := outcomeAnswered
	if answer.Kind == frame.Failure {
		outcome = outcomeFailed
	}
	if !n.finish(e, outcome, nil, held) { // its deadline passed meanwhile
		n.store.Remove(e.response)
		return nil
	}
	if answer.Kind == frame.Failure {
		n.log.failed(e.request.ID, request.Reason(answer.Reason), reasonIn(answer.Content))
		return nil
	}
	n.log.record(at, messagelog.Receipt, e.request.ID, len(answer.Content), "")
	return nil
}

// hasCarried tells all workers that the link carries.
func (n *near) hasCarried() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.carried)
	n.carried = make(chan struct{})
}

// reasonIn returns the sentence of a proxy's own response.
func reasonIn(content []byte) string {
	c, err := frame.ReadContent(bytes.NewReader(content))
	if err != nil {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(c, 1000))
	return string(bytes.TrimSpace(text))
}

func (n *near) read(r store.Record) ([]byte, error) {
	file, err := n.store.Open(r)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// length is the number of requests without a response.
func (n *near) length() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unanswered.Len()
}

// oldest is the age of the oldest of them in seconds.
func (n *near) oldest() float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if first := n.unanswered.Front(); first != nil {
		return time.Since(first.Value.(*entry).accepted).Seconds()
	}
	return 0
}
