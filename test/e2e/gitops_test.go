//go:build e2e && gitops

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	argoCDNamespace = "argocd"
	// syncTimeout is from a commit to its effect: Argo CD polls every 10 s, and the ApplicationSet before it.
	syncTimeout = 3 * time.Minute
)

// gitRepository is the example of docs/how-to/use-gitops.md, in a local clone and at the cluster's git server.
type gitRepository struct {
	t        *testing.T
	dir, url string
}

func newGitRepository(t *testing.T) *gitRepository {
	t.Helper()
	name := fmt.Sprintf("experiments-%d.git", time.Now().Unix())
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(argoCDNamespace), client.MatchingLabels{"app.kubernetes.io/name": "git"}); err != nil || len(pods.Items) == 0 {
		t.Fatalf("no git server in namespace %s (%v): hack/cluster up --with argocd", argoCDNamespace, err)
	}
	execIn(t, argoCDNamespace, pods.Items[0].Name, "git", "git", "init", "--quiet", "--bare", "--initial-branch=main", "/srv/git/"+name)
	var service corev1.Service
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: argoCDNamespace, Name: "git"}, &service); err != nil {
		t.Fatal(err)
	}
	r := &gitRepository{t: t, dir: t.TempDir(), url: "git://git." + argoCDNamespace + "/" + name}
	if err := os.CopyFS(r.dir, os.DirFS("../../docs/examples/gitops")); err != nil {
		t.Fatal(err)
	}
	r.replace("argocd/experiments.yaml", "https://git.example.org/experiments.git", r.url)
	r.git("init", "--quiet", "--initial-branch=main")
	r.git("remote", "add", "origin", "git://"+service.Spec.ClusterIP+"/"+name)
	return r
}

func (r *gitRepository) git(arguments ...string) string {
	r.t.Helper()
	command := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=e2e", "-c", "user.email=e2e@localhost"}, arguments...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// push commits and pushes all changes, and returns the commit.
func (r *gitRepository) push(message string) (revision string) {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", message)
	r.git("push", "--quiet", "origin", "main")
	revision = r.git("rev-parse", "HEAD")
	r.t.Logf("%s: pushed %.7s: %s", time.Now().Format(time.TimeOnly), revision, message)
	return revision
}

func (r *gitRepository) write(path, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, path), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *gitRepository) read(path string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, path))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

func (r *gitRepository) replace(path, before, after string) {
	r.t.Helper()
	text := r.read(path)
	if !strings.Contains(text, before) {
		r.t.Fatalf("%s has no %q", path, before)
	}
	r.write(path, strings.ReplaceAll(text, before, after))
}

func (r *gitRepository) remove(path string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, path)); err != nil {
		r.t.Fatal(err)
	}
}

// objects returns the objects of a file of the repository.
func (r *gitRepository) objects(path string) (objects []*unstructured.Unstructured) {
	r.t.Helper()
	for document := range strings.SplitSeq(r.read(path), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			r.t.Fatal(err)
		}
		objects = append(objects, u)
	}
	return objects
}

// applicationState is an Application's state in Argo CD.
type applicationState struct {
	revision, sync, health string
	// going: it is being deleted, and its objects with it.
	going bool
	// deployments are its completed syncs.
	deployments int
	// resources are those that it owns.
	resources []string
	trouble   string
}

func (s applicationState) String() string {
	return fmt.Sprintf("%s at %.7s, %s, %d syncs; %s", s.sync, s.revision, s.health, s.deployments, s.trouble)
}

func readApplication(ctx context.Context, name string) (s applicationState, err error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("argoproj.io/v1alpha1")
	u.SetKind("Application")
	if err := kube.Get(ctx, client.ObjectKey{Namespace: argoCDNamespace, Name: name}, u); err != nil {
		return s, err
	}
	s.going = u.GetDeletionTimestamp() != nil
	s.revision, _, _ = unstructured.NestedString(u.Object, "status", "sync", "revision")
	s.sync, _, _ = unstructured.NestedString(u.Object, "status", "sync", "status")
	s.health, _, _ = unstructured.NestedString(u.Object, "status", "health", "status")
	history, _, _ := unstructured.NestedSlice(u.Object, "status", "history")
	s.deployments = len(history)
	s.trouble, _, _ = unstructured.NestedString(u.Object, "status", "operationState", "message")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		s.trouble += fmt.Sprintf("; %v", c.(map[string]any)["message"])
	}
	resources, _, _ := unstructured.NestedSlice(u.Object, "status", "resources")
	for _, r := range resources {
		s.resources = append(s.resources, fmt.Sprintf("%v/%v", r.(map[string]any)["kind"], r.(map[string]any)["name"]))
	}
	slices.Sort(s.resources)
	return s, nil
}

// watcher watches Applications: one that is equal to its commit never differs from it afterwards.
type watcher struct {
	mutex   sync.Mutex
	synced  map[string]bool
	drifts  []string
	healths map[string][]string
}

