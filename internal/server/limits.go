package server

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits for one caller.
const (
	requestsPerSecond = 200
	requestBurst      = 600
	// Unknown tokens cost the API server a review.
	reviewsPerSecond = 50
	reviewBurst      = 500

	maxPlanBytes   = 32 << 20
	maxReportBytes = 256 << 10
	maxAppendBytes = 64 << 20
	maxResultBytes = 4 << 30
	// maxScenarioBytes of one compiled scenario: 243 platforms for 2 h have about a tenth of it.
	maxScenarioBytes = 1 << 30
	// maxCapturePiece is kept in memory completely.
	maxCapturePiece = 4 << 20

	// pieceBytes of a body are read before they are archived.
	pieceBytes = 256 << 10
	// pieceTimeout is how long the next piece of a body may take.
	pieceTimeout = 30 * time.Second
	// slowestReader is the rate in bytes per second below which a download ends.
	slowestReader = 50 << 10

	maxCallers = 10000
)

// limiter bounds the requests of each token, or of each address without one.
type limiter struct {
	perSecond rate.Limit
	burst     int

	mu      sync.Mutex
	callers map[string]*rate.Limiter
}

func (l *limiter) allow(caller string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.callers == nil || len(l.callers) > maxCallers {
		l.callers = map[string]*rate.Limiter{}
	}
	bucket := l.callers[caller]
	if bucket == nil {
		bucket = rate.NewLimiter(l.perSecond, l.burst)
		l.callers[caller] = bucket
	}
	return bucket.AllowN(now, 1)
}
