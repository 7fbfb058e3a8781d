package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// watchTarget is what `status --watch` shows.
type watchTarget interface {
	// update reads the present state. An error that is errGone ends the watching.
	update(ctx context.Context, now time.Time) error
	frame(now time.Time, width int) []string
	plainLine(now time.Time) (line, stage string)
	// end reports whether nothing more will happen, with a final text and the program's error.
	end() (done bool, words string, err error)
}

// errGone: what was watched no longer exists.
var errGone = errors.New("no longer exists")

// refusedInARow ends a watch. An API server that starts refuses some requests that it allows a moment later.
const refusedInARow = 3

// patience of a watch with a cluster that does not answer, or refuses.
type patience struct {
	seen    bool
	refused int
}

// ends reports whether retrying is of no use: at the first look, or after some refusals, the user has no right.
func (p *patience) ends(err error) bool {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		p.seen, p.refused = p.seen || err == nil, 0
		return false
	}
	p.refused++
	return !p.seen || p.refused >= refusedInARow
}

// refusal counts the looks in a row at which an object was not accepted.
type refusal int

// stands reports whether an object is not accepted, and stays so: the operator may have yet to see what was created a moment ago.
func (r *refusal) stands(conditions []metav1.Condition) bool {
	if !meta.IsStatusConditionFalse(conditions, v1alpha1.ConditionAccepted) {
		*r = 0
		return false
	}
	*r++
	return *r >= refusedInARow
}

// refusedText says why an object is not accepted, and how to go on. watch is the command that follows it.
func refusedText(kind, watch string, object client.Object, conditions []metav1.Condition) string {
	return fmt.Sprintf("%[1]s is not accepted: %[2]s\nIt waits until that is mended. Follow it then: %[3]s -n %[4]s %[1]s --watch; delete it: kubectl -n %[4]s delete %[5]s %[1]s",
		object.GetName(), meta.FindStatusCondition(conditions, v1alpha1.ConditionAccepted).Message, watch, object.GetNamespace(), kind)
}

// ticks of a watch: the time, and when to update.
type ticks struct {
	now  func() time.Time
	tick <-chan time.Time
}

// follow what is watched, until it ends or the user interrupts, which is no failure.
func follow(ctx context.Context, w watchTarget, out io.Writer, s *screen, times ticks) error {
	lines := newView(out) // without a terminal, and for notes
	width, _ := s.size()
	draw := func() {
		now := times.now()
		if width, _ = s.size(); width > 0 {
			s.draw(w.frame(now, width))
			return
		}
		line, stage := w.plainLine(now)
		lines.line(line, stage, now)
	}
	var patience patience
	for {
		err := w.update(ctx, times.now())
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errGone):
			return err
		case patience.ends(err):
			return explain(err)
		case err != nil && width == 0:
			lines.note(fmt.Sprintf("cannot reach the cluster, retrying: %v", err))
		case err != nil:
			s.draw([]string{fmt.Sprintf("cannot reach the cluster, retrying: %v", err)})
		default:
			draw()
			if done, words, err := w.end(); done {
				fmt.Fprint(out, words)
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-times.tick:
		}
	}
}

// manyInterval is how often many experiments are read: each costs the API server and the archive.
const manyInterval = 5 * time.Second

func (c *cluster) watchStatus(ctx context.Context, w watchTarget, every time.Duration, out io.Writer) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	return follow(ctx, w, out, newScreen(out), ticks{time.Now, ticker.C})
}

// eventInterval is how often events are read.
const eventInterval = 5 * time.Second

// watchedExperiment is one experiment.
type watchedExperiment struct {
	c    *cluster
	key  client.ObjectKey
	uid  types.UID
	view experimentView
	refusal
	// eventsReadAt is when events were read.
	eventsReadAt time.Time
}

func (c *cluster) watchedExperiment(e *v1alpha1.Experiment) *watchedExperiment {
	return &watchedExperiment{c: c, key: client.ObjectKeyFromObject(e), uid: e.UID, view: experimentView{experiment: e, history: &history{}}}
}

