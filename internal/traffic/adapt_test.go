package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/syncbuffer"
)

func TestThePeriodDoublesAboveHighAndHalvesAtLow(t *testing.T) {
	t.Parallel()
	const own, longest = 2 * time.Second, 10 * time.Second
	for name, c := range map[string]struct {
		period time.Duration
		frames int
		want   time.Duration
	}{
		"above high":             {own, 9, 4 * time.Second},
		"at high":                {own, 8, own},
		"up to the longest":      {8 * time.Second, 100, longest},
		"between":                {4 * time.Second, 5, 4 * time.Second},
		"at low":                 {8 * time.Second, 2, 4 * time.Second},
		"down to its own":        {3 * time.Second, 0, own},
		"not below its own":      {own, 0, own},
		"from longest, at low":   {longest, 1, 5 * time.Second},
		"far above, one step up": {4 * time.Second, 100000, 8 * time.Second},
	} {
		if got := nextPeriod(c.period, own, longest, c.frames, 8, 2); got != c.want {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for period := own; random.IntN(2000) > 0; {
		next := nextPeriod(period, own, longest, random.IntN(20), 8, 2)
		if next < own || next > longest || next > 2*period || next < period/2 {
			t.Fatalf("from %v to %v; want a step of two within %v and %v", period, next, own, longest)
		}
		period = next
	}
}

// radiod answers from a list: frames, or -1 for no answer.
func radiod(t *testing.T, answers ...int) (a *adaptation, warned *[]string, clock *time.Time) {
	t.Helper()
	clock, warned = &time.Time{}, &[]string{}
	*clock = time.Unix(1000, 0)
	return &adaptation{own: time.Second, longest: 8 * time.Second, high: 8, low: 2, period: time.Second, now: func() time.Time { return *clock },
		warn: func(text string) { *warned = append(*warned, text) },
		ask: func() (int, error) {
			frames := answers[0]
			answers = answers[1:]
			if frames < 0 {
				return 0, errors.New("no such socket")
			}
			return frames, nil
		}}, warned, clock
}

func TestAPublisherWithoutRadiodKeepsItsRateAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	a, warned, _ := radiod(t, -1, -1, -1)
	for range 3 {
		if period, why := a.next(); period != time.Second || why != "" {
			t.Errorf("period %v, %q; want its own and no change", period, why)
		}
	}
	if len(*warned) != 1 || !strings.Contains((*warned)[0], "the rate is fixed") {
		t.Errorf("warnings %q; want one", *warned)
	}
}

func TestAPeriodOutlivesARestartOfRadiodAndNoLongerAbsence(t *testing.T) {
	t.Parallel()
	a, warned, now := radiod(t, 20, 20, -1, 20, -1, 1)
	var periods []time.Duration
	var reasons []string
	for _, after := range []time.Duration{0, 1, 1, 1, 6, 1} {
		*now = now.Add(after * time.Second)
		period, why := a.next()
		periods, reasons = append(periods, period/time.Second), append(reasons, why)
	}
	if want := []time.Duration{2, 4, 4, 8, 1, 1}; !slices.Equal(periods, want) {
		t.Errorf("periods %v s; want %v", periods, want)
	}
	if want := []string{"20 frames wait", "20 frames wait", "", "20 frames wait", "radiod does not tell the queue", ""}; !slices.Equal(reasons, want) {
		t.Errorf("reasons %q; want %q", reasons, want)
	}
	if len(*warned) != 1 {
		t.Errorf("warnings %q; want one", *warned)
	}
}

func TestMessagesComeByTheAdaptedPeriodAndTheLogHasEachChange(t *testing.T) {
	t.Parallel()
	log := &syncbuffer.Buffer{}
	writer := messagelog.NewWriter(log)
	r := newRecorder("n/x", "PRT-S001", writer, newMetrics("n/x"), func(string) {})
	a, _, now := radiod(t, 0, 9, 9, 5, 0, 0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	var dues []time.Duration
	p := publisher{entity: "PRT-S001", timetable: &periodic{periodSeconds: 1, to: "t", maker: fixedMaker{}}, recorder: r, client: instantClient{r}, adapt: a, start: time.Unix(1000, 0),
		now: a.now, sleep: func(ctx context.Context, until time.Time) error {
			*now = until
			dues = append(dues, until.Sub(time.Unix(1000, 0))/time.Second)
			if len(dues) > 7 {
				cancel()
			}
			return ctx.Err()
		}}
	p.run(ctx, 1)
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{0, 1, 3, 7, 11, 13, 14, 15}; !slices.Equal(dues, want) {
		t.Errorf("messages due at %v s; want %v", dues, want)
	}
	var changes []string
	sent := 0
	_, _ = messagelog.Read(strings.NewReader(log.String()), func(m messagelog.Record) {
		switch m.Status {
		case messagelog.Period:
			changes = append(changes, m.ID+": "+m.Text)
		case messagelog.Sent:
			sent++
		default:
		}
	})
	if want := []string{"2s: 9 frames wait", "4s: 9 frames wait", "2s: 0 frames wait", "1s: 0 frames wait"}; !slices.Equal(changes, want) || sent != 7 {
		t.Errorf("%d sent, changes %q; want 7, %q", sent, changes, want)
	}
}

// fixedMaker makes messages with nothing but the id.
type fixedMaker struct{}

func (fixedMaker) Append(dst []byte, id string, _ time.Time) []byte {
	return append(append(dst, id...), '\n')
}
