package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func captures(limit int64) func(*runapi.Plan) {
	return func(p *runapi.Plan) {
		p.Captures = []runapi.PlannedCapture{{Name: "run", Network: "vhf", Nodes: []string{"nor", "prt"}, LimitBytes: limit}}
	}
}

var norCapture = client.Capture{Name: "run", Network: "vhf", Node: "nor"}

// captureBytes returns a file with so many frames.
func captureBytes(frames int) []byte {
	content := pcapng.AppendSection(nil, "vhf", "a test")
	for i := range frames {
		content = pcapng.AppendPacket(content, int64(i), true, 100, make([]byte, 100))
	}
	return content
}

func (l *lab) capture(which client.Capture, offset int64, content []byte) error {
	_, err := l.as("radiod").AppendCapture(context.Background(), "host-a", runUID, which, offset, bytes.NewReader(content))
	return err
}

func (l *lab) radioLog(host string, lines ...any) {
	l.t.Helper()
	var text []byte
	for _, line := range lines {
		one, err := json.Marshal(line)
		if err != nil {
			l.t.Fatal(err)
		}
		text = append(append(text, one...), '\n')
	}
	state, err := l.as("radiod").AppendRadio(context.Background(), host, runUID, 0, bytes.NewReader(nil))
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.as("radiod").AppendRadio(context.Background(), host, runUID, state.Size, bytes.NewReader(text)); err != nil {
		l.t.Fatal(err)
	}
}

func TestOnlyRadiodWritesCapturesAndOnlyPlannedOnes(t *testing.T) {
	l := newLab(t)
	l.plan(captures(1000))
	content := captureBytes(3)
	for _, token := range []string{"", "operator", "workflow", "nor", "admin", "nonsense"} {
		_, err := l.as(token).AppendCapture(context.Background(), "host-a", runUID, norCapture, 0, bytes.NewReader(content))
		if s := status(err); s != http.StatusUnauthorized && s != http.StatusForbidden {
			t.Errorf("%q: %v, want it refused", token, err)
		}
	}
	for name, tc := range map[string]struct {
		which  client.Capture
		offset int64
		want   int
	}{
		"a capture that is not planned": {client.Capture{Name: "x", Network: "vhf", Node: "nor"}, 0, http.StatusForbidden},
		"a network that is not planned": {client.Capture{Name: "run", Network: "x", Node: "nor"}, 0, http.StatusForbidden},
		"a node that is not planned":    {client.Capture{Name: "run", Network: "vhf", Node: "hq"}, 0, http.StatusForbidden},
		"a name that leads elsewhere":   {client.Capture{Name: "..", Network: "vhf", Node: "nor"}, 0, http.StatusNotFound},
		"an offset behind the end":      {norCapture, 5, http.StatusConflict},
		"more than the plan allows":     {norCapture, captureSlack + 1000, http.StatusRequestEntityTooLarge},
		"no such offset":                {norCapture, -1, http.StatusBadRequest},
	} {
		err := l.capture(tc.which, tc.offset, content)
		if s := status(err); s != tc.want {
			t.Errorf("%s: %v, want status %d", name, err, tc.want)
		}
	}
	if err := l.capture(norCapture, 0, content); err != nil {
		t.Fatal(err)
	}
	if err := l.capture(norCapture, 0, content); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := l.capture(norCapture, 0, []byte("other bytes")); status(err) != http.StatusConflict {
		t.Errorf("other bytes: %v, want a conflict", err)
	}
	if err := l.capture(norCapture, int64(len(content)), make([]byte, maxCapturePiece+1)); status(err) != http.StatusRequestEntityTooLarge {
		t.Errorf("a piece that is too large: %v", err)
	}
}

