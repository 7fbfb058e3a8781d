package render

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// ownApp is the quickstart whose user program uses all features of such a program.
func ownApp(t *testing.T, files ...v1alpha1.AppFile) Input {
	t.Helper()
	in := quickstart(t)
	app := &in.Experiment.Spec.Apps[5]
	app.MessageLog, app.Subscribes, app.Files = v1alpha1.MessageLogStdout, []string{"tracks/#"}, files
	app.Env = append(app.Env,
		v1alpha1.EnvVar{Name: "MODE", ConfigMap: &v1alpha1.KeyReference{Name: "tracker", Key: "mode"}},
		v1alpha1.EnvVar{Name: "KEY", Secret: &v1alpha1.KeyReference{Name: "keys", Key: "tracker"}})
	var errs error
	expanded, list := topology.Expand(&in.Experiment.Spec)
	if errs = list.ToAggregate(); errs != nil {
		t.Fatal(errs)
	}
	in.Topology = expanded
	return in
}

func TestAUsersAppHasItsFilesVariablesAndSubscriptions(t *testing.T) {
	in := ownApp(t,
		v1alpha1.AppFile{Path: "/etc/tracker/tracker.conf", ConfigMap: &v1alpha1.KeyReference{Name: "tracker", Key: "conf"}},
		v1alpha1.AppFile{Path: "/etc/motd", Content: ptr.To("cost: $(PRICE)\n")})
	for _, pod := range Pods(in) {
		if pod.Labels[v1alpha1.LabelNode] == "veh-1" {
			checkGolden(t, "pod-ownapp", pod)
		}
	}
	for _, node := range Plan(in, waveforms(in), uids(in)).Nodes {
		for _, app := range node.Apps {
			if app.Kind == "image" && app.Subscribes != (app.Name == "tracker") {
				t.Errorf("app %s on %s subscribes: %t; want that of tracker only", app.Name, node.Name, app.Subscribes)
			}
		}
	}
}

func TestACommandNeedsAProgram(t *testing.T) {
	in := ownApp(t)
	app := &in.Experiment.Spec.Apps[5]
	for _, c := range []struct {
		command []string
		want    string
	}{{[]string{"sh", "-c", ""}, ""}, {[]string{"", "x"}, "spec.apps[5].command[0]"}} {
		app.Command = c.command
		if errs := Check(&in.Experiment.Spec); (len(errs) > 0) != (c.want != "") || len(errs) > 0 && errs[0].Field != c.want {
			t.Errorf("command %q: %v; want an error about %q", c.command, errs, c.want)
		}
	}
}

func TestContentsStayUnchanged(t *testing.T) {
	const content = "a $(HOME) $$\n\ttab \"quoted\" ünï\n"
	in := ownApp(t, v1alpha1.AppFile{Path: "/x", Content: ptr.To(content)}, v1alpha1.AppFile{Path: "/empty", Content: ptr.To("")})
	for _, pod := range Pods(in) {
		if pod.Labels[v1alpha1.LabelNode] != "veh-1" {
			continue
		}
		if got := pod.Annotations["vignette.dev/file.tracker.0"]; got != content {
			t.Errorf("content is %q, want %q", got, content)
		}
		if got, found := pod.Annotations["vignette.dev/file.tracker.1"]; got != "" || !found {
			t.Errorf("the empty file is %q, %v; want it there", got, found)
		}
	}
}

func TestFilesAtReservedPathsAreRefused(t *testing.T) {
	file := func(path string) v1alpha1.AppFile { return v1alpha1.AppFile{Path: path, Content: ptr.To("x")} }
	for name, c := range map[string]struct {
		files []v1alpha1.AppFile
		want  string
	}{
		"anywhere":                 {[]v1alpha1.AppFile{file("/etc/a"), file("/etc/ab/c"), file("/tmp/x"), file("/x")}, ""},
		"in place of a mount":      {[]v1alpha1.AppFile{file("/tmp")}, "spec.apps[5].files[0].path"},
		"in place of the hosts":    {[]v1alpha1.AppFile{file("/a"), file("/etc/hosts")}, "spec.apps[5].files[1].path"},
		"below the hosts":          {[]v1alpha1.AppFile{file("/etc/hosts/x")}, "spec.apps[5].files[0].path"},
		"in place of their folder": {[]v1alpha1.AppFile{file("/etc")}, "spec.apps[5].files[0].path"},
		"below another file":       {[]v1alpha1.AppFile{file("/etc/a/b"), file("/etc/a")}, "is in /etc/a, which is a file itself"},
		"in the kernel's folder":   {[]v1alpha1.AppFile{file("/proc")}, "spec.apps[5].files[0].path"},
	} {
		errs := Check(&ownApp(t, c.files...).Experiment.Spec)
		if (len(errs) == 0) != (c.want == "") || len(errs) > 0 && !strings.Contains(errs.ToAggregate().Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, errs.ToAggregate(), c.want)
		}
	}
}

func TestMoreContentThanFitsAPodIsRefused(t *testing.T) {
	var files []v1alpha1.AppFile
	for i := range 16 {
		files = append(files, v1alpha1.AppFile{Path: "/" + strings.Repeat("x", i+1), Content: ptr.To(strings.Repeat("y", 16384))})
	}
	in := ownApp(t, files...)
	if errs := CheckSize(Pods(in), &in.Experiment.Spec); len(errs) != 1 || !strings.Contains(errs[0].Error(), "put them into ConfigMaps") {
		t.Errorf("got %v, want one error that says what to do", errs)
	}
	in = ownApp(t, files[:14]...)
	if errs := CheckSize(Pods(in), &in.Experiment.Spec); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

func TestEveryKeyOfAConfigMapIsListedOnce(t *testing.T) {
	in := ownApp(t,
		v1alpha1.AppFile{Path: "/a", ConfigMap: &v1alpha1.KeyReference{Name: "tracker", Key: "mode"}},
		v1alpha1.AppFile{Path: "/b", ConfigMap: &v1alpha1.KeyReference{Name: "tracker", Key: "conf"}})
	var got []string
	for _, key := range ConfigMapKeys(&in.Experiment.Spec) {
		got = append(got, key.NamePath.String()+" "+key.Key)
	}
	want := []string{"spec.apps[5].env[1].configMap.name mode", "spec.apps[5].files[1].configMap.name conf"}
	if !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}

func TestTheAppsUserCanReadItsFilesAndTheAgentCanRunAsIt(t *testing.T) {
	in := ownApp(t, v1alpha1.AppFile{Path: "/a", Content: ptr.To("x")})
	for _, pod := range Pods(in) {
		for _, volume := range pod.Spec.Volumes {
			if d := volume.DownwardAPI; d != nil && *d.DefaultMode&0o004 == 0 {
				t.Errorf("pod %s: files have mode %o: any user id must be able to read them", pod.Name, *d.DefaultMode)
			}
		}
		for _, c := range pod.Spec.Containers {
			if c.Name == "tracker" && (*c.SecurityContext.RunAsUser != 1000 || c.Command[0] != "/vignette/bin/agent") {
				t.Errorf("pod %s: user %d, command %q", pod.Name, *c.SecurityContext.RunAsUser, c.Command)
			}
		}
		if *pod.Spec.SecurityContext.FSGroup != nonRoot || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("pod %s: %+v", pod.Name, pod.Spec.SecurityContext)
		}
	}
}
