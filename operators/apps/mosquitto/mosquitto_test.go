package mosquitto

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func sites() map[string]apps.Site {
	site := func(bridges ...v1alpha1.Bridge) apps.Site {
		s := apps.Site{App: v1alpha1.App{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{Bridges: bridges}}, Node: "prt", Instances: []string{"prt/broker"}}
		for _, b := range bridges {
			node, _, _ := strings.Cut(b.To, "/")
			s.BridgePeers = append(s.BridgePeers, node)
		}
		return s
	}
	return map[string]apps.Site{
		"single":     site(),
		"everything": site(v1alpha1.Bridge{To: "nor/broker"}),
		"chosen": site(
			v1alpha1.Bridge{To: "nor/broker", Topics: []v1alpha1.BridgeTopic{{Filter: "/NOR/#", Direction: "in"}, {Filter: "/PRT/+/+/location", Direction: "out", QoS: 2}}},
			v1alpha1.Bridge{To: "usa/broker", Topics: []v1alpha1.BridgeTopic{{Filter: "chat/#", Direction: "both", QoS: 1}}}),
	}
}

func TestConfigurationsAreAsTheirGoldenFiles(t *testing.T) {
	for name, site := range sites() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".conf", Config(site))
		})
	}
}

// TestMosquittoTakesTheGoldenFiles runs the real broker on each configuration, moved to loopback and a free port.
func TestMosquittoTakesTheGoldenFiles(t *testing.T) {
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		program = "/usr/sbin/mosquitto"
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("mosquitto is not installed (Debian package mosquitto)")
	}
	for name, site := range sites() {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(Config(site), "listener 1883", fmt.Sprintf("listener %d 127.0.0.1", testport.Free(t)), 1)
			for _, peer := range site.BridgePeers { // nobody listens on port 9 of loopback
				text = strings.ReplaceAll(text, "address "+peer+":1883", "address 127.0.0.1:9")
			}
			path := filepath.Join(t.TempDir(), "mosquitto.conf")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			output, err := exec.CommandContext(ctx, program, "-c", path).CombinedOutput()
			if ctx.Err() == nil || !bytes.Contains(output, []byte("running")) {
				t.Errorf("mosquitto does not run: %v\n%s", err, output)
			}
		})
	}
}

func TestTheBrokerRunsOnceAndReadsItsFile(t *testing.T) {
	r := Kind{}.Render(sites()["single"])
	if len(r.Instances) != 1 || r.Instances[0].Command[2] != r.Files[0].Path || r.PublishTopics != nil || r.Subscriptions != nil {
		t.Errorf("rendered %+v", r)
	}
}
