package agent

import "time"

const (
	firstBackoff = 500 * time.Millisecond
	lastBackoff  = 8 * time.Second
	// An instance that fails maxEarlyFailures times in a row, each within earlyFailure of its start, is given up.
	earlyFailure     = 10 * time.Second
	maxEarlyFailures = 3
)

// restartPolicy decides about restarts of one instance that ended with an error.
type restartPolicy struct {
	early   int
	backoff time.Duration
}

// failed notes a failure after the given running time, and returns how long to wait before the next start, or to give up.
func (p *restartPolicy) failed(ran time.Duration) (wait time.Duration, giveUp bool) {
	if ran < earlyFailure {
		p.early++
	} else {
		p.early, p.backoff = 0, 0
	}
	if p.early >= maxEarlyFailures {
		return 0, true
	}
	p.backoff = min(max(2*p.backoff, firstBackoff), lastBackoff)
	return p.backoff, false
}
