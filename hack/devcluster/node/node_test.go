package node

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/hack/devcluster/network"
)

func TestEveryConfigurationIsFilledIn(t *testing.T) {
	values := Config{Cluster: "x", Number: 2, Plan: network.Plan{Index: 1}, Cgroup: "/vignette-x-1", ReservedMemoryBytes: 7}.settings()
	for name, wanted := range map[string][]string{
		"containerd.toml": {`sandbox_image = "localhost/devcluster/pause:1"`, `bin_dir = "/opt/cni/bin"`},
		"kubelet.yaml":    {`cgroupRoot: "/vignette-x-1/n2"`, "maxPods: 300", `clusterDNS: ["10.134.0.10"]`, `memory: "7"`},
		"kube-proxy.yaml": {`clusterCIDR: "10.133.0.0/16"`},
		"00-multus.conf":  {`"namespaceIsolation": true`, `"subnet": "10.133.8.0/22"`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := renderConfig(name, values)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range wanted {
				if !strings.Contains(string(text), want) {
					t.Errorf("%q is missing in\n%s", want, text)
				}
			}
			if strings.HasSuffix(name, ".conf") && !json.Valid(text) {
				t.Errorf("not JSON:\n%s", text)
			}
		})
	}
	if len(configTargets) != 4 {
		t.Errorf("%d templates, 4 are tested", len(configTargets))
	}
}

func TestTheAPIServerReadsItsIssuersFromAFile(t *testing.T) {
	arguments := Config{}.apiServer()
	if !slices.Contains(arguments, "--authentication-config=/run/devcluster/pki/authentication.yaml") {
		t.Errorf("%q", arguments)
	}
	for _, argument := range arguments {
		if strings.HasPrefix(argument, "--oidc-") || strings.HasPrefix(argument, "--anonymous-auth") {
			t.Errorf("%s does not go with a file that can change", argument)
		}
	}
}

func TestRadiodsProcessesGoWhereTheyBelong(t *testing.T) {
	c := Config{Cgroup: "/vignette-x-1", Number: 2}
	for commandLine, want := range map[string]string{
		"/radiod hold /radiod --nice=-10": "/vignette-x-1/n2-radio",
		"/radiod plane":                   "/vignette-x-1/n2-radio",
		"/radiod worker --nice=-10":       "/vignette-x-1/n2-worker",
		"/radiod --nice=-10":              "",
		"/usr/bin/mosquitto worker":       "",
		"/radiod":                         "",
		"":                                "",
	} {
		if got, ok := c.groupOf(strings.Split(commandLine, " ")); got != want || ok != (want != "") {
			t.Errorf("%q goes to %q, %v; want %q", commandLine, got, ok, want)
		}
	}
}

func TestANodeWhoseStarterDiedDoesNotStart(t *testing.T) {
	for name, sent := range map[string]string{"at once": "", "half way": `{"Cluster":"x","Num`} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.WriteString(sent); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if _, err := receiveConfig(r); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestALogThatHasGrownKeepsOneOldCopy(t *testing.T) {
	path := t.TempDir() + "/a.log"
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := copyAndTruncate(path); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{path: "", path + ".1": "old"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s holds %q, want %q (error %v)", file, got, want, err)
		}
	}
}
