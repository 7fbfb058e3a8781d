package charts

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/validate"
)

// rendered by helm, or what it says against the values.
func rendered(t *testing.T, chart string, arguments ...string) (out string, err error) {
	t.Helper()
	text, err := exec.Command(helm(t), append([]string{"template", "release", chart, "-n", "vignette-system"}, arguments...)...).CombinedOutput()
	return string(text), err
}

func TestValuesAreAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		chart, values string
	}{
		"none":                         {"vignette", "{}"},
		"a registry with a port":       {"vignette", "images: {registry: 'registry.example.org:5000/vignette', tag: v0.1.0-rc.1, pullSecrets: [{name: registry}]}"},
		"no registry":                  {"vignette", "images: {registry: ''}"},
		"quantities of all forms":      {"vignette", "server: {runQuota: 500M, scenarioQuota: 2147483648, storage: {size: 1.5Ti}}"},
		"sizes below one unit":         {"vignette", "{radiod: {captureSpool: 0.5Gi}, server: {storage: {size: 010Gi}, analysis: {memory: 1000000000}}}"},
		"no bounds":                    {"vignette", "{apps: {memoryLimit: 0, scratchLimit: '0'}, server: {runQuota: '0', teamQuota: 0}}"},
		"an analysis without a limit":  {"vignette", "server: {analysis: {memory: 4Gi, resources: {limits: null}}}"},
		"a limit in bytes":             {"vignette", "server: {analysis: {memory: 2Gi, resources: {limits: {memory: 2147483649}}}}"},
		"no analysis":                  {"vignette", "server: {analysis: {enabled: false, memory: 4Gi}}"},
		"shares of the volume":         {"vignette", "server: {teamQuota: 0.5%, teams: {nor: {quota: 100%}, pol: {quota: 12.5%}, usa: {quota: 40Gi}}}"},
		"dashboards without labels":    {"vignette", "monitoring: {dashboards: {labels: {grafana_dashboard: null}}}"},
		"durations of Go":              {"vignette", "{operator: {startLead: 1m30s, provisioningDeadline: 0.5h}, server: {retention: 720h}}"},
		"a second as milliseconds":     {"vignette", "operator: {startLead: 1000ms}"},
		"a part of a minute":           {"vignette", "operator: {startLead: 0.5m}"},
		"cluster ranges of both kinds": {"vignette", "operator: {clusterCIDRs: [10.0.0.0/8, 192.168.255.1/32, 'fd00::/64', '::ffff:10.0.0.0/128']}"},
		"processors as numbers":        {"vignette", "radiod: {resources: {requests: {cpu: 0.5, memory: 64Mi}, limits: {hugepages-2Mi: 4Mi}}}"},
		"a switch taken off":           {"vignette", "networkPolicies: {create: false}"},
		"values of a parent chart":     {"vignette", "global: {anything: [goes]}"},
		"the cluster's nameserver":     {"vignette", "nodes: {clusterDNS: true}"},
		"a team with a nameserver":     {"vignette-team", "networkPolicy: {clusterDNS: true}"},
		"a team":                       {"vignette-team", "{experimenters: {groups: [nor]}, quota: {pods: 60, requests.cpu: '8'}}"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "values.yaml")
			write(t, file, c.values)
			if out, err := rendered(t, c.chart, "-f", file); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestAConsoleWithoutALoginIsRefused(t *testing.T) {
	if out, err := rendered(t, "vignette", "--set", "console.enabled=true,console.origin=https://console.example"); err == nil || !strings.Contains(out, "needs console.origin, console.oidc.issuer and console.oidc.clientID") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAnAnalysisThatMayFillItsContainerIsRefused: the kernel would end it instead of the comparison's own words.
func TestAnAnalysisThatMayFillItsContainerIsRefused(t *testing.T) {
	const want = "server.analysis.memory is 2Gi, and server.analysis.resources.limits.memory 1536Mi: the limit must be larger"
	if out, err := rendered(t, "vignette", "--set", "server.analysis.memory=2Gi"); err == nil || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nwant %q", err, out, want)
	}
}

// TestFiguresThatMayFillTheirVolumeAreRefused: the kubelet would evict Prometheus again and again.
func TestFiguresThatMayFillTheirVolumeAreRefused(t *testing.T) {
	for size, want := range map[string]string{"1024MB": "is 1024MB, and monitoring.prometheus.volumeSize 1Gi: want a bound below the volume's size", "1073741824B": "is 1073741824B", "0B": "is 0B", "1000MB": "", "1073741823B": ""} {
		out, err := rendered(t, "vignette", "--set", "monitoring.prometheus.enabled=true,monitoring.prometheus.retentionSize="+size)
		if refused := err != nil; refused != (want != "") || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", size, err, out)
		}
	}
	if out, err := rendered(t, "vignette", "--set", "monitoring.prometheus.enabled=true,monitoring.prometheus.volumeSize=0"); err != nil {
		t.Errorf("a volume without a bound: %v\n%s", err, out)
	}
}

