package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"

	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/traffic/request"
)

func TestBadMessagesAreAnsweredAsTheStandardSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		a.peer(t, server, nil)
		client := a.raw(t, "10.0.0.1:999")
		to := origin{remote: netip.MustParseAddrPort(server)}
		with := func(options ...message.Option) []byte {
			m := post(1, message.Confirmable, "x")
			m.Options = append(m.Options, options...)
			b, err := format(m)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		uint8Option := func(id message.OptionID, value ...byte) message.Option { return message.Option{ID: id, Value: value} }
		for name, c := range map[string]struct {
			datagram []byte
			want     string
		}{
			"a ping":                              {[]byte{0x40, 0, 0, 1}, "RST 0.00"},
			"a ping with a token":                 {[]byte{0x41, 0, 0, 1, 9}, "RST 0.00"},
			"another version":                     {[]byte{0x80, 2, 0, 1}, ""},
			"too short":                           {[]byte{0x40, 2, 0}, ""},
			"a token of nine bytes":               {append([]byte{0x49, 2, 0, 1}, make([]byte, 20)...), "RST 0.00"},
			"a cut token":                         {[]byte{0x44, 2, 0, 1, 1}, "RST 0.00"},
			"a cut option":                        {[]byte{0x40, 2, 0, 1, 0xb5, 'a'}, "RST 0.00"},
			"a reserved option length":            {[]byte{0x40, 2, 0, 1, 0xbf, 'a'}, "RST 0.00"},
			"a payload marker and no payload":     {[]byte{0x40, 2, 0, 1, 0xb1, 'a', 0xff}, "RST 0.00"},
			"an option that ends like a marker":   {[]byte{0x40, 2, 0, 1, 0xb1, 0xff}, "ACK 2.04"},
			"bad, but not confirmable":            {[]byte{0x50, 2, 0, 1, 0xbf, 'a'}, ""},
			"a reserved code class":               {[]byte{0x40, 0x21, 0, 1}, "RST 0.00"},
			"a response that nobody waits for":    {[]byte{0x40, 0x45, 0, 1}, "RST 0.00"},
			"a method that we do not have":        {[]byte{0x40, 5, 0, 1}, "ACK 4.05"},
			"an unknown critical option":          {with(uint8Option(19, 1)), "ACK 4.02"},
			"an unknown elective option":          {with(uint8Option(22, 1)), "ACK 2.04"},
			"a repeated option":                   {with(uint8Option(message.Accept, 1), uint8Option(message.Accept, 1)), "ACK 4.02"},
			"a critical option that is too long":  {with(uint8Option(message.Block1, 1, 2, 3, 4)), "ACK 4.02"},
			"an elective option that is too long": {with(uint8Option(message.Size1, 1, 2, 3, 4, 5)), "ACK 2.04"},
			"a proxy is asked for":                {with(message.Option{ID: message.ProxyURI, Value: []byte("coap://x")}), "ACK 5.05"},
			"an unknown Content-Format":           {with(uint8Option(message.ContentFormat, 0xee, 0xee)), "ACK 4.15"},
			"a block of a reserved size":          {with(uint8Option(message.Block1, 0x0f)), "ACK 4.00"},
			"a block of another size":             {with(uint8Option(message.Block1, 0x08)), "ACK 4.00"},
			"a block after a missing one":         {with(uint8Option(message.Block1, 0x50)), "ACK 4.08"},
			"a block beyond what we accept":       {with(uint8Option(message.Block1, 0xff, 0xff, 0xf6)), "ACK 4.13"},
			"an announced size beyond":            {with(uint8Option(message.Block1, 0x08), uint8Option(message.Size1, 0xff, 0xff, 0xff, 0xff)), "ACK 4.00"},
			"a later block of nothing":            {with(uint8Option(message.Block2, 0x50)), "ACK 4.08"},
		} {
			time.Sleep(10 * time.Minute) // earlier messages are forgotten
			_ = client.write(c.datagram, to)
			m, _, ok := client.receive()
			got := ""
			if ok {
				got = said([]message.Message{m})
			}
			if got != c.want {
				t.Errorf("%s: %q; want %q", name, got, c.want)
			}
		}
	})
}

