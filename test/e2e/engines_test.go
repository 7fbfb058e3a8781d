//go:build e2e

package e2e

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// studyTimeout of a short form beside one with 24 processes of EMANE.
	studyTimeout = 15 * time.Minute
	// readingAfterT0 is when EMANE is asked for its statistics: most messages are under way.
	readingAfterT0 = 80 * time.Second
)

// TestShortFormsOfE1AndE2GiveTheSameSharesWithEMANE runs each form with both engines side by side.
func TestShortFormsOfE1AndE2GiveTheSameSharesWithEMANE(t *testing.T) {
	needsEMANE(t)
	for _, form := range []struct{ study, file string }{{"e1", "mosquitto.yaml"}, {"e2", "mosquitto-qos0-modified.yaml"}} {
		t.Run(form.study, func(t *testing.T) {
			native, byEMANE := startScenario(t, filepath.Join(form.study, "short", form.file)), startScenario(t, filepath.Join(form.study, "emane", "short", form.file))
			var read []slotReading
			comparable := true
			if byEMANE.Spec.Networks[0].TDMA != nil {
				read = readSlots(t, byEMANE, "hq", "veh-1", "veh-12", "veh-23")
				comparable = hasRealtimePriority(t, byEMANE)
			}
			want, got := native.finish(t, studyTimeout), byEMANE.finish(t, studyTimeout)
			isComplete(t, native, want)
			isComplete(t, byEMANE, got)
			if comparable {
				sharesAgree(t, want, got)
			}
			done := get(t, byEMANE.Experiment)
			linksAreKnown(t, done, byEMANE.Spec.Networks[0].Name)
			slotsAreLogged(t, done, read)
			latenessIsJudged(t, done, byEMANE.Spec.Networks[0].Name, got)
		})
	}
}

// hasRealtimePriority reports whether EMANE has real-time priority. Without it EMANE loses bursts that it receives too late, and a run
// says nothing of its engine.
func hasRealtimePriority(t *testing.T, run plannedRun) bool {
	t.Helper()
	clientset := clientsetOf(t)
	own := v1alpha1.LabelNetwork + "," + v1alpha1.LabelExperimentUID + "=" + string(get(t, run.Experiment).UID)
	pods, err := clientset.CoreV1().Pods(platformNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: own})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("%d pods of EMANE, %v; want one for each host with nodes", len(pods.Items), err)
	}
	for _, pod := range pods.Items {
		log, err := clientset.CoreV1().Pods(platformNamespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(log), "no real-time priority here") {
			t.Logf("the kernel refuses real-time priority to EMANE's pod on %s: its shares are not compared", pod.Spec.NodeName)
			return false
		}
	}
	return true
}

// isComplete wants every publisher to have triggered all its messages, and nothing to be missing but what links without a way make:
// messages that were not sent, and frames that still waited when the drain ended.
func isComplete(t *testing.T, run plannedRun, results runapi.Results) {
	t.Helper()
	if triggered, offered := results.Messages.Counted(); triggered != run.messages || offered != run.messages {
		t.Errorf("%s: %d messages triggered, %d deliveries offered; want %d of each, for one subscriber", run.Name, triggered, offered, run.messages)
	}
	for _, gap := range results.Gaps {
		if strings.Contains(gap.Reason, "were triggered but never sent") || strings.Contains(gap.Reason, "were still queued when the drain ended") {
			continue
		}
		t.Errorf("%s: %s %s is missing: %s", run.Name, gap.What, gap.Node, gap.Reason)
	}
}

// sharesAgree wants the confidence intervals of the delivered shares to overlap, widened by what lateness may have changed.
func sharesAgree(t *testing.T, one, other runapi.Results) {
	t.Helper()
	low, high := possibleShare(t, one)
	otherLow, otherHigh := possibleShare(t, other)
	if otherLow > high || low > otherHigh {
		t.Errorf("delivered in %s: %.1f to %.1f %%; in %s: %.1f to %.1f %%; want them to overlap", one.Experiment, low, high, other.Experiment, otherLow, otherHigh)
	}
}

