package worker

import (
	"slices"
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
)

const stillMS = int64(time.Millisecond)

func spans(milliseconds ...int64) (all []span) {
	for i := 0; i < len(milliseconds); i += 2 {
		all = append(all, span{milliseconds[i] * stillMS, milliseconds[i+1] * stillMS})
	}
	return all
}

func TestAHostStoodStillWhereEveryProcessorDid(t *testing.T) {
	for _, c := range []struct {
		name  string
		still [][]span
		known int64
		want  []span
	}{
		{name: "no processor is watched", known: 100},
		{name: "one processor alone is the host", still: [][]span{spans(10, 30)}, known: 100, want: spans(10, 30)},
		{name: "only what all have in common", still: [][]span{spans(10, 30), spans(20, 50)}, known: 100, want: spans(20, 30)},
		{name: "one of two went on", still: [][]span{spans(10, 30), nil}, known: 100},
		{name: "one after the other", still: [][]span{spans(10, 30), spans(30, 50)}, known: 100},
		{name: "too short in common", still: [][]span{spans(10, 30), spans(28, 50)}, known: 100},
		{name: "one long stop covers two", still: [][]span{spans(10, 60), spans(15, 25, 40, 55)}, known: 100, want: spans(15, 25, 40, 55)},
		{name: "of three processors", still: [][]span{spans(10, 30), spans(12, 28), spans(15, 40)}, known: 100, want: spans(15, 28)},
		{name: "what not all have told of yet waits", still: [][]span{spans(10, 30), spans(12, 28)}, known: 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hostStops(c.still, c.known*stillMS); !slices.Equal(got, c.want) {
				t.Errorf("stops %v; want %v", got, c.want)
			}
		})
	}
}

func TestAProcessorStoodStillWhereItsTimerDidNotFire(t *testing.T) {
	for _, c := range []struct {
		name                string
		late, queued, slept int64 // milliseconds, but for how often it slept
		want                bool
		wantStill           int64
	}{
		{name: "it was late and had waited for nothing", late: 40, slept: 1, want: true, wantStill: 40},
		{name: "it had waited in the run queue for all of it", late: 40, queued: 40, slept: 1},
		{name: "it had waited in the run queue for a part", late: 40, queued: 10, slept: 1, want: true, wantStill: 30},
		{name: "it was on time", slept: 1},
		{name: "it was late as timers are", late: 2, slept: 1},
		{name: "it slept twice, for something else", late: 40, slept: 2},
		{name: "it never slept", late: 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			due := int64(1e12)
			before := waits{queued: 5 * stillMS, slept: 7}
			after := waits{queued: before.queued + c.queued*stillMS, slept: before.slept + c.slept}
			got, ok := stoodStill(due, due+c.late*stillMS, before, after)
			if ok != c.want || ok && got != (span{due, due + c.wantStill*stillMS}) {
				t.Errorf("stood still %v, %v; want %v, for %d ms", ok, got, c.want, c.wantStill)
			}
		})
	}
}

func TestWhatTheKernelTellsOfWaits(t *testing.T) {
	for text, want := range map[string]struct {
		queued int64
		ok     bool
	}{
		"123 4567 89\n": {4567, true},
		"123 0 89\n":    {0, true},
		"0 0 0\n":       {0, false}, // it does not count
		"123 4567\n":    {4567, false},
		"1 2 3 4\n":     {0, false},
		"-1 2 3\n":      {0, false},
		"1 2 3":         {0, false},
		"":              {0, false},
	} {
		if queued, ok := parseSchedstat([]byte(text)); ok != want.ok || ok && queued != want.queued {
			t.Errorf("%q: %d, %v; want %d, %v", text, queued, ok, want.queued, want.ok)
		}
	}
}

func TestTheWatchGoesOnAndEndsWithItsThreads(t *testing.T) {
	var w stillWatch
	if err := w.start(); err != nil {
		t.Skipf("this kernel does not tell: %v", err)
	}
	defer w.stop()
	begin := clock.Monotonic()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		w.stops()
		if !slices.ContainsFunc(w.processors, func(p *stillProcessor) bool { return p.seen.Load() < begin+100*stillMS }) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a processor's thread has not looked for 10 s")
		}
	}
	w.stop()
	if len(w.processors) != 0 {
		t.Errorf("%d processors are watched after the end", len(w.processors))
	}
	if err := w.start(); err != nil {
		t.Errorf("a second start: %v", err)
	}
}
