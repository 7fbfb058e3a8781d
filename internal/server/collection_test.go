package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// t0 of withT0.
var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// podEvent of nor's pod, so long after T0.
func podEvent(uid, reason string, count int32, at time.Duration) runapi.KubernetesEvent {
	return runapi.KubernetesEvent{TimeNanoseconds: t0.Add(at).UnixNano(), UID: uid, Type: "Normal", Reason: reason, Node: "nor",
		Object: runapi.EventObject{Kind: "Pod", Name: "quickstart-nor"}, Message: "about " + uid, Count: count}
}

func (l *lab) events(events ...runapi.KubernetesEvent) {
	l.t.Helper()
	if err := l.as("operator").Events(context.Background(), runUID, events); err != nil {
		l.t.Fatal(err)
	}
}

// file is an archived file's content.
func (l *lab) file(p string) string {
	l.t.Helper()
	f, err := l.as("admin").File(context.Background(), runUID, p)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

func TestEventsAreArchivedOnceWhoeverIsRestarted(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	first, second, again := podEvent("e1", "Pulled", 1, 0), podEvent("e2", "BackOff", 1, time.Second), podEvent("e2", "BackOff", 3, 4*time.Second)
	l.events(second, first)
	l.events(first, second) // an operator that was restarted
	l.stop()
	l.start()
	l.events(first, second, again, again)
	var got []runapi.KubernetesEvent
	for line := range strings.Lines(l.file("events.jsonl")) {
		var event runapi.KubernetesEvent
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		got = append(got, event)
	}
	if diff := cmp.Diff([]runapi.KubernetesEvent{first, second, again}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnEventOfWhichAKilledServerWroteHalfIsArchivedWhole(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	l.events(podEvent("e1", "Pulled", 1, 0))
	run := l.server.runs.get(runUID).files
	if _, err := run.Append("events.jsonl", int64(len(l.file("events.jsonl"))), []byte(`{"ts":17,"uid":"e2"`)); err != nil {
		t.Fatal(err)
	}
	l.stop()
	l.start()
	l.events(podEvent("e2", "Started", 1, 0))
	lines := strings.Split(strings.TrimSpace(l.file("events.jsonl")), "\n")
	if len(lines) != 3 || !json.Valid([]byte(lines[2])) || !strings.Contains(lines[2], `"Started"`) {
		t.Errorf("the file has %q; want the torn line, and after it the event", lines)
	}
}

func TestEventsBeyondTheLimitAreAGapFromTheirTime(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	l.server.runs.get(runUID).maxEvents = 2
	l.events(podEvent("e1", "A", 1, time.Second), podEvent("e2", "B", 1, 2*time.Second), podEvent("e3", "C", 1, 3*time.Second))
	manifest := l.seal()
	l.wantGap(manifest, "log events.jsonl", "", "2 events")
	if lines := strings.Count(l.file("events.jsonl"), "\n"); lines != 2 {
		t.Errorf("%d events are archived; want 2", lines)
	}
	for _, gap := range manifest.Gaps {
		if gap.What == "log events.jsonl" && (gap.FromSeconds == nil || *gap.FromSeconds != 2) {
			t.Errorf("gap %+v; want it from the last event that is kept, 2 s", gap)
		}
	}
}

// collectedRun has every log, and agents that are done.
func collectedRun(t *testing.T) *lab {
	l := newLab(t)
	l.completeRun()
	l.plan(withT0, func(p *runapi.Plan) { p.Phase = v1alpha1.PhaseCollecting })
	l.report("nor", "bft", runapi.AgentDone)
	l.report("prt", "picture", runapi.AgentDone)
	return l
}

func TestTheSealWaitsForTheOperatorsEvents(t *testing.T) {
	l := collectedRun(t)
	var operator sync.WaitGroup
	run := l.server.runs.get(runUID)
	l.events() // the seal forgets this round
	operator.Go(func() {
		for begun := false; !begun; time.Sleep(time.Millisecond) {
			run.mu.Lock()
			begun = run.eventRounds == 0
			run.mu.Unlock()
		}
		l.events() // of a round that had begun before the seal
		time.Sleep(300 * time.Millisecond)
		l.events(podEvent("last", "Started", 1, time.Second))
		l.events()
	})
	manifest, err := l.as("workflow").Seal(context.Background(), runUID, runapi.SealRequest{WaitSeconds: 30})
	operator.Wait()
	if err != nil || len(manifest.Gaps) != 0 || !strings.Contains(l.file("events.jsonl"), `"last"`) {
		t.Errorf("sealed with %+v, %v, events %s; want no gap and the last event", manifest.Gaps, err, l.file("events.jsonl"))
	}
}

func TestEventsWithoutAFinalRoundAreAGap(t *testing.T) {
	l := collectedRun(t)
	l.events()
	l.wantGap(l.seal(), "Kubernetes events", "", "did not say")
}

func TestInvalidEventsAreRefused(t *testing.T) {
	l := newLab(t)
	l.plan()
	good := podEvent("e1", "Pulled", 1, 0)
	for name, spoil := range map[string]func(*runapi.KubernetesEvent){
		"no uid": func(e *runapi.KubernetesEvent) { e.UID = "" }, "no reason": func(e *runapi.KubernetesEvent) { e.Reason = "" },
		"no count": func(e *runapi.KubernetesEvent) { e.Count = 0 }, "no time": func(e *runapi.KubernetesEvent) { e.TimeNanoseconds = 0 },
	} {
		bad := good
		spoil(&bad)
		if err := l.as("operator").Events(context.Background(), runUID, []runapi.KubernetesEvent{bad}); status(err) != http.StatusBadRequest {
			t.Errorf("%s: %v; want 400", name, err)
		}
	}
	for _, who := range []string{"", "nor", "radiod", "workflow"} {
		if err := l.as(who).Events(context.Background(), runUID, []runapi.KubernetesEvent{good}); err == nil {
			t.Errorf("%q may write events", who)
		}
	}
}

func TestWarningsAboutNodesPodsAreGapsWhileTheRunIsMeasured(t *testing.T) {
	l := newLab(t)
	end := int64(20 * time.Second)
	l.plan(withT0, func(p *runapi.Plan) { p.MeasureEndNanoseconds = &end })
	warn := func(uid, reason string, count int32, at time.Duration, node string) runapi.KubernetesEvent {
		e := podEvent(uid, reason, count, at)
		e.Type, e.Node = "Warning", node
		return e
	}
	l.events(warn("e1", "FailedScheduling", 1, -time.Minute, "nor"), podEvent("e2", "Killing", 1, 5*time.Second), warn("e3", "BackOff", 1, 6*time.Second, "nor"),
		warn("e3", "BackOff", 4, 9*time.Second, "nor"), warn("e4", "NodeFailed", 1, 7*time.Second, ""), warn("e5", "FailedKillPod", 1, 30*time.Second, "prt"))
	var got []string
	for _, gap := range l.seal().Gaps {
		if strings.HasPrefix(gap.What, "Kubernetes event") {
			got = append(got, fmt.Sprintf("%s, %s, %g to %g: %s", gap.What, gap.Node, *gap.FromSeconds, *gap.ToSeconds, gap.Reason))
		}
	}
	if diff := cmp.Diff([]string{"Kubernetes event BackOff, nor, 6 to 9: about e3 (4 times)"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestARunWithoutEventsIsAGap(t *testing.T) {
	l := newLab(t)
	l.plan(withT0)
	l.wantGap(l.seal(), "Kubernetes events", "", "none")
}

// post sends a body as somebody, with the digest of another text.
func (l *lab) post(who, path, body, digestOf string) int {
	l.t.Helper()
	request, err := http.NewRequest(http.MethodPost, l.http.URL+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+who)
	request.Header.Set(runapi.DigestHeader, runapi.ContentDigest(sha256.Sum256([]byte(digestOf))))
	response, err := l.http.Client().Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestDamagedBodiesAreRefusedAndIntactOnesAccepted(t *testing.T) {
	l := newLab(t)
	l.plan(func(p *runapi.Plan) {
		p.Captures = []runapi.PlannedCapture{{Name: "run", Network: "wan", Nodes: []string{"nor"}}}
	})
	radio, capture := "/v1/radio/host-a/"+runUID+"?offset=0", "/v1/radio/host-a/"+runUID+"/captures/run/wan/nor?offset=0"
	for path, archived := range map[string]string{radio: "radio/host-a.jsonl", capture: "captures/run/wan/nor.pcapng"} {
		if got := l.post("radiod", path, "{\"ts\":2}\n", "{\"ts\":1}\n"); got != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d; want 422", path, got)
		}
		if _, err := l.as("admin").File(context.Background(), runUID, archived); status(err) != http.StatusNotFound {
			t.Errorf("%s after a damaged piece: %v; want that there is none", archived, err)
		}
		if got := l.post("radiod", path, "{\"ts\":1}\n", "{\"ts\":1}\n"); got != http.StatusOK || l.file(archived) != "{\"ts\":1}\n" {
			t.Errorf("%s: %d, archived %q; want it whole", path, got, l.file(archived))
		}
	}
	sum := sha256.Sum256([]byte("good\n"))
	for text, want := range map[string]int{"goof\n": http.StatusUnprocessableEntity, "good\n": http.StatusOK} {
		body := fmt.Sprintf("{\"file\":\"a.log\",\"bytes\":5,\"sha256\":\"%x\"}\n%s{\"file\":\"%d.log\",\"bytes\":2}\nb\n", sum, text, want)
		answers := l.postParts(body)
		if len(answers) != 2 || answers[0].Status != want || answers[1].Status != http.StatusOK {
			t.Errorf("%q: answers %+v; want %d, and 200 for the part behind it", text, answers, want)
		}
	}
	if got := l.archived("a.log"); got != "good\n" {
		t.Errorf("archived %q; want the part that was whole", got)
	}
	if got := l.post("workflow", "/v1/runs/"+runUID+"/seal", `{"waitSeconds":0}`, `{"waitSeconds":9}`); got != http.StatusUnprocessableEntity {
		t.Errorf("a damaged request of JSON: %d; want 422", got)
	}
}

func (l *lab) postParts(body string) (answers []runapi.LogAnswer) {
	l.t.Helper()
	request, err := http.NewRequest(http.MethodPost, l.http.URL+"/v1/agent/logs/bft", strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer nor")
	response, err := l.http.Client().Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answers); err != nil {
		l.t.Fatal(err)
	}
	return answers
}

func TestADamagedResultReplacesNothing(t *testing.T) {
	l := newLab(t)
	l.plan()
	if err := l.as("workflow").PutResult(context.Background(), runUID, "tables.txt", strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPut, l.http.URL+"/v1/runs/"+runUID+"/files/results/tables.txt", strings.NewReader("nex"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer workflow")
	request.Header.Set(runapi.DigestHeader, runapi.ContentDigest(sha256.Sum256([]byte("new"))))
	response, err := l.http.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnprocessableEntity || l.file("results/tables.txt") != "old" {
		t.Errorf("answer %d, archived %q; want 422 and the old table", response.StatusCode, l.file("results/tables.txt"))
	}
}

func TestTheLogsOfALostNodeAreMissingFromTheirLastRecordToItsEnd(t *testing.T) {
	l := newLab(t)
	l.completeRun()
	sent := fmt.Sprintf(`{"ts":%d,"instance":"nor/bft","status":"sent","id":"1"}`+"\n", t0.Add(7500*time.Millisecond).UnixNano())
	if _, err := appendLog(t.Context(), l.as("nor"), "bft", "messages-1.jsonl", int64(len(event("sent", 1))), sent+`{"ts":1`); err != nil {
		t.Fatal(err)
	}
	reports := map[string]runapi.AgentReport{
		"nor": {App: "bft", Phase: runapi.AgentRunning, ArchivedUntilNanoseconds: t0.Add(5 * time.Second).UnixNano()},
		"prt": {App: "picture", Phase: runapi.AgentRunning, ArchivedUntilNanoseconds: t0.Add(6 * time.Second).UnixNano()},
	}
	for _, node := range []string{"nor", "prt"} {
		if err := l.as(node).Report(t.Context(), reports[node]); err != nil {
			t.Fatal(err)
		}
		if err := l.as("operator").Incident(t.Context(), runUID, runapi.Incident{What: "NodeFailed", Node: node, FromSeconds: 8, Reason: "gone"}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][2]float64{"logs of nor/bft": {7.5, 8 + podEndSeconds}, "logs of prt/picture": {6, 8 + podEndSeconds}}
	for _, gap := range l.seal().Gaps {
		if interval, asked := want[gap.What]; asked {
			if gap.FromSeconds == nil || gap.ToSeconds == nil || *gap.FromSeconds != interval[0] || *gap.ToSeconds != interval[1] {
				t.Errorf("%s: %v to %v; want %v", gap.What, gap.FromSeconds, gap.ToSeconds, interval)
			}
			delete(want, gap.What)
		}
	}
	if len(want) > 0 {
		t.Errorf("no gap of %v", want)
	}
}

func TestGapsThatAnAgentKnowsOfAreNamed(t *testing.T) {
	l := newLab(t)
	l.completeRun()
	report := runapi.AgentReport{App: "bft", Phase: runapi.AgentDone, Gaps: []runapi.AgentGap{
		{FromNanoseconds: t0.Add(3 * time.Second).UnixNano(), ToNanoseconds: t0.Add(4 * time.Second).UnixNano(), Reason: "the disk was full"}}}
	if err := l.as("nor").Report(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	for _, gap := range l.seal().Gaps {
		if gap.What == "logs of nor/bft" && gap.Node == "nor" && *gap.FromSeconds == 3 && *gap.ToSeconds == 4 && gap.Reason == "the disk was full" {
			return
		}
	}
	t.Error("the seal does not name what the agent said")
}

// On a volume of its own that is really full. Needs root.
func TestAFullVolumeRefusesLogsButStillTakesRecordsAndHealsWhenThereIsRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a volume of 8 MiB")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("no tmpfs can be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	filler := dir + "/filler"
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLab(t, func(c *Config) { c.Dir = dir })
	l.completeRun()
	line := strings.Repeat("x", 99) + "\n"
	piece := []byte(strings.Repeat(line, 5000))
	var offset int64
	var err error
	for err == nil && offset < 16<<20 {
		var size int64
		if size, err = appendLog(t.Context(), l.as("nor"), "bft", "stdout-1.log", offset, piece); err == nil {
			offset = size
		}
	}
	if status(err) != http.StatusInsufficientStorage || offset < 3<<20 {
		t.Fatalf("after %d bytes: %v; want 507 when most of 8 MiB are used", offset, err)
	}
	if _, err := appendLog(t.Context(), l.as("prt"), "picture", "stdout-1.log", 0, piece); status(err) != http.StatusInsufficientStorage {
		t.Errorf("another log: %v; want 507", err)
	}
	// Somebody makes room: a log goes on where it was, and nothing is missing of it.
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // until the server looks at the volume again
	if _, err := appendLog(t.Context(), l.as("prt"), "picture", "stdout-1.log", 0, piece); err != nil {
		t.Errorf("once there is room: %v", err)
	}
	manifest := l.seal()
	l.wantGap(manifest, "log logs/nor/bft/stdout-1.log", "nor", "volume is full")
	for _, gap := range manifest.Gaps {
		if gap.What == "log logs/nor/bft/stdout-1.log" && gap.FromSeconds == nil {
			t.Errorf("gap %+v; want the time from which the archive refused it", gap)
		}
		if gap.What == "log logs/prt/picture/stdout-1.log" {
			t.Errorf("gap %+v of a log that is whole", gap)
		}
	}
	if !bytes.Contains([]byte(l.file("manifest.json")), []byte("stdout-1.log")) {
		t.Error("the manifest is not on the full volume")
	}
}
