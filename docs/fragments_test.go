package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/markdown"
	"vignette.dev/vignette/internal/validate"
)

// completable are the fields of an experiment's spec of which a fragment may consist.
var completable = []string{"networks", "nodes", "timeline", "scenario", "collect", "tcpCongestionControl"}

// object of YAML.
type object = map[string]any

// otherFields take the place of what a fragment leaves out.
func otherFields(t *testing.T) object {
	t.Helper()
	spec := object{}
	if err := yaml.Unmarshal([]byte(`
duration: 20m
scenario: {ref: company1}
networks:
- {name: wan, subnet: 198.18.9.0/24, waveform: tactical-1}
- {name: vhf, subnet: 198.18.1.0/24, waveform: tdma-wideband}
nodes: [{name: hq}, {name: nor}, {name: usa}, {name: veh, count: 3}]
apps:
- {name: broker, mosquitto: {}}
- {name: bft, publisher: {protocol: mqtt, to: broker, period: 10s}, subscriber: {protocol: mqtt, to: broker}}
`), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// completed makes an experiment of a fragment. It reports whether the text is one.
func completed(t *testing.T, text string) (experiment string, isFragment bool) {
	t.Helper()
	fragment := object{}
	if err := yaml.Unmarshal([]byte(text), &fragment); err != nil {
		return "", false // a list, or a fragment of a field
	}
	spec := otherFields(t)
	for name, value := range fragment {
		if !slices.Contains(completable, name) {
			return "", false
		}
		spec[name] = value
	}
	attach(spec)
	whole, err := yaml.Marshal(object{"apiVersion": "vignette.dev/v1alpha1", "kind": "Experiment", "metadata": object{"name": "fragment"}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return company + string(whole), true
}

// attach nodes without networks to all of them, and add networks that only nodes name. The first node runs the apps.
func attach(spec object) {
	networks, _ := spec["networks"].([]any)
	var names []any
	for _, network := range networks {
		names = append(names, network.(object)["name"])
	}
	for i, node := range spec["nodes"].([]any) {
		node := node.(object)
		if node["networks"] == nil {
			node["networks"] = names
		}
		for _, name := range node["networks"].([]any) {
			if !slices.Contains(names, name) {
				names = append(names, name)
				networks = append(networks, object{"name": name, "subnet": fmt.Sprintf("198.19.%d.0/24", len(names)), "link": object{}})
			}
		}
		if i == 0 {
			node["apps"] = []any{"broker", "bft"}
		}
	}
	spec["networks"] = networks
}

// company is a scenario of as many platforms as any fragment has nodes.
const company = `apiVersion: vignette.dev/v1alpha1
kind: Scenario
metadata: {name: company1}
spec:
  format: synthetic
  synthetic: {pattern: Line, platforms: 24, duration: 20m}
  propagation: {model: FreeSpace, frequency: 300MHz}
---
`

// refused are the findings by which an experiment would not start.
func refused(experiment string) (findings []string) {
	for _, f := range validate.Text("fragment.yaml", []byte(experiment)).Findings {
		if !strings.Contains(f.Message, "not among these objects") && (!f.Warning || strings.Contains(f.Message, "Accepted=False")) {
			findings = append(findings, fmt.Sprint(f))
		}
	}
	return findings
}

func TestFragmentsOfExperimentsAreValid(t *testing.T) {
	pages, err := filepath.Glob("how-to/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range markdown.Blocks(string(text)) {
			experiment, isFragment := completed(t, block.Text)
			if block.Language != "yaml" || !isFragment || strings.Contains(block.Text, "apps:") {
				continue
			}
			tried++
			if findings := refused(experiment); len(findings) > 0 {
				t.Errorf("%s:%d:\n%s\nis refused:\n%s", page, block.Line, block.Text, strings.Join(findings, "\n"))
			}
		}
	}
	if tried < 10 {
		t.Errorf("%d fragments; want those of the pages on links, radios, routing and captures", tried)
	}
}

func TestAWrongFragmentIsRefused(t *testing.T) {
	for _, text := range []string{"networks:\n- {name: wan, subnet: 198.18.9.0/24, link: {rat: 1Mbit}}", "timeline:\n- {at: 1m, set: [{network: wan, radio: {transmit: false}}]}"} {
		experiment, isFragment := completed(t, text)
		if !isFragment || len(refused(experiment)) == 0 {
			t.Errorf("%s is taken for valid", text)
		}
	}
}
