package decide

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/crds"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func at(text string) time.Time {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err) // a mistake in this test
	}
	return moment
}

func TestTheLastDueTimeIsFound(t *testing.T) {
	for name, c := range map[string]struct{ cron, zone, after, now, want string }{
		"none yet":                          {"0 * * * *", "", "2026-03-01T12:10:00Z", "2026-03-01T12:50:00Z", ""},
		"just now":                          {"0 * * * *", "", "2026-03-01T12:10:00Z", "2026-03-01T13:00:00Z", "2026-03-01T13:00:00Z"},
		"the last of many":                  {"* * * * *", "", "2026-02-01T00:00:00Z", "2026-03-01T13:00:30Z", "2026-03-01T13:00:00Z"},
		"long ago":                          {"0 0 1 1 *", "", "2020-06-01T00:00:00Z", "2026-12-31T00:00:00Z", "2026-01-01T00:00:00Z"},
		"attended to":                       {"@daily", "", "2026-03-01T00:00:00Z", "2026-03-01T23:00:00Z", ""},
		"in a time zone":                    {"30 7 * * *", "Europe/Oslo", "2026-01-01T00:00:00Z", "2026-01-01T12:00:00Z", "2026-01-01T06:30:00Z"},
		"in summer":                         {"30 7 * * *", "Europe/Oslo", "2026-07-01T00:00:00Z", "2026-07-01T12:00:00Z", "2026-07-01T05:30:00Z"},
		"the hour that spring leaves out":   {"30 2 * * *", "Europe/Oslo", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z", ""},
		"the hour that autumn has twice":    {"30 2 * * *", "Europe/Oslo", "2026-10-24T12:00:00Z", "2026-10-25T00:45:00Z", "2026-10-25T00:30:00Z"},
		"a day whose midnight spring skips": {"0 3 * * 5", "Africa/Cairo", "2010-04-26T12:00:00Z", "2010-04-30T12:00:00Z", "2010-04-30T00:00:00Z"},
		"a midnight that spring skips":      {"0 0 * * 5", "Africa/Cairo", "2010-04-26T12:00:00Z", "2010-04-30T12:00:00Z", ""},
		"hourly through autumn's long hour": {"0 * * * *", "Europe/Oslo", "2026-10-25T00:00:00Z", "2026-10-25T01:10:00Z", "2026-10-25T01:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			schedule, err := ParseSchedule(&v1alpha1.Schedule{Cron: c.cron, TimeZone: c.zone})
			if err != nil {
				t.Fatal(err)
			}
			got := lastDue(schedule, at(c.after), at(c.now))
			if c.want == "" && got.IsZero() || c.want != "" && got.Equal(at(c.want)) {
				return
			}
			t.Errorf("%s; want %s", got, c.want)
		})
	}
}

