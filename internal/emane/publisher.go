package emane

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"time"

	"vignette.dev/vignette/internal/radio/tdma"
)

// Publisher sends events on EMANE's event channel.
type Publisher struct {
	source     Source
	connection net.PacketConn
	group      *net.UDPAddr
}

// NewPublisher on a device of the calling thread's network namespace. With a TTL of 0 events stay on the host, with 1 on the device's network.
func NewPublisher(ctx context.Context, group netip.AddrPort, device string, ttl int) (*Publisher, error) {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("event channel: device %s: %w", device, err)
	}
	connection, err := openSender(ctx, i, ttl)
	if err != nil {
		return nil, fmt.Errorf("event channel: %w", err)
	}
	p := &Publisher{connection: connection, group: net.UDPAddrFromAddrPort(group)}
	_, _ = rand.Read(p.source.ID[:]) // never fails
	return p, nil
}

// Close the channel.
func (p *Publisher) Close() error { return p.connection.Close() }

// Publish events once, to whoever listens now.
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

// PublishSchedule gives NEMs their schedules. A NEM that gets its schedule again begins anew with its next multiframe, so that
// a schedule is for those who do not have it yet.
func (p *Publisher) PublishSchedule(s *tdma.Schedule, nems []int) error {
	var events []Event
	for _, nem := range nems {
		events = append(events, ScheduleFor(nem, s))
	}
	return p.Publish(events)
}

// Replay publishes a feed from a moment of the scenario on, which is now, until the context ends: what changes when it changes,
// and everything again in each interval, for processes that have started since. A moment before 0 is as 0. late, which may be nil,
// is told how much later than its time each change was published.
func (p *Publisher) Replay(ctx context.Context, f *Feed, from time.Duration, interval time.Duration, late func(time.Duration)) error {
	began, again := time.Now(), time.NewTicker(interval)
	defer again.Stop()
	for {
		now := from + time.Since(began)
		events, next, more, err := f.Changes(max(now, 0))
		if err != nil {
			return err
		}
		if err := p.Publish(events); err != nil {
			return err
		}
		wait := make(<-chan time.Time)
		if more {
			wait = time.After(max(next-from-time.Since(began), 0))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			if err := p.Publish(f.Everything()); err != nil {
				return err
			}
		case <-wait:
			if late != nil {
				late(from + time.Since(began) - next)
			}
		}
	}
}
