package tracks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/scenario"
)

func TestPointsHaveABound(t *testing.T) {
	f := NewFile("many.csv", Options{})
	for range MaxPoints {
		if err := f.Count(geo.Position{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Count(geo.Position{}); err == nil || !strings.Contains(err.Error(), "more than 10000000 points") {
		t.Errorf("got %v", err)
	}
}

func TestCountingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := NewFile("many.csv", Options{Context: ctx})
	var err error
	for range 2 * pointsPerCheck {
		if err = f.Count(geo.Position{}); err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestTheEarlierOfTwoTimesOfDayMayBeTheGreater(t *testing.T) {
	if got := earlierTimeOfDay(time.Hour, 23*time.Hour); got != 23*time.Hour {
		t.Errorf("of 1 and 23 o'clock the earlier is %s", got)
	}
	if got := earlierTimeOfDay(8*time.Hour, 17*time.Hour); got != 8*time.Hour {
		t.Errorf("of 8 and 17 o'clock the earlier is %s", got)
	}
}

func TestAPauseBeforeOrBetweenSourcesIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		spans []scenario.Span
		want  string
	}{
		"one after the other": {[]scenario.Span{{First: 0, Last: time.Hour}, {First: 90 * time.Minute, Last: 2 * time.Hour}}, ""},
		"one within another":  {[]scenario.Span{{First: 0, Last: 9 * time.Hour}, {First: time.Hour, Last: 2 * time.Hour}, {First: 9 * time.Hour, Last: 9 * time.Hour}}, ""},
		"days between":        {[]scenario.Span{{First: 0, Last: time.Hour}, {First: 25 * time.Hour, Last: 26 * time.Hour}}, "from 1h to 25h no platform has a new position: b goes on then"},
		"hours before":        {[]scenario.Span{{First: 7 * time.Hour, Last: 8 * time.Hour}}, "no platform has a position before 7h, when a begins"},
	} {
		t.Run(name, func(t *testing.T) {
			var p Presence
			for i, span := range c.spans {
				p.Add(string(rune('a'+i)), i+1, span)
			}
			if got := p.Pause(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("it says %q; want %q", got, c.want)
			}
		})
	}
}

func TestTracksHaveABound(t *testing.T) {
	const want = "more than 65534 tracks"
	begun, named := NewFile("many.gpx", Options{}), NewFile("many.csv", Options{})
	var err error
	for range MaxTracks + 1 {
		if err != nil {
			t.Fatal(err)
		}
		err = begun.Begin(&Track{})
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("of begun ones: %v", err)
	}
	err = nil
	for i := range MaxTracks + 1 {
		if err != nil {
			t.Fatal(err)
		}
		err = named.Add(named.Named(fmt.Sprint("v", i)), Point{})
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("of named ones: %v", err)
	}
}