func TestAFloodOfHalfTransfersTakesBoundedMemory(t *testing.T) { // alone: it measures memory
	s := newService(echo, 4*time.Minute)
	part := body(1024)
	before := testtool.Heap()
	for i := range 150_000 {
		m := message.Message{Code: codes.POST, Payload: part}
		add(&m, optionRequestTag, []byte{byte(i), byte(i >> 8), byte(i >> 16)})
		addBlock(&m, message.Block1, block{more: true, exponent: 6})
		if got := s.respond(arrival{message: m, from: "10.0.0.1:1", room: room{whole: 1024, bytes: 1024, exponent: 6}}); got.Code != codes.Continue {
			t.Fatal(got.Code)
		}
	}
	if grown := testtool.Heap() - before; grown > 2*storeBytes {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	if s.store.bytes > storeBytes {
		t.Errorf("the store has %d bytes", s.store.bytes)
	}
	runtime.KeepAlive(s)
}

func TestAFloodOfRequestsTakesBoundedMemory(t *testing.T) {
	t.Parallel()
	h := newHistory(4 * time.Minute)
	now := time.Now()
	for i := range 200_000 {
		entry, repeated := h.find(messageKey{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1), 1}, []byte{byte(i)}, now)
		if repeated {
			t.Fatal("repeated")
		}
		h.finish(entry, make([]byte, 1100))
	}
	if h.order.Len() > maxSeen || h.bytes > maxSeenBytes+1100 || len(h.byKey) != h.order.Len() {
		t.Errorf("%d entries, %d keys, %d bytes", h.order.Len(), len(h.byKey), h.bytes)
	}
	h.expire(now.Add(time.Hour))
	if h.order.Len() != 0 || h.bytes != 0 {
		t.Errorf("after an hour %d entries, %d bytes", h.order.Len(), h.bytes)
	}
}

// fixedDeadline keeps the deadline that the test has set.
type fixedDeadline struct{ net.Conn }

func (fixedDeadline) SetReadDeadline(time.Time) error { return nil }

// dialRaw opens a TCP connection to a server and sends it bytes, of which it then says how the connection goes on. It is open if nothing
// follows in the second after all that is wanted.
func dialRaw(t *testing.T, at string, content []byte, want string) (answer string) {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write(content)
	s := &stream{core: &core{warned: map[string]time.Time{}}, budget: &budget{left: 1 << 30}, conn: fixedDeadline{conn}}
	var words []string
	wait := func() {
		timeout := 20 * time.Second
		if strings.Join(append(words, "open"), ", ") == want {
			timeout = time.Second
		}
		_ = conn.SetReadDeadline(time.Now().Add(timeout))
	}
	wait()
	for r := bufio.NewReader(conn); ; {
		m, _, err := s.next(r)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			return strings.Join(append(words, "open"), ", ")
		case err != nil:
			return strings.Join(append(words, "closed"), ", ")
		}
		words = append(words, dotted(m.Code))
		wait()
	}
}

