package traffic

import (
	"context"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/radioqueue"
	"vignette.dev/vignette/internal/trafficconfig"
)

// adaptation of a publisher's period to the queue of its node's radios (cross-layer).
type adaptation struct {
	own, longest time.Duration
	high, low    int
	// ask for the frames that wait.
	ask  func() (int, error)
	now  func() time.Time
	warn func(text string)

	period time.Duration
	// answered is when radiod did last; told that people know that it does not.
	answered time.Time
	told     bool
}

const (
	// askTimeout is what a message that is due waits for radiod.
	askTimeout = 20 * time.Millisecond
	// memory is for how long an adapted period is kept while radiod does not answer, as when it is restarted.
	memory = 5 * time.Second
)

// newAdaptation of a publisher; nil for one with a fixed rate.
func newAdaptation(p *trafficconfig.Publish, warn func(string)) *adaptation {
	if p.AdaptRate == nil {
		return nil
	}
	client := &radioqueue.Client{}
	own, longest := seconds(p.PeriodSeconds), seconds(p.AdaptRate.MaxPeriodSeconds)
	return &adaptation{own: own, longest: max(own, longest), high: p.AdaptRate.HighFrames, low: p.AdaptRate.LowFrames, period: own, now: time.Now, warn: warn,
		ask: func() (int, error) {
			report, err := client.Ask(askTimeout)
			return report.Most(), err
		}}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// nextPeriod is the policy: above high the period doubles, up to longest; at low or below it halves, down to own.
func nextPeriod(period, own, longest time.Duration, frames, high, low int) time.Duration {
	switch {
	case frames > high:
		return min(2*period, longest)
	case frames <= low:
		return max(period/2, own)
	}
	return period
}

// next period, and why it is another one than before; nothing where it is the same.
func (a *adaptation) next() (period time.Duration, why string) {
	frames, err := a.ask()
	now, before := a.now(), a.period
	switch {
	case err == nil:
		a.answered, a.told = now, false
		a.period, why = nextPeriod(a.period, a.own, a.longest, frames, a.high, a.low), fmt.Sprintf("%d frames wait", frames)
	case now.Sub(a.answered) >= memory:
		if !a.told {
			a.warn(fmt.Sprintf("rate adaptation: %v: the rate is fixed", err))
		}
		a.told, a.period, why = true, a.own, "radiod does not tell the queue"
	}
	if a.period == before {
		why = ""
	}
	return a.period, why
}

// runAdapted publishes from a message number on until ctx ends: each message is due a period after the one before, and the period is what
// the radio's queue makes of it when a message is due.
func (p *publisher) runAdapted(ctx context.Context, number int64) {
	due, _ := p.due(number)
	p.recorder.metrics.period.Set(p.adapt.period.Seconds())
	for ; p.sleep(ctx, due) == nil; number++ {
		period, why := p.adapt.next()
		if why != "" {
			p.recorder.period(period, why)
		}
		p.publish(number, due)
		due = due.Add(period)
	}
}
