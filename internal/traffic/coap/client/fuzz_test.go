package client

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"

	"vignette.dev/vignette/internal/traffic/request"
)

func seeds(f *testing.F, format func(message.Message) ([]byte, error)) {
	for _, code := range []codes.Code{codes.GET, codes.POST, codes.Content, codes.Continue, codes.Empty, codes.CSM} {
		for kind := message.Confirmable; kind <= message.Reset; kind++ {
			m := message.Message{Type: kind, Code: code, MessageID: 7}
			if code != codes.Empty {
				m.Token, m.Payload = message.Token("token"), body(16)
				add(&m, message.URIPath, []byte("messages"))
				addUint(&m, message.Observe, 0)
				addUint(&m, message.ContentFormat, 60)
				addBlock(&m, message.Block1, block{number: 1, more: true})
				addBlock(&m, message.Block2, block{exponent: 6})
				addUint(&m, message.NoResponse, nothingWanted)
			}
			b, err := format(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
}

// A datagram has the same meaning after it was rewritten.
func FuzzDatagram(f *testing.F) {
	seeds(f, format)
	f.Fuzz(func(t *testing.T, datagram []byte) {
		m, err := parse(datagram)
		if err != nil {
			return
		}
		b, err := format(m)
		if err != nil {
			t.Fatalf("cannot be written again: %v", err)
		}
		again, err := parse(b)
		if err != nil {
			t.Fatalf("cannot be read again: %v", err)
		}
		if target(m) != target(again) || !bytes.Equal(m.Payload, again.Payload) || m.MessageID != again.MessageID {
			t.Errorf("%v became %v", m, again)
		}
		repeated := message.Message{}
		if err := addTarget(&repeated, target(m)); err == nil && target(repeated) != target(m) {
			t.Errorf("path %q became %q", target(m), target(repeated))
		}
	})
}

// nowhere takes what is sent.
type nowhere struct{ closed chan struct{} }

func (n nowhere) read([]byte) (int, origin, error) {
	<-n.closed
	return 0, origin{}, net.ErrClosed
}
func (nowhere) write([]byte, origin) error              { return nil }
func (nowhere) refusals(func(*request.Failure, []byte)) {}
func (n nowhere) close() error                          { close(n.closed); return nil }

func fuzzedPeer(f *testing.F) (*Peer, *endpoint) {
	s := nowhere{make(chan struct{})}
	p, err := open(request.Setup{TimeoutSeconds: 1, Handler: echo}, func(c *core, _ request.Setup) (transport, error) {
		u := &udpTransport{core: c, remotes: map[netip.AddrPort]*remote{}}
		u.server = newEndpoint(c, s)
		return u, nil
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Close(context.Background()) })
	return p, p.transport.(*udpTransport).server
}

// Two datagrams of any content, to an address or a group, leave a server that still answers.
func FuzzServer(f *testing.F) {
	f.Add([]byte{0x40, 2, 0, 1, 0xd1, 14, 0x08}, []byte{0x40, 2, 0, 2, 0xd1, 14, 0x10}, false)
	f.Add([]byte{0x50, 1, 0, 1, 0x60}, []byte{0x70, 0, 0, 1}, true)
	_, e := fuzzedPeer(f)
	from := origin{remote: netip.MustParseAddrPort("10.0.0.1:1")}
	f.Fuzz(func(t *testing.T, first, second []byte, multicast bool) {
		from := from
		from.multicast = multicast
		e.receive(first, from, time.Now())
		e.receive(second, from, time.Now())
		e.service.store.mu.Lock()
		stored := e.service.store.bytes
		e.service.store.mu.Unlock()
		if stored > storeBytes {
			t.Errorf("%d bytes stored", stored)
		}
		answer := e.service.respond(arrival{message: message.Message{Code: codes.GET}, room: e.options.room})
		if answer.Code != codes.Content {
			t.Errorf("the server answers %s", dotted(answer.Code))
		}
	})
}

// Blocks of any content never give a body that is longer than the blocks together.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte{0x08, 0x18, 0x20}, uint8(16), uint8(0))
	f.Add([]byte{0x0e, 0x16, 0x2e, 0x36}, uint8(255), uint8(7))
	f.Fuzz(func(t *testing.T, options []byte, length, exponent uint8) {
		options = options[:min(len(options), 40)]
		longest := 0
		s := newService(func(_ time.Time, r request.Request) request.Response {
			longest = max(longest, len(r.Body))
			return request.Response{Status: 200, Body: body(3000)}
		}, time.Minute)
		sent := 0
		for i, o := range options {
			m := message.Message{Code: codes.POST, Payload: body(int(length) * 16 >> (i % 3))}
			add(&m, message.Block1, []byte{o})
			if i%4 == 3 {
				add(&m, message.Block2, []byte{o >> 1})
			}
			sent += len(m.Payload)
			_ = s.respond(arrival{message: m, from: "x", room: room{whole: 1024, bytes: 1024, exponent: min(exponent, bert), stream: exponent >= bert}})
		}
		if longest > sent {
			t.Errorf("a body of %d bytes out of %d", longest, sent)
		}
	})
}

// pipe is a connection that has been received already.
type pipe struct {
	net.Conn
	content *bytes.Reader
}

func (p pipe) Read(b []byte) (int, error)     { return p.content.Read(b) }
func (pipe) Write(b []byte) (int, error)      { return len(b), nil }
func (pipe) Close() error                     { return nil }
func (pipe) SetReadDeadline(time.Time) error  { return nil }
func (pipe) SetWriteDeadline(time.Time) error { return nil }

// A stream of any content gives back all of its budget.
func FuzzStream(f *testing.F) {
	seeds(f, formatStream)
	f.Add([]byte{0xf1, 0xff, 0xfe, 0xfe, 0xf3, 1, 7})
	p, _ := fuzzedPeer(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		const budgetBytes = 1 << 21
		s := &stream{core: p.core, budget: &budget{left: budgetBytes}, conn: pipe{content: bytes.NewReader(content)}, writing: make(chan struct{}, 1), announced: make(chan struct{}), over: make(chan struct{})}
		r := bufio.NewReaderSize(s.conn, 4096)
		for {
			m, size, err := s.next(r)
			if err != nil {
				break
			}
			if isRequest(m.Code) {
				_ = s.service.respond(arrival{message: m, from: "x", room: s.accepted()})
				s.budget.give(size)
			} else if s.handle(m, size, time.Now()) != nil {
				break
			}
		}
		if s.budget.left != budgetBytes {
			t.Errorf("%d bytes of the budget are gone", budgetBytes-s.budget.left)
		}
	})
}
