package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/proxy/message"
	"vignette.dev/vignette/internal/proxy/store"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/traffic/request"
)

// far is the proxy that calls services. It runs a request once, however often it arrives: the id is recorded before the service is called, and
// the response until the request's deadline. A record may be removed then, as an arriving request whose deadline is past is never run.
type far struct {
	config  proxyconfig.Config
	store   *store.Store
	metrics *metrics
	log     *recorder
	// running bounds the calls of services.
	running chan struct{}
	calls   sync.WaitGroup
	// ctx ends all calls.
	ctx context.Context

	mu      sync.Mutex
	records map[frame.ID]*call
	// held are the bytes of answers that the disk had no room for.
	held int
}

// heldLimit is the most such bytes. Beyond, requests wait at the near proxy.
const heldLimit = 64 << 20

// call is a request that arrived.
type call struct {
	record store.Record
	// done is closed when there is an answer.
	done chan struct{}
	// answer is the frame for the near proxy, if it is not on the disk.
	answer []byte
	// acknowledged: the near proxy has the answer, which is gone. Below far.mu.
	acknowledged bool
}

// openFar takes up what an earlier process recorded.
func openFar(ctx context.Context, config proxyconfig.Config, s *store.Store, records []store.Record, m *metrics, log *recorder) *far {
	f := &far{config: config, store: s, metrics: m, log: log, running: make(chan struct{}, config.Limits.Concurrent), ctx: ctx, records: map[frame.ID]*call{}}
	for _, r := range records {
		if r.State == store.Response || r.State == store.Acknowledged {
			f.keep(&call{record: r, acknowledged: r.State == store.Acknowledged})
		}
	}
	for _, r := range records {
		if r.State != store.Started {
			continue
		}
		if f.known(r.ID) || f.interrupted(r) {
			f.store.Remove(r)
		}
	}
	return f
}

// interrupted answers a request during whose call an earlier process ended. It reports whether the record of that call can go.
func (f *far) interrupted(r store.Record) bool {
	f.metrics.requests.WithLabelValues(outcomeUnknown).Inc()
	c, _ := f.find(frame.Frame{Kind: frame.Request, ID: r.ID, Deadline: r.Deadline})
	if c == nil { // its deadline is past
		return true
	}
	return f.finish(c, f.failed(r.ID, errStopped))
}

// errStopped answers a request whose call the proxy's end cut.
var errStopped = &refusal{http.StatusBadGateway, errorTerminated,
	"The far proxy was stopped while it called the service. Whether the service acted on the request is unknown, so it is not sent again."}

func (f *far) known(id frame.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.records[id] != nil
}

// keep has an answered call until its deadline.
func (f *far) keep(c *call) {
	if c.done == nil {
		c.done = make(chan struct{})
		close(c.done)
	}
	f.mu.Lock()
	f.records[c.record.ID] = c
	f.mu.Unlock()
	f.forgetLater(c)
}

func (f *far) forgetLater(c *call) {
	time.AfterFunc(time.Until(c.record.Deadline), func() {
		f.forget(c)
		for _, state := range []store.State{store.Response, store.Acknowledged, store.Started} {
			r := c.record
			r.State = state
			f.store.Remove(r)
		}
		f.free(c)
	})
}

// free gives up an answer that is in memory.
func (f *far) free(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held -= len(c.answer)
	c.answer = nil
}