func possibleShare(t *testing.T, results runapi.Results) (low, high float64) {
	t.Helper()
	g := results.HeadlineGroup()
	if g.Messages.DeliveredPercent == nil || g.Confidence == nil || g.Confidence.DeliveredPercent == nil || g.Bounds == nil || g.Bounds.DeliveredPercent == nil {
		t.Fatalf("%s: %+v; want a delivered share with its confidence interval and its bounds", results.Experiment, g)
	}
	share, likely, bounds := *g.Messages.DeliveredPercent, *g.Confidence.DeliveredPercent, *g.Bounds.DeliveredPercent
	t.Logf("%s: %.1f %% delivered, %.1f to %.1f %% likely, %.1f to %.1f %% without lateness", results.Experiment, share, likely.Low, likely.High, bounds.Low, bounds.High)
	return likely.Low - math.Max(0, share-bounds.Low), likely.High + math.Max(0, bounds.High-share)
}

// slotReading is what a node's EMANE process said of its time slots during a run.
type slotReading struct {
	node string
	// since and until are when it was asked and when it had answered.
	since, until time.Time
	values       map[string]uint64
}

// slotCounts are radiod's counts, by the statistics of EMANE that each sums up. Without locations bursts that are too long were late.
var slotCounts = []struct {
	name       string
	statistics []string
	count      func(runapi.RadioSample) uint64
}{
	{"slots used", []string{"numTxSlotValid"}, func(s runapi.RadioSample) uint64 { return s.SlotsUsed }},
	{"slots missed", []string{"numTxSlotErrorMissed"}, func(s runapi.RadioSample) uint64 { return s.SlotsMissed }},
	{"drops missedSlot", []string{"numRxSlotErrorMissed", "numRxSlotErrorRxTooLong"}, func(s runapi.RadioSample) uint64 { return s.Drops["missedSlot"] }},
	{"drops notListening", []string{"numRxSlotErrorRxDuringIdle", "numRxSlotErrorRxDuringTx", "numRxSlotErrorRxWrongFrequency"},
		func(s runapi.RadioSample) uint64 { return s.Drops["notListening"] }},
	{"drops interfered", []string{"numRxSlotErrorRxLock"}, func(s runapi.RadioSample) uint64 { return s.Drops["interfered"] }},
}

// readSlots asks the EMANE processes of some nodes while a run goes on.
func readSlots(t *testing.T, run plannedRun, nodes ...string) (read []slotReading) {
	t.Helper()
	waitFor(t, run.Experiment, studyTimeout, v1alpha1.PhaseRunning)
	waitForT0(t, run.Experiment, readingAfterT0)
	for _, node := range nodes {
		reading := slotReading{node: node, since: time.Now(), values: map[string]uint64{}}
		out := mustVignette(t, run.Namespace, "shell", "-e", run.Name, "--emane", node, "--", "get", "stat", "mac")
		reading.until = time.Now()
		for line := range strings.Lines(out) {
			name, value, is := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "mac")), " = ")
			if number, err := strconv.ParseUint(value, 10, 64); is && err == nil {
				reading.values[name] = number
			}
		}
		read = append(read, reading)
	}
	return read
}

// slotsAreLogged wants what EMANE said to lie between radiod's counts of before and of the end.
func slotsAreLogged(t *testing.T, done *v1alpha1.Experiment, read []slotReading) {
	t.Helper()
	if len(read) == 0 {
		return
	}
	samples := samplesByNode(t, done)
	for _, r := range read {
		before, last := runapi.RadioSample{}, runapi.RadioSample{}
		for _, sample := range samples[r.node] {
			if sample.TimeNanoseconds < r.since.UnixNano() {
				before = sample
			}
			last = sample
		}
		if last.TimeNanoseconds <= r.until.UnixNano() {
			t.Errorf("%s: EMANE was asked at the end of the run, or there are no samples; want some after %v", r.node, r.until)
		}
		if r.values["numTxSlotValid"] == 0 {
			t.Errorf("%s: EMANE says that it used no slot: %v", r.node, r.values)
		}
		for _, c := range slotCounts {
			said := r.sum(t, c.statistics)
			t.Logf("%s: %s: EMANE said %d; radiod had %d before, and %d at the end", r.node, c.name, said, c.count(before), c.count(last))
			if said < c.count(before) || said > c.count(last) {
				t.Errorf("%s: %s: EMANE said %d; want that between radiod's %d before and %d at the end", r.node, c.name, said, c.count(before), c.count(last))
			}
		}
	}
}

