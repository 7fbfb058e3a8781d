package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/gpsd"
	"vignette.dev/vignette/internal/position"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
)

// northward goes a thousandth of a degree to the north each second, from 58° on.
func northward(t *testing.T) []byte {
	t.Helper()
	b := scenario.NewBuilder(scenario.Options{})
	for second := range 60 {
		if err := b.Position(time.Duration(second)*time.Second, 3, geo.Position{Latitude: 58 + float64(second)/1000, Longitude: 8, Altitude: 20}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := scenariotest.Open(t, b).Movements(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all[3]
}

// newCarriedNode is a node on platform 3, which goes northward.
func newCarriedNode(t *testing.T, s *fakeServer, address string) *node {
	t.Helper()
	n := newNode(t, s, "env > $(dirname $VIGNETTE_MESSAGE_LOG)/../env; exec sleep 60")
	n.config.Position = &agentconfig.Position{Platform: 3, File: true, Log: true}
	n.options.GPSAddress = address
	return n
}

func localAddress(t *testing.T) string { return "127.0.0.1:" + strconv.Itoa(testport.Free(t)) }

// poll reads one report from the node.
func poll(address string) (tpv gpsd.TPV, err error) {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return tpv, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write([]byte("?POLL;\n")); err != nil {
		return tpv, err
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var answer struct{ TPV []gpsd.TPV }
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			return tpv, err
		}
		if len(answer.TPV) == 1 {
			return answer.TPV[0], nil
		}
	}
	return tpv, errors.New("no answer")
}

func waitForFix(t *testing.T, address string) (tpv gpsd.TPV) {
	t.Helper()
	waitFor(t, "a fix at "+address, func() bool {
		var err error
		tpv, err = poll(address)
		return err == nil && tpv.Mode == gpsd.Mode3D
	})
	return tpv
}

// checkReport wants the latitude of northward at the report's own time.
func checkReport(t *testing.T, tpv gpsd.TPV, t0 time.Time) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, tpv.Time)
	if err != nil {
		t.Fatal(err)
	}
	// The time has milliseconds, so that the platform may have moved once since then.
	seconds := max(0, int(at.Add(time.Millisecond).Sub(t0)/time.Second))
	least := 58 + float64(max(0, int(at.Sub(t0)/time.Second)))/1000
	if got, most := *tpv.LatitudeDegrees, 58+float64(seconds)/1000; got < least-1e-8 || got > most+1e-8 || *tpv.LongitudeDegrees != 8 {
		t.Errorf("report %+v, %v after T0: latitude %v; want from %v to %v", tpv, at.Sub(t0), got, least, most)
	}
}

func TestProgramsOfANodeLearnWhereItsPlatformIs(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.movement = northward(t)
	n := newCarriedNode(t, s, localAddress(t))
	n.run()
	n.waitPhase(runapi.AgentReady)
	before := waitForFix(t, n.options.GPSAddress)
	if *before.LatitudeDegrees != 58 || before.Device != "vignette:platform-3" {
		t.Errorf("before T0: %+v at %v; want the platform's first position", before, *before.LatitudeDegrees)
	}
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	t0 := *s.currentPlan().T0
	waitFor(t, "3 s after T0", func() bool { return time.Since(t0) > 3200*time.Millisecond })
	now := waitForFix(t, n.options.GPSAddress)
	checkReport(t, now, t0)
	if *now.SpeedMetresPerSecond < 110 || *now.SpeedMetresPerSecond > 112 || *now.CourseDegrees != 0 {
		t.Errorf("speed %v m/s towards %v°; want 111 to the north", *now.SpeedMetresPerSecond, *now.CourseDegrees)
	}
	checkPositionFile(t, filepath.Join(n.options.RunDir, "position.json"), t0)
	checkEnvironment(t, filepath.Join(filepath.Dir(n.options.LogDir), "env"), t0)
	s.finish()
	if code := n.waitExit(); code != 0 {
		t.Errorf("exit code %d; want 0", code)
	}
	checkPositionLog(t, s.log(runapi.PositionsLog), t0)
	if _, err := poll(n.options.GPSAddress); err == nil {
		t.Error("the position is still served after the end")
	}
}

