//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// collected is an experiment with a publisher on each of two nodes, and a broker and subscriber on a third.
func collected(namespace, name string, duration v1alpha1.Duration) *experimentBuilder {
	b := makeExperiment(namespace, name).Duration(duration).
		Network("wan", "198.18.9.0/24", "baseline").
		Broker("broker").Subscriber("picture", "broker").Publisher("bft", "broker", "100ms", 1).
		Node("hq", "wan", "broker", "picture").Node("stays", "wan", "bft").Node("lost", "wan", "bft").
		Start("3s", "bft").Stop(duration, "bft")
	b.Spec.Collect = &v1alpha1.Collect{Captures: []string{"wan"}}
	return b
}

// withoutServer does something without the server: it kills the pod at once, and lets another one start only afterwards.
func withoutServer(t *testing.T, do func()) {
	t.Helper()
	scaleServer(t, 0)
	defer scaleServer(t, 1)
	var pods corev1.PodList
	ofServer := []client.ListOption{client.InNamespace(platformNamespace), client.MatchingLabels{"app.kubernetes.io/name": "vignette-server"}}
	if err := kube.List(t.Context(), &pods, ofServer...); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if err := client.IgnoreNotFound(kube.Delete(t.Context(), &pods.Items[i], client.GracePeriodSeconds(0))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, time.Minute, "the archive to be gone", func() error {
		if err := kube.List(t.Context(), &pods, ofServer...); err != nil || len(pods.Items) > 0 {
			return errorf("%d pods: %v", len(pods.Items), err)
		}
		return nil
	})
	do()
}

func scaleServer(t *testing.T, replicas int32) {
	t.Helper()
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: platformNamespace, Name: "vignette-server"}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas))
	if err := kube.Patch(context.WithoutCancel(t.Context()), server, patch); err != nil {
		t.Error(err)
	}
}

