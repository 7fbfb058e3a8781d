package validate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
)

// ofLibraries are words that no user should read: those of Go, of JSON, of regular expressions and of the YAML library.
var ofLibraries = regexp.MustCompile(`did not find|could not find|yaml: |json: |Go struct|unmarshal|strconv|map\[|in body|should match|\^\[|%!|<nil>|must validate|chars long|not allowed in this context`)

func TestWhatIsNoYAMLIsSaidInWordsWithItsLine(t *testing.T) {
	const head = "apiVersion: vignette.dev/v1alpha1\nkind: Experiment\nmetadata: {name: a}\n" // three lines
	for name, c := range map[string]struct {
		text, want string
		line       int
	}{
		"a list that is not closed":         {head + "spec:\n  apps: [a, b\n  nodes: []\n", "the list that begins here with [ is not closed", 5},
		"an object that is not closed":      {head + "spec:\n  apps: []\n  nodes: [{name: a, apps: [b]\n  drain: {}\n", "is not closed", 6},
		"a quote that is not closed":        {head + "spec:\n  duration: \"60s\n  seed: 1\n", "begins here with a quote does not end", 5},
		"a key indented otherwise":          {head + "spec:\n  duration: 60s\n   seed: 1\n", "indented otherwise", 6},
		"a key indented less":               {head + "spec:\n    duration: 60s\n  seed: 1\n", "does not belong to the lines before it", 6},
		"a tab":                             {head + "spec:\n\tduration: 60s\n", "indented with a tab", 5},
		"a tab deep inside":                 {head + "spec:\n  apps:\n  - name: a\n\t mosquitto: {}\n", "indented with a tab", 7},
		"a key without a colon":             {head + "spec:\n  duration 60s\n  seed: 1\n", "the line is no key", 5},
		"a colon in a value":                {head + "spec:\n  duration: at: 60s\n", "second ': '", 5},
		"a value that begins with @":        {head + "spec:\n  duration: @60s\n", "write it in quotes", 5},
		"a value that begins with a %":      {head + "spec:\n  duration: %60s\n", "write it in quotes", 5},
		"text after a value in quotes":      {head + "spec:\n  duration: \"60s\" s\n  seed: 1\n", "text follows a value in quotes", 5},
		"a star without an anchor":          {head + "spec:\n  apps: [*]\n", "in quotes", 5},
		"an anchor that is nowhere":         {head + "spec:\n  apps: [*all]\n", "anchor & that is not there", 5},
		"a path of Windows":                 {head + "spec:\n  apps: [{name: \"c:\\path\"}]\n", "use single quotes", 5},
		"a list beside its key":             {head + "spec:\n  apps: - name: a\n", "put '- ' into the next line", 5},
		"a tag":                             {head + "spec:\n  duration: !x!y 60s\n", "begins with !", 5},
		"the second document":               {head + "spec: {}\n---\n" + head + "spec: [\n", "is not closed", 9},
		"bytes that are no text":            {head + "spec: \x01\n", "bytes that are no text", 4},
		"a letter of another encoding":      {head + "spec: {a: \xe9}\n", "bytes that are no text", 4},
		"a list as a key":                   {head + "spec:\n  ? [a]\n  : b\n", "a key must be text", 5},
		"a template of Helm":                {head + "spec:\n  {{- if .Values.long }}\n  duration: 60s\n  {{- end }}\n", "is a Helm template: render it first, with helm template", 5},
		"a value of Helm's":                 {head + "spec:\n  duration: {{ .Values.duration }}\n", "is a Helm template", 5},
		"a value of Helm's in quotes":       {head + "spec:\n  duration: \"{{ .Values.duration }}\"\n  nodes: [{name: a}]\n", "is a Helm template", 5},
		"a template of Jinja":               {head + "spec:\n{% for n in nodes %}\n  seed: 1\n{% endfor %}\n", "placeholders of a template", 5},
		"a value of Ansible's":              {head + "spec:\n  duration: {{ duration }}\n", "placeholders of a template", 5},
		"a variable of envsubst":            {head + "spec:\n  duration: ${DURATION}\n  nodes: [{name: a}]\n", "placeholders of a template", 5},
		"a variable of a script elsewhere":  {head + "spec:\n  description: |\n    ${HOME} {{ it }}\n  apps: [a, b\n  nodes: []\n", "is not closed", 7},
		"a merge of what is no object":      {head + "spec:\n  apps: &x [1]\n  drain: {<<: 1}\n", "<< takes an anchor of an object", 1},
		"a number without bounds":           {head + "spec: {seed: .inf}\n", "a number without bounds", 4},
		"a space of a web page":             {head + "spec:\n  duration:\u00a060s\n  seed: 1\n", `the line has '\u00a0', which is no space to YAML`, 5},
		"another version of YAML":           {"%YAML 1.2\n---\n" + head, "a version of YAML that Kubernetes does not read", 1},
		"an alias that holds itself":        {"a: &a [*a]\n", "too large", 1},
		"a key that is read as true":        {head + "spec:\n  on: 1\n", `YAML reads on without quotes as true or false; write it in quotes, "on"`, 5},
		"a key that is given twice":         {head + "spec:\n  seed: 1\n  seed: 2\n", "is given twice, first in line 5", 6},
		"Windows' ends of lines":            {strings.ReplaceAll(head+"spec:\n  apps: [a, b\n  nodes: []\n", "\n", "\r\n"), "is not closed", 5},
		"a text block indented too little":  {head + "spec:\n  description: |\n  one\n  two: [\n", "the line is no key", 6},
		"a mapping after a list of objects": {head + "spec:\n  nodes:\n  - name: a\n    apps: [b]\n   networks: [c]\n", "does not belong to the lines before it", 8},
	} {
		t.Run(name, func(t *testing.T) {
			findings := judgeText(t, c.text)
			for _, f := range findings {
				if ofLibraries.MatchString(f.Message) {
					t.Errorf("in words of a library: %s", f)
				}
			}
			for _, f := range findings {
				if f.Line == c.line && strings.Contains(f.Message, c.want) {
					return
				}
			}
			t.Errorf("findings:\n%s\nwant …%s… in line %d", join(findings), c.want, c.line)
		})
	}
}

