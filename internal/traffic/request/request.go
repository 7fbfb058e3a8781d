// Package request is the interface of the traffic program's request/response protocols. Every node may be client and server.
package request

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Request is one message to one addressee, or to a multicast group.
type Request struct {
	// Path at the addressee, such as /messages; it begins with a slash and may have a query.
	Path string
	// Body of a POST. Without one the request is a GET.
	Body []byte
	// ContentType is the media type of Body, such as application/cbor.
	ContentType string
	// ContentEncoding is gzip, or empty.
	ContentEncoding string
}

// Response is the answer to a request: a receipt, with content if the service has some.
type Response struct {
	// Status is that of HTTP, such as 204. Other protocols map theirs to it.
	Status          int
	Body            []byte
	ContentType     string
	ContentEncoding string
}

// Succeeded reports whether the server accepted the request.
func (r Response) Succeeded() bool { return r.Status >= 200 && r.Status < 300 }

// Handler answers a request that left the socket or library at a time. It is called from any goroutine.
type Handler func(at time.Time, r Request) Response

// Events of one request. They are called before Do returns, or not at all.
type Events struct {
	// Sent: the request was handed to the socket, its first block if there are several; at is the time before its first byte.
	Sent func(at time.Time)
	// Retransmitted: the protocol itself sent the request, or a block of it, again.
	Retransmitted func(at time.Time)
	// Progress: the request, or the next of its blocks or of the response's, was handed to the socket for the first time. CoAP alone calls it.
	Progress func()
}

// Peer is a client and a server.
type Peer interface {
	// Do sends a request to host:port and waits for the response, which left the socket or library at a time. If the protocol has no
	// response, as without a receipt or by multicast, it returns once the request is sent: the response is zero.
	// The error is a *Failure.
	Do(ctx context.Context, to string, r Request, e Events) (response Response, at time.Time, err error)
	// Close ends the server and outstanding requests, and waits until ctx ends.
	Close(ctx context.Context)
}

// Setup has the parameters of a peer.
type Setup struct {
	// Listen is the server's host:port, an empty host for all addresses; an empty Listen for no server.
	Listen string
	// Handler answers requests.
	Handler Handler
	// Receipt asks the addressee for a response. HTTP always has one.
	Receipt bool
	// TimeoutSeconds is the longest time for one request.
	TimeoutSeconds float64
	// Interface for multicast, and MulticastGroups (addresses) to join there.
	Interface       string
	MulticastGroups []string
	// Seed of random choices.
	Seed int64
	// A protocol ignores the options of others.
	HTTP HTTPOptions
	CoAP CoAPOptions
	SOAP SOAPOptions
	// Warn logs a problem for people.
	Warn func(text string)
}

// HTTPOptions configure HTTP/1.1.
type HTTPOptions struct {
	// FreshConnections opens a TCP connection for each request. By default connections are kept and used again.
	FreshConnections bool `json:"freshConnections,omitempty"`
	// Proxy is host:port of an HTTP proxy; empty for none.
	Proxy string `json:"proxy,omitempty"`
}

// Encodings of SOAP envelopes.
const (
	EnvelopeGzip = "gzip"
	EnvelopeEXI  = "exi"
)

// SOAPOptions configure SOAP 1.2. SOAP over HTTP has HTTP's options too.
type SOAPOptions struct {
	// Envelope is how requests' envelopes are encoded as a whole: empty for XML, EnvelopeGzip, or EnvelopeEXI (schemaless). Responses are encoded as
	// their requests are.
	Envelope string `json:"envelope,omitempty"`
	// UnicastRepeat and MulticastRepeat are how often SOAP-over-UDP sends a message again; 1 and 2 by default. They are pointers as 0 means never.
	UnicastRepeat   *int `json:"unicastRepeat,omitempty"`
	MulticastRepeat *int `json:"multicastRepeat,omitempty"`
}

// CoAPOptions configure CoAP; zero values mean the defaults of RFC 7252 (section 4.8) and RFC 7959.
type CoAPOptions struct {
	// NonConfirmable sends requests that are not retransmitted.
	NonConfirmable bool `json:"nonConfirmable,omitempty"`
	// ACKTimeoutSeconds is 2 by default, ACKRandomFactor 1.5.
	ACKTimeoutSeconds float64 `json:"ackTimeoutSeconds,omitempty"`
	ACKRandomFactor   float64 `json:"ackRandomFactor,omitempty"`
	// MaxRetransmit is 4 by default; it is a pointer as 0 means none.
	MaxRetransmit *int `json:"maxRetransmit,omitempty"`
	// NSTART is the number of outstanding requests to one addressee, 1 by default.
	NSTART int `json:"nstart,omitempty"`
	// BlockBytes is the size of blocks, a power of 2 from 16 to 1024; 1024 by default.
	BlockBytes int `json:"blockBytes,omitempty"`
	// LeisureSeconds is the time over which servers spread responses to multicast; 5 by default.
	LeisureSeconds float64 `json:"leisureSeconds,omitempty"`
}

// WithDefaults sets what is zero.
func (o CoAPOptions) WithDefaults() CoAPOptions {
	if o.MaxRetransmit == nil {
		o.MaxRetransmit = new(4)
	}
	o.ACKTimeoutSeconds, o.ACKRandomFactor = cmp.Or(o.ACKTimeoutSeconds, 2), cmp.Or(o.ACKRandomFactor, 1.5)
	o.NSTART, o.BlockBytes, o.LeisureSeconds = cmp.Or(o.NSTART, 1), cmp.Or(o.BlockBytes, 1024), cmp.Or(o.LeisureSeconds, 5)
	return o
}

// Open returns a peer of a protocol that serves already. Errors concern the setup, such as a port in use.
type Open func(Setup) (Peer, error)

// Reason says why a request failed.
type Reason string

// Reasons of failed requests.
const (
	// Timeout: no response came in time, after all of the protocol's retransmissions.
	Timeout Reason = "timeout"
	// Reset: the addressee ended the exchange or the connection.
	Reset Reason = "reset"
	// Refused: nobody serves at the addressee's port.
	Refused Reason = "refused"
	// Unreachable: there is no route to the addressee.
	Unreachable Reason = "unreachable"
	// Rejected: the server answered with an error status.
	Rejected Reason = "rejected"
	// Cancelled: the client was stopped before a response came, or gave the request up.
	Cancelled Reason = "cancelled"
	// Invalid: what came back is no response of the protocol.
	Invalid Reason = "invalid"
)

// Reasons has all of them.
var Reasons = []Reason{Timeout, Reset, Refused, Unreachable, Rejected, Cancelled, Invalid}

// Failure is the error of a request.
type Failure struct {
	Reason Reason
	// Detail is for people.
	Detail string
}

func (f *Failure) Error() string {
	if f.Detail == "" {
		return string(f.Reason)
	}
	return fmt.Sprintf("%s: %s", f.Reason, f.Detail)
}

// ReasonOf returns the reason of an error of Do; empty for nil.
func ReasonOf(err error) Reason {
	var f *Failure
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return f.Reason
	}
	return Invalid
}
