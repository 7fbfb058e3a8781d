package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// liveCluster is a live cluster that is up: a headquarters with a broker, three vehicles.
func liveCluster() *v1alpha1.Experiment {
	e := running()
	e.Name, e.Spec.Duration = "bft-live", ""
	e.Spec.Networks = []v1alpha1.Network{
		{Name: "wan", Waveform: "tactical-1", Subnet: "198.18.9.0/24", Links: []v1alpha1.GroupLink{{From: "hq", To: "veh", LinkModel: v1alpha1.LinkModel{Delay: "5ms"}}}},
		{Name: "lan", Link: &v1alpha1.LinkModel{Rate: ptr(v1alpha1.DataRate("2Mbit")), Loss: "1%"}, Subnet: "198.18.8.0/24"},
	}
	e.Spec.Apps = []v1alpha1.App{
		{Name: "bft", Instances: 2, Publisher: &v1alpha1.Publisher{Protocol: "mqtt", To: "broker", Period: "1s"}},
		{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}},
	}
	e.Spec.Nodes = []v1alpha1.Node{
		{Name: "hq", Networks: []string{"wan", "lan"}, Apps: []string{"bft", "broker"}},
		{Name: "veh", Count: ptr(int32(3)), Networks: []string{"wan"}},
	}
	e.Spec.Timeline = []v1alpha1.TimelineEntry{{At: "10s", Set: []v1alpha1.RadioChange{{Network: "wan", Link: &v1alpha1.LinkPatch{Loss: ptr(v1alpha1.Percent("3%"))}}}}}
	return e
}

// platform plays the operator, radiod and the server for one run.
type platform struct {
	mu    sync.Mutex
	state runapi.State
	files map[string]string
	// growing are files that followers wait on until done is closed.
	growing map[string]bool
	done    chan struct{}
	// broken breaks so many connections of followers after their first bytes.
	broken int
	kube   client.Client
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) } // a client that is gone needs no answer
	file, isFile := strings.CutPrefix(r.URL.Path, "/v1/runs/5f0c/files/")
	switch {
	case r.URL.Path == "/v1/runs":
		answer([]runapi.RunSummary{{Name: r.URL.Query().Get("name"), UID: "5f0c"}})
	case r.URL.Path == "/v1/runs/5f0c":
		answer(p.state)
	case r.URL.Path == "/v1/runs/5f0c/files":
		p.mu.Lock()
		defer p.mu.Unlock()
		manifest := runapi.Manifest{UID: "5f0c"}
		for path, content := range p.files {
			manifest.Files = append(manifest.Files, runapi.ManifestFile{Path: path, Bytes: int64(len(content))})
		}
		answer(manifest)
	case isFile:
		p.serveFile(w, r, file)
	default:
		w.WriteHeader(http.StatusNotFound)
		answer(runapi.Problem{Error: "no such path"})
	}
}

func (p *platform) serveFile(w http.ResponseWriter, r *http.Request, file string) {
	offset := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("offset"), &offset)
	capture := strings.HasPrefix(file, "captures/")
	follow := r.URL.Query().Get("follow") == "true" && (p.growing[file] || capture)
	p.mu.Lock()
	content, found := p.files[file]
	breaks := follow && p.broken > 0
	if breaks {
		p.broken--
	}
	p.mu.Unlock()
	if !found && !capture {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(runapi.Problem{Error: "no such file"})
		return
	}
	if breaks {
		_, _ = io.WriteString(w, content[offset:min(len(content), offset+3)])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, content[offset:])
	if !follow {
		return
	}
	for sent, ended := len(content), false; ; {
		_ = http.NewResponseController(w).Flush()
		if ended {
			return
		}
		select {
		case <-p.done:
			ended = true
		case <-r.Context().Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
		p.mu.Lock()
		content := p.files[file]
		p.mu.Unlock()
		_, _ = io.WriteString(w, content[sent:])
		sent = len(content)
	}
}

// add to an archived file.
func (p *platform) add(file, content string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[file] += content
}

// cluster with the platform and objects; the operator begins captures and carries out changes at once.
func (p *platform) cluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.kube = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			condition := metav1.Condition{Status: metav1.ConditionTrue, Reason: "Done"}
			switch o := object.(type) {
			case *v1alpha1.Capture:
				condition.Type = v1alpha1.ConditionCapturing
				if o.Spec.Filter == "wrong" {
					condition.Status, condition.Message = metav1.ConditionFalse, `spec.filter: Invalid value: "wrong": want one of tcpdump's`
				}
				o.Status.Conditions = []metav1.Condition{condition}
			case *v1alpha1.LiveChange:
				condition.Type = v1alpha1.ConditionApplied
				o.Status.Conditions = []metav1.Condition{condition}
				o.Status.AppliesAt = ptr(metav1.NewMicroTime(noon.Add(62500 * time.Millisecond)))
			}
			return c.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			err := c.Delete(ctx, object, options...)
			if _, isCapture := object.(*v1alpha1.Capture); isCapture && err == nil {
				p.captureEnds(object.GetName())
			}
			return err
		},
	}).Build()
	return &cluster{namespace: "team-nor", kube: p.kube, archive: runclient.New(server.URL, server.Client(), nil)}
}

