// Package client is an MQTT/UDP client (github.com/dzavalishin/mqtt_udp): publish/subscribe without a broker, one
// MQTT PUBLISH packet of QoS 0 form, without packet id, in one UDP datagram, broadcast to port 1883. Tagged tail records follow
// the packet: its number, and with a key its signature.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/quietio"
	mqttwire "vignette.dev/vignette/internal/traffic/mqtt/wire"
	"vignette.dev/vignette/internal/traffic/mqtttopic"
	"vignette.dev/vignette/internal/traffic/transport"
)

const (
	// MaxDatagram is the largest content of an IPv4 datagram: 65535 bytes less the headers of IP and UDP.
	MaxDatagram = 65507
	// receiveBuffer is requested so that bursts of broadcasts wait in the kernel. net.core.rmem_max bounds it.
	receiveBuffer = 4 << 20
	firstRetry    = 100 * time.Millisecond
	lastRetry     = 5 * time.Second
)

// Config is that of a client.
type Config struct {
	// Broadcast is the address:port to send to. Messages are received on its port.
	Broadcast string
	// Interface to use; by default the route's.
	Interface string
	// Filters of topics to receive; none for a client that only sends.
	Filters []string
	// Topic and PayloadBytes of the messages to send, for a check at the start; no topic for a client that only receives.
	Topic        string
	PayloadBytes int
	// SignatureKey signs messages, and accepts only signed ones. By default there are no signatures.
	SignatureKey string
	// Repeats of each message, one every RepeatInterval after it was sent.
	Repeats        int
	RepeatInterval time.Duration
	// Warn logs a problem for people.
	Warn func(text string)
}

// Client sends and receives MQTT/UDP.
type Client struct {
	config  Config
	key     []byte
	events  transport.Events
	address netip.AddrPort
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup

	// repeats is nil for a client that sends each message once.
	repeats *repeats
	// had are the packets that have come. Only run uses it.
	had *received

	mu     sync.Mutex
	sender *net.UDPConn
	packet []byte
	number uint32
	warned []string
}

// Open is a transport.Open.
func Open(s transport.Setup, events transport.Events) (transport.Client, error) {
	config := Config{Broadcast: s.Broadcast, Interface: s.Interface, Filters: s.Filters(), Topic: s.LargestTopic, PayloadBytes: s.LargestBytes,
		SignatureKey: s.SignatureKey, Warn: s.Warn}
	if s.Publish != nil && s.Publish.Repeat != nil {
		config.Repeats, config.RepeatInterval = s.Publish.Repeat.Times, time.Duration(s.Publish.Repeat.IntervalSeconds*float64(time.Second))
	}
	return New(config, events)
}

// New checks the configuration, and tries to open the sockets until it works: the radio's
// interface may not exist yet.
func New(config Config, events transport.Events) (*Client, error) {
	address, err := netip.ParseAddrPort(config.Broadcast)
	if err != nil || !address.Addr().Is4() || address.Port() == 0 {
		return nil, fmt.Errorf("broadcast %q: want IPv4 address:port, such as 198.18.9.255:1883", config.Broadcast)
	}
	for _, filter := range config.Filters {
		if err := mqtttopic.ValidFilter(filter); err != nil {
			return nil, err
		}
	}
	if config.Topic != "" {
		packet, err := mqttwire.AppendPublish(nil, config.Topic, make([]byte, config.PayloadBytes))
		if err != nil {
			return nil, err
		}
		if size := len(packet) + tailBytes([]byte(config.SignatureKey)); size > MaxDatagram {
			return nil, fmt.Errorf("payload of %d bytes on topic %s makes a packet of %d bytes: MQTT/UDP has one datagram for it, at most %d",
				config.PayloadBytes, config.Topic, size, MaxDatagram)
		}
	}
	// As the reference does, numbers begin at the clock's milliseconds: those of a restarted program then differ from before.
	c := &Client{config: config, key: []byte(config.SignatureKey), events: events, address: address, had: newReceived(config.Warn), number: uint32(time.Now().UnixMilli())}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.done.Go(c.run)
	if config.Repeats > 0 {
		c.repeats = newRepeats(config.RepeatInterval)
		c.done.Go(func() { c.repeats.run(c.ctx, c.again) })
	}
	return c, nil
}

// run opens the sockets and receives, again after each error.
func (c *Client) run() {
	for retry := firstRetry; c.ctx.Err() == nil; {
		receiver, sender, err := c.open()
		if err != nil {
			c.events.Lost(err)
			select {
			case <-c.ctx.Done():
			case <-time.After(retry):
			}
			retry = min(2*retry, lastRetry)
			continue
		}
		retry = firstRetry
		c.use(receiver, sender)
	}
}

// use receives until the socket fails or the client is closed.
func (c *Client) use(receiver, sender *net.UDPConn) {
	c.mu.Lock()
	c.sender = sender
	c.mu.Unlock()
	c.events.Connection(true, "")
	stop := context.AfterFunc(c.ctx, func() {
		if receiver != nil {
			_ = receiver.SetReadDeadline(time.Now())
		}
	})
	defer stop()
	reason := "closed"
	if receiver != nil {
		if err := c.receive(receiver); err != nil && c.ctx.Err() == nil {
			reason = transport.Words(err)
		}
		receiver.Close()
	} else {
		<-c.ctx.Done()
	}
	c.mu.Lock()
	c.sender = nil
	c.mu.Unlock()
	sender.Close()
	c.events.Connection(false, reason)
}