func (w *watchedExperiment) update(ctx context.Context, now time.Time) error {
	e := &v1alpha1.Experiment{}
	err := w.c.kube.Get(ctx, w.key, e)
	if apierrors.IsNotFound(err) || err == nil && e.UID != w.uid {
		return fmt.Errorf("experiment %s %w: it was deleted; what was measured: vignette results -n %s %s --uid %s", w.key.Name, errGone, w.key.Namespace, w.key.Name, w.uid)
	}
	if err != nil {
		return err
	}
	w.view.experiment = e
	if w.view.state = w.c.liveState(ctx, e); outcomeOf(e) == nil {
		w.view.history.add(w.view.state, now)
	}
	if now.Sub(w.eventsReadAt) >= eventInterval {
		w.view.events, w.eventsReadAt = w.c.events(ctx, e), now
	}
	return nil
}

func (w *watchedExperiment) frame(now time.Time, width int) []string { return w.view.frame(now, width) }

func (w *watchedExperiment) plainLine(now time.Time) (line, stage string) {
	return w.view.plainLine(now)
}

func (w *watchedExperiment) end() (done bool, words string, err error) {
	e := w.view.experiment
	switch e.Status.Phase {
	case v1alpha1.PhaseSucceeded:
		return true, successText(e) + "\n", nil
	case v1alpha1.PhaseFailed:
		return true, failureText(e) + "\n", exit(exitFailure)
	}
	if w.stands(e.Status.Conditions) {
		return true, refusedText("experiment", "vignette status", e, e.Status.Conditions) + "\n", exit(exitFailure)
	}
	return false, "", nil
}

// watchedCampaign is one campaign, with its runs that are under way.
type watchedCampaign struct {
	c        *cluster
	key      client.ObjectKey
	campaign *v1alpha1.Campaign
	running  []*experimentView
	refusal
}

func (c *cluster) watchedCampaign(camp *v1alpha1.Campaign) *watchedCampaign {
	return &watchedCampaign{c: c, key: client.ObjectKeyFromObject(camp), campaign: camp}
}

func (w *watchedCampaign) update(ctx context.Context, now time.Time) error {
	camp := &v1alpha1.Campaign{}
	err := w.c.kube.Get(ctx, w.key, camp)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("campaign %s %w: it was deleted; what was measured: vignette campaign results -n %s %[1]s", w.key.Name, errGone, w.key.Namespace)
	}
	if err != nil {
		return err
	}
	var runs v1alpha1.ExperimentList
	if err := w.c.kube.List(ctx, &runs, client.InNamespace(camp.Namespace), client.MatchingLabels{v1alpha1.LabelCampaign: camp.Name}); err != nil {
		return err
	}
	w.campaign, w.running = camp, w.c.experimentsUnderWay(ctx, w.running, runs.Items, now)
	return nil
}

// maxRunningShown experiments are read at each update.
const maxRunningShown = 20

// experimentsUnderWay are those of all that have not ended; it keeps what was known of them before.
func (c *cluster) experimentsUnderWay(ctx context.Context, before []*experimentView, all []v1alpha1.Experiment, now time.Time) (views []*experimentView) {
	for i := range all {
		e := &all[i]
		if outcomeOf(e) != nil {
			continue
		}
		view := &experimentView{history: &history{}}
		if at := slices.IndexFunc(before, func(v *experimentView) bool { return v.experiment.UID == e.UID }); at >= 0 {
			view = before[at]
		}
		view.experiment = e
		if len(views) < maxRunningShown {
			view.state = c.liveState(ctx, e)
			view.history.add(view.state, now)
		}
		views = append(views, view)
	}
	return views
}

