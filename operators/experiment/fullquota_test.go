package experiment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// intercept puts an interceptor before the operator's client. The operator must not have begun.
func (w *world) intercept(with interceptor.Funcs) {
	w.reconciler.Client = interceptor.NewClient(w.reconciler.Client.(client.WithWatch), with)
}

// exceeded is an API server's refusal because of a quota. It comes first, whether the object exists or not.
func exceeded(object client.Object) error {
	return apierrors.NewForbidden(corev1.Resource("objects"), object.GetName(), errors.New("exceeded quota: team"))
}

func TestAnExperimentStartsAgainWithTheSecretThatFillsItsQuota(t *testing.T) {
	w := newWorld(t, withSecurity)
	podsRefused := true
	w.intercept(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		_, isSecret := o.(*corev1.Secret)
		_, isPod := o.(*corev1.Pod)
		if isSecret && len(w.secrets()) > 0 || isPod && podsRefused {
			return exceeded(o)
		}
		return c.Create(ctx, o, options...)
	}})
	w.until("back in the queue", func(e *v1alpha1.Experiment) bool {
		return e.Status.Phase == v1alpha1.PhaseQueued && strings.Contains(e.Status.Message, "exceeded quota: team")
	})
	podsRefused = false
	w.untilPhase(v1alpha1.PhaseSucceeded)
}

func TestAnExperimentThatAQuotaHasRefusedIsTriedAgainAtOnceWhenItIsEdited(t *testing.T) {
	w := newWorld(t)
	podsRefused := true
	w.intercept(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		if _, isPod := o.(*corev1.Pod); isPod && podsRefused {
			return exceeded(o)
		}
		return c.Create(ctx, o, options...)
	}})
	w.until("refused", func(e *v1alpha1.Experiment) bool { return strings.Contains(e.Status.Message, "next try in 15s") })
	refusedAt := w.clock.Now()
	podsRefused = false
	w.edit(func(e *v1alpha1.Experiment) { e.Spec.Nodes, e.Generation = e.Spec.Nodes[:3], e.Generation+1 })
	w.untilPhase(v1alpha1.PhaseProvisioning)
	if waited := w.clock.Since(refusedAt); waited > 5*time.Second {
		t.Errorf("it is tried again after %s", waited)
	}
}

func TestARadioNetworkThatTheClusterRefusesFailsTheExperimentWithItsWords(t *testing.T) {
	w := newWorld(t)
	w.intercept(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		if _, isNetwork := o.(*v1alpha1.RadioNetwork); isNetwork {
			return apierrors.NewForbidden(corev1.Resource("radionetworks"), o.GetName(), errors.New("a policy wants a cost centre"))
		}
		return c.Create(ctx, o, options...)
	}})
	w.wantFailed(scope.ReasonPodRefused, "a policy wants a cost centre")
	if took := w.clock.Since(start); took > time.Minute {
		t.Errorf("it fails after %s", took)
	}
}

func TestPodsThatTheCacheDoesNotShowAreNotRefusedByTheQuotaThatTheyFill(t *testing.T) {
	w := newWorld(t)
	w.noAgents = true
	hidden := ""
	w.intercept(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if pods, ok := list.(*corev1.PodList); ok {
				pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Name == hidden })
			}
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, isPod := o.(*corev1.Pod); isPod && len(w.pods()) == int(w.experiment().Status.Nodes.Total) {
				return exceeded(o)
			}
			return c.Create(ctx, o, options...)
		},
	})
	w.untilPhase(v1alpha1.PhaseProvisioning)
	w.settle()
	before := w.pods()
	hidden = before[0].Name
	for range 5 {
		w.step()
	}
	if e := w.experiment(); e.Status.Phase != v1alpha1.PhaseProvisioning || len(w.pods()) != len(before) {
		t.Errorf("%s: %s, with %d of %d pods", e.Status.Phase, e.Status.Message, len(w.pods()), len(before))
	}
}
