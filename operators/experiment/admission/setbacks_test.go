package admission

import (
	"strings"
	"testing"
	"time"
)

func TestTheDelayAfterSetbacksGrowsUntilAQuotaChanges(t *testing.T) {
	var l setbacks
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var waits []string
	for range 7 {
		_, wait := l.add("a", true, now, now, "pods 1")
		waits = append(waits, wait.String())
		if got := l.retryIn("a", now.Add(wait-time.Second), "pods 1"); got != time.Second {
			t.Errorf("a second before the next try it waits %s", got)
		}
		now = now.Add(wait)
		if got := l.retryIn("a", now, "pods 1"); got != 0 {
			t.Errorf("at the next try it waits %s", got)
		}
	}
	if got := strings.Join(waits, " "); got != "15s 30s 1m0s 2m0s 4m0s 5m0s 5m0s" {
		t.Errorf("waits %s", got)
	}
	l.add("a", true, now, now, "pods 1")
	if got := l.retryIn("a", now, "pods 9"); got != 0 {
		t.Errorf("waits %s although the quota has changed", got)
	}
	if got := l.retryIn("b", now, "pods 1"); got != 0 {
		t.Errorf("another experiment waits %s", got)
	}
	l.forget("a")
	if times, _ := l.add("a", true, now, now, "pods 1"); times != 1 {
		t.Errorf("counts %d setbacks after it was forgotten", times)
	}
}

func TestSetbacksOfOneStartCountOnceAndThoseOfBusyHostsByThemselves(t *testing.T) {
	var l setbacks
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l.add("a", true, start, start, "")
	l.add("a", true, start.Add(time.Minute), start, "")
	if times, _ := l.add("a", false, start.Add(2*time.Minute), start, ""); times != 1 {
		t.Errorf("a busy host after two refusals counts as %d", times)
	}
	if times, _ := l.add("a", false, start.Add(2*time.Minute), start.Add(time.Second), ""); times != 1 {
		t.Errorf("the same start counts as %d", times)
	}
	if times, wait := l.add("a", false, start.Add(3*time.Minute), start, ""); times != 2 || wait != 30*time.Second {
		t.Errorf("the next start counts as %d, and waits %s", times, wait)
	}
}