func TestRealFormsOfYAMLAreRead(t *testing.T) {
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(sound)
	if err != nil {
		t.Fatal(err)
	}
	anchors := strings.Replace(strings.Replace(sound, "publisher: {protocol: mqtt, to: hub, payload: geojson, period: 2s}",
		"publisher: &common {protocol: mqtt, to: hub, payload: geojson, period: 2s}", 1),
		"publisher: {protocol: mqtt, to: mast/broker, payload: \"bytes:64\", period: 500ms}", "publisher: {<<: *common, to: mast/broker, payload: \"bytes:64\"}", 1)
	indented := strings.ReplaceAll(strings.TrimSpace(anchors), "\n", "\n  ")
	for name, text := range map[string]string{
		"ends of lines of Windows":     strings.ReplaceAll(sound, "\n", "\r\n"),
		"ends of lines of old Macs":    strings.ReplaceAll(sound, "\n", "\r"),
		"a byte order mark":            "\xef\xbb\xbf" + sound,
		"UTF-16":                       utf16,
		"anchors and merges":           anchors,
		"anchors in a List":            "apiVersion: v1\nkind: List\nitems:\n- " + indented + "\n",
		"empty documents":              "---\n# nothing\n---\n" + sound + "---\n---\nnull\n...\n",
		"comments and directives":      "%YAML 1.1\n---\n# an experiment\n" + sound,
		"a braced text in a ConfigMap": sound + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: t}\ndata: {a: \"{{ .Values.x }}\"}\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range judgeText(t, text) {
				if !f.Warning {
					t.Error(f)
				}
			}
		})
	}
}

func TestAnAnchorOutsideOfAnItemOfAListIsRead(t *testing.T) {
	one := "apiVersion: vignette.dev/v1alpha1\n  kind: Waveform\n  metadata: {name: %}\n  spec: "
	list := "kind: List\napiVersion: v1\nitems:\n- " + strings.Replace(one, "%", "a", 1) + "&s {link: {rate: 1Mbit}}\n- " + strings.Replace(one, "%", "b", 1) + "*s\n"
	report := Text("list.yaml", []byte(list))
	if len(report.Findings) != 0 || len(report.Objects) != 2 {
		t.Errorf("objects %v, findings:\n%s\nwant two Waveforms", report.Objects, join(report.Findings))
	}
}

