package main

import (
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestTheScenarioHasTheScriptThatIsGenerated(t *testing.T) {
	text, err := os.ReadFile("../messages-synthetic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var e v1alpha1.Experiment
	if err := yaml.UnmarshalStrict(text, &e); err != nil {
		t.Fatal(err)
	}
	want, got := messages(), e.Spec.Apps[1].Script.Messages
	if len(want) != count || len(got) != count {
		t.Fatalf("%d messages are generated and %d in the scenario; want %d", len(want), len(got), count)
	}
	crossing := 0
	for i, m := range want {
		if (v1alpha1.ScriptedMessage{At: fmt.Sprintf("%.1fs", m.atSeconds), From: m.from, To: m.to, Text: m.text}) != got[i] {
			t.Fatalf("message %d is %+v; the generator makes %+v", i+1, got[i], m)
		}
		if m.to == "all" || m.to == "lead-a" || m.to == "lead-b" {
			crossing++
		}
	}
	if crossing < count/10 || crossing > count/2 {
		t.Errorf("%d messages may cross between the groups; want some, and not most", crossing)
	}
}
