package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/timeline"
	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const oldRecord = "../runapi/testdata/run-v1.json"

// recordedPlan is that of the fixture of version 1.
func recordedPlan(t *testing.T) runapi.Plan {
	t.Helper()
	text, err := os.ReadFile(oldRecord)
	if err != nil {
		t.Fatal(err)
	}
	record, err := runapi.ReadRunRecord(oldRecord, text)
	if err != nil {
		t.Fatal(err)
	}
	return record.Plan
}

// withRecord writes a plan as the run record of a downloaded run.
func withRecord(t *testing.T, change func(*runapi.Plan)) string {
	t.Helper()
	plan := recordedPlan(t)
	change(&plan)
	text, err := json.Marshal(runapi.RunRecord{SchemaVersion: runapi.SchemaVersion, Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "run.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

const platformNamespace = "vignette-system"

// rerunOf a record as the command does it; notes are what people are told.
func rerunOf(t *testing.T, c *cluster, record string, o rerunOptions) (notes, out string, err error) {
	t.Helper()
	if o.images == "" {
		o.images = imagesByDigest
	}
	var told, written bytes.Buffer
	err = c.rerun(t.Context(), record, platformNamespace, o, &written, &told)
	return told.String(), written.String(), err
}

func created(t *testing.T, c *cluster, name string) *v1alpha1.Experiment {
	t.Helper()
	e := &v1alpha1.Experiment{}
	if err := c.kube.Get(t.Context(), client.ObjectKey{Namespace: "team-nor", Name: name}, e); err != nil {
		t.Fatal(err)
	}
	return e
}

// hostNow is the record's host with a newer kernel.
func hostNow() *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KernelVersion: "6.1.0-30-amd64", KubeletVersion: "v1.34.1", ContainerRuntimeVersion: "containerd://1.6.20"}
	return node
}

func TestARerunKeepsTheNamesOfWaveformsThatNoExperimentMayHaveInPlace(t *testing.T) {
	a := newRealArchive(t)
	plan := recordedPlan(t)
	plan.Waveforms["baseline"] = v1alpha1.WaveformSpec{EMANE: &v1alpha1.EMANESettings{Model: v1alpha1.EMANEBypass}}
	a.run(plan, 1<<10)
	c := a.cluster(hostNow())
	notes, _, err := rerunOf(t, c, "pair", rerunOptions{})
	if err != nil || !strings.Contains(notes, "network wan takes waveform baseline as the cluster has it") {
		t.Fatalf("%v\n%s", err, notes)
	}
	if name := created(t, c, "pair-rerun-1").Spec.Networks[0].Waveform; name != "baseline" {
		t.Errorf("waveform %q, want baseline", name)
	}
}

func TestARerunHasTheRecordedSpecWithWaveformsInPlace(t *testing.T) {
	a := newRealArchive(t)
	plan := recordedPlan(t)
	a.run(plan, 1<<10)
	c := a.cluster(hostNow())
	notes, out, err := rerunOf(t, c, "pair", rerunOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, notes)
	}
	golden.Check(t, "rerun.txt", notes)
	if !strings.HasPrefix(out, "experiment team-nor/pair-rerun-1 created\n") {
		t.Errorf("output %q", out)
	}
	e := created(t, c, "pair-rerun-1")
	want := plan.Spec.DeepCopy()
	want.Networks[0].Waveform, want.Networks[0].Link = "", plan.Waveforms["baseline"].Link
	if diff := cmp.Diff(*want, e.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	var about runapi.Rerun
	if err := json.Unmarshal([]byte(e.Annotations[v1alpha1.AnnotationRerun]), &about); err != nil {
		t.Fatal(err)
	}
	wantAbout := runapi.Rerun{Namespace: "team-nor", Name: "pair", UID: recordedUID,
		Differences: []runapi.Difference{{What: "host n1: kernel", Before: "6.1.0-18-amd64", Now: "6.1.0-30-amd64"}}}
	about.Spec = nil
	if diff := cmp.Diff(wantAbout, about); diff != "" || e.Labels[v1alpha1.LabelRerunOf] != recordedUID {
		t.Errorf("label %s, annotation (-want +got):\n%s", e.Labels[v1alpha1.LabelRerunOf], diff)
	}
}

func TestARerunIsNamedAfterItsRecordAndTheNextFreeNumber(t *testing.T) {
	a := newRealArchive(t)
	earlier := recordedPlan(t)
	earlier.Name, earlier.UID = "pair-rerun-1", "earlier"
	a.run(earlier, 16)
	second := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "pair-rerun-2"}}
	c := a.cluster(second)
	for record, want := range map[string]string{
		"pair": "pair-rerun-3", "pair-rerun-1": "pair-rerun-3", "pair-rerun": "pair-rerun-rerun-1",
		strings.Repeat("a", 40): strings.Repeat("a", 32) + "-rerun-1",
	} {
		folder := withRecord(t, func(p *runapi.Plan) { p.Name = record })
		_, out, err := rerunOf(t, c, folder, rerunOptions{dryRun: true})
		if err != nil || !strings.Contains(out, "\n  name: "+want+"\n") {
			t.Errorf("rerun of %s: %v\n%s\nwant %s", record, err, out, want)
		}
	}
	if _, out, err := rerunOf(t, c, withRecord(t, func(*runapi.Plan) {}), rerunOptions{dryRun: true, name: "again"}); err != nil || !strings.Contains(out, "\n  name: again\n") {
		t.Errorf("with a name of its own: %v\n%s", err, out)
	}
}

