package vernemq

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func site() apps.Site {
	return apps.Site{
		App: v1alpha1.App{Name: "broker", VerneMQ: &v1alpha1.VerneMQ{}}, Node: "nor", Instances: []string{"nor/broker"}, Seed: 7, MetricsPorts: []int{9464},
		Images: apps.Images{VerneMQ: "vernemq/vernemq:2.0.1"},
	}
}

func sites() map[string]apps.Site {
	secure, tls, login, cluster, first := site(), site(), site(), site(), site()
	secure.App.Security = &v1alpha1.Security{TLS: true, Password: true}
	tls.App.Security = &v1alpha1.Security{TLS: true}
	login.App.Security = &v1alpha1.Security{Password: true}
	cluster.App.VerneMQ.Cluster, cluster.ClusterPeers = true, []string{"usa", "deu"}
	first.App.VerneMQ.Cluster, first.Node, first.ClusterPeers = true, "deu", []string{"nor", "usa"}
	first.MetricsPorts = []int{0}
	return map[string]apps.Site{"single": site(), "secure": secure, "tls": tls, "login": login, "cluster": cluster, "cluster-first": first}
}

func TestConfigurationsAreAsTheirGoldenFiles(t *testing.T) {
	for name, s := range sites() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".conf", Config(s))
			golden.Check(t, name+".sh", Script(s))
		})
	}
}

// key that VerneMQ documents.
type key struct {
	pattern *regexp.Regexp
	kind    string
}

// documented keys of vernemq.conf, each with a type, a meaning and its source.
func documented(t *testing.T) (keys []key) {
	t.Helper()
	text, err := os.ReadFile("testdata/keys.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 5 {
			t.Fatalf("%q: want key, type, default, meaning and source", line)
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(fields[0]), `\$name`, `[a-z]+`)
		keys = append(keys, key{pattern: regexp.MustCompile("^" + pattern + "$"), kind: fields[1]})
	}
	return keys
}

// valid tells whether a value is of a type, as VerneMQ's parser (cuttlefish) has them.
func valid(kind, value string) bool {
	switch kind {
	case "flag":
		return value == "on" || value == "off"
	case "integer":
		_, err := strconv.Atoi(value)
		return err == nil
	case "ip":
		_, err := netip.ParseAddrPort(strings.Replace(value, ownAddress, "198.18.0.1", 1))
		return err == nil
	case "file":
		return filepath.IsAbs(value)
	case "text":
		return value != "" && !strings.ContainsAny(value, " #")
	}
	return slices.Contains(strings.Split(kind, "|"), value)
}

// TestConfigurationsHaveDocumentedKeysOnly stands for a run of VerneMQ, whose image cannot be had where the tests run.
func TestConfigurationsHaveDocumentedKeysOnly(t *testing.T) {
	keys, used := documented(t), map[string]bool{}
	for name, s := range sites() {
		seen := map[string]bool{}
		for line := range strings.Lines(Config(s)) {
			setting, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
			i := slices.IndexFunc(keys, func(k key) bool { return k.pattern.MatchString(setting) })
			switch {
			case !ok || i < 0:
				t.Errorf("%s: %q is no setting that VerneMQ documents", name, line)
				continue
			case !valid(keys[i].kind, value):
				t.Errorf("%s: %s is %q; want %s", name, setting, value, keys[i].kind)
			case seen[setting]:
				t.Errorf("%s: %s is set twice", name, setting)
			}
			seen[setting], used[keys[i].pattern.String()] = true, true
		}
	}
	for _, k := range keys {
		if !used[k.pattern.String()] {
			t.Errorf("%s is in the table and in no configuration", k.pattern)
		}
	}
}

