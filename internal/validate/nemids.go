package validate

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// idRange has the NEM ids of an entry of spec.nodes.
type idRange struct {
	node        string
	networks    []string
	first, last int64
}

// idRanges are those of all entries: without nem an id is the node's place among all nodes.
func (d *document) idRanges() (all []idRange) {
	place := int64(1)
	for _, fields := range d.entriesOf("nodes") {
		count, counted := fields["count"].(int64)
		if !counted {
			count = 1
		}
		first, given := fields["nem"].(int64)
		if !given {
			first = place
		}
		place += count
		networks, _, _ := unstructured.NestedStringSlice(fields, "networks")
		all = append(all, idRange{fmt.Sprint(fields["name"]), networks, first, first + count - 1})
	}
	return all
}

var (
	sameID      = regexp.MustCompile(`^another node has this NEM id`)
	idTooHigh   = regexp.MustCompile(` is too small: a node has a NEM id above \d+, and an address is the base plus the NEM id$`)
	nodeAt      = regexp.MustCompile(`^spec\.nodes\[([^\]]+)\]\.nem$`)
	networkWith = regexp.MustCompile(`^spec\.networks\[([^\]]+)\]\.subnet$`)
)

// holderOf adds whose NEM id is the matter, which is too costly for the API server's rule. Nothing is added to other messages.
func (d *document) holderOf(path, message string) string {
	if node := nodeAt.FindStringSubmatch(path); node != nil && sameID.MatchString(message) {
		return d.sameIDAs(node[1])
	}
	network := networkWith.FindStringSubmatch(path)
	if network == nil || !idTooHigh.MatchString(message) {
		return ""
	}
	highest := idRange{}
	for _, r := range d.idRanges() {
		if r.last > highest.last && slices.Contains(r.networks, network[1]) {
			highest = r
		}
	}
	if highest.node == "" {
		return ""
	}
	// The last address of a subnet is for broadcasts.
	return fmt.Sprintf(": %s has up to %d, so want /%d or a larger subnet", highest.node, highest.last, 32-bits.Len64(uint64(highest.last+1)))
}

// sameIDAs names the first entry, other than a node's, with one of its ids.
func (d *document) sameIDAs(node string) string {
	all := d.idRanges()
	own := slices.IndexFunc(all, func(r idRange) bool { return r.node == node })
	for i, r := range all {
		if own >= 0 && i != own && r.first <= all[own].last && all[own].first <= r.last {
			return ": " + r.node
		}
	}
	return ""
}
