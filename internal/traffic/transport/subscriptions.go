package transport

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

const (
	firstSubscribePause = time.Second
	lastSubscribePause  = 10 * time.Second
)

// Subscriptions are what a client asks brokers for, and what they answer. Answers are events, and what is refused is to be asked for again: all
// protocols whose brokers answer tell it here. It is safe for use by several goroutines.
type Subscriptions struct {
	setup  Setup
	events Events

	mu sync.Mutex
	// granted by the present broker, in the present session.
	granted map[string]bool
	// answers to each filter that were told last: a refusal, or nothing.
	answers map[string]string
	// rounds of requests in a row that left something refused.
	rounds int
}

// NewSubscriptions of a client, none of them granted.
func NewSubscriptions(setup Setup, events Events) *Subscriptions {
	return &Subscriptions{setup: setup, events: events, granted: map[string]bool{}, answers: map[string]string{}}
}

// Forget what was granted: it is another broker, or another session.
func (s *Subscriptions) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.granted)
	s.rounds = 0
}

// Missing filters, which the broker has not granted.
func (s *Subscriptions) Missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.setup.Filters()), func(filter string) bool { return s.granted[filter] })
}

// Granted notes that the broker has the subscriptions to these filters.
func (s *Subscriptions) Granted(filters ...string) {
	s.mu.Lock()
	for _, filter := range filters {
		s.granted[filter] = true
	}
	s.rounds = 0
	s.mu.Unlock()
	s.tell("", filters)
}

// Refused notes that the broker refuses the subscriptions to these filters; the reason is for people. A broker may give none.
func (s *Subscriptions) Refused(reason string, filters ...string) {
	s.tell(cmp.Or(reason, "no reason given"), filters)
}

// tell of answers that are not as the ones before.
func (s *Subscriptions) tell(refusal string, filters []string) {
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

// Pause before what was refused is asked for again: 1 s, and twice as much with each call, up to 10 s. It begins anew with a subscription that is granted.
func (s *Subscriptions) Pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	return min(firstSubscribePause<<min(s.rounds-1, 10), lastSubscribePause)
}

// Ask for what is missing, again after each Pause, until the broker has it all, ctx ends, or ask reports that its connection is gone.
func (s *Subscriptions) Ask(ctx context.Context, ask func(missing []string) (connected bool)) {
	for missing := s.Missing(); len(missing) > 0 && ask(missing); {
		if missing = s.Missing(); len(missing) == 0 {
			return
		}
		timer := time.NewTimer(s.Pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
