package agent

import (
	"testing"
	"testing/quick"
	"time"
)

func TestEveryPulseFallsOnTheSameMoments(t *testing.T) {
	property := func(nanoseconds uint32, seconds uint8) bool {
		since := time.Duration(seconds)*time.Second + time.Duration(nanoseconds%1e9)
		wait := untilPulse(since)
		return wait > 0 && wait <= pulsePeriod && (since+wait)%pulsePeriod == 0
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
	if got := untilPulse(3 * pulsePeriod); got != pulsePeriod {
		t.Errorf("at a pulse the next one takes %v; want %v", got, pulsePeriod)
	}
}

func TestAPulseGoesOn(t *testing.T) {
	early := newPulse()
	defer early.Stop()
	time.Sleep(pulsePeriod / 10)
	late := newPulse()
	defer late.Stop()
	for range 2 {
		first := <-early.C
		second := <-late.C
		early.next()
		late.next()
		if apart := second.Sub(first).Abs(); apart > pulsePeriod/20 {
			t.Errorf("two pulses of one program are %v apart; want the same moment", apart)
		}
	}
}
