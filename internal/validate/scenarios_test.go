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
	var e v1alpha1.Experiment
	if err := yaml.UnmarshalStrict(text, &e); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return e, string(text)
}

// TestTheE4FamilyIsConsistent holds the plain files of setting 2 together: they differ in what their
// names say, and in nothing else.
func TestTheE4FamilyIsConsistent(t *testing.T) {
	names := map[string]bool{}
	for _, messaging := range []string{"mosquitto", "mqtt-udp"} {
		for _, link := range []string{"baseline", "tactical-1"} {
			for _, period := range []string{"2s", "10s"} {
				for _, short := range []bool{false, true} {
					file := fmt.Sprintf("e4/setting2-%s-%s-%s.yaml", messaging, link, period)
					publishing := 1200 * time.Second
					if short {
						file, publishing = strings.Replace(file, "e4/", "e4/short/", 1), 60*time.Second
					}
					e, text := scenario(t, file)
					if names[e.Name] {
						t.Errorf("%s: name %s is another file's, too", file, e.Name)
					}
					names[e.Name] = true
					checkE4(t, file, e, messaging, link, v1alpha1.Duration(period), publishing)
					messages := fmt.Sprintf("(%d messages)", publishing/v1alpha1.Duration(period).Std())
					if !strings.HasPrefix(text, "# E4, setting 2") || !strings.Contains(text, messages) {
						t.Errorf("%s: the comment at its head does not say %s", file, messages)
					}
				}
			}
		}
	}
}

func checkE4(t *testing.T, file string, e v1alpha1.Experiment, messaging, link string, period v1alpha1.Duration, publishing time.Duration) {
	t.Helper()
	s := e.Spec
	if len(s.Networks) != 1 || s.Networks[0].Name != "wan" || s.Networks[0].Waveform != link {
		t.Errorf("%s: networks %+v; want wan on %s", file, s.Networks, link)
	}
	apps := map[string]v1alpha1.App{}
	for _, app := range s.Apps {
		apps[app.Name] = app
	}
	units := map[string]int32{}
	for _, node := range s.Nodes {
		for _, name := range node.Apps {
			if app := apps[name]; app.Publisher != nil && app.Subscriber != nil {
				units[node.Name] += app.Instances
				checkUnit(t, file, app, messaging, period)
			}
		}
	}
	if want := map[string]int32{"deu": 8, "nor": 8, "prt": 8, "usa": 8}; fmt.Sprint(units) != fmt.Sprint(want) {
		t.Errorf("%s: units %v; want %v", file, units, want)
	}
	if len(s.Timeline) != 2 || fmt.Sprint(s.Timeline[0].Start) != fmt.Sprint(s.Timeline[1].Stop) {
		t.Fatalf("%s: timeline %+v; want one start and one stop of the same apps", file, s.Timeline)
	}
	if got := s.Timeline[1].At.Std() - s.Timeline[0].At.Std(); got != publishing {
		t.Errorf("%s: units publish for %v; want %v", file, got, publishing)
	}
}

func checkUnit(t *testing.T, file string, app v1alpha1.App, messaging string, period v1alpha1.Duration) {
	t.Helper()
	protocol := map[string]v1alpha1.Protocol{"mosquitto": v1alpha1.ProtocolMQTT, "mqtt-udp": v1alpha1.ProtocolMQTTUDP}[messaging]
	p := app.Publisher
	if p.Protocol != protocol || p.Period != period || p.Payload != "geojson" || p.QoS != 0 || fmt.Sprint(app.Subscriber.Topics) != "[#]" {
		t.Errorf("%s: app %s: %+v, %+v; want %s, GeoJSON every %s, QoS 0, topic #", file, app.Name, *p, *app.Subscriber, protocol, period)
	}
}
