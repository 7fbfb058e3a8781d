package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// prometheusOperator has the CRDs for the check of the chart's objects.
const prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

// rendered returns the objects of the chart's monitoring template.
func rendered(t *testing.T, arguments ...string) (objects []unstructured.Unstructured) {
	t.Helper()
	find := exec.CommandContext(t.Context(), "bash", "-c", `eval "$(hack/cluster env 2>/dev/null)"; command -v helm`)
	find.Dir = root
	helm, err := find.Output()
	if err != nil {
		t.Skip("helm is not there: hack/cluster up brings it")
	}
	command := exec.CommandContext(t.Context(), strings.TrimSpace(string(helm)),
		append([]string{"template", "x", "charts/vignette", "-n", "vignette-system", "-s", "templates/monitoring.yaml"}, arguments...)...)
	command.Dir, command.Stderr = root, os.Stderr
	text, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o); err == io.EOF {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

func kinds(objects []unstructured.Unstructured) map[string]int {
	count := map[string]int{}
	for _, o := range objects {
		count[o.GetKind()]++
	}
	return count
}

func TestTheChartBringsDashboardsAndAPrometheusThatIsAskedFor(t *testing.T) {
	without, with := kinds(rendered(t)), kinds(rendered(t, "--set", "monitoring.prometheus.enabled=true"))
	if want := map[string]int{"ConfigMap": 3, "ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1}; !maps.Equal(without, want) {
		t.Errorf("by default %v; want the three dashboards, and who may read metrics", without)
	}
	if with["Deployment"] != 1 || with["ConfigMap"] != 4 || with["PodMonitor"] != 0 {
		t.Errorf("with Prometheus %v; want its Deployment and its ConfigMap too", with)
	}
	for _, o := range rendered(t) {
		if o.GetKind() != "ConfigMap" {
			continue
		}
		if o.GetLabels()["grafana_dashboard"] != "1" {
			t.Errorf("%s has labels %v; want the one by which Grafana finds it", o.GetName(), o.GetLabels())
		}
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		for name, text := range data {
			if !json.Valid([]byte(text)) {
				t.Errorf("%s of %s is not JSON", name, o.GetName())
			}
		}
	}
}

// definition returns the Prometheus operator's CRD of a kind.
func definition(t *testing.T, plural string) *apiextensions.JSONSchemaProps {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", prometheusOperator)
	command.Dir = t.TempDir()
	text, err := command.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(text, &module) != nil {
		t.Skipf("the Go module %s is not to be had: %v", prometheusOperator, err)
	}
	crd, err := os.ReadFile(filepath.Join(module.Dir, "example/prometheus-operator-crd/monitoring.coreos.com_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := sigsyaml.Unmarshal(crd, &v1); err != nil {
		t.Fatal(err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	return &props
}

func TestThePrometheusOperatorTakesTheChartsMonitorsAndRules(t *testing.T) {
	if found := kinds(rendered(t, "--api-versions", "monitoring.coreos.com/v1/PodMonitor")); found["PodMonitor"] != 3 {
		t.Errorf("%v; want no PodMonitor of nodes, which radiod lets nobody scrape", found)
	}
	objects := rendered(t, "--api-versions", "monitoring.coreos.com/v1/PodMonitor",
		"--set", "radiod.appMetricsReaders[0].namespace=monitoring", "--set", "radiod.appMetricsReaders[0].service=prometheus-operated")
	if found := kinds(objects); found["PodMonitor"] != 4 || found["PrometheusRule"] != 1 {
		t.Fatalf("%v; want four PodMonitors and a PrometheusRule", found)
	}
	for kind, plural := range map[string]string{"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"} {
		props := definition(t, plural)
		validator, _, err := validation.NewSchemaValidator(props)
		if err != nil {
			t.Fatal(err)
		}
		structural, err := schema.NewStructural(props)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetKind() != kind {
				continue
			}
			for _, problem := range validation.ValidateCustomResource(nil, o.Object, validator) {
				t.Errorf("%s %s: %v", kind, o.GetName(), problem)
			}
			unknown := pruning.PruneWithOptions(o.DeepCopy().Object, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
			if len(unknown) > 0 {
				t.Errorf("%s %s has unknown fields: %v", kind, o.GetName(), unknown)
			}
		}
	}
}