var packedSpec = regexp.MustCompile(`"spec":"[^"]*"`)

func TestADryRunPrintsWhatRunTakesAndCreatesNothing(t *testing.T) {
	a := newRealArchive(t)
	c := a.cluster()
	_, out, err := rerunOf(t, c, oldRecord, rerunOptions{dryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "rerun.yaml", packedSpec.ReplaceAllString(out, `"spec":"PACKED"`))
	var list v1alpha1.ExperimentList
	if err := c.kube.List(t.Context(), &list); err != nil || len(list.Items) > 0 {
		t.Errorf("%d experiments, %v; want none", len(list.Items), err)
	}
	objects, err := validateFile("again.yaml", []byte(out), os.Stderr, hasNone)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.submit(t.Context(), objects, io.Discard); err != nil {
		t.Errorf("run of what was printed: %v", err)
	}
}

func TestAChangedSpecIsBasedOnTheRun(t *testing.T) {
	c := newRealArchive(t).cluster()
	settings := []string{"networks[wan].link.rate=19.2kbit", "seed=0", "apps[bft].publisher.period=3s", "drain.max=null"}
	notes, out, err := rerunOf(t, c, oldRecord, rerunOptions{dryRun: true, set: settings})
	if err != nil {
		t.Fatalf("%v\n%s", err, notes)
	}
	golden.Check(t, "rerun-changed.txt", notes)
	if _, _, err := rerunOf(t, c, oldRecord, rerunOptions{set: settings}); err != nil {
		t.Fatal(err)
	}
	e := created(t, c, "pair-rerun-1")
	if text := description(e, nil, time.Now()); !regexp.MustCompile(`Based on +` + recordedUID + `, with apps\[bft\].publisher.period 3s instead of 500ms, `).MatchString(text) {
		t.Errorf("its status:\n%s\nwant what it is based on and the changes", text)
	}
	if e.Labels[v1alpha1.LabelBasedOn] != recordedUID || e.Labels[v1alpha1.LabelRerunOf] != "" || e.Spec.Networks[0].Link.Rate == nil || *e.Spec.Networks[0].Link.Rate != "19.2kbit" {
		t.Errorf("labels %v, spec %+v; want a change that is based on %s\n%s", e.Labels, e.Spec.Networks[0].Link, recordedUID, out)
	}
}

func TestASettingThatChangesNothingStaysARerun(t *testing.T) {
	notes, out, err := rerunOf(t, newRealArchive(t).cluster(), oldRecord, rerunOptions{dryRun: true, set: []string{"duration=12s"}})
	if err != nil || !strings.Contains(notes, "--set changes nothing") || !strings.Contains(out, v1alpha1.LabelRerunOf+": "+recordedUID) {
		t.Errorf("%v\n%s\n%s", err, notes, out)
	}
}

func TestASettingThatCannotBeIsRefusedWithWhatWouldBe(t *testing.T) {
	for setting, want := range map[string]string{
		"duration":                     `--set "duration": want PATH=VALUE`,
		"networks[wan]..rate=1":        `path "networks[wan]..rate"`,
		"networks[wan].link.ratte=1":   "networks[wan].link.ratte: there is no such field: did you mean rate?",
		"networks[lan].link.rate=1bit": "networks[lan]: there is no such element",
		"seed=x":                       `seed: "x" is invalid: must be a whole number`,
		"stop=true":                    "a rerun that is stopped before it starts measures nothing",
		"networks[wan].link.rate=fast": "exit code 1",
		"apps[bft]=null":               "exit code 1",
	} {
		c := newRealArchive(t).cluster()
		notes, out, err := rerunOf(t, c, oldRecord, rerunOptions{set: []string{setting}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%s%s\nwant %s", setting, err, notes, out, want)
		}
		if err != nil && strings.Contains(setting, "fast") && (!strings.Contains(notes, "networks[0].link.rate: \"fast\" must be a rate") || !strings.Contains(notes, "--set networks[wan].link.rate=fast")) {
			t.Errorf("%s: notes %q; want the path and the value", setting, notes)
		}
		var list v1alpha1.ExperimentList
		if err := c.kube.List(t.Context(), &list); err != nil || len(list.Items) > 0 {
			t.Errorf("%s: %d experiments, %v; want none", setting, len(list.Items), err)
		}
	}
}

func TestASeedOfZeroStaysOne(t *testing.T) {
	record := withRecord(t, func(p *runapi.Plan) { p.Spec.Seed = 0 })
	if _, out, err := rerunOf(t, newRealArchive(t).cluster(), record, rerunOptions{dryRun: true}); err != nil || !strings.Contains(out, "  seed: 0\n") {
		t.Errorf("%v\n%s\nwant seed 0, as the API server would make 1 of a seed that is left out", err, out)
	}
}

func TestAppsOwnImagesArePinnedWhereTheRecordCan(t *testing.T) {
	image := func(node, app, id string) runapi.Image {
		return runapi.Image{Node: node, Container: app, Image: "x", ID: id}
	}
	digest := "sha256:" + strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		image  string
		images []runapi.Image
		form   string
		want   string
		note   string
	}{
		"from a registry":             {"r.example:5000/own:1.2", []runapi.Image{image("veh", "own", "mirror/own@"+digest)}, imagesByDigest, "r.example:5000/own@" + digest, ""},
		"without a tag":               {"r.example:5000/own", []runapi.Image{image("veh", "own", "mirror/own@"+digest)}, imagesByDigest, "r.example:5000/own@" + digest, ""},
		"by its tag":                  {"r/own:1.2", []runapi.Image{image("veh", "own", "r/own@"+digest)}, imagesByTag, "r/own:1.2", ""},
		"pinned already":              {"r/own@" + digest, nil, imagesByDigest, "r/own@" + digest, ""},
		"loaded into the host":        {"r/own:1.2", []runapi.Image{image("veh", "own", digest)}, imagesByDigest, "r/own:1.2", "the record has no digest of it"},
		"loaded into one of two":      {"r/own:1.2", []runapi.Image{image("hq", "own", digest), image("veh", "own", "r/own@"+digest)}, imagesByDigest, "r/own:1.2", "the record has no digest of it"},
		"a tag that moved meanwhile":  {"r/own:1.2", []runapi.Image{image("hq", "own", "r/own@sha256:aa"), image("veh", "own", "r/own@sha256:bb")}, imagesByDigest, "r/own:1.2", "2 different ones ran under that name, sha256:aa, sha256:bb"},
		"another app's":               {"r/own:1.2", []runapi.Image{image("veh", "bft", "r/bft@"+digest)}, imagesByDigest, "r/own:1.2", "the record has no digest of it"},
		"a part of the platform's":    {"r/own:1.2", []runapi.Image{image("", "own", "r/own@"+digest)}, imagesByDigest, "r/own:1.2", "the record has no digest of it"},
		"a record without any at all": {"r/own:1.2", nil, imagesByDigest, "r/own:1.2", "the record has no digest of it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rerun{options: rerunOptions{images: c.form}}
			r.record.Environment = &runapi.Environment{Images: c.images}
			apps := []v1alpha1.App{{Name: "own", Image: c.image}, {Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}}}
			if c.form == imagesByDigest {
				r.pinImages(apps)
			}
			if apps[0].Image != c.want || apps[1].Image != "" || (c.note == "") != (len(r.notes) == 0) || !strings.Contains(strings.Join(r.notes, "; "), c.note) {
				t.Errorf("image %s, notes %q; want %s and a note with %q", apps[0].Image, r.notes, c.want, c.note)
			}
		})
	}
}

