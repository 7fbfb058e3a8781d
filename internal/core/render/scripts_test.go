package render

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// sinkScript is the content of the ConfigMap.
const sinkScript = "0.0 LISTEN UDP 5000\n0.0 JOIN 239.1.2.3 INTERFACE wan\n"

// edited is an experiment of a file in ../testdata; edits are pairs of old and new text.
func edited(t *testing.T, file string, edits ...string) *v1alpha1.Experiment {
	t.Helper()
	text, err := os.ReadFile("../../../operators/experiment/testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	for i := 0; i+1 < len(edits); i += 2 {
		if !strings.Contains(changed, edits[i]) {
			t.Fatalf("%q is not in the experiment", edits[i])
		}
		changed = strings.ReplaceAll(changed, edits[i], edits[i+1])
	}
	e := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict([]byte(changed), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// scripted is an experiment whose traffic comes from scripts.
func scripted(t *testing.T, edits ...string) Input {
	t.Helper()
	e := edited(t, "scripts.yaml", edits...)
	expanded, errs := topology.Expand(&e.Spec)
	if errs = append(errs, expanded.CheckReferences(&e.Spec)...); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	in := quickstart(t)
	return Input{Experiment: e, Topology: expanded, Options: in.Options, Scripts: map[v1alpha1.KeyReference]string{{Name: "scripts", Key: "sink.mgn"}: sinkScript}}
}

func TestPodsAndPlanOfScriptsMatchTheirGoldenFiles(t *testing.T) {
	in := scripted(t)
	if errs := CheckScripts(in); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for _, pod := range Pods(in) {
		if node := pod.Labels[v1alpha1.LabelNode]; node != "veh-2" {
			checkGolden(t, "scripts-pod-"+node, pod)
		}
	}
	checkGolden(t, "scripts-plan", Plan(in, nil, map[string]types.UID{}))
}

func TestAScriptThatIsNotKnownYetIsLeftOut(t *testing.T) {
	in := scripted(t)
	in.Scripts = nil
	if errs := CheckScripts(in); len(errs) > 0 {
		t.Errorf("an unknown script is judged: %v", errs.ToAggregate())
	}
	if pods := Pods(in); len(pods) != 3 {
		t.Errorf("%d pods", len(pods))
	}
	keys := ConfigMapKeys(&in.Experiment.Spec)
	if len(keys) != 1 || keys[0].Name != "scripts" || !keys[0].Text || keys[0].NamePath.String() != "spec.apps[1].mgen.configMap.name" {
		t.Errorf("ConfigMaps are read for %+v", keys)
	}
}

func TestErrorsOfScriptsHaveFieldLineAndReason(t *testing.T) {
	const voice = "1.0 ON 1 UDP DST hq/5000 PERIODIC [20 200]"
	cases := map[string]struct {
		edits       []string
		field, want string
	}{
		"a word that is none":                    {[]string{"UDP DST hq", "UDP DTS hq"}, "spec.apps[0].mgen.script", `line 2: ON: "DTS" is no option`},
		"an unknown node":                        {[]string{"DST hq/", "DST hd/"}, "spec.apps[0].mgen.script", `line 2: ON: DST hd/5000: there is no node "hd"`},
		"an address that nobody has":             {[]string{"DST hq/", "DST 198.18.0.99/"}, "spec.apps[0].mgen.script", "no node has this address"},
		"a node on no common network":            {[]string{"  - {name: veh, count", "  - {name: far, networks: [lan], apps: []}\n  - {name: veh, count", "DST hq/", "DST far/"}, "spec.apps[0].mgen.script", "has no network in common with node far"},
		"an interface that the node has not":     {[]string{"INTERFACE wan\n", "INTERFACE lan\n"}, "spec.apps[0].mgen.script", "line 3: INTERFACE lan: node veh-1 is on no network of that name"},
		"a time of day":                          {[]string{voice, voice + "\n        START 12:00:00"}, "spec.apps[0].mgen.script", "line 3: START is not supported: the timeline starts"},
		"a flow to a file":                       {[]string{"1.0 ON 1 UDP", "1.0 ON 1 SINK"}, "spec.apps[0].mgen.script", "SINK is not taken"},
		"two apps of a node with one flow":       {[]string{"apps: [flows, tracks, chat]", "apps: [flows, tracks, chat, more]", "  - {name: broker", "  - {name: more, mgen: {script: \"0 ON 2 UDP DST hq/5 PERIODIC [1 100]\"}}\n  - {name: broker"}, "spec.apps[2].mgen", "flow 2 is used by app flows too, which node veh-1 also runs"},
		"two apps of a node with one port":       {[]string{"apps: [flows, tracks, chat]", "apps: [flows, tracks, chat, more]", "  - {name: broker", "  - {name: more, mgen: {script: \"0 LISTEN UDP 4999-5001\"}}\n  - {name: broker"}, "spec.apps[2].mgen", "UDP port 5000 is used by app flows too"},
		"a port of a broker on the node":         {[]string{"apps: [flows, tracks, chat]", "apps: [flows, tracks, chat, other]", "LISTEN UDP 5000", "LISTEN TCP 1880-1890", "  - {name: broker", "  - {name: other, mosquitto: {}}\n  - {name: broker"}, "spec.apps[0].mgen", "TCP port 1883 is used by app other too, which node veh-1 also runs: use another number"},
		"a port of a service on the node":        {[]string{"apps: [flows, tracks, chat]", "apps: [flows, tracks, chat, other]", "LISTEN UDP 5000", "LISTEN UDP 7", "  - {name: broker", "  - {name: other, messaging: {transport: coap, port: 7, encoding: json, push: {to: all, period: 10s, payload: nffi}}}\n  - {name: broker"}, "spec.apps[0].mgen", "UDP port 7 is used by app other too"},
		"a pattern with a destination":           {[]string{"0.0 ON 1 POISSON", "0.0 ON 1 UDP DST hq/5 POISSON"}, "spec.apps[3].publisher.pattern.mgen", "UDP DST hq/5 is not for a publisher's pattern"},
		"a pattern that listens":                 {[]string{"0.0 ON 1 POISSON [5 200]", "0.0 LISTEN UDP 5"}, "spec.apps[3].publisher.pattern.mgen", "LISTEN: is not for a publisher's pattern"},
		"a pattern that sends nothing":           {[]string{"0.0 ON 1 POISSON [5 200]", "# nothing yet"}, "spec.apps[3].publisher.pattern.mgen", "has no flow: want an ON event"},
		"a pattern with messages too small":      {[]string{"POISSON [5 200]", "POISSON [5 40]"}, "spec.apps[3].publisher.pattern.mgen", "use 48 at least"},
		"a pattern without known times":          {[]string{"POISSON [5 200]", "POISSON [0 200]"}, "spec.apps[3].publisher.pattern.mgen", "rate 0: want messages per second"},
		"a pattern with a global command":        {[]string{"0.0 ON 1 POISSON", "TTL 3\\n0.0 ON 1 POISSON"}, "spec.apps[3].publisher.pattern.mgen", "line 1: TTL is not supported"},
		"a message from a node without the app":  {[]string{"from: veh-1", "from: veh-3"}, "spec.apps[4].script.messages[0]", "from veh-3: no node of this name runs app chat"},
		"a message to nobody":                    {[]string{"to: hq, text", "to: hd, text"}, "spec.apps[4].script.messages[0]", "to hd: no other node or group"},
		"a message to oneself":                   {[]string{"to: hq, text", "to: veh-1, text"}, "spec.apps[4].script.messages[0]", "to veh-1: no other node or group"},
		"a message that does not fit its size":   {[]string{"to: hq, text: hello", "to: hq, bytes: 30, text: hello"}, "spec.apps[4].script.messages[0]", "bytes 30: use"},
		"a group whose name is a node's as well": {[]string{"- {name: veh, count: 2,", "- {name: veh, group: veh, networks: [wan], apps: [chat]}\n  - {name: car, group: veh, count: 2,", "from: veh-1", "from: car-1"}, "spec.apps[4].script.messages[1]", "is the name of a node and of a group of other nodes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			errs := CheckScripts(scripted(t, c.edits...))
			if len(errs) != 1 || errs[0].Field != c.field || !strings.Contains(errs[0].Detail, c.want) {
				t.Errorf("got %v; want one about %s: …%s…", errs.ToAggregate(), c.field, c.want)
			}
		})
	}
}

func TestAScriptMayListenAtABrokersPortWithTheOtherTransport(t *testing.T) {
	in := scripted(t, "apps: [flows, tracks, chat]", "apps: [flows, tracks, chat, other]", "LISTEN UDP 5000", "LISTEN UDP 1883", "  - {name: broker", "  - {name: other, mosquitto: {}}\n  - {name: broker")
	if errs := CheckScripts(in); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

func TestTheContentOfAScriptInAConfigMapIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"0 LISTEN UDP x":              `line 1: LISTEN: ports "x"`,
		strings.Repeat("# \n", 20000): "has 60000 bytes: use 49152 at most",
	} {
		in := scripted(t)
		in.Scripts[v1alpha1.KeyReference{Name: "scripts", Key: "sink.mgn"}] = text
		errs := CheckScripts(in)
		if len(errs) != 1 || errs[0].Field != "spec.apps[1].mgen.configMap" || !strings.Contains(errs[0].Detail, want) {
			t.Errorf("got %v; want …%s…", errs.ToAggregate(), want)
		}
	}
}
