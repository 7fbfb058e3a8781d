package origin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const spec = `
duration: 1m
networks: [{name: wan, rfpipe: {rate: 175kbit}, subnet: 198.18.1.0/24}]
apps: [{name: hub, mosquitto: {}}]
nodes: [{name: hq, networks: [wan], apps: [hub]}, {name: veh, networks: [wan]}]
`

func experiment(t *testing.T, text string) *v1alpha1.Experiment {
	t.Helper()
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict([]byte(text), &e.Spec); err != nil {
		t.Fatal(err)
	}
	return e
}

var first = runapi.Rerun{Namespace: "team-nor", Name: "first", UID: "u1", Differences: []runapi.Difference{{What: "Kubernetes", Before: "v1", Now: "v2"}}}

// marked is a rerun without changes.
func marked(t *testing.T, text string) *v1alpha1.Experiment {
	t.Helper()
	e := experiment(t, text)
	fields, err := Fields(&e.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Mark(e, first, fields, fields); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestARerunThatIsEditedIsBasedOnTheRun(t *testing.T) {
	change := func(path, from, to string) []runapi.SpecChange {
		return []runapi.SpecChange{{Path: path, From: from, To: to}}
	}
	for name, c := range map[string]struct {
		was, is string
		want    []runapi.SpecChange
	}{
		"not at all":            {"", "", nil},
		"a default":             {"duration: 1m", "duration: 1m\ndrain: {max: 30s}", nil},
		"a stop by hand":        {"duration: 1m", "duration: 1m\nstop: true", nil},
		"a rate":                {"175kbit", "250kbit", change("networks[wan].rfpipe.rate", "175kbit", "250kbit")},
		"a seed of 0":           {"duration: 1m", "duration: 1m\nseed: 7", change("seed", "0", "7")},
		"a node more":           {"veh, networks: [wan]}", "veh, networks: [wan]}, {name: x}", change("nodes[x]", "", `{"managementNetwork":"Isolated","name":"x","runtime":"pod"}`)},
		"an app less":           {", apps: [hub]", "", change("nodes[hq].apps", `["hub"]`, "")},
		"another order, so NEM": {"{name: hq, networks: [wan], apps: [hub]}, {name: veh, networks: [wan]}", "{name: veh, networks: [wan]}, {name: hq, networks: [wan], apps: [hub]}", change("nodes", "order hq, veh", "order veh, hq")},
	} {
		t.Run(name, func(t *testing.T) {
			e := marked(t, spec)
			e.Spec = experiment(t, strings.Replace(spec, c.was, c.is, 1)).Spec
			rerunOf, basedOn := Of(e)
			want := first
			want.Changes = c.want
			got, other := rerunOf, basedOn
			if c.want != nil {
				got, other = basedOn, rerunOf
			}
			if diff := cmp.Diff(&want, got); diff != "" || other != nil {
				t.Errorf("-want +got:\n%s\nand %+v; want none", diff, other)
			}
		})
	}
}

func TestOnlyAKnownSpecMakesARerun(t *testing.T) {
	if rerunOf, basedOn := Of(&v1alpha1.Experiment{}); rerunOf != nil || basedOn != nil {
		t.Errorf("an experiment of its own is a rerun of %+v, or based on %+v", rerunOf, basedOn)
	}
	earlier, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		annotation string
		want       runapi.Rerun
	}{
		"without the spec":    {string(earlier), first},
		"only the label":      {"", runapi.Rerun{UID: "u1"}},
		"something else":      {"yes", runapi.Rerun{UID: "u1"}},
		"of another run":      {`{"uid": "u2"}`, runapi.Rerun{UID: "u1"}},
		"a spec that is none": {`{"uid": "u1", "spec": "AAAA"}`, runapi.Rerun{UID: "u1"}},
	} {
		e := marked(t, spec)
		e.Annotations[v1alpha1.AnnotationRerun] = c.annotation
		if rerunOf, basedOn := Of(e); rerunOf != nil || cmp.Diff(&c.want, basedOn) != "" {
			t.Errorf("%s: a rerun of %+v, based on %+v; want based on %+v", name, rerunOf, basedOn, c.want)
		}
	}
}

func TestChangesAreBounded(t *testing.T) {
	e, nodes := marked(t, spec), []string{}
	for i := range maxChanges + 20 {
		nodes = append(nodes, fmt.Sprintf("{name: n%d, networks: [wan]}", i))
	}
	long := strings.Replace(spec[:strings.Index(spec, "nodes:")], "rate: 175kbit", "pcr: "+strings.Repeat("\u00e9", maxValue), 1)
	e.Spec = experiment(t, long+"nodes: ["+strings.Join(nodes, ", ")+"]").Spec
	_, basedOn := Of(e)
	if len(basedOn.Changes) != maxChanges || basedOn.MoreChanges != 24 {
		t.Errorf("%d changes and %d more; want %d and 24", len(basedOn.Changes), basedOn.MoreChanges, maxChanges)
	}
	if got := basedOn.Changes[0]; got.Path != "networks[wan].rfpipe.pcr" || got.To != strings.Repeat("\u00e9", maxValue/2)+"\u2026" {
		t.Errorf("first change %+v; want a curve that is cut", got)
	}
}