func digestOf(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

// hills is a Scenario that was compiled to some content.
func hills(content string) *v1alpha1.Scenario {
	s := &v1alpha1.Scenario{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "hills", Generation: 1}}
	s.Status.Digest = digestOf(content)
	s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	return s
}

func TestTheScenarioIsTheRecordedOne(t *testing.T) {
	for name, c := range map[string]struct {
		now   *v1alpha1.Scenario
		kept  bool
		allow []string
		ref   string
		want  string
	}{
		"unchanged":               {hills("as it was"), false, nil, "hills", "No difference from the record was found"},
		"changed, and kept":       {hills("changed"), true, nil, "recorded", "made of the recorded one, which the archive keeps"},
		"deleted, and kept":       {nil, true, nil, "recorded", "is not in namespace team-nor; the rerun has Scenario"},
		"changed, and not kept":   {hills("changed"), false, nil, "", "to run with it as it is: --allow-different scenario"},
		"changed, and allowed":    {hills("changed"), false, []string{inputScenario}, "hills", "scenario hills   " + digestOf("as it was")},
		"deleted, and not kept":   {nil, false, []string{inputScenario}, "", "make it, as it was then"},
		"changed, allowed, kept":  {hills("changed"), true, []string{inputScenario}, "recorded", "made of the recorded one"},
		"not compiled, and kept":  {&v1alpha1.Scenario{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "hills"}}, true, nil, "recorded", "is not compiled"},
		"of an earlier spec only": {func() *v1alpha1.Scenario { s := hills("as it was"); s.Generation = 2; return s }(), false, nil, "", "not compiled"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newRealArchive(t)
			if c.kept {
				a.must(a.as("operator").PutScenario(t.Context(), digestOf("as it was"), strings.NewReader("as it was")))
			}
			record := withRecord(t, func(p *runapi.Plan) {
				p.Spec.Scenario = &v1alpha1.ScenarioReference{Ref: "hills"}
				p.Scenario = &runapi.PlannedScenario{Name: "hills", Digest: digestOf("as it was")}
				p.Environment = &runapi.Environment{}
			})
			var objects []client.Object
			if c.now != nil {
				objects = append(objects, c.now)
			}
			k := a.cluster(objects...)
			notes, out, err := rerunOf(t, k, record, rerunOptions{allow: c.allow, dryRun: true})
			if c.ref == "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v; want %s", err, c.want)
				}
				return
			}
			ref := c.ref
			if ref == "recorded" {
				ref = "hills-" + digestOf("as it was")[7:19]
				if want := "compiled: " + digestOf("as it was"); !strings.Contains(out, want) || !strings.Contains(out, "kind: Scenario") {
					t.Errorf("no Scenario of it in\n%s", out)
				}
			}
			if err != nil || !strings.Contains(notes, c.want) || !strings.Contains(out, "    ref: "+ref+"\n") {
				t.Errorf("%v\n%s\n%s\nwant ref %s and %s", err, notes, out, ref, c.want)
			}
		})
	}
}

