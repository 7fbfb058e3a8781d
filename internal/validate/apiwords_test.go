package validate

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ofSchemas are words of JSON's schemas, of regular expressions and of Go.
var ofSchemas = regexp.MustCompile(`should match|chars long|oneOf|anyOf|must validate|strconv|unmarshal|Go struct|json:|map\[|evaluating rule`)

// blocking are refusals after which Kubernetes checks no rules, and says so with <nil>. No definition can change these words.
var blocking = regexp.MustCompile(`Unsupported value|Required value|must be of type|Too long|Too many`)

const (
	soundScenario = "apiVersion: vignette.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s, namespace: default}\nspec: {format: synthetic, synthetic: {pattern: Line, spacing: 100m}, propagation: {model: LogDistance, frequency: 300MHz, exponent: '3'}}\n"
	soundWaveform = "apiVersion: vignette.dev/v1alpha1\nkind: Waveform\nmetadata: {name: w}\nspec: {link: {rate: 1Mbit, delay: 5ms, loss: 1%}}\n"
	soundTemplate = "apiVersion: vignette.dev/v1alpha1\nkind: NodeTemplate\nmetadata: {name: t, namespace: default}\nspec: {vm: {image: r/debian, sshKeys: [ssh-ed25519 A]}}\n"
)

// campaignOfSound has the sound experiment as its template.
var campaignOfSound = "apiVersion: vignette.dev/v1alpha1\nkind: Campaign\nmetadata: {name: c, namespace: default}\nspec:\n  matrix: {axes: [{name: seed, path: seed, values: [1, 2]}]}\n  template:\n    spec:\n    " +
	strings.ReplaceAll(sound[strings.Index(sound, "  duration: 60s"):], "\n", "\n    ")

