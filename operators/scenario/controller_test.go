package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"vignette.dev/vignette/internal/gz"
	runs "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// memoryStore is a Store in memory.
type memoryStore struct {
	mu   sync.Mutex
	has  map[string][]byte
	puts int
	down error
	full bool
	// refuses is the answer to uploads.
	refuses error
}

func (m *memoryStore) HasScenarioRoom(_ context.Context, _, digest string, size int64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.has[digest]
	return found || !m.full && size > 0, m.down
}

func (m *memoryStore) HasScenarioFor(_ context.Context, _, digest string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.has[digest]
	return found, m.down
}

func (m *memoryStore) Scenario(_ context.Context, digest string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return io.NopCloser(bytes.NewReader(m.has[digest])), m.down
}

func (m *memoryStore) PutScenarioFor(_ context.Context, _, digest string, content io.Reader) error {
	text, err := io.ReadAll(content)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	if m.refuses != nil {
		return m.refuses
	}
	if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(text)); sum != digest {
		return fmt.Errorf("%s is %s", digest, sum)
	}
	m.puts++
	m.has[digest] = text
	return err
}

// testBed has one Scenario, company1, and its controller.
type testBed struct {
	*testing.T
	client     client.Client
	store      *memoryStore
	reconciler *Reconciler
	now        time.Time
	done       chan types.NamespacedName
}

func newTestBed(t *testing.T, spec v1alpha1.ScenarioSpec, configMaps ...client.Object) *testBed {
	s := &v1alpha1.Scenario{ObjectMeta: metav1.ObjectMeta{Name: "company1", Namespace: "team", Generation: 3, UID: "uid-1"}, Spec: spec}
	l := &testBed{T: t, store: &memoryStore{has: map[string][]byte{}}, now: time.Unix(1_800_000_000, 0), done: make(chan types.NamespacedName, 8),
		client: fake.NewClientBuilder().WithScheme(testkube.Scheme()).WithObjects(append(configMaps, s)...).WithStatusSubresource(s).Build()}
	l.restart()
	return l
}

// restart restarts the operator.
func (l *testBed) restart() {
	l.reconciler = &Reconciler{Client: l.client, Live: l.client, Metadata: l.client, Store: l.store, Now: func() time.Time { return l.now }}
	l.reconciler.jobs.OnFinished = func(name types.NamespacedName) { l.done <- name }
}

func (l *testBed) reconcile() (ctrl.Result, error) {
	return l.reconciler.Reconcile(l.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "company1"}})
}

// settle reconciles, waits for the started job, and reconciles again.
func (l *testBed) settle() *v1alpha1.Scenario {
	l.Helper()
	if _, err := l.reconcile(); err != nil {
		l.Fatal(err)
	}
	if s := l.scenario(); readyOf(s).Reason != ReasonCompiling {
		l.Fatalf("Ready is %+v: want it to be compiling", readyOf(s))
	}
	select {
	case <-l.done:
	case <-time.After(time.Minute):
		l.Fatal("the compilation does not end")
	}
	if _, err := l.reconcile(); err != nil && l.store.down == nil {
		l.Fatal(err)
	}
	return l.scenario()
}

// isIdle checks that reconciling does nothing.
func (l *testBed) isIdle() {
	l.Helper()
	before := l.scenario()
	for range 2 {
		if _, err := l.reconcile(); err != nil {
			l.Fatal(err)
		}
	}
	if after := l.scenario(); after.ResourceVersion != before.ResourceVersion {
		l.Errorf("the status was written again: %+v", after.Status)
	}
	select {
	case <-l.done:
		l.Error("it was compiled again")
	default:
	}
}

func (l *testBed) scenario() *v1alpha1.Scenario {
	l.Helper()
	s := &v1alpha1.Scenario{}
	if err := l.client.Get(l.Context(), types.NamespacedName{Namespace: "team", Name: "company1"}, s); err != nil {
		l.Fatal(err)
	}
	return s
}

func readyOf(s *v1alpha1.Scenario) metav1.Condition {
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func configMap(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "team"}, Data: map[string]string{"run.eel": text}}
}

func packed(content []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "team"}, BinaryData: map[string][]byte{"run.eel.gz": content}}
}

func eelFrom(key string) v1alpha1.ScenarioSpec {
	return v1alpha1.ScenarioSpec{Format: "eel", Source: &v1alpha1.ScenarioSource{ConfigMap: "data", Key: key}}
}

// hills is a valid event log of three platforms.
const hills = "0.0 nem:1 location gps 58.1,7.9,3\n0.0 nem:1 pathloss nem:2,90.0 nem:4,95.0\n5.0 nem:1 moonphase full\n60.0 nem:1 pathloss nem:2,99.0\n"