func TestConfigMapsMustHaveTheRecordedContents(t *testing.T) {
	of := func(text string) string { sum := sha256.Sum256([]byte(text)); return hex.EncodeToString(sum[:]) }
	record := withRecord(t, func(p *runapi.Plan) {
		p.ConfigMaps = []runapi.PlannedConfigMap{{Name: "plans", Key: "a.conf", SHA256: of("alpha")}, {Name: "plans", Key: "b.bin", SHA256: of("\xff")}}
	})
	plans := func(alpha string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-nor", Name: "plans"}, Data: map[string]string{"a.conf": alpha}, BinaryData: map[string][]byte{"b.bin": {0xff}}}
	}
	other := plans("alpha")
	other.Namespace = "team-prt"
	for name, c := range map[string]struct {
		now   *corev1.ConfigMap
		allow []string
		want  string
		fails bool
	}{
		"unchanged":            {plans("alpha"), nil, "", false},
		"changed":              {plans("beta"), nil, "key a.conf of ConfigMap plans (SHA-256 " + of("beta") + ", and was " + of("alpha") + ")", true},
		"changed, and allowed": {plans("beta"), []string{inputConfigMaps}, "key a.conf of ConfigMap plans   sha256:" + of("alpha"), false},
		"elsewhere":            {other, []string{inputConfigMaps}, "key a.conf of ConfigMap plans is not in namespace team-nor: make it", true},
	} {
		t.Run(name, func(t *testing.T) {
			notes, _, err := rerunOf(t, newRealArchive(t).cluster(c.now), record, rerunOptions{allow: c.allow, dryRun: true})
			if (err != nil) != c.fails || !strings.Contains(notes+fmt.Sprint(err), c.want) {
				t.Errorf("%v\n%s\nwant %s", err, notes, c.want)
			}
		})
	}
}