func TestASealWaitsForCapturesAndNamesWhatIsMissing(t *testing.T) {
	l := newLab(t)
	l.plan(withT0, captures(0))
	l.report("nor", "bft", runapi.AgentDone)
	l.report("prt", "picture", runapi.AgentDone)
	began := runapi.CaptureSample{TimeNanoseconds: 1, Capture: "run", Network: "vhf", Node: "nor", Frames: 1}
	l.radioLog("host-a", began)
	if err := l.capture(norCapture, 0, captureBytes(1)); err != nil {
		t.Fatal(err)
	}
	sealed := make(chan runapi.Manifest, 1)
	go func() {
		manifest, err := l.as("workflow").Seal(context.Background(), runUID, runapi.SealRequest{WaitSeconds: 60})
		if err != nil {
			t.Error(err)
		}
		sealed <- manifest
	}()
	select {
	case <-sealed:
		t.Fatal("sealed while captures go on")
	case <-time.After(500 * time.Millisecond):
	}
	began.Frames, began.Ended, began.Dropped = 3, "detached", map[string]uint64{"spoolFull": 7}
	other := runapi.CaptureSample{TimeNanoseconds: 1, Capture: "run", Network: "vhf", Node: "prt", Ended: "stopped"}
	if err := l.capture(norCapture, 0, captureBytes(3)); err != nil { // the tail
		t.Fatal(err)
	}
	l.radioLog("host-a", began, other)
	manifest := <-sealed
	reasons := map[string]string{}
	for _, gap := range manifest.Gaps {
		if strings.HasPrefix(gap.What, "capture ") {
			reasons[gap.Node] += gap.Reason
		}
	}
	// The analysis names dropped frames; the server names a missing file.
	if len(reasons) != 1 || !strings.Contains(reasons["prt"], "has ended, and nothing of it is archived") {
		t.Errorf("gaps %q", reasons)
	}
	if err := l.capture(norCapture, int64(len(captureBytes(3))), captureBytes(1)); status(err) != http.StatusGone {
		t.Errorf("after the seal: %v, want gone", err)
	}
	for _, file := range manifest.Files {
		if file.Path == norCapture.Path() && (file.Bytes != int64(len(captureBytes(3))) || file.SHA256 == "") {
			t.Errorf("%+v", file)
		}
	}
}

func TestATornCaptureIsCutToWholeFramesAtTheSeal(t *testing.T) {
	l := newLab(t)
	l.plan(captures(0))
	whole := captureBytes(3)
	if err := l.capture(norCapture, 0, captureBytes(4)[:len(whole)+50]); err != nil {
		t.Fatal(err)
	}
	manifest, err := l.as("workflow").Seal(context.Background(), runUID, runapi.SealRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(manifest.Gaps), "the last frame was incomplete") {
		t.Errorf("gaps %v", manifest.Gaps)
	}
	body, err := l.as("admin").File(context.Background(), runUID, norCapture.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if content, err := io.ReadAll(body); err != nil || !bytes.Equal(content, whole) {
		t.Errorf("%d bytes, want the %d whole ones: %v", len(content), len(whole), err)
	}
}

func TestFollowersSeeALogGrowFromBeforeItIsThereToTheSeal(t *testing.T) {
	l := newLab(t)
	l.plan()
	body, err := l.as("admin").Follow(context.Background(), runUID, "logs/nor/bft/stdout-1.log", 3)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	lines := bufio.NewReader(body)
	offset := int64(0)
	for _, line := range []string{"oneone\n", "two\n", "three\n"} {
		if _, err := appendLog(context.Background(), l.as("nor"), "bft", "stdout-1.log", offset, line); err != nil {
			t.Fatal(err)
		}
		want := line[max(3-offset, 0):]
		if got, err := lines.ReadString('\n'); got != want || err != nil {
			t.Fatalf("followed %q, %v; want %q", got, err, want)
		}
		offset += int64(len(line))
	}
	if _, err := l.as("workflow").Seal(context.Background(), runUID, runapi.SealRequest{}); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("after the seal %q, %v; want the end", rest, err)
	}
	again, err := l.as("admin").Follow(context.Background(), runUID, "logs/nor/bft/stdout-1.log", 7)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if rest, err := io.ReadAll(again); string(rest) != "two\nthree\n" || err != nil {
		t.Errorf("followed after the seal %q, %v", rest, err)
	}
	for path, want := range map[string]int{"logs/nor/bft/none.log": http.StatusNotFound, "results/x": http.StatusBadRequest, "logs/.x/y": http.StatusBadRequest} {
		if _, err := l.as("admin").Follow(context.Background(), runUID, path, 0); status(err) != want {
			t.Errorf("following %s: %v, want status %d", path, err, want)
		}
	}
}

