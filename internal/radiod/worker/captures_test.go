package worker

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/radiod/capture"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/figures"
	"vignette.dev/vignette/internal/radiod/samples"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// names maps tokens to users, in place of an API server.
type names struct{}

func (names) Authenticate(_ context.Context, token string) (server.Identity, error) {
	return server.Identity{Username: token}, nil
}

// captureBed is a run at a server, and workers of one radiod that capture for it.
type captureBed struct {
	radiodBed
	t      *testing.T
	api    *httptest.Server
	stop   context.CancelFunc
	sample *samples.Sampler
	// connect connects a worker to the data plane that outlives it; nil for one in each worker.
	connect func(dataplane.ProcessOptions) *dataplane.Client
}

func newCaptureBed(t *testing.T, captures ...runapi.PlannedCapture) *captureBed {
	t.Helper()
	b := &captureBed{radiodBed: newRadiod(t), t: t, stop: func() {}}
	archive, err := server.New(server.Config{Dir: t.TempDir(), Authenticator: names{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Policy: server.Policy{OperatorUser: "operator", RadiodUser: "radiod"}})
	if err != nil {
		t.Fatal(err)
	}
	b.api = httptest.NewServer(archive)
	t.Cleanup(func() { b.stop(); b.api.Close(); _ = archive.Close() })
	_, err = b.as("operator").PutPlan(t.Context(), runapi.Plan{Namespace: "team", Name: "exp", UID: "run", Captures: captures})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *captureBed) as(user string) *client.Client {
	return client.New(b.api.URL, b.api.Client(), func() (string, error) { return user, nil })
}

// worker starts another worker with all its parts. The one before gets no notice, as if it was killed.
func (b *captureBed) worker(change ...func(*capture.Options)) *Manager {
	b.t.Helper()
	options := capture.Options{Directory: filepath.Join(b.directory, "captures"), SpoolBytes: 64 << 20, Archive: b.as("radiod"), Host: "host-a",
		EpochOffset: clock.EpochOffset, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, c := range change {
		c(&options)
	}
	captures, err := capture.Open(options)
	if err != nil {
		b.t.Fatal(err)
	}
	var m *Manager
	var held map[string]int
	if b.connect == nil {
		m, held = managerWith(b.t, b.parent, b.directory)
	} else {
		m, held = managerOn(b.t, b.parent, b.directory, b.connect(dataplane.ProcessOptions{StateDirectory: b.directory}))
	}
	m.Networks.Captures = captures
	b.sample = &samples.Sampler{Source: m, Captures: captures, Archive: b.as("radiod"), Host: "host", Directory: filepath.Join(b.directory, "spool"), Log: slog.New(slog.DiscardHandler)}
	if err := b.sample.Open(); err != nil {
		b.t.Fatal(err)
	}
	m.Options.Recorder, m.Networks.Recorder = b.sample, b.sample
	if err := m.Restore(held); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- captures.Run(ctx) }()
	go func() { done <- b.sample.Run(ctx) }()
	b.stop = func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				b.t.Error(err)
			}
		}
		b.stop = func() {}
	}
	return m
}

// sealed ends the run and returns its manifest.
func (b *captureBed) sealed() runapi.Manifest {
	b.t.Helper()
	manifest, err := b.as("operator").Seal(b.t.Context(), "run", runapi.SealRequest{WaitSeconds: 60})
	if err != nil {
		b.t.Fatal(err)
	}
	return manifest
}

