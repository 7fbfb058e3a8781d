package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestAnInlineWaveformHasTheSameRadios(t *testing.T) {
	link := func(delay v1alpha1.Duration) *v1alpha1.LinkModel {
		return &v1alpha1.LinkModel{Delay: delay, Limit: 1000}
	}
	for name, c := range map[string]struct {
		waveform v1alpha1.WaveformSpec
		base     []string
		links    []v1alpha1.GroupLink
	}{
		"a link":                {waveform: v1alpha1.WaveformSpec{Description: "a link", Link: link("1ms")}},
		"a link and a downlink": {waveform: v1alpha1.WaveformSpec{Link: link("1ms"), Downlink: link("2ms")}, base: []string{"hq"}},
		"a link of its own from the base": {waveform: v1alpha1.WaveformSpec{Link: link("1ms"), Downlink: link("2ms")}, base: []string{"hq", "veh"},
			links: []v1alpha1.GroupLink{{From: "hq", To: "*", LinkModel: *link("9ms")}, {From: "veh", To: "hq", LinkModel: *link("8ms")}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &v1alpha1.Experiment{}
			e.Name, e.UID = "pair", "u"
			e.Spec = v1alpha1.ExperimentSpec{
				Networks: []v1alpha1.Network{{Name: "wan", Waveform: "named", Subnet: "198.18.9.0/24", Base: c.base, Links: c.links}},
				Nodes:    []v1alpha1.Node{{Name: "hq", Networks: []string{"wan"}}, {Name: "veh", Networks: []string{"wan"}}},
			}
			radios := func(spec v1alpha1.ExperimentSpec, waveform v1alpha1.WaveformSpec) v1alpha1.RadioNetworkSpec {
				other := e.DeepCopy()
				other.Spec = spec
				topology, errs := topology.Expand(&spec)
				if len(errs) > 0 {
					t.Fatal(errs.ToAggregate())
				}
				made := RadioNetworks(Input{Experiment: other, Topology: topology}, map[string]v1alpha1.WaveformSpec{"wan": waveform}, map[string]types.UID{})
				made[0].Spec.Waveform.Description, made[0].Spec.Waveform.Downlink = "", nil // unused, and already in the links
				return made[0].Spec
			}
			inPlace := *e.Spec.DeepCopy()
			inPlace.Networks[0] = WithWaveform(inPlace.Networks[0], c.waveform)
			alone, ok := InPlace(inPlace.Networks[0])
			if !ok {
				t.Fatalf("network %+v still names a waveform", inPlace.Networks[0])
			}
			if diff := cmp.Diff(radios(e.Spec, c.waveform), radios(inPlace, alone)); diff != "" {
				t.Errorf("radios (-named +in place):\n%s", diff)
			}
		})
	}
}
