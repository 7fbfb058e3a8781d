//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// TestTheShortFormOfE4WithBrokersReachesEverybody runs four nations over the tactical link. Until the stop the main broker has 15 kbit/s to send to
// the others, and 9.8 kbit/s to do it. So shares depend on when TCP repeats, and only some of each publisher's messages must arrive in time.
func TestTheShortFormOfE4WithBrokersReachesEverybody(t *testing.T) {
	t.Parallel()
	run := startScenario(t, filepath.Join("e4", "short", "setting2-mosquitto-tactical-1-10s.yaml"))
	run.finish(t, finishTimeout)
	everybodyIsHeard(t, run)
}

// TestTheShortFormOfE4WithoutBrokersLosesNoMoreThanTheLink runs the same by UDP broadcasts, which take a fifth of a nation's rate. Each of the 192 is
// lost with 1 %, to all other nations at once: 5 % are five standard deviations more.
func TestTheShortFormOfE4WithoutBrokersLosesNoMoreThanTheLink(t *testing.T) {
	t.Parallel()
	run := startScenario(t, filepath.Join("e4", "short", "setting2-mqtt-udp-tactical-1-10s.yaml"), quietFor("8s")) // nothing is repeated
	results := run.finish(t, finishTimeout)
	everybodyIsHeard(t, run)
	if m := group(t, results, "cross").Messages; m.Lost*20 > m.Expected {
		t.Errorf("%s: between nations %+v; want 5 %% lost at most, over a link that loses 1 %%", run.Name, m)
	}
}

// everybodyIsHeard wants each publisher's messages at each subscriber: all of them within a node, at least one over the radio.
func everybodyIsHeard(t *testing.T, run plannedRun) {
	t.Helper()
	heard := map[[2]string]bool{}
	for _, d := range deliveriesOf(t, get(t, run.Experiment)) {
		pair := [2]string{d.publisher, d.subscriber}
		heard[pair] = heard[pair] || !d.lost
		if d.local && d.lost {
			t.Errorf("%s: %+v; want it to arrive, as it meets no radio", run.Name, d)
		}
	}
	if want := run.publishers * (run.publishers - 1); int64(len(heard)) != want {
		t.Errorf("%s: deliveries between %d pairs of units; want %d, everybody to everybody else", run.Name, len(heard), want)
	}
	for pair, ever := range heard {
		if !ever {
			t.Errorf("%s: %s received nothing from %s", run.Name, pair[1], pair[0])
		}
	}
}

// TestTheShortFormOfE3LosesNothing runs three nations whose brokers are behind a satellite link with room for all messages.
func TestTheShortFormOfE3LosesNothing(t *testing.T) {
	t.Parallel()
	checkE3(t, runScenario(t, filepath.Join("e3", "short", "satcom.yaml"), finishTimeout))
}

// TestTheShortFormOfE8LosesNoMoreThanItsEnd runs pairs of MQTT-SN clients through a gateway, over a link that loses one frame in a hundred.
func TestTheShortFormOfE8LosesNoMoreThanItsEnd(t *testing.T) {
	t.Parallel()
	checkE8(t, runScenario(t, filepath.Join("e8", "short", "mqttsn-standard-qos1-gps.yaml"), finishTimeout))
}

// TestTheShortFormOfE6GetsAReceiptForEveryMessage runs two platoons over radios that lose nothing.
func TestTheShortFormOfE6GetsAReceiptForEveryMessage(t *testing.T) {
	t.Parallel()
	run := startScenario(t, filepath.Join("e6", "short", "messages-coap-cbor.yaml"), quietFor("10s")) // no request is repeated
	checkRequests(t, run.finish(t, finishTimeout))
}

