package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/internal/trafficconfig"
)

// A nation in small: a broker and eight clients that publish and subscribe, each app under its agent,
// started together by the plan.
func TestABrokerAndItsClientsUnderAgentsLoseNothing(t *testing.T) {
	t.Parallel()
	mosquitto, program := testtool.Need(t, "mosquitto"), filepath.Join(t.TempDir(), "traffic")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "vignette.dev/vignette/images/traffic")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	port := strconv.Itoa(testport.Free(t))
	address := "127.0.0.1:" + port

	brokers, clients := newFakeServer(t), newFakeServer(t)
	broker := newNode(t, brokers)
	conf := filepath.Join(t.TempDir(), "mosquitto.conf")
	broker.config.App = "broker"
	broker.config.Files = []agentconfig.File{{Path: conf, Content: "listener " + port + " 127.0.0.1\nallow_anonymous true\npersistence false\nuser root\n"}}
	broker.config.Instances = []agentconfig.Instance{{Name: "nor/broker", Command: []string{mosquitto, "-c", conf}}}
	units := newNode(t, clients)
	units.config.StopGraceSeconds, units.config.DrainOnStop = 2, true
	addUnits(t, units, program, address)
	broker.run()
	units.run()
	brokers.waitAsked()
	clients.waitAsked()
	t0 := time.Now().Add(2 * time.Second).Round(0)
	for s, start := range map[*fakeServer]string{brokers: "b1", clients: "u1"} {
		s.set(func(s *fakeServer) {
			s.plan.T0 = &t0
			s.plan.Actions = []runapi.Action{{ID: start, Verb: runapi.VerbStart}}
		})
	}
	clients.set(func(s *fakeServer) {
		s.plan.Actions = append(s.plan.Actions, runapi.Action{ID: "u2", Verb: runapi.VerbStop, AtNanoseconds: 7e9})
	})
	waitFor(t, "the stop", func() bool { return clients.lastReport().ExecutedActions == 2 })
	time.Sleep(time.Second) // the drain
	waitFor(t, "what is under way", func() bool { return allReceived(clients) })
	clients.finish()
	brokers.finish()
	if a, b := units.waitExit(), broker.waitExit(); a != 0 || b != 0 {
		t.Errorf("exit codes %d, %d; want 0", a, b)
	}
	checkUnits(t, clients)
}

// firstAfter is so many seconds that all have subscribed by then.
const unitCount, unitPeriod, firstAfter = 8, 0.2, 5

func addUnits(t *testing.T, n *node, program, broker string) {
	t.Helper()
	for i := range unitCount {
		entity, path := fmt.Sprintf("NOR-S%03d", i+1), filepath.Join(t.TempDir(), "config.json")
		text, err := json.Marshal(trafficconfig.Config{Instance: fmt.Sprintf("nor/bft/%d", i+1), Protocol: "mqtt", Broker: broker, Country: "NOR", Unit: "NOR-UNIT001", Entity: entity,
			Seed:      int64(i),
			Publish:   &trafficconfig.Publish{Topic: "/NOR/NOR-UNIT001/" + entity + "/location", Payload: "geojson", PeriodSeconds: unitPeriod, FirstAfterSeconds: firstAfter + 0.02*float64(i)},
			Subscribe: &trafficconfig.Subscribe{Topics: []string{"#"}}})
		if err != nil {
			t.Fatal(err)
		}
		n.config.Files = append(n.config.Files, agentconfig.File{Path: path, Content: string(text)})
		n.config.Instances = append(n.config.Instances, agentconfig.Instance{Name: fmt.Sprintf("nor/bft/%d", i+1), Command: []string{program, "--config", path}})
	}
}

// allReceived reports whether what was sent so far is archived as received, by each of the other units.
func allReceived(s *fakeServer) bool {
	sent, received := 0, 0
	for i := range unitCount {
		log := s.log(fmt.Sprintf("messages-%d.jsonl", i+1))
		sent += strings.Count(log, `"status":"sent"`)
		received += strings.Count(log, `"status":"received"`)
	}
	return sent > 0 && received == sent*(unitCount-1)
}

