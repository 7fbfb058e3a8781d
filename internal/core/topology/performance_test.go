package topology

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// TestReferencesOfAThousandNodesAreCheckedWithinSeconds has generous bounds, in processor time.
func TestReferencesOfAThousandNodesAreCheckedWithinSeconds(t *testing.T) {
	var topics []string
	for i := range 8 {
		topics = append(topics, fmt.Sprintf("{filter: t%d/#}", i))
	}
	for name, app := range map[string]string{
		"a cluster":                 "{vernemq: {cluster: true}}",
		"bridges with many filters": "{mosquitto: {bridges: [{to: hub, topics: [" + strings.Join(topics, ", ") + "]}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			text := `
networks: [{name: lan, subnet: 198.18.0.0/16}]
apps: [{name: hub, mosquitto: {}}, {name: leaf, ` + app[1:] + `]
nodes: [{name: hq, networks: [lan], apps: [hub]}, {name: veh, count: 999, networks: [lan], apps: [leaf]}]`
			s := &v1alpha1.ExperimentSpec{}
			if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
				t.Fatal(err)
			}
			expanded, _ := Expand(s)
			began := testtool.ProcessorTime(t)
			errs := expanded.CheckReferences(s)
			if took := testtool.ProcessorTime(t) - began; len(errs) > 0 || took > 5*time.Second {
				t.Errorf("%v after %s", errs, took)
			}
		})
	}
}
