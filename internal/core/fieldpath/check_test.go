package fieldpath

import (
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestAValueOfTheWrongTypeIsRefusedWithAnExplanation(t *testing.T) {
	for name, c := range map[string]struct{ path, value, want string }{
		"a duration":                       {"networks[wan].link.delay", `"100ms"`, ""},
		"a number for a duration":          {"networks[wan].link.delay", `100`, "networks[wan].link.delay is the number 100: it must be a duration with its unit"},
		"a number for a rate":              {"networks[wan].link.rate", `9.8`, "networks[wan].link.rate is the number 9.8: it must be a rate above zero with its unit"},
		"a number for a gain":              {"networks[vhf].rfpipe.phy.antennaGain", `3`, "it must be a gain with its unit, such as 2dBi"},
		"a number for a height":            {"nodes[hq].position.altitude", `20`, "it must be a length with its unit"},
		"a number for degrees":             {"nodes[hq].position.latitude", `58.2`, `it must be text: write it in quotes, "58.2"`},
		"a truth for a name":               {"nodes[hq].group", `false`, `nodes[hq].group is the truth value false: it must be text: write it in quotes, "false"`},
		"a number for one of some words":   {"networks[wan].engine", `1`, `it must be one of "native", "emane"`},
		"text for a number":                {"networks[wan].mtu", `"1400"`, "networks[wan].mtu is text, 1400: it must be a whole number, such as 5"},
		"a part of a number":               {"networks[wan].mtu", `1.5`, "networks[wan].mtu is the number 1.5: it must be a whole number"},
		"a number that is too large":       {"networks[wan].mtu", `99999999999`, "networks[wan].mtu is the number 99999999999"},
		"text for a truth":                 {"networks[wan].link.reorder", `"yes"`, "networks[wan].link.reorder is text, yes: it must be true or false"},
		"text for a list":                  {"nodes[hq].apps", `"a"`, "nodes[hq].apps is text, a: it must be a list, such as [a, b]"},
		"a number in a list":               {"nodes[hq].apps", `["a", 5]`, `nodes[hq].apps[1] is the number 5: it must be text: write it in quotes, "5"`},
		"a number within a list's element": {"nodes", `[{"name": "hq", "count": "3"}]`, "nodes[hq].count is text, 3: it must be a whole number"},
		"an element without its name":      {"nodes", `[{"count": "3"}]`, "nodes[0].count is text"},
		"an object for text":               {"duration", `{"m": 5}`, `duration is an object, {"m":5}: it must be a duration`},
		"no such field within":             {"networks[wan].link", `{"dealy": "1ms"}`, "networks[wan].link.dealy: there is no such field: did you mean delay?"},
		"nothing":                          {"networks[wan].link.delay", `null`, ""},
		"nothing within":                   {"networks[wan].link", `{"delay": null}`, ""},
		"text or a number":                 {"apps[x].resources.limits", `{"cpu": 2, "memory": "1Gi"}`, ""},
		"a field that is not there":        {"networks[wan].lnk", `5`, ""}, // Set reports it
	} {
		t.Run(name, func(t *testing.T) {
			path, err := Parse(c.path)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := utiljson.Unmarshal([]byte(c.value), &value); err != nil {
				t.Fatal(err)
			}
			err = Check(Experiment(), path, value)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}
