package runapi

import (
	"fmt"
	"slices"
)

// BurstProtocols returns the protocols of the publishers and of the subscribers of bursts, each in order.
func BurstProtocols(bursts []BurstResult) (publishers, subscribers []string) {
	for _, b := range bursts {
		publishers, subscribers = append(publishers, b.PublisherProtocol), append(subscribers, b.SubscriberProtocol)
	}
	slices.Sort(publishers)
	slices.Sort(subscribers)
	return slices.Compact(publishers), slices.Compact(subscribers)
}

// BurstCell returns the time of the bursts from one protocol to another for a table: how many messages arrived where some are missing, and "-"
// where there are no such bursts. It words times by seconds.
func BurstCell(bursts []BurstResult, publisher, subscriber string, seconds func(float64) string) string {
	for _, b := range bursts {
		if b.PublisherProtocol != publisher || b.SubscriberProtocol != subscriber {
			continue
		}
		if b.Seconds == nil {
			return fmt.Sprintf("%d of %d", b.Received, b.Messages)
		}
		return seconds(*b.Seconds)
	}
	return "-"
}