// checkUnits wants every archived message at each of the seven other units.
func checkUnits(t *testing.T, s *fakeServer) {
	t.Helper()
	sent, received := map[string]int64{}, map[string]int{}
	triggered := 0
	for i := range unitCount {
		bad, err := messagelog.Read(strings.NewReader(s.log(fmt.Sprintf("messages-%d.jsonl", i+1))), func(r messagelog.Record) {
			switch r.Status {
			case messagelog.Triggered:
				triggered++
			case messagelog.Sent:
				sent[r.ID] = r.TimeNanoseconds
			case messagelog.Received:
				received[r.ID]++
			}
		})
		if err != nil || bad > 0 {
			t.Errorf("message log %d: %d bad lines, %v", i+1, bad, err)
		}
	}
	if len(sent) != triggered || len(sent) < 7*unitCount {
		t.Errorf("%d triggered, %d sent; want the same, %d at least", triggered, len(sent), 7*unitCount)
	}
	for id := range sent {
		if received[id] != unitCount-1 {
			t.Errorf("%s was received %d times; want %d", id, received[id], unitCount-1)
		}
	}
	t.Logf("%d messages, each received %d times", len(sent), unitCount-1)
}

// geoJSON is what a publisher sends, in datagrams.
type geoJSON struct {
	Geometry   struct{ Coordinates []float64 }
	Properties struct {
		Timestamp int64
	}
}

func TestAPublisherReportsWhereItsPlatformIs(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "traffic")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", program, "vignette.dev/vignette/images/traffic").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	air, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer air.Close()
	s := newFakeServer(t)
	s.movement = northward(t)
	n := newCarriedNode(t, s, "127.0.0.1:0")
	config := trafficconfig.Config{Instance: "nor/bft", Protocol: "mqtt-udp", Broadcast: air.LocalAddr().String(), Interface: "lo", Country: "NOR", Unit: "NOR-UNIT001", Entity: "NOR-S001",
		Publish: &trafficconfig.Publish{Topic: "/NOR/location", Payload: "geojson", PeriodSeconds: 0.3}}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.json")
	n.config.Files = []agentconfig.File{{Path: path, Content: string(text)}}
	n.config.Instances = []agentconfig.Instance{{Name: "nor/bft", Command: []string{program, "--config", path}}}
	n.run()
	n.waitPhase(runapi.AgentReady)
	s.arm("a1", runapi.VerbStart, 1500*time.Millisecond)
	t0 := *s.currentPlan().T0
	checkDatagrams(t, air, t0)
	s.finish()
	n.waitExit()
	checkReported(t, s.log("messages-1.jsonl"), t0)
}

// latitudeAt of northward; milliseconds that are cut off may lie before a step.
func latitudeAt(at, t0 time.Time) float64 { return 58 + float64(max(0, at.Sub(t0)/time.Second))/1000 }

func checkDatagrams(t *testing.T, air net.PacketConn, t0 time.Time) {
	t.Helper()
	buffer := make([]byte, 1<<16)
	_ = air.SetReadDeadline(time.Now().Add(30 * time.Second))
	for range 8 {
		size, _, err := air.ReadFrom(buffer)
		if err != nil {
			t.Fatal(err)
		}
		var message geoJSON
		// Tail records follow the payload.
		content := buffer[strings.IndexByte(string(buffer[:size]), '{'):size]
		if err := json.NewDecoder(bytes.NewReader(content)).Decode(&message); err != nil {
			t.Fatalf("%q: %v", buffer[:size], err)
		}
		at := time.UnixMilli(message.Properties.Timestamp)
		if got := message.Geometry.Coordinates[0]; got < latitudeAt(at, t0)-1e-6 || got > latitudeAt(at.Add(time.Millisecond), t0)+1e-6 {
			t.Errorf("a message made %v after T0 reports latitude %v; want %v", at.Sub(t0), got, latitudeAt(at, t0))
		}
	}
}

// checkReported wants each triggered message with the position at its time.
func checkReported(t *testing.T, log string, t0 time.Time) {
	t.Helper()
	triggered := 0
	_, err := messagelog.Read(strings.NewReader(log), func(r messagelog.Record) {
		if r.Status != messagelog.Triggered {
			return
		}
		triggered++
		want := latitudeAt(time.Unix(0, r.TimeNanoseconds), t0)
		if r.Position == nil || r.Position[0] < want-1e-7 || r.Position[0] > want+1e-7 || r.Position[1] != 8 || r.Position[2] != 20 {
			t.Errorf("record %+v has position %v; want latitude %v", r, r.Position, want)
		}
	})
	if err != nil || triggered < 8 {
		t.Errorf("%d triggered, %v; want 8 at least", triggered, err)
	}
}
