package fieldpath

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestTheSchemaHasTheDefaultsOfRadiosThatTheAPINames(t *testing.T) {
	for _, model := range []string{"rfpipe", "tdma"} {
		radio := map[string]any{"phy": map[string]any{}}
		Default(map[string]any{"networks": []any{map[string]any{model: radio}}})
		phy := radio["phy"].(map[string]any)
		got := map[string]any{"rate": radio["rate"], "frequency": phy["frequency"], "bandwidth": phy["bandwidth"]}
		want := map[string]any{"rate": string(v1alpha1.DefaultRate), "frequency": string(v1alpha1.DefaultFrequency), "bandwidth": string(v1alpha1.DefaultBandwidth)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("defaults of %s differ (-named +schema):\n%s", model, diff)
		}
	}
}
