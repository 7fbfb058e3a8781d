package testteam

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"

	"vignette.dev/vignette/internal/testoidc"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Words are in the names of all that a team has, so that a word in an answer betrays its team.
var Words = map[string]string{Alpha: "amber", Bravo: "crimson"}

// Helm is the program: that of the PATH, or of the developer cluster; empty for none.
func Helm() string {
	if found, err := exec.LookPath("helm"); err == nil {
		return found
	}
	if cache, err := os.UserCacheDir(); err == nil {
		if found, _ := filepath.Glob(filepath.Join(cache, "vignette", "build", "helm-*", "helm")); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// apply the chart's roles, both teams, and what they have.
func (w *World) apply(ctx context.Context, charts string) error {
	for _, namespace := range []string{platform, Alpha, Bravo} {
		if err := w.Objects.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return err
		}
	}
	if err := w.applyChart(ctx, platform, []string{filepath.Join(charts, "vignette"), "--show-only", "templates/roles.yaml", "-n", platform}); err != nil {
		return err
	}
	for namespace := range Words {
		if err := w.applyRoles(ctx, charts, namespace); err != nil {
			return err
		}
		if err := w.applyTeam(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// roles of the groups of the login service, as values of the teams' chart.
var roles = map[string][]string{
	Alpha: {"experimenters.groups={" + testoidc.Prefix + "alpha}", "viewers.groups={" + testoidc.Prefix + "alpha-viewers}"},
	Bravo: {"experimenters.groups={" + testoidc.Prefix + "bravo}"},
}

func (w *World) applyRoles(ctx context.Context, charts, namespace string) error {
	arguments := []string{filepath.Join(charts, "vignette-team"), "--show-only", "templates/rolebindings.yaml", "-n", namespace}
	for _, value := range roles[namespace] {
		arguments = append(arguments, "--set", value)
	}
	return w.applyChart(ctx, namespace, arguments)
}

// applyChart applies what helm renders, into a namespace where the objects name none.
func (w *World) applyChart(ctx context.Context, namespace string, arguments []string) error {
	command := exec.CommandContext(ctx, Helm(), append([]string{"template"}, arguments...)...)
	var problem strings.Builder
	command.Stderr = &problem
	rendered, err := command.Output()
	if err != nil {
		return fmt.Errorf("helm template: %w: %s", err, problem.String())
	}
	return w.create(ctx, namespace, string(rendered))
}

// create objects from YAML, all or those of some kinds. Those of a namespace go into the given one.
func (w *World) create(ctx context.Context, namespace, text string, kinds ...string) error {
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 1<<10)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(kinds) > 0 && !slices.Contains(kinds, object.GetKind()) {
			continue
		}
		if namespaced, err := w.Objects.IsObjectNamespaced(object); err != nil {
			return err
		} else if namespaced {
			object.SetNamespace(namespace)
		}
		if err := w.Objects.Create(ctx, object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

//go:embed team.yaml
var teamObjects string

// ObjectsOf a team, as YAML without a namespace.
func ObjectsOf(namespace string) string {
	return strings.ReplaceAll(teamObjects, "WORD", Words[namespace])
}

// applyTeam makes one of everything that a team has. Its experiment runs.
func (w *World) applyTeam(ctx context.Context, namespace string) error {
	if err := w.create(ctx, namespace, ObjectsOf(namespace)); err != nil {
		return err
	}
	experiment, err := w.Run(ctx, namespace)
	if err != nil {
		return err
	}
	word := experiment.Name
	t0 := metav1.NowMicro()
	experiment.Status = v1alpha1.ExperimentStatus{Phase: v1alpha1.PhaseRunning, T0: &t0, Message: word + " runs"}
	if err := w.Objects.Status().Update(ctx, experiment); err != nil {
		return err
	}
	return w.Objects.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: word + "-event"}, Reason: "Started", Message: word + " has started", Type: corev1.EventTypeNormal,
		InvolvedObject: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Experiment", Namespace: namespace, Name: word, UID: experiment.UID},
	})
}

// raw answer of the API server to a GET.
func (w *World) raw(ctx context.Context, path string) ([]byte, error) {
	kube, err := kubernetes.NewForConfig(w.Kube)
	if err != nil {
		return nil, err
	}
	return kube.RESTClient().Get().AbsPath(path).DoRaw(ctx)
}
