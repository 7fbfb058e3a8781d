package validate

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	movements "vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/compile"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// compilationTimeout limits the compilation of all scenarios with ConfigMaps in the files.
var compilationTimeout = 30 * time.Second

// compiled is the compiled scenario of the files.
type compiled struct {
	// scenario is nil if unknown.
	scenario *render.Scenario
	findings []Finding
	// distances are those between its platforms; nil if the scenario is unknown.
	distances *distances
}

// distances are found in a scenario's positions, which are compiled once an experiment needs any.
type distances struct {
	spec v1alpha1.ScenarioSpec
	open compile.Open
	// until is when the time for all of them is over; positions are nil if there are none by then.
	until     time.Time
	positions *movements.Scenario
	found     map[string]render.Separation
}

// of returns a network's greatest distance; known is false if it takes too long.
func (d *distances) of(network render.Roaming) (far render.Separation, known bool) {
	if d.found == nil {
		d.found, d.until = map[string]render.Separation{}, time.Now().Add(compilationTimeout)
	}
	key := fmt.Sprintf("%+v", network)
	if far, known = d.found[key]; known {
		return far, true
	}
	ctx, cancel := context.WithDeadline(context.Background(), d.until)
	defer cancel()
	err := ctx.Err()
	if err == nil && d.positions == nil {
		d.positions, err = compile.Positions(ctx, d.spec, compile.Served(d.open))
	}
	if err == nil {
		far, err = network.Separation(ctx, d.positions)
	}
	if err != nil {
		d.until = time.Time{} // the next would fail too
		return far, false
	}
	d.found[key] = far
	return far, true
}

// with returns an experiment's scenario with the distances that its networks need.
func (c compiled) with(spec *v1alpha1.ExperimentSpec, waveforms map[string]v1alpha1.WaveformSpec) *render.Scenario {
	if c.scenario == nil {
		return nil
	}
	t, errs := topology.Expand(spec)
	if len(errs) > 0 {
		return c.scenario // another check reports them
	}
	own := *c.scenario
	own.Farthest = map[string]render.Separation{}
	for _, network := range render.RoamingNetworks(spec, t, waveforms, c.scenario) {
		if far, known := c.distances.of(network); known {
			own.Farthest[network.Network] = far
		}
	}
	return &own
}

// compileScenarios compiles scenarios whose ConfigMaps are in the files too, and checks the specs of the others.
func compileScenarios(documents []*document) map[*document]compiled {
	ctx, cancel := context.WithTimeout(context.Background(), compilationTimeout)
	defer cancel()
	held, known := map[string]contents{}, map[*document]compiled{}
	for _, d := range documents {
		if d.kind != "Scenario" || d.foreign() {
			continue
		}
		var s v1alpha1.Scenario
		if runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &s) != nil || compile.Check(&s.Spec) != nil {
			known[d] = compiled{} // its errors are reported elsewhere
			continue
		}
		namespace := d.namespace()
		if held[namespace] == nil {
			held[namespace] = configMaps(inNamespace(documents, namespace))
		}
		known[d] = d.compile(ctx, &s, held[namespace])
	}
	return known
}

// contents are the contents of ConfigMaps by their names and keys.
type contents map[string]map[string][]byte

func configMaps(documents []*document) contents {
	all := contents{}
	for _, d := range documents {
		if d.kind != "ConfigMap" {
			continue
		}
		keys := map[string][]byte{}
		text, _, _ := unstructured.NestedStringMap(d.object, "data") // what is no ConfigMap holds nothing
		for key, value := range text {
			keys[key] = []byte(value)
		}
		packed, _, _ := unstructured.NestedStringMap(d.object, "binaryData")
		for key, value := range packed {
			keys[key], _ = base64.StdEncoding.DecodeString(value) // the API server refuses invalid base64
		}
		all[d.name] = keys
	}
	return all
}

