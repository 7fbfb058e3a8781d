package matrix

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// seedOf is the seed of a repeat: from the list, or else counted up from the template's without those in the list.
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

// sortRuns sorts runs into the order in which they start.
func sortRuns(runs []Run, spec *v1alpha1.CampaignSpec) {
	switch spec.Order {
	case v1alpha1.OrderByPoint:
	case v1alpha1.OrderShuffled:
		slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(shuffleKey(spec, a), shuffleKey(spec, b)) })
	default:
		slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.Repeat, b.Repeat) })
	}
}

// shuffleKey is a run's sort key in a shuffled order. It depends only on its name, so that new runs do not change the order
// of others.
func shuffleKey(spec *v1alpha1.CampaignSpec, run Run) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", spec.Template.Spec.Seed, run.Point.full, run.Repeat))
	return binary.BigEndian.Uint64(sum[:8])
}