func TestAScenarioIsCompiledAndItsErrorsAreNamed(t *testing.T) {
	cases := map[string]struct {
		spec   v1alpha1.ScenarioSpec
		source client.Object
		reason string
		says   string
	}{
		"no such ConfigMap": {eelFrom("run.eel"), packed(gz.Append(nil, nil)), ReasonKeyNotFound, `ConfigMap "data" has no key "run.eel"`},
		"a slip":            {eelFrom("run.eel"), configMap(hills + "61.0 nem:1 pathloss nem:2,loud\n"), ReasonMalformed, "data/run.eel:5: "},
		"nothing in it":     {eelFrom("run.eel"), configMap(""), ReasonInvalid, "no platforms"},
		"no such thing":     {eelFrom("run.eel"), nil, ReasonConfigMapNotFound, `there is no ConfigMap "data"`},
		"good":              {eelFrom("run.eel"), configMap(hills), ReasonCompiled, "3 platforms for 1m"},
		"packed":            {eelFrom("run.eel.gz"), packed(gz.Append(nil, []byte(hills))), ReasonCompiled, "3 platforms for 1m"},
		"not packed":        {eelFrom("run.eel.gz"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "team"}, Data: map[string]string{"run.eel.gz": "x"}}, ReasonInvalid, "is not packed by gzip"},
		"made up":           {v1alpha1.ScenarioSpec{Format: "synthetic", Synthetic: &v1alpha1.SyntheticMovement{Pattern: "Line", Platforms: 4, Duration: "1m", Seed: 1, Spacing: "500m"}}, nil, ReasonCompiled, "4 platforms"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if c.source != nil {
				objects = append(objects, c.source)
			}
			l := newTestBed(t, c.spec, objects...)
			s := l.settle()
			if got := readyOf(s); got.Reason != c.reason || !strings.Contains(got.Message, c.says) || got.ObservedGeneration != 3 {
				t.Errorf("Ready %+v; want %s: …%s…", got, c.reason, c.says)
			}
			_, stored := l.store.has[s.Status.Digest]
			if good := c.reason == ReasonCompiled; stored != good || (s.Status.Statistics != nil) != good || (s.Status.Digest != "") != good {
				t.Errorf("stored: %t, status %+v", stored, s.Status)
			}
			l.isIdle()
		})
	}
}

func TestTooLargeSourcesAreRefusedBeforeTheyAreUnpacked(t *testing.T) {
	bomb := packed(testtool.GzipOfZeros(compile.MaxServedBytes + 1))
	got := readyOf(newTestBed(t, eelFrom("run.eel.gz"), bomb).settle())
	if got.Reason != ReasonTooLarge || !strings.Contains(got.Message, "vignette scenario push") {
		t.Errorf("256 MiB and one byte: Ready %+v", got)
	}
}

func TestAScenariosStatusHasItsStatistics(t *testing.T) {
	s := newTestBed(t, eelFrom("run.eel"), configMap(hills)).settle().Status.Statistics
	if s == nil || s.Platforms != 3 || s.PlatformNumbers != "1-2,4" || !s.Pathloss || !s.Positions || s.Duration.Std() != time.Minute {
		t.Fatalf("statistics %+v", s)
	}
	if len(s.UnknownSentences) != 1 || !strings.Contains(s.UnknownSentences[0], "moonphase") {
		t.Errorf("unknown sentences %v; want moonphase", s.UnknownSentences)
	}
}

func TestASettledScenarioIsNeitherWrittenNorCompiledAgain(t *testing.T) {
	l := newTestBed(t, eelFrom("run.eel"), configMap(hills))
	l.settle()
	l.isIdle()
	l.restart()
	l.isIdle()
	l.now = l.now.Add(2 * storeCheckInterval)
	l.isIdle()
	if l.store.puts != 1 {
		t.Errorf("stored %d times", l.store.puts)
	}
}

func TestANewDescriptionIsObservedWithoutACompilation(t *testing.T) {
	l := newTestBed(t, eelFrom("run.eel"), configMap(hills))
	s := l.settle()
	s.Spec.Description, s.Generation = "hills", s.Generation+1
	if err := l.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := l.reconcile(); err != nil {
		t.Fatal(err)
	}
	s = l.scenario()
	if ready := readyOf(s); s.Status.ObservedGeneration != s.Generation || ready.ObservedGeneration != s.Generation || ready.Status != metav1.ConditionTrue {
		t.Errorf("generation %d, status %+v", s.Generation, s.Status)
	}
	if l.store.puts != 1 {
		t.Errorf("stored %d times", l.store.puts)
	}
	l.isIdle()
}

