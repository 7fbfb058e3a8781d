package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubernetesHabitsAreTaken(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(sound), "\n", "\n  ") + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"a generated name": {strings.Replace(sound, "  name: sound", "  generateName: sound-", 1), ""},
		"a generated name that gets too long": {strings.Replace(sound, "  name: sound", "  generateName: "+strings.Repeat("a", 36), 1),
			"at most 40"},
		"a list": {list, ""},
		"a list with a mistake": {strings.Replace(list, "duration: 60s", "duration: 60", 1),
			"standard input:10: spec.duration: must be of type string, not integer"},
		"a list in a list": {"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(strings.Replace(list, "duration: 60s", "duration: 60", 1)), "\n", "\n  ") + "\n",
			"spec.duration: must be of type string, not integer"},
		"a list without items":          {"apiVersion: v1\nkind: List\n", "standard input: holds no object"},
		"a list whose items are none":   {"apiVersion: v1\nkind: List\nitems: {}\n", "standard input:3: items: must be a list of objects"},
		"a name that is a number":       {strings.Replace(sound, "  name: sound", "  name: 7", 1), `standard input:4: metadata.name: must be text: write it in quotes, "7"`},
		"a namespace that is a number":  {strings.Replace(sound, "namespace: default", "namespace: 12", 1), `metadata.namespace: must be text: write it in quotes, "12"`},
		"an object that is there twice": {sound + "---\n" + sound, "Experiment/sound is in this file twice, first in line 4"},
		"two with generated names":      {strings.Replace(sound+"---\n"+sound, "  name: sound", "  generateName: sound-", 2), ""},
		"a number that begins with 0":   {strings.Replace(sound, "duration: 60s", "duration: 60s\n  seed: 010", 1), `warning: spec.seed: YAML reads 010 without quotes as 8: write 10, or text in quotes, "010"`},
		"what kubectl get writes": {strings.Replace(sound, "  name: sound", "  name: sound\n  uid: 1f9\n  resourceVersion: \"7\"\n  generation: 1\n"+
			"  creationTimestamp: \"2026-01-01T00:00:00Z\"\n  managedFields: [{manager: kubectl, operation: Update}]", 1), ""},
		"a key that metadata has not": {strings.Replace(sound, "  name: sound", "  name: sound\n  lables: {a: b}", 1),
			"standard input:5: metadata.lables: there is no such field: did you mean labels?"},
		"a label that is a number": {strings.Replace(sound, "  name: sound", "  name: sound\n  labels: {team: 5}", 1),
			`standard input:5: metadata.labels.team: must be text: write it in quotes, "5"`},
		"an annotation that is a truth": {strings.Replace(sound, "  name: sound", "  name: sound\n  annotations: {a/b.c: yes}", 1),
			`metadata.annotations.a/b.c: must be text: write it in quotes, "yes"`},
		"labels that are a word": {strings.Replace(sound, "  name: sound", "  name: sound\n  labels: team", 1),
			"standard input:5: metadata.labels: must be an object with texts, such as {team: nor}"},
		"a time in words": {strings.Replace(sound, "  name: sound", "  name: sound\n  creationTimestamp: noon", 1),
			"standard input:5: metadata.creationTimestamp: has a value that the API server does not take: leave the field out"},
		"a finalizer that is a number": {strings.Replace(sound, "  name: sound", "  name: sound\n  finalizers: 5", 1), "standard input:5: metadata.finalizers: has a value"},
		"a UID that is a number":       {strings.Replace(sound, "  name: sound", "  name: sound\n  uid: 5", 1), `metadata.uid: must be text: write it in quotes, "5"`},
		"a label with a space":         {strings.Replace(sound, "  name: sound", "  name: sound\n  labels: {team: a b}", 1), `metadata.labels: "a b": a valid label must be`},
		"a namespace in capitals":      {strings.Replace(sound, "namespace: default", "namespace: NOR", 1), `metadata.namespace: "NOR" must be lower-case letters`},
		"a share of a processor":       {withResources("requests: {cpu: 1.5}"), `spec.apps[5].resources.requests.cpu: must be a whole number, or text in quotes, "1.5"`},
		"a share in quotes":            {withResources("requests: {cpu: '1.5'}, limits: {cpu: 2}"), ""},
		"a processor less than one":    {withResources("limits: {cpu: -1}"), "spec.apps[5].resources.limits.cpu: \"-1\" must not be negative"},
		"memory in thousandths":        {withResources("limits: {memory: 512m}"), `spec.apps[5].resources.limits.memory: "512m" must be whole bytes, such as 512Mi`},
		"a resource of no pod":         {withResources("requests: {gpu: 1}"), "spec.apps[5].resources.requests.gpu: \"1\": no pod has such a resource: want cpu, memory"},
		"a resource with a domain":     {withResources("limits: {nvidia.com/gpu: 1, memory: 1.5Gi}"), ""},
		"a share of a card":            {withResources("limits: {nvidia.com/gpu: 500m}"), `spec.apps[5].resources.limits.nvidia.com/gpu: "500m" must be a whole number`},
		"a card without a limit":       {withResources("requests: {nvidia.com/gpu: 1}"), `spec.apps[5].resources.requests.nvidia.com/gpu: has no limit: write limits: {nvidia.com/gpu: 1}`},
		"more cards than requested":    {withResources("requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}"), `"1" must be equal to the limit, 2`},
		"a resource without a name":    {withResources("limits: {nvidia.com/: 1}"), `"1": no resource has such a name`},
		"a claim":                      {withResources("claims: [{name: card}]"), "spec.apps[5].resources.claims: the platform's pods have no claims to name: leave them out"},
		"a request above its limit":    {withResources("requests: {memory: 2Gi}, limits: {memory: 1Gi}"), "spec.apps[5].resources.requests.memory: \"2Gi\" is above the limit, 1Gi"},
		"a word that YAML 1.1 reads as a truth": {strings.Replace(sound, "group: nor,", "group: NO,", 1),
			`spec.nodes[0].group: must be of type string, not boolean: YAML reads NO without quotes as something else than text; write it in quotes, "NO"`},
		"a number that is a value": {strings.Replace(sound, "value: fast", "value: 1e3", 1), `write it in quotes, "1e3"`},
		"more changes than a timeline has": {strings.Replace(sound, "  timeline:\n", "  timeline:\n"+strings.Repeat("  - {at: 6s, set: [{network: wan, silent: true}]}\n", 38), 1),
			"spec.timeline: Too many: 41: must have at most 40 items. Comm effects of a scenario change links as often as you like: see commEffects of a network"},
		"a height without a unit":  {strings.Replace(sound, "networks: [wan], apps: [hub, bft]", "position: {latitude: '58', longitude: '8', altitude: 20}, networks: [wan], apps: [hub, bft]", 1), `must be of type string, not integer: it must be a length with its unit, such as 120m`},
		"a gain without a unit":    {strings.Replace(sound, "    link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}\n", "    rfpipe: {phy: {antennaGain: 3}}\n", 1), "must be of type string, not integer: it must be a gain with its unit, such as 2dBi"},
		"a loss without a percent": {strings.Replace(sound, "loss: 0.5%", "loss: 0", 1), "must be of type string, not integer: it must be a percentage from 0% to 100%"},
		"degrees without quotes":   {strings.Replace(sound, "networks: [wan], apps: [hub, bft]", "position: {latitude: 58.2, longitude: '8'}, networks: [wan], apps: [hub, bft]", 1), `write it in quotes, "58.2"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := join(judgeText(t, c.text))
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("findings:\n%s\nwant %q", got, c.want)
			}
			for _, word := range []string{"anyOf", "Go struct", "regex", "cannot restore", "parsing time", "int64"} {
				if strings.Contains(got, word) {
					t.Errorf("findings:\n%s\nin words of a library", got)
				}
			}
		})
	}
}

func withResources(resources string) string {
	return strings.Replace(sound, "    command: [/own]\n", "    command: [/own]\n    resources: {"+resources+"}\n", 1)
}

func TestAFolderStandsForItsFiles(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	own := "apiVersion: vignette.dev/v1alpha1\nkind: Waveform\nmetadata: {name: my-own}\nspec: {link: {}}\n"
	for name, text := range map[string]string{
		"a.yaml": strings.Replace(sound, "waveform: baseline", "waveform: my-own", 1), "more/b.yml": own, "README.md": "no YAML: [",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report, err := Files([]string{folder}, nil, nil)
	if err != nil || len(report.Findings) != 0 || len(report.Objects) != 2 {
		t.Errorf("objects %v, findings %v, error %v; want two objects, judged together", report.Objects, report.Findings, err)
	}
	if _, err := Files([]string{t.TempDir()}, nil, nil); err == nil {
		t.Error("an empty folder is valid")
	}
}
