package experiment

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/checks"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/run/live"
	"vignette.dev/vignette/operators/experiment/scope"
)

func lossOf(network string, loss v1alpha1.Percent) v1alpha1.RadioChange {
	return v1alpha1.RadioChange{Network: network, Link: &v1alpha1.LinkPatch{Loss: &loss}}
}

func (w *world) change(name string, changes ...v1alpha1.RadioChange) *v1alpha1.LiveChange {
	w.t.Helper()
	c := &v1alpha1.LiveChange{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.key.Namespace}, Spec: v1alpha1.LiveChangeSpec{Experiment: w.key.Name, Changes: changes}}
	w.must(w.api.Create(w.t.Context(), c))
	return c
}

func (w *world) capture(name, network string, edits ...func(*v1alpha1.CaptureSpec)) *v1alpha1.Capture {
	w.t.Helper()
	c := &v1alpha1.Capture{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.key.Namespace}, Spec: v1alpha1.CaptureSpec{Experiment: w.key.Name, Network: network}}
	for _, edit := range edits {
		edit(&c.Spec)
	}
	w.must(w.api.Create(w.t.Context(), c))
	return c
}

// noCondition stands for an object without a condition.
const noCondition = "without its condition"

// conditionOf is the condition of a change or capture as status, reason and message.
func (w *world) conditionOf(object client.Object) string {
	w.t.Helper()
	w.must(w.api.Get(w.t.Context(), client.ObjectKeyFromObject(object), object))
	var condition *metav1.Condition
	switch o := object.(type) {
	case *v1alpha1.LiveChange:
		condition = meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionApplied)
	case *v1alpha1.Capture:
		condition = meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionCapturing)
	}
	if condition == nil {
		return noCondition
	}
	return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
}

func (w *world) wantCondition(object client.Object, want string) {
	w.t.Helper()
	if got := w.conditionOf(object); !strings.Contains(got, want) {
		w.t.Errorf("%s is %q, want …%q…", object.GetName(), got, want)
	}
}

func (w *world) radio(network string) v1alpha1.RadioNetworkSpec {
	w.t.Helper()
	var list v1alpha1.RadioNetworkList
	w.must(w.api.List(w.t.Context(), &list))
	for _, n := range list.Items {
		if n.Spec.Network == network {
			return n.Spec
		}
	}
	w.t.Fatalf("there is no RadioNetwork %s", network)
	return v1alpha1.RadioNetworkSpec{}
}

func (w *world) untilAfterT0(elapsed time.Duration) *v1alpha1.Experiment {
	w.t.Helper()
	return w.until(fmt.Sprintf("%s after T0", elapsed), func(e *v1alpha1.Experiment) bool {
		return e.Status.T0 != nil && w.clock.Since(e.Status.T0.Time) >= elapsed
	})
}

func (w *world) stop() {
	w.t.Helper()
	e := w.experiment()
	e.Spec.Stop = true
	w.must(w.api.Update(w.t.Context(), e))
}

// wantNoWrites fails the test if the operator writes although nothing has changed.
func (w *world) wantNoWrites() {
	w.t.Helper()
	if _, err := w.reconcile(); err != nil { // the time has changed since the last one
		w.t.Fatal(err)
	}
	before := len(w.writes)
	for range 3 {
		w.clock.Step(10 * time.Millisecond)
		if _, err := w.reconcile(); err != nil {
			w.t.Fatal(err)
		}
	}
	if more := w.writes[before:]; len(more) > 0 {
		w.t.Errorf("wrote %v", more)
	}
}

func liveCluster(e *v1alpha1.Experiment) { e.Spec.Duration = ""; e.Spec.Timeline = e.Spec.Timeline[:1] }