// messageLog reads an archived message log by publisher: the numbers at the ends of its ids, in order, and their times.
func messageLog(t *testing.T, e *v1alpha1.Experiment, path string, status messagelog.Status) map[string]map[int]time.Time {
	t.Helper()
	found := map[string]map[int]time.Time{}
	_, err := messagelog.Read(strings.NewReader(archivedText(t, e, path)), func(r messagelog.Record) {
		cut := strings.LastIndexByte(r.ID, '_')
		number, err := strconv.Atoi(r.ID[cut+1:])
		if err != nil || r.Status != status {
			return
		}
		publisher := r.ID[:max(cut, 0)]
		if found[publisher] == nil {
			found[publisher] = map[int]time.Time{}
		}
		found[publisher][number] = time.Unix(0, r.TimeNanoseconds)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// onlyPublisher returns the publisher of a publisher's own log.
func onlyPublisher(t *testing.T, sent map[string]map[int]time.Time) (name string, numbers map[int]time.Time) {
	t.Helper()
	if len(sent) != 1 {
		t.Fatalf("a publisher's log has messages of %d publishers; want its own", len(sent))
	}
	for name, numbers = range sent {
	}
	return name, numbers
}

// wantFromTheFirst wants every triggered message of a publisher, from the first to the last, in its archived log.
func wantFromTheFirst(t *testing.T, e *v1alpha1.Experiment, node string) {
	t.Helper()
	_, triggered := onlyPublisher(t, messageLog(t, e, "logs/"+node+"/bft/messages-1.jsonl", messagelog.Triggered))
	last := 0
	for n := range triggered {
		last = max(last, n)
	}
	if len(triggered) != last {
		t.Errorf("%d messages of node %s are archived, the last one is %d; want all of them from the first on", len(triggered), node, last)
	}
}

// wantOnlyNamed wants every message that the subscriber has from the lost node's publisher in the archive or within the gap of
// its logs. It returns the number of missing ones; without a gap it allows none.
func wantOnlyNamed(t *testing.T, e *v1alpha1.Experiment, gaps []runapi.Gap) (missing int) {
	t.Helper()
	publisher, sent := onlyPublisher(t, messageLog(t, e, "logs/lost/bft/messages-1.jsonl", messagelog.Sent))
	wantFromTheFirst(t, e, "lost")
	gap := runapi.Gap{FromSeconds: ptr.To(0.0), ToSeconds: ptr.To(0.0)}
	if i := slices.IndexFunc(gaps, func(g runapi.Gap) bool { return g.What == "logs of lost/bft" }); i >= 0 {
		gap = gaps[i]
	}
	if gap.FromSeconds == nil || gap.ToSeconds == nil {
		t.Fatalf("gap %+v of the lost node's logs; want both its ends", gap)
	}
	t.Logf("the gap of the lost node's logs: %.1f s to %.1f s: %s", *gap.FromSeconds, *gap.ToSeconds, gap.Reason)
	for number, at := range messageLog(t, e, "logs/hq/picture/messages-1.jsonl", messagelog.Received)[publisher] {
		if _, archived := sent[number]; archived {
			continue
		}
		missing++
		if seconds := at.Sub(e.Status.T0.Time).Seconds(); seconds < *gap.FromSeconds || seconds > *gap.ToSeconds {
			t.Errorf("message %d came %.3f s after T0 and is not archived at its publisher; the gap %+v does not name it", number, seconds, gap)
		}
	}
	return missing
}

func gapOf(t *testing.T, gaps []runapi.Gap, what string) runapi.Gap {
	t.Helper()
	for _, gap := range gaps {
		if gap.What == what {
			return gap
		}
	}
	t.Fatalf("no gap %q in %+v", what, gaps)
	return runapi.Gap{}
}

// wantArchiveIntact checks every sealed file against its checksum.
func wantArchiveIntact(t *testing.T, e *v1alpha1.Experiment) {
	t.Helper()
	sealed := 0
	for _, file := range manifestOf(t, e.UID).Files {
		if file.SHA256 == "" {
			continue
		}
		sealed++
		text := archivedText(t, e, file.Path)
		if sum := sha256.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != file.SHA256 || int64(len(text)) != file.Bytes {
			t.Errorf("%s: %d bytes with SHA-256 %x; the manifest says %d and %s", file.Path, len(text), sum, file.Bytes, file.SHA256)
		}
	}
	if sealed < 10 {
		t.Errorf("%d files are sealed; want logs, radio samples, captures and events", sealed)
	}
}

// archivedEvents returns the run's Kubernetes events, and wants no duplicates.
func archivedEvents(t *testing.T, e *v1alpha1.Experiment) (events []runapi.KubernetesEvent) {
	t.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(archivedText(t, e, "events.jsonl")) {
		var event runapi.KubernetesEvent
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Errorf("event %q: %v", line, err)
			continue
		}
		if key := fmt.Sprint(event.UID, event.Count); seen[key] {
			t.Errorf("event %+v is there twice", event)
		} else {
			seen[key] = true
		}
		events = append(events, event)
	}
	return events
}

// wantEventsOf wants events of each node's pod with the node's name, of the workflow's pods and of the Experiment.
func wantEventsOf(t *testing.T, events []runapi.KubernetesEvent) {
	t.Helper()
	nodes, others := map[string]bool{}, map[string]bool{}
	for _, event := range events {
		switch {
		case event.Node != "":
			nodes[event.Node] = true
		case event.Object.Kind == "Pod":
			others["pod of the workflow"] = true
		default:
			others[event.Object.Kind] = true
		}
	}
	if !nodes["hq"] || !nodes["stays"] || !nodes["lost"] || len(nodes) != 3 || !others["pod of the workflow"] || !others["Experiment"] || !others["Workflow"] {
		t.Errorf("events of nodes %v and of %v; want those of hq, stays, lost, of the Experiment, the Workflow and its pods", nodes, others)
	}
}

// wantNoHoles wants a radio sample of the node in every two seconds of the measurement, on its only host.
func wantNoHoles(t *testing.T, e *v1alpha1.Experiment, node string, from, to time.Duration) {
	t.Helper()
	last, begin, end := time.Time{}, e.Status.T0.Add(from), e.Status.T0.Add(to)
	for _, file := range manifestOf(t, e.UID).Files {
		if !strings.HasPrefix(file.Path, "radio/") {
			continue
		}
		for line := range strings.Lines(archivedText(t, e, file.Path)) {
			var sample runapi.RadioSample
			if json.Unmarshal([]byte(line), &sample) != nil || sample.Node != node || !strings.Contains(line, `"framesSent"`) {
				continue
			}
			at := time.Unix(0, sample.TimeNanoseconds)
			if !last.IsZero() && at.Sub(last) > 5*time.Second && at.After(begin) && last.Before(end) {
				t.Errorf("no radio samples of node %s from %v to %v after T0", node, last.Sub(e.Status.T0.Time), at.Sub(e.Status.T0.Time))
			}
			last = at
		}
	}
	if last.Before(end) {
		t.Errorf("the last radio sample of node %s is %v after T0; want them up to %v", node, last.Sub(e.Status.T0.Time), to)
	}
}

// Not in parallel: the server is down for all tests.
func TestWithTheArchiveRestartedAndANodeKilledNothingIsLostButWhatIsNamed(t *testing.T) {
	e := collected(newNamespace(t), "restarted", "30s").Obj()
	mustCreate(t, e)
	waitForT0(t, e, 8*time.Second)
	withoutServer(t, func() {
		time.Sleep(time.Second) // logs from this time reach no archive before the node is lost
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "restarted-lost"}}
		if err := kube.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
		eventually(t, time.Minute, "the node's pod to be gone", func() error {
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
				return errorf("it is there: %v", err)
			}
			return nil
		})
	})
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	results := resultsOf(t, done.UID)
	wantArchiveIntact(t, done)
	wantEventsOf(t, archivedEvents(t, done))
	wantNoHoles(t, done, "stays", 2*time.Second, 30*time.Second)
	publisher, sent := onlyPublisher(t, messageLog(t, done, "logs/stays/bft/messages-1.jsonl", messagelog.Sent))
	wantFromTheFirst(t, done, "stays")
	received := messageLog(t, done, "logs/hq/picture/messages-1.jsonl", messagelog.Received)[publisher]
	if len(sent) < 200 || len(received) != len(sent) {
		t.Errorf("%d messages sent by the node that stays, %d received; want about 270, and all of them", len(sent), len(received))
	}
	if missing := wantOnlyNamed(t, done, results.Gaps); missing == 0 {
		t.Error("nothing is lost with the node: the archive was never away, and the test shows nothing")
	} else {
		t.Logf("%d messages of the lost node are not archived, all of them in the gap", missing)
	}
	for _, gap := range results.Gaps {
		// A publisher triggers its first message while it is still connecting. Messages that only the subscriber has match nothing.
		if expected := strings.HasPrefix(gap.What, "messages of") || strings.HasPrefix(gap.What, "received events of") || strings.HasPrefix(gap.What, "verdict"); expected {
			continue
		}
		if gap.Node != "" && gap.Node != "lost" {
			t.Errorf("gap %q (%s) of node %s, to which nothing happened", gap.What, gap.Reason, gap.Node)
		}
	}
}

