package mgen

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/mgen"
	"vignette.dev/vignette/internal/mgenapp"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func TestAnMgenAppHasASenderForEachFlowAndSubscribesToItsPorts(t *testing.T) {
	script, err := mgen.Parse("0 LISTEN UDP 5000\n1 ON 1 UDP DST 198.18.0.2/5000 PERIODIC [1 100]\n2 OFF 1\n1 ON 9 TCP DST 198.18.0.2/5001 PERIODIC [1 100]")
	if err != nil {
		t.Fatal(err)
	}
	r := Kind{}.Render(apps.Site{
		App: v1alpha1.App{Name: "voice", MGEN: &v1alpha1.MGEN{}}, Node: "hq", Instances: []string{"hq/voice"}, Images: apps.Images{MGEN: "mgen:1"},
		Flows: &apps.Flows{Script: script, Nodes: map[string]string{"198.18.0.1": "hq", "198.18.0.2": "veh"}, Own: []netip.Addr{netip.MustParseAddr("198.18.0.1")},
			Topics: []string{"mgen/tcp/198.18.0.1/5000", "mgen/udp/198.18.0.1/5000", "mgen/udp/198.18.0.2/5000"}},
	})
	if r.Image != "mgen:1" || !r.DrainOnStop || r.Publishes || len(r.Instances) != 1 || r.Instances[0].Command[2] != r.Files[0].Path {
		t.Errorf("rendered %+v", r)
	}
	if diff := cmp.Diff([]string{"hq/voice/1", "hq/voice/9"}, r.Senders); diff != "" {
		t.Errorf("senders (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"mgen/udp/198.18.0.1/5000"}}, r.Subscriptions); diff != "" {
		t.Errorf("subscriptions (-want +got)\n%s", diff)
	}
	var config mgenapp.Config
	if err := json.Unmarshal([]byte(r.Files[0].Content), &config); err != nil {
		t.Fatal(err)
	}
	if err := config.Validate(); err != nil || config.Node != "hq" || config.Script != script.String() {
		t.Errorf("the program's configuration is %+v: %v", config, err)
	}
}
