package mapdata

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/internal/terrain"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// everybody may do everything: rights are the server's concern.
type everybody struct{}

func (everybody) Authenticate(_ context.Context, token string) (server.Identity, error) {
	return server.Identity{Username: token}, nil
}

// results is a results server with one run.
type results struct {
	t      *testing.T
	url    string
	plan   runapi.Plan
	object *v1alpha1.Scenario
}

// planned is the plan of a real run: ten nodes of the scenario anglova-like on three TDMA networks.
func planned(t *testing.T) runapi.Plan {
	t.Helper()
	text, err := os.ReadFile("testdata/plan.json")
	if err != nil {
		t.Fatal(err)
	}
	var plan runapi.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

func newResults(t *testing.T, plan runapi.Plan) *results {
	t.Helper()
	s, err := server.New(server.Config{Dir: t.TempDir(), Authenticator: everybody{}, Policy: server.Policy{OperatorUser: "operator", RadiodUser: "radiod", AdminUsers: []string{"anna"}}})
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(s)
	t.Cleanup(func() {
		listening.Close()
		_ = s.Close()
	})
	a := &results{t: t, url: listening.URL, plan: plan}
	if _, err := a.as("operator").PutPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *results) as(user string) *client.Client {
	return client.New(a.url, nil, func() (string, error) { return user, nil })
}

func (a *results) source() Source {
	return Source{Archive: a.as("anna"), Objects: a, Namespace: a.plan.Namespace}
}

// Scenario implements Objects.
func (a *results) Scenario(context.Context, string, string) (*v1alpha1.Scenario, error) {
	if a.object == nil {
		return nil, errors.New("there is none")
	}
	return a.object, nil
}

// ConfigMap implements Objects.
func (a *results) ConfigMap(context.Context, string, string, string) ([]byte, error) {
	return nil, errors.New("there is none")
}

// log archives a host's radio log.
func (a *results) log(host string, content []byte) {
	a.t.Helper()
	if _, err := a.as("radiod").AppendRadio(a.t.Context(), host, a.plan.UID, 0, bytes.NewReader(content)); err != nil {
		a.t.Fatal(err)
	}
}

// movement compiles a scenario like that of the plan, only shorter.
func movement(t *testing.T, spec v1alpha1.ScenarioSpec) (s *scenario.Scenario, digest string, text []byte) {
	t.Helper()
	var out bytes.Buffer
	result, err := compile.Compile(t.Context(), spec, nil, &out)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = scenario.Open(bytes.NewReader(out.Bytes()), int64(out.Len())); err != nil {
		t.Fatal(err)
	}
	return s, result.Digest, out.Bytes()
}

func anglovaLike() v1alpha1.ScenarioSpec {
	seed := int64(1)
	return v1alpha1.ScenarioSpec{Format: "synthetic", Synthetic: &v1alpha1.SyntheticMovement{Pattern: "AnglovaLike", Platforms: 24, Duration: "90s", Seed: 1, Spacing: "500m"},
		Propagation: &v1alpha1.Propagation{Model: "Diffraction", Frequency: "300MHz", AntennaHeight: "3m", SyntheticTerrain: &seed}}
}

// moving is an archive whose run has a compiled scenario.
func moving(t *testing.T) (*results, *scenario.Scenario) {
	t.Helper()
	plan, spec := planned(t), anglovaLike()
	s, digest, text := movement(t, spec)
	plan.Scenario.Digest = digest
	a := newResults(t, plan)
	if err := a.as("anna").PutScenario(t.Context(), digest, bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	a.object = &v1alpha1.Scenario{Spec: spec, Status: v1alpha1.ScenarioStatus{Digest: digest}}
	return a, s
}

func TestTheMapFollowsEachNodeWithinTheTolerance(t *testing.T) {
	a, s := moving(t)
	made, err := New().Map(t.Context(), a.source(), a.plan.UID)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Nodes) != 10 || !made.Positions || len(made.Missing) > 0 || !made.T0.Equal(*a.plan.T0) || *made.DurationSeconds < 665 {
		t.Fatalf("%d nodes, positions %t, missing %q, t0 %v, %v s", len(made.Nodes), made.Positions, made.Missing, made.T0, made.DurationSeconds)
	}
	want := []Network{{"net-a", "tdma", true}, {"net-b", "tdma", true}, {"lead", "tdma", true}}
	if diff := cmp.Diff(want, made.Networks); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	cursor := s.NewCursor()
	for second := range 91 {
		if err := cursor.Seek(time.Duration(second) * time.Second); err != nil {
			t.Fatal(err)
		}
		for _, node := range made.Nodes {
			i, _ := s.Index(int(*node.Platform))
			there, _ := cursor.Position(i)
			if off := offMetres(between(node.Track, float64(second)), between(node.Track, float64(second)), pointAt(0, there)); off > toleranceMetres+0.1 {
				t.Fatalf("%s is %.1f m off at %d s", node.Name, off, second)
			}
		}
	}
	if points := len(made.Nodes[0].Track); points > 60 {
		t.Errorf("the first track has %d points for 90 s: want it thinned", points)
	}
}

// between returns the point of a track at a time.
func between(track []Point, at float64) Point {
	i := slices.IndexFunc(track, func(p Point) bool { return p[0] >= at })
	switch {
	case i < 0:
		return track[len(track)-1]
	case i == 0 || track[i][0] == at:
		return track[i]
	}
	a, b := track[i-1], track[i]
	share := (at - a[0]) / (b[0] - a[0])
	return Point{at, a[1] + share*(b[1]-a[1]), a[2] + share*(b[2]-a[2]), a[3] + share*(b[3]-a[3])}
}

func TestTheGridOfTheMapHasTheHeightsOfTheScenariosTerrain(t *testing.T) {
	a, _ := moving(t)
	made, err := New().Map(t.Context(), a.source(), a.plan.UID)
	if err != nil || made.Terrain == nil {
		t.Fatalf("%v; terrain %v", err, made.Terrain)
	}
	g, hills := made.Terrain, terrain.Synthetic(1)
	if len(g.Heights) != g.Rows*g.Columns || max(g.Rows, g.Columns) > maxCells+1 {
		t.Fatalf("%d heights for %d × %d", len(g.Heights), g.Rows, g.Columns)
	}
	for _, at := range [][2]int{{0, 0}, {g.Rows - 1, g.Columns - 1}, {g.Rows / 2, g.Columns / 3}} {
		latitude := g.South + (float64(g.Rows-1-at[0])+0.5)*g.CellDegrees
		want, _ := hills.Elevation(latitude, g.West+(float64(at[1])+0.5)*g.CellDegrees)
		if got := *g.Heights[at[0]*g.Columns+at[1]]; math.Abs(float64(got)-want) > 0.51 {
			t.Errorf("row %d, column %d: %d m; want %.1f", at[0], at[1], got, want)
		}
	}
	for _, node := range made.Nodes {
		if p := node.Track[0]; p[1] < g.South || p[1] > g.South+float64(g.Rows)*g.CellDegrees || p[2] < g.West || p[2] > g.West+float64(g.Columns)*g.CellDegrees {
			t.Errorf("%s stands outside the grid", node.Name)
		}
	}
}

func TestAMapSaysWhatItLacksAndWhy(t *testing.T) {
	a, _ := moving(t)
	a.object = nil
	made, err := New().Map(t.Context(), a.source(), a.plan.UID)
	if err != nil || len(made.Missing) != 1 || made.Missing[0] != "terrain: the Scenario anglova-like cannot be read any more" {
		t.Errorf("%v, missing %q", err, made.Missing)
	}
	gone := newResults(t, planned(t))
	made, err = New().Map(t.Context(), gone.source(), gone.plan.UID)
	if err != nil || made.Positions || len(made.Missing) != 1 || !strings.Contains(made.Missing[0], "movement: scenario "+gone.plan.Scenario.Digest) {
		t.Errorf("%v, positions %t, missing %q", err, made.Positions, made.Missing)
	}
}

func TestARunThatIsNotThereIsAnAnswerWithItsStatus(t *testing.T) {
	a := newResults(t, planned(t))
	_, err := New().Map(t.Context(), a.source(), "nobody")
	if known, ok := errors.AsType[*Error](err); !ok || known.Status != http.StatusNotFound || !strings.Contains(known.Message, `no run has uid "nobody"`) {
		t.Errorf("%v; want 404 with the uid", err)
	}
}

// fixed is a plan of three fixed nodes on an rfpipe network, with changes.
func fixed(t *testing.T) runapi.Plan {
	t.Helper()
	plan := runapi.Plan{Namespace: "team-nor", Name: "fixed", UID: "run-2", Phase: v1alpha1.PhaseRunning}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	plan.T0 = &t0
	text := `{"duration":"100s","networks":[{"name":"vhf","subnet":"198.18.0.0/24","rfpipe":{"phy":{"frequency":"300MHz","bandwidth":"25kHz","transmitPower":"37dBm","pathloss":"FreeSpace"},"rate":"9.6kbit","interference":"All"}}],
	"nodes":[{"name":"hq","networks":["vhf"],"position":{"latitude":"58.1","longitude":"7.9","altitude":"10m"}},
	{"name":"veh","networks":["vhf"],"group":"cars","position":{"latitude":"58.2","longitude":"7.9"}},{"name":"car","networks":["vhf"],"group":"cars","position":{"latitude":"58.3","longitude":"7.9"}}],
	"timeline":[{"at":"10s","set":[{"network":"vhf","jammer":{"name":"j","power":"30dBm","position":{"latitude":"58.15","longitude":"7.95"}}}]},
	{"at":"20s","set":[{"network":"vhf","from":"cars","radio":{"transmit":false}}]},{"at":"30s","set":[{"network":"vhf","from":"veh","radio":{"transmit":true}}]}]}`
	if err := json.Unmarshal([]byte(text), &plan.Spec); err != nil {
		t.Fatal(err)
	}
	plan.LiveChanges = []runapi.PlannedLiveChange{{Name: "stop-it", AtNanoseconds: 40e9, Changes: []v1alpha1.RadioChange{{Network: "vhf", Jammer: &v1alpha1.Jammer{Name: "j", Silent: true}}}}}
	return plan
}

func TestJammersAndRadioSilenceHaveTheirTimesAlsoByHand(t *testing.T) {
	a := newResults(t, fixed(t))
	made, err := New().Map(t.Context(), a.source(), a.plan.UID)
	if err != nil {
		t.Fatal(err)
	}
	at := func(seconds float64) *float64 { return &seconds }
	name := func(s string) *string { return &s }
	if diff := cmp.Diff([]Jammer{{"vhf", "j", 10, at(40), at(58.15), at(7.95), "30dBm", at(1_000_651)}}, made.Jammers); diff != "" {
		t.Errorf("jammers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Silence{{"vhf", name("veh"), 20, at(30)}, {"vhf", name("car"), 20, nil}}, made.Silences); diff != "" {
		t.Errorf("silences (-want +got):\n%s", diff)
	}
	var said []string
	for _, h := range made.Happened {
		said = append(said, h.What+" "+strings.Join(h.Nodes, ","))
	}
	if diff := cmp.Diff([]string{"jammer j ", "radio silence veh,car", "radio silence ends veh", "jammer j ends "}, said); diff != "" {
		t.Errorf("happened (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Point{{0, 58.1, 7.9, 10}}, made.Nodes[0].Track); diff != "" {
		t.Errorf("hq (-want +got):\n%s", diff)
	}
}

func TestARunThatWasStoppedEndsThereAndHasNoLaterChanges(t *testing.T) {
	plan := fixed(t)
	stopped := int64(25e9)
	plan.MeasureEndNanoseconds = &stopped
	a := newResults(t, plan)
	made, err := New().Map(t.Context(), a.source(), a.plan.UID)
	if err != nil {
		t.Fatal(err)
	}
	if *made.DurationSeconds != 25 || len(made.Happened) != 2 || made.Jammers[0].ToSeconds != nil || made.Silences[0].ToSeconds != nil {
		t.Errorf("%v s, happened %v, jammers %v, silences %v; want 25 s, and nothing of 30 s and 40 s", *made.DurationSeconds, made.Happened, made.Jammers, made.Silences)
	}
	stopped = 0
	early := newResults(t, plan)
	if made, err = New().Map(t.Context(), early.source(), early.plan.UID); err != nil || made.DurationSeconds == nil || len(made.Happened) > 0 {
		t.Errorf("%v: happened %v in a run that was over at T0", err, made.Happened)
	}
}

func TestAThinnedTrackKeepsItsTurnsAndForgetsStraightLines(t *testing.T) {
	var points []Point
	for second := range 101 { // north, then east
		s := float64(second)
		points = append(points, Point{s, 58 + 1e-4*min(s, 50), 8 + 1e-4*max(s-50, 0), 0})
	}
	if kept := thinned(points, 100); len(kept) != 3 || kept[1][0] != 50 {
		t.Errorf("kept %v; want the ends and the turn", kept)
	}
	for second := range points {
		points[second][1], points[second][2] = 58, 8
	}
	if kept := thinned(points, 100); len(kept) != 1 {
		t.Errorf("kept %v of a platform that stands; want one point", kept)
	}
	zigzag := points
	for second := range zigzag {
		zigzag[second][1] += 1e-3 * float64(second%2)
	}
	if kept := thinned(zigzag, 20); len(kept) > 20 {
		t.Errorf("kept %d points; want at most 20", len(kept))
	}
}

func TestWhatIsKeptOfARunIsOnlyForThoseWhoMayReadIt(t *testing.T) {
	a, _ := moving(t)
	a.log("n1", recorded(t))
	m, query := New(), LinksQuery{Network: "net-a", Expected: true}
	if _, err := m.Map(t.Context(), a.source(), a.plan.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Links(t.Context(), a.source(), a.plan.UID, query); err != nil {
		t.Fatal(err)
	}
	stranger := a.source()
	stranger.Archive = a.as("nick")
	_, mapErr := m.Map(t.Context(), stranger, a.plan.UID)
	_, linksErr := m.Links(t.Context(), stranger, a.plan.UID, query)
	for what, err := range map[string]error{"the map": mapErr, "the links": linksErr} {
		if known, ok := errors.AsType[*Error](err); !ok || known.Status != http.StatusForbidden {
			t.Errorf("%s: %v; want 403", what, err)
		}
	}
}

// wanderers are many platforms that move all the time.
func wanderers(platforms int32, duration v1alpha1.Duration) v1alpha1.ScenarioSpec {
	return v1alpha1.ScenarioSpec{Format: "synthetic", Synthetic: &v1alpha1.SyntheticMovement{Pattern: "RandomWaypoint", Platforms: platforms, Duration: duration, Seed: 1, Spacing: "500m"}}
}

func TestTheTracksOfManyPlatformsStayBounded(t *testing.T) {
	s, _, _ := movement(t, wanderers(300, "1h"))
	tracks, err := tracksOf(t.Context(), s, s.Duration())
	if err != nil || len(tracks) != 300 {
		t.Fatalf("%v: %d tracks", err, len(tracks))
	}
	points := 0
	for _, one := range tracks {
		if points += len(one.points); len(one.points) < 2 || one.points[len(one.points)-1][0] != s.Duration().Seconds() {
			t.Fatalf("platform %d has %d points: want one at its end", one.platform, len(one.points))
		}
	}
	if points > maxPoints {
		t.Errorf("%d points; want at most %d", points, maxPoints)
	}
}

func TestMapsAndLinksWaitForTheirTurnBeforeTheyReadAScenario(t *testing.T) {
	a, _ := moving(t)
	m := New()
	for range maxWorking {
		if _, err := m.work(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := m.Map(gone, a.source(), a.plan.UID); !errors.Is(err, context.DeadlineExceeded) || len(m.scenarios.kept) > 0 {
		t.Errorf("%v with %d scenarios; want to wait without one", err, len(m.scenarios.kept))
	}
	gone, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := m.Links(gone, a.source(), a.plan.UID, LinksQuery{Network: "net-a", Expected: true}); !errors.Is(err, context.DeadlineExceeded) || len(m.scenarios.kept) > 0 {
		t.Errorf("%v with %d scenarios; want to wait without one", err, len(m.scenarios.kept))
	}
}

func TestAScenarioThatTwoReadIsKeptOnce(t *testing.T) {
	s := newRecent[string, keptScenario](10)
	made := func() keptScenario { return keptScenario{&scenario.Scenario{}, 10} }
	first := s.getOrMake("d", made)
	if second := s.getOrMake("d", made); second != first || len(s.kept) != 1 {
		t.Errorf("%d kept; want the first", len(s.kept))
	}
}

func TestKeptLogsGoFromTheOldestOnceTheyAreTooLarge(t *testing.T) {
	logs := newRecent[string, int64](10)
	for key, bytes := range map[string]int64{"a": 5, "b": 5, "c": 5} {
		logs.put(key, bytes)
	}
	logs.get("a")
	logs.trim(9, func(bytes int64) int64 { return bytes })
	if _, known := logs.get("a"); !known || len(logs.kept) != 1 || len(*logs.keys) != 1 {
		t.Errorf("kept %v; want a, which was used last", logs.kept)
	}
	log := &radioLog{records: records{links: []runapi.RadioLinks{{From: make([]runapi.RadioLink, 3)}}}}
	if log.size() != 4*linkBytes {
		t.Errorf("a line with three links takes %d", log.size())
	}
}

func TestAFailureOfAScenarioIsAnAnswerAndAnAnswerStaysOne(t *testing.T) {
	var known *Error
	if err := errorOf(errors.New("step 3 is damaged")); !errors.As(err, &known) || known.Status != http.StatusUnprocessableEntity || known.Message != "step 3 is damaged" {
		t.Errorf("%v; want 422", err)
	}
	for _, err := range []error{errorf(http.StatusBadRequest, "from 9"), context.Canceled} {
		if got := errorOf(err); !errors.Is(got, err) {
			t.Errorf("%v; want %v", got, err)
		}
	}
}
