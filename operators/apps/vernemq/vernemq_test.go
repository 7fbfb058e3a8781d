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

func TestConfigurationsMatchTheirGoldenFiles(t *testing.T) {
	for name, s := range sites() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".conf", Config(s))
			golden.Check(t, name+".sh", Script(s))
			golden.Check(t, name+".erl", Started(s))
		})
	}
}

// key that VerneMQ documents.
type key struct {
	pattern *regexp.Regexp
	kind    string
}

// documentedKeys are the keys of vernemq.conf, each with a type, a meaning and its source.
func documentedKeys(t *testing.T) (keys []key) {
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

// valid reports whether a value is of a type of VerneMQ's parser (cuttlefish).
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
	case "address":
		_, err := netip.ParseAddr(strings.Replace(value, ownAddress, "198.18.0.1", 1))
		return err == nil
	case "file":
		return filepath.IsAbs(value)
	case "bytes":
		return regexp.MustCompile(`^\d+(KB|MB|GB)?$`).MatchString(value)
	case "text":
		return value != "" && !strings.ContainsAny(value, " #")
	}
	return slices.Contains(strings.Split(kind, "|"), value)
}

// It replaces a run of VerneMQ, whose image the tests cannot download.
func TestConfigurationsHaveOnlyDocumentedKeys(t *testing.T) {
	keys, used := documentedKeys(t), map[string]bool{}
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

// fakeInstallation has the rendered files in a folder instead of /vignette/run. Beside it is one with the image's parts, whose
// programs print their arguments. exec runs the script and returns its output.
type fakeInstallation struct {
	run  string
	exec func() string
}

func fakeInstallationOf(t *testing.T, s apps.Site) fakeInstallation {
	t.Helper()
	run, image, security := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(security, "username"), "user", 0o644)
	write(t, filepath.Join(security, "password"), "sec:ret:", 0o644)
	write(t, filepath.Join(run, "hosts"), "127.0.0.1 localhost\n10.0.0.7\tnor\n10.0.0.7\tdeu\n198.18.0.2\tnor\n198.18.0.1\tdeu\n", 0o644)
	write(t, filepath.Join(image, "share/schema/10-vmq.schema"), `{mapping, "accept_eula", …`, 0o444)
	write(t, filepath.Join(image, "etc/vernemq.conf"), "not to be used", 0o444)
	write(t, filepath.Join(image, "bin/vernemq"), "#!/bin/sh\necho \"$0 $*\"\n", 0o555)
	write(t, filepath.Join(image, "bin/vmq-passwd"), "#!/bin/sh\necho \"$* $(cat)\" > \"$2\"\n", 0o555)
	s.Images.VerneMQAcceptEULA = true
	moved := strings.NewReplacer("/vignette/run", run, "/vignette/security", security, "/vernemq/", image+"/", "/etc/hosts", run+"/hosts")
	for _, f := range (Kind{}).Render(s).Files {
		write(t, moved.Replace(f.Path), moved.Replace(f.Content), 0o644)
	}
	return fakeInstallation{run: run, exec: func() string {
		out, err := exec.Command("sh", filepath.Join(run, "vernemq.sh")).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}}
}

