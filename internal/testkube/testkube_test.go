package testkube

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestTheAPIServerServesTheCRDs(t *testing.T) {
	c, err := client.New(Start(t), client.Options{Scheme: Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []client.ObjectList{&v1alpha1.ExperimentList{}, &v1alpha1.RadioNetworkList{}, &v1alpha1.ScenarioList{}, &v1alpha1.WaveformList{}} {
		if err := c.List(t.Context(), list); err != nil {
			t.Errorf("list %T: %v", list, err)
		}
	}
}