// captureEnds ships what is left, and counts.
func (p *platform) captureEnds(name string) {
	p.add("captures/"+name+"/wan/hq.pcapng", string(append(section(), packet(64)...)))
	sample, _ := json.Marshal(runapi.CaptureSample{Capture: name, Network: "wan", Node: "hq", Frames: 3, Bytes: 192, Dropped: map[string]uint64{"ringFull": 2}, Ended: "stopped"})
	p.add("radio/host-1.jsonl", string(sample)+"\n")
	close(p.done)
}

func newPlatform() *platform {
	return &platform{
		state: runapi.State{Plan: runapi.Plan{Name: "bft-live", Nodes: []runapi.PlannedNode{
			{Name: "hq", Apps: []runapi.PlannedApp{
				{Name: "bft", Instances: []string{"hq/bft/1", "hq/bft/2"}}, {Name: "broker", Instances: []string{"hq/broker"}}}},
			{Name: "veh-1"},
		}, Waveforms: map[string]v1alpha1.WaveformSpec{"tactical-1": {Link: &v1alpha1.LinkModel{Rate: ptr(v1alpha1.DataRate("9.8kbit")), Delay: "100ms", Loss: "1%", Limit: 1000}}}}},
		files: map[string]string{
			"logs/hq/broker/stdout-1.log":     "broker up\none client\n",
			"logs/hq/broker/stderr-1.log":     "a warning\n",
			"logs/hq/bft/messages-1.jsonl":    fmt.Sprintf(`{"ts":%d,"id":"old"}`+"\n"+`{"ts":%d,"id":"new"}`+"\n", time.Now().Add(-time.Hour).UnixNano(), time.Now().UnixNano()),
			"logs/hq/bft/messages-2.jsonl":    `{"ts":1,"id":"two"}` + "\n",
			"logs/hq/bft/agent.jsonl":         `{"ts":1,"event":"ready"}` + "\n",
			"logs/hq/broker/agent.jsonl":      `{"ts":1,"event":"ready"}` + "\n",
			"radio/host-1.jsonl":              `{"ts":1,"network":"wan","node":"hq"}` + "\n",
			"captures/run/wan/hq.pcapng":      "",
			"logs/veh-1/idle/agent.jsonl":     "",
			"results/deliveries.csv":          "id\n",
			"logs/hq/broker/unrelated-1.file": "no stream",
		},
		growing: map[string]bool{}, done: make(chan struct{}),
	}
}

func TestLogsOfANode(t *testing.T) {
	for name, c := range map[string]struct {
		where     string
		o         logsOptions
		out, errs string
	}{
		"one instance needs no name": {"hq/broker", logsOptions{streams: []string{"stdout"}, tail: -1}, "broker up\none client\n", ""},
		"both streams, as they were": {"hq/broker", logsOptions{streams: []string{"stdout", "stderr"}, tail: -1}, "broker up\none client\n", "a warning\n"},
		"stderr alone is the output": {"hq/broker", logsOptions{streams: []string{"stderr"}, tail: -1}, "a warning\n", ""},
		"the end of it":              {"hq/broker", logsOptions{streams: []string{"stdout"}, tail: 1}, "one client\n", ""},
		"one of several":             {"hq/bft", logsOptions{streams: []string{"messages"}, instance: 2, tail: -1}, `{"ts":1,"id":"two"}` + "\n", ""},
		"agents of all apps": {"hq", logsOptions{streams: []string{"agent"}, tail: -1},
			`hq/bft    | {"ts":1,"event":"ready"}` + "\n" + `hq/broker | {"ts":1,"event":"ready"}` + "\n", ""},
		"nothing there": {"hq/bft", logsOptions{streams: []string{"stdout"}, tail: -1}, "",
			"Nothing was written to stdout of hq/bft so far. There is something in --stream messages, --stream agent.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			err := newPlatform().cluster(t, liveCluster()).logs(t.Context(), c.where, c.o, newLogWriter(&out, &errs))
			if err != nil || out.String() != c.out || errs.String() != c.errs {
				t.Errorf("error %v, output:\n%s\nwant:\n%s\nerrors:\n%s\nwant:\n%s", err, out.String(), c.out, errs.String(), c.errs)
			}
		})
	}
}