func (c *Client) open() (receiver, sender *net.UDPConn, err error) {
	if len(c.config.Filters) > 0 {
		// The wildcard address, as a socket bound to another one receives no broadcasts.
		if receiver, err = c.listen(netip.AddrPortFrom(netip.IPv4Unspecified(), c.address.Port())); err != nil {
			return nil, nil, fmt.Errorf("receive on port %d: %w", c.address.Port(), err)
		}
		_ = receiver.SetReadBuffer(receiveBuffer) // a smaller buffer works too, and drops are counted
	}
	if sender, err = c.listen(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)); err != nil {
		if receiver != nil {
			receiver.Close()
		}
		return nil, nil, fmt.Errorf("send to %s: %w", c.address, err)
	}
	return receiver, sender, nil
}

func (c *Client) listen(local netip.AddrPort) (*net.UDPConn, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(descriptor uintptr) { failed = c.setOptions(int(descriptor)) })
		return errors.Join(err, failed)
	}}
	socket, err := config.ListenPacket(c.ctx, "udp4", local.String())
	if err != nil {
		return nil, err
	}
	return socket.(*net.UDPConn), nil
}

func (c *Client) setOptions(fd int) error {
	// With REUSEADDR every socket on the port receives each broadcast.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("SO_REUSEADDR: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return fmt.Errorf("SO_BROADCAST: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1) // without it drops are not counted
	if c.config.Interface == "" {
		return nil
	}
	err := unix.BindToDevice(fd, c.config.Interface)
	if errors.Is(err, unix.EPERM) {
		c.config.Warn(fmt.Sprintf("may not bind to interface %s: routes decide where broadcasts go", c.config.Interface))
		return nil
	}
	if err != nil {
		return fmt.Errorf("interface %s: %w", c.config.Interface, err)
	}
	return nil
}

// receive reads datagrams until the socket fails.
func (c *Client) receive(socket *net.UDPConn) error {
	datagrams, err := quietio.NewDatagrams(socket, make([]byte, MaxDatagram+1), make([]byte, 64))
	if err != nil {
		return err
	}
	var dropped quietio.Drops
	warned := map[string]bool{}
	ignore := func(datagrams string, err error) {
		if !warned[datagrams] {
			c.config.Warn(fmt.Sprintf("%s is ignored, as all such: %v", datagrams, err))
			warned[datagrams] = true
		}
	}
	for {
		datagram, control, err := datagrams.Receive()
		at := time.Now()
		if err != nil {
			return err
		}
		if more := dropped.More(control); more > 0 {
			c.events.Dropped(int(more))
		}
		p, err := mqttwire.ParsePublish(datagram, mqttwire.UDP)
		if err != nil {
			ignore("a datagram that is no MQTT/UDP message", err)
			continue
		}
		size, _ := mqttwire.PacketSize(datagram) // ParsePublish has read it
		if len(c.key) > 0 {
			if err := checkSignature(datagram, size, c.key); err != nil {
				ignore("a message without a valid signature", err)
				continue
			}
		}
		if mqtttopic.MatchAny(c.config.Filters, p.Topic) && c.had.first(datagrams.From(), datagram, size) {
			c.events.Received(at, p.Topic, p.Payload)
		}
	}
}

// Publish broadcasts a message.
func (c *Client) Publish(topic string, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sender == nil {
		return transport.ErrNotConnected
	}
	packet, err := mqttwire.AppendPublish(c.packet[:0], topic, payload)
	c.packet = packet
	if err != nil {
		return err
	}
	c.number++
	packet = appendTail(packet, c.number, c.key)
	c.packet = packet
	at := time.Now()
	if _, err := c.sender.WriteToUDPAddrPort(packet, c.address); err != nil {
		return fmt.Errorf("broadcast to %s: %w", c.address, err)
	}
	c.events.Sent(at, topic, payload)
	if c.repeats != nil && !c.repeats.add(at, packet, c.sender, c.config.Repeats) {
		c.warnOnce(fmt.Sprintf("more than %d bytes wait to be repeated: some messages are sent fewer times", maxRepeatBytes))
	}
	return nil
}

// again sends a packet again, as it was and from the same socket.
func (c *Client) again(one repeat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := one.from.WriteToUDPAddrPort(one.packet, c.address)
	if errors.Is(err, net.ErrClosed) {
		err = errors.New("its socket failed, and from another one it would be a new message to receivers")
	}
	if err != nil {
		c.warnOnce("a message is not repeated, and perhaps others: " + transport.Words(err))
	}
}

// warnOnce warns, with c.mu held, of each text once.
func (c *Client) warnOnce(text string) {
	if !slices.Contains(c.warned, text) {
		c.warned = append(c.warned, text)
		c.config.Warn(text)
	}
}

// Close sends the repeats that fall due until ctx ends, and closes the sockets.
func (c *Client) Close(ctx context.Context) {
	if c.repeats != nil {
		c.repeats.drain(ctx)
	}
	c.cancel()
	c.done.Wait()
	if c.repeats == nil {
		return
	}
	if unsent := c.repeats.discard(); unsent > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.warnOnce(fmt.Sprintf("%d repeats of messages are not sent: they fall due after the client's end", unsent))
	}
}
