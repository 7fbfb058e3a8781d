// Package coaplink carries the frames of a proxy pair by CoAP over UDP: each is the body of a confirmable POST, in blocks if it is long.
package coaplink

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"time"

	"vignette.dev/vignette/internal/proxy/link"
	coap "vignette.dev/vignette/internal/traffic/coap/client"
	"vignette.dev/vignette/internal/traffic/request"
)

// Protocol is this one.
var Protocol = link.Protocol{Dial: Dial, Listen: Listen}

const (
	// contentType of frames.
	contentType = "application/octet-stream"
	// noTimeout is the longest time of the protocol's own, as each attempt is bounded here.
	noTimeout = 1e6
	// idBytes of a frame, behind its kind, tell requests apart.
	idBytes = 4
)

func setupOf(setup link.Setup) request.Setup {
	options := setup.Config.CoAP
	return request.Setup{Receipt: true, TimeoutSeconds: noTimeout, Seed: time.Now().UnixNano(), Warn: setup.Warn, CoAP: request.CoAPOptions{
		ACKTimeoutSeconds: options.ACKTimeoutSeconds, MaxRetransmit: options.MaxRetransmit, BlockBytes: options.BlockBytes, NSTART: options.NSTART}}
}

type sender struct {
	peer    request.Peer
	to      string
	silence time.Duration

	mu sync.Mutex
	// attempts of requests whose response has not come yet.
	attempts map[string]int
}

// Dial is part of a link.Protocol.
func Dial(setup link.Setup) (link.Sender, error) {
	peer, err := coap.Open(setupOf(setup))
	if err != nil {
		return nil, err
	}
	return &sender{peer: peer, to: setup.Config.Near.Peer, silence: setup.Silence(), attempts: map[string]int{}}, nil
}

// Carry implements link.Sender. CoAP does not notice when the far proxy stops after its acknowledgement. Nor does it notice a response
// that was given up while the link was cut. So an attempt ends after a time without a next block. That time begins with the first block, as
// other requests may hold it up (NSTART). It grows with each attempt, as the service may only be slow.
func (s *sender) Carry(ctx context.Context, frame []byte, sent func(at time.Time)) ([]byte, error) {
	id := pathOf(frame)
	attempt := s.next(ctx, id)
	limit := s.silence << min(attempt, 10)
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	silent.Stop() // until the frame is handed over
	defer silent.Stop()
	response, _, err := s.peer.Do(bounded, s.to, request.Request{Path: id, Body: frame, ContentType: contentType},
		request.Events{Sent: sent, Retransmitted: sent, Progress: func() { silent.Reset(limit) }})
	if err != nil {
		return nil, link.Failure(err)
	}
	s.forget(id)
	return response.Body, nil
}

// next returns how often a request was tried before. It is forgotten with the request, which may end between two attempts.
func (s *sender) next(ctx context.Context, id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts[id] == 0 {
		context.AfterFunc(ctx, func() { s.forget(id) })
	}
	s.attempts[id]++
	return s.attempts[id] - 1
}

func (s *sender) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.attempts, id)
}

// pathOf returns a resource for a request alone: large bodies to one resource would wait for each other (RFC 7959, 2.5).
func pathOf(frame []byte) string {
	return "/" + hex.EncodeToString(frame[1:min(1+idBytes, len(frame))])
}

// Close implements link.Sender.
func (s *sender) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.peer.Close(ctx)
}

// Listen is part of a link.Protocol.
func Listen(ctx context.Context, setup link.Setup, handle link.Handler) error {
	own := setupOf(setup)
	// NSTART is about requests. A response of its own that waits for a client that is gone must not hold up the others.
	own.CoAP.NSTART = setup.Config.Limits.Concurrent
	own.Listen = setup.Config.Far.Listen
	own.Handler = func(_ time.Time, r request.Request) request.Response {
		answer := handle(ctx, r.Body)
		if answer == nil {
			return request.Response{Status: http.StatusBadRequest}
		}
		return request.Response{Status: http.StatusOK, Body: answer, ContentType: contentType}
	}
	peer, err := coap.Open(own)
	if err != nil {
		return fmt.Errorf("far.listen: %w", err)
	}
	context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		peer.Close(closing)
	})
	return nil
}
