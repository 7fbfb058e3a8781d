package core

import "time"

// Hysteresis of a link's quality (RFC 6130 section 14.3, RFC 3626 section 14). A link is used once its
// quality has risen to Accept, until it falls below Reject.
type Hysteresis struct {
	// Scaling of the exponential average, more than 0, at most 1 (0.5).
	Scaling float64
	// Accept (0.8) and Reject (0.3), of the share of packets that come through.
	Accept, Reject float64
}

// Quality of a link by the share of its HELLOs that arrive (RFC 6130 section 14): an exponential average with
// hysteresis.
type Quality struct {
	Value   float64
	Pending bool
	Lost    bool
	// Due is when the next HELLO counts as missed.
	Due      time.Duration
	Interval time.Duration
}

// Heard records a HELLO; the next is expected within the interval.
func (q *Quality) Heard(h *Hysteresis, now, interval time.Duration, first bool) {
	q.Interval = interval
	q.Due = now + interval*3/2
	if h == nil {
		q.Value = 1
		return
	}
	if first {
		q.Value, q.Pending = 0, true
	}
	q.judge(h, (1-h.Scaling)*q.Value+h.Scaling)
}

// Missed records HELLOs that should have come by now, and reports whether there were any.
func (q *Quality) Missed(h *Hysteresis, now time.Duration) bool {
	if h == nil || q.Interval <= 0 || now < q.Due {
		return false
	}
	for q.Due <= now && q.Value > 1e-6 {
		q.Due += q.Interval
		q.judge(h, (1-h.Scaling)*q.Value)
	}
	q.Due = max(q.Due, now+1)
	return true
}

func (q *Quality) judge(h *Hysteresis, value float64) {
	q.Value = value
	switch {
	case value >= h.Accept:
		q.Pending, q.Lost = false, false
	case value < h.Reject:
		q.Lost = !q.Pending
	}
}
