package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/position"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/scenario"
)

// hills is a scenario in which platform 1 goes north, platform 2 stands, and platform 3 has pathloss alone.
func hills(t *testing.T) (digest string, content []byte) {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	err := errors.Join(b.Position(0, 1, geo.Position{Latitude: 58}), b.Position(5*time.Second, 1, geo.Position{Latitude: 59}),
		b.Position(0, 2, geo.Position{Latitude: 10}), b.Pathloss(0, 1, 3, 90))
	if err != nil {
		t.Fatal(err)
	}
	var compiled bytes.Buffer
	if digest, err = b.Write(&compiled); err != nil {
		t.Fatal(err)
	}
	return digest, compiled.Bytes()
}

// planOfPlatforms says which platforms carry the nodes; 0 for none.
func planOfPlatforms(digest string, platforms ...int32) func(*runapi.Plan) {
	return func(p *runapi.Plan) {
		p.Scenario = &runapi.PlannedScenario{Name: "hills", Digest: digest}
		for i, platform := range platforms {
			if platform > 0 {
				p.Nodes[i].Platform = &platform
			}
		}
	}
}

func TestAnAgentReadsTheMovementOfItsOwnPlatform(t *testing.T) {
	l := newLab(t)
	digest, content := hills(t)
	if err := l.as("operator").PutScenario(context.Background(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	l.plan(planOfPlatforms(digest, 1, 2))
	for agent, want := range map[string]float64{"nor": 59, "prt": 10} {
		content, err := l.as(agent).Movement(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		m, err := position.New(content)
		if err != nil {
			t.Fatal(err)
		}
		if p, _, err := m.At(5 * time.Second); err != nil || p.Latitude != want {
			t.Errorf("%s is at latitude %v, %v; want %v", agent, p.Latitude, err, want)
		}
	}
}

func TestAnAgentReadsTheMovementThatAnInstanceOnItsNodeReports(t *testing.T) {
	l := newLab(t)
	digest, content := hills(t)
	if err := l.as("operator").PutScenario(context.Background(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	l.plan(planOfPlatforms(digest), func(p *runapi.Plan) {
		p.Nodes[0].Apps = []runapi.PlannedApp{{Name: "units", Kind: "traffic", Instances: []string{"nor/units/1", "nor/units/2"}, Platforms: []int{1, 2}}}
	})
	for instance, want := range map[string]float64{"nor/units/1": 59, "nor/units/2": 10} {
		content, err := l.as("nor").Movement(context.Background(), instance)
		if err != nil {
			t.Fatal(err)
		}
		m, err := position.New(content)
		if err != nil {
			t.Fatal(err)
		}
		if p, _, err := m.At(5 * time.Second); err != nil || p.Latitude != want {
			t.Errorf("%s reports latitude %v, %v; want %v", instance, p.Latitude, err, want)
		}
	}
	for agent, instance := range map[string]string{"prt": "nor/units/1", "nor": "nor/units/3"} {
		if _, err := l.as(agent).Movement(context.Background(), instance); status(err) != http.StatusNotFound {
			t.Errorf("%s asks for %s: %v; want status 404", agent, instance, err)
		}
	}
}

func TestAPlatformWithoutPositionsHasAnEmptyMovement(t *testing.T) {
	l := newLab(t)
	digest, content := hills(t)
	if err := l.as("operator").PutScenario(context.Background(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	l.plan(planOfPlatforms(digest, 3))
	if content, err := l.as("nor").Movement(context.Background(), ""); err != nil || len(content) != 0 {
		t.Errorf("%d bytes, %v; want none", len(content), err)
	}
}

func TestAMovementThatCannotBeHadIsRefusedWithAReason(t *testing.T) {
	digest, _ := hills(t)
	garbage := []byte("no scenario")
	for name, c := range map[string]struct {
		token  string
		change func(*runapi.Plan)
		want   int
	}{
		"no scenario in the plan": {"nor", func(*runapi.Plan) {}, http.StatusNotFound},
		"a node without platform": {"hq", planOfPlatforms(digest, 1), http.StatusNotFound},
		"a deleted scenario":      {"nor", planOfPlatforms(digest, 1), http.StatusNotFound},
		"a damaged scenario":      {"nor", planOfPlatforms(digestOf(garbage), 1), http.StatusUnprocessableEntity},
		"a user":                  {"admin", planOfPlatforms(digest, 1), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if err := l.as("operator").PutScenario(context.Background(), digestOf(garbage), bytes.NewReader(garbage)); err != nil {
				t.Fatal(err)
			}
			l.plan(c.change)
			if _, err := l.as(c.token).Movement(context.Background(), ""); status(err) != c.want {
				t.Errorf("%v; want status %d", err, c.want)
			}
		})
	}
}

// reader stands in for the reading of scenarios: each waits until it is released.
type reader struct {
	mu       sync.Mutex
	reads    map[string]int
	released chan struct{}
	err      error
}

func (r *reader) read(ctx context.Context, digest string) (map[int][]byte, error) {
	r.mu.Lock()
	r.reads[digest]++
	err := r.err
	r.mu.Unlock()
	select {
	case <-r.released:
		return map[int][]byte{1: make([]byte, 10)}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *reader) count(digest string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads[digest]
}

// newMaker makes movements with limits. All digests of these are needed.
func newMaker(t *testing.T, l movementLimits, digests ...string) (*movements, *reader) {
	t.Helper()
	needed := map[string]bool{}
	for _, digest := range digests {
		needed[digest] = true
	}
	m := newMovements(nil, func() map[string]bool { return needed })
	t.Cleanup(m.close)
	r := &reader{reads: map[string]int{}, released: make(chan struct{})}
	m.read = r.read
	m.limit(l)
	return m, r
}

func TestWhileMovementsAreMadeOneAsksAgain(t *testing.T) {
	l := newLab(t, func(c *Config) { c.LongPoll = time.Millisecond })
	digest, _ := hills(t)
	r := &reader{reads: map[string]int{}, released: make(chan struct{})}
	l.server.movements.read = r.read
	l.plan(planOfPlatforms(digest, 1))
	if _, err := l.as("nor").Movement(context.Background(), ""); status(err) != http.StatusServiceUnavailable {
		t.Errorf("%v; want status 503", err)
	}
	close(r.released)
	for status(l.movementError("nor")) == http.StatusServiceUnavailable {
		time.Sleep(time.Millisecond)
	}
	if err := l.movementError("nor"); err != nil || r.count(digest) != 1 {
		t.Errorf("%v after %d reads; want the movement after one", err, r.count(digest))
	}
}

func (l *lab) movementError(token string) error {
	_, err := l.as(token).Movement(context.Background(), "")
	return err
}

func TestATeamHasOneScenarioMadeAtATimeAndKeepsNoOthersWaiting(t *testing.T) {
	m, r := newMaker(t, movementLimits{waiting: 2, reading: 1, keptBytes: 1 << 20, time: time.Minute}, "a", "b", "c", "d")
	first := m.of("a", "nor")
	if m.of("b", "nor") != nil {
		t.Error("a second scenario of the team is made; want a refusal")
	}
	second := m.of("c", "prt")
	if second == nil {
		t.Fatal("another team's scenario is refused; want it to be made")
	}
	if m.of("d", "usa") != nil {
		t.Error("a third scenario waits; want at most two")
	}
	if m.of("a", "usa") != first {
		t.Error("the scenario that is made is made again; want the same")
	}
	close(r.released)
	<-first.done
	<-second.done
	if m.of("b", "nor") == nil {
		t.Error("the team's next scenario is refused after the first; want it to be made")
	}
}

func TestMovementsAreDroppedBeyondTheLimitTheLeastUsedFirst(t *testing.T) {
	m, r := newMaker(t, movementLimits{waiting: 9, reading: 1, keptBytes: 20, time: time.Minute}, "a", "b", "c")
	close(r.released)
	for _, digest := range []string{"a", "b", "a", "c", "a"} {
		<-m.of(digest, "nor").done
	}
	if r.count("a") != 1 {
		t.Errorf("a was read %d times; want once", r.count("a"))
	}
	if <-m.of("b", "nor").done; r.count("b") != 2 {
		t.Errorf("b was read %d times; want again after c took its place", r.count("b"))
	}
}

func TestMovementsThatNoRunNeedsAreDropped(t *testing.T) {
	m, r := newMaker(t, movementLimits{waiting: 9, reading: 1, keptBytes: 1 << 20, time: time.Minute}, "needed")
	close(r.released)
	for _, digest := range []string{"needed", "other", "third"} {
		<-m.of(digest, "nor").done
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept["needed"] == nil || m.kept["other"] != nil {
		t.Errorf("kept %v; want the needed one, and not the other", m.kept)
	}
}

func TestAFailureIsTriedAgainUnlessItIsPermanent(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		reads int
	}{
		"a passing failure":  {errors.New("the disk is away"), 2},
		"too many positions": {scenario.ErrTooManyPositions, 1},
		"a damaged scenario": {&scenario.CorruptError{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, r := newMaker(t, defaultMovementLimits, "a")
			r.err = c.err
			close(r.released)
			for range 2 {
				one := m.of("a", "nor")
				if <-one.done; !errors.Is(one.err, c.err) {
					t.Errorf("%v; want %v", one.err, c.err)
				}
			}
			if r.count("a") != c.reads {
				t.Errorf("read %d times; want %d", r.count("a"), c.reads)
			}
		})
	}
}

func TestAScenarioThatTakesTooLongIsRefusedForGood(t *testing.T) {
	l := newLab(t)
	digest, _ := hills(t)
	r := &reader{reads: map[string]int{}, released: make(chan struct{})}
	l.server.movements.read = r.read
	l.server.movements.limit(movementLimits{waiting: 1, reading: 1, keptBytes: 1, time: time.Millisecond})
	l.plan(planOfPlatforms(digest, 1))
	for range 2 {
		if err := l.movementError("nor"); status(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "takes more than 1ms") {
			t.Errorf("%v; want status 422 with the reason", err)
		}
	}
	if r.count(digest) != 1 {
		t.Errorf("read %d times; want once", r.count(digest))
	}
}

func TestAMissingTemporaryFolderDoesNotMatter(t *testing.T) {
	l := newLab(t)
	digest, content := hills(t)
	if err := l.as("operator").PutScenario(context.Background(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	l.plan(planOfPlatforms(digest, 1))
	t.Setenv("TMPDIR", l.dir+"/missing") // as in the server's container
	if err := l.movementError("nor"); err != nil {
		t.Errorf("%v; want the movement", err)
	}
}
