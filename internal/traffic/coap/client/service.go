package client

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"

	limits "vignette.dev/vignette/internal/traffic/coap"
	"vignette.dev/vignette/internal/traffic/request"
)

// room is what one message to a remote endpoint can carry.
type room struct {
	// whole is the longest body that needs no blocks.
	whole int
	// exponent and bytes of a block; bytes is 0 if the endpoint has no blocks.
	exponent uint8
	bytes    int
	// stream: blocks of several units may come (BERT).
	stream bool
}

// arrival is a request as a transport received it.
type arrival struct {
	message   message.Message
	at        time.Time
	from      string
	multicast bool
	room      room
}

// key identifies a transfer in blocks (RFC 9175, section 3.3).
func (a arrival) key() string {
	tag, tagged := option(a.message, optionRequestTag)
	return fmt.Sprintf("%s %d %s %t%x", a.from, a.message.Code, target(a.message), tagged, tag)
}

// reply is a response without its body.
type reply struct {
	code    codes.Code
	options message.Options
}

func (r reply) message(body []byte) message.Message {
	return message.Message{Code: r.code, Options: append(message.Options(nil), r.options...), Payload: body}
}

// service answers requests of every transport.
type service struct {
	handler request.Handler
	store   *store
}

func newService(h request.Handler, lifetime time.Duration) *service {
	return &service{handler: h, store: newStore(lifetime)}
}

// refuse is an error response; the text is for people.
func refuse(code codes.Code, text string) message.Message {
	return message.Message{Code: code, Payload: []byte(text)}
}

// respond returns the response to a request, without token, type and message id.
func (s *service) respond(a arrival) message.Message {
	if id, bad := badOption(a.message); bad {
		if id == message.ProxyURI || id == message.ProxyScheme {
			return refuse(codes.ProxyingNotSupported, "no proxy")
		}
		return refuse(codes.BadOption, fmt.Sprintf("option %d", id))
	}
	switch a.message.Code {
	case codes.GET, codes.POST, codes.PUT:
	default:
		return refuse(codes.MethodNotAllowed, "want GET, POST or PUT")
	}
	if b, ok := blockOption(a.message, message.Block2); ok {
		if b.exponent == bert && !a.room.stream {
			return refuse(codes.BadRequest, "Block2 has a reserved size")
		}
		if b.number > 0 {
			return s.next(a, b)
		}
	}
	b, ok := blockOption(a.message, message.Block1)
	if !ok || a.message.Code == codes.GET {
		return s.serve(a, a.message.Payload)
	}
	body, response, complete := s.assemble(a, b)
	if !complete {
		return response
	}
	response = s.serve(a, body)
	addBlock(&response, message.Block1, block{number: b.number, exponent: b.exponent})
	return response
}

// assemble adds a block to a request's body. It returns the body after the last block, and the response to other blocks.
func (s *service) assemble(a arrival, b block) (body []byte, response message.Message, complete bool) {
	part, key := a.message.Payload, "request "+a.key()
	size, _ := uintOption(a.message, message.Size1)
	switch {
	case b.exponent == bert && !a.room.stream:
		return nil, refuse(codes.BadRequest, "Block1 has a reserved size"), false
	case !wholeBlock(b, len(part)):
		return nil, refuse(codes.BadRequest, "a block has another size than Block1 says"), false
	case b.offset()+len(part) > limits.MaxBytes || size > limits.MaxBytes:
		_, _ = s.store.take(key)
		response = refuse(codes.RequestEntityTooLarge, "the body is too long")
		addUint(&response, message.Size1, limits.MaxBytes)
		return nil, response, false
	case b.number == 0 && !b.more:
		return part, response, true
	case b.number == 0:
		s.store.put(key, append([]byte(nil), part...), reply{})
	case !s.store.extend(key, b.offset(), part):
		return nil, refuse(codes.RequestEntityIncomplete, "a block before this one is missing"), false
	}
	if !b.more {
		body, complete = s.store.take(key)
		if !complete {
			return nil, refuse(codes.RequestEntityIncomplete, "other transfers took the room of this one"), false
		}
		return body, response, true
	}
	response.Code = codes.Continue
	if !a.room.stream {
		b.exponent = min(b.exponent, a.room.exponent)
	}
	addBlock(&response, message.Block1, b)
	return nil, response, false
}