func TestAnEmptyDirOverItsLimitIsANamedGap(t *testing.T) {
	t.Parallel()
	// The kubelet checks volumes once a minute, and the run stops after that.
	b := collected(newNamespace(t), "over", "5m")
	b.Image("hog", mosquittoImage(t), "/bin/sh", "-c", `sleep 5; head -c 300000000 /dev/zero > "${VIGNETTE_MESSAGE_LOG%/*}/.hog"; sleep 1000`)
	b.Spec.Nodes[2].Apps = append(b.Spec.Nodes[2].Apps, "hog")
	e := b.Obj()
	mustCreate(t, e)
	waitForT0(t, e, 10*time.Second)
	eventually(t, 3*time.Minute, "the eviction to be on record", func() error {
		for _, incident := range stateOf(t, e.UID).Incidents {
			if incident.Node == "lost" && incident.What == "Evicted" {
				return nil
			}
		}
		return errorf("incidents %+v", stateOf(t, e.UID).Incidents)
	})
	now := get(t, e)
	stopped := now.DeepCopy()
	stopped.Spec.Stop = true
	if err := kube.Patch(t.Context(), stopped, client.MergeFrom(now)); err != nil {
		t.Fatal(err)
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	results := resultsOf(t, done.UID)
	if results.Messages.Received == 0 {
		t.Errorf("%+v: want what was measured before the stop", results.Messages)
	}
	evicted := gapOf(t, results.Gaps, "Evicted")
	if evicted.Node != "lost" || evicted.FromSeconds == nil || !strings.Contains(evicted.Reason, "EmptyDir") {
		t.Errorf("gap %+v; want it of node lost, with its time, and that an emptyDir was over its limit", evicted)
	}
	if event := gapOf(t, results.Gaps, "Kubernetes event Evicted"); event.Node != "lost" || event.FromSeconds == nil || event.ToSeconds == nil {
		t.Errorf("gap %+v; want it of node lost, with its times", event)
	}
	// The agent ships its logs while the pod ends, so there may be no gap.
	t.Logf("%d messages of the evicted node are not archived", wantOnlyNamed(t, done, results.Gaps))
}

// ownLogger logs messages 1, 2, 3 … itself, and loses those for which the disk is full.
const ownLogger = `i=0; while :; do i=$((i+1)); printf '{"ts":%s,"instance":"%s","status":"sent","id":"own_%s"}\n' "$(date +%s%N)" "$VIGNETTE_INSTANCE" $i >> "$VIGNETTE_MESSAGE_LOG"; sleep 0.1; done`

// smallDisk is a volume of 1 MiB that a test uses as an app's log volume.
type smallDisk struct{ host, folder string }

// smallDisks prepares small disks for a node's apps on a host. If they exist before the containers start, the kubelet uses them.
func smallDisks(t *testing.T, e *v1alpha1.Experiment, node, host string, apps ...string) (disks []smallDisk) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name + "-" + node}}
	for deadline := time.Now().Add(time.Minute); kube.Get(t.Context(), client.ObjectKeyFromObject(pod), pod) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("pod %s is not made", pod.Name)
		}
	}
	script := "set -e"
	for _, app := range apps {
		disk := smallDisk{host, fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~empty-dir/log-%s", pod.UID, app)}
		disks = append(disks, disk)
		script += fmt.Sprintf("\nmkdir -p %[1]s\nmount -t tmpfs -o size=1m,mode=0777 tmpfs %[1]s", disk.folder)
	}
	if err := inHost(t.Context(), host, "sh", "-c", script); err != nil {
		t.Fatal(err)
	}
	return disks
}

