package validate

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/messaging/content"
	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/mgenapp"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/radiod/networks"
	"vignette.dev/vignette/internal/traffic"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/wsn"
	"vignette.dev/vignette/internal/trafficconfig"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// corpus has the documents of scenarios, each with its kind.
func corpus(t testing.TB) (documents []string) {
	t.Helper()
	root := filepath.Join("..", "..", "scenarios")
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, document := range strings.Split(string(text), "\n---\n") {
			if strings.Contains(document, "kind: Experiment") && len(document) < 20_000 {
				documents = append(documents, document)
			}
		}
		return err
	})
	if err != nil || len(documents) < 20 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	return documents
}

// edges are values at, or beyond, the limits of fields.
var edges = []any{
	"0s", "1ms", "1s", "2s", "90s", "8760h", "0%", "1%", "100%", "0bit", "1bit", "9.8kbit", "1Gbit", "0Hz", "1kHz", "2.4GHz", "0dBm", "-150dBm", "37dBm", "0dB", "0m", "30m",
	0, 1, 2, 64, 65535, -1, true, false, "#", "+/a", "a/b", "198.18.0.0/30", "198.18.0.0/16", "olsrv1", "olsrv2", "babel", "static", "none", "mqtt", "mqtt-sn",
	"bytes:32", "bytes:100000", "image:1024", "nffi", "tcp port 80", "port",
}

// leaf is a scalar of a document, with its replacement; nil removes it.
type leaf struct {
	key   string
	value any
	set   func(any)
}

func leavesOf(node any, key string, set func(any)) (found []leaf) {
	switch node := node.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(node)) {
			found = append(found, leavesOf(node[name], name, func(v any) {
				if node[name] = v; v == nil {
					delete(node, name)
				}
			})...)
		}
	case []any:
		for i := range node {
			found = append(found, leavesOf(node[i], key, func(v any) { node[i] = v })...)
		}
	default:
		found = append(found, leaf{key, node, set})
	}
	return found
}

// mutant returns a document with up to three replaced values: from the same field elsewhere, or from edges.
func mutant(documents []string, values map[string][]any, seed uint64) (string, error) {
	random := rand.New(rand.NewPCG(seed, 1))
	var document map[string]any
	if err := yaml.Unmarshal([]byte(documents[random.IntN(len(documents))]), &document); err != nil {
		return "", err
	}
	for range 1 + random.IntN(3) {
		leaves := leavesOf(document["spec"], "spec", func(any) {})
		one := leaves[random.IntN(len(leaves))]
		switch same := values[one.key]; random.IntN(8) {
		case 0:
			one.set(nil)
		case 1, 2, 3:
			one.set(same[random.IntN(len(same))])
		default:
			one.set(edges[random.IntN(len(edges))])
		}
	}
	text, err := yaml.Marshal(document)
	return string(text), err
}

// refusedByDaemons returns what a run's programs refuse in a valid experiment with known waveforms.
func refusedByDaemons(e *v1alpha1.Experiment, known surroundings) error {
	e.UID, e.Namespace = "uid", "team-nor"
	t, errs := topology.Expand(&e.Spec)
	if len(errs) > 0 {
		return errs.ToAggregate()
	}
	in := render.Input{Experiment: e, Topology: t, Scripts: known.scripts, FileBytes: known.fileBytes, Options: render.Options{Namespace: "vignette-system", ServerURL: "http://server"}}
	waveforms := render.WaveformsOf(&e.Spec, known.waveforms)
	uids := map[string]types.UID{}
	for _, node := range t.Nodes {
		uids[node.Name] = types.UID(node.Name)
	}
	for _, network := range render.RadioNetworks(in, waveforms, uids) {
		if _, found := waveforms[network.Spec.Network]; !found {
			continue
		}
		network.Spec.T0 = ptr.To(metav1.NewMicroTime(time.Unix(1, 0)))
		if err := networks.Check(&network.Spec); err != nil {
			return fmt.Errorf("radiod, network %s: %w", network.Spec.Network, err)
		}
	}
	for _, pod := range render.Pods(in) {
		for _, container := range pod.Spec.Containers {
			if err := refusedByAgent(container); err != nil {
				return fmt.Errorf("pod %s, app %s: %w", pod.Name, container.Name, err)
			}
		}
	}
	return nil
}

func refusedByAgent(container corev1.Container) error {
	i := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == agentconfig.Env })
	var config agentconfig.Config
	if err := json.Unmarshal([]byte(strings.ReplaceAll(container.Env[i].Value, "$$", "$")), &config); err != nil {
		return err
	}
	if err := config.Validate(); err != nil {
		return err
	}
	for _, instance := range config.Instances {
		at := slices.Index(instance.Command, "--config")
		if at < 0 || at+1 >= len(instance.Command) {
			continue
		}
		file := slices.IndexFunc(config.Files, func(f agentconfig.File) bool { return f.Path == instance.Command[at+1] })
		if file < 0 {
			return fmt.Errorf("instance %s: there is no file %s", instance.Name, instance.Command[at+1])
		}
		if err := refusedByProgram(strings.Join(instance.Command[:at], " "), []byte(config.Files[file].Content)); err != nil {
			return fmt.Errorf("instance %s: %w", instance.Name, err)
		}
	}
	return nil
}

