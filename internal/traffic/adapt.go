package traffic

import (
	"context"
	"fmt"
	"time"

	"vignette.dev/vignette/internal/radioqueue"
	"vignette.dev/vignette/internal/trafficconfig"
)

// adaptation adapts a publisher's period to the queue of its node's radios (cross-layer).
type adaptation struct {
	own, longest time.Duration
	high, low    int
	// ask returns the number of frames in the queue.
	ask  func() (int, error)
	now  func() time.Time
	warn func(text string)

	period time.Duration
	// answered is when radiod last answered. reported: a missing answer has been reported.
	answered time.Time
	reported bool
}

const (
	// askTimeout is how long a message waits for radiod's answer.
	askTimeout = 20 * time.Millisecond
	// memory is how long an adapted period is kept without an answer, such as over a restart of radiod.
	memory = 5 * time.Second
)

// newAdaptation returns the adaptation of a publisher; nil for a fixed rate.
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

// nextPeriod doubles the period above high, up to longest, and halves it at low or below, down to own.
func nextPeriod(period, own, longest time.Duration, frames, high, low int) time.Duration {
	switch {
	case frames > high:
		return min(2*period, longest)
	case frames <= low:
		return max(period/2, own)
	}
	return period
}

// next returns the next period, and why it changed; an empty reason if it did not.
func (a *adaptation) next() (period time.Duration, why string) {
	frames, err := a.ask()
	now, before := a.now(), a.period
	switch {
	case err == nil:
		a.answered, a.reported = now, false
		a.period, why = nextPeriod(a.period, a.own, a.longest, frames, a.high, a.low), fmt.Sprintf("%d frames wait", frames)
	case now.Sub(a.answered) >= memory:
		if !a.reported {
			a.warn(fmt.Sprintf("rate adaptation: %v: the rate is fixed", err))
		}
		a.reported, a.period, why = true, a.own, "radiod does not tell the queue"
	}
	if a.period == before {
		why = ""
	}
	return a.period, why
}

// runAdapted publishes from message number on until ctx ends. Each message follows a period after the one before.
// The radio's queue decides the period at each message.
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
