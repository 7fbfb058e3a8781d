package validate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func scenario(t *testing.T, path string) (v1alpha1.Experiment, string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "scenarios", path))
	if err != nil {
		t.Fatal(err)
	}
	objects := strings.Split(string(text), "\n---\n")
	last := objects[len(objects)-1] // the experiment, after its scenario
	var e v1alpha1.Experiment
	if err := yaml.UnmarshalStrict([]byte(last), &e); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return e, last
}

// e4Variant is the meaning of an E4 file's name.
type e4Variant struct {
	setting         int
	messaging, link string
	period          v1alpha1.Duration
	short           bool
}

func (v e4Variant) file() string {
	folder := "e4"
	if v.short {
		folder = "e4/short"
	}
	return fmt.Sprintf("%s/setting%d-%s-%s-%s.yaml", folder, v.setting, v.messaging, v.link, v.period)
}

func (v e4Variant) publishing() time.Duration {
	if v.short {
		return 60 * time.Second
	}
	return 1200 * time.Second
}

// e4Variants are all expected ones. Selected variants of setting 1 have short forms.
func e4Variants() []e4Variant {
	var all []e4Variant
	for _, link := range []string{"baseline", "tactical-1", "tactical-2"} {
		for _, period := range []v1alpha1.Duration{"2s", "10s"} {
			for _, messaging := range []string{"mosquitto", "mqtt-udp"} {
				all = append(all, e4Variant{2, messaging, link, period, false}, e4Variant{2, messaging, link, period, true})
			}
			for _, messaging := range []string{"mosquitto", "vernemq", "rabbitmq"} {
				all = append(all, e4Variant{1, messaging, link, period, false})
			}
			for _, cluster := range []string{"vernemq", "rabbitmq"} {
				all = append(all, e4Variant{2, cluster, link, period, false})
				if link == "baseline" && period == "2s" || link == "tactical-1" && period == "10s" {
					all = append(all, e4Variant{2, cluster, link, period, true})
				}
			}
		}
	}
	return append(all, e4Variant{1, "mosquitto", "baseline", "2s", true},
		e4Variant{1, "mosquitto", "tactical-1", "2s", true}, e4Variant{1, "mosquitto", "tactical-1", "10s", true})
}

// TestTheE4FamilyIsConsistent compares the plain files of E4: they differ only as their names
// say.
func TestTheE4FamilyIsConsistent(t *testing.T) {
	names, files := map[string]bool{}, map[string]bool{}
	for _, v := range e4Variants() {
		file := v.file()
		e, text := scenario(t, file)
		if names[e.Name] {
			t.Errorf("%s: name %s is another file's, too", file, e.Name)
		}
		names[e.Name], files[file] = true, true
		checkE4(t, file, e, v)
		messages := fmt.Sprintf("(%d messages)", v.publishing()/v.period.Std())
		if !strings.HasPrefix(text, fmt.Sprintf("# E4, setting %d", v.setting)) || !strings.Contains(text, messages) || !strings.Contains(text, "the "+v.link+" link") {
			t.Errorf("%s: the comment at its head does not say setting %d, %s and %s", file, v.setting, v.link, messages)
		}
	}
	for _, pattern := range []string{"e4/*.yaml", "e4/short/*.yaml"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "scenarios", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if file := strings.TrimSuffix(pattern, "*.yaml") + filepath.Base(path); !files[file] {
				t.Errorf("%s is no variant that this test knows", file)
			}
		}
	}
}

func checkE4(t *testing.T, file string, e v1alpha1.Experiment, v e4Variant) {
	t.Helper()
	s := e.Spec
	if len(s.Networks) != 1 || s.Networks[0].Name != "wan" || s.Networks[0].Waveform != v.link {
		t.Errorf("%s: networks %+v; want wan on %s", file, s.Networks, v.link)
	}
	want := map[string]int32{"nor": 8, "prt": 8}
	if v.setting == 2 {
		want["deu"], want["usa"] = 8, 8
	}
	publishers := publishersByNode(s)
	units := map[string]int32{}
	for node, apps := range publishers {
		for _, app := range apps {
			units[node] += app.Instances
			checkUnit(t, file, app, v.messaging, v.period)
		}
	}
	if fmt.Sprint(units) != fmt.Sprint(want) {
		t.Errorf("%s: units %v; want %v", file, units, want)
	}
	checkTimeline(t, file, s, publishers, v.publishing())
	if len(s.Timeline) == 2 && fmt.Sprint(s.Timeline[0].Start) != fmt.Sprint(s.Timeline[1].Stop) {
		t.Errorf("%s: timeline %+v; want the same apps stopped that were started", file, s.Timeline)
	}
}