// fullDisk is a file that takes nothing.
func fullDisk(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func TestLogsThatCannotBeWrittenAreAnError(t *testing.T) {
	for name, o := range map[string]logsOptions{"all": {tail: -1}, "the end": {tail: 1}, "as they come": {tail: -1, follow: true}} {
		t.Run(name, func(t *testing.T) {
			p := newPlatform()
			close(p.done)
			o.streams = []string{"stdout"}
			err := p.cluster(t, liveCluster()).logs(t.Context(), "hq/broker", o, newLogWriter(fullDisk(t), io.Discard))
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%v; want that the disk is full", err)
			}
		})
	}
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, args := range [][]string{
		{"validate", "../../scenarios/quickstart/experiment.yaml"},
		{"scenario", "inspect", chainFile(t, chain)},
	} {
		var errs bytes.Buffer
		code := Main("", append([]string{"vignette"}, args...), strings.NewReader(""), fullDisk(t), &errs)
		if code != exitFailure || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("vignette %q: exit code %d, %q; want that the disk is full", args, code, errs.String())
		}
	}
}

func TestLogsSinceShowsNewEventsOnly(t *testing.T) {
	var out bytes.Buffer
	o := logsOptions{streams: []string{"messages"}, instance: 1, tail: -1, since: time.Minute}
	err := newPlatform().cluster(t, liveCluster()).logs(t.Context(), "hq/bft", o, newLogWriter(&out, &out))
	if err != nil || !strings.Contains(out.String(), "new") || strings.Contains(out.String(), "old") {
		t.Errorf("error %v, output:\n%s", err, out.String())
	}
}

func TestLogsOfADeletedExperimentComeFromTheArchive(t *testing.T) {
	var out bytes.Buffer
	o := logsOptions{experiment: "gone", streams: []string{"stdout"}, tail: -1}
	if err := newPlatform().cluster(t).logs(t.Context(), "hq/broker", o, newLogWriter(&out, &out)); err != nil || out.String() != "broker up\none client\n" {
		t.Errorf("error %v, output %q", err, out.String())
	}
}

// arriving is a writer that tells when something has been written.
type arriving struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func (a *arriving) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case a.news <- struct{}{}:
	default:
	}
	return a.text.Write(p)
}

func (a *arriving) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}

func (a *arriving) waitFor(t *testing.T, text string) {
	t.Helper()
	for deadline := time.After(30 * time.Second); !strings.Contains(a.String(), text); {
		select {
		case <-a.news:
		case <-deadline:
			t.Fatalf("%q has not come; so far:\n%s", text, a.String())
		}
	}
}

func newArriving() *arriving { return &arriving{news: make(chan struct{}, 1)} }

func TestFollowedLogsGoOnOverALostConnectionToTheEndOfTheRun(t *testing.T) {
	p := newPlatform()
	p.growing["logs/hq/broker/stdout-1.log"], p.broken = true, 1
	out, errs := newArriving(), newArriving()
	c := p.cluster(t, liveCluster())
	ended := make(chan error, 1)
	go func() {
		ended <- c.logs(context.Background(), "hq/broker", logsOptions{streams: []string{"stdout"}, tail: -1, follow: true}, newLogWriter(out, errs))
	}()
	out.waitFor(t, "one client\n")
	p.add("logs/hq/broker/stdout-1.log", "another client\n")
	close(p.done)
	if err := <-ended; err != nil || out.String() != "broker up\none client\nanother client\n" {
		t.Errorf("error %v, output:\n%s", err, out.String())
	}
	if !strings.Contains(errs.String(), "connection to the archive lost, retrying") {
		t.Errorf("errors %q; want the lost connection named", errs.String())
	}
}

func TestALineThatIsIncompleteYetIsFollowedToItsEnd(t *testing.T) {
	const file = "logs/hq/broker/stdout-1.log"
	p := newPlatform()
	p.growing[file], p.files[file] = true, "broker up\none cl"
	out := newArriving()
	c := p.cluster(t, liveCluster())
	ended := make(chan error, 1)
	go func() {
		ended <- c.logs(context.Background(), "hq/broker", logsOptions{streams: []string{"stdout"}, tail: 1, follow: true}, newLogWriter(out, out))
	}()
	out.waitFor(t, "\n")
	p.add(file, "ient\n")
	close(p.done)
	if err := <-ended; err != nil || out.String() != "broker up\none client\n" {
		t.Errorf("error %v, output:\n%s", err, out.String())
	}
}

