package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-stomp/stomp/v3/frame"
)

const (
	// prefetch is the most unacknowledged messages of QoS 1 to the client; see package amqp.
	prefetch = 256
	// buffer is the size of the socket's writer. A frame that fits is one write.
	buffer = 64 << 10
	// closing is how long to wait for the answer to a DISCONNECT.
	closing = 250 * time.Millisecond
	// missed is the number of missing heart-beats of the broker after which a connection is lost.
	missed = 3
	// Receipts other than message numbers.
	subscribed, disconnected = "subscribed", "disconnected"
)

// session is the client's state on one connection.
type session struct {
	client client
	socket *alive
	reader *frame.Reader

	mu      sync.Mutex // used by the writer
	writer  *frame.Writer
	written time.Time
	// beat is how often the broker expects a frame or heart-beat; 0 for never.
	beat time.Duration
}

// alive is a socket that fails if nothing arrives for too long. Each read counts, as a large frame takes long on a slow link.
type alive struct {
	net.Conn
	timeout time.Duration
}

func (a *alive) Read(p []byte) (int, error) {
	if a.timeout > 0 {
		if err := a.SetReadDeadline(time.Now().Add(a.timeout)); err != nil {
			return 0, err
		}
	}
	n, err := a.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("nothing came for %v", a.timeout)
	}
	return n, err
}

func newSession(c client, socket net.Conn) *session {
	a := &alive{Conn: socket, timeout: c.Dialer.Timeout()}
	return &session{client: c, socket: a, reader: frame.NewReader(a), writer: frame.NewWriterSize(a, buffer)}
}

// brokerError is an ERROR frame, after which the broker ends the connection.
type brokerError string

func (e brokerError) Error() string { return "the broker says: " + string(e) }

// write writes one frame; nil is a heart-beat.
func (s *session) write(f *frame.Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = time.Now()
	return s.writer.Write(f)
}

// read returns the next frame that is no heart-beat. An ERROR is an error, and so is a huge content-length, for which the library panics.
func (s *session) read() (f *frame.Frame, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			f, err = nil, fmt.Errorf("frame: %v", reason)
		}
	}()
	for {
		if f, err = s.reader.Read(); err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		if f.Command == frame.ERROR {
			return nil, brokerError(f.Header.Get(frame.Message) + ": " + strings.TrimSpace(string(f.Body)))
		}
		return f, nil
	}
}

func (s *session) connect(username, password string) error {
	every := s.client.Dialer.Timeout()
	beat := strconv.FormatInt(every.Milliseconds(), 10)
	if err := s.socket.SetWriteDeadline(time.Now().Add(every)); err != nil {
		return err
	}
	err := s.write(frame.New(frame.CONNECT, frame.AcceptVersion, "1.2", frame.Host, "/", frame.Login, username, frame.Passcode, password, frame.HeartBeat, beat+","+beat))
	if err != nil {
		return err
	}
	answer, err := s.read()
	if err != nil {
		return err
	}
	if answer.Command != frame.CONNECTED || answer.Header.Get(frame.Version) != "1.2" {
		return fmt.Errorf("the broker answers %s version %q: want CONNECTED 1.2", answer.Command, answer.Header.Get(frame.Version))
	}
	s.socket.timeout = 0
	if sends, wants, err := frame.ParseHeartBeat(answer.Header.Get(frame.HeartBeat)); err == nil {
		if sends > 0 {
			s.socket.timeout = missed * max(sends, every)
		}
		if wants > 0 {
			s.beat = max(wants, every)
		}
	}
	return errors.Join(s.socket.SetReadDeadline(time.Time{}), s.socket.SetWriteDeadline(time.Time{}))
}

// subscribe subscribes to each filter, and waits for the broker's receipts. All subscriptions share a queue (RabbitMQ's header x-queue-name), so that a
// message that matches several filters arrives once. With QoS 1 the queue outlives the client's connections.
func (s *session) subscribe() error {
	setup := s.client.Setup
	filters := setup.Filters()
	own := fmt.Sprintf("stomp-connection-%s-%016x", setup.ClientID, rand.Uint64())
	for i, filter := range filters {
		f := frame.New(frame.SUBSCRIBE, frame.Id, strconv.Itoa(i), frame.Destination, destination(filter))
		if setup.SubscribeQoS() > 0 {
			add(f, frame.Ack, "client-individual", "durable", "true", "auto-delete", "false",
				"x-queue-name", "stomp-subscription-"+setup.ClientID, "prefetch-count", strconv.Itoa(prefetch))
		} else {
			add(f, frame.Ack, "auto", "durable", "false", "auto-delete", "true",
				"x-queue-name", own)
		}
		if i == len(filters)-1 {
			add(f, frame.Receipt, subscribed)
		}
		if err := s.write(f); err != nil {
			return err
		}
	}
	for len(filters) > 0 {
		f, err := s.read()
		if err != nil {
			return err
		}
		if f.Command == frame.RECEIPT && f.Header.Get(frame.ReceiptId) == subscribed {
			break
		}
		if err := s.take(f); err != nil {
			return err
		}
	}
	return nil
}