// publishersByNode returns the publishing apps of each node.
func publishersByNode(s v1alpha1.ExperimentSpec) map[string][]v1alpha1.App {
	apps, found := map[string]v1alpha1.App{}, map[string][]v1alpha1.App{}
	for _, app := range s.Apps {
		apps[app.Name] = app
	}
	for _, node := range s.Nodes {
		for _, name := range node.Apps {
			if app := apps[name]; app.Publisher != nil {
				found[node.Name] = append(found[node.Name], app)
			}
		}
	}
	return found
}

// checkTimeline wants publishers to be started, to connect during their lead, and then to publish for a time.
func checkTimeline(t *testing.T, file string, s v1alpha1.ExperimentSpec, publishers map[string][]v1alpha1.App, publishing time.Duration) {
	t.Helper()
	if len(s.Timeline) != 2 {
		t.Fatalf("%s: timeline %+v; want one start and one stop", file, s.Timeline)
	}
	begin, end := s.Timeline[0].At.Std(), s.Timeline[1].At.Std()
	for _, apps := range publishers {
		for _, app := range apps {
			lead := app.Publisher.Lead.Std()
			if lead < 5*time.Second || end-begin-lead != publishing {
				t.Errorf("%s: app %s publishes for %v after a lead of %v; want %v after 5s at least", file, app.Name, end-begin-lead, lead, publishing)
			}
		}
	}
	if s.Duration.Std() <= end {
		t.Errorf("%s: it takes %v, not longer than its last action at %v", file, s.Duration.Std(), end)
	}
}

// TestE3IsThreeNationsWithChosenTopics compares the files of E3 with EXPERIMENTS.md.
func TestE3IsThreeNationsWithChosenTopics(t *testing.T) {
	for _, name := range []string{"internet", "satcom", "vernemq-internet", "vernemq-satcom"} {
		path := strings.TrimPrefix(name, "vernemq-")
		for folder, publishing := range map[string]time.Duration{"e3/": 1800 * time.Second, "e3/short/": 40 * time.Second} {
			file := folder + name + ".yaml"
			e, _ := scenario(t, file)
			if n := e.Spec.Networks; len(n) != 1 || path == "satcom" && n[0].Waveform != path || path == "internet" && n[0].Link == nil {
				t.Errorf("%s: networks %+v; want one, the path %s", file, e.Spec.Networks, path)
			}
			publishers := publishersByNode(e.Spec)
			nations := map[string]int32{}
			for _, app := range publishers["field"] {
				nations[app.Publisher.Country] += app.Instances
				if app.Publisher.Period != "2s" || app.Publisher.QoS != 0 || app.Publisher.Payload != "geojson-ids" {
					t.Errorf("%s: publisher %+v; want GeoJSON every 2s with QoS 0", file, app.Publisher)
				}
			}
			if len(publishers) != 1 || fmt.Sprint(nations) != "map[NOR:8 PRT:8 USA:8]" {
				t.Errorf("%s: publishers %v on %d nodes; want 8 of each nation on one", file, nations, len(publishers))
			}
			checkTimeline(t, file, e.Spec, publishers, publishing)
			checkE3Topics(t, file, e.Spec)
		}
	}
}

func checkE3Topics(t *testing.T, file string, s v1alpha1.ExperimentSpec) {
	t.Helper()
	directions, subscribers := map[v1alpha1.BridgeDirection]bool{}, 0
	for _, app := range s.Apps {
		if app.Mosquitto != nil {
			for _, bridge := range app.Mosquitto.Bridges {
				for _, topic := range bridge.Topics {
					directions[topic.Direction] = true
				}
			}
		}
		if app.Subscriber != nil {
			subscribers++
			if app.Subscriber.To != "broker-prt" || fmt.Sprint(app.Subscriber.Topics) != "[#]" {
				t.Errorf("%s: app %s subscribes to %v at %s; want # at broker-prt", file, app.Name, app.Subscriber.Topics, app.Subscriber.To)
			}
		}
	}
	if len(directions) != 3 || subscribers != 1 {
		t.Errorf("%s: %d subscribers, topics that cross %v; want 1, and in, out and both", file, subscribers, directions)
	}
}

func checkUnit(t *testing.T, file string, app v1alpha1.App, messaging string, period v1alpha1.Duration) {
	t.Helper()
	protocol := v1alpha1.ProtocolMQTT
	if messaging == "mqtt-udp" {
		protocol = v1alpha1.ProtocolMQTTUDP
	}
	p := app.Publisher
	if app.Subscriber == nil || p.Protocol != protocol || p.Period != period || p.Payload != "geojson" || p.QoS != 0 || fmt.Sprint(app.Subscriber.Topics) != "[#]" {
		t.Errorf("%s: app %s: %+v, %+v; want %s, GeoJSON every %s, QoS 0, topic #", file, app.Name, p, app.Subscriber, protocol, period)
	}
}
