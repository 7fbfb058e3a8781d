package gateway

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// disjoint returns filters that match whatever the given ones do, and no topic twice: by its make, a broker sends a message that several
// filters of a connection match once or several times. Filters that overlap become one that covers them, with the highest QoS.
func disjoint(filters map[string]int) map[string]int {
	result := map[string]int{}
	for _, filter := range slices.Sorted(maps.Keys(filters)) {
		wide, absorbed := cover(filter, maps.Keys(result))
		qos := filters[filter]
		for _, other := range absorbed {
			qos = max(qos, result[other])
			delete(result, other)
		}
		result[wide] = qos
	}
	return result
}

// cover returns a filter that covers the given one and all others that overlap it, with those.
func cover(filter string, others iter.Seq[string]) (wide string, absorbed []string) {
	rest := slices.Collect(others)
	for found := true; found; {
		found = false
		rest = slices.DeleteFunc(rest, func(other string) bool {
			if !overlap(filter, other) {
				return false
			}
			filter, absorbed, found = join(filter, other), append(absorbed, other), true
			return true
		})
	}
	return filter, absorbed
}

// overlap reports whether a topic can match both filters.
func overlap(a, b string) bool {
	if a != "" && b != "" && (a[0] == '$') != (b[0] == '$') {
		return false // wildcards do not match topics that begin with $
	}
	for {
		one, restA, moreA := strings.Cut(a, "/")
		two, restB, moreB := strings.Cut(b, "/")
		switch {
		case one == "#" || two == "#":
			return true
		case one != two && one != "+" && two != "+":
			return false
		case !moreA || !moreB: // a/# matches a, too
			return moreA == moreB || moreA && restA == "#" || moreB && restB == "#"
		}
		a, b = restA, restB
	}
}

// join returns the narrowest filter that covers two that overlap.
func join(a, b string) string {
	var levels []string
	for {
		one, restA, moreA := strings.Cut(a, "/")
		two, restB, moreB := strings.Cut(b, "/")
		switch {
		case one == "#" || two == "#":
			return strings.Join(append(levels, "#"), "/")
		case one != two:
			one = "+"
		}
		levels = append(levels, one)
		switch {
		case !moreA && !moreB:
			return strings.Join(levels, "/")
		case !moreA || !moreB:
			return strings.Join(append(levels, "#"), "/")
		}
		a, b = restA, restB
	}
}
