package cli

import (
	"testing"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/runapi"
)

func TestTheVerdictSaysByHowMuchFiguresAreOff(t *testing.T) {
	r := wholeResults()
	interval := func(low, high float64) runapi.Interval { return runapi.Interval{Low: low, High: high} }
	bounds := runapi.Bounds{DelaySeconds: map[string]runapi.Interval{"median": interval(0.0997, 0.1), "p95": interval(0.2, 0.2)},
		DeliveredPercent: ptr(interval(99.98, 100)), Marked: 12, MarkedLost: 1}
	r.Headline = "radio"
	r.Groups = []runapi.GroupResult{{Name: "radio", Messages: runapi.Messages{DeliveredPercent: ptr(99.98)},
		DelaySeconds: &runapi.Quantiles{Median: 0.1, P95: ptr(0.2)}, Bounds: &bounds}}
	r.Verdict = &runapi.Verdict{KeptUp: true, Bounds: &bounds,
		Networks: []runapi.NetworkTiming{{Name: "wan", Frames: 1200, Late: 3, WorstSeconds: 0.004, Slots: 259_996, Missed: 4}},
		Late:     []runapi.Late{{FromSeconds: 12, ToSeconds: 12.02, What: "radio of host n1 held up", WorstSeconds: 0.02}},
		Context:  []string{"The hypervisor took 1.2 s of processor time from host n1."}}
	kept := verdictText(&r)
	r.Verdict.KeptUp, r.Verdict.Exceeded = false, []string{"the median of the delay may be off by 5 ms; 1 % or 1 ms is tolerated"}
	golden.Check(t, "verdict.txt", kept+verdictText(&r))
}

func TestLossesOfTheEmulationComeFirstAndHaveNoLateness(t *testing.T) {
	moments := []runapi.Late{{Node: "nor", FromSeconds: 3, ToSeconds: 4, What: "frame release", WorstSeconds: 0.02}}
	for second := 10.; second < 16; second++ {
		moments = append(moments, runapi.Late{Node: "prt", FromSeconds: second, ToSeconds: second + 1, What: "2 frames queueFull on wan"})
	}
	want := "  prt at 10.0–11.0 s: 2 frames queueFull on wan\n"
	for _, second := range []string{"11.0–12.0", "12.0–13.0", "13.0–14.0", "14.0–15.0"} {
		want += "  prt at " + second + " s: 2 frames queueFull on wan\n"
	}
	want += "  and 2 more; -o json has the worst 50\n"
	if text := momentsText(moments); text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	if text, want := momentsText(moments[:2]), "  prt at 10.0–11.0 s: 2 frames queueFull on wan\n  nor at 3.0–4.0 s: frame release, 20.0 ms late at worst\n"; text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}