// TestTheShortFormOfE5LosesNothingToACut runs a pair of proxies whose link is cut for less than the requests may take, and loses nothing
// else. CoAP repeats what is lost for the third time after 14 to 21 s, and then after 30 to 45 s (RFC 7252), when the requests are over.
// The cut takes 13 s here, so that the third repetition always arrives.
func TestTheShortFormOfE5LosesNothingToACut(t *testing.T) {
	t.Parallel()
	run := startScenario(t, filepath.Join("e5", "short", "nffi-coap-gzip-cut.yaml"), func(e *v1alpha1.Experiment) {
		lossless := v1alpha1.RadioChange{Network: "link", Link: &v1alpha1.LinkPatch{Loss: new(v1alpha1.Percent("0%"))}}
		e.Spec.Timeline[2].At = "55s" // the cut's end
		e.Spec.Timeline = slices.Insert(e.Spec.Timeline, 0, v1alpha1.TimelineEntry{At: "0s", Set: []v1alpha1.RadioChange{lossless}})
	})
	checkRequests(t, run.finish(t, finishTimeout))
}

// checkRequests wants a receipt for every request.
func checkRequests(t *testing.T, results runapi.Results) {
	t.Helper()
	if r := results.Requests; results.Messages.Lost != 0 || r == nil || r.Triggered == 0 || r.Receipts != r.Triggered {
		t.Errorf("%s; want every request delivered and answered", brief(results))
	}
}

// plannedRun is a scenario's experiment, and the promises of its file.
type plannedRun struct {
	*v1alpha1.Experiment
	link string
	// publishers is the number of instances, and messages that of all their messages.
	publishers, messages int64
	// requests: apps send requests, which are not counted beforehand.
	requests bool
}

// runScenario runs a file of scenarios in a new namespace and checks the conditions of every run.
func runScenario(t *testing.T, path string, timeout time.Duration) runapi.Results {
	t.Helper()
	run := startScenario(t, path)
	return run.finish(t, timeout)
}

// scenario reads a file of scenarios that has only an experiment.
func scenario(t *testing.T, path string) *v1alpha1.Experiment {
	t.Helper()
	e, movement := scenarioWithMovement(t, path)
	if len(movement) > 0 {
		t.Fatalf("%s has a movement beside its experiment", path)
	}
	return e
}

// scenarioWithMovement reads a file of scenarios: an experiment, and before it its movement, if any: a Scenario, perhaps with a ConfigMap.
func scenarioWithMovement(t *testing.T, path string) (e *v1alpha1.Experiment, movement []client.Object) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "scenarios", path))
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	last := len(documents) - 1
	e = &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict([]byte(documents[last]), e); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, document := range documents[:last] {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		movement = append(movement, object)
	}
	return e, movement
}

// createIn creates objects in a namespace.
func createIn(t *testing.T, namespace string, objects []client.Object) {
	t.Helper()
	for _, object := range objects {
		object.SetNamespace(namespace)
		mustCreate(t, object)
	}
}

// quietFor ends an experiment's drain sooner than its file does, where messages that are late for so long are lost.
func quietFor(d v1alpha1.Duration) func(*v1alpha1.Experiment) {
	return func(e *v1alpha1.Experiment) { e.Spec.Drain.QuietFor = d }
}

// startScenario applies a file of scenarios in a new namespace, with changes.
func startScenario(t *testing.T, path string, changes ...func(*v1alpha1.Experiment)) plannedRun {
	t.Helper()
	e, movement := scenarioWithMovement(t, path)
	for _, change := range changes {
		change(e)
	}
	run := plannedRun{Experiment: e, link: e.Spec.Networks[0].Waveform}
	if e.Spec.Networks[0].Link != nil {
		run.link = "in place"
	}
	run.count()
	e.Namespace = newNamespace(t)
	createIn(t, e.Namespace, movement)
	mustCreate(t, e)
	return run
}

// count counts the publishers, and the messages between their lead and their stop.
func (run *plannedRun) count() {
	apps := map[string]v1alpha1.App{}
	for _, app := range run.Spec.Apps {
		apps[app.Name] = app
	}
	for _, node := range run.Spec.Nodes {
		nodes := int64(1)
		if node.Count != nil {
			nodes = int64(*node.Count)
		}
		for _, name := range node.Apps {
			app := apps[name]
			run.requests = run.requests || app.Messaging != nil
			if app.Publisher != nil {
				publishing := run.Spec.Timeline[1].At.Std() - run.Spec.Timeline[0].At.Std()
				publishers := nodes * max(1, int64(app.Instances))
				run.publishers += publishers
				run.messages += publishers * int64((publishing-app.Publisher.Lead.Std())/app.Publisher.Period.Std())
			}
		}
	}
}

