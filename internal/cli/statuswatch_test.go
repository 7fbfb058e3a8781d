package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// liveAfter is what the server tells some seconds after T0: delays grow, a queue fills, and at last a frame is late.
func liveAfter(second int) *runapi.State {
	n := int64(second)
	f := &runapi.LiveFigures{Sent: 8 * n, Offered: 57 * n, Expected: 56 * n, Received: 56*n - n*n/4, QueueFrames: n / 2}
	if n > 0 {
		f.DelaySeconds = &runapi.LiveDelays{Min: 0.01, Median: 0.1 + 0.01*float64(n), P95: 0.2 + 0.04*float64(n), Max: 0.3 + 0.05*float64(n)}
	}
	if n > 2 {
		f.DeepestQueue, f.DeepestFrames = "prt", n/2
	}
	if n > 25 {
		f.LateReleases, f.WorstLatenessSeconds = 3, 0.013
	}
	return &runapi.State{Counters: runapi.Counters{Sent: 8 * n, Received: f.Received}, Live: f}
}

// watching is an experiment as it is seen some seconds after T0.
func watching(second int) experimentView {
	v := experimentView{experiment: running(), history: &history{}, state: liveAfter(second), events: []event{
		{noon.Add(-3 * time.Second), "Step", "step replay has begun"}, {noon.Add(5 * time.Second), "Step", "step start has begun"}}}
	for i := range second + 1 {
		v.history.add(liveAfter(i), noon.Add(time.Duration(i)*time.Second))
	}
	return v
}

