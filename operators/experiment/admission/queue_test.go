package admission

import (
	"fmt"
	"slices"
	"testing"
)

func TestAPositionFarBackIsRoundedSoThatFewStatusesChange(t *testing.T) {
	var got []int32
	for _, position := range []int{1, 9, 10, 11, 20, 21, 99, 100, 101, 1234, 9999, 10000} {
		got = append(got, roundPosition(position))
	}
	if want := []int32{1, 9, 10, 20, 20, 30, 100, 100, 200, 2000, 10000, 10000}; !slices.Equal(got, want) {
		t.Errorf("positions are reported as %v, want %v", got, want)
	}
	changes := 0
	for position := 2; position <= 10_000; position++ {
		if roundPosition(position) != roundPosition(position-1) {
			changes++
		}
	}
	if changes > 37 {
		t.Errorf("a queue of 10 000 that moves on by one changes %d statuses", changes)
	}
}

func TestAnExperimentFarBackChecksLessOften(t *testing.T) {
	l := &Queue{}
	perSecond := 0.0
	for position := range 10_000 {
		perSecond += 1 / l.recheckAfter(position+1).Seconds()
	}
	if perSecond > 40 {
		t.Errorf("10 000 waiting experiments check %.0f times a second", perSecond)
	}
	if got := fmt.Sprint(l.recheckAfter(1)); got != "15s" {
		t.Errorf("the first experiment checks every %s", got)
	}
}
