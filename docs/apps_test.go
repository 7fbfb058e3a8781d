package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/markdown"
)

// appsOf a fragment, which is a list of apps or has one.
func appsOf(text string) (apps []object) {
	if err := yaml.Unmarshal([]byte(text), &apps); err == nil {
		return apps
	}
	fragment := struct{ Apps []object }{}
	if err := yaml.Unmarshal([]byte(text), &fragment); err != nil {
		return nil
	}
	return fragment.Apps
}

// onNodes is an experiment with each app on a node of its own, and scripts on all nodes that they name.
func onNodes(t *testing.T, apps []object) string {
	t.Helper()
	names := map[string]bool{}
	for _, app := range apps {
		names[app["name"].(string)] = true
	}
	if !names["broker"] {
		apps = append(apps, object{"name": "broker", "mosquitto": object{}})
	}
	var nodes []object
	scripted := []any{}
	for i, app := range apps {
		if app["script"] != nil {
			scripted = append(scripted, app["name"])
			continue
		}
		nodes = append(nodes, object{"name": fmt.Sprintf("node-%d", i), "networks": []string{"vhf"}, "apps": []any{app["name"]}})
	}
	for _, name := range []string{"hq", "lead-a", "lead-b", "a-3"} {
		nodes = append(nodes, object{"name": name, "networks": []string{"vhf"}, "apps": scripted})
	}
	whole, err := yaml.Marshal(object{"apiVersion": "vignette.dev/v1alpha1", "kind": "Experiment", "metadata": object{"name": "fragment"}, "spec": object{
		"duration": "20m", "networks": []object{{"name": "vhf", "subnet": "198.18.1.0/24", "waveform": "baseline"}}, "apps": apps, "nodes": nodes,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(whole)
}

func TestAppsOfTheHowTosAreValid(t *testing.T) {
	tried := 0
	for _, page := range []string{"connect-brokers", "run-own-app", "script-messages"} {
		text, err := os.ReadFile("how-to/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range markdown.Blocks(string(text)) {
			apps := appsOf(block.Text)
			if block.Language != "yaml" || len(apps) == 0 {
				continue
			}
			tried++
			experiment := onNodes(t, apps)
			var lacking []string
			for _, finding := range refused(experiment) {
				if !strings.Contains(finding, "until the cluster has it") {
					lacking = append(lacking, finding)
				}
			}
			if len(lacking) > 0 {
				t.Errorf("how-to/%s.md:%d is refused:\n%s\nin:\n%s", page, block.Line, strings.Join(lacking, "\n"), experiment)
			}
		}
	}
	if tried < 12 {
		t.Errorf("%d fragments; want those of all protocols", tried)
	}
}
