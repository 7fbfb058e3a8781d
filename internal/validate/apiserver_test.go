package validate

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	if object.GetKind() != "Waveform" {
		object.SetNamespace("default")
	}
	return object
}

// TestTheAPIServerRefusesTheSameMistakes installs the definitions in a real API server, which
// checks them too: their schemas, rules and the rules' costs.
func TestTheAPIServerRefusesTheSameMistakes(t *testing.T) {
	c, err := client.New(testkube.Start(t), client.Options{Scheme: testkube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	applyPolicy(t, c, "experimentfields")
	t.Run("refusals", func(t *testing.T) { serverRefuses(t, c) })
	t.Run("words", func(t *testing.T) { serverAnswersInWords(t, c) })
	t.Run("beside an experiment", func(t *testing.T) { serverJudgesBeside(t, c) })
	t.Run("accepted", func(t *testing.T) { serverAccepts(t, c) })
	t.Run("edits", func(t *testing.T) { serverGuardsEdits(t, c) })
	t.Run("the largest experiment", func(t *testing.T) { serverTakesLargest(t, c) })
	t.Run("the most strings", func(t *testing.T) { serverTakesMostStrings(t, c) })
}

// applyPolicy applies a policy of the chart, and waits until it is in force.
func applyPolicy(t *testing.T, c client.Client, name string) {
	t.Helper()
	testkube.ApplyPolicy(t, c, name)
	wrong := parseObject(t, refusal{edits: []string{"name: MODE", "name: 1"}}.broken(t))
	deadline := time.Now().Add(30 * time.Second) // a policy takes a moment to be in force
	for c.Create(t.Context(), wrong, client.DryRunAll) == nil {
		if time.Now().After(deadline) {
			t.Fatal("the policy is not in force")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func serverRefuses(t *testing.T, c client.Client) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			err := c.Create(t.Context(), parseObject(t, r.broken(t)), client.DryRunAll)
			if err == nil {
				t.Fatal("the API server took it")
			}
			// The cluster reports duplicate names and the values of enums in Kubernetes' own words.
			message := strings.NewReplacer("name of an earlier entry", "Duplicate value").Replace(r.message)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), r.path) || !strings.Contains(err.Error(), message) {
				t.Errorf("refused with:\n%v\nwant %s: …%s…", err, r.path, message)
			}
			if strings.Contains(err.Error(), "evaluating rule") {
				t.Errorf("a rule stumbled over what another one refuses:\n%v", err)
			}
		})
	}
}

func serverJudgesBeside(t *testing.T, c client.Client) {
	for _, r := range refusalsBeside {
		t.Run(r.name, func(t *testing.T) {
			err := c.Create(t.Context(), parseObject(t, r.breaking(t, r.text)), client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), r.path) || !strings.Contains(err.Error(), r.message) {
				t.Errorf("refused with:\n%v\nwant %s: …%s…", err, r.path, r.message)
			}
		})
	}
	for _, text := range []string{soundChange, soundCapture} {
		object := parseObject(t, text)
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(object.Object, "other", "spec", "experiment"); err != nil {
			t.Fatal(err)
		}
		if err := c.Update(t.Context(), object); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot be edited: make another") {
			t.Errorf("an edit of %s: %v; want it refused", object.GetKind(), err)
		}
	}
}