// archived puts a capture of the archive into a file.
func (b *captureBed) archived(which client.Capture) string {
	b.t.Helper()
	body, err := b.as("operator").File(b.t.Context(), "run", which.Path())
	if err != nil {
		b.t.Fatal(err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		b.t.Fatal(err)
	}
	var whole pcapng.BlockScanner
	if _, err := whole.Write(content); err != nil || whole.Incomplete() {
		b.t.Fatalf("%s with %d bytes is not whole: %v", which.Path(), len(content), err)
	}
	path := filepath.Join(b.t.TempDir(), "capture.pcapng")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// captured is a frame as tshark reads it.
type captured struct {
	stamp  int64
	out    bool
	port   string
	length int
}

// tshark reads a file with a program that is not ours.
func tshark(t *testing.T, path string) (frames []captured) {
	t.Helper()
	program := testtool.Need(t, "tshark")
	command := exec.Command(program, "-n", "-r", path, "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.packet_flags_direction",
		"-e", "udp.dstport", "-e", "frame.len")
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil || strings.Contains(problems.String(), "cut short") || strings.Contains(problems.String(), "appears to") {
		t.Fatalf("tshark: %v: %s", err, problems.String())
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		stamp, err := strconv.ParseInt(strings.ReplaceAll(fields[0], ".", ""), 10, 64)
		if err != nil {
			t.Fatalf("tshark's line %q: %v", line, err)
		}
		direction, _ := strconv.ParseInt(strings.TrimPrefix(fields[1], "0x"), 16, 64)
		length, _ := strconv.Atoi(fields[3])
		frames = append(frames, captured{stamp, direction == 2, fields[2], length})
	}
	return frames
}

func (p *pod) sendDatagrams(t *testing.T, to string, count int) {
	t.Helper()
	p.do(t, func() error {
		conn, err := net.Dial("udp4", to)
		if err != nil {
			return err
		}
		defer conn.Close()
		for i := range count {
			if _, err := conn.Write(make([]byte, 10+i%1000)); err != nil {
				return err
			}
			if i%50 == 0 {
				time.Sleep(time.Millisecond) // the TAP's own queue is not tested
			}
		}
		return nil
	})
}

func TestWhatTheCountersSayWasSentAndReceivedIsInTheCapture(t *testing.T) {
	both := []string{"node-1", "node-2"}
	b := newCaptureBed(t, runapi.PlannedCapture{Name: "run", Network: "vhf", Nodes: both}, runapi.PlannedCapture{Name: "olsr", Network: "vhf", Nodes: both})
	m := b.worker()
	lossy := networkOf("run", "vhf", "pod-1", "pod-2")
	lossy.Generation, lossy.Spec.Waveform.Link.Loss = 1, "30%"
	lossy.Spec.Captures = []v1alpha1.RadioCapture{{Name: "run"}, {Name: "olsr", Filter: "udp port 698", SnapLengthBytes: 60}}
	set(t, m, lossy)
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	one.attach(t, m, "vhf")
	two.attach(t, m, "vhf")
	start := clock.Realtime()
	one.sendDatagrams(t, "198.18.9.255:7000", 800)
	two.sendDatagrams(t, "198.18.9.255:698", 300)
	eventually(t, "no frame is under way", func() bool { return counted(m, "node-1").InFlight+counted(m, "node-2").InFlight == 0 })
	end := clock.Realtime()
	ended := lossy.DeepCopy()
	ended.Generation, ended.Spec.Captures = 2, nil
	first := map[string]figures.Node{"node-1": counted(m, "node-1"), "node-2": counted(m, "node-2")}
	set(t, m, ended) // as the operator does before the run is collected
	second := map[string]figures.Node{"node-1": counted(m, "node-1"), "node-2": counted(m, "node-2")}
	for _, gap := range b.sealed().Gaps {
		if strings.HasPrefix(gap.What, "capture") {
			t.Errorf("gap %+v", gap)
		}
	}
	for _, node := range both {
		frames, out, in := tshark(t, b.archived(client.Capture{Name: "run", Network: "vhf", Node: node})), uint64(0), uint64(0)
		for i, f := range frames {
			if i > 0 && f.stamp < frames[i-1].stamp || f.stamp < start-1e9 || f.stamp > end+1e9 {
				t.Fatalf("%s: frame %d has stamp %d, after %d", node, i, f.stamp, frames[max(i-1, 0)].stamp)
			}
			if f.out {
				out++
			} else {
				in++
			}
		}
		// The pods' kernels may send frames of their own while the captures end.
		if out < first[node].FramesSent || out > second[node].FramesSent || in < first[node].FramesReceived || in > second[node].FramesReceived {
			t.Errorf("%s: %d frames out and %d in; counted are %d to %d and %d to %d", node, out, in, first[node].FramesSent, second[node].FramesSent,
				first[node].FramesReceived, second[node].FramesReceived)
		}
	}
	olsr := tshark(t, b.archived(client.Capture{Name: "olsr", Network: "vhf", Node: "node-2"}))
	for _, f := range olsr {
		if f.port != "698" || !f.out {
			t.Errorf("the filter let %+v through", f)
		}
	}
	if len(olsr) != 300 {
		t.Errorf("%d frames to port 698, want 300", len(olsr))
	}
	if lost := first["node-1"].FramesSent - first["node-2"].FramesReceived; lost == 0 {
		t.Error("nothing was lost in the model: a capture at the sender cannot be told from one at the receiver")
	}
}

func TestACaptureOutlivesItsWorkers(t *testing.T) {
	for name, alone := range map[string]bool{"with their data planes": false, "alone": true} {
		t.Run(name, func(t *testing.T) { captureOverWorkers(t, alone) })
	}
}

// captureOverWorkers has workers end amid traffic, with half a block left behind. If they end alone, frames go on meanwhile.
func captureOverWorkers(t *testing.T, alone bool) {
	want := 300
	b := newCaptureBed(t, runapi.PlannedCapture{Name: "run", Network: "vhf", Nodes: []string{"node-1"}})
	n := networkOf("run", "vhf", "pod-1", "pod-2")
	n.Spec.Captures = []v1alpha1.RadioCapture{{Name: "run", Nodes: []string{"node-1"}}}
	one, two := newPod(t, "pod-1"), newPod(t, "pod-2")
	if alone {
		_, b.connect = startPlane(t)
	}
	for life := range 3 {
		m := b.worker()
		if life == 0 {
			set(t, m, n)
			one.attach(t, m, "vhf")
			two.attach(t, m, "vhf")
		}
		one.sendDatagrams(t, "198.18.9.255:7000", 100)
		if life == 2 {
			eventually(t, "no frame is under way", func() bool { return counted(m, "node-1").InFlight == 0 })
			if err := m.RemoveNetwork("runvhf"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		m.Close()
		b.stop()
		tear(t, b.directory)
		if alone {
			one.sendDatagrams(t, "198.18.9.255:7000", 50)
			want += 50
		}
	}
	for _, gap := range b.sealed().Gaps {
		if strings.HasPrefix(gap.What, "capture") {
			t.Errorf("gap %+v", gap)
		}
	}
	sent := 0
	for _, f := range tshark(t, b.archived(client.Capture{Name: "run", Network: "vhf", Node: "node-1"})) {
		if f.out && f.port == "7000" {
			sent++
		}
	}
	if sent != want {
		t.Errorf("%d datagrams are in the capture, want %d", sent, want)
	}
	eventually(t, "the spool is forgotten", func() bool {
		left, err := os.ReadDir(filepath.Join(b.directory, "captures"))
		return err == nil && len(left) == 0
	})
}

// tear leaves half a block where a worker was writing.
func tear(t *testing.T, directory string) {
	t.Helper()
	node := filepath.Join(directory, "captures", "run", "run", "vhf", "node-1")
	segments, err := filepath.Glob(filepath.Join(node, "*.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	if len(segments) == 0 { // the archive has all
		return
	}
	file, err := os.OpenFile(segments[len(segments)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(pcapng.AppendPacket(nil, 1, true, 500, make([]byte, 500))[:99]); err != nil {
		t.Fatal(err)
	}
}

func TestALimitAndALostNodeAreGapsOfTheCapture(t *testing.T) {
	b := newCaptureBed(t, runapi.PlannedCapture{Name: "run", Network: "vhf", Nodes: []string{"node-1", "node-2"}, LimitBytes: 20000})
	m := b.worker()
	n := networkOf("run", "vhf", "pod-1", "pod-2")
	n.Spec.Captures = []v1alpha1.RadioCapture{{Name: "run", LimitBytes: 20000}}
	set(t, m, n)
	one := newPod(t, "pod-1")
	one.attach(t, m, "vhf")
	one.sendDatagrams(t, "198.18.9.255:7000", 200)
	if err := b.as("operator").Incident(t.Context(), "run", runapi.Incident{What: "NodeFailed", Node: "node-2", Reason: "it never came"}); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, gap := range b.sealed().Gaps {
		if strings.HasPrefix(gap.What, "capture") {
			reasons[gap.Node] += gap.Reason
		}
	}
	if got, known := reasons["node-1"]; known { // it is whole up to its limit, which the radio log names
		t.Errorf("node-1: %q", got)
	}
	log, err := b.as("operator").File(t.Context(), "run", "radio/host.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil || !strings.Contains(string(text), `"ended":"limit"`) || !strings.Contains(string(text), `"dropped":{"limit":`) {
		t.Errorf("the radio log names no limit: %s, %v", text, err)
	}
	if got := reasons["node-2"]; !strings.Contains(got, "it never came") {
		t.Errorf("node-2: %q", got)
	}
	frames := tshark(t, b.archived(client.Capture{Name: "run", Network: "vhf", Node: "node-1"}))
	if len(frames) == 0 || len(frames) >= 200 {
		t.Errorf("%d frames in a capture of at most 20000 bytes", len(frames))
	}
}

// block lets no capture of the run begin, until the file that it returns is removed.
func block(t *testing.T, captures string) (file string) {
	t.Helper()
	if err := os.MkdirAll(captures, 0o700); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(captures, "run") // where the run's folder should be
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// after returns a time so long after now.
func after(d time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: time.Now().Add(d)} }

func TestACaptureThatCannotBeginBeforeT0IsRefusedByName(t *testing.T) {
	for name, t0 := range map[string]*metav1.MicroTime{"T0 is not set": nil, "T0 is to come": after(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			b := newCaptureBed(t, runapi.PlannedCapture{Name: "run", Network: "vhf", Nodes: []string{"node-1"}})
			m := b.worker()
			blocking := block(t, filepath.Join(b.directory, "captures"))
			n := networkOf("run", "vhf", "pod-1")
			n.Generation, n.Spec.T0, n.Spec.Captures = 1, t0, []v1alpha1.RadioCapture{{Name: "run"}}
			set(t, m, n)
			newPod(t, "pod-1").attach(t, m, "vhf")
			if refused := refusedOf(m, "runvhf"); !strings.Contains(refused, "capture run: cannot open its files on the host: ") {
				t.Errorf("refused: %q", refused)
			}
			if err := os.Remove(blocking); err != nil {
				t.Fatal(err)
			}
			n = n.DeepCopy()
			n.Generation = 2
			set(t, m, n)
			if refused := refusedOf(m, "runvhf"); refused != "" {
				t.Errorf("refused once the capture has begun: %q", refused)
			}
		})
	}
}

func TestACaptureThatCannotBeginAfterT0IsNoRefusal(t *testing.T) {
	b := newCaptureBed(t)
	m := b.worker()
	block(t, filepath.Join(b.directory, "captures"))
	n := networkOf("run", "vhf", "pod-1")
	n.Spec.T0, n.Spec.Captures = after(-time.Second), []v1alpha1.RadioCapture{{Name: "run"}}
	set(t, m, n)
	newPod(t, "pod-1").attach(t, m, "vhf") // its container was restarted
	if _, message, _ := statusOf(m, "runvhf"); refusedOf(m, "runvhf") != "" || !strings.Contains(message, "capture run: cannot open its files") {
		t.Errorf("refused: %q, message %q", refusedOf(m, "runvhf"), message)
	}
}

func TestACaptureThatCannotBeginAtARestoredRadioIsNoRefusal(t *testing.T) {
	r := newRadiod(t)
	m, _ := r.worker(t)
	n := networkOf("run", "vhf", "pod-1")
	n.Spec.T0, n.Spec.Captures = after(-time.Second), []v1alpha1.RadioCapture{{Name: "run"}}
	set(t, m, n)
	one := newPod(t, "pod-1")
	one.attach(t, m, "vhf")
	m.Close()
	r.parent.Close()
	var taken int // a TAP can be opened once
	one.do(t, func() (err error) {
		taken, err = tap.Open("vhf", one.index(t))
		return err
	})
	next, _ := r.worker(t)
	captures := filepath.Join(t.TempDir(), "captures")
	var err error
	next.Networks.Captures, err = capture.Open(capture.Options{Directory: captures, SpoolBytes: 1 << 20, Host: "host-a",
		EpochOffset: clock.EpochOffset, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	block(t, captures)
	closeDescriptor(t, taken)
	for now := time.Now(); counted(next, "node-1").Node == "" && now.Before(time.Now().Add(time.Hour)); now = now.Add(100 * time.Millisecond) {
		next.Retry(now)
	}
	if attached, message, _ := statusOf(next, "runvhf"); attached != 1 || refusedOf(next, "runvhf") != "" || !strings.Contains(message, "capture run: cannot open its files") {
		t.Errorf("%d attached, refused: %q, message %q", attached, refusedOf(next, "runvhf"), message)
	}
}

func TestACaptureThatFailsWhileTheRunGoesOnIsNoRefusal(t *testing.T) {
	b := newCaptureBed(t)
	m := b.worker()
	n := networkOf("run", "vhf", "pod-1")
	set(t, m, n)
	newPod(t, "pod-1").attach(t, m, "vhf")
	n = n.DeepCopy()
	n.Spec.Captures = []v1alpha1.RadioCapture{{Name: "film", Filter: "port http"}}
	_ = m.SetNetwork(n)
	if _, message, _ := statusOf(m, "runvhf"); refusedOf(m, "runvhf") != "" || !strings.Contains(message, "capture film") {
		t.Errorf("refused: %q, message %q", refusedOf(m, "runvhf"), message)
	}
}

func TestABadFilterIsReportedAndTheNodeWorks(t *testing.T) {
	b := newCaptureBed(t)
	m := b.worker()
	n := networkOf("run", "vhf", "pod-1")
	n.Spec.Captures = []v1alpha1.RadioCapture{{Name: "run", Filter: "port http"}}
	set(t, m, n)
	newPod(t, "pod-1").attach(t, m, "vhf")
	if attached, message, _ := statusOf(m, "runvhf"); attached != 1 || !strings.Contains(message, "port http") {
		t.Errorf("%d attached, message %q", attached, message)
	}
}