func (w *watchedCampaign) frame(now time.Time, width int) []string {
	camp := w.campaign
	counts := camp.Status.Counts
	done := counts.Succeeded + counts.Failed + counts.Skipped
	bar := progressBar(100*int(done)/max(1, int(counts.Total)), 20)
	line := fmt.Sprintf("%s/%s  %s  round %d  %s  %d of %d runs", camp.Namespace, camp.Name, campaignPhase(camp), camp.Status.Round, bar, done, counts.Total)
	if rest := timeLeft(camp, now); rest != "" {
		line += "  about " + rest + " left"
	}
	lines := []string{line}
	if camp.Status.Message != "" {
		lines = append(lines, oneLine(camp.Status.Message))
	}
	if next := nextRound(camp, now); next != "" {
		lines = append(lines, "next round "+next)
	}
	if len(camp.Status.Runs) > 0 {
		lines = append(append(lines, ""), pointLines(camp)...)
	}
	if len(w.running) > 0 {
		lines = append(append(lines, ""), runningLines(w.running, now, width, false)...)
	}
	return lines
}

// runMarks are the marks of runs by phase.
var runMarks = map[v1alpha1.RunPhase]string{v1alpha1.RunSucceeded: "✓", v1alpha1.RunFailed: "✗", v1alpha1.RunLost: "✗", v1alpha1.RunSkipped: "-", v1alpha1.RunPending: "·"}

// pointLines have a mark for each run of a point, and what was measured so far.
func pointLines(camp *v1alpha1.Campaign) []string {
	rows := table{left("POINT", "RUNS", "DELIVERED %", "MEDIAN DELAY")}
	r := currentRound(camp)
	for _, p := range r.points() {
		marks := ""
		for _, run := range p.runs {
			marks += cmp.Or(runMarks[v1alpha1.RunPhase(run.phase)], "▶")
		}
		rows = append(rows, append(left(p.first.point, marks), cell{p.delivered.text(percentText), true}, cell{p.medianDelay.text(seconds), true}))
	}
	return append(splitLines(rows), "✓ done  ✗ failed  ▶ under way  · to come  - not needed")
}

func splitLines(rows table) []string {
	return strings.Split(strings.TrimSuffix(rows.String(), "\n"), "\n")
}

// runningLines are a row for each experiment.
func runningLines(views []*experimentView, now time.Time, width int, namespaces bool) []string {
	rows := table{left("EXPERIMENT", "PHASE", "", "LEFT", "DELIVERED", "MEDIAN", "P95", "RECEIVED/S", "QUEUE")}
	for _, v := range views {
		e := v.experiment
		name, rest := e.Name, ""
		if namespaces {
			name = e.Namespace + "/" + name
		}
		if e.Status.T0 != nil && isTimelineUnderWay(e) && !hasNoDuration(e) {
			rest = clock(max(0, e.Spec.Duration.Std()-now.Sub(e.Status.T0.Time)))
		}
		cells := []cell{{name, false}, {stage(e), false}, {progressBar(percent(e.Status.Progress), 10), false}, {rest, true}}
		rows = append(rows, append(cells, v.cells(width)...))
	}
	return splitLines(rows)
}

// cells of the figures so far.
func (v *experimentView) cells(width int) []cell {
	delivered, median, p95, queue := "-", "-", "-", "-"
	if f := liveFiguresOf(v.state); f != nil {
		if percent := deliveredPercent(f.Received, f.Offered); percent != nil {
			delivered = percentText(*percent) + " %"
		}
		if f.DelaySeconds != nil {
			median, p95 = seconds(f.DelaySeconds.Median), seconds(f.DelaySeconds.P95)
		}
		queue = count(f.QueueFrames)
	}
	received := func(s sample) float64 { return s.receivedPerSecond }
	rate := valueOrDash(v.history.recentMean(received), significant)
	if width >= 120 {
		series := v.history.series(received)
		_, high := valueRange(series)
		rate = sparkline(series, 0, high, 16) + "  " + rate
	}
	return []cell{{delivered, true}, {median, true}, {p95, true}, {rate, true}, {queue, true}}
}

