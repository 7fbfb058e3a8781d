package preparation

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/geo"
	"vignette.dev/vignette/internal/radiod/radiodtest"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/scenario/scenariotest"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// company is a scenario of platforms that all move once a second, with positions and pathloss, and its
// network.
func company(b *testing.B, platforms int) (*v1alpha1.RadioNetworkSpec, *scenario.Scenario) {
	b.Helper()
	builder := scenario.NewBuilder(scenario.Options{})
	defer builder.Close()
	var failed error
	for second := range 20 {
		at := time.Duration(second) * time.Second
		for i := 1; i <= platforms; i++ {
			failed = errors.Join(failed, builder.Position(at, i, geo.Position{Latitude: 58 + float64(i)/1000, Longitude: 8 + float64(second)/10000, Altitude: 3}))
			for j := 1; j <= platforms; j++ {
				if i != j {
					failed = errors.Join(failed, builder.Pathloss(at, i, j, 80+math.Abs(float64(i-j))/10+float64(second)/10))
				}
			}
		}
	}
	if failed != nil {
		b.Fatal(failed)
	}
	s := scenariotest.Open(b, builder)
	spec := radiodtest.NetworkOf("run", "vhf").Spec
	spec.Waveform, spec.T0 = radiodtest.RFPipe(), &metav1.MicroTime{Time: time.Unix(1000, 0)}
	for i := range platforms {
		spec.Members = append(spec.Members, v1alpha1.Member{Node: fmt.Sprintf("n%d", i+1), Group: "all", NEM: int32(i + 1), Platform: ptr.To(int32(i + 1))})
	}
	return &spec, s
}

// BenchmarkStep is what one step of a scenario costs beside the loop, once a second.
func BenchmarkStep(b *testing.B) {
	for _, platforms := range []int{24, 243} {
		spec, s := company(b, platforms)
		for _, source := range []v1alpha1.PathlossSource{v1alpha1.PathlossScenario, v1alpha1.PathlossFreeSpace} {
			spec.Waveform.RFPipe.PHY.Pathloss = source
			b.Run(fmt.Sprintf("%d/%s", platforms, source), func(b *testing.B) {
				b.ReportAllocs()
				p := newPreparer(InputsOf(spec, nil, s))
				for i := 0; b.Loop(); i++ {
					if _, err := p.moment(int64(i%20) * int64(time.Second)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