func TestWrongValuesAreRefusedByName(t *testing.T) {
	for set, c := range map[string]struct{ chart, want string }{
		"images.registy=x":                 {"vignette", "registy"},
		"imagePullSecrets[0].name=x":       {"vignette", "imagePullSecrets"},
		"images.pullPolicy=Sometimes":      {"vignette", "pullPolicy"},
		"images.registry=x/":               {"vignette", "registry"},
		"operator.replicas=two":            {"vignette", "replicas"},
		"operator.startLead=5":             {"vignette", "startLead"},
		"operator.startLead=500ms":         {"vignette", "startLead"},
		"server.runQuota=2ki":              {"vignette", "runQuota"},
		"operator.clusterCIDRs[0]=ten":     {"vignette", "clusterCIDRs"},
		"server.retention=30d":             {"vignette", "retention"},
		"server.runQuota=2 GiB":            {"vignette", "runQuota"},
		"server.runQuota=500m":             {"vignette", "runQuota"},
		"server.teamQuota=0%":              {"vignette", "teamQuota"},
		"server.teamQuota=150%":            {"vignette", "teamQuota"},
		"server.teamQuota=40ki":            {"vignette", "teamQuota"},
		"server.teamQuota=50":              {"vignette", "teamQuota"},
		"server.teams.nor.quota=50":        {"vignette", "quota"},
		"server.teams.team_nor.quota=5Gi":  {"vignette", "at '/server/teams': additional properties 'team_nor'"},
		"server.storage.size=10":           {"vignette", "size"},
		"server.storage.size=0":            {"vignette", "size"},
		"server.analysis.memory=2":         {"vignette", "memory"},
		"server.analysis.memory=0":         {"vignette", "memory"},
		"radiod.captureSpool=512":          {"vignette", "captureSpool"},
		"radiod.captureSpool=0.0Gi":        {"vignette", "captureSpool"},
		"apps.memoryLimit=1":               {"vignette", "memoryLimit"},
		"operator.provisioningDeadline=0s": {"vignette", "provisioningDeadline"},
		"server.storage.size=big":          {"vignette", "size"},
		"server.scenarioUploads=maybe":     {"vignette", "scenarioUploads"},
		"radiod.metricsPort=96000":         {"vignette", "metricsPort"},
		"radiod.realtimePriority=100":      {"vignette", "realtimePriority"},
		"radiod.cniBinDir=opt/cni":         {"vignette", "cniBinDir"},
		"waveforms.readers=everybody":      {"vignette", "readers"},
		"podAnnotations.number=1":          {"vignette", "podAnnotations"},
		"networkPolicies.metricsFrom=x":    {"vignette", "metricsFrom"},
		"console.origin=http://x":          {"vignette", "origin"},
		"console.oidc.issuer=login":        {"vignette", "issuer"},
		"experimenters=nor":                {"vignette-team", "experimenters"},
		"quota.pods=many":                  {"vignette-team", "quota"},
		"networkPolicy.dnsPorts[0]=0":      {"vignette-team", "dnsPorts"},
		"images.vernemq=":                  {"vignette", "vernemq"},
		"networkPolicy.metricFrom[0].x=":   {"vignette-team", "metricFrom"},
	} {
		t.Run(set, func(t *testing.T) {
			out, err := rendered(t, c.chart, "--set", set)
			if err == nil || !strings.Contains(out, c.want) || !strings.Contains(out, "schema") {
				t.Errorf("%v\n%s\nwant the schema to refuse %s", err, out, c.want)
			}
		})
	}
}

