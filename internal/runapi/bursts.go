package runapi

import (
	"cmp"
	"fmt"
	"slices"
)

// BurstTable returns the times of bursts as texts: a row for each publishers' protocol, a column for each subscribers', both in order. The first row
// and the first column have their names, and the corner is empty. Where messages are missing a cell has how many came, and "-" where there are
// no such bursts.
func BurstTable(bursts []BurstResult, seconds func(float64) string) [][]string {
	var publishers, subscribers []string
	cells := map[[2]string]string{}
	for _, b := range bursts {
		publishers, subscribers = append(publishers, b.PublisherProtocol), append(subscribers, b.SubscriberProtocol)
		cell := fmt.Sprintf("%d of %d", b.Received, b.Messages)
		if b.Seconds != nil {
			cell = seconds(*b.Seconds)
		}
		cells[[2]string{b.PublisherProtocol, b.SubscriberProtocol}] = cell
	}
	slices.Sort(publishers)
	slices.Sort(subscribers)
	subscribers = slices.Compact(subscribers)
	rows := [][]string{append([]string{""}, subscribers...)}
	for _, publisher := range slices.Compact(publishers) {
		row := []string{publisher}
		for _, subscriber := range subscribers {
			row = append(row, cmp.Or(cells[[2]string{publisher, subscriber}], "-"))
		}
		rows = append(rows, row)
	}
	return rows
}