// refusedByProgram starts a command's program to parse its configuration.
func refusedByProgram(command string, config []byte) error {
	switch command {
	case "/traffic":
		return parsed(config, traffic.Check)
	case "/traffic mediate":
		return parsed(config, trafficconfig.Mediator.Validate)
	case "/traffic messaging":
		return parsed(config, refusedByService)
	case "/traffic proxy":
		return parsed(config, proxyconfig.Config.Validate)
	case "/traffic mqtt-sn-gateway":
		return parsed(config, mqttsn.GatewayConfig.Validate)
	case "/traffic wsn-broker":
		return parsed(config, wsn.BrokerConfig.Validate)
	case "/mgen-app":
		return parsed(config, mgenapp.Config.Validate)
	}
	return nil
}

// refusedByService returns what a messaging service refuses: its settings, and contents that it cannot make.
func refusedByService(c messagingconfig.Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	push := ptr.Deref(c.Push, messagingconfig.Push{}).Payload
	for _, of := range []struct{ kind, sender string }{{c.Reply, content.ReplySender(c.Instance)}, {push, c.Instance}} {
		if of.kind == "" {
			continue
		}
		made, err := content.OfKind(c, of.sender, of.kind)
		if err != nil {
			return err
		}
		if _, err := made.Append(nil, messagelog.MessageID(of.sender, 1), time.Unix(1, 0)); err != nil {
			return err
		}
	}
	for _, m := range c.Messages {
		if _, err := content.ScriptedBytes(c, m, messagelog.MessageID(c.Instance, 1)); err != nil {
			return err
		}
	}
	return nil
}

func parsed[C any](text []byte, check func(C) error) error {
	var config C
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	return check(config)
}

// valid returns the experiment of a text without findings; nil for another.
func valid(text string) (*v1alpha1.Experiment, surroundings) {
	documents, findings := parse("mutant.yaml", []byte(text))
	known := newSurroundings(documents).of("")
	for _, d := range documents {
		findings = append(findings, d.check(known)...)
	}
	if len(documents) != 1 || slices.ContainsFunc(findings, func(f Finding) bool { return !f.Warning }) {
		return nil, known
	}
	e := &v1alpha1.Experiment{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(documents[0].object, e) != nil {
		return nil, known
	}
	return e, known
}

func valuesOf(t testing.TB, documents []string) map[string][]any {
	t.Helper()
	values := map[string][]any{}
	for _, text := range documents {
		var document map[string]any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		for _, one := range leavesOf(document["spec"], "spec", func(any) {}) {
			values[one.key] = append(values[one.key], one.value)
		}
	}
	return values
}

func TestWhatIsValidNoDaemonRefuses(t *testing.T) {
	documents := corpus(t)
	values := valuesOf(t, documents)
	passed := 0
	for seed := range uint64(300) {
		text, err := mutant(documents, values, seed)
		if err != nil {
			t.Fatal(err)
		}
		e, known := valid(text)
		if e == nil {
			continue
		}
		passed++
		if err := refusedByDaemons(e, known); err != nil {
			t.Errorf("seed %d: valid, and then %v\n%s", seed, err, text)
		}
	}
	if passed < 30 {
		t.Errorf("only %d of 300 mutants are valid: hardly anything is tried", passed)
	}
	t.Logf("%d of 300 mutants are valid", passed)
}

func FuzzWhatIsValidNoDaemonRefuses(f *testing.F) {
	documents := corpus(f)
	values := valuesOf(f, documents)
	for seed := range uint64(3) {
		f.Add(1000 + seed)
	}
	load(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		text, err := mutant(documents, values, seed)
		if err != nil {
			t.Fatal(err)
		}
		if e, known := valid(text); e != nil {
			if err := refusedByDaemons(e, known); err != nil {
				t.Errorf("valid, and then %v\n%s", err, text)
			}
		}
	})
}

func TestTheDaemonsOfThisTestRefuseWhatIsWrong(t *testing.T) {
	e, known := valid(sound)
	if err := refusedByDaemons(e.DeepCopy(), known); err != nil {
		t.Fatalf("the sound experiment: %v", err)
	}
	e.Spec.Networks[0].Routing = &v1alpha1.Routing{Protocol: v1alpha1.RoutingOLSRv2, Hello: ptr.To(v1alpha1.Duration("2s")), HelloValidity: ptr.To(v1alpha1.Duration("1s"))}
	if err := refusedByDaemons(e, known); err == nil || !strings.Contains(err.Error(), "radiod, network") || !strings.Contains(err.Error(), "helloValidity") {
		t.Errorf("%v; want radiod to refuse helloValidity", err)
	}
}

func TestATemplateThatNoNodeCanUseIsRefused(t *testing.T) {
	text := func(vm string) string {
		return "apiVersion: vignette.dev/v1alpha1\nkind: NodeTemplate\nmetadata: {name: tank}\nspec:\n  vm:\n    image: r/tank:1\n" + vm
	}
	findings := judgeText(t, text("    ignition: '{\"ignition\": '\n"))
	if len(findings) != 1 || findings[0].Path != "spec.vm.ignition" || findings[0].Line != 7 || !strings.Contains(findings[0].Message, "no node could use the template") {
		t.Errorf("findings:\n%s\nwant one about ignition, in its line", join(findings))
	}
	if findings := judgeText(t, text("    memory: 1Gi\n")); len(findings) > 0 {
		t.Errorf("findings:\n%s\nwant none", join(findings))
	}
}