func TestALiveClusterIsUpUntilItIsStopped(t *testing.T) {
	w := newWorld(t, liveCluster)
	w.untilAfterT0(10 * time.Second)
	w.clock.Step(300 * 24 * time.Hour)
	w.settle()
	e := w.experiment()
	if e.Status.Phase != v1alpha1.PhaseRunning || e.Status.Step != v1alpha1.StepStop || e.Status.Message != "live cluster: up until it is stopped" || e.Status.Progress != "" {
		t.Errorf("after 300 days: %+v", e.Status)
	}
	if ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || ready.Reason != scope.ReasonLive {
		t.Errorf("while it is up: %+v", ready)
	}
	w.wantNoWrites()
	w.stop()
	stopped := w.clock.Now()
	e = w.untilPhase(v1alpha1.PhaseSucceeded)
	if took := e.Status.CompletionTime.Sub(stopped); took > 30*time.Second {
		t.Errorf("took %s from the stop to the end", took)
	}
	armed := w.server.states[string(e.UID)].Plan.Armed
	if last := armed[len(armed)-1]; last.ID != "early-stop" || len(last.Targets) != 4 {
		t.Errorf("the last action is %+v, want a stop of the four publishers", last)
	}
	if e.Status.Results == nil || e.Status.Progress != "100%" {
		t.Errorf("status is %+v", e.Status)
	}
}

func TestAStopEndsAQueuedExperimentWhateverItWaitsFor(t *testing.T) {
	w := newWorld(t)
	w.must(w.api.Delete(t.Context(), ethernet()))
	w.settle()
	w.stop()
	w.wantFailed(scope.ReasonStoppedBeforeStart, "stopped before it started, by spec.stop: nothing was measured")
}

func TestAStopOfAnExperimentThatIsQueuedAgainEndsItsRunInTheArchive(t *testing.T) {
	w := newWorld(t)
	e := w.untilPhase(v1alpha1.PhaseProvisioning)
	w.until("on the server", func(*v1alpha1.Experiment) bool { return w.server.states[string(e.UID)] != nil })
	e = w.experiment()
	e.Status.Phase = v1alpha1.PhaseQueued // as after a quota's refusal
	w.must(w.api.Status().Update(t.Context(), e))
	w.stop()
	w.wantFailed(scope.ReasonStoppedBeforeStart, "stopped before it started, by spec.stop: nothing was measured")
	if plan := w.server.states[string(e.UID)].Plan; plan.Phase != v1alpha1.PhaseFailed || plan.Message != w.experiment().Status.Message {
		t.Errorf("its run is %s in the archive: %q", plan.Phase, plan.Message)
	}
}

func TestNothingStartsAfterAStop(t *testing.T) {
	w := newWorld(t, func(e *v1alpha1.Experiment) {
		e.Spec.Timeline = append(e.Spec.Timeline, v1alpha1.TimelineEntry{At: "25s", Start: []string{"tracker"}})
	})
	w.untilAfterT0(5 * time.Second)
	w.stop() // the tracker, which is no publisher, has a later action
	e := w.untilPhase(v1alpha1.PhaseSucceeded)
	armed := w.server.states[string(e.UID)].Plan.Armed
	last := armed[len(armed)-1]
	for _, action := range armed {
		if action.Verb == runapi.VerbStart && action.AtNanoseconds > last.AtNanoseconds {
			t.Errorf("%s comes after the stop at %s", action.ID, time.Duration(last.AtNanoseconds))
		}
	}
	if last.ID != "early-stop" || last.AtNanoseconds > int64(10*time.Second) {
		t.Errorf("the last action is %+v, want the stop before 10 s", last)
	}
}

