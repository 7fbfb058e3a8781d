package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/testtool"
)

const root = "../.."

func TestTheChartHasTheDashboardsAsTheyAreGenerated(t *testing.T) {
	for name, text := range files() {
		have, err := os.ReadFile(filepath.Join(root, folder, name))
		if err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s is not what is generated (%v): go run ./hack/dashboards", name, err)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(root, folder, "*")); len(found) != len(files()) {
		t.Errorf("%d files in %s; want %d", len(found), folder, len(files()))
	}
}

// run runs a program in the repository's root. Its output says what is wrong.
func run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", program, err, out)
	}
}

func TestGrafanasPublishedSchemaTakesTheDashboards(t *testing.T) {
	arguments := []string{"hack/dashboards/schema.py"}
	for name := range files() {
		arguments = append(arguments, filepath.Join(folder, name))
	}
	run(t, "hack/python", arguments...)
}

func TestTheCheckAgainstTheSchemaFindsAFieldThatGrafanaDoesNotKnow(t *testing.T) {
	d := platform().model()
	d["panels"].([]any)[0].(object)["gridPosition"] = object{"x": 1}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "wrong.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "hack/python", "hack/dashboards/schema.py", file)
	command.Dir = root
	if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), ".panels[0].gridPosition") {
		t.Errorf("%v, %s; want to hear of gridPosition", err, out)
	}
}

func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	testtool.Need(t, "promtool")
	run(t, "promtool", arguments...)
}

func TestRulesDoWhatTheySay(t *testing.T) {
	promtool(t, "check", "rules", "charts/vignette/files/rules/live.yml")
	promtool(t, "test", "rules", "hack/dashboards/testdata/rules.yml")
}

func TestTheConfigurationOfPrometheusIsOne(t *testing.T) {
	promtool(t, "check", "config", "--syntax-only", "charts/vignette/files/prometheus.yml")
}

func TestEveryQueryOfEveryDashboardIsPromQL(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n- name: queries\n  rules:\n")
	n := 0
	for _, d := range []dashboard{experiment(), campaign(), platform()} {
		for _, r := range d.rows {
			for _, p := range r.panels {
				for _, q := range p.queries {
					fmt.Fprintf(&rules, "  - {record: \"query:%d\", expr: %q}\n", n, q.expr)
					n++
				}
			}
		}
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// The panels of a row fill Grafana's grid. Each has a description and a unit.
func TestPanelsFillTheirRows(t *testing.T) {
	titles := map[string]bool{}
	for _, d := range []dashboard{experiment(), campaign(), platform()} {
		for i, r := range d.rows {
			width := 0
			for _, p := range r.panels {
				width += p.width
				if p.about == "" || p.title == "" || (p.unit == "" && p.kind != "table") {
					t.Errorf("%s, row %d: panel %q lacks a title, an explanation or a unit", d.title, i, p.title)
				}
				titles[p.title] = true
			}
			if width != 24 {
				t.Errorf("%s, row %d is %d columns wide; want 24", d.title, i, width)
			}
		}
	}
	if len(titles) < 20 {
		t.Errorf("%d panels: %v; want 20 at least", len(titles), slices.Sorted(maps.Keys(titles)))
	}
}
