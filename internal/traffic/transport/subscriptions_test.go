package transport

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"vignette.dev/vignette/internal/trafficconfig"
)

// asking is a client's subscriptions to two filters, with all that they tell.
func asking() (s *Subscriptions, events, words *[]string) {
	events, words = &[]string{}, &[]string{}
	setup := Setup{Config: trafficconfig.Config{Subscribe: &trafficconfig.Subscribe{Topics: []string{"a", "b"}}}, Warn: func(text string) { *words = append(*words, text) }}
	return NewSubscriptions(setup, Events{Subscription: func(filter, refusal string) { *events = append(*events, filter+" "+refusal) }}), events, words
}

func TestWhatIsRefusedIsAskedForAgainAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, events, words := asking()
		began := time.Now()
		var asked [][]string
		var at []time.Duration
		s.Ask(t.Context(), func(missing []string) bool {
			asked, at = append(asked, missing), append(at, time.Since(began))
			if len(asked) == 1 {
				s.Granted("b")
			}
			if len(asked) < 6 {
				s.Refused("not authorized", "a")
				return true
			}
			s.Granted("a")
			return true
		})
		for i, missing := range asked {
			if want := []string{"a", "b"}[:max(1, 2-i)]; !slices.Equal(missing, want) {
				t.Errorf("request %d is for %q; want %q", i, missing, want)
			}
		}
		if want := []time.Duration{0, 1, 3, 7, 15, 25}; len(at) != len(want) || !slices.EqualFunc(at, want, func(a, b time.Duration) bool { return a == b*time.Second }) {
			t.Errorf("asked at %v; want pauses that double up to 10 s", at)
		}
		if want := []string{"b ", "a not authorized", "a "}; !slices.Equal(*events, want) {
			t.Errorf("events %q; want %q: answers that change", *events, want)
		}
		if want := []string{"the subscription to a is refused: not authorized", "the subscription to a is made"}; !slices.Equal(*words, want) {
			t.Errorf("told people %q; want %q", *words, want)
		}
	})
}

func TestAnotherBrokerIsAskedForAll(t *testing.T) {
	s, _, _ := asking()
	s.Granted("a", "b")
	if missing := s.Missing(); len(missing) != 0 {
		t.Fatalf("missing %q; want nothing", missing)
	}
	s.Forget()
	if missing := s.Missing(); !slices.Equal(missing, []string{"a", "b"}) {
		t.Errorf("missing %q; want both", missing)
	}
}

func TestNobodyIsAskedAfterTheConnectionOrTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := asking()
		s.Ask(t.Context(), func([]string) bool { return false })
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		times := 0
		s.Ask(ctx, func([]string) bool { times++; return true })
		if times != 1 {
			t.Errorf("asked %d times; want once", times)
		}
	})
}

func TestARefusalWithoutAReasonIsARefusal(t *testing.T) {
	s, events, _ := asking()
	s.Refused("", "a")
	if want := []string{"a no reason given"}; !slices.Equal(*events, want) {
		t.Errorf("events %q; want %q", *events, want)
	}
}
