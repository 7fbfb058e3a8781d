package matrix

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// seedOf of a repeat: of the list, or else counted up from the template's, those in the list left out.
func seedOf(spec *v1alpha1.CampaignSpec, repeat int32) int64 {
	if int(repeat) <= len(spec.Seeds) {
		return spec.Seeds[repeat-1]
	}
	next := max(1, spec.Template.Spec.Seed) // 0 stands for the default
	if spec.Template.Spec.Seed < 0 {
		next = spec.Template.Spec.Seed
	}
	for left := int(repeat) - len(spec.Seeds); ; next++ {
		if next == 0 || slices.Contains(spec.Seeds, next) {
			continue
		}
		if left--; left == 0 {
			return next
		}
	}
}

// sortRuns runs, which come by point and repeat, as they are to start.
func sortRuns(runs []Run, spec *v1alpha1.CampaignSpec) {
	switch spec.Order {
	case v1alpha1.OrderByPoint:
	case v1alpha1.OrderShuffled:
		slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(shuffleKey(spec, a), shuffleKey(spec, b)) })
	default:
		slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.Repeat, b.Repeat) })
	}
}

// shuffleKey gives a run its place among the others: by its own name, so that those that are added come in between and leave the others' order.
func shuffleKey(spec *v1alpha1.CampaignSpec, run Run) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", spec.Template.Spec.Seed, run.Point.full, run.Repeat))
	return binary.BigEndian.Uint64(sum[:8])
}