// TestTheScriptMakesADirectoryOfItsOwn runs the script against a directory with the image's parts, whose programs say how they are called.
func TestTheScriptMakesADirectoryOfItsOwn(t *testing.T) {
	for name, want := range map[string]string{
		"single":        "nodename = VerneMQ@127.0.0.1",
		"cluster":       "nodename = VerneMQ@198.18.0.2",
		"cluster-first": "nodename = VerneMQ@198.18.0.1",
		"secure":        "accept_eula = yes",
	} {
		t.Run(name, func(t *testing.T) {
			run, image, security := t.TempDir(), t.TempDir(), t.TempDir()
			write(t, filepath.Join(security, "username"), "user", 0o644)
			write(t, filepath.Join(security, "password"), "secret", 0o644)
			write(t, filepath.Join(run, "hosts"), "127.0.0.1 localhost\n10.0.0.7\tnor\n10.0.0.7\tdeu\n198.18.0.2\tnor\n198.18.0.1\tdeu\n", 0o644)
			write(t, filepath.Join(image, "share/schema/10-vmq.schema"), `{mapping, "accept_eula", …`, 0o444)
			write(t, filepath.Join(image, "etc/vernemq.conf"), "not to be used", 0o444)
			write(t, filepath.Join(image, "bin/vernemq"), "#!/bin/sh\nwait\necho \"$0 $*\"\n", 0o555)
			write(t, filepath.Join(image, "bin/vmq-passwd"), "#!/bin/sh\necho \"$*: $(cat $2)\"\n", 0o555)
			write(t, filepath.Join(image, "bin/vmq-admin"), "#!/bin/sh\necho \"$*\" >> "+run+"/admin\necho Done\n", 0o555)
			s := sites()[name]
			moved := strings.NewReplacer("/vignette/run", run, "/vignette/security", security, "/vernemq/", image+"/", "/etc/hosts", run+"/hosts")
			write(t, filepath.Join(run, "vernemq.conf"), moved.Replace(Config(s)), 0o644)
			for range 2 { // as after a crash
				s.Images.VerneMQAcceptEULA = true
				out, err := exec.Command("sh", "-c", moved.Replace(Script(s))).CombinedOutput()
				if err != nil || !strings.HasSuffix(string(out), "vernemq/bin/vernemq console -noshell -noinput\n") {
					t.Fatalf("%v\n%s", err, out)
				}
				if name == "secure" && !strings.Contains(string(out), "-U vmq.passwd: user:secret") {
					t.Errorf("the password was not hashed:\n%s", out)
				}
			}
			made, err := os.ReadFile(filepath.Join(run, "vernemq/etc/vernemq.conf"))
			if err != nil || !strings.Contains(string(made), want+"\n") || strings.Contains(string(made), ownAddress) {
				t.Errorf("%v: the configuration has no line %q:\n%s", err, want, made)
			}
			said, _ := os.ReadFile(filepath.Join(run, "admin"))
			if joins := strings.Contains(string(said), "cluster join discovery-node=VerneMQ@198.18.0.1"); joins != (name == "cluster") {
				t.Errorf("vmq-admin was told %q", said)
			}
		})
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestAnImageThatAsksForItsLicenceStartsOnlyWhereItIsAccepted(t *testing.T) {
	run, image := t.TempDir(), t.TempDir()
	write(t, filepath.Join(image, "share/schema/10-vmq.schema"), `{mapping, "accept_eula", …`, 0o444)
	write(t, filepath.Join(image, "bin/vernemq"), "#!/bin/sh\necho started\n", 0o555)
	write(t, filepath.Join(run, "vernemq.conf"), Config(site()), 0o644)
	script := strings.NewReplacer("/vignette/run", run, "/vernemq/", image+"/").Replace(Script(site()))
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "images.vernemqAcceptEULA=true") || strings.Contains(string(out), "started") {
		t.Errorf("%v\n%s; want an end that names the chart's value", err, out)
	}
}

func TestTheBrokerRunsOnceInUpstreamsImage(t *testing.T) {
	r := Kind{}.Render(site())
	if len(r.Instances) != 1 || r.Instances[0].Command[1] != r.Files[2].Path || !slices.Equal(r.MetricsPorts, []int{9464}) || r.Image != "vernemq/vernemq:2.0.1" {
		t.Errorf("rendered %+v", r)
	}
}