// acknowledged removes the answers that the near proxy has on its disk. The ids stay until their deadlines, so that late copies never run.
func (f *far) acknowledged(ids []frame.ID) {
	for _, id := range ids {
		f.mu.Lock()
		c := f.records[id]
		first := c != nil && !c.acknowledged && isClosed(c.done)
		if first {
			c.acknowledged = true
		}
		f.mu.Unlock()
		if !first {
			continue
		}
		f.free(c)
		_ = f.store.Acknowledge(c.record) // if it fails, the answer was in memory only, or stays on the disk
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// hold counts answers in memory, and reports whether there is room for more.
func (f *far) hold(bytes int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held += bytes
	return f.held < heldLimit
}

func (f *far) forget(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.records[c.record.ID] == c {
		delete(f.records, c.record.ID)
	}
}

// handle is a link.Handler.
func (f *far) handle(ctx context.Context, b []byte) []byte {
	at := time.Now()
	answer := f.respond(ctx, at, b)
	f.metrics.link.WithLabelValues(toNear).Add(float64(len(answer)))
	atStep(stepAnswering)
	return answer
}

func (f *far) respond(ctx context.Context, at time.Time, b []byte) []byte {
	in, err := frame.Parse(b, frame.ContentLimit(f.config.Limits.BodyBytes))
	if err != nil || in.Kind != frame.Request && in.Kind != frame.Query {
		f.log.warn("a frame of the near proxy is malformed, too large, or of another version of the proxy")
		return nil
	}
	atStep(stepArrived)
	f.acknowledged(in.Acknowledged)
	c, first := f.find(in)
	switch {
	case c == nil && !at.Before(in.Deadline):
		f.metrics.requests.WithLabelValues(outcomeExpired).Inc()
		return f.failure(in.ID, request.Timeout, &refusal{http.StatusGatewayTimeout, errorLink, "The request arrived at the far proxy after its deadline. It was not run."})
	case c == nil:
		return f.encode(frame.Frame{Kind: frame.Unknown, ID: in.ID})
	case first:
		f.calls.Go(func() {
			f.run(c, in, func() {
				f.log.record(at, messagelog.Received, in.ID, len(in.Content), "")
				f.metrics.carried(toFar, len(in.Content), len(b))
			})
		})
	default:
		f.metrics.requests.WithLabelValues(outcomeRepeated).Inc()
	}
	select {
	case <-c.done:
		return f.answerOf(c)
	case <-ctx.Done(): // the near proxy asks again
		return nil
	}
}

// find returns the call of a request, a new one at its first arrival. A query, and a request after its deadline, make none.
func (f *far) find(in frame.Frame) (c *call, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, known := f.records[in.ID]; known {
		return c, false
	}
	if in.Kind == frame.Query || !time.Now().Before(in.Deadline) {
		return nil, false
	}
	c = &call{record: store.Record{ID: in.ID, Deadline: in.Deadline, State: store.Response}, done: make(chan struct{})}
	f.records[in.ID] = c
	return c, true
}

// answerOf returns a call's answer, from the disk if it is there.
func (f *far) answerOf(c *call) []byte {
	f.mu.Lock()
	answer, acknowledged := c.answer, c.acknowledged
	f.mu.Unlock()
	switch {
	case answer != nil:
		return answer
	case acknowledged:
		return f.failure(c.record.ID, request.Invalid, &refusal{http.StatusBadGateway, errorInternal, "The near proxy has acknowledged the response, which is gone."})
	}
	file, err := f.store.Open(c.record)
	if err == nil {
		defer file.Close()
		var answer []byte
		if answer, err = io.ReadAll(file); err == nil {
			return answer
		}
	}
	return f.encode(frame.Frame{Kind: frame.Busy, ID: c.record.ID, Text: "the recorded response cannot be read"})
}

// startedOf returns the record that a request's service is called.
func startedOf(r store.Record) store.Record {
	r.State = store.Started
	return r
}

// finish answers a call with a frame that is kept until the deadline. It reports whether the disk has it.
func (f *far) finish(c *call, answer []byte) bool {
	err := f.store.Put(c.record, answer)
	if err != nil {
		f.log.warn("a response cannot be recorded, and stays in memory: " + err.Error())
		c.answer = answer
		f.hold(len(answer))
	}
	atStep(stepRecorded)
	close(c.done)
	f.forgetLater(c)
	return err == nil
}

// postpone answers a call that cannot be recorded now. When the request arrives again, it is run.
func (f *far) postpone(c *call, answer []byte) {
	c.answer = answer
	f.forget(c)
	close(c.done)
}

// leave leaves a request to the next process, if this one ends.
func (f *far) leave(c *call) bool {
	if f.ctx.Err() == nil {
		return false
	}
	f.postpone(c, f.encode(frame.Frame{Kind: frame.Busy, ID: c.record.ID, Text: "the far proxy ends"}))
	return true
}

// run calls the service. It calls received once, unless the request is postponed: then it arrives again.
func (f *far) run(c *call, in frame.Frame, received func()) {
	ctx, cancel := context.WithDeadline(f.ctx, in.Deadline)
	defer cancel()
	select {
	case f.running <- struct{}{}:
		defer func() { <-f.running }()
	case <-ctx.Done():
		if f.leave(c) {
			return
		}
		received()
		f.finish(c, f.failure(in.ID, request.Timeout, &refusal{http.StatusGatewayTimeout, errorLimit, "The far proxy was busy until the request's deadline. It was not run."}))
		return
	}
	s, err := dialService(ctx, in.Content)
	if err != nil {
		if f.leave(c) {
			return
		}
		received()
		f.metrics.requests.WithLabelValues(outcomeUnavailable).Inc()
		f.finish(c, f.failed(in.ID, err))
		return
	}
	defer s.close()
	atStep(stepDialled)
	if !f.hold(0) {
		f.postpone(c, f.encode(frame.Frame{Kind: frame.Busy, ID: in.ID, Text: "the far proxy's disk is full"}))
		return
	}
	started := startedOf(c.record)
	if !s.request.Safe() { // another run of a safe request changes nothing
		if err := f.store.Put(started, nil); err != nil {
			f.postpone(c, f.encode(frame.Frame{Kind: frame.Busy, ID: in.ID, Text: "the far proxy cannot record the request: " + err.Error()}))
			return
		}
	}
	received()
	atStep(stepStarted)
	content, err := s.call(f.config.Limits.BodyBytes)
	atStep(stepResponded)
	switch {
	case err == nil:
		f.log.record(time.Now(), messagelog.Processed, in.ID, len(content), "")
	case s.request.Safe() && f.leave(c):
		return
	case f.ctx.Err() != nil:
		err = errStopped
	}
	if f.finish(c, f.outcome(in.ID, content, err)) { // else it keeps the next process from running the request again
		f.store.Remove(started)
	}
}

// outcome returns the frame with a service's response, or with the reason why there is none.
func (f *far) outcome(id frame.ID, content []byte, err error) []byte {
	if err != nil {
		f.metrics.requests.WithLabelValues(outcomeUnknown).Inc()
		return f.failed(id, err)
	}
	f.metrics.requests.WithLabelValues(outcomeRun).Inc()
	answer := f.encode(frame.Frame{Kind: frame.Response, ID: id, Content: content})
	f.metrics.carried(toNear, len(content), len(answer))
	return answer
}

// failed returns the frame for an error of a service.
func (f *far) failed(id frame.ID, err error) []byte {
	r := &refusal{http.StatusBadGateway, errorInternal, "The far proxy failed."}
	errors.As(err, &r)
	reason := map[string]request.Reason{errorRefused: request.Refused, errorName: request.Unreachable, errorUnroutable: request.Unreachable,
		errorResponseTimeout: request.Timeout, errorUnavailable: request.Timeout, errorTerminated: request.Reset}[r.kind]
	if reason == "" {
		reason = request.Invalid
	}
	return f.failure(id, reason, r)
}

func (f *far) failure(id frame.ID, reason request.Reason, r *refusal) []byte {
	return f.encode(frame.Frame{Kind: frame.Failure, ID: id, Reason: string(reason), Content: r.content(farName)})
}

func (f *far) encode(out frame.Frame) []byte {
	return out.Append(nil, f.config.Compression)
}

// wait waits for calls under way.
func (f *far) wait() { f.calls.Wait() }

// headOf returns the request of a content.
func headOf(content []byte) (*frame.Content, message.Request, error) {
	c, err := frame.ReadContent(bytes.NewReader(content))
	if err != nil {
		return nil, message.Request{}, err
	}
	r, err := message.ParseRequest(c.Head.Start)
	return c, r, err
}
