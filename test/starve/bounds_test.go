package main

import (
	"testing"

	"vignette.dev/vignette/internal/runapi"
)

// pairsWith returns count pairs whose median was 0.1 s and is 0.2 s, with bounds that begin at low.
func pairsWith(count int, low float64) (pairs []*pair) {
	for range count {
		p := &pair{run: &run{results: &runapi.Results{Verdict: &runapi.Verdict{}}}}
		for i := range p.compared {
			p.compared[i].noise = new(float64)
		}
		p.compared[0] = comparison{figure{0.2, 0.001, runapi.Interval{Low: low, High: 0.2}}, 0.1, 0.1, new(float64)}
		pairs = append(pairs, p)
	}
	return pairs
}

func TestBoundsThatMissOrAreTooWideFail(t *testing.T) {
	const covering, missing, tooWide = 0.09, 0.11, -0.5
	if err := checkCoverage(append(pairsWith(39, covering), pairsWith(1, missing)...)); err != nil {
		t.Errorf("1 of 40 is missed: %v; want no error, as 95 %% may be covered", err)
	}
	if checkCoverage(append(pairsWith(34, covering), pairsWith(6, missing)...)) == nil {
		t.Error("6 of 40 are missed, and there is no error")
	}
	if err := checkWidths(pairsWith(1, covering)); err != nil {
		t.Errorf("the bound is 1.1 times as wide as the difference: %v; want no error", err)
	}
	if checkWidths(pairsWith(1, tooWide)) == nil {
		t.Error("the bound is 7 times as wide as the difference, and there is no error")
	}
	kept := pairsWith(1, covering)
	kept[0].results.Verdict.KeptUp = true
	if checkCoverage(kept) == nil {
		t.Error("a figure is off by more than its tolerance and keptUp is true, and there is no error")
	}
}