func TestEachInstanceReportsTheMovementOfItsOwnPlatform(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.movements = map[string][]byte{"nor/units/1": northward(t)}
	out := t.TempDir()
	n := newNode(t, s, "env > "+out+"/${VIGNETTE_INSTANCE##*/}; exec sleep 60")
	first := n.config.Instances[0]
	n.config.Instances = nil
	for i := range 2 {
		one := first
		one.Name, one.Platform = "nor/units/"+strconv.Itoa(i+1), 3-i
		n.config.Instances = append(n.config.Instances, one)
	}
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	t0 := *s.currentPlan().T0
	waitFor(t, "4 s after T0", func() bool { return time.Since(t0) > 4*time.Second })
	for instance, want := range map[string]bool{"1": true, "2": false} { // platform 2 has no position
		var text []byte
		waitFor(t, "the environment of instance "+instance, func() bool {
			text, _ = os.ReadFile(filepath.Join(out, instance))
			return strings.Contains(string(text), "VIGNETTE_INSTANCE=")
		})
		if got := strings.Contains(string(text), "VIGNETTE_MOVEMENT="+filepath.Join(n.options.RunDir, "movement-"+instance)+"\n"); got != want {
			t.Errorf("instance %s has a movement: %v; want %v", instance, got, want)
		}
	}
	s.finish()
	n.waitExit()
	checkPositionLog(t, s.log(runapi.PlatformLog(1)), t0)
	if events := s.event(t, eventNoPosition); len(events) != 1 || !strings.Contains(events[0].Message, "no position of platform 2") {
		t.Errorf("events %+v; want that platform 2 has no position", events)
	}
}

func checkPositionFile(t *testing.T, path string, t0 time.Time) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var tpv gpsd.TPV
	if err := json.Unmarshal(text, &tpv); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	checkReport(t, tpv, t0)
}

func checkEnvironment(t *testing.T, path string, t0 time.Time) {
	t.Helper()
	for _, want := range []string{"VIGNETTE_T0_NS=" + strconv.FormatInt(t0.UnixNano(), 10) + "\n", "/run/movement\n"} {
		waitFor(t, want+" in the app's environment", func() bool {
			text, _ := os.ReadFile(path)
			return strings.Contains(string(text), want)
		})
	}
}

// checkPositionLog wants each second's position with the exact time from which it holds.
func checkPositionLog(t *testing.T, log string, t0 time.Time) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if len(lines) < 3 {
		t.Fatalf("log %q; want three lines at least", log)
	}
	for second, line := range lines {
		var got runapi.NodePosition
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := runapi.NodePosition{TimeNanoseconds: t0.Add(time.Duration(second) * time.Second).UnixNano(), Position: [3]float64{58 + float64(second)/1000, 8, 20}}
		if off := got.Position[0] - want.Position[0]; got.TimeNanoseconds != want.TimeNanoseconds || off > 1e-8 || off < -1e-8 || got.Position[2] != 20 {
			t.Errorf("line %d is %+v; want %+v", second, got, want)
		}
	}
}

func TestAFixedNodeIsServedItsOwnPlaceAndAsksNoServer(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.movementStatus = http.StatusNotFound
	n := newNode(t, s, "exec sleep 60")
	n.config.Position = &agentconfig.Position{LatitudeDegrees: 58.2, LongitudeDegrees: -7.5, AltitudeMetres: 120}
	n.options.GPSAddress = localAddress(t)
	n.run()
	tpv := waitForFix(t, n.options.GPSAddress)
	if *tpv.LatitudeDegrees != 58.2 || *tpv.LongitudeDegrees != -7.5 || *tpv.HeightMetres != 120 || *tpv.SpeedMetresPerSecond != 0 {
		t.Errorf("%+v at %v, %v; want the fixed place", tpv, *tpv.LatitudeDegrees, *tpv.LongitudeDegrees)
	}
	if _, err := os.Stat(filepath.Join(n.options.RunDir, "position.json")); err == nil {
		t.Error("there is a position file; want none where the configuration does not ask for it")
	}
}

func TestANodeWithoutAPositionServesNone(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newNode(t, s, "exec sleep 60")
	n.options.GPSAddress = localAddress(t)
	n.run()
	n.waitPhase(runapi.AgentReady)
	if _, err := poll(n.options.GPSAddress); err == nil {
		t.Error("a position is served; want none")
	}
}