func TestFollowersOfACaptureEndWithIt(t *testing.T) {
	l := newLab(t)
	l.plan(captures(0))
	body, err := l.as("admin").Follow(context.Background(), runUID, norCapture.Path(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	content := captureBytes(5)
	if err := l.capture(norCapture, 0, content); err != nil {
		t.Fatal(err)
	}
	l.radioLog("host-a", runapi.CaptureSample{TimeNanoseconds: 1, Capture: "run", Network: "vhf", Node: "nor", Frames: 5, Ended: "stopped"})
	if got, err := io.ReadAll(body); !bytes.Equal(got, content) || err != nil {
		t.Errorf("followed %d bytes of %d, %v", len(got), len(content), err)
	}
}

// changingRights answers as the functions say at that moment.
type changingRights struct {
	authenticate atomic.Pointer[tokenUsers]
	authorize    atomic.Pointer[Authorizer]
}

func (c *changingRights) Authenticate(ctx context.Context, token string) (Identity, error) {
	return (*c.authenticate.Load()).Authenticate(ctx, token)
}

func (c *changingRights) Authorize(ctx context.Context, who Identity, verb, namespace string) (bool, error) {
	return (*c.authorize.Load()).Authorize(ctx, who, verb, namespace)
}

type unavailable struct{}

func (unavailable) Authorize(context.Context, Identity, string, string) (bool, error) {
	return false, errors.New("the API server is away")
}

func TestAFollowerEndsWithItsRightOrToken(t *testing.T) {
	for name, c := range map[string]struct {
		people tokenUsers
		rights Authorizer
		ends   bool
	}{
		"right taken away":               {everybody, rights{}, true},
		"token void":                     {tokenUsers{"nor": everybody["nor"]}, granted, true},
		"nothing changed":                {everybody, granted, false},
		"the API server does not answer": {everybody, unavailable{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Pointer[time.Time]
			at := time.Now()
			now.Store(&at)
			var kubernetes changingRights
			set := func(p tokenUsers, a Authorizer) { kubernetes.authenticate.Store(&p); kubernetes.authorize.Store(&a) }
			set(everybody, granted)
			l := newLab(t, func(config *Config) {
				config.Authenticator, config.Authorizer, config.Now = &kubernetes, &kubernetes, func() time.Time { return *now.Load() }
			})
			l.plan()
			body, err := l.as("viewer").Follow(t.Context(), runUID, "logs/nor/bft/stdout-1.log", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			later := at.Add(2 * time.Minute) // whatever was remembered is forgotten
			set(c.people, c.rights)
			now.Store(&later)
			if c.ends {
				if rest, err := io.ReadAll(body); len(rest) > 0 || err == nil {
					t.Errorf("followed %q, %v; want it broken off", rest, err)
				}
				return
			}
			time.Sleep(2 * followPoll)
			if _, err := appendLog(t.Context(), l.as("nor"), "bft", "stdout-1.log", 0, "more\n"); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(body).ReadString('\n'); line != "more\n" || err != nil {
				t.Errorf("followed %q, %v; want what came since", line, err)
			}
		})
	}
}

func TestFollowersThatGoLeaveRoomForOthersAndADeletedRunEndsThem(t *testing.T) {
	l := newLab(t)
	l.plan()
	follow := func(ctx context.Context) (io.ReadCloser, error) {
		return l.as("admin").Follow(ctx, runUID, "logs/nor/bft/stdout-1.log", 0)
	}
	ctx, cancel := context.WithCancel(context.Background())
	for i := range maxFollowersOfUser {
		if _, err := follow(ctx); err != nil {
			t.Fatalf("follower %d: %v", i, err)
		}
	}
	if _, err := follow(context.Background()); status(err) != http.StatusTooManyRequests {
		t.Errorf("one more of this user: %v, want it refused", err)
	}
	other, err := l.as("viewer").Follow(ctx, runUID, "logs/nor/bft/stdout-1.log", 0)
	if err != nil {
		t.Fatalf("another user: %v", err)
	}
	defer other.Close()
	cancel()
	var last io.ReadCloser
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if last, err = follow(context.Background()); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s those who went still take the room: %v", err)
		}
	}
	defer last.Close()
	if err := l.as("admin").Delete(context.Background(), runUID); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(last); len(rest) > 0 || err != nil {
		t.Errorf("following a deleted run: %q, %v", rest, err)
	}
}

func TestFilesAreReadFromAnOffset(t *testing.T) {
	l := newLab(t)
	l.plan()
	l.log("nor", "bft", "stdout-1.log", "0123456789")
	for query, want := range map[string]string{"?offset=4": "200 456789", "?offset=10": "200 ", "?offset=11": "416", "?offset=-1": "400", "?offset=x": "400", "?follow=x": "400"} {
		response, err := l.fetch("/v1/runs/" + runUID + "/files/logs/nor/bft/stdout-1.log" + query)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if got := fmt.Sprintf("%d %s", response.StatusCode, text); !strings.HasPrefix(got, want) || want[:3] == "200" && got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestCapturesLeaveRoomInTheQuotaForLogs(t *testing.T) {
	l := newLab(t, func(c *Config) { c.QuotaBytes = 4000 })
	l.plan(captures(0))
	var refused *client.Error
	if err := l.capture(norCapture, 0, captureBytes(25)); !errors.As(err, &refused) || refused.Status != http.StatusInsufficientStorage || !refused.Quota {
		t.Errorf("a capture of %d bytes in a quota of 4000: %v; want 507 that says it is the quota", len(captureBytes(25)), err)
	}
	l.log("nor", "bft", "stdout-1.log", strings.Repeat("x", 3900))
}

func TestFollowersAreBoundedInTotal(t *testing.T) {
	f := followers{byUser: map[string]int{}}
	for i := range maxFollowers {
		if err := f.add(strconv.Itoa(i)); err != nil {
			t.Fatalf("follower %d: %v", i, err)
		}
	}
	if err := f.add("one more"); err == nil {
		t.Error("one more is taken")
	}
	f.remove("0")
	if err := f.add("one more"); err != nil {
		t.Errorf("after one has gone: %v", err)
	}
}

func TestADamagedRecordStopsNeitherTheServerNorItsRun(t *testing.T) {
	for _, record := range []string{runFile, stateFile} {
		for name, content := range map[string]string{"torn": `{"schemaVersion": 1, "uid"`, "empty": "", "of other types": `{"schemaVersion": "x", "agents": 5, "nodes": 1}`} {
			t.Run(record+" "+name, func(t *testing.T) {
				l := newLab(t)
				l.plan()
				l.log("nor", "bft", "stdout-1.log", "kept")
				l.report("nor", "bft", runapi.AgentReady)
				l.stop()
				path := filepath.Join(l.dir, "team-nor", "quickstart", runUID, record)
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				l.start()
				runs, err := l.as("admin").Runs(context.Background(), "", "")
				if err != nil || len(runs) != 1 || !strings.Contains(runs[0].Problem, record) || strings.Contains(runs[0].Problem, "json:") {
					t.Fatalf("runs %+v, %v: want one that names %s, in plain words", runs, err, record)
				}
				if state, err := l.as("admin").State(context.Background(), runUID); err != nil || state.Problem != runs[0].Problem {
					t.Errorf("the run says %q, %v; want what the list says: %s", state.Problem, err, runs[0].Problem)
				}
				if _, err := os.Stat(path + ".damaged"); err != nil {
					t.Error(err)
				}
				l.plan() // the operator's next
				if _, err := l.as("nor").AgentPlan(context.Background(), "bft", 0); err != nil {
					t.Errorf("the agent's plan: %v", err)
				}
				if readAll(l.as("admin").File(context.Background(), runUID, "logs/nor/bft/stdout-1.log")) != nil {
					t.Error("the log is lost")
				}
			})
		}
	}
}

func TestADamagedManifestHidesNoFile(t *testing.T) {
	l := newLab(t)
	l.completeRun()
	l.seal()
	path := filepath.Join(l.dir, "team-nor", "quickstart", runUID, manifestFile)
	if err := os.WriteFile(path, []byte(`{"schemaVersion": 2, "files": [`), 0o600); err != nil {
		t.Fatal(err)
	}
	again := l.seal()
	files, err := l.as("admin").Files(context.Background(), runUID)
	if err != nil || !reflect.DeepEqual(files, again) {
		t.Fatalf("files %+v, %v: want those of the seal, %+v", files, err, again)
	}
	l.wantGap(files, manifestFile, "", "manifest.json: it is not one whole JSON object")
	for _, want := range []string{manifestFile, runFile, "logs/nor/bft/messages-1.jsonl"} {
		if !slices.ContainsFunc(files.Files, func(f runapi.ManifestFile) bool { return f.Path == want }) {
			t.Errorf("%s is not in the list: %+v", want, files.Files)
		}
	}
}

func TestDamagedResultsAreNamedAndStopNothing(t *testing.T) {
	l := newLab(t)
	l.plan()
	if err := l.as("workflow").PutResult(context.Background(), runUID, "results.json", strings.NewReader(`{"schemaVersion": 2}`)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.dir, "team-nor", "quickstart", runUID, resultsFile)
	if err := os.WriteFile(path, []byte(`{"schemaVersion": 2, "groups": 5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	state := l.plan(func(p *runapi.Plan) { p.Phase = v1alpha1.PhaseSucceeded })
	if state.Results != nil || state.Problem != "results/results.json: groups is a number" || state.Plan.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("results %+v, problem %q, phase %s: want none, one that names the file, and the last phase", state.Results, state.Problem, state.Plan.Phase)
	}
}

// slowReviews counts reviews, and answers on request.
type slowReviews struct {
	asked  atomic.Int64
	answer chan struct{}
}

func (s *slowReviews) Authenticate(context.Context, string) (Identity, error) {
	s.asked.Add(1)
	<-s.answer
	return Identity{Username: "somebody"}, nil
}

func TestConcurrentRequestsWithATokenShareOneReview(t *testing.T) {
	reviews := &slowReviews{answer: make(chan struct{})}
	cache := NewTokenCache(reviews, time.Now)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if who, err := cache.Authenticate(context.Background(), "token"); err != nil || who.Username != "somebody" {
				t.Errorf("%v, %v", who, err)
			}
		})
	}
	impatient, cancel := context.WithCancel(context.Background())
	for reviews.asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if _, err := cache.Authenticate(impatient, "token"); err == nil {
		t.Error("a request that was given up got an answer")
	}
	close(reviews.answer)
	wait.Wait()
	if asked := reviews.asked.Load(); asked != 1 {
		t.Errorf("%d reviews, want 1", asked)
	}
}

func TestAgentsAreFoundByTheirPodsAsPlansChange(t *testing.T) {
	l := newLab(t)
	l.plan()
	ask := func(token string) int {
		_, err := l.as(token).AgentPlan(context.Background(), "bft", 0)
		return status(err)
	}
	if s := ask("nor"); s != 0 {
		t.Errorf("nor: status %d", s)
	}
	l.plan(func(p *runapi.Plan) { p.Nodes[0].PodUID = "pod-other" })
	if s, other := ask("nor"), ask("stranger"); s != http.StatusForbidden || other != 0 {
		t.Errorf("after its pod was replaced: the old one %d, the new one %d", s, other)
	}
	l.stop()
	l.start()
	if s := ask("stranger"); s != 0 {
		t.Errorf("after a restart: status %d", s)
	}
	if err := l.as("admin").Delete(context.Background(), runUID); err != nil {
		t.Fatal(err)
	}
	if s := ask("stranger"); s != http.StatusForbidden {
		t.Errorf("after the run's end: status %d", s)
	}
	if len(l.server.runs.runsOfPod)+len(l.server.runs.podsOfRun) > 0 {
		t.Errorf("left %v", l.server.runs.runsOfPod)
	}
}

// FuzzCaptures writes random data at random places, and compares the planned files with plain slices.
func FuzzCaptures(f *testing.F) {
	f.Add("run", "vhf", "nor", "0", []byte("abc"))
	f.Add("run", "vhf", "nor", "2", []byte("cde"))
	f.Add("run", "vhf", "nor", "99999999999999999999", []byte{})
	f.Add("..", "..", "x", "-1", []byte{1})
	server, err := New(Config{Dir: f.TempDir(), Authenticator: everybody, Policy: Policy{RadiodUser: radiodUser},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		f.Fatal(err)
	}
	plan := examplePlan()
	captures(1000)(&plan)
	run, err := server.runs.ensure(keyOf(plan))
	if err == nil {
		err = run.putPlan(plan)
	}
	if err != nil {
		f.Fatal(err)
	}
	model := map[string][]byte{}
	f.Fuzz(func(t *testing.T, name, network, node, offset string, content []byte) {
		path := "/v1/radio/host-a/" + runUID + "/captures/" + escape(name) + "/" + escape(network) + "/" + escape(node) + "?offset=" + escape(offset)
		request, err := http.NewRequest(http.MethodPost, "http://server"+path, bytes.NewReader(content))
		if err != nil {
			return
		}
		request.RemoteAddr = "192.0.2.1:1"
		request.Header.Set("Authorization", "Bearer radiod")
		server.limit, server.reviews = limiter{perSecond: rate.Inf}, limiter{perSecond: rate.Inf}
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		p := capturePath(name, network, node)
		have := model[p]
		at, err := strconv.ParseInt(offset, 10, 64)
		if offset == "" {
			at, err = 0, nil
		}
		planned := name == "run" && network == "vhf" && (node == "nor" || node == "prt")
		good := planned && err == nil && at >= 0 && at <= int64(len(have)) && at+int64(len(content)) <= 1000+captureSlack &&
			bytes.HasPrefix(content, have[at:min(int64(len(have)), at+int64(len(content)))])
		if good != (answer.Code == http.StatusOK) || answer.Code >= 500 {
			t.Fatalf("%s with %d bytes to %d there: %d %s; good %v", path, len(content), len(have), answer.Code, answer.Body, good)
		}
		if good {
			model[p] = append(have[:at:at], append(bytes.Clone(content), have[min(int64(len(have)), at+int64(len(content))):]...)...)
		}
		files, err := run.files.Files()
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasPrefix(file.Path, "captures/") && file.Size != int64(len(model[file.Path])) {
				t.Fatalf("%s has %d bytes, want %d", file.Path, file.Size, len(model[file.Path]))
			}
		}
	})
}

func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}