func (i fakeInstallation) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(i.run, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheScriptCreatesItsOwnDirectory(t *testing.T) {
	for name, want := range map[string]string{
		"single":        "nodename = VerneMQ@127.0.0.1",
		"cluster":       "nodename = VerneMQ@198.18.0.2",
		"cluster-first": "nodename = VerneMQ@198.18.0.1",
		"secure":        "accept_eula = yes",
	} {
		t.Run(name, func(t *testing.T) {
			i := fakeInstallationOf(t, sites()[name])
			for range 2 { // as after a crash
				started := "vernemq/bin/vernemq console -noshell -noinput -run file eval " + i.run + "/started.erl\n"
				if out := i.exec(); !strings.HasSuffix(out, started) {
					t.Fatalf("printed %q; want it to end with %q", out, started)
				}
			}
			if made := i.read(t, "vernemq/etc/vernemq.conf"); !strings.Contains(made, want+"\n") || strings.Contains(made, "OWN_") {
				t.Errorf("the configuration has no line %q:\n%s", want, made)
			}
			made := i.read(t, "started.erl")
			if joins := strings.Contains(made, "discovery-node=VerneMQ@198.18.0.1\""); joins != (name == "cluster") || strings.Contains(made, firstAddress) {
				t.Errorf("evaluates when it has started:\n%s", made)
			}
		})
	}
}

func TestAPasswordMayHaveColons(t *testing.T) {
	i := fakeInstallationOf(t, sites()["login"])
	i.exec()
	if given := i.read(t, "vmq.passwd"); given != "-c vmq.passwd user sec:ret:\nsec:ret:\n" {
		t.Errorf("vmq-passwd was given %q; want the password twice, all of it", given)
	}
}

func TestASingleBrokerListensForPeersOnlyOnLoopback(t *testing.T) {
	cookies := map[string]bool{}
	for range 2 {
		i := fakeInstallationOf(t, site())
		i.exec()
		config := i.read(t, "vernemq/etc/vernemq.conf")
		for _, want := range []string{"nodename = VerneMQ@127.0.0.1\n", "listener.vmq.clustering = 127.0.0.1:44053\n", "erlang.distribution.interface = 127.0.0.1\n"} {
			if !strings.Contains(config, want) {
				t.Errorf("the configuration has no %q:\n%s", want, config)
			}
		}
		cookie := regexp.MustCompile(`distributed_cookie = ([0-9a-f]{32})\n`).FindStringSubmatch(config)
		if cookie == nil || cookies[cookie[1]] {
			t.Fatalf("want a new cookie for each start:\n%s", config)
		}
		cookies[cookie[1]] = true
	}
}

// standIns simulate VerneMQ's application, which takes a while to start, and its modules that Started calls. The broker is a
// member of a mesh of MEMBERS. The second join succeeds.
var standIns = map[string]string{
	"vmq_server_app": `-module(vmq_server_app).
-export([start/2, stop/1]).
start(_, _) -> timer:sleep(300), os:putenv("STARTED", "yes"), {ok, self()}.
stop(_) -> ok.
`,
	"vmq_peer_service": `-module(vmq_peer_service).
-export([members/0]).
members() -> lists:seq(1, list_to_integer(os:getenv("MEMBERS")) + length([x || "2" <- [os:getenv("JOINS")]])).
`,
	"vmq_server_cli": `-module(vmq_server_cli).
-export([command/2]).
command(Command, false) ->
    "yes" = os:getenv("STARTED"),
    run(Command).
run(["vmq-admin", "cluster" | _] = Command) ->
    io:format("~s~n", [lists:join(" ", Command)]),
    case os:getenv("JOINS") of
        false -> os:putenv("JOINS", "1"), exit(noproc);
        _ -> os:putenv("JOINS", "2"), {ok, [{text, "Done"}]}
    end;
run(["vmq-admin", "listener" | _] = Command) ->
    io:format("~s~n", [lists:join(" ", Command)]),
    case os:getenv("LISTENER") of
        "refused" -> {error, [{alert, "eaddrinuse"}]};
        _ -> timer:apply_after(100, erlang, halt, [0]), {ok, [{text, "Done"}]}
    end.
`,
}

// evaluate evaluates Started by Erlang, and returns the calls of the stand-ins and Erlang's error.
func evaluate(t *testing.T, s apps.Site, environment ...string) (calls []string, output string, err error) {
	t.Helper()
	for _, program := range []string{"erl", "erlc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s, which RabbitMQ's package brings: hack/test-packages", program)
		}
	}
	dir := t.TempDir()
	compile := exec.Command("erlc")
	compile.Dir = dir
	for name, text := range standIns {
		write(t, filepath.Join(dir, name+".erl"), text, 0o644)
		compile.Args = append(compile.Args, name+".erl")
	}
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, filepath.Join(dir, "vmq_server.app"), "{application, vmq_server, [{applications, [kernel, stdlib]}, {mod, {vmq_server_app, []}}]}.\n", 0o644)
	write(t, filepath.Join(dir, "started.erl"), Started(s), 0o644)
	broker := exec.CommandContext(t.Context(), "erl", "-noshell", "-noinput", "-pa", dir, "-run", "file", "eval", filepath.Join(dir, "started.erl"),
		"-eval", "application:start(vmq_server)")
	broker.Env = append(append(os.Environ(), "HOME="+dir, "MEMBERS=1"), environment...)
	out, err := broker.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if call, ok := strings.CutPrefix(line, "vmq-admin "); ok {
			calls = append(calls, strings.TrimSpace(call))
		}
	}
	return calls, string(out), err
}

