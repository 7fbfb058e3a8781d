package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/testkube"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const ownWaveform = `
---
apiVersion: vignette.dev/v1alpha1
kind: Waveform
metadata: {name: my-own}
spec: {link: {rate: 64kbit}}
`

func TestCommandsAgainstARealAPIServer(t *testing.T) {
	config := testkube.Start(t)
	target := &target{platform: "vignette-system"}
	c, err := dial(config, "default", target.platform)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../scenarios/quickstart/experiment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := check("experiment.yaml", append(text, ownWaveform...), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	experiments, err := c.submit(t.Context(), objects)
	if err != nil || len(experiments) != 1 || experiments[0].UID == "" {
		t.Fatalf("submit: %v, %v", experiments, err)
	}
	var waveform v1alpha1.Waveform
	if err := c.kube.Get(t.Context(), client.ObjectKey{Name: "my-own"}, &waveform); err != nil {
		t.Errorf("the waveform beside the experiment: %v", err)
	}
	var out bytes.Buffer
	if err := c.stop(t.Context(), "quickstart", &out); err != nil {
		t.Fatal(err)
	}
	var stopped v1alpha1.Experiment
	if err := c.kube.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "quickstart"}, &stopped); err != nil || !stopped.Spec.Stop {
		t.Errorf("after stop: spec.stop %v, %v", stopped.Spec.Stop, err)
	}
	if err := c.list(t.Context(), &out); err != nil || !strings.Contains(out.String(), "quickstart   Submitted") {
		t.Errorf("list: %v\n%s", err, out.String())
	}
	elsewhere, err := dial(config, "nowhere", target.platform)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		object.SetNamespace("")
		object.SetResourceVersion("")
		object.SetUID("")
	}
	if _, err := elsewhere.submit(t.Context(), objects[:1]); err == nil || !strings.Contains(err.Error(), "there is no namespace nowhere: kubectl create namespace nowhere") {
		t.Errorf("run in a namespace that does not exist: %v; want how to make it", err)
	}
	err = target.explainArchive(c.results(t.Context(), "quickstart", resultsOptions{output: "table"}, &out, &out))
	if err == nil || !strings.Contains(err.Error(), "is the platform installed in namespace vignette-system?") {
		t.Errorf("results without a platform: %v; want a hint", err)
	}
	t.Logf("without a platform: %v", err)
}
