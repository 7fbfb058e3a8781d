package fieldpath

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const spec = `
duration: 1m
networks: [{name: wan, link: {rate: 9.8kbit}}, {name: lan, link: {rate: 2Mbit}}]
apps:
- {name: hub, mosquitto: {}}
- {name: bft, publisher: {protocol: mqtt, period: 10s}}
timeline: [{at: 1s, start: [bft]}]
`

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	o := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestAFieldIsSetWhereItsPathLeads(t *testing.T) {
	for name, c := range map[string]struct{ path, value, was, is string }{
		"a field":                       {"duration", `"2m"`, "duration: 1m", "duration: 2m"},
		"a field in a named element":    {"networks[wan].link.rate", `"1Mbit"`, "rate: 9.8kbit", "rate: 1Mbit"},
		"a field that was not there":    {"networks[lan].link.loss", `"1%"`, "rate: 2Mbit", "rate: 2Mbit, loss: 1%"},
		"an object that was not there":  {"drain.max", `"9s"`, "duration: 1m", "duration: 1m\ndrain: {max: 9s}"},
		"an element by its place":       {"timeline[0].at", `"5s"`, "at: 1s", "at: 5s"},
		"an element that is replaced":   {"apps[hub]", `{"rabbitmq":{}}`, "{name: hub, mosquitto: {}}", "{name: hub, rabbitmq: {}}"},
		"an element that is new":        {"networks[sat]", `{"waveform":"x"}`, "rate: 2Mbit}}", "rate: 2Mbit}}, {name: sat, waveform: x}"},
		"a place behind the last":       {"timeline[1]", `{"at":"2s"}`, "[bft]}]", "[bft]}, {at: 2s}]"},
		"a field that is removed":       {"apps[hub].mosquitto", `null`, ", mosquitto: {}", ""},
		"an element that is removed":    {"networks[lan]", `null`, ", {name: lan, link: {rate: 2Mbit}}", ""},
		"what is not there is removed":  {"drain.max", `null`, "duration: 1m", "duration: 1m"},
		"a whole object":                {"networks[wan].link", `{"delay":"1s"}`, "{rate: 9.8kbit}", "{delay: 1s}"},
		"an entry of an element's list": {"timeline[0].start[0]", `"hub"`, "start: [bft]", "start: [hub]"},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := object(t, spec), object(t, strings.Replace(spec, c.was, c.is, 1))
			path, err := Parse(c.path)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal([]byte(c.value), &value); err != nil {
				t.Fatal(err)
			}
			if err := Set(got, Experiment(), path, value); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnInvalidPathIsRefusedWithASuggestion(t *testing.T) {
	for path, want := range map[string]string{
		"durations":                 "durations: there is no such field: did you mean duration?",
		"networks[wan].link.rat":    "networks[wan].link.rat: there is no such field: did you mean rate?",
		"networks[wam].link.rate":   "networks[wam]: there is no such element: did you mean wan?",
		"apps[xyz].publisher":       "apps[xyz]: there is no such element: use one of hub, bft",
		"networks.link":             "networks: is a list: name one of its elements in brackets, such as networks[wan]",
		"timeline[3].at":            "timeline[3]: the elements have no names: use an index from 0 to 0",
		"timeline[00].at":           "timeline[00]: the elements have no names: use an index from 0 to 0",
		"timeline[1].at":            "timeline[1]: there is no such element: did you mean 0?",
		"duration[0]":               "duration: is no list, so it has no element 0",
		"duration.x":                "duration: has no fields",
		"apps[bft].publisher.perio": "apps[bft].publisher.perio: there is no such field: did you mean period?",
	} {
		t.Run(path, func(t *testing.T) {
			parsed, err := Parse(path)
			if err != nil {
				t.Fatal(err)
			}
			before, o := object(t, spec), object(t, spec)
			if err := Set(o, Experiment(), parsed, "x"); err == nil || err.Error() != want {
				t.Errorf("%v; want %s", err, want)
			}
			if diff := cmp.Diff(before, o); diff != "" {
				t.Errorf("a refused path changed the spec:\n%s", diff)
			}
		})
	}
}

func TestMalformedPathsAreRefused(t *testing.T) {
	for _, text := range []string{"", ".", "a.", ".a", "a..b", "a[", "a[]", "a]b", "a[b", "[a]", "a[b]c", "a[.b]", "1a", "a b", "a[ b]", "ä"} {
		if path, err := Parse(text); err == nil {
			t.Errorf("%q was read as %#v", text, path)
		}
	}
}

func FuzzAPathIsReadAsItIsWritten(f *testing.F) {
	for _, text := range []string{"duration", "networks[wan].link.rate", "timeline[0].at", "a[b][c].d", "a[", "..", "x[1.2-3_4]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := Parse(text)
		if err != nil {
			return
		}
		if path.String() != text {
			t.Errorf("%q was read as %q", text, path)
		}
		o := object(t, spec)
		_ = Set(o, Experiment(), path, map[string]any{"name": "x"}) // must not panic
		if err := Set(o, Experiment(), path, nil); err == nil {
			if err := Set(o, Experiment(), path, nil); err != nil {
				t.Errorf("%q can be removed once, not twice: %v", text, err)
			}
		}
	})
}

func TestAValueIsReadByTheTypeOfItsField(t *testing.T) {
	for name, c := range map[string]struct {
		path, typed string
		want        any
		err         string
	}{
		"a string":                  {"duration", "12", "12", ""},
		"a number":                  {"seed", "12", int64(12), ""},
		"a number that is none":     {"seed", "twelve", nil, `seed: "twelve" is invalid: must be a whole number, such as 5`},
		"yes or no":                 {"networks[wan].links[0].reorder", "true", true, ""},
		"neither":                   {"networks[wan].links[0].reorder", "maybe", nil, `"maybe" is invalid: must be true or false`},
		"an object":                 {"apps[hub]", "{mosquitto: {}}", map[string]any{"mosquitto": map[string]any{}}, ""},
		"no YAML":                   {"apps[hub]", "{mosquitto", nil, `must be YAML of an object, such as {name: value}`},
		"a list":                    {"nodes[hq].apps", "[a, b]", []any{"a", "b"}, ""},
		"nothing":                   {"duration", "null", nil, ""},
		"a field that is not there": {"durations", "1m", nil, ""},
		"nothing at all":            {"seed", "", nil, "must be a whole number"},
	} {
		path, err := Parse(c.path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Value(Experiment(), path, c.typed)
		if diff := cmp.Diff(c.want, got); diff != "" || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v; want %q\n-want +got:\n%s", name, err, c.err, diff)
		}
	}
}
