package routing

import (
	"testing"
	"time"
)

func TestRoutersCatchUpTwiceAsFastAsTheClock(t *testing.T) {
	const ms = time.Millisecond
	type look struct{ clock, due, now time.Duration }
	for name, looks := range map[string][]look{
		"nothing is late":                     {{0, 0, 0}, {4 * ms, 4 * ms, 4 * ms}, {8 * ms, 5 * ms, 8 * ms}},
		"a long sleep with nothing to do":     {{0, 900 * ms, 0}, {900 * ms, 900 * ms, 900 * ms}, {5000 * ms, 5000 * ms, 5000 * ms}},
		"nothing is due for now":              {{0, 1 * ms, 0}, {30 * ms, 31 * ms, 30 * ms}},
		"the thread stood still":              {{0, 1 * ms, 0}, {30 * ms, 1 * ms, 11 * ms}, {33 * ms, 12 * ms, 18 * ms}, {36 * ms, 19 * ms, 25 * ms}, {46 * ms, 26 * ms, 36 * ms}},
		"with a gap in what is due":           {{0, 1 * ms, 0}, {30 * ms, 1 * ms, 11 * ms}, {33 * ms, 28 * ms, 33 * ms}},
		"too long to be made up for":          {{0, 1 * ms, 0}, {1000 * ms, 1 * ms, 750 * ms}, {1003 * ms, 751 * ms, 757 * ms}},
		"the thread does more than it can":    {{0, 1 * ms, 0}, {20 * ms, 1 * ms, 11 * ms}, {40 * ms, 11 * ms, 21 * ms}},
		"and is as far behind as it is to be": {{0, 1 * ms, 0}, {600 * ms, 1 * ms, 350 * ms}, {620 * ms, 351 * ms, 370 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			p := pace{now: begin, seen: begin}
			for _, l := range looks {
				behind := p.advance(begin.Add(l.clock), begin.Add(l.due))
				if got := p.now.Sub(begin); got != l.now || behind != (l.now < l.clock) {
					t.Errorf("at %v, with something due at %v, routers are at %v, behind %v; want %v", l.clock, l.due, got, behind, l.now)
				}
			}
		})
	}
}

func TestRoutersBeginAtTheClocksTime(t *testing.T) {
	var p pace
	now := time.Now()
	if p.advance(now, time.Time{}) || !p.now.Equal(now) {
		t.Errorf("routers begin at %v; want %v", p.now, now)
	}
}