func TestBadStreamsAreEnded(t *testing.T) {
	t.Parallel()
	_, at := real(t, OpenTCP, nil)
	csm := []byte{0x00, 0xe1}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"a GET":                            {append(csm, 0x01, 0x01, 7), "7.01, 2.05, open"},
		"a ping":                           {append(csm, 0x01, 0xe2, 7), "7.01, 7.03, open"},
		"no CSM":                           {[]byte{0x01, 0x01, 7}, "7.01, 2.05, open"},
		"a token of nine bytes":            {append(csm, 0x09, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), "7.01, 7.05, closed"},
		"a length that overflows":          {append(csm, 0xf1, 0xff, 0xfe, 0xfe, 0xf3, 1, 7), "7.01, 7.05, closed"},
		"a message above Max-Message-Size": {append(csm, 0xf0, 0x00, 0x20, 0x00, 0x00, 1), "7.01, 7.05, closed"},
		"a cut option":                     {append(csm, 0x10, 1, 0xb5), "7.01, 7.05, closed"},
		"a critical option in the CSM":     {[]byte{0x20, 0xe1, 0x91, 1}, "closed"},
		"a release":                        {append(csm, 0x00, 0xe4), "closed"},
		"an unwanted response":             {append(csm, 0x01, 0x45, 7), "7.01, open"},
	} {
		// Our own CSM may not be out before the connection ends.
		if got := strings.TrimPrefix(dialRaw(t, at, c.content, c.want), "7.01, "); got != strings.TrimPrefix(c.want, "7.01, ") {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

func TestSetupsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	_, at := real(t, Open, nil)
	_, atTCP := real(t, OpenTCP, nil)
	negative := -1
	for name, c := range map[string]struct {
		open request.Open
		set  func(*request.Setup)
		want string
	}{
		"a port in use":             {Open, func(s *request.Setup) { s.Listen = at }, "in use"},
		"a TCP port in use":         {OpenTCP, func(s *request.Setup) { s.Listen = atTCP }, "in use"},
		"no port":                   {Open, func(s *request.Setup) { s.Listen = "127.0.0.1" }, "want host:port"},
		"a block of 1000 bytes":     {Open, func(s *request.Setup) { s.CoAP.BlockBytes = 1000 }, "blockBytes 1000"},
		"a negative MAX_RETRANSMIT": {Open, func(s *request.Setup) { s.CoAP.MaxRetransmit = &negative }, "maxRetransmit -1"},
		"a factor below 1":          {Open, func(s *request.Setup) { s.CoAP.ACKRandomFactor = 0.5 }, "ackRandomFactor 0.5"},
		"a negative NSTART":         {Open, func(s *request.Setup) { s.CoAP.NSTART = -1 }, "nstart -1"},
		"no timeout":                {Open, func(s *request.Setup) { s.TimeoutSeconds = 0 }, "timeout"},
		"an unknown interface": {Open, func(s *request.Setup) {
			s.Listen, s.Interface, s.MulticastGroups = ":0", "none", []string{"224.0.1.187"}
		}, "interface \"none\""},
		"no group":        {Open, func(s *request.Setup) { s.Listen, s.Interface, s.MulticastGroups = ":0", "lo", []string{"10.0.0.1"} }, "group \"10.0.0.1\""},
		"groups over TCP": {OpenTCP, func(s *request.Setup) { s.MulticastGroups = []string{"224.0.1.187"} }, "no multicast"},
	} {
		setup := request.Setup{TimeoutSeconds: 1}
		c.set(&setup)
		p, err := c.open(setup)
		if err == nil {
			p.Close(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in it", name, err, c.want)
		}
	}
}

func TestAFurtherConnectionEndsTheOneThatWasNotUsedForLongest(t *testing.T) {
	t.Parallel()
	p, _ := real(t, OpenTCP, nil)
	tcp := p.(*Peer).transport.(*tcpTransport)
	var theirs []net.Conn
	for i := range maxConnections + 2 {
		near, far := net.Pipe()
		theirs = append(theirs, far)
		s := tcp.start(near, "")
		s.used.Store(int64(i + 1))
	}
	for i, conn := range theirs {
		timeout := 10 * time.Second
		if i == 2 {
			timeout = 100 * time.Millisecond // it goes on
		}
		_ = conn.SetReadDeadline(time.Now().Add(timeout))
		b, err := io.ReadAll(conn)
		if ended := err == nil; ended != (i < 2) {
			t.Fatalf("connection %d: ended %t with %d bytes, %v; want the first two to be ended", i, ended, len(b), err)
		}
		if i == 2 {
			return
		}
	}
}

func TestAFloodOfMulticastRequestsLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		a.peer(t, server, nil)
		flood := a.raw(t, "10.0.0.1:999")
		for i := range 3000 {
			b, err := format(post(int32(i), message.NonConfirmable, "x"))
			if err != nil {
				t.Fatal(err)
			}
			_ = flood.write(b, origin{remote: netip.MustParseAddrPort("224.0.1.187:5683")})
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		client := a.peer(t, "", func(s *request.Setup) { s.TimeoutSeconds = 1 })
		if _, _, err := client.Do(t.Context(), server, anyRequest, request.Events{}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := a.count() - 3002; n > maxSpread+100 || n < maxSpread/2 {
			t.Errorf("%d responses; want %d, and few more for those that left meanwhile", n, maxSpread)
		}
	})
}

// accepting opens a peer whose server gets the connections that the returned function makes.
func accepting(t *testing.T) (connect func() net.Conn) {
	t.Helper()
	setup := request.Setup{TimeoutSeconds: 10, Handler: echo, Warn: func(text string) { t.Log(text) }}
	p, err := open(setup, func(c *core, _ request.Setup) (transport, error) { return newTCP(c), nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return func() net.Conn {
		near, far := net.Pipe()
		p.transport.(*tcpTransport).start(near, "")
		return far
	}
}

// codesFrom are the codes of the messages that a connection brings within a second.
func codesFrom(conn net.Conn) (all []string) {
	s := &stream{core: &core{warned: map[string]time.Time{}}, budget: &budget{left: 1 << 30}, conn: fixedDeadline{conn}}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	for r := bufio.NewReader(conn); ; {
		m, _, err := s.next(r)
		if err != nil {
			return all
		}
		all = append(all, dotted(m.Code))
	}
}

func TestPingsOfAPeerThatDoesNotReadDoNotAccumulate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := accepting(t)()
		defer conn.Close()
		ping := []byte{0x01, 0xe2, 7}
		for range 1000 {
			_, _ = conn.Write(ping)
		}
		synctest.Wait()
		if got := strings.Join(codesFrom(conn), ", "); got != "7.01, 7.03" {
			t.Errorf("after 1000 Pings: %s; want the CSM and one Pong", got)
		}
		_, _ = conn.Write(ping)
		if got := strings.Join(codesFrom(conn), ", "); got != "7.03" {
			t.Errorf("after a further Ping: %s; want a Pong", got)
		}
	})
}