// campaignLine describes a campaign in one line.
func campaignLine(camp *v1alpha1.Campaign, now time.Time) string {
	counts := camp.Status.Counts
	line := fmt.Sprintf("%s  %-9s  round %d  %d of %d runs done, %d running, %d failed", camp.Name, campaignPhase(camp), camp.Status.Round,
		counts.Succeeded+counts.Failed+counts.Skipped, counts.Total, counts.Running, counts.Failed)
	if rest := timeLeft(camp, now); rest != "" {
		line += "  about " + rest + " left"
	}
	if camp.Status.Message != "" {
		line += "  " + oneLine(camp.Status.Message)
	}
	return line
}

func (w *watchedCampaign) plainLine(now time.Time) (line, stage string) {
	return campaignLine(w.campaign, now), campaignPhase(w.campaign) + w.campaign.Status.Counts.Summary
}

func (w *watchedCampaign) end() (done bool, words string, err error) {
	camp := w.campaign
	if camp.Status.ObservedGeneration < camp.Generation {
		return false, "", nil // it was changed, and continues
	}
	if refused := w.stands(camp.Status.Conditions); refused && camp.Status.Counts.Running == 0 {
		return true, refusedText("campaign", "vignette campaign status", camp, camp.Status.Conditions) + "\n", exit(exitFailure)
	}
	if w.refusal > 0 {
		return false, "", nil // its runs end, whatever else is refused
	}
	where := fmt.Sprintf("-n %s %s", camp.Namespace, camp.Name)
	switch camp.Status.Phase {
	case v1alpha1.CampaignSucceeded, v1alpha1.CampaignFailed:
		words = fmt.Sprintf("%s %s: %s\nWhat was measured: vignette campaign results %s\n", camp.Name, camp.Status.Phase, runCounts(camp.Status.Counts), where)
		if camp.Status.Phase == v1alpha1.CampaignFailed {
			err = exit(exitFailure)
		}
		return true, words, err
	}
	return false, "", nil
}

// watchedNamespace is everything in a namespace, or in all.
type watchedNamespace struct {
	c         *cluster
	campaigns []v1alpha1.Campaign
	running   []*experimentView
	// phases counts all experiments.
	phases map[string]int
}

func (w *watchedNamespace) update(ctx context.Context, now time.Time) error {
	var campaigns v1alpha1.CampaignList
	if err := w.c.kube.List(ctx, &campaigns, client.InNamespace(w.c.namespace)); err != nil {
		return err
	}
	var all v1alpha1.ExperimentList
	if err := w.c.kube.List(ctx, &all, client.InNamespace(w.c.namespace)); err != nil {
		return err
	}
	w.campaigns, w.phases = campaigns.Items, map[string]int{}
	for i := range all.Items {
		w.phases[cmp.Or(string(all.Items[i].Status.Phase), "Submitted")]++
	}
	w.running = w.c.experimentsUnderWay(ctx, w.running, all.Items, now)
	return nil
}

func (w *watchedNamespace) frame(now time.Time, width int) []string {
	lines := []string{w.summary()}
	everywhere := w.c.namespace == ""
	if len(w.campaigns) > 0 {
		rows := strings.Split(strings.TrimSuffix(campaignTable(w.campaigns, everywhere, now), "\n"), "\n")
		lines = append(append(lines, ""), rows...)
	}
	if len(w.running) > 0 {
		lines = append(append(lines, ""), runningLines(w.running, now, width, everywhere)...)
	}
	return lines
}

func (w *watchedNamespace) summary() string {
	total := 0
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(w.phases)) {
		total += w.phases[phase]
		parts = append(parts, fmt.Sprintf("%d %s", w.phases[phase], phase))
	}
	if total == 0 {
		return fmt.Sprintf("%s: no experiments", w.c.scopeText())
	}
	return fmt.Sprintf("%s: %d experiments: %s", w.c.scopeText(), total, strings.Join(parts, ", "))
}

func (w *watchedNamespace) plainLine(time.Time) (line, stage string) { return w.summary(), w.summary() }

func (w *watchedNamespace) end() (done bool, words string, err error) { return false, "", nil }
