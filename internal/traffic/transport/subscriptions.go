package transport

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/clock"
)

const (
	firstSubscribePause = time.Second
	lastSubscribePause  = 10 * time.Second
)

// Subscriptions has the filters that a client requests, and the brokers' answers. Answers become events, and refused filters are requested again. All
// protocols whose brokers answer use it. It is safe for use by several goroutines.
type Subscriptions struct {
	setup  Setup
	events Events

	mu sync.Mutex
	// granted has the filters that the present broker granted in the present session.
	granted map[string]bool
	// answers has the last reported answer to each filter: a refusal, or nothing.
	answers map[string]string
	// rounds is the number of consecutive requests with a refusal.
	rounds int
}

// NewSubscriptions returns a client's subscriptions, none of them granted.
func NewSubscriptions(setup Setup, events Events) *Subscriptions {
	return &Subscriptions{setup: setup, events: events, granted: map[string]bool{}, answers: map[string]string{}}
}

// Forget clears the grants, for another broker or session.
func (s *Subscriptions) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.granted)
	s.rounds = 0
}

// Missing returns the filters that the broker has not granted.
func (s *Subscriptions) Missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.setup.Filters()), func(filter string) bool { return s.granted[filter] })
}

// Granted records that the broker granted these filters.
func (s *Subscriptions) Granted(filters ...string) {
	s.mu.Lock()
	for _, filter := range filters {
		s.granted[filter] = true
	}
	s.rounds = 0
	s.mu.Unlock()
	s.report("", filters)
}

// Refused records that the broker refused these filters. The reason, which may be empty, is for people.
func (s *Subscriptions) Refused(reason string, filters ...string) {
	s.report(cmp.Or(reason, "no reason given"), filters)
}

// report reports answers that differ from the last ones.
func (s *Subscriptions) report(refusal string, filters []string) {
	for _, filter := range filters {
		s.mu.Lock()
		before, known := s.answers[filter]
		s.answers[filter] = refusal
		s.mu.Unlock()
		if known && before == refusal {
			continue
		}
		if refusal != "" {
			s.setup.Warn("the subscription to " + filter + " is refused: " + refusal)
		} else if known {
			s.setup.Warn("the subscription to " + filter + " is made")
		}
		if s.events.Subscription != nil {
			s.events.Subscription(filter, refusal)
		}
	}
}

// Pause returns the pause before refused filters are requested again: 1 s, doubled by each call, up to 10 s. A grant resets it.
func (s *Subscriptions) Pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	return min(firstSubscribePause<<min(s.rounds-1, 10), lastSubscribePause)
}

// Ask requests missing filters, again after each Pause, until all are granted, ctx ends, or ask reports a lost connection.
func (s *Subscriptions) Ask(ctx context.Context, ask func(missing []string) (connected bool)) {
	for missing := s.Missing(); len(missing) > 0 && ask(missing); {
		if missing = s.Missing(); len(missing) == 0 || !clock.Pause(ctx, s.Pause()) {
			return
		}
	}
}