func watchApplications(t *testing.T, names ...string) *watcher {
	w := &watcher{synced: map[string]bool{}, healths: map[string][]string{}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, name := range names {
				if s, err := readApplication(ctx, name); err == nil {
					w.note(name, s)
				}
			}
			time.Sleep(300 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return w
}

func (w *watcher) note(name string, s applicationState) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if seen := w.healths[name]; s.health != "" && (len(seen) == 0 || seen[len(seen)-1] != s.health) {
		w.healths[name] = append(seen, s.health)
	}
	key := name + " " + s.revision
	switch {
	case s.sync == "Synced":
		w.synced[key] = true
	case s.sync == "OutOfSync" && w.synced[key] && !s.going:
		w.drifts = append(w.drifts, fmt.Sprintf("%s %s: %s", time.Now().Format(time.TimeOnly), name, s))
	}
}

func (w *watcher) wantNoDrift(t *testing.T) {
	t.Helper()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.drifts) > 0 {
		t.Errorf("%d times something that was synced was not any more, first %s", len(w.drifts), w.drifts[0])
	}
	t.Logf("healths: %v", w.healths)
}

// waitForSync waits until an Application has synced a commit, and for a health, if one is named.
func waitForSync(t *testing.T, name, revision, health string, timeout time.Duration) applicationState {
	t.Helper()
	var s applicationState
	eventually(t, timeout, fmt.Sprintf("Application %s to be synced with %.7s, %s", name, revision, health), func() (err error) {
		if s, err = readApplication(t.Context(), name); err != nil {
			return err
		}
		if s.sync != "Synced" || s.revision != revision || health != "" && s.health != health {
			return fmt.Errorf("it is %s", s)
		}
		return nil
	})
	t.Logf("%s: %s is %s", time.Now().Format(time.TimeOnly), name, s)
	return s
}

// installHealthChecks installs them as docs/how-to/use-gitops.md says.
func installHealthChecks(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../charts/vignette/files/argocd/health.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var patch corev1.ConfigMap
	if err := yaml.Unmarshal(text, &patch); err != nil {
		t.Fatal(err)
	}
	var configuration corev1.ConfigMap
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: argoCDNamespace, Name: "argocd-cm"}, &configuration); err != nil {
		t.Fatalf("Argo CD's configuration: %v: hack/cluster up --with argocd", err)
	}
	before := configuration.DeepCopy()
	for key, value := range patch.Data {
		configuration.Data[key] = value
	}
	if err := kube.Patch(t.Context(), &configuration, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// handToArgoCD gives the repository to Argo CD, and at the end removes it with all objects from it.
func (r *gitRepository) handToArgoCD() {
	r.t.Helper()
	objects := r.objects("argocd/experiments.yaml")
	for _, u := range objects {
		if err := kube.Patch(r.t.Context(), u, client.Apply, client.ForceOwnership, client.FieldOwner("e2e")); err != nil {
			r.t.Fatal(err)
		}
	}
	r.t.Cleanup(func() {
		// The project last, as Argo CD deletes nothing of an Application without one.
		for _, u := range slices.Backward(objects) {
			err := kube.Delete(context.Background(), u, client.PropagationPolicy(metav1.DeletePropagationForeground))
			for deadline := time.Now().Add(goneTimeout); err == nil && time.Now().Before(deadline); time.Sleep(time.Second) {
				err = kube.Get(context.Background(), client.ObjectKeyFromObject(u), u)
			}
			if !apierrors.IsNotFound(err) {
				r.t.Errorf("%s %s is still there: %v", u.GetKind(), u.GetName(), err)
			}
		}
	})
}

// makeTeams makes their namespaces, as an administrator does, and deletes them at the end.
func makeTeams(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
		if err := kube.Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := kube.Delete(context.Background(), namespace); err != nil {
				t.Errorf("namespace %s: %v", name, err)
			}
		})
	}
}

func wantGone(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		eventually(t, 3*time.Minute, fmt.Sprintf("%T %s to be gone", object, object.GetName()), func() error {
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there (%v), deleted at %v, finalizers %v", err, object.GetDeletionTimestamp(), object.GetFinalizers())
			}
			return nil
		})
	}
}

func experimentOf(team, name string) *v1alpha1.Experiment {
	return &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-" + team, Name: name}}
}

func waitForExperiment(t *testing.T, e *v1alpha1.Experiment, phases ...v1alpha1.ExperimentPhase) *v1alpha1.Experiment {
	t.Helper()
	eventually(t, syncTimeout, "experiment "+e.Name, func() error { return kube.Get(t.Context(), client.ObjectKeyFromObject(e), e) })
	return waitFor(t, e, finishTimeout, phases...)
}