func TestInvalidSchedulesAreRefused(t *testing.T) {
	for _, s := range []v1alpha1.Schedule{
		{Cron: "0 0 31 2 *"}, {Cron: "* * * *"}, {Cron: "@every 5m"}, {Cron: "TZ=Europe/Oslo 0 * * * *"}, {Cron: "0 * * * *", TimeZone: "Europe/Olso"}, {Cron: "0 * * * *", TimeZone: "Local"},
		{Cron: "0 * * * *", StartingDeadline: "0s"},
	} {
		if _, err := ParseSchedule(&s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

// hourly is a campaign of two runs each hour, which take a minute each.
func hourly(t *testing.T, change func(*v1alpha1.CampaignSpec)) *simulation {
	spec := twoAxes()
	spec.Repeats, spec.Parallelism = 1, 2
	spec.Matrix.Axes = spec.Matrix.Axes[:1]
	spec.Schedule = &v1alpha1.Schedule{Cron: "0 * * * *"}
	if change != nil {
		change(spec)
	}
	p := newSimulation(t, spec, 1)
	p.undisturbed = true
	return p
}

// advance lets time pass in steps, each with one or more reconciliations. goOn lets experiments progress.
func (p *simulation) advance(d, step time.Duration, goOn bool) {
	p.t.Helper()
	for end := p.now.Add(d); p.now.Before(end); p.now = p.now.Add(step) {
		for range 20 {
			if p.reconcile() {
				break
			}
		}
		for range 4 {
			if goOn {
				p.advanceOne()
			}
		}
	}
}

func TestARoundStartsWhenItIsDue(t *testing.T) {
	p := hourly(t, nil)
	p.advance(30*time.Minute, time.Minute, true)
	if s := p.campaign.Status; s.Round != 0 || s.Phase != v1alpha1.CampaignScheduled || !s.NextScheduleTime.Equal(ptr.To(metaTime("2026-03-01T13:00:00Z"))) {
		t.Fatalf("before the first round: %+v", s)
	}
	p.advance(4*time.Hour, time.Minute, true)
	s := p.campaign.Status
	if s.Round != 4 || s.Phase != v1alpha1.CampaignScheduled || len(p.made) != 8 {
		t.Fatalf("after four hours: round %d, %s, %d runs", s.Round, s.Phase, len(p.made))
	}
	if names := []string{s.Runs[0].Name, s.Runs[1].Name}; !slices.Equal(names, []string{"c-r4-1s-1", "c-r4-2s-1"}) {
		t.Errorf("runs %v", names)
	}
	if len(s.Rounds) != 4 || s.Rounds[0].Number != 4 || s.Rounds[3].Number != 1 {
		t.Errorf("rounds %+v; want the last one and three before", s.Rounds)
	}
	for _, e := range p.world {
		if e.Round < 1 {
			t.Errorf("%s of round %d is still there", e.Name, e.Round)
		}
	}
}

func TestTheLongestHistoryIsKept(t *testing.T) {
	text, err := crds.Files.ReadFile("vignette.dev_campaigns.yaml")
	var definition apiextensionsv1.CustomResourceDefinition
	if err == nil {
		err = yaml.Unmarshal(text, &definition)
	}
	if err != nil {
		t.Fatal(err)
	}
	campaign := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	most := int32(*campaign.Properties["spec"].Properties["history"].Properties["rounds"].Maximum)
	none := int32(0) // of the experiments themselves
	p := hourly(t, func(s *v1alpha1.CampaignSpec) {
		s.History = v1alpha1.History{Rounds: &most, Succeeded: &none, Failed: &none}
	})
	p.advance(time.Duration(most+3)*time.Hour, 10*time.Minute, true)
	kept := len(p.campaign.Status.Rounds)
	if want := 1 + int(most); kept != want {
		t.Errorf("%d rounds are kept; want the last one and %d before", kept, most)
	}
	if allowed := *campaign.Properties["status"].Properties["rounds"].MaxItems; int64(kept) > allowed {
		t.Errorf("a status may have %d rounds, and has %d", allowed, kept)
	}
}

func TestARoundThatIsDueWhileOneIsActive(t *testing.T) {
	for policy, want := range map[v1alpha1.ConcurrencyPolicy]int64{v1alpha1.ConcurrencyForbid: 1, v1alpha1.ConcurrencyReplace: 3} {
		t.Run(string(policy), func(t *testing.T) {
			p := hourly(t, func(s *v1alpha1.CampaignSpec) { s.Schedule.ConcurrencyPolicy, s.Parallelism = policy, 1 })
			p.advance(3*time.Hour+30*time.Minute, time.Minute, false) // runs never end
			if got := p.campaign.Status.Round; got != want {
				t.Errorf("round %d; want %d: %+v", got, want, p.campaign.Status)
			}
			if policy == v1alpha1.ConcurrencyReplace && p.campaign.Status.Rounds[0].Runs.Skipped != 1 {
				t.Errorf("%+v; want one run that was stopped and one that was skipped", p.campaign.Status.Rounds[0])
			}
		})
	}
}

func TestARoundThatWaitsForAQuotaGivesWayToTheNext(t *testing.T) {
	p := hourly(t, func(s *v1alpha1.CampaignSpec) { s.Schedule.ConcurrencyPolicy = v1alpha1.ConcurrencyReplace })
	p.full = true
	p.advance(2*time.Hour+30*time.Minute, time.Minute, true)
	p.full = false
	p.advance(10*time.Minute, time.Minute, true)
	if s := p.campaign.Status; s.Round != 2 || s.Rounds[1].Runs.Skipped != 2 || s.Counts.Succeeded != 2 {
		t.Errorf("round %d, before it %+v, runs %+v; want the first skipped and the second done", s.Round, s.Rounds, s.Counts)
	}
}

func TestARoundThatIsTooLateIsLeftOut(t *testing.T) {
	p := hourly(t, func(s *v1alpha1.CampaignSpec) { s.Schedule.StartingDeadline = "10m" })
	p.now = at("2026-03-01T13:20:00Z") // the operator was down
	p.advance(5*time.Minute, time.Minute, true)
	if s := p.campaign.Status; s.Round != 0 || !s.LastScheduleTime.Equal(ptr.To(metaTime("2026-03-01T13:00:00Z"))) {
		t.Fatalf("%+v", s)
	}
	p.now = at("2026-03-01T14:05:00Z")
	p.advance(5*time.Minute, time.Minute, true)
	if s := p.campaign.Status; s.Round != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestAClockThatIsSetBackStartsNoRoundAgain(t *testing.T) {
	p := hourly(t, nil)
	p.now = at("2026-03-01T13:00:01Z")
	p.advance(10*time.Minute, time.Minute, true)
	p.now = at("2026-03-01T12:59:50Z")
	p.advance(30*time.Minute, time.Second*20, true)
	if s := p.campaign.Status; s.Round != 1 {
		t.Errorf("round %d after the clock was set back; want 1", s.Round)
	}
}

func TestAScheduleGoesOnAfterAClockThatWasFarAheadIsSetBack(t *testing.T) {
	p := hourly(t, nil)
	p.now = at("2036-03-01T13:00:01Z")
	p.advance(10*time.Minute, time.Minute, true)
	p.now = at("2026-03-01T14:30:00Z")
	p.advance(3*time.Hour, time.Minute, true)
	if s := p.campaign.Status; s.Round != 4 {
		t.Errorf("round %d three hours after the clock was set back by ten years; want 4: %+v", s.Round, s)
	}
}

func TestAScheduleOfACampaignThatWasMadeByAClockFarAheadGoesOn(t *testing.T) {
	p := hourly(t, nil)
	p.campaign.CreationTimestamp = metaTime("2036-03-01T13:00:01Z")
	p.advance(3*time.Hour+30*time.Minute, time.Minute, true)
	if s := p.campaign.Status; s.Round != 3 {
		t.Errorf("round %d after three hours; want 3: %+v", s.Round, s)
	}
}

func TestASuspendedScheduleContinuesWithinTheDeadline(t *testing.T) {
	p := hourly(t, func(s *v1alpha1.CampaignSpec) { s.Suspend, s.Schedule.StartingDeadline = true, "30m" })
	p.now = at("2026-03-01T13:01:00Z")
	p.advance(10*time.Minute, time.Minute, true)
	if s := p.campaign.Status; s.Round != 0 || s.Phase != v1alpha1.CampaignSuspended {
		t.Fatalf("%+v", s)
	}
	p.edit(func(s *v1alpha1.CampaignSpec) { s.Suspend = false })
	p.advance(time.Minute, time.Minute, true)
	if s := p.campaign.Status; s.Round != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestAnEditedScheduleStartsNoRoundForATimeBeforeTheEdit(t *testing.T) {
	for name, before := range map[string]*v1alpha1.Schedule{"of another time": {Cron: "0 * * * *"}, "where there was none": nil} {
		t.Run(name, func(t *testing.T) {
			p := hourly(t, func(s *v1alpha1.CampaignSpec) { s.Schedule = before })
			p.advance(90*time.Minute, time.Minute, true) // until 13:30
			p.edit(func(s *v1alpha1.CampaignSpec) { s.Schedule = &v1alpha1.Schedule{Cron: "20 * * * *"} })
			p.advance(49*time.Minute, time.Minute, true)
			if got := p.campaign.Status.Round; got != 1 {
				t.Errorf("round %d at 14:19; want 1, which was before the edit", got)
			}
			p.advance(5*time.Minute, time.Minute, true)
			if got := p.campaign.Status.Round; got != 2 {
				t.Errorf("round %d at 14:24; want 2", got)
			}
		})
	}
}

func TestARoundWhoseScheduleIsRemovedTakesNoExperimentOfAnEarlierRound(t *testing.T) {
	p := hourly(t, func(s *v1alpha1.CampaignSpec) { s.Schedule, s.Parallelism = nil, 1 })
	p.finish() // round 1, whose experiments stay
	p.edit(func(s *v1alpha1.CampaignSpec) { s.Schedule = &v1alpha1.Schedule{Cron: "0 * * * *"} })
	p.advance(90*time.Minute, time.Minute, false) // round 2 has begun its first run
	p.edit(func(s *v1alpha1.CampaignSpec) { s.Schedule = nil })
	p.finish()
	if len(p.made) != 4 {
		t.Errorf("%d experiments were made; want two in each of two rounds", len(p.made))
	}
	for _, run := range p.campaign.Status.Runs {
		if of := p.world[run.Name]; of.Round != 2 {
			t.Errorf("%s of round 2 has the results of round %d", run.Name, of.Round)
		}
	}
}

func TestARoundThatIsToReplaceAnotherIsKeptWhileTheCampaignIsSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		suspended time.Duration
		round     int64
		leftOut   bool
	}{"resumed before the deadline": {10 * time.Minute, 2, false}, "resumed after it": {40 * time.Minute, 1, true}} {
		t.Run(name, func(t *testing.T) {
			p := hourly(t, func(s *v1alpha1.CampaignSpec) {
				s.Schedule.ConcurrencyPolicy, s.Schedule.StartingDeadline, s.Parallelism = v1alpha1.ConcurrencyReplace, "30m", 1
			})
			p.advance(2*time.Hour, time.Minute, false) // until 14:00; runs never end
			p.reconcile()                              // it finds that the next round is due
			p.edit(func(s *v1alpha1.CampaignSpec) { s.Suspend = true })
			p.advance(c.suspended, time.Minute, false)
			if s := p.campaign.Status; s.Message != "suspended: no run is started; 1 active run continues to its end" {
				t.Errorf("message %q; want one run in the singular", s.Message)
			}
			if s := p.campaign.Status; s.Round != 1 || (s.DueTime == nil) != c.leftOut || s.Counts.Running != 1 {
				t.Errorf("while it is suspended: round %d, due %s, %d runs; want the run of round 1", s.Round, s.DueTime, s.Counts.Running)
			}
			if got := slices.ContainsFunc(p.events, func(e Event) bool { return e.Reason == "RoundLeftOut" }); got != c.leftOut {
				t.Errorf("the round is left out: %t; want %t: %+v", got, c.leftOut, p.events)
			}
			p.edit(func(s *v1alpha1.CampaignSpec) { s.Suspend = false })
			p.advance(time.Minute, time.Minute, false)
			if got := p.campaign.Status.Round; got != c.round {
				t.Errorf("resumed: round %d; want %d", got, c.round)
			}
		})
	}
}

func TestStopConditionsLeaveRunsOut(t *testing.T) {
	good := &v1alpha1.ResultsSummary{Sent: 1000, Expected: 1000, Received: 900, MedianDelay: "100.0ms"}
	for name, c := range map[string]struct {
		stop v1alpha1.StopConditions
		// outcomes of the runs in order. The others are skipped.
		outcomes []string
		want     string
		phase    v1alpha1.CampaignPhase
	}{
		"two failures":                {v1alpha1.StopConditions{Failures: ptr.To(int32(2))}, []string{"ok", "fail", "ok", "fail"}, "2 runs have failed: stopWhen.failures is 2", v1alpha1.CampaignFailed},
		"equal results":               {confident("5%", 3), []string{"ok", "ok", "ok"}, "DeliveredPercent is known as 90 ± 1.1 after 3 repeats", v1alpha1.CampaignSucceeded},
		"near enough":                 {confident("5%", 3), []string{"900", "910", "920"}, "is known as 91 ± 1.2 after 3 repeats", v1alpha1.CampaignSucceeded},
		"after more repeats":          {confident("5%", 3), []string{"850", "900", "890", "900"}, "after 4 repeats", v1alpha1.CampaignSucceeded},
		"never of one":                {confident("100%", 2), []string{"900", "900"}, "after 2 repeats", v1alpha1.CampaignSucceeded},
		"nothing lost in so few":      {confident("0.1%", 2), []string{"1000", "1000", "1000", "1000"}, "is known as 100 ± 0.096 after 4 repeats", v1alpha1.CampaignSucceeded},
		"failed repeats do not count": {confident("5%", 3), []string{"ok", "fail", "ok", "ok"}, "after 3 repeats", v1alpha1.CampaignFailed},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.CampaignSpec{Repeats: 10, StopWhen: c.stop}
			p := newSimulation(t, spec, 1)
			p.undisturbed = true
			for i := range 200 {
				p.now = p.now.Add(time.Second)
				p.reconcile()
				if e := p.world[fmt.Sprintf("c-template-%d", i/10+1)]; e != nil && e.Phase == "" && i/10 < len(c.outcomes) {
					e.Phase, e.Results = v1alpha1.PhaseSucceeded, good.DeepCopy()
					if c.outcomes[i/10] == "fail" {
						e.Phase = v1alpha1.PhaseFailed
					} else if c.outcomes[i/10] != "ok" {
						e.Results.Received = decimal(t, c.outcomes[i/10])
					}
				}
			}
			s := p.campaign.Status
			if len(p.made) != len(c.outcomes) || int(s.Counts.Skipped) != 10-len(c.outcomes) || s.Phase != c.phase {
				t.Fatalf("made %d runs, %+v, %s; want %d", len(p.made), s.Counts, s.Phase, len(c.outcomes))
			}
			if last := s.Runs[9].Message; !strings.Contains(last, c.want) {
				t.Errorf("%q; want %q", last, c.want)
			}
		})
	}
}

func decimal(t *testing.T, text string) int64 {
	t.Helper()
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func confident(width v1alpha1.Percent, least int32) v1alpha1.StopConditions {
	return v1alpha1.StopConditions{Confidence: &v1alpha1.Confidence{Figure: v1alpha1.FigureDeliveredPercent, HalfWidth: width, MinRepeats: least}}
}

func TestRoundedFiguresAreNotTreatedAsExact(t *testing.T) {
	for text, want := range map[string][2]float64{"0.4ms": {0.0004, 0.00005}, "1.23s": {1.23, 0.005}, "12.5ms": {0.0125, 0.00005}, "0.041ms": {0.000041, 0.0000005}} {
		same := &v1alpha1.ResultsSummary{MedianDelay: text}
		if n, value, grain := medianDelay([]*v1alpha1.ResultsSummary{same, same, {}}); n != 2 || [2]float64{value, grain} != want {
			t.Errorf("%s: %v ± %v of %d; want %v of 2", text, value, grain, n, want)
		}
	}
}

func TestTheHistoryKeepsTheNewestAndWhatIsNotRecorded(t *testing.T) {
	p := newSimulation(t, twoAxes(), 1)
	p.undisturbed = true
	p.edit(func(s *v1alpha1.CampaignSpec) {
		s.History.Succeeded, s.History.Failed = ptr.To(int32(2)), ptr.To(int32(0))
	})
	p.finish()
	for range 5 {
		p.reconcile()
	}
	if succeeded := p.campaign.Status.Counts.Succeeded; len(p.world) != int(min(2, succeeded)) || len(p.made) != 8 {
		t.Errorf("%d experiments are left of %d that succeeded, %d were made", len(p.world), succeeded, len(p.made))
	}
	p.checkComplete()
}

func TestTheEndIsEstimatedFromTheTimesOfRuns(t *testing.T) {
	p := newSimulation(t, twoAxes(), 1) // 8 runs of 1m and 1s or 2s, two at a time
	p.undisturbed = true
	p.reconcile()
	if left := p.campaign.Status.EstimatedCompletionTime.Sub(p.now); left < 8*time.Minute || left > 9*time.Minute {
		t.Errorf("at the start %s are left; want four times two minutes and some seconds", left)
	}
	p.reconcile()
	p.now = p.now.Add(3 * time.Minute)
	for _, e := range p.world {
		e.Phase, e.CompletionTime = v1alpha1.PhaseSucceeded, ptr.To(metaTime(p.now.Format(time.RFC3339)))
	}
	p.reconcile()
	if left := p.campaign.Status.EstimatedCompletionTime.Sub(p.now); left < 9*time.Minute-5*time.Second || left > 9*time.Minute+5*time.Second {
		t.Errorf("after two runs of three minutes each %s are left; want three times three minutes", left)
	}
}

func metaTime(text string) metav1.Time { return metav1.NewTime(at(text)) }