func TestWhatARerunDoesNotRepeatIsSaid(t *testing.T) {
	record := withRecord(t, func(p *runapi.Plan) {
		p.Spec.Stop = true
		p.Armed = append(p.Armed, runapi.Action{ID: timeline.EarlyStopID, AtNanoseconds: 20e9, Verb: runapi.VerbStop})
		p.LiveChanges = []runapi.PlannedLiveChange{{AtNanoseconds: 1e15, Changes: []v1alpha1.RadioChange{{Network: "wan"}}}}
		p.Captures = []runapi.PlannedCapture{{Name: "run", Network: "wan"}, {Name: "mine", Network: "wan"}, {Name: "mine", Network: "lan"}}
		key := &v1alpha1.KeyReference{Name: "logins", Key: "password"}
		p.Spec.Apps = append(p.Spec.Apps, v1alpha1.App{Name: "own", Image: "r/own:1", Command: []string{"x"}, Env: []v1alpha1.EnvVar{{Name: "A", Secret: key}, {Name: "B", Secret: key}}})
		for _, disk := range []v1alpha1.VirtualMachine{{PersistentVolumeClaim: "tracker"}, {Image: "r/guest:1", CloudInit: &v1alpha1.CloudInit{Secret: "guest"}}, {Image: "r/guest@sha256:" + strings.Repeat("12", 32)}} {
			p.Spec.Nodes = append(p.Spec.Nodes, v1alpha1.Node{Name: fmt.Sprint("vm", len(p.Spec.Nodes)), Networks: []string{"wan"}, Runtime: v1alpha1.RuntimeVM, VM: &disk})
		}
		p.Environment = nil
	})
	notes, out, err := rerunOf(t, newRealArchive(t).cluster(), record, rerunOptions{dryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "rerun-notes.txt", strings.ReplaceAll(notes, record, "FOLDER"))
	if strings.Contains(out, "stop: true") {
		t.Errorf("the rerun is stopped before it begins:\n%s", out)
	}
}

func TestARerunRepeatsChangesByHandInItsTimeline(t *testing.T) {
	record := withRecord(t, func(p *runapi.Plan) {
		slow := v1alpha1.RadioChange{Network: "wan", Link: &v1alpha1.LinkPatch{Delay: new(v1alpha1.Duration("200ms"))}}
		p.LiveChanges = []runapi.PlannedLiveChange{{AtNanoseconds: 9_034_567_000, Changes: slices.Repeat([]v1alpha1.RadioChange{slow}, 9)}}
	})
	c := newRealArchive(t).cluster()
	notes, _, err := rerunOf(t, c, record, rerunOptions{})
	if err != nil || !strings.Contains(notes, "Note: changes of networks by hand while it ran are in the timeline: 1\n") {
		t.Fatalf("%v\n%s", err, notes)
	}
	e := created(t, c, "pair-rerun-1")
	last := e.Spec.Timeline[len(e.Spec.Timeline)-1]
	if last.At != "9.034567s" || len(last.Set) != 1 || *last.Set[0].Link.Delay != "200ms" {
		t.Errorf("timeline %+v; want the last of 9 changes at 9.034567s", e.Spec.Timeline)
	}
	if e.Labels[v1alpha1.LabelRerunOf] == "" {
		t.Error("the new run is no rerun")
	}
}

func TestARecordThatCannotBeRunAgainSaysWhy(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		record, uid, want string
	}{
		"of a later version":  {write("later.json", `{"schemaVersion": 3}`), "", "later.json has schemaVersion 3, and this program reads versions up to 2"},
		"of something else":   {write("else.json", `[]`), "", "else.json is not a run record"},
		"without waveforms":   {withRecord(t, func(p *runapi.Plan) { p.Waveforms = nil }), "", "the record has no waveform baseline of network wan"},
		"not on the disk":     {filepath.Join(folder, "none"), "", "there is no " + filepath.Join(folder, "none")},
		"a name that is none": {"nobody", "", "the archive has no run of nobody in namespace team-nor"},
		"a uid for a file":    {oldRecord, "u", "--uid is for runs in the archive"},
		"no longer valid":     {withRecord(t, func(p *runapi.Plan) { p.Spec.Networks[0].Subnet = "198.18.9.1/24" }), "", "exit code 1"},
		"a digest that is none": {withRecord(t, func(p *runapi.Plan) {
			p.Spec.Scenario, p.Scenario = &v1alpha1.ScenarioReference{Ref: "hills"}, &runapi.PlannedScenario{Name: "hills", Digest: "x"}
		}), "", "scenario hills"},
		"a scenario that never was": {withRecord(t, func(p *runapi.Plan) { p.Spec.Scenario = &v1alpha1.ScenarioReference{Ref: "hills"} }), "", "the record has no digest of scenario hills"},
	} {
		t.Run(name, func(t *testing.T) {
			notes, _, err := rerunOf(t, newRealArchive(t).cluster(), c.record, rerunOptions{uid: c.uid, dryRun: true})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %s\n%s", err, c.want, notes)
			}
		})
	}
}
