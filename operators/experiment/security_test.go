package experiment

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

func withSecurity(e *v1alpha1.Experiment) {
	e.Spec.Apps[0].Security = &v1alpha1.Security{TLS: true, Password: true}
}

// secrets are those of the experiment's namespace.
func (w *world) secrets() []corev1.Secret {
	w.t.Helper()
	var list corev1.SecretList
	w.must(w.api.List(w.t.Context(), &list))
	return list.Items
}

func TestCertificatesAndPasswordAreCreatedOnceBeforeTheFirstPodAndStay(t *testing.T) {
	w := newWorld(t, withSecurity)
	w.noAgents = true
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	made := w.secrets()
	if len(made) != 1 || !metav1.IsControlledBy(&made[0], w.experiment()) {
		t.Fatalf("there are %d Secrets, want one that goes with the experiment", len(made))
	}
	files := []string{}
	for name := range made[0].Data {
		files = append(files, name)
	}
	slices.Sort(files)
	if diff := cmp.Diff([]string{"ca.crt", "password", "tls.crt", "tls.key", "username"}, files); diff != "" {
		t.Errorf("its files (-want +got)\n%s", diff)
	}
	first := func(prefix string) int {
		return slices.IndexFunc(w.writes, func(s string) bool { return strings.HasPrefix(s, prefix) })
	}
	if first("create *v1.Secret") > first("create *v1.Pod") {
		t.Errorf("pods come before the Secret that they mount: %v", w.writes)
	}
	w.restart() // a new operator has no memory
	w.noAgents = false
	w.untilPhase(v1alpha1.PhaseSucceeded)
	if diff := cmp.Diff(made[0].Data, w.secrets()[0].Data); diff != "" {
		t.Error("they were made again")
	}
	if writes := strings.Join(w.writes, "\n"); strings.Count(writes, "Secret") != 1 {
		t.Errorf("the Secret is written several times:\n%s", writes)
	}
}

func TestAnExperimentWithoutSecurityHasNoSecret(t *testing.T) {
	w := newWorld(t)
	w.untilPhase(v1alpha1.PhaseSucceeded)
	if made := w.secrets(); len(made) > 0 {
		t.Errorf("made %s", made[0].Name)
	}
}

func TestAnOperatorKilledAfterItCreatedTheSecretIsReplacedByOneThatUsesIt(t *testing.T) {
	w := newWorld(t, withSecurity)
	w.untilPhase(v1alpha1.PhaseRunning)
	for i, what := range w.writes {
		if strings.HasPrefix(what, "create *v1.Secret") {
			killed := newWorld(t, withSecurity)
			killed.killAfter = i + 1
			killed.onDeath = killed.restart
			killed.untilPhase(v1alpha1.PhaseSucceeded)
			if n := len(killed.secrets()); n != 1 {
				t.Errorf("%d Secrets", n)
			}
			return
		}
	}
	t.Errorf("no Secret in %v", w.writes)
}
