// Package client is SOAP 1.2 as a request/response protocol: over HTTP, and in UDP datagrams by OASIS SOAP-over-UDP 1.1.
package client

import (
	"context"
	"net/http"
	"time"

	"vignette.dev/vignette/internal/soap"
	httpreq "vignette.dev/vignette/internal/traffic/http/client"
	"vignette.dev/vignette/internal/traffic/request"
)

// overHTTP implements request.Peer.
type overHTTP struct {
	request.Peer
	encoding string
}

// Open is a request.Open for SOAP over HTTP.
func Open(s request.Setup) (request.Peer, error) {
	if err := checkEncoding(s.SOAP.Envelope); err != nil {
		return nil, err
	}
	handler := s.Handler
	s.Handler = func(at time.Time, r request.Request) request.Response { return answerHTTP(handler, at, r) }
	inner, err := httpreq.Open(s)
	if err != nil {
		return nil, err
	}
	return &overHTTP{Peer: inner, encoding: s.SOAP.Envelope}, nil
}

// answerHTTP answers a request of HTTP.
func answerHTTP(handler request.Handler, at time.Time, r request.Request) request.Response {
	if len(r.Body) == 0 {
		return request.Response{Status: http.StatusBadRequest, ContentType: "text/plain", Body: []byte("want POST of a SOAP envelope\n")}
	}
	m, err := parse(r.ContentEncoding, r.Body)
	replied := answer(handler, at, r.Path, m, err)
	status := http.StatusOK
	if replied.fault != nil {
		status = statusOf(replied.version, replied.fault.Code)
	}
	if replied.envelope == nil {
		if replied.fault == nil {
			status = http.StatusAccepted
		}
		return request.Response{Status: status}
	}
	encoding := r.ContentEncoding
	body, err := encode(encoding, replied.envelope)
	if err != nil {
		// The request's encoding is unknown, which is what the envelope says.
		body, encoding = replied.envelope, ""
	}
	return request.Response{Status: status, Body: body, ContentType: replied.version.ContentType(replied.action), ContentEncoding: encoding}
}

// Do implements request.Peer.
func (p *overHTTP) Do(ctx context.Context, to string, r request.Request, e request.Events) (request.Response, time.Time, error) {
	envelope, id, err := newRequest("http://"+to+r.Path, r, true)
	if err == nil {
		envelope, err = encode(p.encoding, envelope)
	}
	if err != nil {
		return request.Response{}, time.Time{}, request.Failed(request.Invalid, err.Error())
	}
	sent := request.Request{Path: r.Path, Body: envelope, ContentType: soap.SOAP12.ContentType(actionRequest), ContentEncoding: p.encoding}
	response, at, err := p.Peer.Do(ctx, to, sent, e)
	reason := request.ReasonOf(err)
	if reason != "" && reason != request.Rejected {
		return request.Response{}, at, err
	}
	m, invalid := parse(response.ContentEncoding, response.Body)
	switch {
	case reason == request.Rejected && (invalid != nil || m.Fault == nil):
		return request.Response{Status: response.Status}, at, err
	case reason == "" && len(response.Body) == 0:
		// Accepted, without an envelope.
		return request.Response{Status: response.Status}, at, nil
	}
	answered, failure := responseOf(m, invalid, id)
	if failure != nil {
		return answered, at, failure
	}
	return answered, at, nil
}