// sum adds up statistics, all of which EMANE must have.
func (r slotReading) sum(t *testing.T, statistics []string) (sum uint64) {
	t.Helper()
	for _, name := range statistics {
		value, known := r.values[name]
		if !known {
			t.Errorf("%s: EMANE has no statistic %s", r.node, name)
		}
		sum += value
	}
	return sum
}

// samplesByNode are a run's samples in order of time.
func samplesByNode(t *testing.T, done *v1alpha1.Experiment) map[string][]runapi.RadioSample {
	t.Helper()
	samples := map[string][]runapi.RadioSample{}
	for _, sample := range radioLog[runapi.RadioSample](t, done, "framesSent") {
		samples[sample.Node] = append(samples[sample.Node], sample)
	}
	for _, of := range samples {
		slices.SortFunc(of, func(a, b runapi.RadioSample) int { return int(a.TimeNanoseconds - b.TimeNanoseconds) })
	}
	return samples
}

// linksAreKnown wants most nodes to have heard others, with a SINR.
func linksAreKnown(t *testing.T, done *v1alpha1.Experiment, network string) {
	t.Helper()
	hears := map[string]bool{}
	for _, line := range radioLog[runapi.RadioLinks](t, done, "receiver") {
		for _, from := range line.From {
			hears[line.Receiver] = hears[line.Receiver] || line.Network == network && from.Received > 0 && from.SINRDecibels != nil
		}
	}
	count := 0
	for _, heard := range hears {
		if heard {
			count++
		}
	}
	if nodes := len(samplesByNode(t, done)); 2*count < nodes || nodes == 0 {
		t.Errorf("%d of %d nodes have links with receptions and a SINR; want most of them", count, nodes)
	}
}

// latenessIsJudged wants a verdict on what EMANE was late for, and none that says that it kept up.
func latenessIsJudged(t *testing.T, done *v1alpha1.Experiment, network string, results runapi.Results) {
	t.Helper()
	if !slices.ContainsFunc(results.Notes, func(n runapi.Gap) bool { return n.What == "verdict: EMANE on "+network }) {
		t.Errorf("notes %+v; want one that EMANE does not tell how late it was", results.Notes)
	}
	off := results.HeadlineBounds()
	if results.Verdict == nil {
		if off.DeliveredPoints == nil || *off.DeliveredPoints > defaultDeliveredPoints {
			t.Errorf("no verdict, and the delivered share may be off by %s", off)
		}
		return
	}
	if results.Verdict.KeptUp || len(results.Verdict.Exceeded) == 0 {
		t.Errorf("verdict %+v; want none for EMANE, or one with what was exceeded", results.Verdict)
	}
	missed := missedIn(t, done)
	i := slices.IndexFunc(results.Verdict.Networks, func(n runapi.NetworkTiming) bool { return n.Name == network })
	if i < 0 {
		t.Fatalf("the verdict has the networks %+v; want %s", results.Verdict.Networks, network)
	}
	if timing := results.Verdict.Networks[i]; missed > 0 && timing.Missed == 0 {
		t.Errorf("the verdict has %+v; want the slots that were missed during the run, at least %d", timing, missed)
	}
}

// defaultDeliveredPoints is the default of tolerances.delivered.
const defaultDeliveredPoints = 0.1

// missedIn counts the slots that were missed between T0 and the end of the duration.
func missedIn(t *testing.T, done *v1alpha1.Experiment) (slots int64) {
	t.Helper()
	begin := done.Status.T0.UnixNano()
	end := begin + int64(done.Spec.Duration.Std())
	for _, line := range radioLog[runapi.RadioMissedSlots](t, done, "slotsMissedFrom") {
		if line.FromNanoseconds >= begin && line.TimeNanoseconds <= end {
			slots += line.Slots
		}
	}
	return slots
}
