package messagescript

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vignette.dev/vignette/internal/traffic/protocol"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func TestANodeSendsItsOwnMessagesAndSubscribesToItsNames(t *testing.T) {
	site := apps.Site{
		App:  v1alpha1.App{Name: "chat", Script: &v1alpha1.MessageScript{Protocol: "mqtt", Version: "5", QoS: 1, To: "broker"}},
		Node: "a-1", Instances: []string{"a-1/chat"}, Seed: 7, Broker: apps.Server{Address: "hq:1883"}, MetricsPorts: []int{9464},
		Scripted: &apps.Scripted{Names: []string{"a-1", "a", "all"}, Messages: []v1alpha1.ScriptedMessage{
			{At: "1m0.5s", From: "a-1", To: "b", Text: "hello"}, {At: "2m", From: "a-1", To: "all", Type: "ALERT", Bytes: 300}}},
	}
	want := trafficconfig.Config{
		Instance: "a-1/chat", Entity: "a-1/chat", Protocol: "mqtt", Version: "5", Broker: "hq:1883", Seed: apps.Seed(7, "instance", "a-1/chat"), MetricsPort: 9464,
		Subscribe: &trafficconfig.Subscribe{QoS: 1, Topics: []string{"script/chat/to/a-1", "script/chat/to/a", "script/chat/to/all"}},
		Publish: &trafficconfig.Publish{QoS: 1, Messages: []trafficconfig.Message{
			{AtSeconds: 60.5, Topic: "script/chat/to/b", Type: "TEXT", From: "a-1", To: "b", Text: "hello"},
			{AtSeconds: 120, Topic: "script/chat/to/all", Type: "ALERT", From: "a-1", To: "all", Bytes: 300}}},
	}
	got := Config(site)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	site.Scripted.Messages = nil
	if r := (Kind{}).Render(site); r.Publishes || len(r.Subscriptions[0]) != 3 || !r.DrainOnStop {
		t.Errorf("a node that sends nothing is rendered %+v", r)
	}
}

func TestAScriptUsesTheSecurityOfItsBroker(t *testing.T) {
	site := apps.Site{App: v1alpha1.App{Name: "chat", Script: &v1alpha1.MessageScript{Protocol: "mqtt", To: "broker"}}, Node: "a-1", Instances: []string{"a-1/chat"},
		Broker: apps.Server{Address: "hq:8883", App: v1alpha1.App{Mosquitto: &v1alpha1.Mosquitto{}, Security: &v1alpha1.Security{TLS: true, Password: true}}}, MetricsPorts: []int{9464}}
	want := &protocol.Security{CAFile: "/vignette/security/ca.crt", UsernameFile: "/vignette/security/username", PasswordFile: "/vignette/security/password"}
	if diff := cmp.Diff(want, Config(site).Security); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestScriptsAreReadFromTablesAndLists(t *testing.T) {
	want := []v1alpha1.ScriptedMessage{
		{At: "5s", From: "a", To: "b", Text: "move, now"},
		{At: "1m", From: "b", To: "all", Type: "ALERT", Text: "contact", Bytes: 300},
	}
	for key, text := range map[string]string{
		"m.csv":                "at,from,to,type,text,bytes\n# the first\n5s,a,b,,\"move, now\",\n1m, b, all, ALERT, contact, 300\n",
		"by-a-spreadsheet.csv": "\ufeffat,from,to,type,text,bytes\r\n5s,a,b,,\"move, now\",\r\n1m,b,all,ALERT,contact,300\r\n",
		"m.yaml":               "- {at: 5s, from: a, to: b, text: \"move, now\"}\n- {at: 1m, from: b, to: all, type: ALERT, text: contact, bytes: 300}\n",
	} {
		got, err := Parse(key, text)
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", key, diff)
		}
	}
}

func TestATextMayHaveAsManyCharactersAsInTheSpec(t *testing.T) {
	longest := strings.Repeat("é", 4096)
	if got, err := Parse("m.csv", "at,from,to,text\n5s,a,b,"+longest+"\n"); err != nil || got[0].Text != longest {
		t.Errorf("got %d messages, %v; want one of 4096 characters", len(got), err)
	}
}

// ofLibraries are words that no user should read.
var ofLibraries = regexp.MustCompile(`yaml: |json|JSON|Go |unmarshal|EOF|parse error|record on|bare|extraneous`)