// wrongSpecs are typical mistakes, with the expected answer of the API server.
var wrongSpecs = []struct {
	name, text string
	edits      []string
	want       string
}{
	{"a loss of 0", sound, []string{"loss: 0.5%", "loss: '0'"}, "must be a percentage from 0% to 100%"},
	{"a delay without a unit", sound, []string{"delay: 5ms}, {from: mast", "delay: '5'}, {from: mast"}, "must be a duration with its unit"},
	{"a rate without a unit", sound, []string{"rate: 9.6kbit", "rate: '9600'"}, "must be a rate above zero with its unit"},
	{"a duration of two words", sound, []string{"duration: 60s", "duration: 60 s"}, "must be a duration with its unit"},
	{"a node in capitals", sound, []string{"name: hq", "name: HQ"}, "must be lower-case letters, digits and hyphens"},
	{"a node with an underscore", sound, []string{"{name: veh,", "{name: veh_,"}, "must be lower-case letters, digits and hyphens"},
	{"an app with a dot", sound, []string{"name: own\n", "name: o.wn\n"}, "must be lower-case letters, digits and hyphens"},
	{"a network of nothing", sound, []string{"name: lan\n", "name: ''\n"}, "must be lower-case letters, digits and hyphens"},
	{"a group with a space", sound, []string{"group: nor", "group: nor way"}, "must be lower-case letters, digits and hyphens"},
	{"platforms as a list", sound, []string{`platforms: "2-4"`, `platforms: "2,3,4"`}, "must be a range such as 2-24"},
	{"an address as a subnet", sound, []string{"198.18.1.0/28", "10.0.0"}, "must be an IPv4 subnet in CIDR form"},
	{"a comma in degrees", sound, []string{"networks: [wan], apps: [hub, bft]", "position: {latitude: '58,2', longitude: '8'}, networks: [wan], apps: [hub, bft]"}, "must be degrees in quotes, such as '58.19'"},
	{"a height without a unit", sound, []string{"networks: [wan], apps: [hub, bft]", "position: {latitude: '58', longitude: '8', altitude: '120'}, networks: [wan], apps: [hub, bft]"}, "must be a length with its unit"},
	{"a gain in dB", sound, []string{"    link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}\n", "    rfpipe: {phy: {antennaGain: 3dB}}\n"}, "must be a gain with its unit, such as 2dBi"},
	{"a power without a unit", sound, []string{"    link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}\n", "    rfpipe: {phy: {transmitPower: '5'}}\n"}, "must be a power above 0W with its unit"},
	{"a frequency without a unit", sound, []string{"    link: {rate: 2Mbit, delay: 5ms, loss: 0.5%}\n", "    rfpipe: {phy: {frequency: '300'}}\n"}, "must be a frequency above zero with its unit"},
	{"a broker by a path", sound, []string{"{protocol: mqtt, to: hub, payload", "{protocol: mqtt, failover: [a/b/c], to: hub, payload"}, "must be the name of an app, or node/app"},
	{"a protocol of its own in capitals", sound, []string{"    command: [/own]\n", "    command: [/own]\n    protocol: DDS\n"}, "must be lower-case letters, digits, dots and hyphens"},
	{"a file that is not absolute", sound, []string{"    command: [/own]\n", "    command: [/own]\n    files: [{path: x, content: x}]\n"}, "must be the absolute path of a file"},
	{"a spacing without a unit", soundScenario, []string{"spacing: 100m", "spacing: '100'"}, "must be a length with its unit"},
	{"an exponent in words", soundScenario, []string{"exponent: '3'", "exponent: three"}, "must be a number from 0 to 9.9999"},
	{"a digest that is none", soundScenario, []string{"format: synthetic, synthetic: {pattern: Line, spacing: 100m}", "format: eel, compiled: abc"}, "must be sha256: and 64 hexadecimal digits"},
	{"a scenario's key that no ConfigMap has", soundScenario, []string{"format: synthetic, synthetic: {pattern: Line, spacing: 100m}", "format: gpx, source: {configMap: tracks, key: a/b.gpx}"}, "must be letters, digits, dots, hyphens and underscores"},
	{"a scenario's ConfigMap in capitals", soundScenario, []string{"format: synthetic, synthetic: {pattern: Line, spacing: 100m}", "format: gpx, sources: [{configMap: Tracks, key: a.gpx}]"}, "must be the name of an object"},
	{"a waveform's loss", soundWaveform, []string{"loss: 1%", "loss: '1'"}, "must be a percentage"},
	{"a key with a space before it", soundTemplate, []string{"ssh-ed25519 A", "' ssh-ed25519 A'"}, "without a space before it"},
	{"a change's loss", soundChange, []string{"50%", "'50'"}, "must be a percentage"},
	{"a capture for no time", soundCapture, []string{"duration: 5m", "duration: '5'"}, "must be a duration with its unit"},
	{"a variable with a digit first", sound, []string{"name: MODE", "name: 1MODE"}, "must be letters, digits and underscores, with no digit first"},
	{"a variable of a key that no ConfigMap has", sound, []string{"{name: MODE, value: fast}", "{name: MODE, configMap: {name: c, key: a/b}}"}, "must be letters, digits, dots, hyphens and underscores"},
	{"a variable of no Secret", sound, []string{"{name: MODE, value: fast}", "{name: MODE, secret: {name: '', key: a}}"}, "must be the name of an object"},
	{"a bridge's topic with a space", sound, []string{"NOR/#", "NOR/a b"}, "must be an MQTT topic filter without spaces"},
	{"a bridge's topic with # in the middle", sound, []string{"NOR/#", "NOR/#/a"}, "must be an MQTT topic filter without spaces"},
	{"a bridge's topic of nothing", sound, []string{"NOR/#", ""}, "must not be empty"},
	{"a bridge's prefix with +", sound, []string{"direction: in", "direction: in, localPrefix: nor+"}, "must be the beginning of a topic"},
	{"a congestion control in capitals", sound, []string{"  duration: 60s", "  tcpCongestionControl: Cubic\n  duration: 60s"}, "must be the kernel's name of a congestion control"},
	{"a subscription to nothing", sound, []string{"subscriber: {protocol: mqtt, to: hub}", "subscriber: {protocol: mqtt, to: hub, topics: ['']}"}, "must not be empty"},
	{"a scenario without a name", sound, []string{"  duration: 60s", "  scenario: {ref: ''}\n  duration: 60s"}, "must not be empty"},
	{"a machine's image with a space", sound, []string{"apps: [hub, bft]}", "apps: [hub, bft], runtime: vm, vm: {image: a b}}"}, "must be the name of an image, without spaces"},
	{"a template's claim in capitals", soundTemplate, []string{"image: r/debian", "persistentVolumeClaim: Disk"}, "must be the name of an object"},
	{"a capture of no network", soundCapture, []string{"network: wan", "network: ''"}, "must not be empty"},
	{"a change of no network", soundChange, []string{"network: wan", "network: ''"}, "must not be empty"},
	{"a campaign's path with a space", campaignOfSound, []string{"path: seed", "path: 'see d'"}, "must be the path of a field of the spec"},
	{"a campaign's level with a space", campaignOfSound, []string{"path: seed, values: [1, 2]", "levels: [{name: 'a b', set: [{path: seed, value: 1}]}]"}, "must be letters, digits and the signs . _ % / : + -"},
	{"a campaign's label with a space", campaignOfSound, []string{"template:\n", "template:\n    metadata: {labels: {team: 'a b'}}\n"}, "must be letters, digits, hyphens, dots and underscores"},
	{"a campaign's figures of no ConfigMap", campaignOfSound, []string{"  template:\n", "  reference: {ref: a/b}\n  template:\n"}, "must be the name of an object"},
	{"a campaign's schedule of two fields", campaignOfSound, []string{"  template:\n", "  schedule: {cron: '5 4'}\n  template:\n"}, "must be five fields"},
	{"a campaign's bridge with a space", campaignOfSound, []string{"NOR/#", "NOR/a b"}, "must be an MQTT topic filter without spaces"},
	{"a campaign's bridge with + in a word", campaignOfSound, []string{"NOR/#", "NOR/a+"}, "must be an MQTT topic filter without spaces"},
	{"an unknown protocol", sound, []string{"protocol: mqtt-udp", "protocol: kafka"}, `supported values: "mqtt"`},
	{"degrees without quotes", sound, []string{"networks: [wan], apps: [hub, bft]", "position: {latitude: 58.2, longitude: '8'}, networks: [wan], apps: [hub, bft]"}, "must be of type string"},
}

