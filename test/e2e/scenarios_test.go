//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// TestShortFormsOfE4GiveWholeResults runs the short forms of the hardest variants: the tactical
// link with both ways of messaging.
func TestShortFormsOfE4GiveWholeResults(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"setting2-mosquitto-tactical-1-10s", "setting2-mqtt-udp-tactical-1-10s"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runScenario(t, filepath.Join("..", "..", "scenarios", "e4", "short", name+".yaml"), finishTimeout)
		})
	}
}

// runScenario applies a scenario's file in a namespace of its own and checks what holds for any run.
func runScenario(t *testing.T, path string, timeout time.Duration) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict(text, e); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	e.Namespace = newNamespace(t)
	mustCreate(t, e)
	done := waitFor(t, e, timeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	t.Logf("%s: %+v, delays %+v, verdict %+v", e.Name, results.Messages, results.DelaySeconds, results.Verdict)
	m := results.Messages
	if m.Sent == 0 || m.Expected != m.Received+m.Lost {
		t.Errorf("%s: %+v; want messages, and every expected one either received or lost", e.Name, m)
	}
	if strings.Contains(path, "baseline") && m.Lost != 0 {
		t.Errorf("%s: %d messages lost on the baseline link; want none", e.Name, m.Lost)
	}
	if strings.Contains(path, "tactical") {
		// 9.8 kbit/s and 100 ms: a frame of 60 bytes, the shortest there is, takes 149 ms.
		if cross := group(t, results, "cross"); cross.DelaySeconds == nil || cross.DelaySeconds.Min < 0.149 {
			t.Errorf("%s: delays between nations %+v; want none below 149 ms", e.Name, cross.DelaySeconds)
		}
	}
	if len(results.Publishers) != 32 {
		t.Errorf("%s: %d publishers; want 4 nations × 8 units", e.Name, len(results.Publishers))
	}
}