// finish waits for the run's end and checks its results.
func (run plannedRun) finish(t *testing.T, timeout time.Duration) runapi.Results {
	t.Helper()
	done := waitFor(t, run.Experiment, timeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	t.Log(brief(results))
	m := results.Messages
	if m.Sent == 0 || m.Expected == 0 {
		t.Errorf("%s: %+v; want messages that are sent, and expected somewhere", run.Name, m)
	}
	if run.link == "baseline" && m.Lost != 0 {
		t.Errorf("%s: %d messages lost on the baseline link; want none", run.Name, m.Lost)
	}
	if run.link == "tactical-1" || run.link == "tactical-2" {
		// 9.8 kbit/s and 100 ms: a frame of 60 bytes, the shortest there is, takes 149 ms.
		if cross := group(t, results, "cross"); cross.DelaySeconds == nil || cross.DelaySeconds.Min < 0.149 {
			t.Errorf("%s: delays between nations %+v; want none below 149 ms", run.Name, cross.DelaySeconds)
		}
	}
	if !run.requests && int64(len(results.Publishers)) != run.publishers {
		t.Errorf("%s: %d publishers; want %d", run.Name, len(results.Publishers), run.publishers)
	}
	checkFiles(t, done)
	return results
}

// checkFiles wants a run's tables and plots in the archive, none of them empty.
func checkFiles(t *testing.T, e *v1alpha1.Experiment) {
	t.Helper()
	var manifest runapi.Manifest
	archive(t, "runs/"+string(e.UID)+"/files", nil, &manifest)
	sizes := map[string]int64{}
	for _, file := range manifest.Files {
		sizes[file.Path] = file.Bytes
	}
	for _, name := range []string{
		"messages.csv", "messages.parquet", "deliveries.csv", "deliveries.parquet", "publishers.csv", "groups.csv", "tables.txt",
		"plots/delays-by-publisher.png", "plots/delays-by-publisher.svg", "plots/delays-over-time.png", "plots/delays-over-time.svg",
		"plots/delays-by-group.svg", "plots/delay-stages.svg", "plots/age-by-subscriber.svg", "plots/loss.png", "headline.csv", "networks.csv",
		"tables/headline.tex", "tables/groups.tex", "tables/publishers.tex", "tables/networks.tex",
	} {
		if sizes["results/"+name] == 0 {
			t.Errorf("%s: the archive has no results/%s", e.Name, name)
		}
	}
}

// checkE8 wants every message at the subscriber of its pair, after two crossings of a link of 100 ms. A loss within 10 s of the stop is
// not repeated, as its publisher has ended: a frame in a hundred of the last two messages of each.
func checkE8(t *testing.T, results runapi.Results) {
	t.Helper()
	m := results.Messages
	if m.Expected != m.Sent || m.Lost > 4 {
		t.Errorf("%s: %+v; want every message expected once, by its pair's subscriber, and hardly one lost", results.Experiment, m)
	}
	if d := results.DelaySeconds; d == nil || d.Min < 0.2 {
		t.Errorf("%s: delays %+v; want none below twice the link's 100 ms", results.Experiment, d)
	}
}

func checkE3(t *testing.T, results runapi.Results) {
	t.Helper()
	m := results.Messages
	if m.Expected != m.Sent || m.Lost != 0 || m.Duplicates != 0 {
		t.Errorf("%s: %+v; want every message expected once, by the one subscriber, and none lost or doubled", results.Experiment, m)
	}
	least := 0.04
	if strings.Contains(results.Experiment, "satcom") {
		least = 1.1
	}
	if d := results.DelaySeconds; d == nil || d.Min < least {
		t.Errorf("%s: delays %+v; want none below %v s, twice the path to the cloud", results.Experiment, d, least)
	}
}