func TestAnAppWaitsUntilTheMovementIsMade(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.movement, s.movementStatus = northward(t), http.StatusServiceUnavailable
	n := newCarriedNode(t, s, "127.0.0.1:0")
	n.run()
	time.Sleep(time.Second)
	if phase := s.lastReport().Phase; phase != "" {
		t.Errorf("the agent reported %s before it had the movement", phase)
	}
	s.set(func(s *fakeServer) { s.movementStatus = 0 })
	n.waitPhase(runapi.AgentReady)
	if _, err := position.Open(filepath.Join(n.options.RunDir, "movement")); err != nil {
		t.Errorf("the movement that programs evaluate: %v", err)
	}
}

func TestAMovementThatWillNeverBeThereFailsTheAppWithTheReason(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.movementStatus = http.StatusNotFound
	n := newCarriedNode(t, s, "127.0.0.1:0")
	n.run()
	n.waitPhase(runapi.AgentFailed)
	if message := s.lastReport().Message; !strings.Contains(message, "cannot know its position") || !strings.Contains(message, "no movement") {
		t.Errorf("message %q; want the server's reason", message)
	}
}

func TestAScenarioWithoutMovementsIsAnEventAndNoFailure(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.movementStatus = http.StatusUnprocessableEntity
	n := newCarriedNode(t, s, localAddress(t))
	n.run()
	n.waitPhase(runapi.AgentReady)
	waitFor(t, "the event", func() bool { return len(s.event(t, eventNoPosition)) == 1 })
	if got := s.event(t, eventNoPosition)[0].Message; !strings.Contains(got, "no movement") {
		t.Errorf("message %q; want the server's reason", got)
	}
}

func TestAMovementThatCannotBeWrittenIsNotUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l := &locator{runDir: filepath.Join(file, "run")}
	if m, err := l.keep(northward(t), agentconfig.MovementFile); err == nil || m != nil {
		t.Errorf("%v, movement %v; want an error and no movement", err, m)
	}
}

func TestARestartedAgentLogsNoPositionTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), runapi.PositionsLog)
	t0 := time.Now().Add(-5 * time.Second)
	movement, err := position.New(northward(t))
	if err != nil {
		t.Fatal(err)
	}
	logUntil := func(lines int) {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- logPositions(ctx, movement, t0, file) }()
		waitFor(t, strconv.Itoa(lines)+" lines", func() bool {
			text, _ := os.ReadFile(path)
			return strings.Count(string(text), "\n") >= lines
		})
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	logUntil(5)
	cutShort(t, path)
	logUntil(7)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkPositionLog(t, string(text), t0)
}

// cutShort cuts a log off within a line, as a crash does.
func cutShort(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-10); err != nil {
		t.Fatal(err)
	}
}

func TestAPlatformWithoutPositionsIsAnEventAndNoFailure(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	n := newCarriedNode(t, s, localAddress(t))
	n.run()
	n.waitPhase(runapi.AgentReady)
	waitFor(t, "the event", func() bool { return len(s.event(t, eventNoPosition)) == 1 })
	if _, err := poll(n.options.GPSAddress); err == nil {
		t.Error("a position is served; want none")
	}
}

func TestAnotherAppOfTheNodeServesWhenTheFirstHasEnded(t *testing.T) {
	t.Parallel()
	address := localAddress(t)
	first, second := newFakeServer(t), newFakeServer(t)
	first.movement, second.movement = northward(t), northward(t)
	one, other := newCarriedNode(t, first, address), newCarriedNode(t, second, address)
	one.run()
	waitForFix(t, address)
	other.run()
	other.waitPhase(runapi.AgentReady)
	first.finish()
	one.waitExit()
	waitForFix(t, address)
}

func TestGPSSoftwareReadsANodesPosition(t *testing.T) {
	t.Parallel()
	program := testtool.Need(t, "gpspipe")
	s := newFakeServer(t)
	s.movement = northward(t)
	n := newCarriedNode(t, s, localAddress(t))
	n.run()
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	waitForFix(t, n.options.GPSAddress)
	out, err := exec.Command(program, "-w", "-n", "5", n.options.GPSAddress).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	reports := 0
	for line := range strings.Lines(string(out)) {
		var tpv gpsd.TPV
		if json.Unmarshal([]byte(line), &tpv) == nil && tpv.Class == "TPV" {
			reports++
			checkReport(t, tpv, *s.currentPlan().T0)
		}
	}
	if reports != 2 {
		t.Errorf("%d reports; want 2:\n%s", reports, out)
	}
}