func TestManifestsAreObjectsAsTheFileHasThem(t *testing.T) {
	report := Text("a.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n"+sound))
	if len(report.Manifests) != 2 || report.Manifests[0].GetKind() != "ConfigMap" || report.Manifests[1].GetName() != "sound" {
		t.Fatalf("manifests %v; want the ConfigMap and the experiment", report.Manifests)
	}
	if _, defaulted := report.Manifests[1].Object["status"]; defaulted {
		t.Error("the manifest has what only the API server fills in")
	}
}

func TestFilesOfOtherToolsAreNamed(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"kustomization.yaml":   "resources: [a.yaml]\n",
		"a.yaml":               sound,
		"chart/Chart.yaml":     "apiVersion: v2\nname: mine\nversion: 1.0.0\n",
		"chart/values.yaml":    "duration: 60s\n",
		"k/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report, err := Files([]string{folder}, nil, nil)
	if err != nil || report.Failed() {
		t.Errorf("error %v, findings:\n%s\nwant warnings only", err, join(report.Findings))
	}
	all := join(report.Findings)
	for want, times := range map[string]int{"kustomize build FOLDER": 2, "helm template NAME FOLDER": 2} {
		if strings.Count(all, want) != times {
			t.Errorf("findings:\n%s\nwant %d of %q", all, times, want)
		}
	}
}

func TestWhatTheFilesDoNotHaveIsAWarning(t *testing.T) {
	withEnv := strings.Replace(sound, "{name: MODE, value: fast}", "{name: MODE, value: fast}, {name: A, configMap: {name: c, key: k}}, {name: B, secret: {name: s, key: k}}", 1)
	const scenario = "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec:\n  format: gpx\n  sources: [{configMap: tracks, key: a.gpx}]\n" +
		"  propagation: {model: Diffraction, frequency: 300MHz, terrain: {configMap: hills, key: dem.asc}}\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a ConfigMap and a Secret": {withEnv, []string{"spec.apps[5].env[1].configMap.name: ConfigMap c is not among these objects: until the cluster has it, the experiment waits with Accepted=False",
			"spec.apps[5].env[2].secret.name: Secret s is not among these objects: until the cluster has it, the experiment waits with Accepted=False"}},
		"a key": {withEnv + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {other: x}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: {vignette.dev/for-experiments: 'true'}}\nstringData: {k: x}\n",
			[]string{"spec.apps[5].env[1].configMap.name: ConfigMap c has no key k"}},
		"similar names and keys": {withEnv + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cc}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: {vignette.dev/for-experiments: 'true'}}\nstringData: {kk: x}\n",
			[]string{"spec.apps[5].env[1].configMap.name: ConfigMap c is not among these objects (did you mean cc?): until",
				"spec.apps[5].env[2].secret.name: Secret s has no key k (did you mean kk?): until it has, the nodes that need it do not start"}},
		"a Secret without its label": {withEnv + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: x}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: x}\n",
			[]string{"spec.apps[5].env[2].secret.name: Secret s does not have the label vignette.dev/for-experiments=true: until it has, the experiment waits with Accepted=False"}},
		"nothing": {withEnv + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: x}\n---\napiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: s}\n", nil},
		"tracks and terrain": {scenario, []string{"spec.propagation.terrain.configMap: ConfigMap hills is not among these objects: until the cluster has it, the scenario is not compiled",
			"spec.sources[0].configMap: ConfigMap tracks is not among these objects"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range judgeText(t, c.text) {
				if !f.Warning {
					t.Error(f)
				}
				if !strings.Contains(f.Message, "is not an object of vignette") {
					got = append(got, f.String())
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("findings:\n%s\nwant %d", strings.Join(got, "\n"), len(c.want))
			}
			for _, want := range c.want {
				if !strings.Contains(strings.Join(got, "\n"), want) {
					t.Errorf("findings:\n%s\nwant %s", strings.Join(got, "\n"), want)
				}
			}
		})
	}
}