func frameText(lines []string, width int) string {
	for i := range lines {
		lines[i] = strings.TrimRight(truncateLine(lines[i], width-1), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestFramesOfAnExperiment(t *testing.T) {
	provisioning := running()
	provisioning.Status.T0, provisioning.Status.Phase, provisioning.Status.Step, provisioning.Status.Progress = nil, v1alpha1.PhaseProvisioning, "", "0%"
	provisioning.Status.Message = "node prt waits for its image"
	counted := watching(30)
	counted.state.Live = nil
	for name, c := range map[string]struct {
		view  experimentView
		at    time.Duration
		width int
	}{
		"watch-running.txt":      {watching(31), 31 * time.Second, 120},
		"watch-80-columns.txt":   {watching(31), 31 * time.Second, 80},
		"watch-40-columns.txt":   {watching(31), 31 * time.Second, 40},
		"watch-first.txt":        {watching(0), 0, 120},
		"watch-draining.txt":     {watching(31), 80 * time.Second, 120},
		"watch-counted.txt":      {counted, 31 * time.Second, 120}, // by a server that has no live figures
		"watch-provisioning.txt": {experimentView{experiment: provisioning, history: &history{}}, 0, 120},
		"watch-finished.txt":     {experimentView{experiment: finished(), history: &history{}}, 2 * time.Minute, 120},
	} {
		t.Run(name, func(t *testing.T) { golden.Check(t, name, frameText(c.view.frame(noon.Add(c.at), c.width), c.width)) })
	}
}

func TestFramesOfACampaignAndOfANamespace(t *testing.T) {
	views := []*experimentView{}
	for i := range 2 {
		v := watching(20 + 5*i)
		v.experiment.Name = fmt.Sprintf("nightly-r3-vernemq-baseline-%d", i+1)
		views = append(views, &v)
	}
	now := noon.Add(31 * time.Second)
	golden.Check(t, "watch-campaign.txt", frameText((&watchedCampaign{campaign: nightly(), running: views}).frame(now, 140), 140))
	all := &watchedNamespace{c: &cluster{}, campaigns: []v1alpha1.Campaign{*nightly()}, running: views, phases: map[string]int{"Running": 2, "Succeeded": 6}}
	golden.Check(t, "watch-all.txt", frameText(all.frame(now, 140), 140))
	golden.Check(t, "watch-none.txt", frameText((&watchedNamespace{c: &cluster{namespace: "team-nor"}}).frame(now, 80), 80))
}

// clocked has the server and the cluster tell what is at each look, a second after the one before.
type clocked struct {
	t       *testing.T
	c       *cluster
	second  int
	ticks   chan time.Time
	changes map[int]func(*v1alpha1.Experiment)
}

func newClocked(t *testing.T, changes map[int]func(*v1alpha1.Experiment), objects ...client.Object) *clocked {
	k := &clocked{t: t, ticks: make(chan time.Time), changes: changes}
	k.c = testCluster(t, archive{}, objects...)
	k.c.archive = runclient.New("http://archive", &http.Client{Transport: k}, nil)
	return k
}

// RoundTrip implements http.RoundTripper. The archive answers without a network, so that no answer is too late.
func (k *clocked) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("live") != "true" {
		k.t.Errorf("asked for %s; want live figures", r.URL)
	}
	answer := httptest.NewRecorder()
	err := json.NewEncoder(answer).Encode(liveAfter(k.second))
	return answer.Result(), err
}

// now is a second later at each look.
func (k *clocked) now() time.Time { return noon.Add(time.Duration(k.second) * time.Second) }

// follow for some seconds.
func (k *clocked) follow(w watchTarget, seconds, width int) (string, error) {
	ctx, cancel := context.WithCancel(k.t.Context())
	defer cancel()
	var out bytes.Buffer
	screen := newScreen(&out)
	screen.size = func() (int, int) { return width, 24 }
	go func() {
		for range seconds {
			select {
			case k.ticks <- noon:
			case <-ctx.Done():
				return
			}
		}
		cancel()
	}()
	step := &stepping{watchTarget: w, clock: k}
	err := follow(ctx, step, &out, screen, ticks{k.now, k.ticks})
	return out.String(), err
}

// stepping has the time go on by a second after each look.
type stepping struct {
	watchTarget
	clock *clocked
	looks int
}

func (s *stepping) update(ctx context.Context, _ time.Time) error {
	if s.looks++; s.looks > 1 {
		s.clock.second++
	}
	if change := s.clock.changes[s.clock.second]; change != nil {
		e := running()
		if err := s.clock.c.kube.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			s.clock.t.Error(err)
		}
		change(e)
		if err := s.clock.c.kube.Status().Update(ctx, e); err != nil {
			s.clock.t.Error(err)
		}
	}
	return s.watchTarget.update(ctx, s.clock.now())
}

func ending(phase v1alpha1.ExperimentPhase) func(*v1alpha1.Experiment) {
	return func(e *v1alpha1.Experiment) {
		e.Status.Phase, e.Status.Results, e.Status.Message = phase, finished().Status.Results, "node nor: killed"
	}
}

func TestOnATerminalEachFrameIsDrawnOverTheLast(t *testing.T) {
	k := newClocked(t, map[int]func(*v1alpha1.Experiment){4: ending(v1alpha1.PhaseSucceeded)}, running())
	out, err := k.follow(k.c.watchedExperiment(running()), 10, 100)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "watch-terminal.txt", strings.ReplaceAll(out, "\x1b", "ESC"))
}

func TestElsewhereThereIsALineForEachStageAndNowAndThen(t *testing.T) {
	k := newClocked(t, map[int]func(*v1alpha1.Experiment){20: func(e *v1alpha1.Experiment) { e.Status.Step = "drain" }, 23: ending(v1alpha1.PhaseFailed)}, running())
	out, err := k.follow(k.c.watchedExperiment(running()), 30, 0)
	if err != exit(exitFailure) {
		t.Errorf("%v; want that the experiment's failure is the program's", err)
	}
	golden.Check(t, "watch-plain.txt", out)
}

func TestAnInterruptEndsTheWatchingOnly(t *testing.T) {
	k := newClocked(t, nil, running())
	out, err := k.follow(k.c.watchedExperiment(running()), 3, 100)
	if err != nil || !strings.HasSuffix(out, "\x1b[J") {
		t.Errorf("%v, the output ends with %q; want the last frame left as it is, the cursor below it", err, out[max(0, len(out)-20):])
	}
}

