package core

import (
	"math/rand"
	"testing"
	"time"
)

func TestThinningPassesAtTheLongerInterval(t *testing.T) {
	for _, longer := range []time.Duration{3 * time.Second, 10 * time.Second, 60 * time.Second} {
		const shorter = 2 * time.Second
		random, thinning := rand.New(rand.NewSource(1)), Thinning{}
		last, passed := time.Duration(0), 0
		now := time.Hour
		for ; now < 3*time.Hour; now += shorter - Jitter(random, shorter/4) {
			if !thinning.Pass(now, shorter, longer) {
				continue
			}
			if !thinning.Pass(now+shorter/8, shorter, longer) {
				t.Fatalf("at %v the second message of one content did not pass", now)
			}
			if gap := now - last; passed > 0 && (gap > longer || gap < longer-shorter) {
				t.Fatalf("interval %v: a message passed %v after another; want %v to %v", longer, gap, longer-shorter, longer)
			}
			last, passed = now, passed+1
		}
		if least := int(2 * time.Hour / longer); passed < least {
			t.Errorf("interval %v: %d messages passed in two hours; want %d at least", longer, passed, least)
		}
	}
}
