package campaign

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// checkTimes are the times of the last checks of all points, by campaign. Its condition does not have them, as it keeps the
// time when it first became false.
type checkTimes struct {
	mu   sync.Mutex
	last map[types.UID]check
}

// check of a generation of a campaign.
type check struct {
	generation int64
	at         time.Time
}

// note records a check of a campaign.
func (t *checkTimes) note(c *v1alpha1.Campaign, now time.Time) {
	const most = 10_000 // deleted campaigns are not removed otherwise
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || len(t.last) > most {
		t.last = map[types.UID]check{}
	}
	t.last[c.UID] = check{c.Generation, now}
}

// of a campaign's generation, zero for none yet.
func (t *checkTimes) of(c *v1alpha1.Campaign) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.last[c.UID]; last.generation == c.Generation {
		return last.at
	}
	return time.Time{}
}