func serverAnswersInWords(t *testing.T, c client.Client) {
	for _, w := range wrongSpecs {
		t.Run(w.name, func(t *testing.T) {
			err := c.Create(t.Context(), parseObject(t, refusal{edits: w.edits}.breaking(t, w.text)), client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), w.want) {
				t.Fatalf("answer: %v\nwant …%s…", err, w.want)
			}
			if said := ofSchemas.FindString(err.Error()); said != "" {
				t.Errorf("answer in words of a schema, %q:\n%v", said, err)
			}
			if strings.Contains(err.Error(), "<nil>") && !blocking.MatchString(err.Error()) {
				t.Errorf("answer with <nil>:\n%v", err)
			}
		})
	}
	for name, text := range map[string]string{"campaign": campaignOfSound, "scenario": soundScenario, "waveform": soundWaveform, "template": soundTemplate} {
		if err := c.Create(t.Context(), parseObject(t, text), client.DryRunAll); err != nil {
			t.Errorf("the sound %s: %v", name, err)
		}
	}
}

func TestValidateSaysTheSameOfWrongSpecs(t *testing.T) {
	for _, w := range wrongSpecs {
		t.Run(w.name, func(t *testing.T) {
			found := join(judgeText(t, refusal{edits: w.edits}.breaking(t, w.text)))
			if !strings.Contains(found, w.want) || ofSchemas.MatchString(found) || ofLibraries.MatchString(found) {
				t.Errorf("findings:\n%s\nwant …%s… in plain words", found, w.want)
			}
		})
	}
}

// TestNoDefinitionHasAPattern keeps regular expressions and minimum lengths from users.
func TestNoDefinitionHasAPattern(t *testing.T) {
	all, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	for kind, d := range all {
		patternsIn(d.structural, kind, func(path, pattern string) { t.Errorf("%s: pattern %s", path, pattern) })
	}
}

// patternsIn returns the patterns in a schema, also in that of a map's values.
func patternsIn(s *schema.Structural, path string, found func(path, pattern string)) {
	if v := s.ValueValidation; v != nil && !s.XIntOrString && (v.Pattern != "" || v.MinLength != nil) {
		found(path, v.Pattern) // the pattern of amounts is Kubernetes' own
	}
	if s.Items != nil {
		patternsIn(s.Items, path+"[]", found)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		patternsIn(s.AdditionalProperties.Structural, path+".*", found)
	}
	for name := range s.Properties {
		property := s.Properties[name]
		if name != "status" { // the platform writes it
			patternsIn(&property, path+"."+name, found)
		}
	}
}
