package runapi

import "slices"

// BurstProtocols returns the protocols of the publishers and of the subscribers of bursts, each in order.
func BurstProtocols(bursts []BurstResult) (publishers, subscribers []string) {
	for _, b := range bursts {
		publishers, subscribers = append(publishers, b.PublisherProtocol), append(subscribers, b.SubscriberProtocol)
	}
	slices.Sort(publishers)
	slices.Sort(subscribers)
	return slices.Compact(publishers), slices.Compact(subscribers)
}

// BurstBetween returns the bursts from one protocol to another, nil if there are none.
func BurstBetween(bursts []BurstResult, publisher, subscriber string) *BurstResult {
	for i := range bursts {
		if bursts[i].PublisherProtocol == publisher && bursts[i].SubscriberProtocol == subscriber {
			return &bursts[i]
		}
	}
	return nil
}