func TestALiveChangeAppliesFromARecordedTime(t *testing.T) {
	w := newWorld(t, func(e *v1alpha1.Experiment) {
		e.Spec.Timeline = append(e.Spec.Timeline, v1alpha1.TimelineEntry{At: "30s", Set: []v1alpha1.RadioChange{lossOf("wan", "5%")}})
	})
	w.untilPhase(v1alpha1.PhaseProvisioning)
	early := w.change("early", lossOf("lan", "1%"))
	w.step()
	w.wantCondition(early, "Unknown WaitingForStart")
	e := w.untilAfterT0(10 * time.Second)
	w.wantCondition(early, "True Applied")
	burst := w.change("burst", lossOf("wan", "50%"), lossOf("lan", "2%"))
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.wantCondition(burst, "True Applied: applies from ")
	at := burst.Status.AppliesAt.Sub(e.Status.T0.Time)
	if lead := burst.Status.AppliesAt.Sub(w.clock.Now()); lead != testOptions().ChangeLead {
		t.Errorf("it applies %s after it was read, want %s", lead, testOptions().ChangeLead)
	}
	want := []v1alpha1.TimedRadioChange{{AtNanoseconds: int64(at), RadioChange: lossOf("wan", "50%")}, {AtNanoseconds: int64(30 * time.Second), RadioChange: lossOf("wan", "5%")}}
	if diff := cmp.Diff(want, w.radio("wan").Changes); diff != "" {
		t.Errorf("changes of wan (-want +got):\n%s", diff)
	}
	if lan := w.radio("lan").Changes; len(lan) != 2 || lan[1] != (v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: lan[1].RadioChange}) {
		t.Errorf("changes of lan are %+v", lan)
	}
	planned := w.server.states[string(e.UID)].Plan.LiveChanges
	if len(planned) != 2 || planned[1].Name != "burst" || planned[1].AtNanoseconds != int64(at) || len(planned[1].Changes) != 2 {
		t.Errorf("the run record has %+v", planned)
	}
	if owner := live.OwningExperiment(burst); owner == nil || owner.UID != e.UID || owner.Controller != nil {
		t.Errorf("its owner is %+v", owner)
	}
	w.wantNoWrites()
	w.must(w.api.Delete(t.Context(), burst))
	w.settle()
	if diff := cmp.Diff(want, w.radio("wan").Changes); diff != "" {
		t.Errorf("what happened was undone (-want +got):\n%s", diff)
	}
	w.untilPhase(v1alpha1.PhaseSucceeded)
	w.settle()
	late := w.change("late", lossOf("wan", "0%"))
	w.step()
	w.wantCondition(late, "False ExperimentFinished")
	w.wantCondition(early, "True Applied")
	w.wantNoWrites()
}

func TestAChangeThatCannotApplySaysWhy(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(time.Second)
	from := lossOf("wan", "1%")
	from.From = "usa"
	apart := lossOf("lan", "1%")
	apart.To = "prt"
	for name, c := range map[string]struct {
		change v1alpha1.RadioChange
		want   string
	}{
		"network":  {lossOf("uhf", "1%"), `False Invalid: spec.changes[1].network: Invalid value: "uhf": the experiment has no network "uhf": it has lan, wan`},
		"group":    {from, `False Invalid: spec.changes[1].from: Invalid value: "usa": the experiment has no node or group "usa"`},
		"attached": {apart, `False Invalid: spec.changes[1].to: Invalid value: "prt": "prt" is not attached to network "lan"`},
	} {
		object := w.change(name, lossOf("wan", "9%"), c.change)
		w.step()
		w.wantCondition(object, c.want)
	}
	if changes := w.radio("wan").Changes; len(changes) != 0 {
		t.Errorf("half of a wrong change was carried out: %+v", changes)
	}
	w.wantNoWrites()
}

func TestAChangeOfAnEarlierExperimentOfTheSameNameDoesNotApply(t *testing.T) {
	w := newWorld(t)
	e := w.untilAfterT0(time.Second)
	old := &v1alpha1.LiveChange{ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: w.key.Namespace}, Spec: v1alpha1.LiveChangeSpec{Experiment: e.Name, Changes: []v1alpha1.RadioChange{lossOf("wan", "9%")}}}
	former := e.DeepCopy()
	former.UID = types.UID("uid-of-a-former-one")
	old.OwnerReferences = []metav1.OwnerReference{render.SharedOwner(former)}
	w.must(w.api.Create(t.Context(), old))
	w.settle()
	if fate := w.conditionOf(old); fate != noCondition || len(w.radio("wan").Changes) != 0 {
		t.Errorf("it was carried out: %s, %+v", fate, w.radio("wan").Changes)
	}
}

func TestAChangeOfNoExperimentWaitsForOne(t *testing.T) {
	w := newWorld(t)
	e := w.experiment()
	w.must(w.api.Delete(t.Context(), e))
	c := w.change("lonely", lossOf("wan", "9%"))
	film := w.capture("film", "wan")
	w.step()
	w.wantCondition(c, "False ExperimentNotFound: there is no experiment quickstart in namespace team-nor")
	w.wantCondition(film, "False ExperimentNotFound")
	e.ResourceVersion, e.UID = "", ""
	w.must(w.api.Create(t.Context(), e))
	w.untilAfterT0(time.Second)
	w.step()
	w.wantCondition(c, "True Applied")
	w.wantCondition(film, "True Capturing")
}