func TestWatchingEndsWithADeletion(t *testing.T) {
	k := newClocked(t, nil)
	if _, err := k.follow(k.c.watchedExperiment(running()), 3, 0); !errors.Is(err, errGone) || !strings.Contains(err.Error(), "vignette results -n team-nor quickstart --uid 5f0c") {
		t.Errorf("%v; want where its results are", err)
	}
	if _, err := k.follow(k.c.watchedCampaign(nightly()), 3, 0); !errors.Is(err, errGone) {
		t.Errorf("%v; want that the campaign is gone", err)
	}
}

// refusing answers reads with an error from some look on.
func refusing(c *cluster, from int, refusal error) {
	looks := 0
	answer := func() error {
		if looks++; looks >= from {
			return refusal
		}
		return nil
	}
	c.kube = interceptor.NewClient(c.kube.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, k client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			return cmp.Or(answer(), k.Get(ctx, key, o, options...))
		},
		List: func(ctx context.Context, k client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			return cmp.Or(answer(), k.List(ctx, l, options...))
		},
	})
}

func TestWatchingEndsWhereTheUserHasNoRight(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "experiments"}, "x", errors.New("no"))
	for name, c := range map[string]struct {
		refusal error
		want    string
	}{
		"without the right": {forbidden, "ask the cluster's administrator for the right"},
		"without a login":   {apierrors.NewUnauthorized("no"), "log in again"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newClocked(t, nil)
			refusing(k.c, 1, c.refusal)
			if _, err := k.follow(&watchedNamespace{c: k.c}, 2, 0); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("at the first look: %v; want %q", err, c.want)
			}
			k = newClocked(t, nil, running())
			refusing(k.c, 4, c.refusal)
			if _, err := k.follow(k.c.watchedExperiment(running()), 60, 0); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("later: %v; want %q", err, c.want)
			}
			w := testCluster(t, archive{}, running())
			refusing(w, 1, c.refusal)
			if err := w.watch(t.Context(), running(), newView(io.Discard)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("a run: %v; want %q", err, c.want)
			}
		})
	}
}

func TestWatchingGoesOnAfterRefusalsOfAnAPIServerThatStarts(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "experiments"}, "x", errors.New("no"))
	p := patience{}
	for i, err := range []error{nil, forbidden, forbidden, errors.New("connection refused"), forbidden, forbidden, nil, forbidden, forbidden} {
		if p.ends(err) {
			t.Fatalf("the watch ends with answer %d", i+1)
		}
	}
	if !p.ends(forbidden) {
		t.Error("the watch goes on after three refusals in a row")
	}
}

func TestWatchingEndsWithAnExperimentThatIsNotAccepted(t *testing.T) {
	const want = "engine is not accepted: EMANE is not installed\nIt waits until that is mended. " +
		"Follow it then: vignette status -n team-nor engine --watch; delete it: kubectl -n team-nor delete experiment engine\n"
	e := queued(v1alpha1.ConditionAccepted, "Engine")
	e.Status.T0, e.Status.Conditions[0].Message = nil, "EMANE is not installed"
	k := newClocked(t, nil, e)
	if out, err := k.follow(k.c.watchedExperiment(e), 20, 0); err != exit(exitFailure) || !strings.HasSuffix(out, want) {
		t.Errorf("%v, %s\nwant %s", err, out, want)
	}
	if out, err := watched(t.Context(), t, e); err != exit(exitFailure) || !strings.HasSuffix(out, want) {
		t.Errorf("a run: %v, %s\nwant %s", err, out, want)
	}
	var r refusal
	late := []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}}
	if r.stands(e.Status.Conditions) || r.stands(late) || r.stands(e.Status.Conditions) {
		t.Error("the watch ends although the operator saw what was missing")
	}
}

