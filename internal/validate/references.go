package validate

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// reference is a reference to another object's content.
type reference struct {
	// path is the referring field's.
	path            string
	kind, name, key string
	// until describes the effect while the object is missing, and untilKey that of the key alone, where it is another.
	until, untilKey string
}

// keyed has the keys of objects of a kind, such as ConfigMap, by name; nil keys are unknown.
type keyed map[string]map[string]bool

// addKeys adds the keys of a ConfigMap or Secret, and whether experiments may use it. A SealedSecret or ExternalSecret makes a Secret of its name.
func (known *surroundings) addKeys(d *document) {
	if allowed, _, _ := unstructured.NestedString(d.object, "metadata", "labels", v1alpha1.LabelForExperiments); d.kind == "Secret" {
		known.forbidden[d.name] = allowed != v1alpha1.ForExperiments
	}
	for kind, found := range known.contents {
		switch {
		case d.kind == kind:
			found[d.name] = map[string]bool{}
			for _, part := range []string{"data", "stringData", "binaryData"} {
				values, _, _ := unstructured.NestedMap(d.object, part) // without data it has no keys
				for key := range values {
					found[d.name][key] = true
				}
			}
		case d.foreign() && strings.HasSuffix(d.kind, kind):
			found[d.name] = nil
		}
	}
}

// missingContents warns of ConfigMaps and Secrets that the files do not have, or that lack a key.
func (d *document) missingContents(known surroundings) (findings []Finding) {
	for _, r := range d.references() {
		keys, found := known.contents[r.kind][r.name]
		what := ""
		switch {
		case !found:
			what = fmt.Sprintf("%s %s is not among these objects%s: until the cluster has it, %s", r.kind, r.name, meant(r.name, known.contents[r.kind]), r.until)
		case r.kind == "Secret" && known.forbidden[r.name]:
			what = fmt.Sprintf("Secret %s does not have the label %s=%s: until it has, %s", r.name, v1alpha1.LabelForExperiments, v1alpha1.ForExperiments, r.until)
		case keys != nil && r.key != "" && !keys[r.key]:
			what = fmt.Sprintf("%s %s has no key %s%s: until it has, %s", r.kind, r.name, r.key, meant(r.key, keys), cmp.Or(r.untilKey, r.until))
		default:
			continue
		}
		f := d.finding(r.path, what)
		f.Warning, f.Elsewhere = true, true
		findings = append(findings, f)
	}
	return findings
}

func (d *document) references() []reference {
	var e v1alpha1.Experiment
	var s v1alpha1.Scenario
	var c v1alpha1.Campaign
	switch { // an unreadable object has been refused already
	case d.kind == "Experiment" && runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &e) == nil:
		return ofExperiment(&e)
	case d.kind == "Scenario" && runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &s) == nil:
		return ofScenario(&s.Spec)
	case d.kind == "Campaign" && runtime.DefaultUnstructuredConverter.FromUnstructured(d.object, &c) == nil && c.Spec.Reference != nil:
		of := c.Spec.Reference
		return []reference{{"spec.reference.ref", "ConfigMap", of.Ref, of.Key, "the campaign waits with " + v1alpha1.ConditionAccepted + "=False", ""}}
	}
	return nil
}

func ofExperiment(e *v1alpha1.Experiment) (found []reference) {
	const until = "the experiment waits with " + v1alpha1.ConditionAccepted + "=False"
	for _, key := range render.ConfigMapKeys(&e.Spec) {
		found = append(found, reference{key.NamePath.String(), "ConfigMap", key.Name, key.Key, until, ""})
	}
	for _, secret := range render.SecretReferences(render.Input{Experiment: e}) { // the operator does not read their keys
		found = append(found, reference{secret.Path.String(), "Secret", secret.Name, secret.Key, until, "the nodes that need it do not start"})
	}
	return found
}

func ofScenario(spec *v1alpha1.ScenarioSpec) (found []reference) {
	add := func(path string, source *v1alpha1.ScenarioSource) {
		if source != nil {
			found = append(found, reference{path + ".configMap", "ConfigMap", source.ConfigMap, source.Key, "the scenario is not compiled", ""})
		}
	}
	add("spec.source", spec.Source)
	for i := range spec.Sources {
		add(fmt.Sprintf("spec.sources[%d]", i), &spec.Sources[i])
	}
	if spec.Propagation != nil {
		add("spec.propagation.terrain", spec.Propagation.Terrain)
	}
	add("spec.antennaProfiles", spec.AntennaProfiles)
	return found
}