func TestATimeThatPassedBeforeTheRadiosGotTheChangeIsReplaced(t *testing.T) {
	w := newWorld(t)
	e := w.untilAfterT0(5 * time.Second)
	c := w.change("burst", lossOf("wan", "9%"))
	before := len(w.writes)
	w.killAfter = before + 2 // the owner and the moment are written
	w.onDeath = func() { w.clock.Step(10 * time.Second); w.restart() }
	w.step()
	if got := w.writes[len(w.writes)-1]; got != "patch status of *v1alpha1.LiveChange burst" {
		t.Fatalf("the last write was %q", got)
	}
	w.step()
	w.wantCondition(c, "True Applied")
	at := c.Status.AppliesAt.Sub(e.Status.T0.Time)
	if at < 15*time.Second || w.radio("wan").Changes[0].AtNanoseconds != int64(at) {
		t.Errorf("on record is %s, the radios have %+v: want both after the operator came back", at, w.radio("wan").Changes)
	}
}

func TestARadioNetworkTakesNoMoreChangesThanFit(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(time.Second)
	var list v1alpha1.RadioNetworkList
	w.must(w.api.List(t.Context(), &list))
	for i := range list.Items {
		for range 4096 {
			list.Items[i].Spec.Changes = append(list.Items[i].Spec.Changes, v1alpha1.TimedRadioChange{RadioChange: lossOf(list.Items[i].Spec.Network, "1%")})
		}
		w.must(w.api.Update(t.Context(), &list.Items[i]))
	}
	c := w.change("more", lossOf("wan", "9%"))
	w.step()
	w.wantCondition(c, "False TooLarge")
	w.wantNoWrites()
}

func captureNames(spec v1alpha1.RadioNetworkSpec) (names []string) {
	for _, c := range spec.Captures {
		names = append(names, c.Name)
	}
	return names
}

func TestACaptureRunsUntilItIsDeletedOrOver(t *testing.T) {
	w := newWorld(t, liveCluster, func(e *v1alpha1.Experiment) {
		e.Spec.Collect = &v1alpha1.Collect{Captures: []string{"lan/field", "lan/nor"}, CaptureFilter: "udp"}
	})
	e := w.untilPhase(v1alpha1.PhaseRunning)
	if diff := cmp.Diff([]v1alpha1.RadioCapture{{Name: "run", Filter: "udp", LimitBytes: 256 << 20}}, w.radio("lan").Captures); diff != "" {
		t.Errorf("captures of lan from the start (-want +got):\n%s", diff)
	}
	some := w.capture("some", "lan", func(s *v1alpha1.CaptureSpec) {
		s.Nodes, s.SnapLengthBytes, s.Limit = []string{"field"}, ptr.To(int32(64)), ptr.To(quantity("1Mi"))
	})
	brief := w.capture("brief", "lan", func(s *v1alpha1.CaptureSpec) { s.Duration = "20s" })
	w.until("capturing", func(*v1alpha1.Experiment) bool { return strings.HasPrefix(w.conditionOf(brief), "True") })
	w.wantCondition(some, "True Capturing: frames of network lan are being captured")
	want := v1alpha1.RadioCapture{Name: "some", Nodes: []string{"veh-1", "veh-2"}, SnapLengthBytes: 64, LimitBytes: 1 << 20}
	if got := w.radio("lan").Captures; len(got) != 3 || !slices.ContainsFunc(got, func(c v1alpha1.RadioCapture) bool { return cmp.Equal(c, want) }) {
		t.Errorf("captures of lan are %+v, want %+v among them", got, want)
	}
	w.settle()
	w.wantNoWrites()
	w.clock.Step(25 * time.Second)
	w.step()
	w.wantCondition(brief, "False DurationOver: captured for 20s")
	if brief.Status.EndedAt == nil || brief.Status.EndedAt.Before(brief.Status.StartedAt) {
		t.Errorf("its status is %+v", brief.Status)
	}
	w.must(w.api.Delete(t.Context(), some))
	w.step()
	if diff := cmp.Diff([]string{"run"}, captureNames(w.radio("lan"))); diff != "" {
		t.Errorf("captures of lan (-want +got):\n%s", diff)
	}
	again := w.capture("some", "lan")
	w.step()
	w.wantCondition(again, "False NameUsed: the archive of this run already has a capture some of network lan")
	last := w.capture("last", "wan")
	w.step()
	w.stop()
	w.untilPhase(v1alpha1.PhaseCollecting)
	if got := append(captureNames(w.radio("lan")), captureNames(w.radio("wan"))...); len(got) > 0 {
		t.Errorf("captures %v go on after the run", got)
	}
	w.untilPhase(v1alpha1.PhaseSucceeded)
	w.wantCondition(last, "False ExperimentFinished")
	if last.Status.EndedAt == nil {
		t.Error("it has no end")
	}
	ended := map[string]bool{}
	for _, c := range w.server.states[string(e.UID)].Plan.Captures {
		ended[fmt.Sprint(c.Name, c.Network, c.Nodes)] = c.Ended
	}
	wantEnded := map[string]bool{"runlan[nor veh-1 veh-2]": false, "somelan[veh-1 veh-2]": true, "brieflan[nor veh-1 veh-2]": true, "lastwan[nor prt]": false}
	if diff := cmp.Diff(wantEnded, ended); diff != "" {
		t.Errorf("the run record's captures and whether they ended before it (-want +got):\n%s", diff)
	}
}

func TestACaptureThatCannotRunSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.untilAfterT0(time.Second)
	for name, c := range map[string]struct {
		edit func(*v1alpha1.CaptureSpec)
		want string
	}{
		"network": {func(s *v1alpha1.CaptureSpec) { s.Network = "uhf" }, `False Invalid: spec.network: Invalid value: "uhf"`},
		"node":    {func(s *v1alpha1.CaptureSpec) { s.Nodes = []string{"nor", "prt"} }, `False Invalid: spec.nodes[1]: Invalid value: "prt": "prt" is not attached to network "lan"`},
		"filter":  {func(s *v1alpha1.CaptureSpec) { s.Filter = "udp prot 698" }, `False Invalid: spec.filter: Invalid value: "udp prot 698"`},
		"limit":   {func(s *v1alpha1.CaptureSpec) { s.Limit = ptr.To(quantity("0")) }, `False Invalid: spec.limit: Invalid value: "0": must be above zero`},
	} {
		object := w.capture(name, "lan", c.edit)
		w.step()
		w.wantCondition(object, c.want)
	}
	if got := captureNames(w.radio("lan")); len(got) > 0 {
		t.Errorf("captures %v run", got)
	}
	w.wantNoWrites()
}

func TestABaseAndADownlinkBelongTogether(t *testing.T) {
	slow := v1alpha1.DataRate("1Mbit")
	cases := map[string]struct {
		base     []string
		downlink *v1alpha1.LinkModel
		want     string
	}{
		"a downlink without a base": {nil, &v1alpha1.LinkModel{Rate: &slow}, "spec.networks[1].base: Required value: waveform ethernet has a downlink"},
		"a base without a downlink": {[]string{"nor"}, nil, "spec.networks[1].base: Forbidden: waveform ethernet has no downlink"},
		"both":                      {[]string{"nor"}, &v1alpha1.LinkModel{Rate: &slow}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			waveform, e := ethernet(), readExperiment(t)
			waveform.Spec.Downlink, e.Spec.Networks[1].Base = c.downlink, c.base
			w := newWorldOf(t, e, waveform, host("n1"))
			if c.want == "" {
				w.untilPhase(v1alpha1.PhaseRunning)
				if diff := cmp.Diff([]v1alpha1.GroupLink{{From: "nor", To: "*", LinkModel: *c.downlink}}, w.radio("lan").Links); diff != "" {
					t.Errorf("links (-want +got):\n%s", diff)
				}
				return
			}
			w.settle()
			accepted := meta.FindStatusCondition(w.experiment().Status.Conditions, v1alpha1.ConditionAccepted)
			if accepted.Reason != checks.ReasonBaseMismatch || !strings.Contains(accepted.Message, c.want) {
				t.Errorf("Accepted is %+v, want %q", accepted, c.want)
			}
		})
	}
}
