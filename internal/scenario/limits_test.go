package scenario_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
)

func TestTemporaryFilesHaveABound(t *testing.T) {
	options := scenario.InMemory(100)
	options.MaxTemporary = 1000
	b := scenario.NewBuilder(options)
	defer b.Close()
	var err error
	for i := 0; i < 10_000 && err == nil; i++ {
		err = b.Pathloss(time.Duration(i)*time.Second, 1, 2, float64(i*7919%100))
	}
	if err == nil {
		_, err = b.Write(io.Discard)
	}
	if err == nil || !strings.Contains(err.Error(), "the scenario takes more than") {
		t.Errorf("got %v", err)
	}
}

func TestATimelineOfTooManyMomentsIsRefused(t *testing.T) {
	b := scenario.NewBuilder(scenario.Options{})
	must(t, b.Pathloss(time.Hour, 1, 2, 90))
	s := scenariotest.Open(t, b)
	if _, err := s.Timeline(t.Context(), time.Nanosecond, 121); err == nil || !strings.Contains(err.Error(), "want at most 100000") {
		t.Errorf("got %v", err)
	}
}