// wholeBlock reports whether a payload has the length of its block.
func wholeBlock(b block, length int) bool {
	switch {
	case !b.more:
		return b.exponent == bert || length <= b.unit()
	case b.exponent == bert:
		return length > 0 && length%b.unit() == 0
	}
	return length == b.unit()
}

// serve calls the handler with a whole request.
func (s *service) serve(a arrival, body []byte) message.Message {
	r := request.Request{Path: target(a.message)}
	c, known := formatOf(a.message)
	if !known {
		return refuse(codes.UnsupportedMediaType, "unknown Content-Format")
	}
	if a.message.Code != codes.GET {
		r.Body, r.ContentType, r.ContentEncoding = append([]byte{}, body...), c.mediaType, c.encoding
	}
	return s.pack(a, s.call(a, r))
}

// call is the handler's response as a message, with its whole body.
func (s *service) call(a arrival, r request.Request) message.Message {
	if s.handler == nil {
		return refuse(codes.NotFound, "")
	}
	answer := s.handler(a.at, r)
	response := message.Message{Code: codeOf(answer.Status, a.message.Code), Payload: answer.Body}
	if len(answer.Body) > limits.MaxBytes {
		return refuse(codes.InternalServerError, "the response is too long")
	}
	if class(response.Code) != 2 || len(answer.Body) == 0 {
		return response
	}
	if !addFormat(&response, answer.ContentType, answer.ContentEncoding) {
		return refuse(codes.InternalServerError, "the response's media type has no Content-Format")
	}
	if accepted, ok := uintOption(a.message, message.Accept); ok {
		if number, ok := uintOption(response, message.ContentFormat); ok && number != accepted {
			return refuse(codes.NotAcceptable, "")
		}
	}
	return response
}

// pack cuts a long body; the client fetches the rest.
func (s *service) pack(a arrival, response message.Message) message.Message {
	wanted, asked := blockOption(a.message, message.Block2)
	if len(response.Payload) <= a.room.whole && (!asked || len(response.Payload) <= wanted.unit()) {
		return response
	}
	if a.room.bytes == 0 || a.multicast {
		return refuse(codes.InternalServerError, "the response does not fit one message")
	}
	key := "response " + a.key()
	etag := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(response.Payload))
	add(&response, message.ETag, etag)
	kept := reply{code: response.Code, options: response.Options}
	s.store.put(key, response.Payload, kept)
	if !asked {
		wanted.exponent = a.room.exponent
	}
	first := cut(a.room, kept, response.Payload, block{exponent: min(wanted.exponent, a.room.exponent)})
	addUint(&first, message.Size2, uint32(len(response.Payload)))
	return first
}

// next is the response to a request for a later block.
func (s *service) next(a arrival, b block) message.Message {
	t, ok := s.store.get("response " + a.key())
	if !ok && a.message.Code == codes.GET {
		answer := s.call(a, request.Request{Path: target(a.message)})
		if class(answer.Code) != 2 {
			return answer
		}
		add(&answer, message.ETag, binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(answer.Payload)))
		t, ok = transferred{body: answer.Payload, reply: reply{code: answer.Code, options: answer.Options}}, true
	}
	switch {
	case !ok:
		return refuse(codes.RequestEntityIncomplete, "the response is not kept any more")
	case b.offset() >= len(t.body):
		return refuse(codes.BadRequest, "there is no such block")
	}
	return cut(a.room, t.reply, t.body, b)
}

// cut is a response with one block of its body.
func cut(r room, of reply, body []byte, b block) message.Message {
	length := b.unit()
	if b.exponent == bert {
		length = max(r.bytes, b.unit())
	}
	part := body[b.offset():]
	b.more = len(part) > length
	m := of.message(part[:min(length, len(part))])
	addBlock(&m, message.Block2, b)
	return m
}

// suppressed reports whether the client does not want a response (RFC 7967).
func suppressed(m message.Message, c codes.Code) bool {
	unwanted, ok := uintOption(m, message.NoResponse)
	return ok && c != codes.Continue && unwanted>>(class(c)-1)&1 == 1
}