func TestCtrlCEndsFollowedLogs(t *testing.T) {
	p := newPlatform()
	p.growing["logs/hq/broker/stdout-1.log"] = true
	ctx, cancel := context.WithCancel(t.Context())
	out := newArriving()
	ended := make(chan error, 1)
	c := p.cluster(t, liveCluster())
	go func() {
		ended <- c.logs(ctx, "hq/broker", logsOptions{streams: []string{"stdout"}, tail: -1, follow: true}, newLogWriter(out, out))
	}()
	out.waitFor(t, "one client\n")
	cancel()
	if err := <-ended; err != exit(exitDetached) {
		t.Errorf("error %v; want exit code %d and no word", err, exitDetached)
	}
}

// section and packet are blocks of a pcapng file.
func section() []byte { return pcapng.AppendSection(nil, "wan", "hq") }

func packet(length int) []byte {
	return pcapng.AppendPacket(nil, 1e9, true, length, make([]byte, length))
}

func TestCaptureEndsWithCtrlCAndKeepsWhatWasUnderWay(t *testing.T) {
	p := newPlatform()
	c := p.cluster(t, liveCluster())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	out, notes := newArriving(), newArriving()
	go func() {
		o := captureOptions{file: "-", limit: "1Mi", filter: "tcp", snapLength: 96}
		ended <- c.capture(ctx, "hq", "wan", o, out, notes)
	}()
	notes.waitFor(t, "Capturing wan of hq")
	var captures v1alpha1.CaptureList
	if err := p.kube.List(t.Context(), &captures); err != nil || len(captures.Items) != 1 {
		t.Fatalf("captures %v, %v; want one", captures.Items, err)
	}
	capture := captures.Items[0]
	if s := capture.Spec; s.Experiment != "bft-live" || s.Network != "wan" || len(s.Nodes) != 1 || s.Nodes[0] != "hq" || s.Filter != "tcp" || *s.SnapLengthBytes != 96 || s.Limit.String() != "1Mi" {
		t.Errorf("capture %+v", s)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != string(append(section(), packet(64)...)) {
		t.Errorf("output of %d bytes; want what was shipped after Ctrl-C", len(got))
	}
	if want := "1 frame of 3 captured, 208 B, 2 dropped (ringFull 2)."; !strings.Contains(notes.String(), want) {
		t.Errorf("notes:\n%s\nwant %q", notes.String(), want)
	}
	if err := p.kube.Get(t.Context(), client.ObjectKeyFromObject(&capture), &capture); !apierrors.IsNotFound(err) {
		t.Errorf("the Capture after the end: %v; want it deleted", err)
	}
}

// gone is a pipe whose reader has gone.
type gone struct{}

func (gone) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

func TestAReaderThatGoesAwayEndsTheCapture(t *testing.T) {
	p := newPlatform()
	c := p.cluster(t, liveCluster())
	notes := newArriving()
	ended := make(chan error, 1)
	go func() {
		ended <- c.capture(context.Background(), "hq", "wan", captureOptions{file: "-", limit: "1Mi"}, gone{}, notes)
	}()
	notes.waitFor(t, "Capturing wan of hq")
	p.frames(t, "wan/hq", section())
	if err := <-ended; err != nil {
		t.Errorf("error %v; want none, as a Wireshark that was closed is no failure", err)
	}
}

// frames ships bytes of the capture that is under way.
func (p *platform) frames(t *testing.T, where string, blocks []byte) {
	t.Helper()
	var captures v1alpha1.CaptureList
	if err := p.kube.List(t.Context(), &captures); err != nil || len(captures.Items) != 1 {
		t.Fatalf("captures %v, %v; want one", captures.Items, err)
	}
	p.add("captures/"+captures.Items[0].Name+"/"+where+".pcapng", string(blocks))
}

func TestBlocksArriveCompleteAndAtOnceHoweverTheyAreCut(t *testing.T) {
	header, first, second := int(section()[4]), len(section()), len(section())+len(packet(64))
	whole := append(append(section(), packet(64)...), packet(1400)...)
	for name, reader := range map[string]io.Reader{"at once": bytes.NewReader(whole), "byte by byte": iotest.OneByteReader(bytes.NewReader(whole)), "in halves": iotest.HalfReader(bytes.NewReader(whole))} {
		t.Run(name, func(t *testing.T) {
			out := &cuts{}
			if err := copyBlocks(out, reader, &pcapng.BlockScanner{}); err != nil || !bytes.Equal(out.all, whole) {
				t.Errorf("error %v, %d bytes; want all %d", err, len(out.all), len(whole))
			}
			for _, at := range out.at {
				if at != header && at != first && at != second && at != len(whole) {
					t.Errorf("flushed at byte %d, within a block", at)
				}
			}
		})
	}
	t.Run("torn", func(t *testing.T) {
		out := &cuts{}
		if err := copyBlocks(out, bytes.NewReader(whole[:len(whole)-5]), &pcapng.BlockScanner{}); err != nil || len(out.all) != second {
			t.Errorf("error %v, %d bytes; want the whole blocks alone", err, len(out.all))
		}
	})
	t.Run("a pipe that stays open", func(t *testing.T) {
		in, feed := io.Pipe()
		defer feed.Close()
		out := newArriving()
		go func() { _ = copyBlocks(out, in, &pcapng.BlockScanner{}) }()
		if _, err := feed.Write(whole[:second+7]); err != nil {
			t.Fatal(err)
		}
		out.waitFor(t, string(whole[:second]))
	})
	t.Run("no capture", func(t *testing.T) {
		if err := copyBlocks(&cuts{}, strings.NewReader("this is no capture at all"), &pcapng.BlockScanner{}); err == nil || !strings.Contains(err.Error(), "damaged: block at offset 0") {
			t.Errorf("error %v", err)
		}
	})
}

// cuts remembers where writes ended.
type cuts struct {
	all []byte
	at  []int
}

func (c *cuts) Write(p []byte) (int, error) {
	c.all = append(c.all, p...)
	c.at = append(c.at, len(c.all))
	return len(p), nil
}

func TestALostConnectionIsToldOnce(t *testing.T) {
	tries, notes := 0, 0
	f := &follower{note: func(string) { notes++ }, wait: func() error { return nil }}
	f.open = func(int64) (io.ReadCloser, error) {
		if tries++; tries%4 != 0 {
			return nil, errors.New("refused")
		}
		return io.NopCloser(io.MultiReader(strings.NewReader("line\n"), iotest.ErrReader(errors.New("reset")))), nil
	}
	if n, err := io.ReadFull(f, make([]byte, 10)); n != 10 || err != nil || notes != 2 {
		t.Errorf("%d bytes, %v, %d notes; want 2 lines, and a note for each loss", n, err, notes)
	}
}

func TestAShellEntersTheAppThatMayHaveOne(t *testing.T) {
	e := liveCluster()
	e.Spec.Apps = append(e.Spec.Apps, v1alpha1.App{Name: "send", Publisher: &v1alpha1.Publisher{}}, v1alpha1.App{Name: "chat", Prosody: &v1alpha1.Prosody{}})
	e.Spec.Nodes = append(e.Spec.Nodes, v1alpha1.Node{Name: "base", Apps: []string{"send", "chat"}})
	s, err := expand(e)
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]string{"hq": "broker", "veh-2": "idle", "base": "chat"} {
		n, err := s.node(node)
		if got := s.shellContainer(n); err != nil || got != want {
			t.Errorf("container of %s is %s, %v; want %s", node, got, err, want)
		}
	}
}

