package guest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/gpsd/gpsdtest"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/server"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// people are the operator and the node's launcher.
type people struct{}

func (people) Authenticate(_ context.Context, token string) (server.Identity, error) {
	if token == "operator" {
		return server.Identity{Username: "operator"}, nil
	}
	return server.Identity{Username: "system:serviceaccount:team:default", PodUID: "launcher-1"}, nil
}

// newArchive is the real server, with a run whose node is on platform 3, and the operator's client.
func newArchive(t *testing.T) (dir string, s *server.Server, operator *client.Client, plan runapi.Plan) {
	t.Helper()
	dir = t.TempDir()
	s, err := server.New(server.Config{Dir: dir, Authenticator: people{}, Policy: server.Policy{OperatorUser: "operator"},
		LongPoll: time.Second, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close(); _ = s.Close() })
	operator = client.New(web.URL, nil, func() (string, error) { return "operator", nil })
	digest, content := gpsdtest.Northward(t)
	if err := operator.PutScenario(t.Context(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	platform := int32(3)
	return dir, s, operator, runapi.Plan{Namespace: "team", Name: "vm", UID: "run-1", Phase: "Provisioning",
		Scenario: &runapi.PlannedScenario{Name: "north", Digest: digest, Statistics: v1alpha1.ScenarioStatistics{Positions: true}},
		Nodes: []runapi.PlannedNode{{Name: "veh-1", Group: "veh", NEM: 1, PodUID: "launcher-1", Platform: &platform,
			Apps: []runapi.PlannedApp{{Name: "probe", Kind: "image", Instances: []string{"veh-1/probe"}}}}}}
}

// guestWithAgent is a guest with the agent among its tools.
func guestWithAgent(t *testing.T) *guest {
	t.Helper()
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	return guestWith(t, t.TempDir(), map[string]string{"config/token": "node", "tools/agent": string(program)})
}

// TestAnAppOfAMachineLearnsWhereItsPlatformIs with the real agent and server, in a network namespace in the machine's place.
func TestAnAppOfAMachineLearnsWhereItsPlatformIs(t *testing.T) {
	needRoot(t)
	archive, s, operator, plan := newArchive(t)
	put := func() {
		t.Helper()
		if _, err := operator.PutPlan(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
	}
	put()
	g := guestWithAgent(t)
	inNamespace(t, func() { startProbe(t, g, s) })
	waitUntil(t, "the agent to be ready", func() bool {
		state, err := operator.State(t.Context(), "run-1")
		return err == nil && len(state.Agents) == 1 && state.Agents[0].Phase == runapi.AgentReady
	})
	t0 := time.Now().Add(time.Second).Truncate(time.Millisecond)
	plan.T0, plan.ArmedVersion = &t0, 1
	plan.Armed = []runapi.Action{{ID: "start", Verb: runapi.VerbStart, Targets: []runapi.Target{{Node: "veh-1", App: "probe"}}}}
	put()
	var said string
	waitUntil(t, "the app to tell where it is", func() bool {
		files, _ := filepath.Glob(filepath.Join(archive, "*", "*", "*", "logs", "veh-1", "probe", "stdout-1.log"))
		if len(files) == 1 {
			text, _ := os.ReadFile(files[0])
			said = string(text)
		}
		return strings.HasSuffix(said, gpsdtest.End)
	})
	gpsdtest.CheckNorthward(t, said, t0)
}

// startProbe starts the app, with the server, in the namespace of the calling thread.
func startProbe(t *testing.T, g *guest, s *server.Server) {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		t.Error(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return
	}
	web := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}}
	web.Start()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	command, output, err := g.start(guestconfig.App{Agent: agentconfig.Config{Server: web.URL, RunUID: "run-1", Node: "veh-1", App: "probe", StopGraceSeconds: 1,
		Position:  &agentconfig.Position{Platform: 3, File: true, Log: true},
		Instances: []agentconfig.Instance{{Name: "veh-1/probe", Command: []string{"/bin/bash", "-c", gpsdtest.Script}}}}})
	if err != nil {
		t.Error(err)
		return
	}
	said := make(chan string, 1)
	go func() { text, _ := io.ReadAll(output); said <- string(text) }()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		text := <-said
		if _ = command.Wait(); t.Failed() {
			t.Logf("the agent said\n%s", text)
		}
	})
}

var waitUntil = testtool.Eventually
