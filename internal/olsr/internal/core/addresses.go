package core

import (
	"maps"
	"net/netip"
	"slices"
)

// Sorted are the addresses that a table is of, ascending.
func Sorted[V any](table map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(table), netip.Addr.Compare)
}
