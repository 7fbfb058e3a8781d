package scenario

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// storeChecks are the times of the last checks of the store.
type storeChecks struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// checked records the time of a check for a scenario.
func (c *storeChecks) checked(uid types.UID, now time.Time) {
	const most = 10_000 // deleted scenarios are not removed otherwise
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || len(c.last) > most {
		c.last = map[types.UID]time.Time{}
	}
	c.last[uid] = now
}

func (c *storeChecks) checkedAt(uid types.UID) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[uid]
}
