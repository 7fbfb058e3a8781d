package core

import (
	"maps"
	"net/netip"
	"slices"
)

// Sorted returns a table's addresses, ascending.
func Sorted[V any](table map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(table), netip.Addr.Compare)
}
