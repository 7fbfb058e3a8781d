package campaign

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestOnARealAPIServer(t *testing.T) {
	log.SetLogger(logr.Discard())
	api, err := client.NewWithWatch(testkube.Start(t), client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a point that breaks a rule is named, and a valid campaign runs", func(t *testing.T) { aBadPointAndAGoodCampaign(t, api) })
	t.Run("one that is too large is refused at apply", func(t *testing.T) { aTooLargeCampaignIsRefusedAtApply(t, api) })
	t.Run("rounds follow the schedule, its time zone, policy and deadline, suspension and history", func(t *testing.T) { rounds(t, api) })
}

func aBadPointAndAGoodCampaign(t *testing.T, api client.WithWatch) {
	w := worldOn(t, api)
	bad := tiny()
	bad.Generation = 0
	bad.Spec.Matrix.Axes[1].Values, bad.Spec.Matrix.Exclude = values("500ms", "never"), nil
	w.must(w.api.Create(t.Context(), bad))
	w.reconcile()
	accepted := meta.FindStatusCondition(w.campaign().Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionFalse || !strings.HasPrefix(accepted.Message, "point 1ms-never (and 1 more): spec.apps") {
		t.Errorf("%+v; want the point and the field named", accepted)
	}
	if n := len(w.experiments()); n != 0 {
		t.Errorf("%d experiments were made", n)
	}
	good := w.campaign()
	good.Spec.Matrix = tiny().Spec.Matrix
	w.must(w.api.Update(t.Context(), good))
	w.untilOver()
	w.wantMade("tiny-1ms-1s-1", "tiny-1ms-500ms-1", "tiny-50ms-500ms-1")
	if c := w.campaign(); c.Status.Phase != v1alpha1.CampaignSucceeded || c.Status.ObservedGeneration != c.Generation || c.Status.Counts.Summary != "3/3" {
		t.Errorf("%+v", c.Status)
	}
	settled := w.campaign().ResourceVersion
	for range 3 {
		w.reconcile()
	}
	if got := w.campaign().ResourceVersion; got != settled {
		t.Errorf("a campaign that is over was written: %s, was %s", got, settled)
	}
}

// nightly is a campaign of three runs each night, at a local time of Oslo.
func nightly() *v1alpha1.Campaign {
	c := tiny()
	c.Namespace, c.Name, c.Generation = "nightly", "nightly", 0
	c.Spec.Schedule = &v1alpha1.Schedule{Cron: "30 2 * * *", TimeZone: "Europe/Oslo", ConcurrencyPolicy: v1alpha1.ConcurrencyForbid, StartingDeadline: "1h"}
	c.Spec.History = v1alpha1.History{Rounds: ptr.To(int32(2)), Succeeded: ptr.To(int32(4))}
	return c
}

// night is the n-th time of the schedule after the campaign was created.
func (w *world) night(n int) time.Time {
	w.t.Helper()
	oslo, err := time.LoadLocation("Europe/Oslo")
	w.must(err)
	made := w.campaign().CreationTimestamp.In(oslo)
	first := time.Date(made.Year(), made.Month(), made.Day(), 2, 30, 0, 0, oslo)
	if !first.After(made) {
		n++
	}
	return time.Date(first.Year(), first.Month(), first.Day()+n-1, 2, 30, 0, 0, oslo)
}

// at lets the operator reconcile at a time until it writes no more.
func (w *world) at(moment time.Time) v1alpha1.CampaignStatus {
	w.t.Helper()
	w.clock.SetTime(moment)
	for range 5 {
		w.reconcile()
	}
	return w.campaign().Status
}

// untilRoundOver completes the round's experiments.
func (w *world) untilRoundOver() v1alpha1.CampaignStatus {
	w.t.Helper()
	for range 40 {
		if status := w.at(w.clock.Now().Add(time.Second)); status.RoundCompletionTime != nil && status.Phase == v1alpha1.CampaignScheduled {
			return status
		}
		w.advanceExperiments()
	}
	w.t.Fatalf("the round has no end: %+v", w.campaign().Status)
	return v1alpha1.CampaignStatus{}
}

// wantRound checks the current or last round, and the time at which it was due.
func (w *world) wantRound(what string, round int64, due time.Time) {
	w.t.Helper()
	if status := w.campaign().Status; status.Round != round || status.LastScheduleTime == nil || !status.LastScheduleTime.Equal(&metav1.Time{Time: due}) {
		w.t.Fatalf("%s: round %d, last due %s; want round %d, due %s", what, status.Round, status.LastScheduleTime, round, due.UTC())
	}
}

// eventRecorded reports whether an event with a reason was recorded since the last call.
func (w *world) eventRecorded(reason string) (found bool) {
	for {
		select {
		case event := <-w.events.Events:
			found = found || strings.Contains(event, reason)
		default:
			return found
		}
	}
}

func rounds(t *testing.T, api client.WithWatch) {
	w := worldOn(t, api)
	w.key = types.NamespacedName{Namespace: "nightly", Name: "nightly"}
	w.must(api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}))
	w.must(w.api.Create(t.Context(), nightly()))

	if status := w.at(w.night(1).Add(-time.Minute)); status.Round != 0 || status.NextScheduleTime == nil || !status.NextScheduleTime.Equal(&metav1.Time{Time: w.night(1)}) {
		t.Fatalf("a minute before: round %d, next at %s; want none, and %s", status.Round, status.NextScheduleTime, w.night(1).UTC())
	}
	w.at(w.night(1).Add(time.Second))
	w.wantRound("the first night", 1, w.night(1))
	w.untilRoundOver()
	w.at(w.night(2))
	w.wantRound("the second night", 2, w.night(2))
	w.eventRecorded("")
	w.at(w.night(3).Add(time.Second))
	if w.wantRound("Forbid, while a round goes on", 2, w.night(3)); !w.eventRecorded("RoundLeftOut") {
		t.Error("there is no event about the round that was left out")
	}
	w.untilRoundOver()

	w.at(w.night(4))
	w.wantRound("the fourth night", 3, w.night(4))
	w.edit(func(c *v1alpha1.Campaign) { c.Spec.Schedule.ConcurrencyPolicy = v1alpha1.ConcurrencyReplace })
	w.at(w.night(5).Add(time.Second))
	stopped := 0
	for _, e := range w.experiments() {
		if strings.HasPrefix(e.Name, "nightly-r3-") && e.Spec.Stop {
			stopped++
		}
	}
	if stopped != 2 {
		t.Errorf("Replace stops %d of the two that run", stopped)
	}
	for w.campaign().Status.Round == 3 {
		w.advanceExperiments()
		w.at(w.clock.Now().Add(time.Second))
	}
	w.wantRound("Replace, once what ran has ended", 4, w.night(5))
	w.untilRoundOver()

	w.suspendedFor()

	half := w.night(180) // after a change of Oslo's clocks
	if half.UTC().Hour() == w.night(1).UTC().Hour() {
		half = w.night(270)
	}
	w.at(half)
	w.wantRound("half a year later", 6, half)
	status := w.untilRoundOver()
	if half.UTC().Hour() == w.night(1).UTC().Hour() {
		t.Errorf("the clocks were not changed between %s and %s", w.night(1), half)
	}
	if len(status.Rounds) != 3 {
		t.Errorf("the history has %d rounds, want the last and two before it: %+v", len(status.Rounds), status.Rounds)
	}
	names := map[string]bool{}
	for _, e := range w.experiments() {
		names[e.Name] = true
	}
	if len(names) != 4 || !names["nightly-r6-1ms-500ms-1"] {
		t.Errorf("%v are kept, want the newest four", names)
	}
	for name, count := range w.created {
		if count != 1 {
			t.Errorf("%s was made %d times", name, count)
		}
	}
}

// suspendedFor suspends the campaign. Resumed before the deadline it starts its round late, after it the round is left out.
func (w *world) suspendedFor() {
	w.t.Helper()
	w.edit(func(c *v1alpha1.Campaign) { c.Spec.Suspend = true })
	w.at(w.night(6).Add(time.Minute))
	w.wantRound("suspended", 4, w.night(6))
	w.edit(func(c *v1alpha1.Campaign) { c.Spec.Suspend = false })
	w.at(w.night(6).Add(59 * time.Minute))
	w.wantRound("resumed before the deadline", 5, w.night(6))
	w.untilRoundOver()
	w.edit(func(c *v1alpha1.Campaign) { c.Spec.Suspend = true })
	w.at(w.night(7).Add(30 * time.Minute))
	w.edit(func(c *v1alpha1.Campaign) { c.Spec.Suspend = false })
	w.eventRecorded("")
	w.at(w.night(7).Add(61 * time.Minute))
	if w.wantRound("resumed after the deadline", 5, w.night(7)); !w.eventRecorded("RoundLeftOut") {
		w.t.Error("there is no event about the round that was too late")
	}
}