// TestRangesThatAreNoneAreRefused: the operator would not start with them.
func TestRangesThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{"10.0.0.0/33", "10.0.0.256/8", "10.0/8", "fd00::/129"} {
		if out, err := rendered(t, "vignette", "--set", "operator.clusterCIDRs[0]="+text); err == nil || !strings.Contains(out, "clusterCIDRs") {
			t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
}

// TestANameserverWithoutPortsIsRefused: a policy without ports lets nodes reach all of them.
func TestANameserverWithoutPortsIsRefused(t *testing.T) {
	if out, err := rendered(t, "vignette-team", "--set-json", "networkPolicy.dnsPorts=[]"); err == nil || !strings.Contains(out, "dnsPorts") {
		t.Errorf("%v\n%s", err, out)
	}
}

// chartFile is what a chart says of itself.
type chartFile struct {
	Icon        string            `json:"icon"`
	Annotations map[string]string `json:"annotations"`
}

func readChart(t *testing.T, chart string) (c chartFile) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheChartNamesEveryCRD(t *testing.T) {
	var named []struct{ Kind, Version, Name, DisplayName, Description string }
	if err := yaml.Unmarshal([]byte(readChart(t, "vignette").Annotations["artifacthub.io/crds"]), &named); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, crd := range named {
		names[crd.Name] = true
	}
	files, err := filepath.Glob("../crds/*.yaml")
	if err != nil || len(files) != len(named) {
		t.Errorf("%d CRDs, %v; the chart names %d", len(files), err, len(named))
	}
	for _, file := range files {
		_, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		if name := plural + ".vignette.dev"; !names[name] {
			t.Errorf("the chart does not name %s", name)
		}
	}
}

func TestTheChartsExampleIsValid(t *testing.T) {
	var examples []map[string]any
	if err := yaml.Unmarshal([]byte(readChart(t, "vignette").Annotations["artifacthub.io/crdsExamples"]), &examples); err != nil || len(examples) == 0 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, example := range examples {
		text, err := yaml.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		if report := validate.Text("Chart.yaml", text); report.Failed() {
			t.Errorf("findings %v; want none", report.Findings)
		}
	}
}

func TestTheIconIsThatOfTheDocumentation(t *testing.T) {
	icon, err := os.ReadFile("../docs/pictures/icon.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, chart := range []string{"vignette", "vignette-team"} {
		if want := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(icon); readChart(t, chart).Icon != want {
			t.Errorf("the icon of chart %s is another; want %s", chart, want)
		}
	}
}

// withNotes is a chart of one object, which has the notes of another chart: helm shows notes itself only as it installs.
func withNotes(t *testing.T, chart string) string {
	t.Helper()
	made := t.TempDir()
	for to, from := range map[string]string{
		"Chart.yaml": "Chart.yaml", "values.yaml": "values.yaml", "NOTES.txt": "templates/NOTES.txt", "templates/_helpers.tpl": "templates/_helpers.tpl",
	} {
		text, err := os.ReadFile(filepath.Join(chart, from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(made, to), string(text))
	}
	write(t, filepath.Join(made, "templates", "notes.yaml"), "kind: Notes\napiVersion: v1\nmetadata: {name: notes}\ntext: {{ tpl (.Files.Get \"NOTES.txt\") . | toJson }}\n")
	return made
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCRDsAreUpgradedByACommandThatHelmDoesNotBlock: they are Helm's fields, so that a server-side apply without force is a conflict.
func TestCRDsAreUpgradedByACommandThatHelmDoesNotBlock(t *testing.T) {
	for _, file := range []string{"vignette/templates/NOTES.txt", "../docs/how-to/install.md", "../hack/install"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "kubectl apply --server-side --force-conflicts -f crds/") || strings.Contains(string(text), "--server-side -f") {
			t.Errorf("%s has another command for CRDs", file)
		}
	}
}

func TestTheNotesSayWhatIsMissing(t *testing.T) {
	all := []string{"--api-versions", "k8s.cni.cncf.io/v1", "--api-versions", "kubevirt.io/v1"}
	for name, c := range map[string]struct {
		chart     string
		arguments []string
		want, not string
	}{
		"an empty cluster":    {"vignette", nil, "MISSING: Multus", "WARNING"},
		"a complete cluster":  {"vignette", all, "vignette results -n team-a quickstart", "MISSING"},
		"no network policies": {"vignette", append([]string{"--set", "networkPolicies.create=false"}, all...), "Its metrics want a token all the same", "MISSING"},
		"nobody may run":      {"vignette-team", nil, "Nobody was given a right", ""},
		"somebody may run":    {"vignette-team", []string{"--set", "experimenters.groups={nor}"}, "has no quota", "Nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := rendered(t, withNotes(t, c.chart), c.arguments...)
			if err != nil || !strings.Contains(out, c.want) || c.not != "" && strings.Contains(out, c.not) {
				t.Errorf("%v\n%s\nwant %q and not %q", err, out, c.want, c.not)
			}
		})
	}
}
