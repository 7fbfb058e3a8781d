//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Timeouts that a loaded two-core machine easily meets. They end a run that hangs.
const (
	startTimeout  = 3 * time.Minute
	finishTimeout = 6 * time.Minute
	goneTimeout   = 90 * time.Second
)

// newNamespace makes a namespace that enforces Pod Security `restricted`, removed after the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	mustCreate(t, ns)
	t.Cleanup(func() {
		if err := kube.Delete(context.Background(), ns); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}

func mustCreate(t *testing.T, obj client.Object) {
	t.Helper()
	if err := kube.Create(t.Context(), obj); err != nil {
		t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
	}
}

// eventually polls until check returns no complaint, and fails the test with the last one.
func eventually(t *testing.T, timeout time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, timeout, err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

func get(t *testing.T, e *v1alpha1.Experiment) *v1alpha1.Experiment {
	t.Helper()
	var now v1alpha1.Experiment
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(e), &now); err != nil {
		t.Fatalf("get experiment %s: %v", e.Name, err)
	}
	return &now
}

// waitFor waits until the experiment is in one of the phases. An unexpected end fails at once.
func waitFor(t *testing.T, e *v1alpha1.Experiment, timeout time.Duration, phases ...v1alpha1.ExperimentPhase) *v1alpha1.Experiment {
	t.Helper()
	var now *v1alpha1.Experiment
	eventually(t, timeout, fmt.Sprintf("experiment %s to be %v", e.Name, phases), func() error {
		now = get(t, e)
		for _, p := range phases {
			if now.Status.Phase == p {
				return nil
			}
		}
		if now.Status.Phase == v1alpha1.PhaseFailed || now.Status.Phase == v1alpha1.PhaseSucceeded {
			t.Fatalf("experiment %s is %s, not %v: %s", e.Name, now.Status.Phase, phases, now.Status.Message)
		}
		return fmt.Errorf("it is %q (step %q): %s", now.Status.Phase, now.Status.Step, now.Status.Message)
	})
	return now
}

// waitForT0 waits until time zero has passed by d.
func waitForT0(t *testing.T, e *v1alpha1.Experiment, d time.Duration) *v1alpha1.Experiment {
	t.Helper()
	var now *v1alpha1.Experiment
	eventually(t, startTimeout, "T0 of "+e.Name, func() error {
		now = get(t, e)
		if now.Status.T0 == nil {
			return fmt.Errorf("phase %q: %s", now.Status.Phase, now.Status.Message)
		}
		return nil
	})
	time.Sleep(time.Until(now.Status.T0.Add(d)))
	return now
}

// archive reads a path of the server's API below /v1 through the API server's service proxy.
func archive(t *testing.T, path string, query url.Values, into any) {
	t.Helper()
	if err := readArchive(t.Context(), path, query, into); err != nil {
		t.Fatal(err)
	}
}

func readArchive(ctx context.Context, path string, query url.Values, into any) error {
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return err
	}
	request := clientset.CoreV1().RESTClient().Get().AbsPath(runapi.ArchivePath(""), "v1", path)
	for k, v := range query {
		request = request.Param(k, v[0])
	}
	body, err := request.DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("archive %s: %w in %.200s", path, err, body)
	}
	return nil
}

// resultsOf returns the archived results of a finished run.
func resultsOf(t *testing.T, uid types.UID) runapi.Results {
	t.Helper()
	var results runapi.Results
	archive(t, "runs/"+string(uid)+"/files/results/results.json", nil, &results)
	return results
}

func stateOf(t *testing.T, uid types.UID) runapi.State {
	t.Helper()
	var state runapi.State
	archive(t, "runs/"+string(uid), nil, &state)
	return state
}

func group(t *testing.T, r runapi.Results, name string) runapi.GroupResult {
	t.Helper()
	for _, g := range r.Groups {
		if g.Name == name {
			return g
		}
	}
	t.Fatalf("results of %s have no group %q: %+v", r.Experiment, name, r.Groups)
	return runapi.GroupResult{}
}

// deleteAndExpectNothingLeft deletes the experiment and waits until neither the API server nor
// radiod has any trace of it.
func deleteAndExpectNothingLeft(t *testing.T, e *v1alpha1.Experiment) {
	t.Helper()
	now := get(t, e)
	if err := kube.Delete(t.Context(), now); err != nil {
		t.Fatalf("delete %s: %v", e.Name, err)
	}
	eventually(t, goneTimeout, "everything of "+e.Name+" to be gone", func() error {
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(e), &v1alpha1.Experiment{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the experiment is still there (%v)", err)
		}
		return leftovers(t, now)
	})
}

// leftovers names the remains of an experiment.
func leftovers(t *testing.T, e *v1alpha1.Experiment) error {
	t.Helper()
	mine := client.MatchingLabels{v1alpha1.LabelExperimentUID: string(e.UID)}
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &v1alpha1.RadioNetworkList{}, unstructuredList("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinitionList"),
		unstructuredList("argoproj.io/v1alpha1", "WorkflowList"),
	} {
		if err := kube.List(t.Context(), list, mine); err != nil {
			return err
		}
		if names := namesOf(list); len(names) > 0 {
			return fmt.Errorf("%T left: %s", list, strings.Join(names, ", "))
		}
	}
	line, err := radiodMetricMentioning(t, e.Namespace)
	if err == nil && line != "" {
		err = fmt.Errorf("radiod still counts: %s", line)
	}
	return err
}