func TestAPeerThatReadsNoResponsesHoldsUpNobodyAndIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		connect := accepting(t)
		get := []byte{0x01, 0x01, 7}
		deaf, others := connect(), connect()
		defer deaf.Close()
		defer others.Close()
		go func() {
			for range 5000 {
				if _, err := deaf.Write(get); err != nil {
					return
				}
			}
			t.Error("all requests of the peer that does not read were taken")
		}()
		synctest.Wait()
		go func() { _, _ = others.Write(get) }()
		if got := strings.Join(codesFrom(others), ", "); got != "7.01, 2.05" {
			t.Errorf("another connection gets %q; want the CSM and the response", got)
		}
		time.Sleep(stall)
		if got := codesFrom(deaf); got != nil {
			t.Errorf("after %v a peer that does not read gets %s; want the connection ended", stall, got)
		}
	})
}

func TestAPeerThatReadsSlowlyGetsTheWholeResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := accepting(t)()
		defer conn.Close()
		codesFrom(conn)
		if _, err := conn.Write([]byte{0x01, 0x01, 7}); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Time{})
		var got []byte
		for b := make([]byte, 3); len(got) < 12; { // the state of "/" in a message of some bytes more
			time.Sleep(stall - time.Second)
			n, err := conn.Read(b)
			if err != nil {
				t.Fatalf("after %d bytes: %v", len(got), err)
			}
			got = append(got, b[:n]...)
		}
		if !strings.Contains(string(got), "state") {
			t.Errorf("got %q; want the state", got)
		}
	})
}

func TestAClientThatAcknowledgesNoResponsesHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAir()
		var mu sync.Mutex
		var warnings []string
		a.peer(t, server, func(s *request.Setup) {
			s.Warn = func(text string) {
				mu.Lock()
				defer mu.Unlock()
				warnings = append(warnings, text)
			}
			s.Handler = func(at time.Time, r request.Request) request.Response {
				time.Sleep(time.Second) // longer than the response may take to go with the acknowledgement
				return echo(at, r)
			}
		})
		deaf := a.raw(t, "10.0.0.66:999")
		client := a.peer(t, "", func(s *request.Setup) { s.TimeoutSeconds = 3 })
		for i := range 2 * maxSeparate / 200 {
			for n := range 200 {
				deaf.send(server, post(int32(200*i+n), message.Confirmable, "x"))
			}
			time.Sleep(2 * time.Second)
			_, _, err := client.Do(t.Context(), server, anyRequest, request.Events{})
			if err != nil {
				t.Errorf("after %d requests of a client that acknowledges nothing: %v", 200*(i+1), err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if want := "CoAP: more than 64 responses wait for the acknowledgement of one peer: one is dropped"; len(warnings) == 0 || warnings[0] != want {
			t.Errorf("warnings %q; want %q first", warnings, want)
		}
	})
}
