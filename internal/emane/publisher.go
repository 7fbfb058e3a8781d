package emane

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"time"

	"vignette.dev/vignette/internal/emane/ota"
)

// Publisher sends events on EMANE's event channel.
type Publisher struct {
	source     Source
	connection *net.UDPConn
	group      *net.UDPAddr
}

// NewPublisher opens a publisher on a device of the calling thread's network namespace. With a TTL of 0
// events stay on the host, with 1 on the device's network.
func NewPublisher(ctx context.Context, group netip.AddrPort, device string, ttl int) (*Publisher, error) {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("event channel: device %s: %w", device, err)
	}
	connection, err := ota.Sender(ctx, i, ttl)
	if err != nil {
		return nil, fmt.Errorf("event channel: %w", err)
	}
	p := &Publisher{connection: connection, group: net.UDPAddrFromAddrPort(group)}
	_, _ = rand.Read(p.source.ID[:]) // never fails
	return p, nil
}

// Close the channel.
func (p *Publisher) Close() error { return p.connection.Close() }

// Publish sends events once, to current listeners.
func (p *Publisher) Publish(events []Event) error {
	datagrams, err := p.source.Datagrams(events)
	if err != nil {
		return err
	}
	for _, d := range datagrams {
		if _, err := p.connection.WriteTo(d, p.group); err != nil {
			return fmt.Errorf("event channel: %w", err)
		}
	}
	return nil
}

// Replay publishes a feed from a moment of the scenario, which is now, until the context ends. It publishes
// changes when they happen, and everything in each interval, for processes that have started since. Before 0
// the scenario stays at 0. late, which may be nil, is called with the lateness of each change once it is published. The
// first is the one after published, up to which an earlier Replay came.
func (p *Publisher) Replay(ctx context.Context, f *Feed, published, from, interval time.Duration, late func(time.Duration)) error {
	began, again := time.Now(), time.NewTicker(interval)
	defer again.Stop()
	due, awaited, err := f.next(max(published, 0))
	if err != nil {
		return err
	}
	for {
		now := from + time.Since(began)
		events, next, more, err := f.Changes(max(now, 0))
		if err != nil {
			return err
		}
		if err := p.Publish(events); err != nil {
			return err
		}
		if awaited && now >= due && late != nil {
			late(from + time.Since(began) - due)
		}
		due, awaited = next, more
		wait := make(<-chan time.Time)
		if more {
			wait = time.After(max(next-from-time.Since(began), 0))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			if err := p.Publish(f.All()); err != nil {
				return err
			}
		case <-wait:
		}
	}
}
