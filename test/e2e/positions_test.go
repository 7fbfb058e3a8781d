//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestAppsReportWhereTheScenarioHasTheirNode(t *testing.T) {
	t.Parallel()
	e, movement := scenarioWithMovement(t, "positions/experiment.yaml")
	e.Namespace = newNamespace(t)
	program, err := os.ReadFile(filepath.Join("..", "..", "scenarios", "positions", "gps.py"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range e.Spec.Apps {
		if e.Spec.Apps[i].Image != "" {
			e.Spec.Apps[i].Image = analysisImage(t)
		}
	}
	mustCreate(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "positions-programs"}, Data: map[string]string{"gps.py": string(program)}})
	createIn(t, e.Namespace, movement)
	mustCreate(t, e)
	done := waitFor(t, e, startTimeout+finishTimeout, v1alpha1.PhaseSucceeded)

	checkPicture(t, resultsOf(t, done.UID))
	for _, node := range []string{"veh-1", "veh-2"} {
		known := truePositions(t, done, node)
		for app, least := range map[string]int{"bft": 6, "tracker": 15} {
			checkReports(t, node+"/"+app, archivedText(t, done, "logs/"+node+"/"+app+"/messages-1.jsonl"), known, least)
		}
	}
	if fixed := truePositions(t, done, "hq"); len(fixed) != 1 || fixed[0].Position != [3]float64{58.19, 7.98, 20} {
		t.Errorf("positions of hq: %v; want its own place alone", fixed)
	}
}

// checkPicture wants an age of some seconds and an error of what vehicles go in that time.
func checkPicture(t *testing.T, r runapi.Results) {
	t.Helper()
	if r.Picture == nil || len(r.Picture.Groups) != 2 || r.Picture.Groups[1].Name != "veh" {
		t.Fatalf("picture: %+v; want groups all and veh", r.Picture)
	}
	veh := r.Picture.Groups[1]
	// picture and map at hq, of two vehicles each.
	if veh.Pairs != 4 || veh.KnownPercent < 90 || veh.AgeSeconds == nil || veh.ErrorMetres == nil {
		t.Fatalf("group veh: %+v; want 4 pairs that are known nearly always", veh)
	}
	if veh.AgeSeconds.Mean < 0.5 || veh.AgeSeconds.Mean > 4 || veh.ErrorMetres.Max > 12*8 || veh.ErrorMetres.Median <= 0 {
		t.Errorf("age %+v, error %+v; want ages of periods of 2 and 5 s, and what a vehicle goes in that time at up to 12 m/s", veh.AgeSeconds, veh.ErrorMetres)
	}
}

// truePositions of a node, from the log of its first app.
func truePositions(t *testing.T, e *v1alpha1.Experiment, node string) (found []runapi.NodePosition) {
	t.Helper()
	app := map[string]string{"hq": "broker"}[node]
	if app == "" {
		app = "bft"
	}
	for line := range strings.Lines(archivedText(t, e, "logs/"+node+"/"+app+"/"+runapi.PositionsLog)) {
		var one runapi.NodePosition
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		found = append(found, one)
	}
	if len(found) == 0 {
		t.Fatalf("node %s has logged no position", node)
	}
	return found
}

// checkReports wants each reported position to be the true one of its time, or of the moment before for a program that asked
// before it took the time.
func checkReports(t *testing.T, instance, log string, known []runapi.NodePosition, least int) {
	t.Helper()
	reports := 0
	_, err := messagelog.Read(strings.NewReader(log), func(r messagelog.Record) {
		if r.Position == nil {
			return
		}
		reports++
		i := 0
		for i+1 < len(known) && known[i+1].TimeNanoseconds <= r.TimeNanoseconds {
			i++
		}
		if !near(*r.Position, known[i].Position) && !near(*r.Position, known[max(i-1, 0)].Position) {
			t.Errorf("%s reports %v; want %v", instance, *r.Position, known[i].Position)
		}
	})
	if err != nil || reports < least {
		t.Errorf("%s has %d reports, %v; want %d at least", instance, reports, err, least)
	}
}

func near(a, b [3]float64) bool {
	const degrees = 2e-7 // 2 cm
	off := func(x, y float64) bool { return x-y > degrees || y-x > degrees }
	return !off(a[0], b[0]) && !off(a[1], b[1])
}
