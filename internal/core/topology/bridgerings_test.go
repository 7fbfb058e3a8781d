package topology

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func TestBridgesInARingAreRefusedIfAMessageWouldCirculate(t *testing.T) {
	for name, c := range map[string]struct {
		bridges [3]string // of brokers a, b and c
		ring    bool
	}{
		"a chain":                         {[3]string{`[{to: b}]`, `[{to: c}]`, `[]`}, false},
		"a ring":                          {[3]string{`[{to: b}]`, `[{to: c}]`, `[{to: a}]`}, true},
		"a ring one way":                  {[3]string{`[{to: b, topics: [{filter: x, direction: out}]}]`, `[{to: c, topics: [{filter: x, direction: out}]}]`, `[{to: a, topics: [{filter: +, direction: out}]}]`}, true},
		"a ring whose last way is closed": {[3]string{`[{to: b, topics: [{filter: x, direction: out}]}]`, `[{to: c, topics: [{filter: x, direction: out}]}]`, `[{to: a, topics: [{filter: x, direction: in}]}]`}, false},
		"each bridge with its own topics": {[3]string{`[{to: b, topics: [{filter: a/#, direction: out}]}]`, `[{to: c, topics: [{filter: b/#, direction: out}]}]`, `[{to: a, topics: [{filter: c/#, direction: out}]}]`}, false},
		"one topic within the others":     {[3]string{`[{to: b, topics: [{filter: "#"}]}]`, `[{to: c, topics: [{filter: x/y}]}]`, `[{to: a, topics: [{filter: x/+}]}]`}, true},
		"prefixes that lead elsewhere":    {[3]string{`[{to: b, topics: [{filter: "#", direction: out, remotePrefix: a/}]}]`, `[{to: c, topics: [{filter: "#", direction: out, localPrefix: b/}]}]`, `[{to: a}]`}, false},
		"a prefix that is taken away":     {[3]string{`[{to: b, topics: [{filter: "#", direction: out, remotePrefix: x/}]}]`, `[{to: c, topics: [{filter: "#", direction: out, localPrefix: x/}]}]`, `[{to: a, topics: [{filter: "#", direction: out}]}]`}, true},
		"a prefix at every turn":          {[3]string{`[{to: b, topics: [{filter: "#", direction: out, remotePrefix: x/}]}]`, `[{to: c, topics: [{filter: "#", direction: out}]}]`, `[{to: a, topics: [{filter: "#", direction: out}]}]`}, true},
		"topics that get shorter":         {[3]string{`[{to: b, topics: [{filter: "+", direction: out, localPrefix: x/y/}]}]`, `[{to: c, topics: [{filter: "+", direction: out}]}]`, `[{to: a, topics: [{filter: "+", direction: out}]}]`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := "networks: [{name: lan, subnet: 198.18.1.0/24}]\napps:\n"
			for i, name := range []string{"a", "b", "c"} {
				text += "- {name: " + name + ", mosquitto: {bridges: " + c.bridges[i] + "}}\n"
			}
			text += "nodes: [{name: na, networks: [lan], apps: [a]}, {name: nb, networks: [lan], apps: [b]}, {name: nc, networks: [lan], apps: [c]}]"
			s := &v1alpha1.ExperimentSpec{}
			if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
				t.Fatal(err)
			}
			expanded, errs := Expand(s)
			errs = append(errs, expanded.CheckReferences(s)...)
			if c.ring != (len(errs) == 1) || c.ring && !strings.Contains(errs[0].Error(), "make a ring") {
				t.Errorf("%v; want a ring: %v", errs, c.ring)
			}
		})
	}
}