func TestAShellPassesTheExitCodeOnAndExplainsWhatAnImageLacks(t *testing.T) {
	s, err := expand(liveCluster())
	if err != nil {
		t.Fatal(err)
	}
	node, _ := s.node("hq")
	if err := explainExec(utilexec.CodeExitError{Err: errors.New("x"), Code: 42}, s, node, "broker", nil); err != exit(42) {
		t.Errorf("exit code: %v; want 42", err)
	}
	missing := errors.New(`exec failed: unable to start container process: exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown`)
	if err := explainExec(missing, s, node, "bft", nil); !strings.Contains(err.Error(), "image of app bft has no shell: use --toolbox, or your own image") ||
		!strings.Contains(err.Error(), "(kubectl debug -n team-nor -it bft-live-hq --profile=restricted --image=IMAGE --target=bft), or another container of node hq with --app (broker)") {
		t.Errorf("without a shell: %v", err)
	}
	if err := explainExec(missing, s, node, "bft", []string{"/bin/sh"}); !strings.Contains(err.Error(), "image of app bft has no program /bin/sh") {
		t.Errorf("without the program: %v", err)
	}
}

func TestTheWindowsSizeIsToldAtTheStartAndWhenItChanges(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answers := []int{80, 80, 120}
	queue := &windowSizes{ctx: ctx, size: func() (int, int, error) {
		width := answers[0]
		answers = answers[1:]
		return width, 24, nil
	}}
	for _, want := range []uint16{80, 120} {
		if got := queue.Next(); got == nil || *got != (remotecommand.TerminalSize{Width: want, Height: 24}) {
			t.Fatalf("size %v; want width %d", got, want)
		}
	}
	cancel()
	if got := queue.Next(); got != nil {
		t.Errorf("size %v after the end; want none", got)
	}
}