func add(f *frame.Frame, headers ...string) {
	for i := 0; i < len(headers); i += 2 {
		f.Header.Add(headers[i], headers[i+1])
	}
}

// take handles a frame from the broker.
func (s *session) take(f *frame.Frame) error {
	at := time.Now()
	switch f.Command {
	case frame.MESSAGE:
		s.client.Events.Received(at, topic(f.Header.Get(frame.Destination)), f.Body)
		if s.client.Setup.SubscribeQoS() > 0 {
			return s.write(frame.New(frame.ACK, frame.Id, f.Header.Get(frame.Ack)))
		}
	case frame.RECEIPT:
		if number, err := strconv.ParseUint(f.Header.Get(frame.ReceiptId), 10, 64); err == nil {
			s.client.Outbox.Acknowledge(number)
		}
	}
	return nil
}

// use serves the connection until it or ctx ends.
func (s *session) use(ctx context.Context) error {
	using, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 3)
	var workers sync.WaitGroup
	workers.Go(func() { failed <- s.publish(using) })
	workers.Go(func() { failed <- s.beats(using) })
	finished := make(chan struct{})
	workers.Go(func() { failed <- s.receive(finished) })
	var err error
	select {
	case <-ctx.Done():
		s.disconnect(finished)
	case err = <-failed:
	}
	stop()
	s.socket.Close()
	workers.Wait()
	return err
}

// publish writes messages. With QoS 1 the broker acknowledges each by a receipt with its number.
func (s *session) publish(ctx context.Context) error {
	promised := s.client.Setup.PublishQoS() > 0
	for {
		m, ok := s.client.Outbox.Next(ctx)
		if !ok {
			return nil
		}
		f := frame.New(frame.SEND, frame.Destination, destination(m.Topic), frame.ContentLength, strconv.Itoa(len(m.Payload)))
		if promised {
			add(f, "persistent", "true", frame.Receipt, strconv.FormatUint(m.Number, 10))
		}
		f.Body = m.Payload
		// Taken before the write: a wait for the kernel's full buffer is part of the delay.
		at := time.Now()
		if err := s.write(f); err != nil {
			s.client.Outbox.NotWritten(m)
			return fmt.Errorf("publish: %w", err)
		}
		s.client.Events.Sent(at, m.Topic, m.Payload)
	}
}

// beats sends a heart-beat if nothing else was written for most of the broker's interval.
func (s *session) beats(ctx context.Context) error {
	if s.beat == 0 {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(s.beat / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		s.mu.Lock()
		idle := time.Since(s.written)
		s.mu.Unlock()
		if idle < s.beat/2 {
			continue
		}
		if err := s.write(nil); err != nil {
			return fmt.Errorf("heart-beat: %w", err)
		}
	}
}

// receive handles frames until the connection ends. It closes finished when the broker has answered the DISCONNECT.
func (s *session) receive(finished chan<- struct{}) error {
	for {
		f, err := s.read()
		if err != nil {
			return fmt.Errorf("%w: %w", errLost, err)
		}
		if f.Command == frame.RECEIPT && f.Header.Get(frame.ReceiptId) == disconnected {
			close(finished)
			return nil
		}
		if err := s.take(f); err != nil {
			return fmt.Errorf("acknowledgement: %w", err)
		}
	}
}

// disconnect sends a DISCONNECT, and waits a short time for the answer.
func (s *session) disconnect(finished <-chan struct{}) {
	_ = s.socket.SetWriteDeadline(time.Now().Add(closing)) // the next write fails if this does
	if s.write(frame.New(frame.DISCONNECT, frame.Receipt, disconnected)) != nil {
		return
	}
	select {
	case <-finished:
	case <-time.After(closing):
	}
}