const (
	joinCommand   = "cluster join discovery-node=VerneMQ@FIRST_ADDRESS"
	listenCommand = "listener start address=0.0.0.0 port=1883 --allowed_protocol_versions=3,4,5,131"
)

func TestAMemberServesClientsOnceItHasJoined(t *testing.T) {
	calls, output, err := evaluate(t, sites()["cluster"])
	if want := []string{joinCommand, joinCommand, listenCommand}; err != nil || !slices.Equal(calls, want) {
		t.Errorf("%v: called %q; want %q\n%s", err, calls, want, output)
	}
}

func TestARestartedMemberDoesNotJoinAgain(t *testing.T) {
	calls, output, err := evaluate(t, sites()["cluster"], "MEMBERS=3")
	if want := []string{listenCommand}; err != nil || !slices.Equal(calls, want) {
		t.Errorf("%v: called %q; want %q\n%s", err, calls, want, output)
	}
}

func TestTheFirstMemberAndASingleBrokerServeClientsAtOnce(t *testing.T) {
	for _, name := range []string{"cluster-first", "single"} {
		calls, output, err := evaluate(t, sites()[name])
		if want := []string{listenCommand}; err != nil || !slices.Equal(calls, want) {
			t.Errorf("%s: %v: called %q; want %q\n%s", name, err, calls, want, output)
		}
	}
}

func TestABrokerWhosePortIsTakenEnds(t *testing.T) {
	_, output, err := evaluate(t, site(), "LISTENER=refused")
	if err == nil || !strings.Contains(output, "the listener for clients did not start") || !strings.Contains(output, "eaddrinuse") {
		t.Errorf("%v\n%s; want an end that says why", err, output)
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

func TestAnImageWithALicenceStartsOnlyIfItIsAccepted(t *testing.T) {
	run, image := t.TempDir(), t.TempDir()
	write(t, filepath.Join(image, "share/schema/10-vmq.schema"), `{mapping, "accept_eula", …`, 0o444)
	write(t, filepath.Join(image, "bin/vernemq"), "#!/bin/sh\necho started\n", 0o555)
	write(t, filepath.Join(run, "vernemq.conf"), Config(site()), 0o644)
	write(t, filepath.Join(run, "started.erl.in"), Started(site()), 0o644)
	script := strings.NewReplacer("/vignette/run", run, "/vernemq/", image+"/").Replace(Script(site()))
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "images.vernemqAcceptEULA=true") || strings.Contains(string(out), "started") {
		t.Errorf("%v\n%s; want an end that names the chart's value", err, out)
	}
}

func TestTheBrokerRunsOnceInUpstreamsImage(t *testing.T) {
	r := Kind{}.Render(site())
	if len(r.Instances) != 1 || r.Instances[0].Command[1] != r.Files[3].Path || !slices.Equal(r.MetricsPorts, []int{9464}) || r.Image != "vernemq/vernemq:2.0.1" {
		t.Errorf("rendered %+v", r)
	}
}
