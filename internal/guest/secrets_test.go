package guest

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/agentconfig"
	"vignette.dev/vignette/internal/guestconfig"
	"vignette.dev/vignette/internal/runapi"
)

// withDisks makes of folders the disks of Secrets, and notes which of them are mounted.
func (g *guest) withDisks(folders map[string]string) (mounted map[string]bool) {
	mounted = map[string]bool{}
	g.openDisk = func(label string) (string, func() error, error) {
		if folders[label] == "" {
			return "", nil, errors.New("no disk has a file system labelled " + label)
		}
		mounted[label] = true
		return folders[label], func() error { delete(mounted, label); return nil }, nil
	}
	return mounted
}

// secretFolder has the keys of a Secret, and beside them what the kubelet makes in a volume, as KubeVirt's disks have it.
func secretFolder(t *testing.T, keys map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "..data"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{".", "..data"} {
		for key, value := range keys {
			if err := os.WriteFile(filepath.Join(dir, folder, key), []byte(value), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestAnAppIsGivenWhatSecretsHoldForItAndNoMore(t *testing.T) {
	folders := map[string]string{
		"vgsecret0": secretFolder(t, map[string]string{"ca.crt": "certificate\n", "tls.key": "the broker's"}),
		"vgsecret1": secretFolder(t, map[string]string{"token": "t0ken\n", "empty": "", "other": "another app's", "binary": "\xff\xfe", "nul": "a\x00b", "long": strings.Repeat("x", 1<<17)}),
	}
	variable := func(key string) map[string]guestconfig.SecretKey {
		return map[string]guestconfig.SecretKey{"KEY": {Disk: "vgsecret1", Secret: "keys", Key: key}}
	}
	for name, c := range map[string]struct {
		app  guestconfig.App
		want string
		fail string
	}{
		"nothing":           {guestconfig.App{Env: map[string]string{"WHO": "vera"}}, "WHO=vera", ""},
		"a variable":        {guestconfig.App{Env: map[string]string{"WHO": "vera"}, SecretEnv: variable("token")}, "KEY=t0ken\n|WHO=vera", ""},
		"an empty variable": {guestconfig.App{SecretEnv: variable("empty")}, "KEY=", ""},
		"a file": {guestconfig.App{SecretFiles: []guestconfig.SecretFile{{Path: "/vignette/security/ca.crt", SecretKey: guestconfig.SecretKey{Disk: "vgsecret0", Key: "ca.crt"}}}},
			"/vignette/security/ca.crt:certificate\n", ""},
		"no such key":               {guestconfig.App{SecretEnv: variable("tokem")}, "", "takes variable KEY from key tokem of Secret keys, which has no such key: create it, then create the experiment again"},
		"the kubelet's own folder":  {guestconfig.App{SecretEnv: variable("..data")}, "", "key ..data of Secret keys, which has no such key"},
		"the folder itself":         {guestconfig.App{SecretEnv: variable(".")}, "", "key . of Secret keys, which has no such key"},
		"no text":                   {guestconfig.App{SecretEnv: variable("binary")}, "", "variable KEY from key binary of Secret keys has 2 bytes that no variable can have"},
		"text with a NUL":           {guestconfig.App{SecretEnv: variable("nul")}, "", "variable KEY from key nul of Secret keys has 3 bytes"},
		"more than a variable can":  {guestconfig.App{SecretEnv: variable("long")}, "", "below 128 KiB"},
		"a disk that is not there":  {guestconfig.App{SecretEnv: map[string]guestconfig.SecretKey{"KEY": {Disk: "vgsecret2", Secret: "gone", Key: "k"}}}, "", "no disk has a file system labelled vgsecret2"},
		"a file that is not on one": {guestconfig.App{SecretFiles: []guestconfig.SecretFile{{Path: "/p", SecretKey: guestconfig.SecretKey{Disk: "vgsecret0", Key: "username"}}}}, "", "file /p from key username of a Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &guest{log: quiet()}
			mounted := g.withDisks(folders)
			before := maps.Clone(c.app.Env)
			app, err := g.withSecrets(c.app)
			if len(mounted) > 0 || !maps.Equal(before, c.app.Env) {
				t.Errorf("%v stay mounted; the configuration has %v", mounted, c.app.Env)
			}
			if c.fail != "" || err != nil {
				if err == nil || c.fail == "" || !strings.Contains(err.Error(), c.fail) || strings.Contains(err.Error(), "a\x00b") {
					t.Errorf("%v; want %q, and nothing of a value", err, c.fail)
				}
				return
			}
			var got []string
			for name, value := range app.Env {
				got = append(got, name+"="+value)
			}
			slices.Sort(got)
			for _, f := range app.Files {
				if got = append(got, f.Path+":"+string(f.Content)); !f.Secret {
					t.Errorf("everybody may read %s", f.Path)
				}
			}
			if joined := strings.Join(got, "|"); joined != c.want {
				t.Errorf("the app has %q; want %q", joined, c.want)
			}
		})
	}
}

func TestAKeyThatIsMissingIsReportedAsForAPod(t *testing.T) {
	g := &guest{log: quiet()}
	g.withDisks(map[string]string{"vgsecret0": secretFolder(t, nil)})
	_, _, err := g.start(guestconfig.App{SecretEnv: map[string]guestconfig.SecretKey{"KEY": {Disk: "vgsecret0", Secret: "keys", Key: "token"}}})
	report := notStarted("bft", "veh-1", err)
	if want := "node veh-1: app bft takes variable KEY from key token of Secret keys, which has no such key: create it, then create the experiment again"; report.Message != want ||
		report.Reason != runapi.ReasonKeyNotFound || report.Phase != runapi.AgentFailed {
		t.Errorf("%+v; want %q", report, want)
	}
	if report := notStarted("bft", "veh-1", errors.New("no fork")); report.Reason != "" || !strings.Contains(report.Message, "could not be started in the virtual machine: no fork") {
		t.Errorf("%+v; want no reason", report)
	}
}

// TestAnAppSeesItsSecretsAndNotAnothers with a script in the agent's place, for two apps of one user at the same time.
func TestAnAppSeesItsSecretsAndNotAnothers(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	const script = `#!/bin/sh
say() { echo "agent: $*" >&2; }
say $APP has $KEY and $(cat /vignette/security/password 2>/dev/null), $(stat -c '%a %u:%g' /vignette/security/password 2>/dev/null)
for environment in /proc/[0-9]*/environ; do tr '\0' '\n' < $environment; done 2>/dev/null | grep -o 's3cret.*' | sort -u | sed 's/^/agent: processes have /' >&2
[ $APP = other ] || exec sleep 1000
`
	for name, content := range map[string]string{"config/token": "token", "tools/agent": script, "run/clock/clock.json": "{}", "secrets/0/own": "s3cret-of-own", "secrets/0/password": "pass"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	g := &guest{log: quiet(), configDir: filepath.Join(dir, "config"), toolsDir: filepath.Join(dir, "tools"), runDir: filepath.Join(dir, "run"), stateDir: filepath.Join(dir, "state"),
		config: guestconfig.Config{Node: "veh-1", RunUID: "run-1"}}
	g.withDisks(map[string]string{"vgsecret0": filepath.Join(dir, "secrets", "0")})
	own := guestconfig.App{Agent: agentconfig.Config{App: "own", Node: "veh-1"}, Env: map[string]string{"APP": "own"},
		SecretEnv:   map[string]guestconfig.SecretKey{"KEY": {Disk: "vgsecret0", Secret: "keys", Key: "own"}},
		SecretFiles: []guestconfig.SecretFile{{Path: "/vignette/security/password", SecretKey: guestconfig.SecretKey{Disk: "vgsecret0", Key: "password"}}}}
	other := guestconfig.App{Agent: agentconfig.Config{App: "other", Node: "veh-1"}, Env: map[string]string{"APP": "other"}}
	running, output, err := g.start(own)
	if err != nil {
		t.Fatal(err)
	}
	const want = "agent: own has s3cret-of-own and pass, 440 0:65532\nagent: processes have s3cret-of-own\n"
	said := make([]byte, len(want))
	if n, err := io.ReadFull(output, said); err != nil || string(said) != want {
		t.Errorf("own saw\n%s, %v; want\n%s", said[:n], err, want)
	}
	command, output, err := g.start(other)
	if err != nil {
		t.Fatal(err)
	}
	said, _ = io.ReadAll(output)
	if want := "agent: other has and ,\n"; string(said) != want {
		t.Errorf("other saw\n%s; want nothing of own's\n%s", said, want)
	}
	if err := errors.Join(command.Wait(), running.Process.Kill()); err != nil {
		t.Error(err)
	}
	_ = running.Wait()
	err = filepath.WalkDir(filepath.Join(dir, "state"), func(path string, _ os.DirEntry, err error) error {
		if text, _ := os.ReadFile(path); strings.Contains(string(text), "s3cret") {
			t.Errorf("%s on the machine's disk has the value", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