func TestALiveClusterHasNoProgressAndIsWatchedUntilItIsUp(t *testing.T) {
	e := liveCluster()
	e.Status.Progress, e.Status.Step = "0%", ""
	counters := &runapi.Counters{Sent: 3, Received: 4}
	if got, want := progressLine(e, counters, noon.Add(31*time.Second), true), "bft-live  Running         0:31  nodes 2/2  sent 3  received 4"; got != want {
		t.Errorf("line %q; want %q", got, want)
	}
	if text := description(e, counters, noon.Add(31*time.Second)); !strings.Contains(text, "0:31, up until vignette stop") || strings.Contains(text, "Progress") {
		t.Errorf("description:\n%s", text)
	}
	out, err := watched(t.Context(), t, e)
	if err != nil || !strings.Contains(out, "bft-live is up, and stays so until it is stopped") || !strings.Contains(out, "vignette capture -n team-nor -e bft-live hq wan -w - | wireshark") {
		t.Errorf("error %v, output:\n%s", err, out)
	}
	if isUp(e, noon.Add(-time.Second)) {
		t.Error("a live cluster is up before T0; want it watched until then")
	}
}

func TestTheMessageIsShownBesideTheCounters(t *testing.T) {
	e := running()
	e.Status.Message = "node prt was lost"
	if line := progressLine(e, &runapi.Counters{Sent: 1}, noon, false); !strings.HasSuffix(line, "sent 1  received 0  node prt was lost") {
		t.Errorf("line %q; want the message too", line)
	}
}

func TestFilesOfARunAreListedAndFetched(t *testing.T) {
	c := testCluster(t, analysed(t))
	var out bytes.Buffer
	if err := c.results(t.Context(), "quickstart", resultsOptions{output: "table", files: true}, &out, &out); err != nil || !strings.Contains(out.String(), "results/groups.csv") {
		t.Errorf("--files: %v\n%s", err, out.String())
	}
	out.Reset()
	if err := c.results(t.Context(), "quickstart", resultsOptions{output: "table", get: "results/groups.csv"}, &out, &out); err != nil || out.String() != "group,sent\nall,240\n" {
		t.Errorf("--get: %v\n%s", err, out.String())
	}
	err := c.results(t.Context(), "quickstart", resultsOptions{output: "table", get: "nothing"}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "vignette results -n team-nor quickstart --files lists those it has") {
		t.Errorf("--get of what is not there: %v", err)
	}
}

func TestNodesAppsAndNetworksAreCompleted(t *testing.T) {
	s, err := expand(liveCluster())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got  []string
		want string
	}{
		"nodes":             {s.nodeApps(""), "hq veh-1 veh-2 veh-3"},
		"apps of nodes":     {withPrefix("hq/", s.nodeApps("hq/")), "hq/bft hq/broker"},
		"apps of a node":    {s.appsOf([]string{"veh-1"}), "idle"},
		"networks of nodes": {s.networksOf("veh-1"), "wan"},
		"networks":          {withPrefix("w", s.networkNames()), "wan"},
		"groups":            {s.groupNames(), "hq veh veh-1 veh-2 veh-3"},
	} {
		if strings.Join(c.got, " ") != c.want {
			t.Errorf("%s: %v; want %s", name, c.got, c.want)
		}
	}
}