// fill fills a disk, which must be the one of the app's log.
func (d smallDisk) fill(t *testing.T) {
	t.Helper()
	if err := inHost(t.Context(), d.host, "test", "-s", d.folder+"/messages-1.jsonl"); err != nil {
		t.Fatalf("the app does not log to the small disk: %v", err)
	}
	err := inHost(t.Context(), d.host, "dd", "if=/dev/zero", "of="+d.folder+"/.filler", "bs=4k", "count=1000")
	if err == nil || !strings.Contains(err.Error(), "No space left") {
		t.Fatalf("the disk does not fill: %v", err)
	}
}

func (d smallDisk) empty(t *testing.T) {
	t.Helper()
	if err := inHost(t.Context(), d.host, "rm", d.folder+"/.filler"); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAFullDiskOfANodeTakesIsNamed(t *testing.T) {
	t.Parallel()
	if os.Getenv("CLUSTER") == "existing" {
		t.Skip("no disk can be put into the hosts of CLUSTER=existing")
	}
	b := collected(newNamespace(t), "full", "30s")
	b.Image("own", mosquittoImage(t), "/bin/sh", "-c", ownLogger)
	b.Spec.Nodes[2].Apps = append(b.Spec.Nodes[2].Apps, "own")
	host := schedulable(t)[0]
	b.Spec.Apps[len(b.Spec.Apps)-1].Resources = oneSeat(seats(t, "full", map[string]int{host: 1}))
	e := b.Obj()
	mustCreate(t, e)
	disks := smallDisks(t, e, "lost", host, "bft", "own")
	waitForT0(t, e, 10*time.Second)
	for _, disk := range disks {
		disk.fill(t)
	}
	waitForT0(t, e, 18*time.Second)
	for _, disk := range disks {
		disk.empty(t)
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)

	results := resultsOf(t, done.UID)
	for _, app := range []string{"bft", "own"} {
		gap := gapOf(t, results.Gaps, "logs of lost/"+app)
		if gap.Node != "lost" || gap.FromSeconds == nil || gap.ToSeconds == nil || !strings.Contains(gap.Reason, "disk") || *gap.FromSeconds < 5 || *gap.ToSeconds > 30 {
			t.Errorf("gap %+v; want it of node lost, with both its ends, and that the disk was full", gap)
		}
	}
	if missing := wantOnlyNamed(t, done, results.Gaps); missing != 0 {
		t.Errorf("%d messages of the platform's publisher are not archived; want none, as its records wait for room", missing)
	}
	wantHolesWithin(t, done, messageLog(t, done, "logs/lost/own/messages-1.jsonl", messagelog.Sent)["own"], gapOf(t, results.Gaps, "logs of lost/own"))
}

// wantHolesWithin wants missing messages, all within the gap: the last one before a hole was logged before the
// gap's end, and the first one after it after the gap's start.
func wantHolesWithin(t *testing.T, e *v1alpha1.Experiment, logged map[int]time.Time, gap runapi.Gap) {
	t.Helper()
	missing, before := 0, 0
	since := func(n int) float64 { return logged[n].Sub(e.Status.T0.Time).Seconds() }
	for _, n := range slices.Sorted(maps.Keys(logged)) {
		if n != before+1 && before > 0 {
			missing += n - before - 1
			if since(before) > *gap.ToSeconds || since(n) < *gap.FromSeconds {
				t.Errorf("messages %d to %d are not archived, those around them were logged %.3f and %.3f s after T0; the gap %+v does not name it", before+1, n-1, since(before), since(n), gap)
			}
		}
		before = n
	}
	t.Logf("%d messages archived, %d not, all of them in the gap from %.1f to %.1f s: %s", len(logged), missing, *gap.FromSeconds, *gap.ToSeconds, gap.Reason)
	if len(logged) <= missing || missing == 0 { // a busy host logs fewer, with and without room
		t.Errorf("%d messages are archived and %d missing; want most, and not those of the time without room", len(logged), missing)
	}
}
