package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	yamlv3 "gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"vignette.dev/vignette/internal/wording"
)

// metadataKeys are those that Kubernetes knows.
var metadataKeys = jsonKeys(reflect.TypeFor[metav1.ObjectMeta]())

func jsonKeys(of reflect.Type) (keys []string) {
	for i := range of.NumField() {
		key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	return keys
}

// checkMetadata reports keys of metadata that Kubernetes does not know, and names, labels and annotations that are no text. It corrects
// them, so that the rest can be checked.
func (d *document) checkMetadata() (findings []Finding) {
	metadata, _ := d.object["metadata"].(map[string]any)
	node, _ := enter(d.root, "metadata")
	if metadata == nil || node == nil {
		return nil
	}
	for _, key := range keysOf(node) {
		if slices.Contains(metadataKeys, key.Value) {
			continue
		}
		message := "there is no such field"
		if near := wording.Nearest(key.Value, metadataKeys); near != "" {
			message += ": " + wording.Meant(near)
		}
		findings = append(findings, Finding{File: d.file, Line: key.Line, Path: "metadata." + key.Value, Message: message})
		delete(metadata, key.Value)
	}
	for _, key := range []string{"name", "generateName", "namespace", "uid", "resourceVersion"} {
		value, found := metadata[key]
		if _, text := value.(string); text || !found || value == nil {
			continue
		}
		at, line := enter(node, key)
		findings = append(findings, Finding{File: d.file, Line: line, Path: "metadata." + key, Message: "must be text: write it in quotes" + quoted(at)})
		metadata[key] = "x" // so that the rest can be checked
	}
	for _, list := range []string{"labels", "annotations"} {
		findings = append(findings, d.checkTexts(metadata, node, list)...)
	}
	return append(findings, d.wrongMetadata(metadata)...)
}

// wrongMetadata removes and reports the values of other types than Kubernetes takes.
func (d *document) wrongMetadata(metadata map[string]any) (findings []Finding) {
	for _, key := range metadataKeys {
		value, found := metadata[key]
		if !found || runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{key: value}, &metav1.ObjectMeta{}) == nil {
			continue
		}
		message := "has a value that the API server does not take: leave the field out"
		if key == "labels" || key == "annotations" {
			message = "must be an object with texts, such as {team: nor}"
		}
		findings = append(findings, d.finding("metadata."+key, message))
		delete(metadata, key)
	}
	return findings
}

// checkTexts checks labels or annotations: Kubernetes accepts text only, and YAML reads 5 and yes as other types.
func (d *document) checkTexts(metadata map[string]any, node *yamlv3.Node, list string) (findings []Finding) {
	values, _ := metadata[list].(map[string]any)
	entries, _ := enter(node, list)
	if values == nil || entries == nil {
		return nil
	}
	for _, key := range keysOf(entries) {
		value, found := values[key.Value]
		if _, text := value.(string); text || !found {
			continue
		}
		at, _ := enter(entries, key.Value)
		findings = append(findings, Finding{File: d.file, Line: key.Line, Path: "metadata." + list + "." + key.Value,
			Message: "must be text: write it in quotes" + quoted(at)})
		values[key.Value] = "x" // so that the rest can be checked
	}
	return findings
}

// keysOf returns the keys of a mapping.
func keysOf(node *yamlv3.Node) (keys []*yamlv3.Node) {
	if node.Kind != yamlv3.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		keys = append(keys, node.Content[i])
	}
	return keys
}

// quoted returns a plain value in quotes; empty for others.
func quoted(node *yamlv3.Node) string {
	if node == nil || node.Kind != yamlv3.ScalarNode || node.Value == "" {
		return ""
	}
	return fmt.Sprintf(", %q", node.Value)
}