func serverAccepts(t *testing.T, c client.Client) {
	if err := c.Create(t.Context(), parseObject(t, sound), client.DryRunAll); err != nil {
		t.Errorf("the sound experiment: %v", err)
	}
	for name, edits := range accepted {
		if err := c.Create(t.Context(), parseObject(t, refusal{edits: edits}.broken(t)), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, pattern := range []string{"scenarios/*/*.yaml", "scenarios/*/short/*.yaml", "scenarios/*/campaigns/*.yaml", "scenarios/*/emane/*.yaml", "scenarios/*/emane/short/*.yaml", "charts/vignette/files/waveforms/*.yaml"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, document := range strings.Split(string(text), "\n---\n") {
				if err := c.Create(t.Context(), parseObject(t, document), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
}

func serverGuardsEdits(t *testing.T, c client.Client) {
	e := &v1alpha1.Experiment{}
	if err := yaml.Unmarshal([]byte(sound), e); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e.Spec.Seed = 2
	if err := c.Update(t.Context(), e); err != nil {
		t.Errorf("an edit before the operator has seen the experiment: %v; want none", err)
	}
	setPhase(t, c, e, v1alpha1.PhaseQueued)
	e.Spec.Seed = 3
	if err := c.Update(t.Context(), e); err != nil {
		t.Errorf("an edit in the queue: %v; want none", err)
	}
	setPhase(t, c, e, v1alpha1.PhaseRunning)
	for name, edit := range map[string]func(*v1alpha1.ExperimentSpec){
		"duration":         func(s *v1alpha1.ExperimentSpec) { s.Duration = "2m" },
		"seed":             func(s *v1alpha1.ExperimentSpec) { s.Seed = 9 },
		"scenario":         func(s *v1alpha1.ExperimentSpec) { s.Scenario = &v1alpha1.ScenarioReference{Ref: "hills"} },
		"networks":         func(s *v1alpha1.ExperimentSpec) { s.Networks[0].MTU = 1400 },
		"apps":             func(s *v1alpha1.ExperimentSpec) { s.Apps[2].Instances = 5 },
		"nodes":            func(s *v1alpha1.ExperimentSpec) { s.Nodes[0].Group = "norway" },
		"timeline":         func(s *v1alpha1.ExperimentSpec) { s.Timeline = s.Timeline[:1] },
		"collect":          func(s *v1alpha1.ExperimentSpec) { s.Collect = nil },
		"drain":            func(s *v1alpha1.ExperimentSpec) { s.Drain.Max = "1m" },
		"tolerances":       func(s *v1alpha1.ExperimentSpec) { s.Tolerances = &v1alpha1.Tolerances{Median: "2%"} },
		"ttlAfterFinished": func(s *v1alpha1.ExperimentSpec) { d := v1alpha1.Duration("1h"); s.TTLAfterFinished = &d },
	} {
		edited := e.DeepCopy()
		edit(&edited.Spec)
		err := c.Update(t.Context(), edited)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec."+name+": Forbidden: "+name+" cannot change once the experiment has left the queue") {
			t.Errorf("an edit of %s of a running experiment: %v; want it refused", name, err)
		}
	}
	e.Spec.Stop = true
	if err := c.Update(t.Context(), e); err != nil {
		t.Errorf("stop of a running experiment: %v; want none", err)
	}
	e.Spec.Stop = false
	if err := c.Update(t.Context(), e); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.stop: Forbidden: a stop cannot be taken back") {
		t.Errorf("a stop taken back: %v; want it refused", err)
	}
}

func setPhase(t *testing.T, c client.Client, e *v1alpha1.Experiment, phase v1alpha1.ExperimentPhase) {
	t.Helper()
	e.Status.Phase = phase
	if err := c.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// serverTakesLargest keeps the rules within the API server's cost limit for one object, at its largest size.
func serverTakesLargest(t *testing.T, c client.Client) {
	e := &v1alpha1.Experiment{}
	if err := yaml.Unmarshal([]byte(sound), e); err != nil {
		t.Fatal(err)
	}
	e.Name, e.Spec.Nodes, e.Spec.Timeline = "largest", nil, nil
	e.Spec.Networks[1].Subnet = "198.18.4.0/22"
	e.Spec.Networks[0].Subnet, e.Spec.Networks[0].Links = "198.18.8.0/22", nil
	e.Spec.Apps = append(e.Spec.Apps[:1:1], e.Spec.Apps[2:3]...)
	for i := range int32(256) {
		nem := 300 - i
		node := v1alpha1.Node{Name: fmt.Sprintf("vehicle-%d", i), NEM: &nem, Platform: fmt.Sprint(i), Networks: []string{"wan", "lan"}, Apps: []string{"bft"}}
		if i == 0 {
			node.Apps = []string{"hub"}
		}
		e.Spec.Nodes = append(e.Spec.Nodes, node)
	}
	for i := range 40 {
		entry := v1alpha1.TimelineEntry{At: v1alpha1.Duration(fmt.Sprintf("%ds", i))}
		for j := range 16 {
			entry.Start = append(entry.Start, fmt.Sprintf("vehicle-%d/bft", 255-j))
		}
		for j := range 8 {
			loss := v1alpha1.Percent("1%")
			entry.Set = append(entry.Set, v1alpha1.RadioChange{Network: "wan", From: fmt.Sprintf("vehicle-%d", 255-j), To: "vehicle-0", Link: &v1alpha1.LinkPatch{Loss: &loss}})
		}
		e.Spec.Timeline = append(e.Spec.Timeline, entry)
	}
	e.Spec.Collect.Captures = nil
	for i := range 32 {
		e.Spec.Collect.Captures = append(e.Spec.Collect.Captures, fmt.Sprintf("lan/vehicle-%d", 255-i))
	}
	for i := range 16 {
		e.Spec.Networks[0].Base = append(e.Spec.Networks[0].Base, fmt.Sprintf("vehicle-%d", 255-i))
	}
	if err := c.Create(t.Context(), e, client.DryRunAll); err != nil {
		t.Errorf("256 nodes, 40 timeline entries of 16 targets and 8 changes, 32 captures: %v", err)
	}
}

// serverTakesMostStrings keeps the chart's policy within the API server's cost limit for one object.
func serverTakesMostStrings(t *testing.T, c client.Client) {
	e := &v1alpha1.Experiment{}
	if err := yaml.Unmarshal([]byte(sound), e); err != nil {
		t.Fatal(err)
	}
	e.Name = "strings"
	bridge := &e.Spec.Apps[1].Mosquitto.Bridges[0]
	for i := len(bridge.Topics); i < 32; i++ {
		bridge.Topics = append(bridge.Topics, v1alpha1.BridgeTopic{Filter: fmt.Sprintf("%s/%d/#", strings.Repeat("nor/", 60), i), LocalPrefix: "local/", RemotePrefix: "remote/", Direction: "in"})
	}
	for i := len(e.Spec.Apps); i < 32; i++ {
		app := v1alpha1.App{Name: fmt.Sprintf("own-%d", i), Image: "own", Command: []string{"/own"}}
		for j := range 64 {
			app.Env = append(app.Env, v1alpha1.EnvVar{Name: fmt.Sprintf("A_RATHER_LONG_NAME_OF_A_VARIABLE_%d", j), Secret: &v1alpha1.KeyReference{Name: "a-secret-of-long-name", Key: "a-key-of-long-name"}})
		}
		e.Spec.Apps = append(e.Spec.Apps, app)
	}
	for i := range 8 {
		app := &e.Spec.Apps[i+16]
		app.Env, app.Image, app.Command, app.Script = nil, "", nil, &v1alpha1.MessageScript{Protocol: "mqtt-udp"}
		for j := range 128 {
			app.Script.Messages = append(app.Script.Messages, v1alpha1.ScriptedMessage{At: fmt.Sprintf("%dms", j), From: "veh-1", To: "veh-2", Type: "chat-message"})
		}
	}
	if err := c.Create(t.Context(), e, client.DryRunAll); err != nil {
		t.Errorf("apps with 64 variables, a script of 128 messages or 32 topics each: %v", err)
	}
}

func TestEveryFieldOfTheSpecIsFrozenExceptStop(t *testing.T) {
	d, err := definitionOf("Experiment")
	if err != nil {
		t.Fatal(err)
	}
	frozen := map[string]bool{"stop": true}
	for _, rule := range d.structural.XValidations {
		if rest, found := strings.CutPrefix(rule.FieldPath, ".spec."); found {
			frozen[rest] = true
		}
	}
	spec := reflect.TypeFor[v1alpha1.ExperimentSpec]()
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		if !frozen[name] {
			t.Errorf("spec.%s may change while the experiment runs: add it to crdrules' frozenFields", name)
		}
	}
}