func TestErrorsOfLiveCommandsSayWhatToDoNext(t *testing.T) {
	over, queued, second, third := finished(), liveCluster(), liveCluster(), liveCluster()
	queued.Status.Phase, queued.Status.Message, second.Name = v1alpha1.PhaseQueued, "waiting for room", "second"
	third.Status.Phase, third.Name = v1alpha1.PhaseQueued, "third"
	ctx := t.Context()
	shell := func(experiment, node, app string) func(*cluster) error {
		return func(c *cluster) error {
			return c.shell(ctx, shellPlace{experiment: experiment, node: node, app: app}, nil, streams{})
		}
	}
	capture := func(node, network string, o captureOptions) func(*cluster) error {
		o.file, o.limit = "-", "1Mi"
		return func(c *cluster) error { return c.capture(ctx, node, network, o, io.Discard, io.Discard) }
	}
	logs := func(where string, o logsOptions) func(*cluster) error {
		return func(c *cluster) error { return c.logs(ctx, where, o, newLogWriter(io.Discard, io.Discard)) }
	}
	set := func(network, from string) func(*cluster) error {
		w := &wish{network: network, from: from, assignments: []assignment{{"delay", "1s"}}}
		return func(c *cluster) error { return c.set(ctx, "", w, io.Discard) }
	}
	for name, c := range map[string]struct {
		objects []client.Object
		do      func(*cluster) error
		want    string
	}{
		"no such experiment":       {nil, shell("ghost", "hq", ""), "there is no experiment ghost in namespace team-nor any more, but the archive has 1 of its runs: vignette results"},
		"no experiment at all":     {nil, shell("", "hq", ""), "there is no experiment in namespace team-nor: start one with vignette run FILE, or name another namespace with -n"},
		"none runs":                {[]client.Object{over}, shell("", "hq", ""), "no experiment runs in namespace team-nor: start one with vignette run FILE, or name one that has ended with -e (first)"},
		"several run":              {[]client.Object{liveCluster(), second}, shell("", "hq", ""), "2 experiments run in namespace team-nor: choose one, such as vignette shell hq -e bft-live (one of bft-live, second)"},
		"it has ended":             {[]client.Object{over}, shell("first", "hq", ""), "experiment first has ended, it succeeded: start a new one with vignette run; what it left: vignette results -n team-nor first"},
		"it does not run yet":      {[]client.Object{queued}, shell("", "hq", ""), "is not running, it is Queued (waiting for room): try again when vignette status -n team-nor bft-live says Running"},
		"one runs, one is queued":  {[]client.Object{liveCluster(), third}, shell("", "prt", ""), "there is no node prt in experiment bft-live"},
		"several are queued":       {[]client.Object{queued, third}, shell("", "hq", ""), "no experiment runs in namespace team-nor yet, as these wait: bft-live, third; vignette status -n team-nor shows why"},
		"no such node":             {[]client.Object{liveCluster()}, shell("", "prt", ""), "there is no node prt in experiment bft-live: want one of hq, veh-1, veh-2, veh-3"},
		"no such app":              {[]client.Object{liveCluster()}, shell("", "hq", "brokr"), "has no app brokr: want one of bft, broker"},
		"the pod is gone":          {[]client.Object{liveCluster()}, shell("", "hq", ""), "node hq of experiment bft-live is not up, its pod is gone: vignette status -n team-nor bft-live shows why"},
		"no such network":          {[]client.Object{liveCluster()}, capture("hq", "vhf", captureOptions{}), "there is no network vhf in experiment bft-live: want one of wan, lan"},
		"a node off the network":   {[]client.Object{liveCluster()}, capture("veh-1", "lan", captureOptions{}), "node veh-1 is not on network lan: its networks are wan"},
		"a filter that is wrong":   {[]client.Object{liveCluster()}, capture("hq", "wan", captureOptions{filter: "wrong"}), `the capture was refused: --filter "wrong": want one of tcpdump's`},
		"logs of no node":          {[]client.Object{liveCluster()}, logs("prt", logsOptions{streams: streamNames}), "there is no node prt in experiment bft-live: want one of hq, veh-1"},
		"logs of no app":           {[]client.Object{liveCluster()}, logs("hq/ghost", logsOptions{streams: streamNames}), "has no app ghost: want one of bft, broker"},
		"logs of no instance":      {[]client.Object{liveCluster()}, logs("hq", logsOptions{streams: streamNames[:1], instance: 9}), "--instance 9: no app of hq has as many instances"},
		"logs of an empty node":    {[]client.Object{liveCluster()}, logs("veh-1", logsOptions{streams: streamNames}), "runs no app, so that it has no logs: name another node"},
		"logs of no run":           {nil, logs("hq", logsOptions{uid: "nope", streams: streamNames}), "the archive has no run nope, or not yet: vignette status"},
		"a change of no network":   {[]client.Object{liveCluster()}, set("vhf", ""), "there is no network vhf"},
		"a change from no group":   {[]client.Object{liveCluster()}, set("wan", "prt"), "--from prt: there is no such group or node in experiment bft-live: want one of hq, veh"},
		"several, for changes too": {[]client.Object{liveCluster(), second}, set("wan", ""), "such as vignette set wan delay=1s -e bft-live"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.do(newPlatform().cluster(t, c.objects...)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v; want %s", err, c.want)
			}
		})
	}
}