func TestACampaignIsWatchedToItsEnd(t *testing.T) {
	failed := finishedE4()
	failed.Name, failed.Status.Phase = "failed", v1alpha1.CampaignFailed
	of := running()
	of.Name, of.Labels = "nightly-r3-x-1", map[string]string{v1alpha1.LabelCampaign: "nightly"}
	refused := finishedE4()
	refused.Name, refused.Status.Message = "refused", "point 2s: duration: a run needs one"
	refused.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "Invalid", Message: refused.Status.Message}}
	k := newClocked(t, nil, finishedE4(), failed, refused, nightly(), of, running())
	for _, c := range []struct {
		camp *v1alpha1.Campaign
		want string
		err  error
	}{
		{finishedE4(), "e4 Succeeded: 2 of 2 done: 2 succeeded, 0 failed, 0 skipped; 0 running, 0 pending\nWhat was measured: vignette campaign results -n team-nor e4\n", nil},
		{failed, "failed Failed: 2 of 2 done", exit(exitFailure)},
		{nightly(), "nightly  Running    round 3  8 of 12 runs done, 2 running, 1 failed", nil},
	} {
		if out, err := k.follow(k.c.watchedCampaign(c.camp), 2, 0); err != c.err || !strings.Contains(out, c.want) {
			t.Errorf("%v, %s\nwant %v, %s", err, out, c.err, c.want)
		}
	}
	want := "refused is not accepted: point 2s: duration: a run needs one\nIt waits until that is mended. " +
		"Follow it then: vignette campaign status -n team-nor refused --watch; delete it: kubectl -n team-nor delete campaign refused\n"
	if out, err := k.follow(k.c.watchedCampaign(refused), 20, 0); err != exit(exitFailure) || !strings.HasSuffix(out, want) || strings.Contains(out, "What was measured") {
		t.Errorf("%v, %s\nwant that a refusal ends the watching, with its reason", err, out)
	}
	refused.Status.Counts.Running, refused.ResourceVersion = 1, ""
	busy := newClocked(t, nil, refused)
	if out, err := busy.follow(busy.c.watchedCampaign(refused), 20, 0); err != nil || !strings.Contains(out, refused.Status.Message) {
		t.Errorf("%v, %s\nwant that the runs under way are watched", err, out)
	}
	w := k.c.watchedCampaign(nightly())
	if err := w.update(t.Context(), noon); err != nil || len(w.running) != 1 || w.running[0].experiment.Name != "nightly-r3-x-1" {
		t.Errorf("%v, %d under way; want the campaign's own run only", err, len(w.running))
	}
}

func TestSparklines(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		values    []float64
		low, high float64
		width     int
		want      string
	}{
		"from low to high":     {[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 0, 7, 8, "▁▂▃▄▅▆▇█"},
		"the newest":           {[]float64{7, 7, 0, 7}, 0, 7, 2, "▁█"},
		"fewer than there are": {[]float64{7}, 0, 7, 3, "█  "},
		"unknown":              {[]float64{nan, 7, nan}, 0, 7, 3, " █ "},
		"all alike":            {[]float64{0, 0}, 0, 0, 2, "▁▁"},
		"beyond the bounds":    {[]float64{-1, 9}, 0, 7, 2, "▁█"},
		"no room":              {[]float64{1}, 0, 7, 0, ""},
		"nothing":              {nil, 0, 7, 2, "  "},
	} {
		if got := sparkline(c.values, c.low, c.high, c.width); got != c.want {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

func TestAFrameNeverOutgrowsTheTerminal(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.size = func() (int, int) { return 10, 4 }
	s.draw([]string{"one", "a line that is too long", "three", "four", "five"})
	s.draw([]string{"one"})
	if want := "\rone\x1b[K\na line t…\x1b[K\n…\x1b[K\n\x1b[J" + "\x1b[3A\rone\x1b[K\n\x1b[J"; out.String() != want {
		t.Errorf("%q; want %q", out.String(), want)
	}
}

func TestRatesAreOverTheLastSecondsAndNeverBelowZero(t *testing.T) {
	h := &history{}
	for i, received := range []int64{0, 100, 100, 300, 0} { // the server was restarted, and reads its logs again
		h.add(&runapi.State{Counters: runapi.Counters{Received: received}}, noon.Add(time.Duration(i)*2*time.Second))
	}
	h.add(nil, noon)
	if got := h.recentMean(func(s sample) float64 { return s.receivedPerSecond }); got != (50.0+0+100+0)/4 {
		t.Errorf("%v messages a second; want 37.5", got)
	}
	if got := (&history{}).recentMean(func(s sample) float64 { return s.receivedPerSecond }); got == got {
		t.Errorf("of nothing %v; want that it is not known", got)
	}
}