func (d *document) compile(ctx context.Context, s *v1alpha1.Scenario, contents contents) compiled {
	unread := compiled{findings: d.warnings(compile.Doubts(&s.Spec))}
	if s.Spec.Format == v1alpha1.ScenarioSynthetic && s.Spec.Synthetic != nil {
		unread.scenario, unread.distances = generatedScenario(d.name, &s.Spec), &distances{spec: s.Spec, open: contents.open}
		return unread
	}
	files := s.Spec.FilesAndTables()
	for _, file := range files {
		if contents[file.ConfigMap] == nil {
			return unread // the cluster decides that
		}
	}
	if s.Spec.Compiled != "" || len(files) == 0 {
		return unread
	}
	result, err := compile.Compile(ctx, s.Spec, compile.Served(contents.open), io.Discard)
	if err != nil {
		return compiled{findings: []Finding{d.uncompiled(ctx, err)}}
	}
	warnings := result.Warnings
	for _, kind := range result.Statistics.UnknownSentences {
		warnings = append(warnings, "passed over: "+kind)
	}
	return compiled{&render.Scenario{Name: d.name, Digest: result.Digest, Frequency: s.Spec.PathlossFrequency(), Statistics: result.Statistics}, d.warnings(warnings), &distances{spec: s.Spec, open: contents.open}}
}

func (d *document) warnings(texts []string) (findings []Finding) {
	for _, text := range texts {
		findings = append(findings, d.warning("spec", text))
	}
	return findings
}

// ScenarioIn returns the scenario of a text, which may also have its ConfigMaps, and a function that opens these. Errors are in the findings.
func ScenarioIn(name string, text []byte) (s *v1alpha1.Scenario, open compile.Open, findings []Finding) {
	documents, findings := parse(name, text)
	for _, d := range documents {
		if d.kind != "Scenario" || d.foreign() {
			continue
		}
		findings = append(findings, d.check(surroundings{})...)
		if s != nil {
			return nil, nil, append(findings, d.finding("", "a file with two Scenarios: want one"))
		}
		s = &v1alpha1.Scenario{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, s); err != nil {
			return nil, nil, findings // it was reported already
		}
	}
	if s == nil && len(documents) > 0 {
		findings = append(findings, documents[0].finding("kind", notInspected(documents[0])))
	}
	namespace := ""
	if s != nil {
		namespace = s.Namespace
	}
	return s, configMaps(inNamespace(documents, namespace)).open, findings
}

// notInspected says what to do with an object that is no Scenario.
func notInspected(d *document) string {
	if d.foreign() || d.kind != "Experiment" && d.kind != "Campaign" {
		return d.kind + " is not inspected: want a file with a Scenario"
	}
	return fmt.Sprintf("%s is not inspected: vignette validate %s judges it, vignette run %[2]s starts it; want a file with a Scenario", d.kind, d.file)
}

func (c contents) open(source v1alpha1.ScenarioSource) ([]byte, error) {
	content, found := c[source.ConfigMap][source.Key]
	if !found {
		return nil, errors.New("the ConfigMap has no such key")
	}
	return content, nil
}

// uncompiled says why a scenario is not compiled.
func (d *document) uncompiled(ctx context.Context, err error) Finding {
	if ctx.Err() != nil {
		return d.warning("spec", fmt.Sprintf("compiling these scenarios takes more than %s: this one was not tried to the end", compilationTimeout))
	}
	return d.finding("spec", butTaken(err.Error(), "the scenario would not be compiled"))
}

// generatedScenario returns a generated scenario, from its spec alone.
func generatedScenario(name string, spec *v1alpha1.ScenarioSpec) *render.Scenario {
	numbers := make([]int, max(spec.Synthetic.Platforms, 2))
	for i := range numbers {
		numbers[i] = i + 1
	}
	return &render.Scenario{Name: name, Synthetic: true, Frequency: spec.PathlossFrequency(), Statistics: v1alpha1.ScenarioStatistics{Platforms: int32(len(numbers)), PlatformNumbers: v1alpha1.PlatformRanges(numbers),
		Duration: spec.Synthetic.Duration, Positions: true, Pathloss: spec.Propagation != nil}}
}
