package client

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"

	limits "vignette.dev/vignette/internal/traffic/coap"
	"vignette.dev/vignette/internal/traffic/request"
)

// nothingWanted is the option No-Response for no response at all (RFC 7967): 2.xx, 4.xx and 5.xx.
const nothingWanted = 2 | 8 | 16

// session is the way to a remote endpoint.
type session interface {
	// open begins an exchange, with its token.
	open() (*exchange, error)
	close(*exchange)
	// room is what one message can carry; n is the length of the body to send.
	room(ctx context.Context, n int) (room, error)
	// ask sends a request with the exchange's token, and waits for its response.
	ask(ctx context.Context, x *exchange, m message.Message, p *progress) (message.Message, time.Time, error)
	// tell sends a request that has no response.
	tell(ctx context.Context, m message.Message, p *progress) error
}

// transfer is a request with its response, in blocks where one message is too short.
type transfer struct {
	session  session
	progress *progress
	// request has no body.
	request message.Message
	body    []byte
	receipt bool
	// together keeps another upload to the same resource waiting (RFC 7959, section 2.5).
	together func(context.Context) (release func(), err error)
}

func invalid(format string, values ...any) *request.Failure {
	return &request.Failure{Reason: request.Invalid, Detail: fmt.Sprintf(format, values...)}
}

func (t *transfer) run(ctx context.Context) (message.Message, time.Time, error) {
	room, err := t.session.room(ctx, len(t.body))
	if err != nil {
		return message.Message{}, time.Time{}, err
	}
	if len(t.body) > room.whole {
		if room.bytes == 0 {
			return message.Message{}, time.Time{}, invalid("the addressee accepts %d bytes in a message and no blocks", room.whole)
		}
		release, err := t.together(ctx)
		if err != nil {
			return message.Message{}, time.Time{}, err
		}
		defer release()
		return t.upload(ctx, room)
	}
	m := t.request
	m.Payload = t.body
	if !t.receipt {
		return message.Message{}, time.Time{}, t.tell(ctx, m)
	}
	t.prefer(&m, room)
	response, at, err := t.once(ctx, m)
	if err != nil {
		return response, at, err
	}
	return t.download(ctx, response, at)
}

func (t *transfer) tell(ctx context.Context, m message.Message) error {
	addUint(&m, message.NoResponse, nothingWanted)
	return t.session.tell(ctx, m, t.progress)
}

// prefer asks for the response in blocks no longer than ours. The default is the longest, which needs no option.
func (t *transfer) prefer(m *message.Message, r room) {
	if r.exponent < 6 {
		addBlock(m, message.Block2, block{exponent: r.exponent})
	}
}

// once sends one message and waits for its response.
func (t *transfer) once(ctx context.Context, m message.Message) (message.Message, time.Time, error) {
	x, err := t.session.open()
	if err != nil {
		return message.Message{}, time.Time{}, err
	}
	defer t.session.close(x)
	m.Token = x.token
	return t.session.ask(ctx, x, m, t.progress)
}

// upload sends the body in blocks (Block1), each after the response to the one before.
func (t *transfer) upload(ctx context.Context, r room) (message.Message, time.Time, error) {
	for offset, restarted := 0, false; ; {
		b := block{number: uint32(offset / (block{exponent: r.exponent}).unit()), exponent: r.exponent}
		end := min(offset+r.bytes, len(t.body))
		b.more = end < len(t.body)
		m := t.request
		m.Options = append(message.Options(nil), m.Options...)
		m.Payload = t.body[offset:end]
		addBlock(&m, message.Block1, b)
		if offset == 0 {
			addUint(&m, message.Size1, uint32(len(t.body)))
		}
		if !b.more {
			if !t.receipt {
				return message.Message{}, time.Time{}, t.tell(ctx, m)
			}
			t.prefer(&m, r)
		}
		response, at, err := t.once(ctx, m)
		if err != nil {
			return response, at, err
		}
		got, ok := blockOption(response, message.Block1)
		smaller := ok && got.exponent < r.exponent
		switch {
		case response.Code == codes.RequestEntityTooLarge && smaller && offset == 0 && !restarted:
			r, restarted = smallerRoom(r, got), true
			continue
		case response.Code != codes.Continue && b.more && class(response.Code) == 2:
			return response, at, invalid("the server answered %s before the last block", dotted(response.Code))
		case response.Code != codes.Continue:
			return t.download(ctx, response, at)
		case !b.more:
			return response, at, invalid("the server wants more than the last block")
		case !ok || got.number != b.number:
			return response, at, invalid("the server acknowledged another block than the one it was sent")
		}
		offset = end
		if smaller {
			r = smallerRoom(r, got)
		}
	}
}

func smallerRoom(r room, b block) room {
	return room{whole: r.whole, exponent: b.exponent, bytes: b.unit()}
}

// download fetches the rest of a response (Block2).
func (t *transfer) download(ctx context.Context, first message.Message, at time.Time) (message.Message, time.Time, error) {
	b, ok := blockOption(first, message.Block2)
	if !ok || !b.more && b.number == 0 {
		return first, at, nil
	}
	if b.number != 0 {
		return first, at, invalid("the response begins with block %d", b.number)
	}
	body := append([]byte(nil), first.Payload...)
	etag, _ := option(first, message.ETag)
	for b.more {
		unit := block{exponent: b.exponent}.unit()
		if len(body) == 0 || len(body)%unit != 0 || len(body) > limits.MaxBytes {
			return first, at, invalid("the response has blocks of a wrong length, or is longer than %d bytes", limits.MaxBytes)
		}
		m := t.request
		m.Options = append(message.Options(nil), m.Options...)
		want := block{number: uint32(len(body) / unit), exponent: b.exponent}
		addBlock(&m, message.Block2, want)
		response, when, err := t.once(ctx, m)
		if err != nil {
			return first, at, err
		}
		if class(response.Code) != 2 {
			return response, when, nil
		}
		got, ok := blockOption(response, message.Block2)
		tag, _ := option(response, message.ETag)
		if !ok || got.offset() != len(body) || got.exponent > b.exponent || !bytes.Equal(tag, etag) {
			return first, at, invalid("the response changed while it was fetched, or a block is not the one asked for")
		}
		body, b, at = append(body, response.Payload...), got, when
	}
	first.Payload = body
	return first, at, nil
}