func TestAScenarioFollowsItsConfigMap(t *testing.T) {
	l := newTestBed(t, eelFrom("run.eel"))
	if s := l.settle(); readyOf(s).Reason != ReasonConfigMapNotFound {
		t.Fatalf("Ready %+v", readyOf(s))
	}
	data := configMap(hills)
	if err := l.client.Create(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	first := l.settle()
	data.Data["run.eel"] += "90.0 nem:1 pathloss nem:2,91.0\n"
	if err := l.client.Update(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	second := l.settle()
	if first.Status.Digest == "" || second.Status.Digest == "" || first.Status.Digest == second.Status.Digest {
		t.Errorf("digests %q and %q", first.Status.Digest, second.Status.Digest)
	}
	if names := l.reconciler.scenariosUsing(t.Context(), data); len(names) != 1 {
		t.Errorf("a change of the ConfigMap wakes %v", names)
	}
}

func TestAScenarioThatTheStoreLostIsCompiledAgain(t *testing.T) {
	l := newTestBed(t, eelFrom("run.eel"), configMap(hills))
	digest := l.settle().Status.Digest
	clear(l.store.has)
	l.isIdle()
	l.now = l.now.Add(storeCheckInterval)
	if s := l.settle(); s.Status.Digest != digest || len(l.store.has) != 1 {
		t.Errorf("status %+v, %d in the store", s.Status, len(l.store.has))
	}
}

func TestAScenarioWaitsForTheStore(t *testing.T) {
	l := newTestBed(t, eelFrom("run.eel"), configMap(hills))
	l.store.down = errors.New("the server is away")
	if s := l.settle(); readyOf(s).Reason != ReasonStoreUnavailable || !strings.Contains(readyOf(s).Message, "is away") {
		t.Errorf("Ready %+v", readyOf(s))
	}
	l.store.down = nil
	l.isIdle() // not compiled again at once
	l.now = l.now.Add(retryInterval)
	if s := l.settle(); readyOf(s).Reason != ReasonCompiled {
		t.Errorf("Ready %+v", readyOf(s))
	}
}

func TestAScenarioIsNotCompiledAgainWhileTheStoreIsFull(t *testing.T) {
	l := newTestBed(t, eelFrom("run.eel"), configMap(hills))
	l.store.full = true
	ready := readyOf(l.settle())
	if ready.Reason != ReasonStoreFull || ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "server.scenarioQuota") || !strings.Contains(ready.Message, " KiB of the compiled") {
		t.Fatalf("Ready %+v; want what would help", ready)
	}
	l.isIdle()
	for range 3 {
		l.now = l.now.Add(storeCheckInterval)
		l.isIdle()
		if result, err := l.reconcile(); err != nil || result.RequeueAfter != storeCheckInterval {
			t.Errorf("it looks again in %s, %v; want %s", result.RequeueAfter, err, storeCheckInterval)
		}
	}
	l.store.full = false
	l.isIdle()
	l.now = l.now.Add(storeCheckInterval)
	if s := l.settle(); readyOf(s).Reason != ReasonCompiled || l.store.puts != 1 {
		t.Errorf("Ready %+v with room, stored %d times", readyOf(s), l.store.puts)
	}
}

func TestAStoreThatFillsDuringAnUploadIsFull(t *testing.T) {
	l := newTestBed(t, eelFrom("run.eel"), configMap(hills))
	l.store.refuses = &runs.Error{Status: http.StatusInsufficientStorage}
	if s := l.settle(); readyOf(s).Reason != ReasonStoreFull {
		t.Errorf("Ready %+v", readyOf(s))
	}
}

func TestAScenarioThatWasPushedIsReadyOnceTheStoreHasIt(t *testing.T) {
	compiled := newTestBed(t, eelFrom("run.eel"), configMap(hills))
	digest := compiled.settle().Status.Digest
	l := newTestBed(t, v1alpha1.ScenarioSpec{Format: "eel", Compiled: digest})
	if s := l.settle(); readyOf(s).Reason != ReasonNotInStore || s.Status.Digest != "" {
		t.Fatalf("Ready %+v", readyOf(s))
	}
	l.isIdle()
	l.store.has = compiled.store.has
	l.now = l.now.Add(missingCheckInterval)
	s := l.settle()
	if readyOf(s).Reason != ReasonCompiled || s.Status.Digest != digest || s.Status.Statistics.PlatformNumbers != "1-2,4" {
		t.Errorf("status %+v", s.Status)
	}
	l.isIdle()
}

func TestWhatAPushedScenarioLacksIsSaid(t *testing.T) {
	pushed := newTestBed(t, eelFrom("run.eel"), configMap("0.0 nem:1 location gps 58,8,3\n"))
	digest := pushed.settle().Status.Digest
	for want, spec := range map[string]v1alpha1.ScenarioSpec{
		"propagation: the compiled scenario has no pathloss": {Propagation: &v1alpha1.Propagation{Model: "FreeSpace", Frequency: "300MHz"}},
		"platform 2 is not in the scenario, which has 1":     {OrderOfBattle: []v1alpha1.Unit{{Name: "company", Commander: 2}}},
		"tracks: the scenario is compiled already":           {Tracks: &v1alpha1.ScenarioTracks{Speed: "5m/s"}},
		"source: the scenario is compiled already":           {Source: &v1alpha1.ScenarioSource{ConfigMap: "data", Key: "run.eel"}},
	} {
		spec.Format, spec.Compiled = "eel", digest
		l := newTestBed(t, spec)
		l.store.has = pushed.store.has
		if s := l.settle(); readyOf(s).Reason != ReasonInvalid || !strings.Contains(readyOf(s).Message, want) {
			t.Errorf("Ready is %+v: want it invalid, as %s", readyOf(s), want)
		}
		l.now = l.now.Add(storeCheckInterval)
		l.isIdle() // reading it again would find the same
	}
}
