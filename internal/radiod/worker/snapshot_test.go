package worker

import (
	"strings"
	"testing"
)

func TestRingsAreReadInRotationAboveTheLimit(t *testing.T) {
	turn, all := 0, []string{"a", "b", "c", "d", "e"}
	for i, want := range []string{"abc", "dea", "bcd"} {
		if got := strings.Join(nextInRotation(all, &turn, 3), ""); got != want {
			t.Errorf("turn %d: %s; want %s", i, got, want)
		}
	}
	if got := strings.Join(nextInRotation(all[:2], &turn, 3), ""); len(got) != 2 || got[0] == got[1] {
		t.Errorf("of two that are left: %s; want each once", got)
	}
	if got := nextInRotation(all[:0], &turn, 3); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}