func TestErrorsOfTablesAndListsAreReported(t *testing.T) {
	cases := map[string]struct{ key, text, want string }{
		"a form that the name does not say": {"messages", "", "want a name that ends in .yaml or .csv"},
		"no messages":                       {"m.csv", "at,from,to\n", "has 0 messages"},
		"an empty table":                    {"m.csv", "", "is empty: want a first row with the columns at, from, to"},
		"an unknown column":                 {"m.csv", "at,from,whom\n", `column "whom": want at, from, to`},
		"a column twice":                    {"m.csv", "at,from,at\n", `column "at"`},
		"a row that is too short":           {"m.csv", "at,from,to\n5s,a\n", "line 2: has 2 values: want 3, as the first row has columns"},
		"a quote within a value":            {"m.csv", "at,from,to,text\n5s,a,b,a 7\" gun\n", "line 2: has a quote that does not begin or end a value"},
		"a quote in the first row":          {"m.csv", "at,from,\"to\n", "has a quote that does not begin or end a value"},
		"a size that is no number":          {"m.csv", "at,from,to,bytes\n5s,a,b,x\n", `line 2: bytes "x": want a number`},
		"a moment without a unit":           {"m.csv", "at,from,to\n5,a,b\n", `message 1 (at 5 from a to b): at "5": want a duration with its unit`},
		"nobody to send it":                 {"m.yaml", "- {at: 5s, to: b}", `from "", to "b": want both`},
		"an unknown field":                  {"m.yaml", "- {at: 5s, from: a, whom: b}", "message 1: there is no field whom: want at, from, to, type, text or bytes"},
		"a field twice":                     {"m.yaml", "- {at: 5s, at: 6s}", "message 1: at is there twice: want it once"},
		"a field twice by an anchor":        {"m.yaml", "- &a {at: 5s, from: a, to: b, text: x}\n- {<<: *a, text: y}", "a message has a field twice, also by <<"},
		"a list as text":                    {"m.yaml", "- {at: 5s, from: a, to: b}\n- {at: 5s, from: a, to: b, text: [x]}", "message 2: text is a list: want text in quotes"},
		"a word that YAML reads as true":    {"m.yaml", "- {at: 5s, from: a, to: b, text: yes}", "message 1: text is yes, which YAML reads as true: want text in quotes"},
		"a number that YAML reads anew":     {"m.yaml", "- {at: 5s, from: a, to: b, text: 0x10}", "message 1: text is 0x10, which YAML reads as 16: want text in quotes"},
		"a size in quotes":                  {"m.yaml", "- {at: 5s, from: a, to: b, bytes: \"300\"}", `message 1: bytes is "300": want a whole number from 1 to 65000, without quotes`},
		"a size with a fraction":            {"m.yaml", "- {at: 5s, from: a, to: b, bytes: 3.5}", "message 1: bytes is 3.5: want a whole number"},
		"a size out of all bounds":          {"m.yaml", "- {at: 5s, from: a, to: b, bytes: 99999999999}", "message 1: bytes is 99999999999: want a whole number"},
		"a message that is text":            {"m.yaml", "- hello", "message 1: is hello: want fields, such as {at: 10s"},
		"an empty message":                  {"m.yaml", "-", "message 1: is empty: want fields"},
		"an object instead of a list":       {"m.yaml", "at: 5s", "is no list of messages"},
		"a second list":                     {"m.yaml", "- {at: 5s, from: a, to: b}\n---\n- {at: 6s, from: a, to: b}\n", "goes on after a line ---: want one list of messages"},
		"a list as a field's name":          {"m.yaml", "- {? [a] : b}", "message 1: has a list for a field's name"},
		"a bracket that is not closed":      {"m.yaml", "- {at: 5s,\n  from: a\n- {at: 6s}\n", "line 2 is not YAML: the object that begins here with { is not closed"},
		"a tab":                             {"m.yaml", "- at: 5s\n\tfrom: a\n", "line 2 is not YAML: the line is indented with a tab"},
		"an anchor that is nowhere":         {"m.yaml", "- {at: *x}", "line 1 is not YAML: the line refers with * to an anchor"},
		"a type with spaces":                {"m.yaml", "- {at: 5s, from: a, to: b, type: a b}", `type "a b"`},
		"a text that is too long":           {"m.yaml", "- {at: 5s, from: a, to: b, text: \"" + strings.Repeat("é", 4097) + "\"}", "text has 4097 characters: want 4096 at most"},
		"a message that is too large":       {"m.yaml", "- {at: 5s, from: a, to: b, bytes: 70000}", "bytes 70000: want 1 to 65000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(c.key, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want …%s…", err, c.want)
			} else if foreign := ofLibraries.FindString(err.Error()); foreign != "" {
				t.Errorf("%q has %q, the words of a library", err, foreign)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("at,from,to,type,text,bytes\n5s,a,b,,\"move, now\",\n")
	f.Add("- {at: 5s, from: a, to: b, text: 42}\n- &a {at: 1m, from: b, to: all, bytes: 300}\n- *a\n")
	f.Add("---\n- {at: 5s, from: a, to: b}\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, key := range []string{"m.csv", "m.yaml"} {
			messages, err := Parse(key, text)
			for _, m := range messages {
				if err == nil && (m.From == "" || m.To == "" || m.Std() < 0) {
					t.Errorf("%s %q is taken as %+v", key, text, m)
				}
			}
		}
	})
}