func TestWrongArgumentsSayWhatToType(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no command of that name":  {[]string{"captur"}, `vignette has no command "captur": did you mean capture? see vignette --help`},
		"a misspelt command":       {[]string{"runn"}, `vignette has no command "runn": did you mean run? see vignette --help`},
		"a misspelt subcommand":    {[]string{"scenario", "inspct"}, `vignette scenario has no command "inspct": did you mean inspect? see vignette scenario --help`},
		"a command like no other":  {[]string{"explain"}, `vignette has no command "explain": see vignette --help`},
		"no such flag":             {[]string{"logs", "--folow", "hq"}, "unknown flag: --folow: did you mean --follow? see vignette logs --help"},
		"a flag like no other":     {[]string{"shell", "--map"}, "unknown flag: --map: see vignette shell --help"},
		"shell without a node":     {[]string{"shell"}, "vignette shell needs a NODE: see vignette shell --help"},
		"a command without dashes": {[]string{"shell", "hq", "ls"}, "the command after --: vignette shell hq -- ls"},
		"capture of a node alone":  {[]string{"capture", "hq"}, "needs a NODE and a NETWORK, such as vignette capture hq wan"},
		"a limit without sense":    {[]string{"capture", "hq", "wan", "--limit", "-1"}, `--limit "-1": want a size, such as 64Mi`},
		"a limit below one byte":   {[]string{"capture", "hq", "wan", "--limit", "256m"}, `--limit "256m": must be whole bytes, such as 512Mi: m is a thousandth`},
		"frames of nothing":        {[]string{"capture", "hq", "wan", "--snaplen", "3"}, "--snaplen 3: want 14 to 65535 bytes"},
		"no such stream":           {[]string{"logs", "hq", "--stream", "trace"}, `--stream "trace": want stdout, stderr, messages, agent`},
		"output has no times":      {[]string{"logs", "hq", "--since", "1m"}, "add --stream messages or --stream agent, or use --tail"},
		"fewer lines than none":    {[]string{"logs", "hq", "--tail", "-5"}, "--tail -5: want a number of lines, such as 20"},
		"set without a network":    {[]string{"set"}, "vignette set needs a NETWORK"},
		"status of two":            {[]string{"status", "a", "b"}, `"b" is too much`},
		"status of one everywhere": {[]string{"status", "a", "-A"}, "--all-namespaces lists experiments, and a is one: leave out one of the two"},
		"two outputs":              {[]string{"results", "a", "--files", "--get", "x"}, "--files, --get exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := Main("test", append([]string{"vignette"}, c.args...), strings.NewReader(""), &out, &errs)
			if code != exitFailure || !strings.Contains(errs.String(), c.want) {
				t.Errorf("exit code %d, errors %q; want %s", code, errs.String(), c.want)
			}
		})
	}
	o := captureOptions{file: "-", limit: "1Mi"}
	if err := o.check("vignette capture", []string{"hq", "wan"}, true); err == nil || !strings.Contains(err.Error(), "vignette capture hq wan -w - | wireshark -k -i -") {
		t.Errorf("a capture on a terminal: %v", err)
	}
}

func TestAForbiddenRequestSaysWhomToAsk(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "captures"}, "x", errors.New("no"))
	target := &target{platform: "vignette-system"}
	err := target.explainArchive(fmt.Errorf("capture: %w", explain(forbidden)))
	if n := strings.Count(err.Error(), "ask the cluster's administrator for the right"); n != 1 || !apierrors.IsForbidden(err) {
		t.Errorf("forbidden: %v; want that said once", err)
	}
}

func TestARefusedCaptureLeavesFilesAsTheyWere(t *testing.T) {
	folder := t.TempDir()
	old, none := filepath.Join(folder, "old.pcapng"), filepath.Join(folder, "none.pcapng")
	if err := os.WriteFile(old, []byte("an earlier capture"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{old, none} {
		err := newPlatform().cluster(t, liveCluster()).capture(t.Context(), "hq", "wan", captureOptions{file: file, limit: "1Mi", filter: "wrong"}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "the capture was refused") {
			t.Errorf("%s: error %v; want a refusal", file, err)
		}
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "an earlier capture" {
		t.Errorf("the earlier file has %q, %v", text, err)
	}
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a new file: %v", err)
	}
}

func TestACaptureThatBeginsReplacesTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hq.pcapng")
	if err := os.WriteFile(name, []byte("an earlier capture"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := openCapture(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.begin(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(out, "frames")
	out.close()
	if text, err := os.ReadFile(name); err != nil || string(text) != "frames" {
		t.Errorf("the file has %q, %v; want the frames alone", text, err)
	}
}

func TestCaptureToAFileThatCannotBeMadeMakesNoCapture(t *testing.T) {
	p := newPlatform()
	o := captureOptions{file: filepath.Join(t.TempDir(), "no", "such", "folder.pcapng"), limit: "1Mi"}
	err := p.cluster(t, liveCluster()).capture(t.Context(), "hq", "wan", o, io.Discard, io.Discard)
	var captures v1alpha1.CaptureList
	if listErr := p.kube.List(t.Context(), &captures); !errors.Is(err, os.ErrNotExist) || listErr != nil || len(captures.Items) != 0 {
		t.Errorf("error %v, %d captures, %v; want none", err, len(captures.Items), listErr)
	}
}