func TestGitOpsCommitRunsHealthShowsPruneLeavesNothing(t *testing.T) {
	installHealthChecks(t)
	r := newGitRepository(t)
	r.replace("teams/alpha/kustomization.yaml", ", nightly.yaml", "")
	first := r.push("experiments of two teams")
	makeTeams(t, "team-alpha", "team-bravo")
	r.handToArgoCD()
	w := watchApplications(t, "lab-waveforms", "lab-alpha", "lab-bravo")

	waitForSync(t, "lab-waveforms", first, "Healthy", syncTimeout)
	waitForSync(t, "lab-alpha", first, "", syncTimeout)
	picture := waitForExperiment(t, experimentOf("alpha", "picture-1"), v1alpha1.PhaseSucceeded)
	alpha := waitForSync(t, "lab-alpha", first, "Healthy", time.Minute)
	if alpha.deployments != 1 {
		t.Errorf("a finished experiment was synced %d times", alpha.deployments)
	}
	w.mutex.Lock()
	if !slices.Contains(w.healths["lab-alpha"], "Progressing") {
		t.Errorf("while it ran, its health was %v", w.healths["lab-alpha"])
	}
	w.mutex.Unlock()
	live := waitForExperiment(t, experimentOf("bravo", "live"), v1alpha1.PhaseRunning)
	waitForSync(t, "lab-bravo", first, "Healthy", 2*time.Minute)
	w.wantNoDrift(t)

	r.remove("environments/lab/bravo")
	r.replace("teams/alpha/kustomization.yaml", "picture.yaml", "picture.yaml, nightly.yaml")
	r.write("environments/lab/alpha/kustomization.yaml", everyMinute)
	second := r.push("team bravo leaves, its live cluster up; team alpha has a campaign")
	wantGone(t, live)
	eventually(t, goneTimeout, "everything of the live cluster to be gone", func() error { return leftovers(t, live) })
	if manifest := manifestOf(t, live.UID); len(manifest.Files) == 0 {
		t.Error("nothing of the live cluster is in the archive")
	}

	done, running := campaignRuns(t, second)
	r.remove("environments/lab/alpha")
	r.push("team alpha leaves as well, its campaign running")
	wantGone(t, running, experimentOf("alpha", "picture-1"), nightly())
	for _, e := range []*v1alpha1.Experiment{picture, done, running} {
		eventually(t, goneTimeout, "everything of "+e.Name+" to be gone", func() error { return leftovers(t, e) })
	}
	for _, e := range []*v1alpha1.Experiment{picture, done} {
		if results := resultsOf(t, e.UID); results.Messages.Received == 0 {
			t.Errorf("of %s the archive has %+v", e.Name, results.Messages)
		}
	}
	w.wantNoDrift(t)
}

func nightly() *v1alpha1.Campaign {
	return &v1alpha1.Campaign{ObjectMeta: metav1.ObjectMeta{Namespace: "team-alpha", Name: "nightly"}}
}

// everyMinute is the campaign of team alpha in this cluster, with one point and a run each minute.
const everyMinute = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../../teams/alpha]
patches:
- target: {kind: Campaign, name: nightly}
  patch: |
    - {op: replace, path: /spec/schedule/cron, value: "* * * * *"}
    - {op: replace, path: /spec/matrix/axes/0/values, value: [1s]}
`

// campaignRuns returns a succeeded run of the campaign, untouched by Argo CD, and a current one.
func campaignRuns(t *testing.T, revision string) (done, running *v1alpha1.Experiment) {
	t.Helper()
	waitForSync(t, "lab-alpha", revision, "", syncTimeout)
	began := map[v1alpha1.ExperimentPhase]bool{v1alpha1.PhaseProvisioning: true, v1alpha1.PhaseRunning: true}
	eventually(t, 2*finishTimeout, "a run that has succeeded, and one under way", func() error {
		var runs v1alpha1.ExperimentList
		if err := kube.List(t.Context(), &runs, client.InNamespace("team-alpha"), client.MatchingLabels{v1alpha1.LabelCampaign: "nightly"}); err != nil {
			return err
		}
		done, running = nil, nil
		var seen []string
		for i, e := range runs.Items {
			seen = append(seen, e.Name+" "+string(e.Status.Phase))
			switch {
			case e.Status.Phase == v1alpha1.PhaseSucceeded:
				done = &runs.Items[i]
			case began[e.Status.Phase]:
				running = &runs.Items[i]
			}
		}
		if done == nil || running == nil {
			return fmt.Errorf("there are %q", seen)
		}
		return nil
	})
	for key := range done.Annotations {
		if strings.HasPrefix(key, "argocd.argoproj.io/") {
			t.Errorf("run %s has the campaign's %s", done.Name, key)
		}
	}
	if alpha := waitForSync(t, "lab-alpha", revision, "", time.Minute); slices.Contains(alpha.resources, "Experiment/"+done.Name) {
		t.Errorf("Argo CD takes %s for its own: %v", done.Name, alpha.resources)
	}
	return done, running
}
